//! Notices a peer whose real-time thread hardly ever sleeps: a stream of bytes that is always
//! there. Such a thread would have its CPU for itself until the kernel throttles it, 950 ms of
//! every second.

use std::time::{Duration, Instant};

/// How long a thread may run while it hardly sleeps. A message takes some 10 us, and between two
/// messages an honest peer's thread sleeps.
const AWAKE: Duration = Duration::from_millis(200);

/// A thread that sleeps more seldom hardly does.
const SLEEP_EVERY: Duration = Duration::from_millis(10);

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
        let Some((then, before)) = self.last.replace((now, used)) else { return false };
        let passed = now.saturating_duration_since(then);
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

    /// Whether a thread is noticed that at each look, 50 ms apart, has used and slept so much more.
    fn is_noticed(cpu_ms: u32, sleeps: u64) -> bool {
        let (mut guard, start) = (SleepGuard::default(), Instant::now());
        (0..20_u32).any(|look| {
            let used = Duration::from_millis(1) * cpu_ms * look;
            let now = start + Duration::from_millis(50) * look;
            guard.is_awake_too_long(used, now, || Some(u64::from(look) * sleeps))
        })
    }

    #[test]
    fn a_thread_that_hardly_sleeps_is_noticed_and_one_that_does_or_waits_is_not() {
        assert!(is_noticed(50, 0) && is_noticed(30, 0) && is_noticed(49, 1));
        assert!(!is_noticed(45, 5), "busy, and asleep now and then");
        assert!(!is_noticed(0, 0), "asleep all the time");
        assert!(!is_noticed(20, 0), "it waits for its CPU, which others have");
    }
}
