//! The remote endpoint of a ping-pong on this machine: it answers.

use std::{os::fd::OwnedFd, sync::atomic::AtomicU64};

use serde_json::{Value, json};
use tardy_hot::{
    exchange::{Port, pong, pong_stamped},
    stop::Stop,
    wakeup::Ended,
};

use super::{near_end::Buffers, stages::Note};
use crate::{
    probes::{
        Schedule,
        far_end::{FarEndWork, Opened, WakeFn},
    },
    transports::{
        TransportEnd,
        port::{OpenPort, PortUser},
    },
};

/// An end that answers each message.
#[derive(Debug)]
pub struct Pong {
    end: TransportEnd,
    /// Where it notes when it had each message.
    note: Option<OwnedFd>,
}

impl Pong {
    /// Not yet open.
    #[must_use]
    pub const fn new(end: TransportEnd) -> Self {
        Self { end, note: None }
    }

    /// Not yet open; notes when it had each message, in memory that both ends share.
    #[must_use]
    pub const fn traced(end: TransportEnd, note: Option<OwnedFd>) -> Self {
        Self { end, note }
    }
}

impl FarEndWork for Pong {
    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
        let note = self.note.map(|note| Note::map(&note)).transpose();
        let note = note.map_err(|error| format!("cannot create shared memory: {error}"))?;
        let port = self.end.open().map_err(|error| error.to_string())?;
        Ok(Box::new(OpenPong { port, note, answered: 0 }))
    }
}

struct OpenPong {
    port: OpenPort,
    note: Option<Note>,
    answered: u64,
}

impl Opened for OpenPong {
    fn facts(&self) -> Value {
        let (receive, send) = self.port.buffers();
        json!({ "receive": receive, "send": send })
    }

    fn nudger(&self) -> Option<WakeFn> {
        let interrupter = self.port.interrupter()?;
        Some(Box::new(move || interrupter.interrupt()))
    }

    fn run(&mut self, _: Schedule, stop: &Stop) -> Ended {
        let received_ns = self.note.as_ref().map(Note::received_ns);
        self.port.with(Answer { stop, answered: &mut self.answered, received_ns })
    }

    fn value(&self) -> Value {
        json!({ "answered": self.answered })
    }
}

/// What [`OpenPong::facts`] said of its buffers.
pub(super) fn buffers(facts: &Value) -> Buffers {
    (facts["receive"].as_u64(), facts["send"].as_u64())
}

struct Answer<'a> {
    stop: &'a Stop,
    answered: &'a mut u64,
    received_ns: Option<&'a AtomicU64>,
}

impl PortUser for Answer<'_> {
    type Out = Ended;

    fn with<P: Port>(self, port: &mut P) -> Ended {
        match self.received_ns {
            Some(received_ns) => pong_stamped(port, self.stop, self.answered, received_ns),
            None => pong(port, self.stop, self.answered),
        }
    }
}
