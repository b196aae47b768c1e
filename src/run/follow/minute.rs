//! The largest latency of each of the last seconds.

use std::collections::VecDeque;

/// The number of seconds that are kept.
pub const SECONDS: usize = 60;

/// Longer intervals are drawn over all seconds that they touch, s; shorter ones over that of their
/// middle, so that one which begins a little early is in one second, not in two.
const LONG_S: f64 = 1.5;

/// The largest latency in ns of each of the last [`SECONDS`] seconds of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastMinute {
    /// The second of the last cell, from the start of the run.
    newest: i64,
    /// Oldest first; `None` if no sample came.
    cells: VecDeque<Option<i64>>,
}

impl LastMinute {
    /// Notes that the largest latency between two moments, s, was `largest_ns`; `None` if none
    /// came. What is older than a minute is skipped.
    pub(super) fn note(&mut self, from_s: f64, to_s: f64, largest_ns: Option<i64>) {
        let (first, last) = if to_s - from_s > LONG_S {
            (from_s.floor() as i64, to_s.ceil() as i64 - 1)
        } else {
            let middle = (from_s.midpoint(to_s)).floor() as i64;
            (middle, middle)
        };
        self.advance(last);
        let oldest = self.newest - SECONDS as i64 + 1;
        for second in first.max(oldest)..=last.min(self.newest) {
            let at = usize::try_from(second - oldest).ok();
            if let Some(cell) = at.and_then(|at| self.cells.get_mut(at)) {
                *cell = (*cell).max(largest_ns);
            }
        }
    }

    /// Continues to this second.
    pub(super) fn advance(&mut self, second: i64) {
        let second = second.max(0);
        if self.cells.is_empty() {
            (self.newest, self.cells) = (second, VecDeque::from([None; SECONDS]));
        }
        // From one gap of a minute on all are without a sample.
        let steps = (second - self.newest).clamp(0, SECONDS as i64);
        for _ in 0..steps {
            self.cells.pop_front();
            self.cells.push_back(None);
        }
        self.newest = self.newest.max(second);
    }

    /// The cells up to this second of the run, oldest first.
    #[must_use]
    pub fn until(&self, second: i64) -> Vec<Option<i64>> {
        let mut moved = self.clone();
        moved.advance(second);
        moved.cells.into()
    }

    /// The largest of the last second that had samples, of this one and the one before.
    #[must_use]
    pub fn now(&self, second: i64) -> Option<i64> {
        let cells = self.until(second);
        cells.iter().rev().take(2).find_map(|cell| *cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_largest_and_old_ones_go() {
        let mut minute = LastMinute::default();
        minute.note(0.1, 0.2, Some(5));
        minute.note(0.2, 0.3, Some(9));
        minute.note(0.3, 0.4, Some(7));
        minute.note(0.996, 2.004, Some(4));
        assert_eq!(minute.until(1)[58..], [Some(9), Some(4)]);
        minute.note(3.0, 4.0, None);
        assert_eq!(minute.until(3)[56..], [Some(9), Some(4), None, None]);
        assert_eq!((minute.now(1), minute.now(3)), (None, None));
        assert_eq!(minute.until(61)[..2], [None, None]);
        assert_eq!(minute.until(60)[..2], [Some(4), None]);
    }

    #[test]
    fn a_long_interval_covers_all_its_seconds() {
        let mut minute = LastMinute::default();
        minute.note(0.0, 86.4, Some(3));
        minute.note(86.4, 90.0, Some(8));
        let cells = minute.until(89);
        assert_eq!(
            (cells[0], cells[55], cells[56], cells[59]),
            (Some(3), Some(3), Some(8), Some(8))
        );
        assert_eq!(minute.now(90), Some(8));
        assert_eq!(minute.now(91), None);
        minute.note(1e6, 1e6 + 1.0, Some(2));
        assert_eq!(minute.until(1_000_000).iter().flatten().count(), 1);
        minute.note(f64::NAN, f64::INFINITY, Some(1));
        assert_eq!(minute.until(0).len(), SECONDS, "nonsense in a log does not panic");
    }
}
