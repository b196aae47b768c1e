//! The summary of a series: percentiles, mean, scheduled view. Computed here and nowhere else.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tardy_hot::{histogram::HIGHEST_NS, tally::Totals};

use super::{
    per_period::per_period,
    series_name::{RESPONSE, is_response, stage_of, thread_of},
};

/// The percentiles that every summary has, by their names in `run.json`.
pub const PERCENTILES: [(&str, f64); 6] = [
    ("50", 50.0),
    ("90", 90.0),
    ("99", 99.0),
    ("99.9", 99.9),
    ("99.99", 99.99),
    ("99.999", 99.999),
];

/// Percentiles by their name: `"50"`, `"99.9"`.
pub type Percentiles = BTreeMap<String, u64>;

/// With fewer samples than this beyond it, a percentile is little more than the maximum.
pub const ENOUGH_BEYOND: u64 = 10;

/// One series in figures. All latencies in ns; values that need a sample are absent without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesSummary {
    /// `cpu0`, `cpu0#1`, ...
    pub name: String,
    /// The CPU it was measured on.
    pub cpu: Option<u32>,
    /// The period of its schedule, ns; absent if it has none.
    pub period_ns: Option<i64>,
    /// The series that it is a stage of, whose latencies it is a part of; absent for whole ones.
    pub stage_of: Option<String>,
    /// Which stage: `irq`, `dispatch`, ...; absent for whole latencies.
    pub stage: Option<String>,
    /// The name of the attached thread that it is of; then the series of that name has its samples
    /// too. Absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_of: Option<String>,
    /// Always `ns`.
    pub unit: String,
    /// All wake-ups: those in the histogram, `early` and `above`.
    pub count: u64,
    /// Periods that passed without a wake-up; absent if it has no schedule.
    pub missed: Option<u64>,
    /// Wake-ups before their expiry; in `count`, `min` and `mean`, not in the percentiles.
    pub early: u64,
    /// Latencies over one hour, and those of an imported run that have no value in its file; in
    /// `count`, `mean` and `max`, not in the percentiles.
    pub above: u64,
    /// Smallest latency; negative when early.
    pub min: Option<i64>,
    /// Mean of all latencies, rounded.
    pub mean: Option<i64>,
    /// Standard deviation of the histogram's latencies, rounded.
    pub stddev: Option<u64>,
    /// Largest latency.
    pub max: Option<i64>,
    /// Highest value of the bucket (0.1% wide) in which the percentile lies, at most `max`.
    pub percentiles: Percentiles,
    /// The names of those percentiles that have fewer than 10 samples beyond them.
    pub uncertain: Vec<String>,
    /// The same per scheduled period instead of per wake-up; absent if it has no schedule, and
    /// where late wake-ups do not account for the periods that were missed.
    pub scheduled: Option<Scheduled>,
}

/// The view per scheduled period: a wake-up late by L at period T counts as L, L-T, ..., L-kT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scheduled {
    /// Periods counted.
    pub count: u64,
    /// Mean, rounded.
    pub mean: Option<i64>,
    /// Largest latency.
    pub max: Option<i64>,
    /// As in [`SeriesSummary`].
    pub percentiles: Percentiles,
    /// As in [`SeriesSummary`].
    pub uncertain: Vec<String>,
}

impl SeriesSummary {
    /// Whether its latencies are parts of those of another series.
    #[must_use]
    pub const fn is_stage(&self) -> bool {
        self.stage_of.is_some()
    }

    /// Whether it is of the work after wake-ups: from each expiry of a thread's timer to the end of
    /// what it did for it.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.stage.as_deref() == Some(RESPONSE)
    }

    /// Whether another series has its samples too, or the whole ones of which its are parts.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        self.is_stage() || self.thread_of.is_some()
    }

    /// Whether its histogram says where its samples lie. One that was imported from a summary has
    /// them all above, though its smallest is not.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        self.above < self.count || self.min.is_none_or(|min| min > HIGHEST_NS)
    }

    /// What it was measured as.
    #[must_use]
    pub fn head(&self) -> SeriesHead {
        SeriesHead { name: self.name.clone(), cpu: self.cpu, period_ns: self.period_ns }
    }
}

/// What a series was measured as: its name, its CPU, and its period where it follows a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesHead {
    /// Name: `cpu0`, `cpu0#1`.
    pub name: String,
    /// The CPU it is measured on.
    pub cpu: Option<u32>,
    /// The period of its schedule in ns; absent if it has none (relative sleeps).
    pub period_ns: Option<i64>,
}

impl SeriesHead {
    /// That of one of its stages: on the same CPU, and without its own schedule.
    #[must_use]
    pub(crate) fn stage(&self, stage: &str) -> Self {
        Self { name: format!("{}/{stage}", self.name), cpu: self.cpu, period_ns: None }
    }

    /// Whether it is a stage of another series: of `cpu0`, where it is called `cpu0/irq`.
    #[must_use]
    pub fn is_stage(&self) -> bool {
        stage_of(&self.name).is_some()
    }

    /// As [`SeriesSummary::is_response`].
    #[must_use]
    pub fn is_response(&self) -> bool {
        is_response(&self.name)
    }

    /// Of a single attached thread the series that has all threads of its name: `app` of
    /// `app/1234`, `app/response` of `app/1234/response`.
    #[must_use]
    pub fn pooled_in(&self) -> Option<String> {
        let name = thread_of(&self.name)?;
        Some(match self.is_response() {
            true => format!("{name}/{RESPONSE}"),
            false => name.to_owned(),
        })
    }
}

/// Everything that `run.json` says of a series, from its counts and exact totals.
#[must_use]
pub fn summarize(head: &SeriesHead, counts: &Histogram<u64>, totals: &Totals) -> SeriesSummary {
    let some = totals.count > 0;
    let max = some.then_some(totals.max_ns);
    // To walk through an empty histogram takes as long as through a full one.
    let stddev = (!counts.is_empty()).then(|| counts.stdev().round() as u64);
    let (of, stage) = stage_of(&head.name).unzip();
    SeriesSummary {
        name: head.name.clone(),
        cpu: head.cpu,
        period_ns: head.period_ns,
        stage_of: of.map(str::to_owned),
        stage: stage.map(str::to_owned),
        thread_of: thread_of(&head.name).map(str::to_owned),
        unit: "ns".into(),
        count: totals.count,
        missed: head.period_ns.map(|_| totals.missed),
        early: totals.early,
        above: totals.above,
        min: some.then_some(totals.min_ns),
        mean: some.then(|| mean(totals.sum_ns, totals.count)),
        stddev,
        max,
        percentiles: percentiles(counts, max),
        uncertain: uncertain(counts.len()),
        scheduled: head.period_ns.and_then(|period_ns| scheduled(counts, totals, period_ns)),
    }
}

/// `None` if late wake-ups do not account for the missed periods, e.g. those that a thread skipped
/// while it worked. Such periods have no latency, and a view without them would look too good.
fn scheduled(counts: &Histogram<u64>, totals: &Totals, period_ns: i64) -> Option<Scheduled> {
    let view = per_period(counts, totals.max_ns, period_ns);
    // Early and above stay what they are: one period each.
    let outside = totals.early.saturating_add(totals.above);
    let max = (totals.count > 0).then_some(totals.max_ns);
    let count = view.len().saturating_add(outside);
    let periods = totals.count.saturating_add(totals.missed);
    // One in a thousand, as for what is said of missed periods.
    let slip = (periods / 1_000).max(1);
    let is_whole = periods.saturating_sub(count) <= slip;
    is_whole.then(|| Scheduled {
        // The view is made of the middles of buckets, and may have one more or less.
        count: if count.abs_diff(periods) <= slip { periods } else { count },
        mean: (!view.is_empty()).then(|| view.mean().round() as i64),
        max,
        percentiles: percentiles(&view, max),
        uncertain: uncertain(view.len()),
    })
}

fn mean(sum_ns: i64, count: u64) -> i64 {
    (sum_ns as f64 / count as f64).round() as i64
}

/// The value of percentile `p`: the highest of its bucket, but never above what was measured.
#[must_use]
pub fn percentile(counts: &Histogram<u64>, p: f64, max: Option<i64>) -> i64 {
    percentiles_of(counts, [p], max).next().unwrap_or(0)
}

/// The values of these percentiles, which ascend: all of them in one walk through the buckets.
pub fn percentiles_of(
    counts: &Histogram<u64>,
    ps: impl IntoIterator<Item = f64>,
    max: Option<i64>,
) -> impl Iterator<Item = i64> {
    let samples = counts.len().max(1) as f64;
    let (mut buckets, mut passed, mut highest) = (counts.iter_recorded(), 0_u64, 0_u64);
    ps.into_iter().map(move |p| {
        // 99.9 / 100 is a little above 0.999 in binary: a rank that is whole must not become the
        // next. Not above the last, so that the walk ends in a bucket.
        let rank = (samples * p / 100.0 * (1.0 - 1e-12)).ceil().clamp(1.0, samples) as u64;
        while passed < rank {
            let Some(bucket) = buckets.next() else { break };
            passed = passed.saturating_add(bucket.count_since_last_iteration());
            highest = counts.highest_equivalent(bucket.value_iterated_to());
        }
        let value = i64::try_from(highest).unwrap_or(i64::MAX);
        max.map_or(value, |max| value.min(max))
    })
}

fn percentiles(counts: &Histogram<u64>, max: Option<i64>) -> Percentiles {
    if counts.is_empty() {
        return Percentiles::new();
    }
    let values = percentiles_of(counts, PERCENTILES.map(|(_, p)| p), max);
    let named = PERCENTILES.iter().zip(values);
    named.map(|((name, _), ns)| ((*name).to_owned(), u64::try_from(ns).unwrap_or(0))).collect()
}

/// The names of the percentiles that `count` samples leave with fewer than [`ENOUGH_BEYOND`].
#[must_use]
pub fn uncertain(count: u64) -> Vec<String> {
    let beyond = |p: f64| count as f64 * (100.0 - p) / 100.0;
    let few = PERCENTILES.iter().filter(|(_, p)| beyond(*p) < ENOUGH_BEYOND as f64 - 1e-6);
    few.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::run::hlog;

    fn series(latencies: &[i64], missed: u64) -> (Histogram<u64>, Totals) {
        let recorded = tardy_hot::wakeup::Series::default();
        let mut counts = hlog::empty();
        for latency in latencies {
            recorded.record(*latency);
            if *latency >= 0 {
                counts.record(*latency as u64).unwrap();
            }
        }
        recorded.tally.add_missed(missed);
        (counts, recorded.tally.totals())
    }

    fn head(period_ns: Option<i64>) -> SeriesHead {
        SeriesHead { name: "cpu0".into(), cpu: Some(0), period_ns }
    }

    #[test]
    fn a_stall_of_twenty_periods_counts_once_per_wakeup_and_twenty_one_times_per_period() {
        let ms = 1_000_000;
        let mut latencies = vec![5_000; 979];
        latencies.push(20 * ms + ms / 2);
        let (counts, totals) = series(&latencies, 20);
        let summary = summarize(&head(Some(ms)), &counts, &totals);
        assert_eq!((summary.count, summary.missed), (980, Some(20)));
        let scheduled = summary.scheduled.unwrap();
        assert_eq!((scheduled.count, scheduled.max), (1000, Some(20 * ms + ms / 2)));
        assert!(summary.percentiles["99"] < 6_000);
        assert!(scheduled.percentiles["99"] > 9 * ms as u64, "10 of 1000 periods were later");
        assert!(scheduled.mean > summary.mean, "{scheduled:?}");
    }

    #[test]
    fn the_view_per_period_has_as_many_periods_as_there_were() {
        let ms = 1_000_000;
        // The middle of the bucket of the first is below 3 ms.
        let (counts, totals) = series(&[3 * ms + 100, 3 * ms + 200_000], 6);
        let summary = summarize(&head(Some(ms)), &counts, &totals);
        assert_eq!(summary.scheduled.unwrap().count, 2 + 6);
    }

    #[test]
    fn early_wakeups_are_in_count_min_and_mean_but_not_in_percentiles() {
        let (counts, totals) = series(&[-3_000, 1_000, 2_000], 0);
        let summary = summarize(&head(None), &counts, &totals);
        assert_eq!((summary.count, summary.early), (3, 1));
        assert_eq!((summary.min, summary.mean, summary.max), (Some(-3_000), Some(0), Some(2_000)));
        assert_eq!(summary.percentiles["50"], 1_000);
        assert_eq!((summary.missed, summary.scheduled), (None, None));
    }

    #[test]
    fn a_percentile_is_the_smallest_value_that_enough_samples_reach() {
        for samples in [1, 7, 100, 1_000, 1_999, 2_000] {
            let latencies: Vec<i64> = (1..=samples).collect();
            let (counts, _) = series(&latencies, 0);
            for (tenths, p) in [(500, 50.0), (900, 90.0), (990, 99.0), (999, 99.9)] {
                // Latencies are their own ranks, and below 2048 ns buckets are 1 ns wide.
                let rank = (samples * tenths + 999) / 1_000;
                assert_eq!(percentile(&counts, p, Some(samples)), rank, "{p} of {samples}");
            }
            assert_eq!(percentile(&counts, 100.0, Some(samples)), samples);
        }
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let (counts, totals) = series(&[], 0);
        let summary = summarize(&head(Some(1_000)), &counts, &totals);
        assert_eq!(
            (summary.min, summary.mean, summary.max, summary.stddev),
            (None, None, None, None)
        );
        assert!(summary.percentiles.is_empty());
    }

    #[test]
    fn percentiles_with_fewer_than_ten_beyond_are_named() {
        assert_eq!(uncertain(1_000), ["99.9", "99.99", "99.999"]);
        assert_eq!(uncertain(10_000), ["99.99", "99.999"]);
        assert!(uncertain(1_000_000).is_empty());
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_histogram(
            values in prop::collection::vec((0_u64..9_000_000_000, 1_u64..1 << 30), 0..40),
            mut ps in prop::collection::vec(0.0_f64..=100.0, 1..20),
        ) {
            let mut counts = hlog::empty();
            values.iter().for_each(|(ns, count)| counts.record_n(*ns, *count).unwrap());
            ps.sort_by(f64::total_cmp);
            let found: Vec<i64> = percentiles_of(&counts, ps.iter().copied(), None).collect();
            let samples = counts.len().max(1) as f64;
            let by_hand = |p: &f64| {
                // In the middle of the rank, so that no rounding leaves it.
                let rank = (samples * p / 100.0 * (1.0 - 1e-12)).ceil().max(1.0);
                counts.value_at_quantile((rank - 0.5) / samples) as i64
            };
            prop_assert_eq!(found, ps.iter().map(by_hand).collect::<Vec<_>>());
        }
    }
}
