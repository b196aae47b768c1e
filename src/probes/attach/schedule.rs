//! How an attached thread kept the period of its timers.

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    WarmUp,
    Measuring,
    Over,
}

/// The view per period adds those that were missed to the wake-ups, which must be one for each of
/// the others: more than one in this number, beside a few from before it was found, are not.
const OTHERS: u64 = 16;
const FEW: u64 = 16;

/// The period of a thread's timers, ns, how many had an expiry that woke it, how many had none, and
/// of how many that is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScheduleKept {
    pub(super) period_ns: i64,
    pub(super) met: u64,
    pub(super) missed: u64,
    pub(super) unsure: u64,
    /// It was another period before, by which the counts of that time are.
    pub(super) changed: bool,
}

impl ScheduleKept {
    /// With what was kept before, in all.
    pub(super) fn plus(&self, before: &Self) -> Self {
        Self {
            period_ns: self.period_ns,
            met: self.met + before.met,
            missed: self.missed + before.missed,
            unsure: self.unsure + before.unsure,
            changed: self.changed || before.changed,
        }
    }

    /// Whether the wake-ups by its own timers are those of its periods, and no other ones: else
    /// these and the missed periods are together no count of periods. Nor are they of two periods.
    pub(super) fn is_of(&self, by_own: u64) -> bool {
        !self.changed && by_own <= self.met + self.met / OTHERS + FEW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_timer_is_no_part_of_the_schedule() {
        let kept = ScheduleKept { met: 1_000, ..ScheduleKept::default() };
        assert_eq!(
            [1_000, 1_050, 1_300, 2_000].map(|by| kept.is_of(by)),
            [true, true, false, false]
        );
        assert!(!ScheduleKept { changed: true, ..kept }.is_of(1_000));
        // The first expiry follows none.
        assert!(ScheduleKept { met: 3, ..kept }.is_of(4));
    }
}
