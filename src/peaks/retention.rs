//! Which late wake-ups are kept whole.

use std::{cmp::Reverse, collections::BinaryHeap};

/// So many times the peaks that were asked for are admitted; after that only a new worst one is.
const MOST_TIMES: usize = 50;

/// Admits the worst so far.
#[derive(Debug)]
pub(crate) struct WorstPeaks {
    /// How many were asked for.
    wanted: usize,
    /// All over this are kept, however many.
    over_ns: Option<i64>,
    /// The worst so far, the least of them on top.
    worst: BinaryHeap<Reverse<i64>>,
    admitted: usize,
    worst_ns: i64,
}

impl WorstPeaks {
    /// Keeps the `wanted` worst, or all over `over_ns`.
    #[must_use]
    pub(crate) fn new(wanted: usize, over_ns: Option<i64>) -> Self {
        Self { wanted, over_ns, worst: BinaryHeap::new(), admitted: 0, worst_ns: 0 }
    }

    /// Whether such a latency would be kept now; `least_ns` is the thread's own lowest threshold.
    #[must_use]
    pub(crate) fn would_take(&self, latency_ns: i64, least_ns: i64) -> bool {
        if let Some(over_ns) = self.over_ns {
            return latency_ns > over_ns;
        }
        if self.wanted == 0 || latency_ns <= least_ns {
            return false;
        }
        if self.admitted >= self.wanted.saturating_mul(MOST_TIMES) {
            return latency_ns > self.worst_ns;
        }
        self.worst.len() < self.wanted
            || self.worst.peek().is_some_and(|Reverse(least)| latency_ns > *least)
    }

    /// Whether fewer were admitted than asked for.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.worst.len() < self.wanted
    }

    /// Takes one that is kept.
    pub(crate) fn take(&mut self, latency_ns: i64) {
        self.admitted += 1;
        self.worst_ns = self.worst_ns.max(latency_ns);
        if self.over_ns.is_none() {
            self.worst.push(Reverse(latency_ns));
            if self.worst.len() > self.wanted {
                self.worst.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_so_far_are_kept_and_the_threshold_only_rises() {
        let mut keep = WorstPeaks::new(2, None);
        let mut kept = Vec::new();
        for latency in [10, 60, 70, 50, 80, 65, 90] {
            if keep.would_take(latency, 20) {
                keep.take(latency);
                kept.push(latency);
            }
        }
        assert_eq!(kept, [60, 70, 80, 90]);
    }

    #[test]
    fn over_a_fixed_threshold_all_are_kept() {
        let mut keep = WorstPeaks::new(1, Some(50));
        for latency in [60, 51, 55] {
            assert!(keep.would_take(latency, 1000));
            keep.take(latency);
        }
        assert!(!keep.would_take(50, 0));
    }

    #[test]
    fn admissions_are_bounded_but_for_new_maxima() {
        let mut keep = WorstPeaks::new(1, None);
        for latency in 1..=100 {
            assert!(keep.would_take(latency, 0));
            keep.take(latency);
        }
        assert!(!keep.would_take(100, 0));
        assert!(keep.would_take(101, 0));
    }
}
