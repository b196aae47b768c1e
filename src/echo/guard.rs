//! Notices a peer whose real-time thread hardly ever sleeps: a stream of bytes that is always
//! there. Such a thread would have its CPU for itself until the kernel throttles it, 950 ms of
//! every second.

use std::time::{Duration, Instant};

/// How long a thread may run while it hardly sleeps. A message takes some 10 us, and between two
/// messages an honest peer's thread sleeps.
const AWAKE: Duration = Duration::from_millis(200);

/// A thread that sleeps more seldom hardly does.
const SLEEP_EVERY: Duration = Duration::from_millis(10);

/// Looks that come sooner are none: whoever knocks at the door makes the echo look.
const LOOK: Duration = Duration::from_millis(40);

/// What is known of a thread from one look to the next.
#[derive(Debug, Default)]
pub(super) struct SleepGuard {
    /// The last look, and the thread's CPU time then.
    last: Option<(Instant, Duration)>,
    /// Since when it has run most of the time and hardly slept, and how often it had slept by the
    /// last look.
    awake: Option<(Instant, u64)>,
}

impl SleepGuard {
    /// Whether a thread that has used so much CPU time at `now` has run for too long with hardly a
    /// sleep: most of the time, for a thread that waits for its CPU does not run. `sleeps` says
    /// how often it has slept; that takes files of `/proc`, and is asked of a busy thread alone.
    pub(super) fn is_awake_too_long(
        &mut self,
        used: Duration,
        now: Instant,
        sleeps: impl FnOnce() -> Option<u64>,
    ) -> bool {
        let Some((then, before)) = self.last else {
            self.last = Some((now, used));
            return false;
        };
        let passed = now.saturating_duration_since(then);
        if passed < LOOK {
            return false;
        }
        self.last = Some((now, used));
        let is_busy = used.saturating_sub(before) * 2 >= passed;
        let Some(slept) = is_busy.then(sleeps).flatten() else {
            self.awake = None;
            return false;
        };
        let enough = passed.as_millis() / SLEEP_EVERY.as_millis();
        let hardly = |known| u128::from(slept.saturating_sub(known)) < enough;
        let since = match self.awake {
            Some((since, known)) if hardly(known) => since,
            _ => now,
        };
        self.awake = Some((since, slept));
        now - since >= AWAKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a thread is noticed within a second that every 50 ms has used and slept so much
    /// more, with looks so far apart.
    fn is_noticed(cpu_ms: u32, sleeps: u64, look: Duration) -> bool {
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        let looks = Duration::from_secs(1).as_millis() / look.as_millis();
        (0..looks as u32).any(|number| {
            let passed = look * number;
            let periods = passed.as_millis() / 50;
            let used = passed * cpu_ms / 50;
            guard.is_awake_too_long(used, start + passed, || Some(periods as u64 * sleeps))
        })
    }

    #[test]
    fn a_thread_that_hardly_sleeps_is_noticed_and_one_that_does_or_waits_is_not() {
        // Strangers at the door make it look more often.
        for look in [50, 7, 1].map(Duration::from_millis) {
            let is_noticed = |cpu_ms, sleeps| is_noticed(cpu_ms, sleeps, look);
            assert!(is_noticed(50, 0) && is_noticed(30, 0) && is_noticed(49, 1), "{look:?}");
            assert!(!is_noticed(45, 10), "busy, and asleep now and then: {look:?}");
            assert!(!is_noticed(0, 0), "asleep all the time: {look:?}");
            assert!(!is_noticed(20, 0), "it waits for its CPU, which others have: {look:?}");
        }
    }
}
