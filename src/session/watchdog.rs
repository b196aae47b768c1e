//! The watchdog: measured threads of real-time policy that never sleep would keep every CPU for
//! themselves, and the run could not be ended. A thread of higher priority notices and ends it.
//!
//! There is one only where the measured CPUs are all that this process has: elsewhere the thread
//! that conducts the run has a CPU that no measured thread takes. It wakes once a second, for a few
//! us, right after an expiry; without a schedule, on no multiple of any interval in use. Silence
//! alone proves nothing, as a guest whose host has no time for it is silent, too: it counts only
//! while the measured threads use half of a CPU or more.
//!
//! No thread is above one of priority 99. Where measured threads were given that, each second the
//! kernel lets the one that does not sleep look for itself ([`AwakeLimit`]). Not where there is
//! another CPU: the conductor ends the run from there, at any priority, and the signal would only
//! disturb threads that spin on purpose.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use tardy_hot::{clock::now_ns, stop::Stop};

use super::{
    cadence::Cadence,
    evidence::{NoHigherPriority, WatchdogEnd},
};
use crate::{
    run::OsError,
    sys::{
        notifier::Notifier,
        sched::{self, Policy},
        silence::{AwakeLimit, Silence},
        usage::thread_cpu_time,
    },
};

/// A second, and a little more. So if measured threads have no schedule, its wake-ups drift through
/// their period instead of meeting them time after time.
const TICK_NS: i64 = 1_000_371_700;

/// When it wakes up, and whom.
#[derive(Debug)]
pub(super) struct WakeTimes {
    /// What it keeps to.
    pub cadence: Cadence,
    /// Wakes the conducting thread, which has no timer and answers with a sign of life.
    pub bell: Notifier,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Watchdog {
    silence: Arc<Silence>,
    finished: Arc<AtomicBool>,
    handle: JoinHandle<()>,
    /// What stands in for it where it cannot be above the measured threads.
    limit: Option<io::Result<AwakeLimit>>,
}

impl Watchdog {
    /// Starts it above measured threads `tids` of priority `measured`, and returns once it is
    /// there.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(
        measured: u32,
        stop: &Arc<Stop>,
        tids: Vec<i32>,
        wakes: WakeTimes,
    ) -> io::Result<Self> {
        let silence = Arc::new(Silence::new(stop, tids));
        let limit = (measured >= sched::HIGHEST).then(|| AwakeLimit::set(&silence));
        let finished = Arc::new(AtomicBool::new(false));
        let own = (Arc::clone(&silence), Arc::clone(&finished));
        let (ready, is_ready) = mpsc::channel();
        let handle = Builder::new().name("tardy/watchdog".into()).spawn(move || {
            // Among equals of the highest priority it gets its turn only if one of them sleeps.
            let priority = (measured + 1).min(sched::HIGHEST);
            let has_risen = sched::set_this_thread(Policy::Fifo, priority).is_ok();
            let _ = ready.send(());
            if has_risen {
                watch(&own.0, &wakes, &own.1);
            }
        })?;
        // A thread that dies before its word closes the channel.
        let _ = is_ready.recv();
        Ok(Self { silence, finished, handle, limit })
    }

    /// That it is not above the measured threads, if it is not.
    pub(super) fn nothing_above(&self) -> Option<NoHigherPriority> {
        let unbounded = self.limit.as_ref()?.as_ref().err().map(OsError::from);
        Some(NoHigherPriority { unbounded })
    }

    /// A sign of life.
    pub(super) fn beat(&self) {
        self.silence.beat();
    }

    /// Ends it, and says whether it had to end the run.
    #[must_use]
    pub(super) fn finish(self) -> Option<WatchdogEnd> {
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        // It holds nothing that matters if it died.
        let _ = self.handle.join();
        end(&self.silence)
    }
}

fn watch(silence: &Silence, wakes: &WakeTimes, finished: &AtomicBool) {
    let mut usage = Usage::since(now_ns(), cpu_time(silence.tids()));
    while !finished.load(Ordering::Acquire) {
        let now = now_ns();
        let pause_ns = wakes.cadence.after(now + TICK_NS) - now;
        std::thread::park_timeout(Duration::from_nanos(pause_ns.unsigned_abs()));
        silence.look(usage.is_half_a_cpu(now_ns(), cpu_time(silence.tids())));
        wakes.bell.ring();
    }
}

fn end(silence: &Silence) -> Option<WatchdogEnd> {
    let (silent_s, made_ordinary) = silence.ended()?;
    Some(WatchdogEnd { silent_s, made_ordinary })
}

/// CPU time of these threads so far, together.
fn cpu_time(tids: &[i32]) -> Duration {
    tids.iter().filter_map(|tid| thread_cpu_time(*tid)).sum()
}

/// How much CPU time the measured threads use from one look to the next.
struct Usage {
    looked_ns: i64,
    used: Duration,
}

impl Usage {
    const fn since(now_ns: i64, used: Duration) -> Self {
        Self { looked_ns: now_ns, used }
    }

    /// Whether they used half of the time of one CPU since the last look; `used` is their total by
    /// now.
    fn is_half_a_cpu(&mut self, now_ns: i64, used: Duration) -> bool {
        let passed = Duration::from_nanos((now_ns - self.looked_ns).max(0).unsigned_abs());
        // One that ended meanwhile takes what it used away with it.
        let since = used.saturating_sub(self.used);
        *self = Self::since(now_ns, used);
        since >= passed / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fate of threads that use `used_ms` of each second, and the look after which it comes, if
    /// somebody gives `signs` signs of life before each.
    fn ended_after(used_ms: u64, signs: u32) -> Option<(u32, WatchdogEnd)> {
        let stop = Arc::new(Stop::new());
        let silence = Silence::new(&stop, Vec::new());
        let mut usage = Usage::since(7, Duration::from_millis(3));
        (1..=10_u32).find_map(|look| {
            (0..signs).for_each(|_| silence.beat());
            let used = Duration::from_millis(3) + Duration::from_millis(used_ms) * look;
            silence.look(usage.is_half_a_cpu(7 + 1_000_000_000 * i64::from(look), used));
            assert_eq!(stop.is_set(), end(&silence).is_some());
            Some((look, end(&silence)?))
        })
    }

    #[test]
    fn silence_beside_busy_threads_sets_the_flag_and_else_nothing_does() {
        let end = |silent_s| WatchdogEnd { silent_s, made_ordinary: false };
        assert_eq!(ended_after(1_000, 0), Some((3, end(3))));
        assert_eq!(ended_after(500, 0), Some((3, end(3))));
        assert_eq!(ended_after(499, 0), None, "they sleep, or the host has no time for them");
        assert_eq!([ended_after(1_000, 1), ended_after(0, 0)], [None, None]);
    }

    #[test]
    fn a_thread_that_has_ended_takes_its_cpu_time_with_it() {
        let mut usage = Usage::since(0, Duration::from_secs(9));
        assert!(!usage.is_half_a_cpu(1_000_000_000, Duration::from_secs(2)));
        assert!(usage.is_half_a_cpu(2_000_000_000, Duration::from_millis(2_500)));
    }
}
