//! The end in this process: its thread sends, and receives what comes back.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use tardy_hot::{stop::Stop, stream::Counts, wakeup::Ended};

use super::{
    end::{self, EndPlan, OpenEnd},
    passages::{PassageReader, PassageWriter, ReceiverRecord},
    supervisor::StreamNearEnd,
};
use crate::{
    probes::{ArmError, Armed, Recorded, Schedule, measured_thread::LoopEnd},
    setup::threads::ThreadConfig,
    sys::faults::ThreadUsage,
};

/// What the measuring thread is given.
pub(super) struct StreamThread {
    plan: EndPlan,
    socket: OwnedFd,
    terms: ThreadConfig,
    passages: PassageWriter,
    /// Where wake-ups are noted that go with what it receives.
    watch: Option<ReceiverRecord>,
    shared: StreamShared,
}

/// What others see of it.
pub(super) struct StreamShared {
    counts: Arc<Counts>,
    stop: Arc<Stop>,
    enough: Arc<Stop>,
}

impl StreamShared {
    fn again(&self) -> Self {
        let Self { counts, stop, enough } = self;
        let (counts, stop, enough) = (Arc::clone(counts), Arc::clone(stop), Arc::clone(enough));
        Self { counts, stop, enough }
    }
}

impl StreamThread {
    /// By its plan, with its socket.
    #[must_use]
    pub(super) fn new(
        plan: EndPlan,
        socket: OwnedFd,
        terms: ThreadConfig,
        watch: Option<ReceiverRecord>,
        stop: &Arc<Stop>,
    ) -> (Self, PassageReader) {
        let (passages, taken) = plan.ring();
        let shared =
            StreamShared { counts: Arc::default(), stop: Arc::clone(stop), enough: Arc::default() };
        (Self { plan, socket, terms, passages, watch, shared }, taken)
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// The thread cannot be made or set up.
    pub(super) fn spawn(
        self,
        armed: &mut Armed,
        recorded: Recorded,
        passages: PassageReader,
    ) -> Result<StreamNearEnd, ArmError> {
        let Self { plan, socket, terms, passages: into, watch, shared } = self;
        let (own, own_plan) = (shared.again(), plan.clone());
        let counts = Arc::clone(&shared.counts);
        let open = move || {
            OpenEnd::new(own_plan, socket, into, watch, counts).map_err(ArmError::Transport)
        };
        armed.spawn_with(recorded, Some(terms), open, move |schedule, end| {
            measure(&plan, end, &own, &schedule)
        })?;
        let tid = armed.tids().last().copied().unwrap_or_default();
        let StreamShared { counts, enough, .. } = shared;
        Ok(StreamNearEnd { counts, passages, enough, tid })
    }
}

fn measure(
    plan: &EndPlan,
    end: &mut OpenEnd,
    shared: &StreamShared,
    schedule: &Schedule,
) -> LoopEnd {
    let before = ThreadUsage::of_this_thread();
    let ended = end.run(schedule, &shared.stop, &shared.enough);
    let measured = LoopEnd::since(before, ended);
    match ended {
        // What it received afterwards was sent before.
        Ended::Done if shared.counts.due.load(Relaxed) > 0 => {
            LoopEnd { end_ns: end::end_of(&plan.packet_schedule(schedule, plan.sends)), ..measured }
        }
        _ => measured,
    }
}
