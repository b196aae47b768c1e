//! The far end of a stream, as a process: it does its part, and lets out what it received.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tardy_hot::{
    ring::{Reader, Writer},
    stop::Stop,
    stream::{Counts, Passage},
    wakeup::Ended,
};

use super::end::{EndPlan, OpenEnd};
use crate::probes::{
    Schedule,
    far_end::{FarEndWork, Opened, Outlet},
};

/// A far end that has its order and its socket.
pub struct FarEndStream {
    plan: EndPlan,
    socket: Option<OwnedFd>,
    passages: Writer<Passage>,
    taken: Option<Reader<Passage>>,
}

impl FarEndStream {
    /// By this plan, with the descriptors that came with it: its socket.
    #[must_use]
    pub fn new(plan: EndPlan, descriptors: Vec<OwnedFd>) -> Self {
        let (passages, taken) = plan.ring();
        let socket = descriptors.into_iter().next();
        Self { plan, socket, passages, taken: Some(taken) }
    }
}

/// What a far end counted, as it reports at its end.
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
        Some(Box::new(move |into| {
            taken.drain(|passage| into.extend_from_slice(&passage.to_bytes()));
        }))
    }

    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
        let Self { plan, socket, passages, .. } = *self;
        let socket = socket.ok_or("its order came without a socket")?;
        let counts = Arc::new(Counts::default());
        let end = OpenEnd::new(plan, socket, passages, Arc::clone(&counts))?;
        Ok(Box::new(OpenFar { end, counts }))
    }
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
