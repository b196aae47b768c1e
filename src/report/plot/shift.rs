//! The shift function: by which factor runs differ from the first one, percentile by percentile,
//! with the interval of each.

use super::{
    LatencyRange, PlotError, PlotOptions,
    axis::{Axis, NINES_FROM},
    frame::Frame,
    palette::{self, LineStyles},
    picture::{Colour, Picture, Point, Shape, Stroke},
    sheet::{Canvas, Entry, Mark},
};
use crate::report::{
    comparison_page::{PageComparison, ShiftPoint},
    page::Page,
    sample_name,
    sample_name::SampleName,
};

/// Half of the width of the ends of an interval.
const END: f64 = 4.0;

/// The axis reaches at least so far to either side.
const LEAST_REACH: f64 = 1.05;

/// One series of one comparison: nines and points.
struct Line<'a> {
    /// The run that is B.
    run: usize,
    series: Option<&'a str>,
    points: Vec<(f64, &'a ShiftPoint)>,
}

/// Draws all of it on a sheet that has its heading.
pub(super) fn draw(
    page: &Page,
    options: &PlotOptions,
    notes: &[String],
    mut sheet: Canvas,
) -> Result<Picture, PlotError> {
    if options.latency != LatencyRange::ALL {
        return Err(PlotError::Latency);
    }
    let lines = lines(page, options);
    if lines.is_empty() {
        return Err(PlotError::Nothing("a shift takes two runs or more, of the same series"));
    }
    let meaning = page.comparisons.iter().map(|one| one.shift_meaning.as_str());
    let meaning = meaning.filter(|meaning| !meaning.is_empty()).max().unwrap_or_default();
    let mut all = notes.to_vec();
    all.push(format!("Bars: 95% intervals, of each percentile by itself, by {meaning}."));
    all.push("An open end is one that the samples do not tell.".into());
    sheet.foot(&all);
    let styles = LineStyles::of(page);
    sheet.legend(&legend(page, &lines, &styles));
    let panels = sheet.panels(1, 86.0, false)?;
    let Some(panel) = panels.first() else { return Ok(sheet.picture) };
    let most = points(&lines).map(|(nines, _)| *nines).fold(1.0, f64::max);
    let words = SampleName::drawn_of_all(page.runs.iter().map(|run| &run.record)).many();
    let title = format!("percentile of {words}");
    let x = Axis::nines(&title, most + 0.15, panel.area.width());
    let first = page.runs.first().map_or("the first", |run| run.record.name.as_str());
    let reach = points(&lines).map(|(_, point)| reach(point)).fold(LEAST_REACH, f64::max);
    let y = Axis::ratios(&format!("ratio to {first}"), reach * 1.03, panel.area.height());
    let frame = Frame { area: panel.area, x: &x, y: &y, names_y: true, names_x: true };
    frame.draw(&mut sheet.picture);
    let one = vec![frame.at(NINES_FROM, 1.0), (panel.area.right, frame.at(0.0, 1.0).1)];
    sheet.picture.line(one, Stroke { width: 1.2, colour: palette::PALE_INK, dash: &[5.0, 4.0] });
    for (number, line) in lines.iter().enumerate() {
        // Intervals of several lines stand beside each other.
        let aside = (number as f64 - (lines.len() - 1) as f64 / 2.0) * (END * 2.0 + 1.0);
        line.draw(&frame, style(line, &styles), aside, &mut sheet.picture);
    }
    Ok(sheet.picture)
}

/// The farthest end of a point, as a factor above 1.
fn reach(point: &ShiftPoint) -> f64 {
    let all = [Some(point.ratio), point.low, point.high];
    all.into_iter().flatten().map(|ratio| ratio.max(1.0 / ratio)).fold(1.0, f64::max)
}

fn points<'a>(lines: &'a [Line<'a>]) -> impl Iterator<Item = &'a (f64, &'a ShiftPoint)> {
    lines.iter().flat_map(|line| &line.points)
}

/// All series together where they can be pooled, each where not, or those that were chosen.
fn lines<'a>(page: &'a Page, options: &PlotOptions) -> Vec<Line<'a>> {
    let of = |one: &'a PageComparison| -> Vec<Line<'a>> {
        let mut names: Vec<Option<&str>> = Vec::new();
        for point in &one.shift {
            let name = point.series.as_deref();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let is_pooled = names.contains(&None);
        let is_chosen = |name: &Option<&str>| match name {
            _ if options.series.is_empty() => name.is_none() == is_pooled,
            None => false,
            Some(own) => options
                .series
                .iter()
                .any(|wanted| wanted == own || sample_name::series(own) == *wanted),
        };
        let line = |series: Option<&'a str>| Line {
            run: one.b.first().map_or(1, |run| *run as usize),
            series,
            points: one
                .shift
                .iter()
                .filter(|own| own.series.as_deref() == series)
                .map(at)
                .collect(),
        };
        names.into_iter().filter(is_chosen).map(line).collect()
    };
    page.comparisons.iter().flat_map(of).collect()
}

/// A point with its place in nines.
fn at(point: &ShiftPoint) -> (f64, &ShiftPoint) {
    let percent: f64 = point.percentile.parse().unwrap_or(50.0);
    (-(1.0 - percent / 100.0).log10(), point)
}

fn style(line: &Line<'_>, styles: &LineStyles) -> (Colour, &'static [f64]) {
    let colour = styles.run(line.run).unwrap_or(palette::INK);
    (colour, line.series.map_or(&[], |name| styles.dash(name)))
}

fn legend(page: &Page, lines: &[Line<'_>], styles: &LineStyles) -> Vec<Entry> {
    let entry = |line: &Line<'_>| {
        let (colour, dash) = style(line, styles);
        let name = page.runs.get(line.run).map_or("", |run| run.record.name.as_str());
        let series = line.series.map_or("all series".into(), sample_name::series);
        Entry { mark: Mark::Line(dash), colour, words: format!("{name}, {series}") }
    };
    lines.iter().map(entry).collect()
}

impl Line<'_> {
    fn draw(
        &self,
        frame: &Frame<'_>,
        (colour, dash): (Colour, &'static [f64]),
        aside: f64,
        picture: &mut Picture,
    ) {
        let place = |nines: f64, ratio: f64| -> Point {
            let (x, y) = frame.at(nines, ratio);
            (x + aside, y)
        };
        let middle = self.points.iter().map(|(nines, own)| place(*nines, own.ratio));
        picture.line(middle.collect(), Stroke { width: 1.1, colour, dash });
        let stroke = Stroke { width: 1.8, colour, dash: &[] };
        for (nines, point) in &self.points {
            let at = place(*nines, point.ratio);
            for (end, edge) in [(point.low, frame.area.bottom), (point.high, frame.area.top)] {
                let known = end.map(|end| place(*nines, end));
                match known {
                    Some((x, y)) => {
                        picture.line(vec![at, (x, y)], stroke);
                        picture.line(vec![(x - END, y), (x + END, y)], stroke);
                    }
                    None => {
                        let open = Stroke { width: 1.0, colour, dash: &[2.0, 3.0] };
                        picture.line(vec![at, (at.0, edge)], open);
                    }
                }
            }
            picture.shapes.push(Shape::Dot { at, radius: 3.4, colour });
        }
    }
}
