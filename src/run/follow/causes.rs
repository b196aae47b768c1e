//! `blame.json`, followed: what the late samples of the last seconds were blamed on.

use std::{
    collections::{HashMap, VecDeque},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use crate::run::{
    peaks::{Blame, CauseOf},
    peaks_file::read_blame,
    writer::names,
};

/// The time that the last causes are of, where the sums are written as often, ns.
const WINDOW_NS: i64 = 10_000_000_000;

/// What late samples were blamed on between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentCauses {
    /// From when, `CLOCK_MONOTONIC` ns; `None` if it is from the start of the run.
    pub from_ns: Option<i64>,
    /// Until when, `CLOCK_MONOTONIC` ns.
    pub until_ns: i64,
    /// Late samples that were blamed then.
    pub blamed: u64,
    /// Sum of their latencies, ns.
    pub ns: u64,
    /// What they were blamed on, the largest first.
    pub sums: Vec<RecentCause>,
}

/// One cause of one series, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentCause {
    /// Whose, and which.
    pub cause: CauseOf,
    /// Late samples with such a part.
    pub samples: u64,
    /// Their parts together, ns.
    pub ns: u64,
}

/// The sums at one moment.
#[derive(Debug)]
struct Sums {
    until_ns: i64,
    blamed: u64,
    ns: u64,
    causes: HashMap<CauseOf, (u64, u64)>,
}

/// The file, and what it said in the last seconds.
#[derive(Debug, Default)]
pub(super) struct BlameLog {
    /// What tells one version of the file from another.
    seen: Option<(u64, i64, i64, u64)>,
    last: VecDeque<Sums>,
}

impl BlameLog {
    /// Reads the sums if they are others than before; what is wrong with them, if something is.
    pub(super) fn look(&mut self, directory: &Path) -> Option<String> {
        let about = std::fs::symlink_metadata(directory.join(names::BLAME)).ok()?;
        let seen = (about.ino(), about.mtime(), about.mtime_nsec(), about.size());
        if self.seen.replace(seen) == Some(seen) {
            return None;
        }
        match read_blame(directory) {
            Ok(Some(blame)) => self.take(&blame),
            Ok(None) => {}
            Err(damage) => return Some(damage.to_string()),
        }
        None
    }

    fn take(&mut self, blame: &Blame) {
        let Some(until_ns) = blame.until_ns else { return };
        let mut causes: HashMap<CauseOf, (u64, u64)> = HashMap::new();
        for (index, samples, ns) in blame.buckets.iter().flat_map(|bucket| &bucket.parts) {
            let Some(cause) = blame.causes.get(*index as usize) else { continue };
            let sum = match causes.get_mut(cause) {
                Some(sum) => sum,
                None => causes.entry(cause.clone()).or_default(),
            };
            *sum = (sum.0.saturating_add(*samples), sum.1.saturating_add(*ns));
        }
        let ns = blame.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.ns));
        self.last.push_back(Sums { until_ns, blamed: blame.blamed, ns, causes });
        // One that is as old as the window, or older, is what the rest is compared with.
        while self.last.get(1).is_some_and(|next| until_ns - next.until_ns >= WINDOW_NS) {
            self.last.pop_front();
        }
    }

    /// The causes of the last seconds; of all the run, if it was looked at once. `None` without
    /// sums yet.
    pub(super) fn recent(&self) -> Option<RecentCauses> {
        let now = self.last.back()?;
        let before = self.last.front().filter(|_| self.last.len() > 1);
        let known = |cause: &CauseOf| {
            before.and_then(|sums| sums.causes.get(cause)).copied().unwrap_or_default()
        };
        let sum = |(cause, (samples, ns)): (&CauseOf, &(u64, u64))| {
            let known = known(cause);
            RecentCause {
                cause: cause.clone(),
                samples: samples.saturating_sub(known.0),
                ns: ns.saturating_sub(known.1),
            }
        };
        let mut sums: Vec<_> = now.causes.iter().map(sum).filter(|sum| sum.ns > 0).collect();
        sums.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.cause.cmp(&b.cause)));
        Some(RecentCauses {
            from_ns: before.map(|sums| sums.until_ns),
            until_ns: now.until_ns,
            blamed: now.blamed.saturating_sub(before.map_or(0, |sums| sums.blamed)),
            ns: now.ns.saturating_sub(before.map_or(0, |sums| sums.ns)),
            sums,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, Cause, LatencyBucket};

    fn blame(until_s: i64, counts: &[(&str, u64, u64)]) -> Blame {
        let cause = |name: &str| CauseOf {
            series: "cpu0".into(),
            cause: Cause::Softirq,
            name: name.into(),
            basis: Basis::Measured,
        };
        let parts = counts.iter().enumerate();
        let parts: Vec<_> = parts.map(|(at, (_, n, ns))| (at as u32, *n, *ns)).collect();
        let (n, ns) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.1, sum.1 + one.2));
        Blame {
            until_ns: Some(until_s * 1_000_000_000),
            blamed: n,
            causes: counts.iter().map(|(name, ..)| cause(name)).collect(),
            buckets: vec![LatencyBucket { low_ns: 1, wakeups: n, ns, parts }],
            ..Blame::default()
        }
    }

    #[test]
    fn the_last_seconds_are_the_difference_of_two_sums() {
        let mut log = BlameLog::default();
        assert_eq!(log.recent(), None);
        log.take(&blame(1, &[("NET_RX", 10, 1_000)]));
        let first = log.recent().unwrap();
        assert_eq!((first.from_ns, first.blamed, first.ns), (None, 10, 1_000));
        for s in 2..=30 {
            let n = s as u64;
            log.take(&blame(s, &[("NET_RX", 10, 1_000), ("TIMER", n, 100 * n)]));
        }
        let recent = log.recent().unwrap();
        assert_eq!(recent.until_ns - recent.from_ns.unwrap(), WINDOW_NS);
        assert_eq!((recent.blamed, recent.ns, recent.sums.len()), (10, 1_000, 1));
        assert_eq!((recent.sums[0].cause.name.as_str(), recent.sums[0].samples), ("TIMER", 10));
        assert!(log.last.len() < 13, "old sums go");
    }

    #[test]
    fn sums_that_are_written_seldom_are_compared_with_the_ones_before() {
        let mut log = BlameLog::default();
        log.take(&blame(16, &[("NET_RX", 1, 100)]));
        log.take(&blame(60, &[("NET_RX", 4, 500)]));
        let recent = log.recent().unwrap();
        assert_eq!((recent.from_ns, recent.blamed, recent.ns), (Some(16_000_000_000), 3, 400));
    }
}
