//! Both ends of a transport on this machine: created together, passed to their users, and
//! opened there.
//!
//! The local endpoint stays in this process; the remote one may go to another, as an order and
//! descriptors.

use std::io;

use thiserror::Error;

use super::{
    Transport,
    end::{Holds, Role, TransportEnd},
    eventfd, memory, pipe,
    port::OpenPort,
    posix_mq, sysv_sem, tcp, udp, unix, zmq,
};

/// Why a transport is not available.
#[derive(Debug, Error)]
pub enum TransportError {
    /// Its ends could not be made.
    #[error("cannot make the two ends of {transport}: {source}{}", without_loopback(source))]
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

/// What is to be done where the interface that both ends are on is not there, as in a new network
/// namespace.
pub(crate) fn without_loopback(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL) => {
            ": the loopback interface is down (`ip link set lo up`)"
        }
        _ => "",
    }
}

/// Both ends on this machine, not yet open.
#[derive(Debug)]
pub struct Pair {
    /// The one that measures.
    pub near: TransportEnd,
    /// The one that answers.
    pub far_end: TransportEnd,
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
}

#[cfg(test)]
mod tests;
