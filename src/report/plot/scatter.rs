//! Latency over time, one point per sample; runs side by side on the same scales.

use super::{
    PlotError,
    axis::Axis,
    frame::{Area, Frame, Labels, SMALL, ring},
    legend, palette,
    picture::{Align, Colour, Picture, Shape},
    sheet::{Canvas, Mark, Panel},
    subject::{RunLabel, highest, lowest},
    text,
};
use crate::{
    report::{
        page::{Page, PageRun, PointKind},
        sample_name::SampleName,
    },
    units::count,
};

/// Thinning rules that are spelled out; of the others only the kind is said.
const RULES_SHOWN: usize = 2;

/// What a point is, and which ones are left out.
pub(super) fn notes(page: &Page, subjects: &[RunLabel]) -> Vec<String> {
    let mut notes: Vec<String> = page.runs.iter().filter_map(|run| note(run, "")).collect();
    notes.dedup();
    if notes.len() > 1 {
        let named = page.runs.iter().zip(subjects);
        notes = named.filter_map(|(run, subject)| note(run, &subject.before(false))).collect();
    }
    notes
}

fn note(run: &PageRun, name: &str) -> Option<String> {
    let points = run.series.iter().map(|series| &series.points);
    let shown: usize = points.clone().map(|points| points.t_s.len()).sum();
    let of: u64 = points.clone().map(|points| points.of).sum();
    let what = match points.clone().next()?.kind {
        PointKind::Sample => format!("each point is one {}", SampleName::drawn(&run.record).one()),
        PointKind::IntervalMax => {
            "each point is the largest latency of an interval, as single samples were not kept"
                .into()
        }
    };
    let mut note =
        if name.is_empty() { what.replacen('e', "E", 1) } else { format!("{name}{what}") };
    if (shown as u64) < of {
        note.push_str(&format!("; {} of {} drawn", count(shown as u64), count(of)));
    }
    let thinned = run.series.iter().filter(|series| !series.points.thinned.is_empty());
    let rules = thinned.clone().map(|series| match run.series.len() {
        1 => series.points.thinned.clone(),
        _ => format!("of {} {}", series.name, series.points.thinned),
    });
    let rules: Vec<String> = rules.take(RULES_SHOWN).collect();
    if !rules.is_empty() {
        note.push_str(&format!(": {}", rules.join("; ")));
    }
    if thinned.count() > RULES_SHOWN {
        note.push_str("; the other series likewise");
    }
    note.push('.');
    Some(note)
}

/// Draws the points.
pub(super) fn draw(
    page: &Page,
    subjects: &[RunLabel],
    sheet: &mut Canvas,
) -> Result<(), PlotError> {
    let colours = palette::SeriesColours::of(page);
    sheet.legend(&legend(page, &colours, Mark::Dot));
    let panels = sheet.panels(page.runs.len(), 76.0, page.runs.len() > 1)?;
    let Some(first) = panels.first().map(|panel| panel.area) else { return Ok(()) };
    let (x, y) = axes(page, sheet, first);
    for ((run, subject), panel) in page.runs.iter().zip(subjects).zip(&panels) {
        let frame = open(&mut sheet.picture, panel, &x, &y, subject, page.runs.len() > 1);
        points(run, &frame, &colours, &mut sheet.picture);
        mark_largest(&mut sheet.picture, &frame, subject);
    }
    Ok(())
}

/// The scales that all panels over time share; above the largest there is room for its name.
pub(super) fn axes(page: &Page, sheet: &Canvas, area: Area) -> (Axis, Axis) {
    let (width, height) = (area.width(), area.height());
    let (range, time) = (sheet.latency, sheet.time);
    let points = page.runs.iter().flat_map(|run| &run.series).flat_map(|series| &series.points.t_s);
    // A sample that was taken after the end is no reason to draw it elsewhere.
    let ends = page.runs.iter().filter_map(|run| run.time_edges_s.last()).chain(points);
    let low = range.low(lowest(page) / 1.15);
    let high = range.high(with_headroom(low, highest(page), height, 26.0));
    let y = Axis::latency(
        SampleName::drawn_of_all(page.runs.iter().map(|run| &run.record)).measure(),
        low,
        high,
        height,
        22.0,
    );
    let end_s = time.to_s(ends.copied().fold(0.0, f64::max));
    (Axis::time(time.from_s(), end_s, width), y)
}

/// The end of a log axis that leaves `room` of its `length` above `high`.
pub(super) fn with_headroom(low: f64, high: f64, length: f64, room: f64) -> f64 {
    high * (high / low).max(6.0).powf(room / (length - room).max(room))
}

/// Draws an empty panel, with the run's name over it where there are several.
pub(super) fn open<'a>(
    picture: &mut Picture,
    panel: &Panel,
    x: &'a Axis,
    y: &'a Axis,
    subject: &RunLabel,
    several: bool,
) -> Frame<'a> {
    let Panel { area, names_y, names_x } = *panel;
    let frame = Frame { area, x, y, names_y, names_x };
    frame.draw(picture);
    if several {
        let name = text::cut(&subject.name, 12.0, area.width());
        picture.text((area.left, area.top - 5.0), Align::Left, 12.0, palette::INK, &name);
    }
    if subject.largest.is_none() {
        let middle = (f64::midpoint(area.left, area.right), f64::midpoint(area.top, area.bottom));
        picture.text(middle, Align::Centre, SMALL, palette::PALE_INK, "nothing to draw");
    }
    frame
}

/// A ring around the largest latency, and its name.
pub(super) fn mark_largest(picture: &mut Picture, frame: &Frame<'_>, subject: &RunLabel) {
    let Some(largest) = &subject.largest else { return };
    let Some(t_s) = largest.t_s else { return };
    let at = frame.at(t_s, largest.latency_ns as f64);
    let mut labels = Labels::default();
    for shape in &picture.shapes {
        if let Shape::Dot { at, .. } = shape {
            labels.avoid_point(*at);
        }
    }
    ring(picture, at, palette::INK);
    labels.put(picture, &frame.area, at, &largest.words(), palette::INK);
}

/// In the order of time, so that no series lies over all others; those without a colour first.
fn points(
    run: &PageRun,
    frame: &Frame<'_>,
    colours: &palette::SeriesColours,
    picture: &mut Picture,
) {
    let mut all: Vec<(bool, f64, i64, Colour)> = Vec::new();
    for series in &run.series {
        let colour = colours.colour(&series.name);
        let is_named = colour != palette::OTHERS;
        let points = series.points.t_s.iter().zip(&series.points.latency_ns);
        let drawn = points.filter(|(_, latency)| **latency >= 0);
        all.extend(drawn.map(|(t_s, latency)| (is_named, *t_s, *latency, colour)));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let radius = if all.len() > 2_000 { 1.3 } else { 2.0 };
    for (_, t_s, latency, colour) in all {
        let colour = Colour { alpha: 0.75, ..colour };
        let at = frame.at(t_s, latency.max(1) as f64);
        picture.shapes.push(Shape::Dot { at, radius, colour });
    }
}
