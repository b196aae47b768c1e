//! When each repeat is measured: in rounds of one repeat of each figure, so that a change of the
//! machine meets all of them alike.

use crate::probes::Schedule;

/// The least time of a repeat, if there is time for it, ns.
const REPEAT_NS: i64 = 50_000_000;

/// The least and the greatest number of repeats, if the time is given.
const FEWEST: i64 = 3;
const MOST: i64 = 100;

/// The repeats of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rounds {
    start_ns: i64,
    end_ns: i64,
    figures: i64,
    /// How many rounds; `u64::MAX` for no end.
    pub rounds: u64,
    slice_ns: i64,
}

impl Rounds {
    /// For `figures` metrics, at least one: the time is shared out evenly.
    pub(super) fn new(schedule: &Schedule, figures: usize) -> Self {
        let (start_ns, end_ns) = (schedule.start_ns, schedule.end_ns);
        let figures = i64::try_from(figures).unwrap_or(i64::MAX).max(1);
        let (rounds, slice_ns) = if end_ns == i64::MAX {
            (schedule.samples, REPEAT_NS)
        } else {
            let whole_ns = (end_ns - start_ns).max(0);
            let rounds = (whole_ns / (figures * REPEAT_NS)).clamp(FEWEST, MOST);
            (rounds.unsigned_abs(), (whole_ns / (figures * rounds)).max(1))
        };
        Self { start_ns, end_ns, figures, rounds, slice_ns }
    }

    /// Until when the repeat number `place` of a round is measured that begins now, ns. One that
    /// comes late has a part of its time nevertheless.
    pub(super) fn until_ns(&self, round: u64, place: usize, now_ns: i64) -> i64 {
        let before = i64::try_from(round).unwrap_or(i64::MAX).saturating_mul(self.figures);
        let slices = before.saturating_add(i64::try_from(place).unwrap_or(i64::MAX) + 1);
        let due_ns = self.start_ns.saturating_add(slices.saturating_mul(self.slice_ns));
        if self.end_ns == i64::MAX {
            return now_ns + self.slice_ns;
        }
        due_ns.max(now_ns + self.slice_ns / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(duration_ns: Option<i64>, samples: u64) -> Schedule {
        Schedule {
            warmup_ns: 0,
            start_ns: 1_000,
            end_ns: duration_ns.map_or(i64::MAX, |ns| 1_000 + ns),
            samples,
            stop_over_ns: i64::MAX,
        }
    }

    #[test]
    fn the_time_is_shared_out_evenly_and_used_up() {
        for (seconds, figures, rounds) in [(60, 40, 30), (1, 40, 3), (3_600, 1, 100), (10, 4, 50)] {
            let ns = seconds * 1_000_000_000;
            let plan = Rounds::new(&schedule(Some(ns), u64::MAX), figures);
            assert_eq!(plan.rounds, rounds, "{seconds} s for {figures}");
            assert_eq!(plan.until_ns(0, 0, 0), 1_000 + plan.slice_ns);
            let last = plan.until_ns(rounds - 1, figures - 1, 0);
            assert!((0..figures as i64 * 100).contains(&(1_000 + ns - last)), "{last}");
        }
    }

    #[test]
    fn a_late_repeat_has_a_part_of_its_time_and_a_run_without_an_end_its_usual_one() {
        let plan = Rounds::new(&schedule(Some(6_000_000_000), u64::MAX), 1);
        let now = 5_990_000_000;
        assert_eq!(plan.until_ns(0, 0, now), now + plan.slice_ns / 4);
        let plan = Rounds::new(&schedule(None, 7), 3);
        assert_eq!((plan.rounds, plan.until_ns(5, 2, 100)), (7, 100 + REPEAT_NS));
        assert_eq!(Rounds::new(&schedule(None, u64::MAX), 3).rounds, u64::MAX);
    }
}
