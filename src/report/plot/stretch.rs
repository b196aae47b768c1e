//! A stretch of a run's time: what lies outside leaves the picture, and the words say so.

use super::{
    PlotError, PlotOptions,
    subject::{self, Largest, RunLabel},
};
use crate::{
    report::{
        page::{Heat, Page, PageRun},
        time_range::TimeRange,
    },
    units::span,
};

/// Leaves what is within the time that is asked for, and says what is not.
pub(super) fn narrow(page: &mut Page, options: &PlotOptions) -> Result<Vec<String>, PlotError> {
    if options.kind.is_overlaid() {
        return Err(PlotError::Time(
            "this picture has no time axis; choose --kind scatter or heatmap".into(),
        ));
    }
    let alone = page.runs.len() == 1;
    let narrow_one = |run: &mut PageRun| {
        let whole = subject::largest(run);
        narrow_run(run, options.time);
        note(run, whole, options.time, alone)
    };
    let notes = page.runs.iter_mut().map(narrow_one).collect();
    let mut points = page.runs.iter().flat_map(|run| &run.series).map(|series| &series.points);
    if points.all(|points| points.t_s.is_empty()) {
        let longest = page.runs.iter().map(duration_s).fold(0.0, f64::max);
        return Err(PlotError::Time(format!(
            "no run has a sample within {}; the longest takes {}",
            options.time,
            span(longest)
        )));
    }
    Ok(notes)
}

fn duration_s(run: &PageRun) -> f64 {
    run.record.duration_ns as f64 / 1e9
}

fn narrow_run(run: &mut PageRun, within: TimeRange) {
    let edges = std::mem::take(&mut run.time_edges_s);
    let is_within = |time: u32| {
        let column = edges.get(time as usize).zip(edges.get(time as usize + 1));
        column.is_some_and(|(from, to)| within.holds(f64::midpoint(*from, *to)))
    };
    run.heat = cells(&run.heat, is_within);
    for series in &mut run.series {
        let points = &mut series.points;
        let all = points.t_s.iter().copied().zip(points.latency_ns.iter().copied());
        (points.t_s, points.latency_ns) = all.filter(|(t_s, _)| within.holds(*t_s)).unzip();
        series.heat = series.heat.as_ref().map(|heat| cells(heat, is_within));
    }
    // What is named as the largest is that of the picture.
    let summaries = run.record.series.iter_mut().filter(|series| !series.is_part());
    for (summary, series) in summaries.zip(&run.series) {
        summary.max = series.points.latency_ns.iter().max().copied();
    }
    run.time_edges_s = edges;
}

fn cells(heat: &Heat, is_within: impl Fn(u32) -> bool) -> Heat {
    let mut kept = Heat::default();
    for ((time, latency), count) in heat.time.iter().zip(&heat.latency).zip(&heat.count) {
        if is_within(*time) {
            kept.time.push(*time);
            kept.latency.push(*latency);
            kept.count.push(*count);
        }
    }
    kept
}

/// Which part of a run is shown, and that its largest latency is elsewhere where that is so.
fn note(run: &PageRun, whole: Option<Largest>, within: TimeRange, alone: bool) -> String {
    let label = RunLabel::of(run, false);
    let mut words = format!(
        "{}{within} of {} is shown; counts are of all.",
        label.before(alone),
        span(duration_s(run))
    );
    let shown = label.largest.map(|largest| largest.latency_ns);
    if let Some(whole) = whole.filter(|whole| shown.is_none_or(|shown| shown < whole.latency_ns)) {
        words.push_str(&format!(" Outside: {}.", whole.words()));
    }
    words
}
