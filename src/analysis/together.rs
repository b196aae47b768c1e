//! Peaks that hit several CPUs at once: what is late together has one cause, or one host.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::run::{peaks::Cause, peaks_file::Brief};

/// How often several CPUs were late at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Together {
    /// Moments at which at least two CPUs were late.
    pub times: u64,
    /// Peaks that were part of one.
    pub peaks: u64,
    /// Their share of all peaks, 0 to 1.
    pub share: f64,
    /// The most CPUs that were late at once.
    pub most_cpus: u32,
    /// What most of their time was blamed on, each peak by its largest part.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Peaks among them whose largest part that was.
    pub of_cause: u64,
}

/// Peaks whose late intervals overlap on at least two CPUs; `peaks` must be sorted by time.
/// Nothing where there are none, as of peaks without a time.
#[must_use]
pub fn together(peaks: &[Brief]) -> Option<Together> {
    let mut found = Found::default();
    let mut group: Vec<&Brief> = Vec::new();
    let mut end_ns = i64::MIN;
    for (at_ns, peak) in peaks.iter().filter_map(|peak| Some((peak.at_ns?, peak))) {
        if at_ns > end_ns {
            found.close(&group);
            group.clear();
            end_ns = i64::MIN;
        }
        end_ns = end_ns.max(at_ns.saturating_add(peak.latency_ns.max(0)));
        group.push(peak);
    }
    found.close(&group);
    found.sum(peaks.len())
}

#[derive(Default)]
struct Found<'a> {
    times: u64,
    peaks: u64,
    most_cpus: u32,
    /// By cause: their latencies, and how many they are.
    causes: BTreeMap<(Cause, &'a str), (i64, u64)>,
}

impl<'a> Found<'a> {
    fn close(&mut self, group: &[&'a Brief]) {
        let mut cpus: Vec<u32> = group.iter().map(|peak| peak.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.len() < 2 {
            return;
        }
        self.times += 1;
        self.peaks += group.len() as u64;
        self.most_cpus = self.most_cpus.max(cpus.len() as u32);
        for peak in group {
            let sum = self.causes.entry((peak.cause, &peak.name)).or_default();
            *sum = (sum.0.saturating_add(peak.latency_ns), sum.1 + 1);
        }
    }

    fn sum(self, of: usize) -> Option<Together> {
        let sums = self.causes.into_iter();
        let most = sums.max_by_key(|(cause, (ns, _))| (*ns, Reverse(*cause)));
        let ((cause, name), (_, of_cause)) = most?;
        Some(Together {
            times: self.times,
            peaks: self.peaks,
            share: self.peaks as f64 / of.max(1) as f64,
            most_cpus: self.most_cpus,
            cause,
            name: name.to_owned(),
            of_cause,
        })
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
            peak(1_000, 100, 0, "c"),
            peak(2_000, 100, 3, "d"),
            peak(2_090, 100, 3, "d"),
            peak(3_000, 5, 0, "b"),
            peak(3_005, 5, 1, "b"),
        ];
        let found = together(&peaks).unwrap();
        assert_eq!((found.times, found.peaks, found.most_cpus), (2, 5, 3));
        assert_eq!((found.name.as_str(), found.of_cause, found.share), ("b", 4, 0.625));
    }

    #[test]
    fn one_cpu_alone_and_no_peaks_are_nothing() {
        assert_eq!(together(&[]), None);
        assert_eq!(together(&[peak(0, 100, 0, "a"), peak(10, 100, 0, "a")]), None);
        assert_eq!(together(&[peak(0, i64::MIN, 0, "a"), peak(i64::MAX, i64::MAX, 1, "a")]), None);
    }
}
