//! Packets as UDP datagrams, to one peer or to a multicast group.

use core::{ffi::c_int, ptr::null};

use super::{Packets, RecvOutcome, buffer, socket};
use crate::packet::Packet;

/// One end with a UDP socket.
#[derive(Debug)]
pub struct Udp {
    socket: c_int,
    /// Where to; `None` if the socket is connected, or nothing is sent.
    to: Option<libc::sockaddr_in>,
    out: Box<[u8]>,
    /// One byte more than a packet has, so that what is too long shows.
    into: Box<[u8]>,
}

impl Udp {
    /// A UDP socket that stays the caller's, packets of `size` bytes (at least
    /// [`crate::packet::LEN`]), and where they go unless the socket is connected.
    #[must_use]
    pub fn new(socket: c_int, size: usize, to: Option<libc::sockaddr_in>) -> Self {
        Self { socket, to, out: buffer(size), into: buffer(size + 1) }
    }
}

impl Packets for Udp {
    #[inline(always)]
    fn send(&mut self, packet: &Packet) -> Result<(), c_int> {
        packet.write(&mut self.out);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let (to, length) = match &self.to {
            Some(to) => (core::ptr::from_ref(to).cast(), size_of::<libc::sockaddr_in>()),
            None => (null(), 0),
        };
        // SAFETY: the buffer has as many readable bytes as is said, and so has the address, which
        // is missing if its length is 0.
        let sent = unsafe {
            libc::sendto(
                self.socket,
                self.out.as_ptr().cast(),
                self.out.len(),
                flags,
                to,
                length as libc::socklen_t,
            )
        };
        if sent < 0 { Err(socket::errno()) } else { Ok(()) }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<RecvOutcome, c_int> {
        match socket::receive(self.socket, &mut self.into) {
            Ok(got) if got + 1 == self.into.len() => {
                Ok(Packet::read(&self.into).map_or(RecvOutcome::Foreign, RecvOutcome::Packet))
            }
            Ok(_) => Ok(RecvOutcome::Foreign),
            // The error of an earlier packet: no receiver, no route, too long; sending reports it.
            Err(
                libc::EAGAIN
                | libc::EINTR
                | libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EMSGSIZE
                | libc::ENETDOWN,
            ) => Ok(RecvOutcome::Nothing),
            Err(errno) => Err(errno),
        }
    }

    #[inline(always)]
    fn wait(&mut self, until_ns: i64) -> Result<(), c_int> {
        socket::wait(self.socket, libc::POLLIN, until_ns)
    }
}
