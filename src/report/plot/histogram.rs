//! Samples by latency, both logarithmic; all runs in one panel.

use super::{
    PlotError,
    axis::Axis,
    frame::{Frame, Labels},
    lines_legend,
    palette::{self, LineStyles},
    picture::{Picture, Point, Shape, Stroke},
    sheet::Canvas,
    subject::{self, RunLabel, highest, lowest},
};
use crate::report::{
    page::{Page, PageSeries},
    sample_name::SampleName,
};

/// Width of the lines around the bins, and of no other line.
const OUTLINE: f64 = 1.6;

/// What must be said of every such picture.
pub(super) fn notes() -> Vec<String> {
    vec!["25 bins per factor of ten; a bin of one sample is a step at the foot.".into()]
}

/// Draws the outlines.
pub(super) fn draw(
    page: &Page,
    subjects: &[RunLabel],
    sheet: &mut Canvas,
) -> Result<(), PlotError> {
    let styles = LineStyles::of(page);
    sheet.legend(&lines_legend(page, &styles));
    let panels = sheet.panels(1, 86.0, false)?;
    let Some(panel) = panels.first() else { return Ok(()) };
    let bins = page.runs.iter().flat_map(|run| &run.series).flat_map(|series| &series.histogram);
    let most = bins.map(|(_, count)| *count).max().unwrap_or(1);
    let low = sheet.latency.low(lowest(page) / 1.15);
    let high = sheet.latency.high(highest(page) * 1.25);
    let x = Axis::latency(
        SampleName::drawn_of_all(page.runs.iter().map(|run| &run.record)).measure(),
        low,
        high,
        panel.area.width(),
        56.0,
    );
    let title = format!("{} per bin", subject::counted(subjects, "samples"));
    let y = Axis::counts(&title, most, panel.area.height());
    let frame = Frame { area: panel.area, x: &x, y: &y, names_y: true, names_x: true };
    frame.draw(&mut sheet.picture);
    for others in [true, false] {
        for (number, run) in page.runs.iter().enumerate() {
            for series in &run.series {
                if styles.is_other(&series.name) == others {
                    let (colour, dash) = styles.line(number, &series.name);
                    let stroke = Stroke { width: OUTLINE, colour, dash };
                    outline(series, &page.latency_edges_ns, &frame, stroke, &mut sheet.picture);
                }
            }
        }
    }
    mark_maxima(subjects, &frame, &mut sheet.picture);
    Ok(())
}

/// Each stretch of bins that have samples, from the foot up and back down.
fn outline(
    series: &PageSeries,
    edges: &[u64],
    frame: &Frame<'_>,
    stroke: Stroke,
    picture: &mut Picture,
) {
    let foot = 0.0;
    let mut line: Vec<Point> = Vec::new();
    let mut next = None;
    for (bin, count) in &series.histogram {
        let at = *bin as usize;
        let (Some(from), Some(to)) = (edges.get(at), edges.get(at + 1)) else { continue };
        let (from, to, count) = (*from as f64, *to as f64, *count as f64);
        if next != Some(*bin) {
            close(&mut line, frame, foot);
            picture.line(std::mem::take(&mut line), stroke);
            line.push(frame.at(from, foot));
        }
        line.extend([frame.at(from, count), frame.at(to, count)]);
        next = Some(bin + 1);
    }
    close(&mut line, frame, foot);
    picture.line(line, stroke);
}

fn close(line: &mut Vec<Point>, frame: &Frame<'_>, foot: f64) {
    if let Some((x, _)) = line.last().copied() {
        line.push((x, frame.at(0.0, foot).1));
    }
}

/// An arrow down to each run's largest latency.
fn mark_maxima(subjects: &[RunLabel], frame: &Frame<'_>, picture: &mut Picture) {
    let mut labels = Labels::default();
    for shape in &picture.shapes {
        if let Shape::Line { points, width, .. } = shape
            && *width == OUTLINE
        {
            labels.avoid(points);
        }
    }
    for subject in subjects {
        let Some(largest) = &subject.largest else { continue };
        let words = subject.before(subjects.len() == 1) + &largest.words();
        let (x, y) = frame.at(largest.latency_ns as f64, 1.0);
        let tip = (x, y - 4.0);
        let stroke = Stroke { width: 1.2, colour: palette::INK, dash: &[] };
        picture.line(vec![(x, y - 22.0), tip], stroke);
        picture.line(vec![(x - 3.5, y - 9.0), tip, (x + 3.5, y - 9.0)], stroke);
        labels.put(picture, &frame.area, (x, y - 24.0), &words, palette::INK);
    }
}
