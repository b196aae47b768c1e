//! Which late wake-ups are kept whole: the worst of all, and the worst of each series.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::run::kept_peaks::OF_EACH;

/// The multiple of the requested peaks that are admitted; after that only a new worst one is.
const MOST_TIMES: usize = 50;

/// The number of peaks of one series that are admitted as its worst; after that only a new worst
/// one is.
const MOST_OF_EACH: usize = 20;

/// The number of series with separate peaks: as many names as threads can have.
const MOST_SERIES: usize = 512;

/// The worst so far, at most so many.
#[derive(Debug, Default)]
struct Worst {
    /// The least of them on top.
    least: BinaryHeap<Reverse<i64>>,
    admitted: usize,
    worst_ns: i64,
}

impl Worst {
    /// Whether it would be among the `wanted` worst; after `most` only a new worst one is.
    fn would_take(&self, latency_ns: i64, wanted: usize, most: usize) -> bool {
        if self.admitted >= most {
            return latency_ns > self.worst_ns;
        }
        self.least.len() < wanted
            || self.least.peek().is_some_and(|Reverse(least)| latency_ns > *least)
    }

    fn take(&mut self, latency_ns: i64, wanted: usize) {
        self.admitted += 1;
        self.worst_ns = self.worst_ns.max(latency_ns);
        self.least.push(Reverse(latency_ns));
        if self.least.len() > wanted {
            self.least.pop();
        }
    }
}

/// Admits the worst so far, of all and of each series.
#[derive(Debug)]
pub(crate) struct WorstPeaks {
    /// How many were asked for.
    wanted: usize,
    /// All over this are kept, however many.
    over_ns: Option<i64>,
    all: Worst,
    of_each: HashMap<String, Worst>,
}

impl WorstPeaks {
    /// Keeps the `wanted` worst and those of each series, or all over `over_ns`.
    #[must_use]
    pub(crate) fn new(wanted: usize, over_ns: Option<i64>) -> Self {
        Self { wanted, over_ns, all: Worst::default(), of_each: HashMap::new() }
    }

    /// Whether such a latency of a series would be kept now; `least_ns` is the thread's own lowest
    /// threshold.
    #[must_use]
    pub(crate) fn would_take(&self, series: &str, latency_ns: i64, least_ns: i64) -> bool {
        if let Some(over_ns) = self.over_ns {
            return latency_ns > over_ns;
        }
        if self.wanted == 0 || latency_ns <= least_ns {
            return false;
        }
        let most = self.wanted.saturating_mul(MOST_TIMES);
        self.all.would_take(latency_ns, self.wanted, most) || self.is_own(series, latency_ns)
    }

    /// Whether it is among the worst of its series.
    fn is_own(&self, series: &str, latency_ns: i64) -> bool {
        match self.of_each.get(series) {
            Some(own) => own.would_take(latency_ns, OF_EACH.min(self.wanted), MOST_OF_EACH),
            // One peak alone is the worst of all.
            None => self.wanted > 1 && self.of_each.len() < MOST_SERIES,
        }
    }

    /// Whether fewer were admitted than asked for.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.all.least.len() < self.wanted
    }

    /// Takes one that is kept.
    pub(crate) fn take(&mut self, series: &str, latency_ns: i64) {
        if self.over_ns.is_some() {
            return;
        }
        self.all.take(latency_ns, self.wanted);
        if let Some(own) = self.of_each.get_mut(series) {
            own.take(latency_ns, OF_EACH.min(self.wanted));
        } else if self.wanted > 1 && self.of_each.len() < MOST_SERIES {
            let mut own = Worst::default();
            own.take(latency_ns, OF_EACH.min(self.wanted));
            self.of_each.insert(series.to_owned(), own);
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
            if keep.would_take("a", latency, 20) {
                keep.take("a", latency);
                kept.push(latency);
            }
        }
        assert_eq!(kept, [60, 70, 80, 90]);
    }

    #[test]
    fn over_a_fixed_threshold_all_are_kept() {
        let mut keep = WorstPeaks::new(1, Some(50));
        for latency in [60, 51, 55] {
            assert!(keep.would_take("a", latency, 1000));
            keep.take("a", latency);
        }
        assert!(!keep.would_take("a", 50, 0));
    }

    #[test]
    fn admissions_are_bounded_but_for_new_maxima() {
        let mut keep = WorstPeaks::new(1, None);
        for latency in 1..=100 {
            assert!(keep.would_take("a", latency, 0));
            keep.take("a", latency);
        }
        assert!(!keep.would_take("a", 100, 0));
        assert!(keep.would_take("a", 101, 0));
    }

    #[test]
    fn a_series_whose_late_ones_are_small_beside_those_of_another_keeps_its_worst() {
        let mut keep = WorstPeaks::new(10, None);
        (0..1_000).for_each(|at| keep.take("many", 10_000 + at));
        let mut kept = Vec::new();
        for latency in [30, 20, 40, 25, 10, 50] {
            if keep.would_take("few", latency, 5) {
                keep.take("few", latency);
                kept.push(latency);
            }
        }
        assert_eq!(kept, [30, 20, 40, 25, 50]);
        assert!(!keep.would_take("few", 5, 5), "its own threshold holds");
        assert!(!keep.would_take("many", 10_500, 0));
    }

    #[test]
    fn what_series_keep_of_their_own_is_bounded() {
        let mut keep = WorstPeaks::new(100, None);
        (0..10_000).for_each(|at| keep.take("many", 1_000_000 + at));
        for at in 0..2 * MOST_SERIES {
            let series = format!("s{at}");
            for latency in 1..=30 {
                if keep.would_take(&series, latency, 0) {
                    keep.take(&series, latency);
                }
            }
        }
        assert_eq!(keep.of_each.len(), MOST_SERIES);
        assert!(keep.of_each.values().all(|own| own.least.len() <= OF_EACH));
        assert!(!keep.would_take("s0", 30, 0) && keep.would_take("s0", 31, 0));
    }
}
