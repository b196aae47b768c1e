//! The share of a CPU that a background thread takes, and its longest uninterrupted work: an
//! ordinary thread that is measured on the same CPU may have to wait that long.

use std::time::Duration;

use crate::{
    run::HelperTime,
    sys::{sched::thread_id, usage::thread_cpu_time},
};

/// The CPU time of one thread, as it asked for it itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelperUse {
    first: Duration,
    /// Where the stretch in progress began.
    since: Duration,
    last: Duration,
    longest: Duration,
}

impl HelperUse {
    /// Of the calling thread, from now on.
    pub(super) fn begin() -> Self {
        Self::at(used())
    }

    const fn at(now: Duration) -> Self {
        Self { first: now, since: now, last: now, longest: Duration::ZERO }
    }

    /// The calling thread is about to sleep.
    pub(super) fn rest(&mut self) {
        self.rest_at(used());
    }

    fn rest_at(&mut self, now: Duration) {
        self.longest = self.longest.max(now.saturating_sub(self.since));
        (self.since, self.last) = (now, now);
    }

    /// The calling thread continues without a rest.
    pub(super) fn go_on(&mut self) {
        self.last = used();
    }

    /// The calling thread goes to work, after looks at the clock that were too short to count.
    pub(super) fn work(&mut self) {
        self.last = used();
        self.since = self.last;
    }

    /// What it took up to its last rest; what came since was after the measured time.
    pub(super) fn of(&self, thread: &str) -> HelperTime {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        HelperTime {
            thread: thread.into(),
            cpu_ns: ns(self.last.saturating_sub(self.first)),
            longest_ns: ns(self.longest),
        }
    }
}

fn used() -> Duration {
    thread_cpu_time(thread_id()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_rests_is_a_stretch_and_the_end_is_in_none() {
        let ms = Duration::from_millis;
        let mut used = HelperUse::at(ms(100));
        for at in [101, 105, 107] {
            used.rest_at(ms(at));
        }
        let of = used.of("tardy/drain");
        assert_eq!(
            (of.thread.as_str(), of.cpu_ns, of.longest_ns),
            ("tardy/drain", 7_000_000, 4_000_000)
        );
    }

    #[test]
    fn a_thread_that_works_has_used_time() {
        let mut own = HelperUse::begin();
        let until = used() + Duration::from_millis(1);
        let mut value = 1_u64;
        while used() < until {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        own.rest();
        assert!(own.of("t").longest_ns >= 1_000_000, "{own:?}");
    }
}
