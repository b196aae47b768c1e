//! The `pingpong` probe: a message to the other end and its answer back, one after the other. Each
//! round trip is a sample; half of one is a message's way only where both ways are alike.
//!
//! The remote endpoint is this tardy's, on this machine; or a tardy echo; or any program that sends
//! back what it gets. `tardy_hot::exchange` documents what lies between the clock reads.

pub(super) mod flags;
mod supervisor;
mod link;
mod near_end;
mod pong;
mod stages;

use std::sync::{Arc, Mutex, PoisonError};

use tardy_hot::{ring::ring, stop::Stop, wakeup::Series};

pub use self::{link::PingpongPeer, pong::Pong};
use self::{
    link::{Link, PingpongNearEnd},
    near_end::{Buffers, PingpongThread},
    stages::{Note, TripStages},
    supervisor::{Answers, PingSupervisor},
};
use super::{ArmError, ArmOptions, Armed, Probe, Recorded, Tracing};
use crate::{
    run::{
        EndRecord, MessageRecord, PingpongParameters, ProbeRecord, SeriesHead, messages::ROUND_TRIP,
    },
    setup::threads::{ThreadConfig, describe},
    transports::{Transport, page::Interrupter},
};

/// A planned ping-pong.
#[derive(Clone)]
pub struct PingPong {
    /// What carries the messages.
    pub transport: Transport,
    /// Bytes of one message; 1 where it carries none.
    pub size: usize,
    /// What the end that measures runs as.
    pub near: ThreadConfig,
    /// The end that answers.
    pub peer: PingpongPeer,
    /// An answer that takes longer is given up; ns.
    pub timeout_ns: i64,
}

/// What the remote endpoint is called.
const FAR: &str = "far";

/// What its process does: it answers each message.
pub(super) const JOB: &str = "pong";

/// The same, and it notes when it had each.
pub(super) const TRACED_JOB: &str = "traced_pong";

/// What others must know of the local endpoint once it is open.
#[derive(Debug, Default)]
struct Opened {
    buffers: Buffers,
    interrupter: Option<Interrupter>,
}

impl PingPong {
    fn head(&self) -> SeriesHead {
        SeriesHead { name: ROUND_TRIP.into(), cpu: Some(self.near.cpu), period_ns: None }
    }

    /// Of an end on this machine.
    const fn far_cpu(&self) -> u32 {
        match &self.peer {
            PingpongPeer::Here(terms) => terms.cpu,
            PingpongPeer::Echo { .. } | PingpongPeer::Foreign { .. } => self.near.cpu,
        }
    }

    /// Starts the thread that measures, with its end open; what it opened.
    fn spawn(
        &self,
        armed: &mut Armed,
        near: PingpongThread,
        recorded: Recorded,
        end: PingpongNearEnd,
    ) -> Result<Opened, ArmError> {
        let opened = Arc::new(Mutex::new(Opened::default()));
        let shared_opened = Arc::clone(&opened);
        let open = move || {
            let port = end.open()?;
            *shared_opened.lock().unwrap_or_else(PoisonError::into_inner) =
                Opened { buffers: port.buffers(), interrupter: port.interrupter() };
            Ok(port)
        };
        let loops = move |schedule, port: &mut _| near.both_loops(schedule, port);
        armed.spawn_with(recorded, Some(self.near.clone()), open, loops)?;
        Ok(std::mem::take(&mut *opened.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn record(&self, near: Buffers, far_end: EndRecord) -> MessageRecord {
        let near = EndRecord {
            name: "near".into(),
            place: "process".into(),
            cpu: Some(self.near.cpu),
            policy: Some(describe(self.near.policy, self.near.priority)),
            receive_buffer_bytes: near.0,
            send_buffer_bytes: near.1,
            ..EndRecord::default()
        };
        MessageRecord {
            transport: self.transport.to_string(),
            size: self.size as u64,
            ends: vec![near, far_end],
            flows: Vec::new(),
            clock: None,
        }
    }
}

impl Probe for PingPong {
    fn name(&self) -> &'static str {
        "pingpong"
    }

    fn parameters(&self) -> ProbeRecord {
        let (far_end, to) = match &self.peer {
            PingpongPeer::Here(terms) => (Some(terms), None),
            PingpongPeer::Echo { to, .. } | PingpongPeer::Foreign { to } => (None, Some(to)),
        };
        ProbeRecord::Pingpong(PingpongParameters {
            transport: self.transport.as_str().into(),
            size: self.size as u64,
            cpu: self.near.cpu,
            far_cpu: far_end.map(|far_end| far_end.cpu),
            far_priority: far_end.map(|far_end| far_end.priority),
            to: to.map(ToString::to_string),
            foreign: matches!(self.peer, PingpongPeer::Foreign { .. }),
            timeout_ns: self.timeout_ns,
        })
    }

    fn can_be_traced(&self) -> bool {
        // Who spins is never woken.
        matches!(self.peer, PingpongPeer::Here(_)) && !self.transport.spins()
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let head = self.head();
        let parts = tracing.map(|_| stages::heads(&head)).unwrap_or_default();
        std::iter::once(head).chain(parts).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let note = wants.tracing.as_ref().map(|_| Note::new()).transpose();
        let (note, shared) = note.map_err(|error| no_memory(&error))?.unzip();
        let Link { near: end, far_end, mut record } = self.link(shared)?;
        // After the remote endpoint's process was forked: earlier pages fault once more.
        let traced = wants.tracing.as_ref().zip(note);
        let traced = traced.map(|(tracing, note)| TripStages::new(tracing, note, &self.head()));
        let (stages, others) = traced.unzip();
        let mut armed = Armed::new(stop);
        armed.pauses = true;
        let (series, scratch) = (Arc::new(Series::default()), Arc::new(Series::default()));
        let (writer, reader) = wants.ring_samples.map(ring).unzip();
        let near = PingpongThread {
            series: Arc::clone(&series),
            scratch: Arc::clone(&scratch),
            writer,
            stop: Arc::clone(stop),
            counted: matches!(self.peer, PingpongPeer::Foreign { .. }),
            stages,
        };
        let recorded = Recorded { head: self.head(), series: Arc::clone(&series), samples: reader };
        let opened = self.spawn(&mut armed, near, recorded, end)?;
        let far_end = far_end.map(|far_end| far_end.ready()).transpose()?;
        if let Some(far_end) = &far_end {
            if let (Some(others), Some((_, near))) = (others, armed.found.last()) {
                let far = (&far_end.found().1, self.far_cpu());
                let near = (near, self.near.cpu);
                let (recorded, traced) = others.threads(near, far, &series, &scratch);
                armed.recorded.extend(recorded);
                armed.traced = traced;
            }
            armed.found.push(far_end.found());
            (record.receive_buffer_bytes, record.send_buffer_bytes) =
                pong::buffers(far_end.facts());
            record.place = far_end.place().into();
        }
        let record = self.record(opened.buffers, record);
        let tid = armed.tids().first().copied().unwrap_or_default();
        let answers = Answers::new(series, scratch, tid, opened.interrupter, self.timeout_ns);
        let held = self.transport == Transport::PiMutex;
        armed.supervisor = Some(Box::new(PingSupervisor::new(far_end, answers, record, held)));
        Ok(armed)
    }
}

fn no_memory(error: &std::io::Error) -> ArmError {
    ArmError::Transport(format!("cannot share memory with the remote endpoint: {error}"))
}
