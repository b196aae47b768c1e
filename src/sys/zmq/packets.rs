//! Packets of a stream, published and subscribed to.

use std::{ffi::c_int, io, os::fd::BorrowedFd, time::Duration};

use tardy_hot::{
    clock::now_ns,
    packet::Packet,
    stream::{Packets, RecvOutcome},
};

use super::{Number, ZmqError, ZmqSocket, socket::wait_readable};

/// One end: a socket that publishes, one that subscribes to the other end, or both.
///
/// Per packet one call of the library, which copies it: for more than 33 bytes into memory that it
/// allocates. Its own thread does the system calls, after `sent_ns` and before `received_ns`.
#[derive(Debug)]
pub struct Published {
    publisher: Option<ZmqSocket>,
    subscriber: Option<ZmqSocket>,
    out: Box<[u8]>,
    /// One byte more than a packet has, so that what is too long shows.
    into: Box<[u8]>,
}

/// How long the subscribers may take to come, ms.
const PATIENCE_MS: i32 = 20_000;

impl Published {
    /// For packets of `size` bytes.
    #[must_use]
    pub fn new(size: usize, publisher: Option<ZmqSocket>, subscriber: Option<ZmqSocket>) -> Self {
        // Written to, so that no page of it is missing later.
        let buffer = |bytes| vec![std::hint::black_box(0); bytes].into_boxed_slice();
        Self { publisher, subscriber, out: buffer(size), into: buffer(size + 1) }
    }
}

/// Waits until `subscribers` have subscribed to what `publisher`, of the kind XPUB, sends: before
/// that packets would be dropped.
///
/// # Errors
/// They did not come in time.
pub fn await_subscribers(publisher: &ZmqSocket, subscribers: u32) -> Result<(), ZmqError> {
    publisher.set(Number::ReceiveMs, PATIENCE_MS)?;
    let mut said = [0; 2];
    for number in 0..subscribers {
        publisher.receive(&mut said, true).map_err(|source| ZmqError::Call {
            what: format!("only {number} of {subscribers} ends have subscribed"),
            source,
        })?;
    }
    Ok(())
}

fn number(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EPROTO)
}

impl Packets for Published {
    fn send(&mut self, packet: &Packet) -> Result<(), c_int> {
        let Some(socket) = &self.publisher else { return Err(libc::ENOTCONN) };
        packet.write(&mut self.out);
        socket.send(&self.out, false).map_err(|error| number(&error))
    }

    fn receive(&mut self) -> Result<RecvOutcome, c_int> {
        let Some(socket) = &self.subscriber else { return Ok(RecvOutcome::Nothing) };
        match socket.receive(&mut self.into, false) {
            Ok(got) if got + 1 == self.into.len() => {
                Ok(Packet::read(&self.into).map_or(RecvOutcome::Foreign, RecvOutcome::Packet))
            }
            Ok(_) => Ok(RecvOutcome::Foreign),
            Err(error) => match number(&error) {
                libc::EAGAIN | libc::EINTR => Ok(RecvOutcome::Nothing),
                errno => Err(errno),
            },
        }
    }

    fn wait(&mut self, until_ns: i64) -> Result<(), c_int> {
        let left = until_ns.saturating_sub(now_ns()).max(0);
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
        let descriptor: Option<BorrowedFd<'_>> =
            self.subscriber.as_ref().and_then(|socket| socket.descriptor().ok());
        wait_readable(descriptor, left).map(|_| ()).map_err(|error| number(&error))
    }
}
