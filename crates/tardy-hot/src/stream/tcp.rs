//! Packets as pieces of fixed size of a TCP (or any other) byte stream.

use core::ffi::c_int;

use super::{Packets, RecvOutcome, buffer, socket};
use crate::packet::Packet;

/// One end with a connected stream socket.
#[derive(Debug)]
pub struct Tcp {
    socket: c_int,
    out: Box<[u8]>,
    /// From here on `out` is still to be sent; its length where it is sent.
    sent: usize,
    into: Box<[u8]>,
    /// The number of bytes of the packet that have arrived.
    got: usize,
}

impl Tcp {
    /// A connected stream socket that stays the caller's, and packets of `size` bytes (at least
    /// [`crate::packet::LEN`]).
    #[must_use]
    pub fn new(socket: c_int, size: usize) -> Self {
        Self { socket, out: buffer(size), sent: size, into: buffer(size), got: 0 }
    }

    /// Sends the rest of a packet; `EAGAIN` if the socket is full.
    #[inline(always)]
    fn push(&mut self) -> Result<(), c_int> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the buffer has as many readable bytes as is said.
            let sent = unsafe { libc::send(self.socket, rest.as_ptr().cast(), rest.len(), flags) };
            if sent < 0 {
                return Err(socket::errno());
            }
            self.sent += sent as usize;
        }
        Ok(())
    }
}

impl Packets for Tcp {
    /// A packet that the socket takes in part is sent whole before any other: half of one would
    /// shift all that follow.
    #[inline(always)]
    fn send(&mut self, packet: &Packet) -> Result<(), c_int> {
        self.push()?;
        packet.write(&mut self.out);
        self.sent = 0;
        match self.push() {
            Err(libc::EAGAIN) if self.sent == 0 => {
                self.sent = self.out.len();
                Err(libc::EAGAIN)
            }
            Ok(()) | Err(libc::EAGAIN) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<RecvOutcome, c_int> {
        let Some(rest) = self.into.get_mut(self.got..) else { return Ok(RecvOutcome::Nothing) };
        match socket::receive(self.socket, rest) {
            Ok(0) => return Err(libc::ECONNRESET),
            Ok(got) => self.got += got,
            Err(libc::EAGAIN | libc::EINTR) => return Ok(RecvOutcome::Nothing),
            Err(errno) => return Err(errno),
        }
        if self.got < self.into.len() {
            return Ok(RecvOutcome::Nothing);
        }
        self.got = 0;
        Ok(Packet::read(&self.into).map_or(RecvOutcome::Foreign, RecvOutcome::Packet))
    }

    #[inline(always)]
    fn wait(&mut self, until_ns: i64) -> Result<(), c_int> {
        let unsent = if self.sent < self.out.len() { libc::POLLOUT } else { 0 };
        socket::wait(self.socket, libc::POLLIN | unsent, until_ns)?;
        match self.push() {
            Ok(()) | Err(libc::EAGAIN) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}
