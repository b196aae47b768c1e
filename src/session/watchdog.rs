//! The watchdog: measured threads of real-time policy that never sleep would keep every CPU for
//! themselves, and the run could not be ended. A thread of higher priority notices and ends it.
//!
//! There is one only where the measured CPUs are all that this process has: elsewhere the thread
//! that conducts the run has a CPU that no measured thread takes. It wakes once a second, for a few
//! us, right after an expiry; where there is no schedule, on no multiple of any interval in use.
//! Silence alone proves nothing, as a guest whose host has no time for it is silent, too: it counts
//! only while the measured threads use half of a CPU or more.
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
    evidence::{NothingAbove, WatchdogEnd},
};
use crate::{
    run::OsError,
    sys::{
        bell::Bell,
        sched::{self, Policy},
        silence::{AwakeLimit, Silence},
        usage::thread_cpu_time,
    },
};

/// A second, and so much more that where measured threads have no schedule its wake-ups drift
/// through their period instead of meeting them time after time.
const TICK_NS: i64 = 1_000_371_700;

/// When it wakes up, and whom.
#[derive(Debug)]
pub(super) struct WakeTimes {
    /// What it keeps to.
    pub cadence: Cadence,
    /// Wakes the conducting thread, which has no timer of its own and answers with a sign of life.
    pub bell: Bell,
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

    /// That it is not above the measured threads, where it is not.
    pub(super) fn nothing_above(&self) -> Option<NothingAbove> {
        let unbounded = self.limit.as_ref()?.as_ref().err().map(OsError::from);
        Some(NothingAbove { unbounded })
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
    let mut usage = Usage::of(silence.tids());
    while !finished.load(Ordering::Acquire) {
        let now = now_ns();
        let pause_ns = wakes.cadence.after(now + TICK_NS) - now;
        std::thread::park_timeout(Duration::from_nanos(pause_ns.unsigned_abs()));
        silence.look(usage.is_half_a_cpu());
        wakes.bell.ring();
    }
}

fn end(silence: &Silence) -> Option<WatchdogEnd> {
    let (silent_s, made_ordinary) = silence.ended()?;
    Some(WatchdogEnd { silent_s, made_ordinary })
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
        let (sender, receiver) = mpsc::channel();
        let ends = Arc::clone(ends);
        scope.spawn(move || {
            let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get());
            while !ends.load(Ordering::Relaxed) {
                if !spins {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        receiver.recv().unwrap()
    }

    #[test]
    fn silence_beside_busy_threads_sets_the_flag_and_else_nothing_does() {
        let stops = [(); 3].map(|()| Arc::new(Stop::new()));
        let (ends, finished) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (busy, sleeper) = (measured(scope, true, &ends), measured(scope, false, &ends));
            let silences = [busy, busy, sleeper].map(|tid| vec![tid]);
            let mut stop = stops.iter();
            let silences = silences
                .map(|tids| Arc::new(Silence::new(stop.next().expect("one for each"), tids)));
            let [quiet, lively, idle] = &silences;
            let finished = &finished;
            for silence in [quiet, lively, idle].map(Arc::clone) {
                let wakes =
                    WakeTimes { cadence: Cadence::new(0, None, true), bell: Bell::new().unwrap() };
                scope.spawn(move || watch(&silence, &wakes, finished));
            }
            while !stops[0].is_set() {
                lively.beat();
                std::thread::sleep(Duration::from_millis(20));
            }
            finished.store(true, Ordering::Release);
            ends.store(true, Ordering::Relaxed);
            assert!(!stops[1].is_set() && !stops[2].is_set());
            assert_eq!(end(quiet).map(|end| end.silent_s), Some(3));
            assert_eq!([end(lively), end(idle)], [None, None]);
        });
    }
}
