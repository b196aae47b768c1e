//! Real-time threads that keep every CPU for themselves: noticed by the silence of one that should
//! get to run as well, and ended.
//!
//! No thread is above one of the highest priority. There the kernel's own bound, `RLIMIT_RTTIME`
//! (getrlimit(2)), stands in for a watchdog: each second the thread that has run for too long
//! without a sleep is signalled, and looks itself.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::Rlimit;
use signal_hook::{SigId, consts::SIGXCPU, low_level};
use tardy_hot::stop::Stop;

use super::{sched, usage::thread_cpu_time};

/// The number of looks without a sign of life that are too many.
const PATIENCE: u32 = 3;

/// CPU time without a sleep before the first signal; the kernel adds a second after each.
const AWAKE: Duration = Duration::from_secs(1);

/// Signs of life, and what became of their absence.
#[derive(Debug)]
pub struct Silence {
    signs: AtomicU64,
    /// Signs of life at the last look, and looks since there was a new one.
    seen: AtomicU64,
    still: AtomicU32,
    /// Looks without a sign of life when the flag was set; 0 while it is not.
    ended_after: AtomicU32,
    made_ordinary: AtomicBool,
    stop: Arc<Stop>,
    tids: Vec<i32>,
}

impl Silence {
    /// `stop` ends the threads `tids` of this process, if they look at it.
    #[must_use]
    pub fn new(stop: &Arc<Stop>, tids: Vec<i32>) -> Self {
        Self {
            signs: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            still: AtomicU32::new(0),
            ended_after: AtomicU32::new(0),
            made_ordinary: AtomicBool::new(false),
            stop: Arc::clone(stop),
            tids,
        }
    }

    /// A sign of life.
    pub fn beat(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// The threads.
    #[must_use]
    pub fn tids(&self) -> &[i32] {
        &self.tids
    }

    /// A look, once a second. Too many without a sign of life, while the threads have kept a CPU,
    /// set the flag; after more the threads become ordinary tasks. Allocates nothing, takes no lock
    /// and makes no call that a signal handler must not (signal-safety(7)).
    pub fn look(&self, is_kept: bool) {
        let signs = self.signs.load(Ordering::Relaxed);
        let is_silent = signs == self.seen.swap(signs, Ordering::Relaxed);
        // Looks count, not the clock: a process that was stopped has slept, too.
        let before = self.still.load(Ordering::Relaxed);
        let still = if is_silent { before + u32::from(is_kept) } else { 0 };
        self.still.store(still, Ordering::Relaxed);
        if still == PATIENCE {
            self.ended_after.store(still, Ordering::Relaxed);
            self.stop.set();
        }
        if still > PATIENCE && is_kept {
            // They do not check the flag.
            self.made_ordinary.store(true, Ordering::Relaxed);
            // The number of one that has ended may be somebody else's.
            let own = self.tids.iter().filter(|tid| thread_cpu_time(**tid).is_some());
            own.for_each(|tid| drop(sched::make_ordinary(*tid)));
        }
    }

    /// Looks without a sign of life when it had to end them, and whether they had to become
    /// ordinary tasks; `None` if it had not.
    #[must_use]
    pub fn ended(&self) -> Option<(u32, bool)> {
        let after = self.ended_after.load(Ordering::Relaxed);
        (after > 0).then(|| (after, self.made_ordinary.load(Ordering::Relaxed)))
    }
}

/// The kernel's bound of this process, until this is dropped.
#[derive(Debug)]
pub struct AwakeLimit {
    before: Rlimit,
    action: SigId,
}

impl AwakeLimit {
    /// Bounds all real-time threads of this process: whichever does not sleep looks for itself once
    /// a second.
    ///
    /// # Errors
    /// What the kernel says to the handler or to the bound.
    pub fn set(silence: &Arc<Silence>) -> io::Result<Self> {
        let own = Arc::clone(silence);
        // SAFETY: a look does only what a handler may.
        let action = unsafe { low_level::register(SIGXCPU, move || own.look(true)) }?;
        match sched::bound_real_time(AWAKE) {
            Ok(before) => Ok(Self { before, action }),
            Err(error) => {
                low_level::unregister(action);
                Err(error)
            }
        }
    }
}

impl Drop for AwakeLimit {
    fn drop(&mut self) {
        // The soft bound goes up again to what it was; the hard one was never changed.
        let _ = sched::unbound_real_time(self.before);
        low_level::unregister(self.action);
    }
}
