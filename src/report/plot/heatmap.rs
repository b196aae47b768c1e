//! Samples by time and latency; runs side by side on the same scales, colours included.

use super::{
    PlotError,
    axis::Axis,
    frame::{Area, Frame, SMALL},
    palette,
    picture::{Picture, Shape, Stroke},
    scatter::{axes, mark_largest, open},
    sheet::Canvas,
    subject::RunLabel,
    text,
};
use crate::{
    report::page::{Page, PageRun},
    units::Nanos,
};

/// Steps of the colour bar.
const BAR_STEPS: u32 = 64;

const BAR_WIDTH: f64 = 13.0;

/// How large a cell is.
pub(super) fn notes(page: &Page) -> Vec<String> {
    let width = |run: &PageRun| match run.time_edges_s.as_slice() {
        [from, to, ..] => Some(Nanos(((to - from) * 1e9).round() as i64).to_string()),
        _ => None,
    };
    let mut widths: Vec<String> = page.runs.iter().filter_map(width).collect();
    widths.dedup();
    let each = if page.runs.len() > 1 { " or " } else { "" };
    let many = page.runs.iter().any(|run| run.series.len() > 1);
    let all = if many { "All series together. " } else { "" };
    vec![format!("{all}A cell is {} by 1/25 of a factor of ten.", widths.join(each))]
}

/// Draws the cells.
pub(super) fn draw(
    page: &Page,
    subjects: &[RunLabel],
    sheet: &mut Canvas,
) -> Result<(), PlotError> {
    let most = page.runs.iter().flat_map(|run| &run.heat.count).copied().max().unwrap_or(1);
    let bar_room = 44.0 + text::width(&crate::units::count(most), SMALL) + BAR_WIDTH;
    let full = sheet.room;
    sheet.room.right -= bar_room;
    let panels = sheet.panels(page.runs.len(), 76.0, page.runs.len() > 1)?;
    sheet.room = full;
    let (Some(first), Some(last)) = (panels.first(), panels.last()) else { return Ok(()) };
    let (x, y) = axes(page, sheet, first.area);
    for ((run, subject), panel) in page.runs.iter().zip(subjects).zip(&panels) {
        let frame = open(&mut sheet.picture, panel, &x, &y, subject, page.runs.len() > 1);
        cells(run, &page.latency_edges_ns, most, &frame, &mut sheet.picture);
        mark_largest(&mut sheet.picture, &frame, subject);
    }
    let left = full.right - bar_room + 14.0;
    let right = left + BAR_WIDTH;
    let place = Area { left, top: first.area.top, right, bottom: last.area.bottom };
    bar(place, most, &mut sheet.picture);
    Ok(())
}

fn cells(run: &PageRun, edges: &[u64], most: u64, frame: &Frame<'_>, picture: &mut Picture) {
    let heat = &run.heat;
    for ((time, latency), count) in heat.time.iter().zip(&heat.latency).zip(&heat.count) {
        let (time, latency) = (*time as usize, *latency as usize);
        let times = run.time_edges_s.get(time).zip(run.time_edges_s.get(time + 1));
        let latencies = edges.get(latency).zip(edges.get(latency + 1));
        let (Some((left, right)), Some((low, high))) = (times, latencies) else { continue };
        let (from, to) = (frame.at(*left, *high as f64), frame.at(*right, *low as f64));
        let colour = palette::heat(share(*count, most));
        picture.shapes.push(Shape::Cell { from, to, colour });
    }
}

/// The place of a count on the log scale of colours.
fn share(count: u64, most: u64) -> f64 {
    (count as f64).ln() / (most as f64).ln().max(f64::MIN_POSITIVE)
}

/// Which colour is which count.
fn bar(area: Area, most: u64, picture: &mut Picture) {
    let step = area.height() / f64::from(BAR_STEPS);
    for number in 0..BAR_STEPS {
        let bottom = area.bottom - f64::from(number) * step;
        let top = bottom - step;
        let colour = palette::heat(f64::from(number) / f64::from(BAR_STEPS - 1));
        // Not a cell: all cells of a picture are cells of its data.
        let points =
            vec![(area.left, top), (area.right, top), (area.right, bottom), (area.left, bottom)];
        picture.shapes.push(Shape::Area { points, colour });
    }
    names(area, most, picture);
}

fn names(area: Area, most: u64, picture: &mut Picture) {
    let stroke = Stroke { width: 1.0, colour: palette::PALE_INK, dash: &[] };
    let mut axis = Axis::shares("samples per cell", most);
    // The largest count of all stands at the end, unless a decade is close by.
    axis.ticks.retain(|tick| !tick.label.is_empty());
    let mut widest: f64 = 0.0;
    for tick in &axis.ticks {
        let y = area.bottom - tick.share * area.height();
        picture.line(vec![(area.right, y), (area.right + 4.0, y)], stroke);
        let at = (area.right + 7.0, y + SMALL * 0.36);
        picture.text(at, super::picture::Align::Left, SMALL, palette::INK, &tick.label);
        widest = widest.max(text::width(&tick.label, SMALL));
    }
    let at = (area.right + widest + 20.0, f64::midpoint(area.top, area.bottom));
    picture.upward(at, SMALL, palette::INK, &axis.title);
}
