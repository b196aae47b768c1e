//! Runs of many nights: what may be compared with each other, a value a night, and where it
//! changed.

mod apart;
mod blamed;
mod kernels;
mod programs;
mod level;
mod reach;

pub use super::change_points::AlarmRule;
pub use blamed::CauseShift;
pub use kernels::KernelThere;
pub use level::{
    LevelNights, ONE_NIGHT, OtherKernels, judged_nights, level_nights, without_kernels_in_turn,
};
pub use programs::ProgramChange;
pub use reach::days_beside;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::Serialize;

use super::change_points::{FEWEST_VALUES, StepAlarm, alarms, change, discovery_level, steps};
use crate::run::LateDetails;

/// The average share of named changes that are false.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// What must be equal for runs to be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TrendKey {
    /// Name of the machine.
    pub machine: String,
    /// The probe in words.
    pub probe: String,
    /// The loads in words.
    pub loads: String,
    /// Policy and priority of the measured threads; empty where it is unknown.
    pub policy: String,
    /// The planned length: `60 s`.
    pub length: String,
    /// Everything else that was asked for or measured on, by its name: `CPUs` are `0-3`.
    pub conditions: BTreeMap<String, String>,
    /// The series.
    pub series: String,
}

/// One series of one run.
#[derive(Debug, Clone)]
pub struct TrendRun {
    /// When it started.
    pub started: Timestamp,
    /// `uname -r`
    pub kernel: String,
    /// The program that measured, with its version; empty if unknown.
    pub program: String,
    /// p99, ns; `None` if too few samples lie beyond it.
    pub p99_ns: Option<i64>,
    /// The median of the maxima of equal stretches, ns.
    pub block_max_ns: Option<i64>,
    /// The largest latency, ns.
    pub max_ns: Option<i64>,
    /// What its late samples were blamed on.
    pub late: Option<LateDetails>,
}

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrendFigureName {
    /// p99.
    P99,
    /// The median of the maxima of equal stretches of a run.
    BlockMax,
    /// The largest latency of a day, of runs without stretches: imported ones.
    Max,
}

impl TrendFigureName {
    /// The factor from which a change matters: within it, comparisons call sides the same.
    const fn margin(self) -> f64 {
        match self {
            Self::P99 => 1.05,
            Self::BlockMax | Self::Max => 1.1,
        }
    }

    const fn of(self, run: &TrendRun) -> Option<i64> {
        match self {
            Self::P99 => run.p99_ns,
            Self::BlockMax => run.block_max_ns,
            Self::Max => run.max_ns,
        }
    }
}

/// What became of one group of runs.
#[derive(Debug, Clone, Serialize)]
pub struct TrendRow {
    /// What they have in common.
    #[serde(flatten)]
    pub key: TrendKey,
    /// By what it is told from rows that look like it: `not traced`, `CPUs 0-3`.
    pub apart: Vec<String>,
    /// How many.
    pub runs: usize,
    /// Days with a run, UTC.
    pub days: usize,
    /// Their kernels, in the order of first use.
    pub kernels: Vec<String>,
    /// The largest latency of all, ns.
    pub max_ns: Option<i64>,
    /// The largest latency of each day and kernel, oldest first. It is one sample, and no change is
    /// looked for in it.
    pub maxima: Vec<TrendPoint>,
    /// p99, the median of the maxima of stretches, and the largest latency if no run has stretches.
    pub figures: Vec<TrendFigure>,
}

/// One figure of a group.
#[derive(Debug, Clone, Serialize)]
pub struct TrendFigure {
    /// Which.
    pub figure: TrendFigureName,
    /// A value for each day and kernel, oldest first.
    pub points: Vec<TrendPoint>,
    /// The median of them, ns; absent without any.
    pub median_ns: Option<i64>,
    /// Whether there are too few of them for a change to be found.
    pub is_too_short: bool,
    /// Where it changed, in retrospect.
    pub changes: Vec<TrendChange>,
    /// What looking after each day would have seen, where that was asked for.
    pub alarms: Vec<TrendAlarm>,
}

/// The runs of one day under one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrendPoint {
    /// `2026-10-01`, UTC.
    pub day: String,
    /// `uname -r`
    pub kernel: String,
    /// Runs.
    pub runs: usize,
    /// Their median, of two the lower one; of maxima their largest, ns.
    pub ns: i64,
    /// When the first of them started.
    #[serde(skip)]
    pub first: Timestamp,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendChange {
    /// The first day after it.
    pub day: String,
    /// The median before it, since the change that is named before it, ns.
    pub before_ns: i64,
    /// The median after it, until the next one, ns.
    pub after_ns: i64,
    /// After over before.
    pub ratio: f64,
    /// What the kernel did around it.
    pub kernel: KernelThere,
    /// Where it came with another program or version: that of the last run before it, and of the
    /// first one after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramChange>,
    /// Whose part of late samples changed most; `None` if runs of a side did not record any.
    pub causes: Option<Vec<CauseShift>>,
}

/// A change that was seen by looking after each day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrendAlarm {
    /// The day after which it was seen.
    pub day: String,
    /// The first day after the change.
    pub since: String,
    /// By what it was seen.
    pub rule: AlarmRule,
    /// Whether latencies became longer.
    pub is_worse: bool,
    /// How many days and kernels came after that day, or after the last one of a gross jump.
    pub points_ago: usize,
    /// Whether a change of the same figure to the same side is found within a week of it, in
    /// retrospect.
    pub has_change: bool,
}

/// The rows of groups of runs. With a run length, what nightly looks would have seen: one false
/// alarm in this number of looks at all figures together.
#[must_use]
pub fn trend(groups: BTreeMap<TrendKey, Vec<TrendRun>>, run_length: Option<f64>) -> Vec<TrendRow> {
    let sorted = |(key, mut runs): (TrendKey, Vec<TrendRun>)| {
        runs.sort_by_key(|run| run.started);
        (key, runs)
    };
    let mut groups: Vec<_> = groups.into_iter().map(sorted).collect();
    // The order of their keys, but that cpu10 comes after cpu9.
    groups.sort_by_cached_key(|(key, _)| {
        let series = numbered(&key.series);
        TrendKey { series, ..key.clone() }
    });
    let mut rows: Vec<TrendRow> = groups.iter().map(|(key, runs)| row(key, runs)).collect();
    let words = apart::apart(&groups.iter().map(|(key, _)| key).collect::<Vec<_>>());
    rows.iter_mut().zip(words).for_each(|(row, words)| row.apart = words);
    let figures = || rows.iter().flat_map(|row| &row.figures).filter(|one| !one.is_too_short);
    let chance = |figure: &TrendFigure| change(&figure.values()).map_or(1.0, |(_, chance)| chance);
    let chances: Vec<f64> = figures().map(chance).collect();
    let level = discovery_level(&chances, FALSE_DISCOVERIES);
    let each_length = run_length.map(|length| length * chances.len().max(1) as f64);
    for (row, (_, runs)) in rows.iter_mut().zip(&groups) {
        for figure in row.figures.iter_mut().filter(|figure| !figure.is_too_short) {
            figure.changes = changes(figure, runs, level);
            figure.alarms = each_length.map_or_else(Vec::new, |length| seen(figure, length));
        }
    }
    rows
}

/// With its numbers filled up by zeros, so that they are in order.
fn numbered(series: &str) -> String {
    let mut text = String::new();
    let mut rest = series;
    while !rest.is_empty() {
        let digits = rest.starts_with(|first: char| first.is_ascii_digit());
        let end = rest.find(|own: char| own.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, later) = rest.split_at(end);
        text.push_str(&if digits { format!("{part:0>20}") } else { part.to_owned() });
        rest = later;
    }
    text
}

fn row(key: &TrendKey, runs: &[TrendRun]) -> TrendRow {
    let mut kernels: Vec<String> = Vec::new();
    for run in runs {
        if !kernels.contains(&run.kernel) {
            kernels.push(run.kernel.clone());
        }
    }
    let days: BTreeSet<Date> = runs.iter().map(|run| day(run.started)).collect();
    let has_blocks = runs.iter().any(|run| run.block_max_ns.is_some());
    let names = [TrendFigureName::P99, TrendFigureName::BlockMax];
    let names = names.into_iter().chain((!has_blocks).then_some(TrendFigureName::Max));
    TrendRow {
        key: key.clone(),
        runs: runs.len(),
        days: days.len(),
        kernels,
        apart: Vec::new(),
        max_ns: runs.iter().filter_map(|run| run.max_ns).max(),
        maxima: of_days(runs, |run| run.max_ns, |values| values.into_iter().max()),
        figures: names.map(|name| figure(name, runs)).collect(),
    }
}

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn figure(name: TrendFigureName, runs: &[TrendRun]) -> TrendFigure {
    let together = match name {
        TrendFigureName::Max => |values: Vec<i64>| values.into_iter().max(),
        TrendFigureName::P99 | TrendFigureName::BlockMax => median,
    };
    let points = of_days(runs, |run| name.of(run), together);
    TrendFigure {
        figure: name,
        median_ns: median(points.iter().map(|point| point.ns).collect()),
        is_too_short: points.len() < FEWEST_VALUES,
        points,
        changes: Vec::new(),
        alarms: Vec::new(),
    }
}

/// A value for each day and kernel, oldest first.
fn of_days(
    runs: &[TrendRun],
    of: impl Fn(&TrendRun) -> Option<i64>,
    together: impl Fn(Vec<i64>) -> Option<i64>,
) -> Vec<TrendPoint> {
    let mut of_days: BTreeMap<(Date, &str), (Timestamp, Vec<i64>)> = BTreeMap::new();
    for run in runs {
        let Some(ns) = of(run) else { continue };
        let key = (day(run.started), run.kernel.as_str());
        of_days.entry(key).or_insert((run.started, Vec::new())).1.push(ns);
    }
    let point = |((day, kernel), (first, values)): ((Date, &str), (Timestamp, Vec<i64>))| {
        let (day, kernel, runs) = (day.to_string(), kernel.to_owned(), values.len());
        together(values).map(|ns| TrendPoint { day, kernel, runs, ns, first })
    };
    let mut points: Vec<TrendPoint> = of_days.into_iter().filter_map(point).collect();
    points.sort_by_key(|point| point.first);
    points
}

impl TrendFigure {
    /// What is ranked: a logarithm would have the same ranks.
    fn values(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.ns as f64).collect()
    }

    /// The median of these points, ns.
    fn median_of(&self, from: usize, to: usize) -> Option<i64> {
        let points = self.points.get(from..to)?;
        median(points.iter().map(|point| point.ns).collect())
    }
}

/// The lower one of both middle ones: a value that occurred.
fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Those that matter. What is too small to be named divides no stretch: the smallest is left out
/// until none is.
fn changes(figure: &TrendFigure, runs: &[TrendRun], level: f64) -> Vec<TrendChange> {
    let mut places = steps(&figure.values(), level);
    loop {
        let found = changes_at(figure, runs, &places);
        let sizes = found.iter().map(|change| size(change.ratio)).enumerate();
        match sizes.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, least)) if least < figure.figure.margin() => {
                places.remove(at);
            }
            _ => return found,
        }
    }
}

fn changes_at(figure: &TrendFigure, runs: &[TrendRun], places: &[usize]) -> Vec<TrendChange> {
    let ends = places.iter().skip(1).copied().chain([figure.points.len()]);
    let begins = [0].into_iter().chain(places.iter().copied());
    let change = |((begin, place), end): ((usize, &usize), usize)| {
        let point = figure.points.get(*place)?;
        let (before_ns, after_ns) =
            (figure.median_of(begin, *place)?, figure.median_of(*place, end)?);
        let time = |at: usize| figure.points.get(at).map(|point| point.first);
        let between = |from: Option<Timestamp>, to: Option<Timestamp>| {
            runs.iter().filter(move |run| {
                from.is_none_or(|from| run.started >= from) && to.is_none_or(|to| run.started < to)
            })
        };
        Some(TrendChange {
            day: point.day.clone(),
            before_ns,
            after_ns,
            ratio: ratio(before_ns, after_ns),
            kernel: kernels::kernel_there(&figure.points, *place),
            program: programs::program_change(
                between(time(begin), time(*place)).next_back(),
                between(time(*place), time(end)).next(),
            ),
            causes: blamed::causes(
                between(time(begin), time(*place)),
                between(time(*place), time(end)),
            ),
        })
    };
    begins.zip(places).zip(ends).filter_map(change).collect()
}

fn ratio(before_ns: i64, after_ns: i64) -> f64 {
    after_ns.max(1) as f64 / before_ns.max(1) as f64
}

/// The factor by which sides differ, 1 or more, whichever is larger.
fn size(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

/// What is too small to be named as a change raises no alarm either.
fn seen(figure: &TrendFigure, run_length: f64) -> Vec<TrendAlarm> {
    let matters = |from: usize, place: usize, last: usize| {
        let sides = figure.median_of(from, place).zip(figure.median_of(place, last + 1));
        sides.is_some_and(|(before, after)| size(ratio(before, after)) >= figure.figure.margin())
    };
    let alarm = |StepAlarm { seen, place, seen_last, is_up, rule }: StepAlarm| {
        let since = figure.points.get(place)?;
        Some(TrendAlarm {
            day: figure.points.get(seen)?.day.clone(),
            since: since.day.clone(),
            rule,
            is_worse: is_up,
            points_ago: figure.points.len() - 1 - seen_last,
            has_change: reach::has_change(&figure.changes, &since.day, is_up),
        })
    };
    alarms(&figure.values(), run_length, matters).into_iter().filter_map(alarm).collect()
}

#[cfg(test)]
mod tests;
