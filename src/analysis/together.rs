//! Peaks that hit several CPUs at once: what is late together has one cause, or one host.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::run::{peaks::Cause, peaks_file::Brief};

/// How often several CPUs were late at once for one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Together {
    /// Moments at which at least two CPUs were late, each by its largest part for the same cause.
    pub times: u64,
    /// Peaks that were part of one.
    pub peaks: u64,
    /// Their share of all peaks, 0 to 1.
    pub share: f64,
    /// The most CPUs that were late at once.
    pub most_cpus: u32,
    /// The cause with the largest latencies among them.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Peaks among them of that cause.
    pub of_cause: u64,
    /// Their share of all peaks of that cause, 0 to 1.
    pub cause_share: f64,
}

/// Peaks of one cause whose late intervals overlap on at least two CPUs; `peaks` must be sorted by
/// time. What is late at once for different causes is a coincidence, of which a busy machine has
/// many; what is unexplained, as its events were lost or as nothing shows it, need not have one
/// cause. Nothing if it has none, as of peaks without a time.
#[must_use]
pub fn together(peaks: &[Brief]) -> Option<Together> {
    let mut causes: BTreeMap<(Cause, &str), OfCause> = BTreeMap::new();
    let explained = peaks.iter().filter(|peak| peak.cause != Cause::Unexplained);
    for (at_ns, peak) in explained.filter_map(|peak| Some((peak.at_ns?, peak))) {
        causes.entry((peak.cause, &peak.name)).or_default().add(at_ns, peak);
    }
    causes.values_mut().for_each(OfCause::close);
    let most = |sums: &OfCause| (sums.together.ns, sums.together.peaks);
    let found = causes.iter().filter(|(_, sums)| sums.times > 0);
    let (&(cause, name), first) =
        found.max_by_key(|(cause, sums)| (most(sums), Reverse(**cause)))?;
    let peaks_of = |sums: &OfCause| sums.together.peaks;
    let together: u64 = causes.values().map(peaks_of).sum();
    Some(Together {
        times: causes.values().map(|sums| sums.times).sum(),
        peaks: together,
        share: together as f64 / peaks.len() as f64,
        most_cpus: causes.values().map(|sums| sums.most_cpus).max().unwrap_or_default(),
        cause,
        name: name.to_owned(),
        of_cause: first.together.peaks,
        cause_share: first.together.peaks as f64 / first.all as f64,
    })
}

/// Peaks, and the sum of their latencies.
#[derive(Clone, Copy, Default)]
struct Sum {
    peaks: u64,
    ns: i64,
}

/// What is known of a cause; `cpus` and `open` are of the overlap that still may grow.
#[derive(Default)]
struct OfCause {
    all: u64,
    times: u64,
    together: Sum,
    most_cpus: u32,
    cpus: Vec<u32>,
    open: Sum,
    end_ns: Option<i64>,
}

impl OfCause {
    fn add(&mut self, at_ns: i64, peak: &Brief) {
        if self.end_ns.is_some_and(|end_ns| at_ns > end_ns) {
            self.close();
        }
        let until_ns = at_ns.saturating_add(peak.latency_ns.max(0));
        self.end_ns = self.end_ns.max(Some(until_ns));
        self.all += 1;
        self.cpus.push(peak.cpu);
        self.open.peaks += 1;
        self.open.ns = self.open.ns.saturating_add(peak.latency_ns);
    }

    /// Counts the overlap, if it was on several CPUs.
    fn close(&mut self) {
        self.cpus.sort_unstable();
        self.cpus.dedup();
        if self.cpus.len() >= 2 {
            self.times += 1;
            self.most_cpus = self.most_cpus.max(self.cpus.len() as u32);
            self.together.peaks += self.open.peaks;
            self.together.ns = self.together.ns.saturating_add(self.open.ns);
        }
        self.cpus.clear();
        self.open = Sum::default();
        self.end_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(at_ns: i64, latency_ns: i64, cpu: u32, name: &str) -> Brief {
        let series = format!("cpu{cpu}").into();
        Brief { at_ns: Some(at_ns), latency_ns, series, cpu, cause: Cause::Host, name: name.into() }
    }

    #[test]
    fn overlaps_on_several_cpus_are_counted_with_their_cause() {
        let peaks = [
            peak(0, 100, 0, "a"),
            peak(50, 100, 1, "b"),
            peak(60, 10, 2, "b"),
            peak(65, 10, 3, "a"),
            peak(1_000, 100, 0, "b"),
            peak(2_000, 100, 3, "d"),
            peak(2_090, 100, 3, "d"),
            peak(3_000, 5, 0, "b"),
            peak(3_005, 5, 1, "b"),
            peak(3_006, 5, 2, "b"),
        ];
        let found = together(&peaks).unwrap();
        assert_eq!((found.times, found.peaks, found.most_cpus), (3, 7, 3));
        assert_eq!((found.name.as_str(), found.of_cause, found.share), ("b", 5, 0.7));
        assert!((found.cause_share - 5.0 / 6.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn peaks_of_different_causes_that_overlap_are_a_coincidence() {
        assert_eq!(together(&[peak(0, 100, 0, "a"), peak(50, 100, 1, "b")]), None);
    }

    #[test]
    fn what_is_unexplained_is_no_common_cause() {
        let lost = |at_ns, cpu| Brief {
            cause: Cause::Unexplained,
            ..peak(at_ns, 100, cpu, "events overwritten before they were read")
        };
        assert_eq!(together(&[lost(0, 0), lost(50, 1)]), None);
        let found = together(&[lost(0, 0), peak(1, 9, 0, "a"), peak(2, 9, 1, "a"), lost(50, 1)]);
        let found = found.unwrap();
        assert_eq!((found.name.as_str(), found.peaks, found.share), ("a", 2, 0.5));
    }

    #[test]
    fn one_cpu_alone_and_no_peaks_are_nothing() {
        assert_eq!(together(&[]), None);
        assert_eq!(together(&[peak(0, 100, 0, "a"), peak(10, 100, 0, "a")]), None);
        assert_eq!(together(&[peak(0, i64::MIN, 0, "a"), peak(i64::MAX, i64::MAX, 1, "a")]), None);
    }
}
