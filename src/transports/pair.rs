//! Both ends of a transport on this machine: created together, passed to their users, and
//! opened there.
//!
//! The near end stays in this process; the far one may go to another, as an order and descriptors.

use std::{io, os::fd::OwnedFd};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Transport, eventfd, memory, pipe, port::OpenPort, posix_mq, sysv_sem, tcp, udp, unix, zmq,
};

/// Why a transport is not available.
#[derive(Debug, Error)]
pub enum TransportError {
    /// Its ends could not be made.
    #[error("cannot make the two ends of {transport}: {source}")]
    Make {
        /// Which.
        transport: Transport,
        /// What the system said.
        source: io::Error,
    },
    /// An end could not be opened.
    #[error("cannot open one end of {transport}: {source}")]
    Open {
        /// Which.
        transport: Transport,
        /// What the system said.
        source: io::Error,
    },
    /// Messages of that size do not fit.
    #[error("{transport} carries at most {most} bytes a message, not {size}; use a smaller --size")]
    TooLong {
        /// Which.
        transport: Transport,
        /// What was asked for, bytes.
        size: usize,
        /// What there is, bytes.
        most: usize,
    },
    /// An order names more than came with it.
    #[error("the order for one end of {transport} lacks the descriptors that it names")]
    Incomplete {
        /// Which.
        transport: Transport,
    },
    /// Semaphores that would outlive the run.
    #[error(
        "sysv-sem needs CAP_SYS_ADMIN, so that its semaphores end with the run; run tardy as root, \
         or take another --transport"
    )]
    NotAllowed,
}

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The one that measures.
    Near,
    /// The one that answers.
    Far,
}

/// Both ends on this machine, not yet open.
#[derive(Debug)]
pub struct Pair {
    /// The one that measures.
    pub near: TransportEnd,
    /// The one that answers.
    pub far_end: TransportEnd,
}

/// One end: what another process must be given to open it.
#[derive(Debug)]
pub struct TransportEnd {
    /// Of which way.
    pub transport: Transport,
    /// Of the two.
    pub role: Role,
    /// Bytes of one message; 1 where the transport carries no bytes.
    pub size: usize,
    /// What it works with, in an order that only the transport knows.
    pub descriptors: Vec<OwnedFd>,
    /// What else it needs to know: a name, a number.
    pub text: Option<String>,
}

/// An [`TransportEnd`] without its descriptors, to be sent to another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    transport: Transport,
    role: Role,
    size: usize,
    text: Option<String>,
}

/// What an end holds besides what all ends hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) text: Option<String>,
}

impl<const N: usize> From<[OwnedFd; N]> for Holds {
    fn from(descriptors: [OwnedFd; N]) -> Self {
        Self { descriptors: descriptors.into(), text: None }
    }
}

/// Makes both ends for messages of `size` bytes (at least one).
///
/// # Errors
/// Messages of that size do not fit, or the system refuses; the error says what.
pub fn pair(transport: Transport, size: usize) -> Result<Pair, TransportError> {
    let size = if transport.has_size() { size.max(1) } else { 1 };
    if size > MOST {
        return Err(TransportError::TooLong { transport, size, most: most(transport) });
    }
    let made = match transport {
        Transport::ZmqTcp | Transport::ZmqIpc | Transport::ZmqInproc => zmq::pair(transport),
        Transport::Tcp => tcp::pair(),
        Transport::Udp if size > udp::MOST => Err(io::ErrorKind::FileTooLarge.into()),
        Transport::Udp => udp::pair(),
        Transport::UnixStream => unix::stream_pair(),
        Transport::UnixDgram => unix::datagram_pair(size),
        Transport::Pipe => pipe::pair(),
        Transport::Eventfd => eventfd::pair(),
        Transport::PosixMq => posix_mq::pair(size),
        Transport::SysvSem => sysv_sem::pair(),
        Transport::Futex | Transport::Signal | Transport::PiMutex | Transport::ShmSpin => {
            memory::pair()
        }
    };
    let (near, far_end) = made.map_err(|source| match (source.kind(), transport) {
        (io::ErrorKind::FileTooLarge, _) => {
            TransportError::TooLong { transport, size, most: most(transport) }
        }
        (io::ErrorKind::PermissionDenied, Transport::SysvSem) => TransportError::NotAllowed,
        _ => TransportError::Make { transport, source },
    })?;
    let end = |role, Holds { descriptors, text }| TransportEnd {
        transport,
        role,
        size,
        descriptors,
        text,
    };
    Ok(Pair { near: end(Role::Near, near), far_end: end(Role::Far, far_end) })
}

/// No message is longer, whatever carries it: both ends hold two of them in memory.
const MOST: usize = 16 << 20;

/// The longest message in bytes.
fn most(transport: Transport) -> usize {
    match transport {
        Transport::Udp => udp::MOST,
        Transport::UnixDgram => unix::most(),
        Transport::PosixMq => posix_mq::most(),
        _ => MOST,
    }
    .min(MOST)
}

impl TransportEnd {
    /// An end that is a socket which is already connected: of [`Transport::Tcp`] or
    /// [`Transport::Udp`].
    #[must_use]
    pub fn of_socket(transport: Transport, socket: OwnedFd, size: usize) -> Self {
        let descriptors = vec![socket];
        Self { transport, role: Role::Near, size: size.max(1), descriptors, text: None }
    }

    /// Opens it, in the thread that will use it, and on its terms. Nothing may be sent before both
    /// ends are open. The thread has to drop it, too.
    ///
    /// # Errors
    /// The system refuses, or the end came incomplete.
    pub fn open(self) -> Result<OpenPort, TransportError> {
        let transport = self.transport;
        let opened = match transport {
            Transport::ZmqTcp | Transport::ZmqIpc | Transport::ZmqInproc => zmq::open(self),
            Transport::Tcp => tcp::open(self),
            Transport::Udp => udp::open(self),
            Transport::UnixStream => unix::open_stream(self),
            Transport::UnixDgram => unix::open_datagram(self),
            Transport::Pipe => pipe::open(self),
            Transport::Eventfd => eventfd::open(self),
            Transport::PosixMq => posix_mq::open(self),
            Transport::SysvSem => sysv_sem::open(self),
            Transport::Futex | Transport::Signal | Transport::PiMutex | Transport::ShmSpin => {
                memory::open(self)
            }
        };
        opened.map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => TransportError::Incomplete { transport },
            _ => TransportError::Open { transport, source },
        })
    }

    /// What a process needs to build the same end again. The descriptors it must have by
    /// inheritance, in their order.
    #[must_use]
    pub fn order(&self) -> EndOrder {
        let Self { transport, role, size, ref text, .. } = *self;
        EndOrder { transport, role, size, text: text.clone() }
    }

    /// The end that an order stands for.
    #[must_use]
    pub fn from_order(order: EndOrder, descriptors: Vec<OwnedFd>) -> Self {
        let EndOrder { transport, role, size, text } = order;
        Self { transport, role, size, descriptors, text }
    }

    /// Its descriptors, if there are so many.
    pub(super) fn exactly<const N: usize>(descriptors: Vec<OwnedFd>) -> io::Result<[OwnedFd; N]> {
        descriptors.try_into().map_err(|_| io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests;
