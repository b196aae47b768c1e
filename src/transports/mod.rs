//! Transports for messages: their names, their capabilities, and how both ends are created.
//!
//! A transport is one file here, which makes its two ends, one port in `tardy_hot::ports`, which
//! sends and receives, and one line in [`Transport`]. What needs shared memory alone is one file
//! together. Nothing here knows who uses them.
//!
//! - [`end`]: what each transport makes two of; [`mod@pair`]: both, made and opened
//! - [`port`]: an end that is open; [`page`]: memory that both share

pub mod end;
mod eventfd;
mod memory;
pub mod page;
pub mod pair;
mod pipe;
pub mod plain;
pub mod port;
mod posix_mq;
mod sysv_sem;
mod tcp;
mod udp;
mod unix;
pub mod zmq;

pub mod hello;

pub mod streams;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::{
    end::{EndOrder, Role, TransportEnd},
    page::Interrupter,
    pair::{Pair, TransportError, pair},
    port::{OpenPort, PortUser},
};

/// A way for messages from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// ZeroMQ over TCP.
    ZmqTcp,
    /// ZeroMQ over a Unix socket.
    ZmqIpc,
    /// ZeroMQ between threads.
    ZmqInproc,
    /// TCP, sent without delay.
    Tcp,
    /// UDP.
    Udp,
    /// A Unix stream socket.
    UnixStream,
    /// Unix datagram sockets.
    UnixDgram,
    /// Two pipes.
    Pipe,
    /// Two eventfds.
    Eventfd,
    /// Two futex words in shared memory.
    Futex,
    /// Two POSIX message queues.
    PosixMq,
    /// Two System V semaphores.
    SysvSem,
    /// Two queued signals.
    Signal,
    /// Mutexes with priority inheritance, handed back and forth.
    PiMutex,
    /// Two words in shared memory, looked at all the time.
    ShmSpin,
}

impl Transport {
    /// All of them, in the order in which help lists them.
    pub const ALL: [Self; 15] = [
        Self::ZmqTcp,
        Self::ZmqIpc,
        Self::ZmqInproc,
        Self::Tcp,
        Self::Udp,
        Self::UnixStream,
        Self::UnixDgram,
        Self::Pipe,
        Self::Eventfd,
        Self::Futex,
        Self::PosixMq,
        Self::SysvSem,
        Self::Signal,
        Self::PiMutex,
        Self::ShmSpin,
    ];

    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZmqTcp => "zmq-tcp",
            Self::ZmqIpc => "zmq-ipc",
            Self::ZmqInproc => "zmq-inproc",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::UnixStream => "unix-stream",
            Self::UnixDgram => "unix-dgram",
            Self::Pipe => "pipe",
            Self::Eventfd => "eventfd",
            Self::Futex => "futex",
            Self::PosixMq => "posix-mq",
            Self::SysvSem => "sysv-sem",
            Self::Signal => "signal",
            Self::PiMutex => "pi-mutex",
            Self::ShmSpin => "shm-spin",
        }
    }

    /// Whether it carries bytes, so that a message can have a size.
    #[must_use]
    pub const fn has_size(self) -> bool {
        matches!(
            self,
            Self::ZmqTcp
                | Self::ZmqIpc
                | Self::ZmqInproc
                | Self::Tcp
                | Self::Udp
                | Self::UnixStream
                | Self::UnixDgram
                | Self::Pipe
                | Self::PosixMq
        )
    }

    /// Whether it reaches another machine.
    #[must_use]
    pub const fn reaches_far(self) -> bool {
        matches!(self, Self::ZmqTcp | Self::Tcp | Self::Udp)
    }

    /// Whether it is of ZeroMQ's library.
    #[must_use]
    pub const fn is_zmq(self) -> bool {
        matches!(self, Self::ZmqTcp | Self::ZmqIpc | Self::ZmqInproc)
    }

    /// Whether waiting keeps a CPU busy.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::ShmSpin)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_transports_have_the_same_name() {
        let mut names = Transport::ALL.map(Transport::as_str).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Transport::ALL.len());
    }
}
