//! The nights before a night that are of its level: after the last change, and not under kernels
//! that take turns with its own.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, civil::Date};

use super::{TrendFigureName, TrendKey, TrendRun, day, trend};
use crate::analysis::nights::NightLevel;

/// Runs that start within this time of each other are of one night.
pub const ONE_NIGHT: SignedDuration = SignedDuration::from_hours(12);

/// The latest nights of one series that are of one level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LevelNights {
    /// Oldest first.
    pub nights: Vec<NightLevel>,
    /// The first day after the change that cut off those before it; `None` without one.
    pub since: Option<String>,
    /// Nights before it.
    pub before_change: usize,
    /// Nights that are older than the latest that count.
    pub older: usize,
}

/// What is left out of runs because of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherKernels {
    /// Their releases.
    pub kernels: Vec<String>,
    /// Days with runs under them.
    pub nights: usize,
}

/// Takes the runs of other kernels away if these take turns with `kernel`: if runs under another
/// one follow the first run under it. Else kernels replaced each other, and all are kept.
pub fn without_kernels_in_turn(
    groups: &mut BTreeMap<TrendKey, Vec<TrendRun>>,
    kernel: &str,
) -> OtherKernels {
    let all = || groups.values().flatten();
    let first = all().filter(|run| run.kernel == kernel).map(|run| run.started).min();
    let is_other = |run: &&TrendRun| run.kernel != kernel;
    let in_turn = first.is_some_and(|first| all().any(|run| is_other(&run) && run.started > first));
    if !in_turn {
        return OtherKernels::default();
    }
    let mut found: Vec<(Date, &str)> =
        all().filter(is_other).map(|run| (day(run.started), run.kernel.as_str())).collect();
    found.sort_unstable();
    found.dedup();
    let mut kernels: Vec<String> = found.iter().map(|(_, own)| (*own).to_owned()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let left_out = OtherKernels { kernels, nights: found.len() };
    groups.values_mut().for_each(|runs| runs.retain(|run| run.kernel == kernel));
    left_out
}

/// The latest nights of each series, at most `most`, since its last change. The figure of each run
/// is its `p99_ns`, whatever it is.
#[must_use]
pub fn level_nights(
    groups: BTreeMap<TrendKey, Vec<TrendRun>>,
    most: usize,
) -> BTreeMap<String, LevelNights> {
    let of_series: Vec<(String, Vec<TrendRun>)> =
        groups.iter().map(|(key, runs)| (key.series.clone(), runs.clone())).collect();
    let rows = trend(groups, None);
    let last_change = |series: &str| {
        let row = rows.iter().find(|row| row.key.series == series)?;
        let figure = row.figures.iter().find(|own| own.figure == TrendFigureName::P99)?;
        figure.changes.last().map(|change| change.day.clone())
    };
    let cut = |(series, runs): (String, Vec<TrendRun>)| {
        let since = last_change(&series);
        let mut days: Vec<(Date, NightLevel)> = nights(&runs);
        let all = days.len();
        if let Some(since) = since.as_ref().and_then(|since| since.parse::<Date>().ok()) {
            days.retain(|(day, _)| *day >= since);
        }
        let before_change = all - days.len();
        let older = days.len().saturating_sub(most);
        let nights = days.into_iter().skip(older).map(|(_, night)| night).collect();
        (series, LevelNights { nights, since, before_change, older })
    };
    of_series.into_iter().map(cut).collect()
}

/// The runs of each day under one kernel, oldest first.
fn nights(runs: &[TrendRun]) -> Vec<(Date, NightLevel)> {
    let mut of_days: BTreeMap<(Date, &str), (Timestamp, Vec<i64>)> = BTreeMap::new();
    for run in runs {
        let Some(ns) = run.p99_ns else { continue };
        let key = (day(run.started), run.kernel.as_str());
        let own = of_days.entry(key).or_insert((run.started, Vec::new()));
        own.0 = own.0.min(run.started);
        own.1.push(ns);
    }
    let mut sorted: Vec<_> = of_days.into_iter().collect();
    sorted.sort_by_key(|(_, (first, _))| *first);
    let night = |((day, _), (_, own)): ((Date, &str), (Timestamp, Vec<i64>))| {
        NightLevel::of(&own).map(|level| (day, level))
    };
    sorted.into_iter().filter_map(night).collect()
}

/// The same of runs that are judged together: a night ends with 12 hours without a new run, as a
/// plan may continue past midnight.
#[must_use]
pub fn judged_nights(runs: &[TrendRun]) -> Vec<NightLevel> {
    let mut sorted: Vec<(Timestamp, i64)> =
        runs.iter().filter_map(|run| Some((run.started, run.p99_ns?))).collect();
    sorted.sort_unstable();
    let mut nights: Vec<Vec<i64>> = Vec::new();
    let mut last: Option<Timestamp> = None;
    for (started, ns) in sorted {
        let is_new = last.is_none_or(|last| started.duration_since(last) > ONE_NIGHT);
        match nights.last_mut().filter(|_| !is_new) {
            Some(night) => night.push(ns),
            None => nights.push(vec![ns]),
        }
        last = Some(started);
    }
    nights.iter().filter_map(|night| NightLevel::of(night)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of a night, some hours into it.
    fn run(night: i64, hours: i64, kernel: &str, us: i64) -> TrendRun {
        let seconds = 1_790_000_000 + night * 86_400 + hours * 3_600;
        TrendRun {
            started: Timestamp::from_second(seconds).unwrap(),
            kernel: kernel.into(),
            program: String::new(),
            p99_ns: Some(us * 1_000),
            block_max_ns: None,
            max_ns: None,
            late: None,
        }
    }

    fn group(runs: Vec<TrendRun>) -> BTreeMap<TrendKey, Vec<TrendRun>> {
        BTreeMap::from([(TrendKey { series: "cpu0".into(), ..TrendKey::default() }, runs)])
    }

    fn noise(night: i64) -> i64 {
        100 + night * 37 % 11
    }

    #[test]
    fn a_change_cuts_off_the_nights_before_it_and_the_number_the_rest() {
        let level = |night: i64| if night < 30 { 1 } else { 2 };
        let runs: Vec<TrendRun> =
            (0..60).map(|night| run(night, 0, "a", noise(night) * level(night))).collect();
        let found = &level_nights(group(runs.clone()), 60)["cpu0"];
        assert_eq!((found.nights.len(), found.before_change, found.older), (30, 30, 0));
        assert_eq!(found.since, Some(day(runs[30].started).to_string()));
        let found = &level_nights(group(runs), 20)["cpu0"];
        assert_eq!((found.nights.len(), found.before_change, found.older), (20, 30, 10));
        let quiet = (0..60).map(|night| run(night, 0, "a", noise(night))).collect();
        let found = &level_nights(group(quiet), 60)["cpu0"];
        assert_eq!((found.nights.len(), found.since.clone()), (60, None));
    }

    #[test]
    fn kernels_that_replace_each_other_stay_and_those_in_turns_go() {
        let nights = |kernels: &str| {
            let of = |(night, kernel): (usize, char)| run(night as i64, 0, &kernel.to_string(), 9);
            group(kernels.chars().enumerate().map(of).collect())
        };
        let left = |kernels: &str, own: &str| {
            let mut groups = nights(kernels);
            let found = without_kernels_in_turn(&mut groups, own);
            (found.nights, found.kernels.concat(), groups.values().flatten().count())
        };
        assert_eq!(left("aaaabbbb", "b"), (0, String::new(), 8));
        assert_eq!(left("aaaabbbb", "c"), (0, String::new(), 8));
        assert_eq!(left("abababab", "b"), (4, "a".into(), 4));
        assert_eq!(left("aaaabbcc", "a"), (4, "bc".into(), 4), "taken back");
    }

    #[test]
    fn runs_of_one_night_are_one_value_also_past_midnight() {
        let runs =
            [run(0, 0, "a", 10), run(0, 9, "a", 40), run(0, 20, "a", 40), run(1, 12, "a", 7)];
        let judged = judged_nights(&runs);
        assert_eq!(judged.iter().map(|night| night.runs).collect::<Vec<_>>(), [3, 1]);
        let first = &level_nights(group(vec![run(0, 0, "a", 10), run(0, 1, "a", 40)]), 9)["cpu0"];
        assert!((first.nights[0].log.exp() / 20_000.0 - 1.0).abs() < 1e-9, "{first:?}");
    }
}
