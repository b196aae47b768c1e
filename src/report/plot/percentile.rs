//! Latency by percentile: x in nines, y logarithmic; all runs in one panel.

use super::{
    PlotError,
    axis::{Axis, NINES_FROM},
    frame::{Area, Frame, Labels, SMALL},
    lines_legend,
    palette::{self, LineStyles},
    picture::{Colour, Picture, Point, Shape, Stroke},
    scatter::with_headroom,
    sheet::Canvas,
    subject::{self, Largest, RunLabel, highest},
    text,
};
use crate::{
    report::{
        page::{Page, PageRun, PageSeries},
        sample_name::SampleName,
    },
    run::summary::ENOUGH_BEYOND,
};

/// What must be said of every such picture.
pub(super) fn notes() -> Vec<String> {
    vec![format!("Thin: fewer than {ENOUGH_BEYOND} samples lie beyond. Dot: the maximum.")]
}

/// Draws the curves.
pub(super) fn draw(
    page: &Page,
    subjects: &[RunLabel],
    sheet: &mut Canvas,
) -> Result<(), PlotError> {
    let styles = LineStyles::of(page);
    sheet.legend(&lines_legend(page, &styles));
    let panels = sheet.panels(1, 86.0, false)?;
    let Some(panel) = panels.first() else { return Ok(()) };
    let area = beside_names(panel.area, subjects);
    let curves = curves(page);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|(nines, _)| *nines).fold(1.0, f64::max);
    let least = all().map(|(_, ns)| *ns).fold(highest(page), f64::min);
    let sample_name = SampleName::drawn_of_all(page.runs.iter().map(|run| &run.record));
    let x = Axis::nines(
        &format!("percentile of {}", subject::counted(subjects, sample_name.many())),
        most * 1.02,
        area.width(),
    );
    let (low, room) = (sheet.latency.low(least / 1.15), 14.0 + 14.0 * subjects.len() as f64);
    let high = sheet.latency.high(with_headroom(low, highest(page), area.height(), room));
    let y = Axis::latency(sample_name.measure(), low, high, area.height(), 22.0);
    let frame = Frame { area, x: &x, y: &y, names_y: true, names_x: true };
    frame.draw(&mut sheet.picture);
    for others in [true, false] {
        for curve in &curves {
            if styles.is_other(curve.series) == others {
                curve.draw(&frame, styles.line(curve.run, curve.series), &mut sheet.picture);
            }
        }
    }
    let mut labels = Labels::default();
    for curve in &curves {
        labels.avoid(&curve.points.iter().map(|(x, y)| frame.at(*x, *y)).collect::<Vec<_>>());
    }
    for (run, subject) in subjects.iter().enumerate() {
        let Some(largest) = &subject.largest else { continue };
        let own = |curve: &&Curve| curve.run == run && curve.series == largest.series;
        let Some(end) = curves.iter().find(own).and_then(|curve| curve.points.last()) else {
            continue;
        };
        let words = words(subject, subjects);
        let at = frame.at(end.0, end.1);
        labels.put(&mut sheet.picture, &panel.area, at, &words, palette::INK);
    }
    Ok(())
}

/// The name of a maximum.
fn words(subject: &RunLabel, subjects: &[RunLabel]) -> String {
    let largest = subject.largest.as_ref().map(Largest::words).unwrap_or_default();
    subject.before(subjects.len() == 1) + &largest
}

/// The place of the data where right of it there is room for the names of the maxima, unless these
/// would take much of it.
fn beside_names(area: Area, subjects: &[RunLabel]) -> Area {
    const MOST: f64 = 0.3;
    let widths = subjects.iter().map(|subject| text::width(&words(subject, subjects), SMALL));
    let room = widths.fold(0.0, f64::max) + 14.0;
    if room > MOST * area.width() { area } else { Area { right: area.right - room, ..area } }
}

/// One series of one run: nines and ns, the maximum last.
struct Curve<'a> {
    run: usize,
    series: &'a str,
    points: Vec<Point>,
    /// From here on, fewer than [`ENOUGH_BEYOND`] samples lie beyond.
    thin_from: f64,
}

fn curves(page: &Page) -> Vec<Curve<'_>> {
    let of_run = |(run, page_run): (usize, &'_ PageRun)| -> Vec<(usize, f64)> {
        let counts = page_run.record.wakeups().map(|series| series.count as f64);
        counts.map(|count| (run, count)).collect()
    };
    let counts = page.runs.iter().enumerate().flat_map(of_run);
    let series = page.runs.iter().flat_map(|run| &run.series);
    let curve = |(series, (run, count))| curve(run, series, count);
    series.zip(counts).map(curve).filter(|curve| !curve.points.is_empty()).collect()
}

fn curve(run: usize, series: &PageSeries, count: f64) -> Curve<'_> {
    let all = count.max(2.0).log10().max(NINES_FROM);
    let place = |(p, ns): &(f64, i64)| {
        let nines = if *p >= 100.0 { all } else { -(1.0 - p / 100.0).log10() };
        (nines.min(all), (*ns).max(1) as f64)
    };
    let mut points: Vec<Point> = series.curve.iter().map(place).collect();
    points.retain(|(nines, _)| *nines >= NINES_FROM - 1e-6);
    if let Some(&(_, first)) = points.first() {
        points.insert(0, (NINES_FROM, first));
    }
    let thin_from = all - (ENOUGH_BEYOND as f64).log10();
    Curve { run, series: &series.name, points, thin_from }
}

impl Curve<'_> {
    fn draw(
        &self,
        frame: &Frame<'_>,
        (colour, dash): (Colour, &'static [f64]),
        picture: &mut Picture,
    ) {
        let split = self.points.partition_point(|(nines, _)| *nines <= self.thin_from);
        let place = |points: &[Point]| points.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        let (certain, thin) = self.points.split_at(split);
        // The thin part begins where the other one ends.
        let thin = self.points.get(split.saturating_sub(1)..).unwrap_or(thin);
        picture.line(place(certain), Stroke { width: 2.2, colour, dash });
        picture.line(place(thin), Stroke { width: 1.1, colour, dash });
        if let Some((x, y)) = self.points.last() {
            picture.shapes.push(Shape::Dot { at: frame.at(*x, *y), radius: 3.2, colour });
        }
    }
}
