//! The remote endpoint of a stream, as a process: it does its part, and lets out what it received.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tardy_hot::{stop::Stop, stream::Counts, wakeup::Ended};

use super::{
    end::{EndPlan, OpenEnd},
    passages::{PassageReader, PassageWriter, ReceiverRecord},
};
use crate::probes::{
    Schedule,
    far_end::{FarEndWork, Opened, Outlet},
};

/// A remote endpoint that has its order and its socket.
pub struct FarEndStream {
    plan: EndPlan,
    socket: Option<OwnedFd>,
    /// Memory in which wake-ups are noted, where they are.
    memory: Option<OwnedFd>,
    passages: PassageWriter,
    taken: Option<PassageReader>,
}

impl FarEndStream {
    /// By this plan, with the descriptors that came with it: its socket and, where the plan says
    /// so, the memory of its record.
    #[must_use]
    pub fn new(plan: EndPlan, descriptors: Vec<OwnedFd>) -> Self {
        let (passages, taken) = plan.ring();
        let mut descriptors = descriptors.into_iter();
        let (socket, memory) = (descriptors.next(), descriptors.next());
        Self { plan, socket, memory, passages, taken: Some(taken) }
    }
}

/// What a remote endpoint counted, as it reports at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FarEndCounts {
    /// Packets whose time came.
    pub due: u64,
    /// Of the recorded ones, how many the socket did not take.
    pub unsent: u64,
    /// Packets that the socket refused for another reason than room.
    pub failed: u64,
    /// The last such reason.
    pub errno: i32,
    /// What came and was no packet of this session.
    pub foreign: u64,
    /// Packets that came and that were not taken in time from the thread that received them.
    pub dropped: u64,
}

impl FarEndCounts {
    /// Of an end in this process.
    #[must_use]
    pub(super) fn of(counts: &Counts, dropped: u64) -> Self {
        Self {
            due: counts.due.load(Relaxed),
            unsent: counts.unsent.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            errno: counts.errno.load(Relaxed),
            foreign: counts.foreign.load(Relaxed),
            dropped,
        }
    }
}

impl FarEndWork for FarEndStream {
    fn outlet(&mut self) -> Option<Outlet> {
        let mut taken = self.taken.take()?;
        Some(Box::new(move |into| taken.write(into)))
    }

    fn is_hurried(&self) -> bool {
        self.plan.record_at.is_some()
    }

    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
        let Self { plan, socket, memory, passages, .. } = *self;
        let socket = socket.ok_or("its order came without a socket")?;
        let watch = plan.record_at.map(|at| watch(memory, at)).transpose()?;
        let counts = Arc::new(Counts::default());
        let end = OpenEnd::new(plan, socket, passages, watch, Arc::clone(&counts))?;
        Ok(Box::new(OpenFar { end, counts }))
    }
}

fn watch(memory: Option<OwnedFd>, at: usize) -> Result<ReceiverRecord, String> {
    let memory = memory.ok_or("its order came without the memory of its wake-ups")?;
    let cannot = |error| format!("cannot map the memory of its wake-ups: {error}");
    ReceiverRecord::map(memory.as_fd(), at).map_err(cannot)
}

struct OpenFar {
    end: OpenEnd,
    counts: Arc<Counts>,
}

impl Opened for OpenFar {
    fn run(&mut self, schedule: Schedule, stop: &Stop) -> Ended {
        self.end.run(&schedule, stop, &Stop::new())
    }

    fn value(&self) -> Value {
        json!(FarEndCounts::of(&self.counts, self.end.dropped()))
    }
}
