//! Messages that are datagrams: of UDP, or between Unix sockets. One `send`, one `recv`.

use core::ffi::c_int;

use super::{buffer, errno};
use crate::exchange::Port;

/// One end: a blocking socket that is connected to the other one.
#[derive(Debug)]
pub struct Datagram {
    socket: c_int,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
}

impl Datagram {
    /// An end for messages of `size` bytes, at least one. The socket stays the caller's.
    #[must_use]
    pub fn new(socket: c_int, size: usize) -> Self {
        Self { socket, outgoing: buffer(size), incoming: buffer(size) }
    }
}

impl Port for Datagram {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        if let Some(first) = self.outgoing.first_mut() {
            *first = number;
        }
        let (start, len) = (self.outgoing.as_ptr(), self.outgoing.len());
        // SAFETY: the kernel reads the bytes of a buffer that lives as long as this port.
        let sent = unsafe { libc::send(self.socket, start.cast(), len, libc::MSG_NOSIGNAL) };
        // A datagram goes as a whole or not at all.
        if sent < 0 { Err(errno()) } else { Ok(()) }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        let (start, len) = (self.incoming.as_mut_ptr(), self.incoming.len());
        // With this flag the result is the length of the datagram, also where it does not fit.
        // SAFETY: the kernel writes at most as much as this port's own buffer holds.
        let got = unsafe { libc::recv(self.socket, start.cast(), len, libc::MSG_TRUNC) };
        if got == len.cast_signed() {
            return Ok(self.incoming.first().copied().unwrap_or_default());
        }
        Err(match got {
            ..0 => errno(),
            _ if got > len.cast_signed() => libc::EMSGSIZE,
            _ => libc::EBADMSG,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsRawFd as _, unix::net::UnixDatagram};

    use super::*;

    #[test]
    fn longer_and_shorter_messages_are_distinguished() {
        let (here, there) = UnixDatagram::pair().unwrap();
        let mut port = Datagram::new(here.as_raw_fd(), 4);
        for (bytes, known) in [
            (&[6, 0, 0, 0][..], Ok(6)),
            (&[6, 0, 0, 0, 0], Err(libc::EMSGSIZE)),
            (&[6], Err(libc::EBADMSG)),
            (&[], Err(libc::EBADMSG)),
        ] {
            there.send(bytes).unwrap();
            assert_eq!(port.receive(), known);
        }
        drop(there);
        assert_eq!(port.send(1), Err(libc::ECONNRESET));
    }
}
