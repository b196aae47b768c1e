//! How the two ends of a ping-pong connect: both created here, or the remote endpoint found
//! elsewhere.

use std::{os::fd::OwnedFd, time::Duration};

use super::{FAR, JOB, PingPong, Pong, TRACED_JOB};
use crate::{
    probes::{
        ArmError,
        far_end::{FarEndSpec, Launched},
    },
    run::EndRecord,
    setup::threads::{ThreadConfig, describe},
    transports::{
        Transport, TransportEnd,
        hello::{self, Ask, CarrierKind, EchoMode},
        pair::{Pair, pair},
        plain,
        port::OpenPort,
        zmq,
    },
};

/// Who answers.
#[derive(Clone)]
pub enum PingpongPeer {
    /// An end that this tardy starts, on these terms.
    Here(ThreadConfig),
    /// A tardy echo.
    Echo {
        /// HOST:PORT.
        to: String,
        /// What both ends know.
        token: Vec<u8>,
    },
    /// Any program that sends back what it gets.
    Foreign {
        /// HOST:PORT.
        to: String,
    },
}

/// The local endpoint, not yet open.
pub(super) enum PingpongNearEnd {
    /// Of a pair, or a socket that is connected.
    End(TransportEnd),
    /// Finds its peer when it is opened: the library's own threads must run on its terms.
    Zmq {
        /// HOST:PORT.
        to: String,
        /// Bytes of one message.
        size: usize,
    },
}

/// How long a peer of ZeroMQ may take until it has proved to be one.
const PATIENCE: Duration = Duration::from_secs(2);

impl PingpongNearEnd {
    /// Opens it, in the thread that will use it, on its terms.
    pub(super) fn open(self) -> Result<OpenPort, ArmError> {
        match self {
            Self::End(end) => end.open().map_err(refused),
            Self::Zmq { to, size } => zmq::ask_foreign(&to, size, PATIENCE).map_err(refused),
        }
    }
}

/// The local endpoint, and what is at the other one.
pub(super) struct Link {
    pub near: PingpongNearEnd,
    /// `None` if another program runs it.
    pub far_end: Option<Launched>,
    /// What is known of the remote endpoint.
    pub record: EndRecord,
}

impl PingPong {
    /// Brings both ends together. An end that is started here notes in `note` when it had each
    /// message, where that is wanted.
    pub(super) fn link(&self, note: Option<OwnedFd>) -> Result<Link, ArmError> {
        match &self.peer {
            PingpongPeer::Here(terms) => self.both_here(terms, note),
            PingpongPeer::Echo { to, token } => self.to_echo(to, token),
            PingpongPeer::Foreign { to } => self.to_foreign(to),
        }
    }

    fn both_here(&self, terms: &ThreadConfig, note: Option<OwnedFd>) -> Result<Link, ArmError> {
        let Pair { near, far_end } = pair(self.transport, self.size).map_err(refused)?;
        let terms = terms.clone();
        let policy = Some(describe(terms.policy, terms.priority));
        let cpu = Some(terms.cpu);
        let far_end = if self.transport == Transport::ZmqInproc {
            Launched::thread(FAR, Box::new(Pong::traced(far_end, note)), terms)
        } else {
            let job = if note.is_some() { TRACED_JOB } else { JOB };
            let order = FarEndSpec::new(FAR.into(), job, &far_end.order(), terms)?;
            Launched::process(order, far_end.descriptors.into_iter().chain(note).collect())?
        };
        let record = EndRecord { name: FAR.into(), cpu, policy, ..EndRecord::default() };
        Ok(Link { near: PingpongNearEnd::End(near), far_end: Some(far_end), record })
    }

    fn to_echo(&self, to: &str, token: &[u8]) -> Result<Link, ArmError> {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let ask = Ask { mode: EchoMode::PingPong, size, rate: 0 };
        let found = hello::connect(self.kind(), to, token, ask).map_err(refused)?;
        let record = EndRecord {
            name: FAR.into(),
            place: "machine".into(),
            address: Some(found.address),
            receive_buffer_bytes: Some(found.buffers.0.into()),
            send_buffer_bytes: Some(found.buffers.1.into()),
            version: Some(found.version),
            ..EndRecord::default()
        };
        let near =
            PingpongNearEnd::End(TransportEnd::of_socket(self.transport, found.socket, self.size));
        Ok(Link { near, far_end: None, record })
    }

    fn to_foreign(&self, to: &str) -> Result<Link, ArmError> {
        if self.transport.is_zmq() {
            let near = PingpongNearEnd::Zmq { to: to.into(), size: self.size };
            return Ok(Link { near, far_end: None, record: foreign(to.into()) });
        }
        let (socket, address) = plain::connect(self.kind(), to).map_err(refused)?;
        let near = PingpongNearEnd::End(TransportEnd::of_socket(self.transport, socket, self.size));
        Ok(Link { near, far_end: None, record: foreign(address) })
    }

    const fn kind(&self) -> CarrierKind {
        match self.transport {
            Transport::Udp => CarrierKind::Udp,
            _ => CarrierKind::Tcp,
        }
    }
}

fn foreign(address: String) -> EndRecord {
    EndRecord {
        name: FAR.into(),
        place: "foreign".into(),
        address: Some(address),
        ..EndRecord::default()
    }
}

fn refused(error: impl std::fmt::Display) -> ArmError {
    ArmError::Transport(error.to_string())
}
