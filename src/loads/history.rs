//! How many operations a load had done by when: a curve in bounded memory. Pure.

use super::protocol::Progress;

/// Points kept at most.
const POINTS_MAX: usize = 2000;

/// The curve. Counts only grow, so leaving every second point out merges the two intervals that
/// met in it and loses nothing else.
#[derive(Debug, Clone)]
pub struct History {
    points: Vec<Progress>,
    /// The newest point; also in `points` when it was its turn.
    last: Option<Progress>,
    /// Every how many-th point is kept.
    stride: u32,
    /// Points until the next one that is kept.
    skip: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { points: Vec::new(), last: None, stride: 1, skip: 0 }
    }
}

impl History {
    /// Adds a point; one that goes back in time or in count is left out.
    pub fn push(&mut self, point: Progress) {
        let goes_on = self.last.is_none_or(|last| {
            point.monotonic_ns > last.monotonic_ns && point.operations >= last.operations
        });
        if !goes_on {
            return;
        }
        self.last = Some(point);
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.points.push(point);
        self.skip = self.stride - 1;
        if self.points.len() >= POINTS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        // The first point, the zero, must stay; so the newest goes, and with the skip as it is the
        // next point comes in its own turn: the steps stay even.
        let mut index = 0;
        self.points.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride = self.stride.saturating_mul(2);
    }

    /// The newest point.
    #[must_use]
    pub fn last(&self) -> Option<Progress> {
        self.last
    }

    /// All points that are left, oldest first, the newest among them.
    #[must_use]
    pub fn points(&self) -> Vec<Progress> {
        let newest = self.last.filter(|last| self.points.last() != Some(last));
        self.points.iter().copied().chain(newest).collect()
    }

    /// Operations done by that moment, ns of `CLOCK_MONOTONIC`: on the line between two points, 0
    /// before the first, the newest count after the last. `None` without any point.
    #[must_use]
    pub fn operations_at(&self, monotonic_ns: i64) -> Option<u64> {
        let last = self.last?;
        let after = self.points.partition_point(|point| point.monotonic_ns <= monotonic_ns);
        let Some(from) = after.checked_sub(1).and_then(|before| self.points.get(before)) else {
            return Some(0);
        };
        let to = self.points.get(after).unwrap_or(&last);
        Some(between(*from, *to, monotonic_ns))
    }
}

/// In 128 bits without a sign, which hold the product of any two differences of 64 bits.
fn between(from: Progress, to: Progress, monotonic_ns: i64) -> u64 {
    let since_from = |moment: i64| u128::from(moment.abs_diff(from.monotonic_ns));
    if monotonic_ns >= to.monotonic_ns {
        return to.operations;
    }
    let grown = u128::from(to.operations.saturating_sub(from.operations));
    // The caller's moment lies before `to` and not before `from`, so `to` is not `from`.
    let grown = grown * since_from(monotonic_ns) / since_from(to.monotonic_ns).max(1);
    from.operations.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(monotonic_ns: i64, operations: u64) -> Progress {
        Progress { monotonic_ns, operations }
    }

    #[test]
    fn operations_lie_on_the_line_between_two_points() {
        let mut history = History::default();
        assert_eq!(history.operations_at(5), None);
        history.push(at(100, 0));
        history.push(at(200, 50));
        history.push(at(300, 50));
        history.push(at(400, 90));
        let read: Vec<_> = [0, 100, 150, 199, 200, 250, 350, 400, 999]
            .into_iter()
            .filter_map(|moment| history.operations_at(moment))
            .collect();
        assert_eq!(read, [0, 0, 25, 49, 50, 50, 70, 90, 90]);
    }

    #[test]
    fn the_widest_differences_do_not_overflow() {
        let mut history = History::default();
        history.push(at(i64::MIN, 0));
        history.push(at(i64::MAX, u64::MAX));
        assert_eq!(history.operations_at(i64::MAX - 1), Some(u64::MAX - 1));
        assert_eq!(history.operations_at(0), Some(1 << 63));
    }

    #[test]
    fn a_point_that_goes_back_is_left_out() {
        let mut history = History::default();
        for point in [at(100, 5), at(100, 9), at(90, 9), at(110, 4)] {
            history.push(point);
        }
        assert_eq!(history.points(), [at(100, 5)]);
    }

    #[test]
    fn a_day_fits_and_keeps_its_ends() {
        let mut history = History::default();
        let ticks: i64 = 24 * 3600 * 4;
        for tick in 0..=ticks {
            history.push(at(tick * 250_000_000, tick.unsigned_abs() * 1000));
        }
        let points = history.points();
        assert!(points.len() <= POINTS_MAX && points.len() >= POINTS_MAX / 2, "{}", points.len());
        assert_eq!(points.first(), Some(&at(0, 0)));
        assert_eq!(points.last(), Some(&at(ticks * 250_000_000, ticks.unsigned_abs() * 1000)));
        let steps: Vec<_> =
            points.windows(2).map(|two| two[1].monotonic_ns - two[0].monotonic_ns).collect();
        assert!(steps[..steps.len() - 1].iter().all(|&step| step == steps[0]), "even steps");
        assert_eq!(history.operations_at(12 * 3600 * 1_000_000_000), Some(12 * 3600 * 4000));
    }

    proptest! {
        #[test]
        fn it_never_panics_and_never_falls(
            points in prop::collection::vec((any::<i64>(), any::<u64>()), 0..50),
            mut moments in prop::collection::vec(any::<i64>(), 2..20),
        ) {
            let mut history = History::default();
            for (moment, operations) in points {
                history.push(at(moment, operations));
            }
            moments.sort_unstable();
            let read: Vec<_> = moments.iter().map(|&m| history.operations_at(m)).collect();
            prop_assert!(read.is_sorted());
        }
    }
}
