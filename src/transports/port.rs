//! An open end whose kind is known only when the program runs.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::sockopt;
use tardy_hot::{
    exchange::Port,
    ports::{
        counted::{Eventfd, Semaphore},
        datagram::Datagram,
        futex::Futex,
        pi_mutex::PiMutex,
        queue::QueuePort,
        signal::Signal,
        spin::SpinPort,
        stream::{Pipe, StreamPort, StreamSocket},
    },
};

use super::page::{Interrupter, PageMapping};
use crate::sys::zmq::SocketPort;

/// A port and the descriptors it works with.
#[derive(Debug)]
pub struct PortHolder<P> {
    port: P,
    descriptors: Vec<OwnedFd>,
}

/// A port whose kind is known only now; owns what it needs, all memory touched.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenPort {
    /// TCP, or a Unix stream socket.
    Stream(PortHolder<StreamPort<StreamSocket>>),
    /// UDP, or a Unix datagram socket.
    Datagram(PortHolder<Datagram>),
    /// Two pipes.
    Pipe(PortHolder<StreamPort<Pipe>>),
    /// Two eventfds.
    Eventfd(PortHolder<Eventfd>),
    /// Two POSIX message queues.
    Queue(PortHolder<QueuePort>),
    /// Two System V semaphores, in a namespace.
    Semaphore(PortHolder<Semaphore>),
    /// Futex words.
    Futex(Futex<PageMapping>),
    /// Queued signals.
    Signal(Box<Signal<PageMapping>>),
    /// Mutexes with priority inheritance.
    PiMutex(PiMutex<PageMapping>),
    /// Words looked at all the time.
    Spin(SpinPort<PageMapping>, Interrupter),
    /// A ZeroMQ socket that asks.
    ZmqRequest(SocketPort<true>),
    /// A ZeroMQ socket that answers.
    ZmqReply(SocketPort<false>),
}

/// Something to do with a port of any kind: compiled once for each, chosen once.
pub trait PortUser {
    /// What comes of it.
    type Out;

    /// Does it.
    fn with<P: Port>(self, port: &mut P) -> Self::Out;
}

impl<P> PortHolder<P> {
    fn new<const N: usize>(descriptors: [OwnedFd; N], port: impl FnOnce([i32; N]) -> P) -> Self {
        let numbers = descriptors.each_ref().map(AsRawFd::as_raw_fd);
        Self { port: port(numbers), descriptors: descriptors.into() }
    }
}

impl OpenPort {
    /// A stream socket that is connected.
    pub(super) fn stream(socket: OwnedFd, size: usize) -> Self {
        Self::Stream(PortHolder::new([socket], |[socket]| StreamPort::new(socket, socket, size)))
    }

    /// A datagram socket that is connected.
    pub(super) fn datagram(socket: OwnedFd, size: usize) -> Self {
        Self::Datagram(PortHolder::new([socket], |[socket]| Datagram::new(socket, size)))
    }

    /// Two pipes, one to write to and one to read from.
    pub(super) fn pipe(writes: OwnedFd, reads: OwnedFd, size: usize) -> Self {
        Self::Pipe(PortHolder::new([writes, reads], |[writes, reads]| {
            StreamPort::new(writes, reads, size)
        }))
    }

    /// Two eventfds, one to add to and one to wait for.
    pub(super) fn eventfd(sends: OwnedFd, receives: OwnedFd) -> Self {
        Self::Eventfd(PortHolder::new([sends, receives], |[to, from]| Eventfd::new(to, from)))
    }

    /// Two message queues, one to put into and one to take from.
    pub(super) fn queue(sends: OwnedFd, receives: OwnedFd, size: usize) -> Self {
        Self::Queue(PortHolder::new([sends, receives], |[to, from]| QueuePort::new(to, from, size)))
    }

    /// Two semaphores of a set in a namespace that this thread is in, by their places.
    pub(super) fn semaphore(namespace: OwnedFd, set: i32, sends: u16, receives: u16) -> Self {
        Self::Semaphore(PortHolder::new([namespace], |_| Semaphore::new(set, sends, receives)))
    }

    /// Runs `user` with the port as it really is.
    pub fn with<U: PortUser>(&mut self, user: U) -> U::Out {
        match self {
            Self::Stream(held) => user.with(&mut held.port),
            Self::Datagram(held) => user.with(&mut held.port),
            Self::Pipe(held) => user.with(&mut held.port),
            Self::Eventfd(held) => user.with(&mut held.port),
            Self::Queue(held) => user.with(&mut held.port),
            Self::Semaphore(held) => user.with(&mut held.port),
            Self::Futex(port) => user.with(port),
            Self::Signal(port) => user.with(port.as_mut()),
            Self::PiMutex(port) => user.with(port),
            Self::Spin(port, _) => user.with(port),
            Self::ZmqRequest(held) => user.with(held.port()),
            Self::ZmqReply(held) => user.with(held.port()),
        }
    }

    /// What ends a wait of this port where a signal does not; for another thread. `None` if a
    /// signal does, and for mutexes, whose wait only the other end can end, alive or dead.
    #[must_use]
    pub fn interrupter(&self) -> Option<Interrupter> {
        match self {
            Self::Spin(_, interrupter) => Some(interrupter.clone()),
            _ => None,
        }
    }

    /// Bytes that are held unread and unsent, as the kernel tells them; absent for what has no
    /// such buffers.
    #[must_use]
    pub fn buffers(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Stream(PortHolder { descriptors, .. })
            | Self::Datagram(PortHolder { descriptors, .. }) => of_socket(descriptors),
            Self::Pipe(held) => {
                let size = |at| held.descriptors.get(at).and_then(pipe_bytes);
                (size(1), size(0))
            }
            _ => (None, None),
        }
    }
}

fn of_socket(descriptors: &[OwnedFd]) -> (Option<u64>, Option<u64>) {
    let Some(socket) = descriptors.first() else { return (None, None) };
    let bytes = |size: usize| u64::try_from(size).ok();
    (
        sockopt::socket_recv_buffer_size(socket).ok().and_then(bytes),
        sockopt::socket_send_buffer_size(socket).ok().and_then(bytes),
    )
}

fn pipe_bytes(pipe: &OwnedFd) -> Option<u64> {
    rustix::pipe::fcntl_getpipe_size(pipe.as_fd()).ok().and_then(|size| u64::try_from(size).ok())
}
