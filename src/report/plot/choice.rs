//! What a picture shows of a page's data, and what it counts: samples, or the periods of a
//! schedule.

use std::borrow::Cow;

use super::{PictureKind, PlotError, PlotOptions, View, stretch};
use crate::report::{
    page::{Heat, Page, PageRun},
    sample_name,
    time_range::TimeRange,
};

/// What a picture shows.
pub(super) struct Chosen<'a> {
    /// The page as the picture is to show it.
    pub page: Cow<'a, Page>,
    /// Whether it counts scheduled periods.
    pub per_period: bool,
    /// The sentences about what is outside of the time that it shows.
    pub outside: Vec<String>,
}

/// The part of a page that is asked for.
pub(super) fn chosen<'a>(page: &'a Page, options: &PlotOptions) -> Result<Chosen<'a>, PlotError> {
    let mut page = Cow::Borrowed(page);
    if !options.series.is_empty() {
        select(page.to_mut(), options)?;
    }
    let mut outside = Vec::new();
    if options.time != TimeRange::ALL {
        outside = stretch::narrow(page.to_mut(), options)?;
    }
    let per_period = is_per_period(&page, options)?;
    if per_period {
        page.to_mut().runs.iter_mut().for_each(count_periods);
    }
    Ok(Chosen { page, per_period, outside })
}

/// Where many periods were missed, the view per scheduled period comes first.
fn is_per_period(page: &Page, options: &PlotOptions) -> Result<bool, PlotError> {
    if options.kind == PictureKind::Shift {
        return match options.view {
            None => Ok(false),
            Some(_) => Err(PlotError::View("a shift is of samples as they came")),
        };
    }
    if !options.kind.is_overlaid() {
        return match options.view {
            None => Ok(false),
            Some(_) => Err(PlotError::View(
                "a picture over time shows wake-ups as they came; choose --kind percentile or \
                 histogram",
            )),
        };
    }
    let has_schedule = |run: &PageRun| run.record.wakeups().any(|one| one.scheduled.is_some());
    match options.view {
        None => Ok(page.runs.iter().any(|run| run.scheduled_first)),
        Some(View::WakeUp) => Ok(false),
        Some(View::Scheduled) if page.runs.iter().any(has_schedule) => Ok(true),
        Some(View::Scheduled) => Err(PlotError::View("no run has periods of a schedule")),
    }
}

fn count_periods(run: &mut PageRun) {
    for summary in run.record.series.iter_mut().filter(|one| !one.is_stage()) {
        if let Some(scheduled) = &summary.scheduled {
            summary.count = scheduled.count;
        }
    }
    for series in &mut run.series {
        if let Some(view) = series.scheduled.take() {
            (series.curve, series.histogram) = (view.curve, view.histogram);
        }
    }
}

/// Leaves the named series alone.
fn select(page: &mut Page, options: &PlotOptions) -> Result<(), PlotError> {
    let is_called =
        |own: &str, wanted: &String| own == wanted || sample_name::series(own) == *wanted;
    for wanted in &options.series {
        let mut all = page.runs.iter().flat_map(|run| &run.series);
        if !all.any(|series| is_called(&series.name, wanted)) {
            return Err(PlotError::Series { wanted: wanted.clone(), known: known(page) });
        }
    }
    let keep = |own: &str| options.series.iter().any(|wanted| is_called(own, wanted));
    for run in &mut page.runs {
        let whole = run.series.len();
        run.record.series.retain(|series| !series.is_stage() && keep(&series.name));
        run.series.retain(|series| keep(&series.name));
        if options.kind == PictureKind::Heatmap && run.series.len() < whole {
            run.heat = together(run)?;
        }
    }
    Ok(())
}

/// The first few names that there are.
fn known(page: &Page) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    for series in page.runs.iter().flat_map(|run| &run.series) {
        let name = sample_name::series(&series.name);
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > SHOWN {
            break;
        }
    }
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    names.truncate(SHOWN);
    format!("{}{more}", names.join(", "))
}

/// The cells of the series that are left.
fn together(run: &PageRun) -> Result<Heat, PlotError> {
    let mut sum = Heat::default();
    for series in &run.series {
        let Some(heat) = &series.heat else { return Err(PlotError::SeriesHeat) };
        sum.time.extend(&heat.time);
        sum.latency.extend(&heat.latency);
        sum.count.extend(&heat.count);
    }
    Ok(merged(&sum))
}

/// Each cell once.
fn merged(cells: &Heat) -> Heat {
    let mut sums = std::collections::BTreeMap::new();
    for ((time, latency), count) in cells.time.iter().zip(&cells.latency).zip(&cells.count) {
        let sum: &mut u64 = sums.entry((*time, *latency)).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut heat = Heat::default();
    for ((time, latency), count) in sums {
        heat.time.push(time);
        heat.latency.push(latency);
        heat.count.push(count);
    }
    heat
}
