//! The helper thread that finds stages in the kernel's own trace where no causes are wished.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use tardy_hot::clock::now_ns;

use super::{
    blame_time::TICK_NS, cadence::Cadence, helper_use::HelperUse, stage_matcher::StageMatcher,
    ticks::wait_until,
};
use crate::{
    probes::TracedThread,
    run::{HelperTime, LostEvents},
    setup::threads::become_helper,
    sys::cpus::Cpus,
};

/// What it works with.
pub(super) struct StageInputs {
    pub matcher: StageMatcher,
    /// The measured threads, in the order in which they are followed.
    pub threads: Vec<TracedThread>,
    pub start_ns: i64,
    pub cadence: Cadence,
    /// Priority of the measured threads, 0 where they are ordinary tasks.
    pub measured_priority: u32,
    /// CPUs that are not measured.
    pub housekeeping: Cpus,
}

/// What it leaves.
#[derive(Debug)]
pub(super) struct FoundStages {
    pub threads: Vec<TracedThread>,
    pub lost_on: Vec<LostEvents>,
    pub helper: HelperTime,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct StageRecorder {
    finished: Arc<AtomicBool>,
    handle: JoinHandle<FoundStages>,
}

impl StageRecorder {
    /// Starts it.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn start(work: StageInputs) -> io::Result<Self> {
        let finished = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&finished);
        let handle =
            Builder::new().name("tardy/recorder".into()).spawn(move || run(work, &ends))?;
        Ok(Self { finished, handle })
    }

    /// Waits until every sample has its stages; the measured threads must have ended. The trace is
    /// over then, and nothing holds it.
    ///
    /// # Errors
    /// The thread died.
    pub(super) fn finish(self) -> Result<FoundStages, String> {
        self.finished.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.handle.join().map_err(|_| "the thread that finds stages died".to_owned())
    }
}

fn run(mut work: StageInputs, finished: &AtomicBool) -> FoundStages {
    // The drain reports where this is refused.
    let _ = become_helper(work.measured_priority, &work.housekeeping);
    let mut used = HelperUse::begin();
    let mut due_ns = work.cadence.after(now_ns() + TICK_NS);
    while !wait_until(due_ns, finished) {
        work.matcher.look(&mut work.threads, false, |_, _| {});
        if now_ns() < work.start_ns {
            // What the warm-up takes does not count.
            used = HelperUse::begin();
        }
        used.rest();
        due_ns = work.cadence.after(now_ns() + TICK_NS);
    }
    let helper = used.of("tardy/recorder");
    work.matcher.tracer.stop();
    work.matcher.look(&mut work.threads, true, |_, _| {});
    work.matcher.tracer.detach();
    FoundStages { threads: work.threads, lost_on: work.matcher.lost_on(), helper }
}
