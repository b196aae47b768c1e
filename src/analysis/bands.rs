//! What the late part of all wake-ups was blamed on, band by band: above p99, p99.9, p99.99, and
//! the ten worst.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::run::{
    peaks::{Basis, Blame, Cause, LatencyBucket, Peak},
    series_name::is_response,
    summary::{ENOUGH_BEYOND, percentile},
};

/// The percentiles above which a band begins, by name.
const PERCENTILES: [(&str, f64); 3] = [("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)];

/// The band of late responses.
pub const LATE: &str = "late";

/// Wake-ups in the last band.
const WORST: u64 = 10;

/// The wake-ups of one band, and what they were blamed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Band {
    /// `p99`: all above it; `worst`: the ten worst; `late`: responses of attached threads over the
    /// deadline, which come first, and which no other band has.
    pub name: String,
    /// Latencies above this, ns; of the ten worst, from this.
    pub from: i64,
    /// The largest latency of the run, ns.
    pub to: i64,
    /// Wake-ups in it.
    pub wakeups: u64,
    /// Their latencies together, ns.
    pub ns: u64,
    /// How much of that time was blamed, 0 to 1, if only on `unexplained`.
    pub blamed_share: f64,
    /// What it was blamed on, largest first.
    pub causes: Vec<CauseInBand>,
}

/// A cause's part in a band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CauseInBand {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Its part of the band's time, ns.
    pub ns: u64,
    /// Its share of the time that was blamed, 0 to 1.
    pub share: f64,
    /// The share of its time that is inferred rather than measured, 0 to 1.
    pub inferred: f64,
    /// The same by series, largest first.
    pub series: Vec<SeriesShare>,
}

/// How much of something one series had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesShare {
    /// Whose.
    pub series: String,
    /// How much, ns.
    pub ns: u64,
}

impl Band {
    /// The share of all of its time that these causes have, blamed or not; 0 to 1.
    #[must_use]
    pub fn share_of_all(&self, is_meant: impl Fn(&CauseInBand) -> bool) -> f64 {
        let causes = self.causes.iter().filter(|cause| is_meant(cause));
        causes.map(|cause| cause.share).sum::<f64>() * self.blamed_share
    }
}

/// The bands of a run. `total` holds all whole latencies, `max` is the exact largest, `worst` the
/// worst peaks, worst first. A band with fewer than ten wake-ups in it is left out, for the ten
/// worst say more.
///
/// Sums are kept by sixteenths of an octave: of the bucket that a band begins in, it gets the share
/// that the band has of the histogram's time there.
#[must_use]
pub fn bands(total: &Histogram<u64>, max: i64, blame: &Blame, worst: &[Peak]) -> Vec<Band> {
    let enough = |p: f64| total.len() as f64 * (100.0 - p) / 100.0 >= ENOUGH_BEYOND as f64 - 1e-6;
    let found = PERCENTILES.iter().filter(|(_, p)| enough(*p));
    let mut bands: Vec<Band> = found
        .map(|(name, p)| above(name, percentile(total, *p, Some(max)), total, max, blame))
        .collect();
    bands.retain(|band| band.wakeups > 0);
    if total.len() >= WORST {
        bands.push(ten_worst(total, max, worst));
    }
    bands
}

/// All late responses that were analyzed, by name `late`; `None` without any. `max` is the largest
/// response, and `passed_over` were not analyzed.
#[must_use]
pub fn late_responses(blame: &Blame, max: i64) -> Option<Band> {
    let first = blame.responses.first()?;
    let (mut sums, mut ns, mut analyzed) = (Sums::default(), 0_u64, 0_u64);
    for bucket in &blame.responses {
        ns = ns.saturating_add(bucket.ns);
        analyzed = analyzed.saturating_add(bucket.wakeups);
        for (cause, _, ns) in &bucket.parts {
            if let Some(of) = blame.causes.get(*cause as usize) {
                sums.add((of.cause, &of.name, of.basis), &of.series, *ns as f64);
            }
        }
    }
    let causes = sums.largest();
    Some(Band {
        name: LATE.into(),
        from: first.low_ns,
        to: max,
        wakeups: analyzed,
        ns,
        blamed_share: 1.0,
        causes,
    })
}

/// All above `from`.
fn above(name: &str, from: i64, total: &Histogram<u64>, max: i64, blame: &Blame) -> Band {
    let first = u64::try_from(from).unwrap_or(0).saturating_add(1);
    let (wakeups, ns) = within(total, first, u64::MAX, max);
    let mut sums = Sums::default();
    let (mut blamed, mut blamed_wakeups) = (0.0, 0.0);
    for (at, bucket) in blame.buckets.iter().enumerate() {
        let next = blame.buckets.get(at + 1).map_or(i64::MAX, |next| next.low_ns);
        let share = share_above(bucket, next, first, |from, to| within(total, from, to, max).1);
        blamed += bucket.ns as f64 * share;
        blamed_wakeups += bucket.wakeups as f64 * share;
        for (cause, _, ns) in &bucket.parts {
            if let Some(of) = blame.causes.get(*cause as usize).filter(|_| share > 0.0) {
                sums.add((of.cause, &of.name, of.basis), &of.series, *ns as f64 * share);
            }
        }
    }
    // Of a run that was killed, the blame can be a moment ahead of the histogram.
    let ns = ns.max(blamed);
    Band {
        name: name.into(),
        from,
        to: max,
        wakeups: wakeups.max(blamed_wakeups as u64),
        ns: ns as u64,
        blamed_share: ratio(blamed, ns).min(1.0),
        causes: sums.largest(),
    }
}

/// How much of a bucket's time lies from `first` on, 0 to 1; `time` tells that of all wake-ups
/// between two latencies.
fn share_above(
    bucket: &LatencyBucket,
    next: i64,
    first: u64,
    time: impl Fn(u64, u64) -> f64,
) -> f64 {
    let low = u64::try_from(bucket.low_ns).unwrap_or(0);
    let width = low.saturating_add(low / 16).saturating_add(1);
    let end = width.min(u64::try_from(next).unwrap_or(width));
    if first <= low {
        1.0
    } else if first >= end {
        0.0
    } else {
        ratio(time(first, end), time(low, end))
    }
}

/// Wake-ups with latencies from `first` to before `end`, and their time in ns. Bucket middles stand
/// for their values.
fn within(total: &Histogram<u64>, first: u64, end: u64, max: i64) -> (u64, f64) {
    let max = u64::try_from(max).unwrap_or(0);
    let (mut wakeups, mut ns) = (0_u64, 0.0);
    for bucket in total.iter_recorded() {
        let value = total.median_equivalent(bucket.value_iterated_to()).min(max);
        if value >= first && value < end {
            let count = bucket.count_since_last_iteration();
            wakeups = wakeups.saturating_add(count);
            ns += count as f64 * value as f64;
        }
    }
    (wakeups, ns)
}

/// The ten worst: from the peaks that were kept whole, so that nothing is estimated.
fn ten_worst(total: &Histogram<u64>, max: i64, worst: &[Peak]) -> Band {
    let rank = (total.len() - WORST) as f64 + 0.5;
    let from = total.lowest_equivalent(total.value_at_quantile(rank / total.len() as f64));
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let wake_ups = worst.iter().filter(|peak| !is_response(&peak.series));
    let late = wake_ups.take(WORST as usize).filter(|peak| peak.latency_ns >= from);
    let (mut sums, mut blamed, mut known) = (Sums::default(), 0.0, 0);
    for peak in late {
        known += 1;
        blamed += peak.latency_ns as f64;
        for part in &peak.blame {
            sums.add((part.cause, &part.name, part.basis), &peak.series, part.ns as f64);
        }
    }
    // Those that were not kept are among the smallest of the ten.
    let ns = blamed + (WORST - known) as f64 * from as f64;
    Band {
        name: "worst".into(),
        from,
        to: max,
        wakeups: WORST,
        ns: ns as u64,
        blamed_share: ratio(blamed, ns).min(1.0),
        causes: sums.largest(),
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The time of one cause, ns.
#[derive(Default)]
struct Sum<'a> {
    by_series: BTreeMap<&'a str, f64>,
    inferred: f64,
}

/// Sums by kind and name.
#[derive(Default)]
struct Sums<'a>(BTreeMap<(Cause, &'a str), Sum<'a>>);

impl<'a> Sums<'a> {
    fn add(&mut self, (cause, name, basis): (Cause, &'a str, Basis), series: &'a str, ns: f64) {
        let sum = self.0.entry((cause, name)).or_default();
        *sum.by_series.entry(series).or_default() += ns;
        if basis == Basis::Inferred {
            sum.inferred += ns;
        }
    }

    fn largest(self) -> Vec<CauseInBand> {
        let all: f64 = self.0.values().flat_map(|sum| sum.by_series.values()).sum();
        let of = |((cause, name), sum): ((Cause, &str), Sum<'_>)| {
            let ns: f64 = sum.by_series.values().sum();
            CauseInBand {
                cause,
                name: name.to_owned(),
                ns: ns.round() as u64,
                share: ratio(ns, all),
                inferred: ratio(sum.inferred, ns).min(1.0),
                series: by_series(sum.by_series),
            }
        };
        let mut causes: Vec<CauseInBand> = self.0.into_iter().map(of).collect();
        causes.retain(|cause| cause.ns > 0);
        // Stable: what is equal stays in the order of kinds and names.
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        causes
    }
}

fn by_series(sums: BTreeMap<&str, f64>) -> Vec<SeriesShare> {
    let share = |(series, ns): (&str, f64)| SeriesShare {
        series: series.to_owned(),
        ns: ns.round() as u64,
    };
    let mut shares: Vec<SeriesShare> = sums.into_iter().map(share).collect();
    shares.retain(|share| share.ns > 0);
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{
        hlog,
        peaks::{CauseOf, Part},
    };

    fn total(latencies: &[(u64, u64)]) -> Histogram<u64> {
        let mut total = hlog::empty();
        for (ns, count) in latencies {
            total.record_n(*ns, *count).unwrap();
        }
        total
    }

    fn cause(series: &str, cause: Cause, name: &str) -> CauseOf {
        CauseOf { series: series.into(), cause, name: name.into(), basis: Basis::Measured }
    }

    fn peak(latency_ns: i64, cause: Cause) -> Peak {
        let part = Part {
            cause,
            name: "x".into(),
            task: None,
            ns: latency_ns.unsigned_abs(),
            basis: Basis::Inferred,
            evidence: None,
            stack: Vec::new(),
        };
        Peak {
            at_ns: Some(0),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns,
            stages: None,
            ways: Vec::new(),
            blame: vec![part],
            timeline: Vec::new(),
            tid: None,
            left_out: 0,
        }
    }

    #[test]
    fn a_band_has_the_causes_of_the_buckets_above_it_by_cpu() {
        // 1% of 10,000 is above 5 us: 90 of 16.384 us, 10 of 65.536 us.
        let total = total(&[(5_000, 9_900), (16_384, 90), (65_536, 10)]);
        let blame = Blame {
            causes: vec![
                cause("cpu0", Cause::Softirq, "NET_RX"),
                cause("cpu1", Cause::Softirq, "NET_RX"),
                cause("cpu1", Cause::IrqsOff, "console_unlock"),
            ],
            buckets: vec![
                LatencyBucket {
                    low_ns: 16_384,
                    wakeups: 90,
                    ns: 90 * 16_384,
                    parts: vec![(0, 60, 60 * 16_384), (1, 30, 30 * 16_384)],
                },
                LatencyBucket {
                    low_ns: 65_536,
                    wakeups: 10,
                    ns: 655_360,
                    parts: vec![(2, 10, 655_360)],
                },
            ],
            ..Blame::default()
        };
        let bands = bands(&total, 65_536, &blame, &[]);
        let names: Vec<_> = bands.iter().map(|band| band.name.as_str()).collect();
        assert_eq!(names, ["p99", "p99.9", "worst"]);
        let p99 = &bands[0];
        assert_eq!((p99.wakeups, p99.to), (100, 65_536));
        assert!((p99.blamed_share - 1.0).abs() < 0.002, "{}", p99.blamed_share);
        assert_eq!((p99.causes[0].name.as_str(), p99.causes[0].ns), ("NET_RX", 90 * 16_384));
        assert_eq!(p99.causes[0].series[1], SeriesShare { series: "cpu1".into(), ns: 491_520 });
        assert_eq!(p99.causes[0].inferred, 0.0);
        assert_eq!(bands[1].causes.len(), 1, "above p99.9 there is the console alone");
        assert_eq!(bands[2].blamed_share, 0.0, "no peak was kept");
    }

    #[test]
    fn what_was_not_blamed_is_reported_by_the_share() {
        let total = total(&[(5_000, 990), (50_000, 10)]);
        let bucket = LatencyBucket {
            low_ns: 49_152,
            wakeups: 4,
            ns: 200_000,
            parts: vec![(0, 4, 150_000), (1, 4, 50_000)],
        };
        let blame = Blame {
            causes: vec![
                cause("cpu0", Cause::Host, "steal"),
                cause("cpu0", Cause::Unexplained, "unexplained"),
            ],
            buckets: vec![bucket],
            ..Blame::default()
        };
        let band = bands(&total, 50_000, &blame, &[]).swap_remove(0);
        assert!((band.blamed_share - 0.4).abs() < 0.001, "{}", band.blamed_share);
        assert_eq!((band.causes[0].share, band.causes[1].share), (0.75, 0.25));
        let of_all = band.share_of_all(|cause| cause.cause == Cause::Host);
        assert!((of_all - 0.3).abs() < 0.001, "{of_all}");
    }

    #[test]
    fn of_the_bucket_in_which_a_band_begins_it_gets_its_share() {
        // p99 is 100 us; the bucket from 98.304 us to 104.448 us holds 50 of it and 50 above it.
        let total = total(&[(5_000, 9_850), (100_000, 50), (103_000, 100)]);
        let bucket = LatencyBucket {
            low_ns: 98_304,
            wakeups: 150,
            ns: 50 * 100_000 + 100 * 103_000,
            parts: vec![(0, 150, 50 * 100_000 + 100 * 103_000)],
        };
        let blame = Blame {
            causes: vec![cause("cpu0", Cause::Host, "steal")],
            buckets: vec![bucket],
            ..Blame::default()
        };
        let band = bands(&total, 103_000, &blame, &[]).swap_remove(0);
        assert_eq!(band.wakeups, 100);
        assert!((band.blamed_share - 1.0).abs() < 0.002);
        assert!((band.causes[0].ns as f64 / 10_300_000.0 - 1.0).abs() < 0.002, "{band:?}");
    }

    #[test]
    fn blame_that_is_ahead_of_the_histogram_of_a_killed_run_stays_within_its_band() {
        let total = total(&[(5_000, 9_900), (20_000, 100)]);
        let bucket = LatencyBucket {
            low_ns: 19_456,
            wakeups: 103,
            ns: 2_060_000,
            parts: vec![(0, 103, 2_060_000)],
        };
        let blame = Blame {
            causes: vec![cause("cpu0", Cause::Host, "steal")],
            buckets: vec![bucket],
            ..Blame::default()
        };
        let band = bands(&total, 20_000, &blame, &[]).swap_remove(0);
        assert_eq!((band.wakeups, band.ns, band.blamed_share), (103, 2_060_000, 1.0));
        assert_eq!(band.causes[0].ns, band.ns);
    }

    #[test]
    fn the_ten_worst_are_those_that_were_kept() {
        let total = total(&[(5_000, 990), (50_000, 9), (80_000, 1)]);
        let mut worst = vec![peak(80_000, Cause::Host)];
        worst.extend((0..6).map(|_| peak(50_000, Cause::Softirq)));
        let bands = bands(&total, 80_000, &Blame::default(), &worst);
        let ten = bands.last().unwrap();
        assert_eq!((ten.name.as_str(), ten.wakeups), ("worst", 10));
        let blamed = f64::from(80 + 6 * 50) / f64::from(80 + 9 * 50);
        assert!((ten.blamed_share - blamed).abs() < 0.002, "{}", ten.blamed_share);
        assert_eq!((ten.causes[0].cause, ten.causes[0].inferred), (Cause::Softirq, 1.0));
    }

    #[test]
    fn absurd_figures_overflow_nothing() {
        let bucket = LatencyBucket {
            low_ns: i64::MAX,
            wakeups: u64::MAX,
            ns: u64::MAX,
            parts: vec![(0, u64::MAX, u64::MAX), (0, u64::MAX, u64::MAX), (9, 1, 1)],
        };
        let odd = LatencyBucket { low_ns: i64::MIN, ..bucket.clone() };
        let blame = Blame {
            causes: vec![cause("cpu0", Cause::Host, "steal")],
            buckets: vec![bucket, odd],
            ..Blame::default()
        };
        let total = total(&[(5_000, 1_000)]);
        for max in [i64::MIN, 0, 5_000, i64::MAX] {
            let found = bands(
                &total,
                max,
                &blame,
                &[peak(i64::MAX, Cause::Host), peak(i64::MIN, Cause::Lock)],
            );
            assert!(found.iter().all(|band| (0.0..=1.0).contains(&band.blamed_share)), "{found:?}");
        }
        assert_eq!(bands(&hlog::empty(), 0, &blame, &[]), []);
    }
}
