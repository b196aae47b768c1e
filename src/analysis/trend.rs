//! Runs of many nights: what may be compared with each other, a value a night, and where it
//! changed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::change_points::{FEWEST_VALUES, StepAlarm, alarms, change, discovery_level, steps};
use crate::run::{LateDetails, peaks::Cause};

/// Of all changes that are named, so many are none on average.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Causes that are named of a change.
const MOST_CAUSES: usize = 3;

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
    /// Everything else that was asked for, as JSON.
    #[serde(skip)]
    pub rest: String,
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
    /// p99, ns; absent where too few samples lie beyond it.
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
}

impl TrendFigureName {
    /// The factor from which a change matters: within it, comparisons call sides the same.
    const fn margin(self) -> f64 {
        match self {
            Self::P99 => 1.05,
            Self::BlockMax => 1.1,
        }
    }

    const fn of(self, run: &TrendRun) -> Option<i64> {
        match self {
            Self::P99 => run.p99_ns,
            Self::BlockMax => run.block_max_ns,
        }
    }
}

/// What became of one group of runs.
#[derive(Debug, Clone, Serialize)]
pub struct TrendRow {
    /// What they have in common.
    #[serde(flatten)]
    pub key: TrendKey,
    /// How many.
    pub runs: usize,
    /// Days with a run, UTC.
    pub days: usize,
    /// Their kernels, in the order of first use.
    pub kernels: Vec<String>,
    /// The largest latency of all, ns.
    pub max_ns: Option<i64>,
    /// p99, and the median of the maxima of stretches.
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
    /// Their median, ns; of two the lower one.
    pub ns: i64,
    #[serde(skip)]
    first: Timestamp,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendChange {
    /// The first day after it.
    pub day: String,
    /// The median before it, since the change before, ns.
    pub before_ns: i64,
    /// The median after it, until the next one, ns.
    pub after_ns: i64,
    /// After over before.
    pub ratio: f64,
    /// The kernels of the last day before and the first after it, where they differ.
    pub kernels: Option<(String, String)>,
    /// Whose part of late samples changed most; absent where runs of a side did not record any.
    pub causes: Option<Vec<CauseShift>>,
}

/// A cause of late samples before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseShift {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Its share of the time by which samples were late, 0 to 1.
    pub before: f64,
    /// The same after the change.
    pub after: f64,
}

/// A change that was seen by looking after each day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrendAlarm {
    /// The day after which it was seen.
    pub day: String,
    /// The first day after the change.
    pub since: String,
    /// Whether latencies became longer.
    pub is_worse: bool,
    /// How many days and kernels came after that day.
    pub points_ago: usize,
}

/// The rows of groups of runs. With a run length, what nightly looks would have seen: one false
/// alarm in so many looks at all figures together.
#[must_use]
pub fn trend(groups: BTreeMap<TrendKey, Vec<TrendRun>>, run_length: Option<f64>) -> Vec<TrendRow> {
    let sorted = |(key, mut runs): (TrendKey, Vec<TrendRun>)| {
        runs.sort_by_key(|run| run.started);
        (key, runs)
    };
    let groups: Vec<_> = groups.into_iter().map(sorted).collect();
    let mut rows: Vec<TrendRow> = groups.iter().map(|(key, runs)| row(key, runs)).collect();
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

fn row(key: &TrendKey, runs: &[TrendRun]) -> TrendRow {
    let mut kernels: Vec<String> = Vec::new();
    for run in runs {
        if !kernels.contains(&run.kernel) {
            kernels.push(run.kernel.clone());
        }
    }
    let days: BTreeSet<String> = runs.iter().map(|run| day(run.started)).collect();
    let names = [TrendFigureName::P99, TrendFigureName::BlockMax];
    TrendRow {
        key: key.clone(),
        runs: runs.len(),
        days: days.len(),
        kernels,
        max_ns: runs.iter().filter_map(|run| run.max_ns).max(),
        figures: names.into_iter().map(|name| figure(name, runs)).collect(),
    }
}

fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).date().to_string()
}

fn figure(name: TrendFigureName, runs: &[TrendRun]) -> TrendFigure {
    let mut of_days: BTreeMap<(String, &str), (Timestamp, Vec<i64>)> = BTreeMap::new();
    for run in runs {
        let Some(ns) = name.of(run) else { continue };
        let key = (day(run.started), run.kernel.as_str());
        of_days.entry(key).or_insert((run.started, Vec::new())).1.push(ns);
    }
    let point = |((day, kernel), (first, values)): ((String, &str), (Timestamp, Vec<i64>))| {
        let (kernel, runs) = (kernel.to_owned(), values.len());
        median(values).map(|ns| TrendPoint { day, kernel, runs, ns, first })
    };
    let mut points: Vec<TrendPoint> = of_days.into_iter().filter_map(point).collect();
    points.sort_by_key(|point| point.first);
    TrendFigure {
        figure: name,
        median_ns: median(points.iter().map(|point| point.ns).collect()),
        is_too_short: points.len() < FEWEST_VALUES,
        points,
        changes: Vec::new(),
        alarms: Vec::new(),
    }
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

fn changes(figure: &TrendFigure, runs: &[TrendRun], level: f64) -> Vec<TrendChange> {
    let places = steps(&figure.values(), level);
    let ends = places.iter().skip(1).copied().chain([figure.points.len()]);
    let begins = [0].into_iter().chain(places.iter().copied());
    let around = begins.zip(&places).zip(ends);
    let change = |((begin, place), end): ((usize, &usize), usize)| {
        let point = figure.points.get(*place)?;
        let last = figure.points.get(place.checked_sub(1)?)?;
        let (before_ns, after_ns) =
            (figure.median_of(begin, *place)?, figure.median_of(*place, end)?);
        let ratio = after_ns as f64 / before_ns.max(1) as f64;
        let margin = figure.figure.margin();
        if ratio.max(1.0 / ratio) < margin {
            return None;
        }
        let time = |at: usize| figure.points.get(at).map(|point| point.first);
        let between = |from: Option<Timestamp>, to: Option<Timestamp>| {
            runs.iter().filter(move |run| {
                from.is_none_or(|from| run.started >= from) && to.is_none_or(|to| run.started < to)
            })
        };
        let kernels =
            (last.kernel != point.kernel).then(|| (last.kernel.clone(), point.kernel.clone()));
        Some(TrendChange {
            day: point.day.clone(),
            before_ns,
            after_ns,
            ratio,
            kernels,
            causes: causes(between(time(begin), time(*place)), between(time(*place), time(end))),
        })
    };
    around.filter_map(change).collect()
}

/// Whose share of late time differs most.
fn causes<'a>(
    before: impl Iterator<Item = &'a TrendRun>,
    after: impl Iterator<Item = &'a TrendRun>,
) -> Option<Vec<CauseShift>> {
    let (before, after) = (shares(before)?, shares(after)?);
    let names: BTreeSet<&(Cause, String)> = before.keys().chain(after.keys()).collect();
    let share = |of: &BTreeMap<(Cause, String), f64>, name: &(Cause, String)| {
        of.get(name).copied().unwrap_or(0.0)
    };
    let shift = |name: &(Cause, String)| CauseShift {
        cause: name.0,
        name: name.1.clone(),
        before: share(&before, name),
        after: share(&after, name),
    };
    let mut shifts: Vec<CauseShift> = names.into_iter().map(shift).collect();
    // In millionths: of two that differ alike, the one that grew is first.
    let size = |shift: &CauseShift| ((shift.after - shift.before).abs() * 1e6).round();
    shifts.sort_by(|a, b| size(b).total_cmp(&size(a)).then(b.after.total_cmp(&a.after)));
    shifts.truncate(MOST_CAUSES);
    Some(shifts)
}

/// The share of each cause over runs; absent where none recorded any.
fn shares<'a>(runs: impl Iterator<Item = &'a TrendRun>) -> Option<BTreeMap<(Cause, String), f64>> {
    let (mut sums, mut all) = (BTreeMap::new(), 0.0);
    for late in runs.filter_map(|run| run.late.as_ref()) {
        all += late.ns as f64;
        for cause in &late.causes {
            *sums.entry((cause.cause, cause.name.clone())).or_insert(0.0) += cause.ns as f64;
        }
    }
    (all > 0.0).then(|| sums.into_iter().map(|(name, sum)| (name, sum / all)).collect())
}

fn seen(figure: &TrendFigure, run_length: f64) -> Vec<TrendAlarm> {
    let alarm = |StepAlarm { seen, place, is_up }: StepAlarm| {
        Some(TrendAlarm {
            day: figure.points.get(seen)?.day.clone(),
            since: figure.points.get(place)?.day.clone(),
            is_worse: is_up,
            points_ago: figure.points.len() - 1 - seen,
        })
    };
    alarms(&figure.values(), run_length).into_iter().filter_map(alarm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CauseSum;

    fn key(series: &str) -> TrendKey {
        TrendKey {
            machine: "vm".into(),
            probe: "timer".into(),
            loads: "idle".into(),
            policy: "fifo 90".into(),
            length: "60 s".into(),
            rest: String::new(),
            series: series.into(),
        }
    }

    /// Nightly runs; from `change` on they are slower by `ratio`, under another kernel.
    fn nights(count: i64, change: i64, ratio: f64) -> Vec<TrendRun> {
        let run = |night: i64| {
            let is_later = night >= change;
            let noise = 1.0 + (night * 37 % 11) as f64 / 100.0;
            let ns = (50_000.0 * noise * if is_later { ratio } else { 1.0 }) as i64;
            let cause = |name: &str, ns| CauseSum { cause: Cause::Softirq, name: name.into(), ns };
            let (net, timer) = if is_later { (70, 30) } else { (10, 90) };
            let causes = vec![cause("NET_RX", net), cause("TIMER", timer)];
            TrendRun {
                started: Timestamp::from_second(1_790_000_000 + night * 86_400).unwrap(),
                kernel: if is_later { "6.13" } else { "6.12" }.into(),
                p99_ns: Some(ns),
                block_max_ns: None,
                max_ns: Some(2 * ns),
                late: Some(LateDetails { ns: 100, causes }),
            }
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn a_change_has_its_day_its_size_its_kernels_and_its_causes() {
        let rows = trend(BTreeMap::from([(key("cpu0"), nights(60, 45, 1.5))]), Some(365.0));
        let row = &rows[0];
        assert_eq!((row.runs, row.days, row.kernels.len()), (60, 60, 2));
        let figure = &row.figures[0];
        let [change] = figure.changes.as_slice() else { panic!("{:?}", figure.changes) };
        assert_eq!(change.day, figure.points[45].day);
        assert!((change.ratio - 1.5).abs() < 0.03, "{change:?}");
        assert_eq!(change.kernels, Some(("6.12".into(), "6.13".into())));
        let cause = &change.causes.as_ref().unwrap()[0];
        assert_eq!((cause.name.as_str(), cause.before, cause.after), ("NET_RX", 0.1, 0.7));
        assert!(matches!(figure.alarms.as_slice(), [one] if one.is_worse && one.points_ago > 0));
        assert!(row.figures[1].points.is_empty() && row.figures[1].is_too_short);
    }

    #[test]
    fn what_is_too_small_too_short_or_without_records_is_not_made_up() {
        let small = trend(BTreeMap::from([(key("cpu0"), nights(60, 30, 1.001))]), None);
        assert_eq!(small[0].figures[0].changes, []);
        let short = trend(BTreeMap::from([(key("cpu0"), nights(19, 9, 9.0))]), Some(365.0));
        let figure = &short[0].figures[0];
        assert!(figure.is_too_short && figure.changes.is_empty() && figure.alarms.is_empty());
        let mut runs = nights(60, 30, 2.0);
        runs.iter_mut().take(30).for_each(|run| run.late = None);
        let rows = trend(BTreeMap::from([(key("cpu0"), runs)]), None);
        assert_eq!(rows[0].figures[0].changes[0].causes, None);
    }

    #[test]
    fn runs_of_a_day_under_one_kernel_are_one_value() {
        let mut runs = nights(30, 99, 1.0);
        let more = TrendRun { p99_ns: Some(1), ..runs[3].clone() };
        runs.extend([more.clone(), more]);
        let rows = trend(BTreeMap::from([(key("cpu0"), runs)]), None);
        let points = &rows[0].figures[0].points;
        assert_eq!((points.len(), points[3].runs, points[3].ns), (30, 3, 1));
    }
}
