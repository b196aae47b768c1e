//! The watchdog: measured threads of real-time policy that never sleep would keep every CPU for
//! themselves, and the run could not be ended. A thread of higher priority notices and ends it.
//!
//! There is one only where the measured CPUs are all that this process has: elsewhere the thread
//! that conducts the run has a CPU that no measured thread takes. It wakes once a second, for a few
//! us, right after an expiry; where there is no schedule, on no multiple of any interval in use.
//! Silence alone proves nothing, as a guest whose host has no time for it is silent, too: it counts
//! only while the measured threads use half of a CPU or more.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
        mpsc,
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use tardy_hot::{clock::now_ns, stop::Stop};

use super::{cadence::Cadence, evidence::WatchdogEnd};
use crate::sys::{
    bell::Bell,
    sched::{self, Policy},
    usage::thread_cpu_time,
};

/// A second, and so much more that where measured threads have no schedule its wake-ups drift
/// through their period instead of meeting them time after time.
const TICK_NS: i64 = 1_000_371_700;

/// So many ticks without a sign of life are too many. Rings hold 5 s.
const PATIENCE: u32 = 3;

/// What the watchdog and who is watched share.
#[derive(Debug, Default)]
struct Shared {
    /// Grows as long as the conducting thread gets to run.
    beats: AtomicU64,
    finished: AtomicBool,
    /// Ticks without a sign of life when it ended the run; 0 while it has not.
    ended_after: AtomicU32,
    made_ordinary: AtomicBool,
}

/// When it wakes up, and whom.
#[derive(Debug)]
pub(super) struct Pace {
    /// What it keeps to.
    pub cadence: Cadence,
    /// Wakes the conducting thread, which has no timer of its own and answers with a sign of life.
    pub bell: Bell,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    handle: JoinHandle<()>,
}

impl Watchdog {
    /// Starts it above measured threads `tids` of priority `measured`, and returns once it is
    /// there. The kernel's number of a thread stays its own until it is joined.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(
        measured: u32,
        stop: &Arc<Stop>,
        tids: Vec<i32>,
        pace: Pace,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (own, stop) = (Arc::clone(&shared), Arc::clone(stop));
        let (ready, is_ready) = mpsc::channel();
        let handle = Builder::new().name("tardy/watchdog".into()).spawn(move || {
            // Among equals of the highest priority it gets its turn only if one of them sleeps.
            let priority = (measured + 1).min(99);
            let has_risen = sched::set_this_thread(Policy::Fifo, priority).is_ok();
            let _ = ready.send(());
            if has_risen {
                own.watch(&stop, &tids, &pace);
            }
        })?;
        // A thread that dies before its word closes the channel.
        let _ = is_ready.recv();
        Ok(Self { shared, handle })
    }

    /// A sign of life.
    pub(super) fn beat(&self) {
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends it, and says whether it had to end the run.
    #[must_use]
    pub(super) fn finish(self) -> Option<WatchdogEnd> {
        self.shared.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        // It holds nothing that matters if it died.
        let _ = self.handle.join();
        self.shared.verdict()
    }
}

impl Shared {
    fn watch(&self, stop: &Stop, tids: &[i32], pace: &Pace) {
        let (mut seen, mut still) = (self.beats.load(Ordering::Relaxed), 0_u32);
        let mut usage = Usage::of(tids);
        while !self.finished.load(Ordering::Acquire) {
            let now = now_ns();
            let pause_ns = pace.cadence.after(now + TICK_NS) - now;
            std::thread::park_timeout(Duration::from_nanos(pause_ns.unsigned_abs()));
            let beats = self.beats.load(Ordering::Relaxed);
            let is_kept = usage.is_half_a_cpu();
            // Its own ticks count, not the clock: a process that was stopped has slept, too.
            still = if beats == seen { still + u32::from(is_kept) } else { 0 };
            seen = beats;
            pace.bell.ring();
            if still == PATIENCE {
                self.ended_after.store(still, Ordering::Relaxed);
                stop.set();
            }
            if still > PATIENCE && is_kept {
                // They do not check the flag.
                self.made_ordinary.store(true, Ordering::Relaxed);
                tids.iter().for_each(|tid| drop(sched::make_ordinary(*tid)));
            }
        }
    }

    fn verdict(&self) -> Option<WatchdogEnd> {
        let silent_s = self.ended_after.load(Ordering::Relaxed);
        let made_ordinary = self.made_ordinary.load(Ordering::Relaxed);
        (silent_s > 0).then_some(WatchdogEnd { silent_s, made_ordinary })
    }
}

/// How much CPU time the measured threads use.
struct Usage<'a> {
    tids: &'a [i32],
    /// At the last look: when, and their CPU time, together.
    before: (i64, Duration),
}

impl<'a> Usage<'a> {
    fn of(tids: &'a [i32]) -> Self {
        Self { tids, before: Self::now(tids) }
    }

    fn now(tids: &[i32]) -> (i64, Duration) {
        (now_ns(), tids.iter().filter_map(|tid| thread_cpu_time(*tid)).sum())
    }

    /// Whether they used half of the time of one CPU since the last look.
    fn is_half_a_cpu(&mut self) -> bool {
        let (now, used) = Self::now(self.tids);
        let passed = Duration::from_nanos((now - self.before.0).max(0).unsigned_abs());
        // One that ended meanwhile takes what it used away with it.
        let since = used.saturating_sub(self.before.1);
        self.before = (now, used);
        since >= passed / 2
    }
}

#[cfg(test)]
mod tests {
    use std::thread::Scope;

    use super::*;

    /// A measured thread: its number, and until when it spins or sleeps.
    fn measured<'a>(scope: &'a Scope<'a, '_>, spins: bool, ends: &Arc<AtomicBool>) -> i32 {
        let (tell, told) = mpsc::channel();
        let ends = Arc::clone(ends);
        scope.spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
            while !ends.load(Ordering::Relaxed) {
                if !spins {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        told.recv().unwrap()
    }

    #[test]
    fn silence_beside_busy_threads_sets_the_flag_and_else_nothing_does() {
        let [quiet, lively, idle] = [(); 3].map(|()| Arc::new(Shared::default()));
        let stops = [(); 3].map(|()| Arc::new(Stop::new()));
        let ends = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (busy, sleeper) = (measured(scope, true, &ends), measured(scope, false, &ends));
            let watch = |shared: &Arc<Shared>, stop: &Arc<Stop>, tid| {
                let (shared, stop) = (Arc::clone(shared), Arc::clone(stop));
                let pace =
                    Pace { cadence: Cadence::new(0, None, true), bell: Bell::new().unwrap() };
                scope.spawn(move || shared.watch(&stop, &[tid], &pace));
            };
            watch(&quiet, &stops[0], busy);
            watch(&lively, &stops[1], busy);
            watch(&idle, &stops[2], sleeper);
            while !stops[0].is_set() {
                lively.beats.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
            for shared in [&quiet, &lively, &idle] {
                shared.finished.store(true, Ordering::Release);
            }
            ends.store(true, Ordering::Relaxed);
        });
        assert!(!stops[1].is_set() && !stops[2].is_set());
        assert_eq!(quiet.verdict().map(|end| end.silent_s), Some(3));
        assert_eq!([lively.verdict(), idle.verdict()], [None, None]);
    }
}
