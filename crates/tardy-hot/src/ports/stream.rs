//! Messages over a byte stream: a pipe or a stream socket.
//!
//! One call sends and one receives, unless the kernel takes or gives a message in parts. If a
//! peer sends longer messages than agreed, the following message numbers do not match. A stream has
//! no message boundaries that would show more.

use core::{ffi::c_int, marker::PhantomData};

use super::{buffer, errno};
use crate::exchange::Port;

/// The calls that move bytes.
pub trait Calls {
    /// Sends from `bytes` and returns how many were taken, negative where `errno` says why not.
    fn send(descriptor: c_int, bytes: &[u8]) -> isize;

    /// Waits for something and returns how many bytes came, 0 at the end, negative where `errno`
    /// says why not.
    fn receive(descriptor: c_int, bytes: &mut [u8]) -> isize;
}

/// `send` and `recv`, which waits for all that was asked for.
#[derive(Debug)]
pub struct StreamSocket;

impl Calls for StreamSocket {
    #[inline(always)]
    fn send(descriptor: c_int, bytes: &[u8]) -> isize {
        // SAFETY: the kernel reads the bytes of a live slice.
        unsafe { libc::send(descriptor, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) }
    }

    #[inline(always)]
    fn receive(descriptor: c_int, bytes: &mut [u8]) -> isize {
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the kernel writes into a slice that is borrowed exclusively.
        unsafe { libc::recv(descriptor, start.cast(), len, libc::MSG_WAITALL) }
    }
}

/// `write` and `read`. The process must ignore SIGPIPE, as every Rust program does.
#[derive(Debug)]
pub struct Pipe;

impl Calls for Pipe {
    #[inline(always)]
    fn send(descriptor: c_int, bytes: &[u8]) -> isize {
        // SAFETY: the kernel reads the bytes of a live slice.
        unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) }
    }

    #[inline(always)]
    fn receive(descriptor: c_int, bytes: &mut [u8]) -> isize {
        // SAFETY: the kernel writes into a slice that is borrowed exclusively.
        unsafe { libc::read(descriptor, bytes.as_mut_ptr().cast(), bytes.len()) }
    }
}

/// One end of two streams, or of one that goes both ways.
#[derive(Debug)]
pub struct StreamPort<C> {
    /// Where messages go to.
    sends: c_int,
    /// Where they come from.
    receives: c_int,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
    /// Bytes at the end of the last message that the kernel has not taken: a signal came.
    unsent: usize,
    /// Bytes at the beginning of the next message that came already.
    got: usize,
    calls: PhantomData<C>,
}

impl<C> StreamPort<C> {
    /// An end that sends messages of `size` bytes (at least one) to one blocking descriptor and
    /// receives from another, which may be the same. They stay the caller's.
    #[must_use]
    pub fn new(sends: c_int, receives: c_int, size: usize) -> Self {
        let (outgoing, incoming) = (buffer(size), buffer(size));
        Self { sends, receives, outgoing, incoming, unsent: 0, got: 0, calls: PhantomData }
    }
}

impl<C: Calls> Port for StreamPort<C> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        if self.unsent > 0 {
            self.send_rest()?;
        }
        if let Some(first) = self.outgoing.first_mut() {
            *first = number;
        }
        let sent = C::send(self.sends, &self.outgoing);
        if sent == self.outgoing.len().cast_signed() {
            return Ok(());
        }
        if sent < 0 {
            return Err(errno());
        }
        self.unsent = self.outgoing.len() - sent.unsigned_abs();
        self.send_rest()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        loop {
            let rest = self.incoming.get_mut(self.got..).unwrap_or_default();
            let got = C::receive(self.receives, rest);
            if got <= 0 {
                return Err(if got == 0 { libc::ECONNRESET } else { errno() });
            }
            self.got += got.unsigned_abs();
            if self.got == self.incoming.len() {
                self.got = 0;
                return Ok(self.incoming.first().copied().unwrap_or_default());
            }
        }
    }
}

impl<C: Calls> StreamPort<C> {
    #[cold]
    fn send_rest(&mut self) -> Result<(), c_int> {
        while self.unsent > 0 {
            let from = self.outgoing.len() - self.unsent;
            let sent = C::send(self.sends, self.outgoing.get(from..).unwrap_or_default());
            if sent < 0 {
                return Err(errno());
            }
            self.unsent -= sent.unsigned_abs();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::{fd::AsRawFd as _, unix::net::UnixStream},
    };

    use super::*;

    fn port(socket: &UnixStream, size: usize) -> StreamPort<StreamSocket> {
        StreamPort::new(socket.as_raw_fd(), socket.as_raw_fd(), size)
    }

    #[test]
    fn a_message_that_comes_in_parts_is_one_message() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut port = port(&here, 3);
        port.got = 1;
        port.incoming[0] = 9;
        there.write_all(&[0, 0, 4]).unwrap();
        assert_eq!(port.receive(), Ok(9));
        there.write_all(&[0, 0]).unwrap();
        assert_eq!(port.receive(), Ok(4));
    }

    #[test]
    fn the_rest_of_a_message_goes_before_the_next_one() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut port = port(&here, 3);
        port.unsent = 2;
        port.send(7).unwrap();
        let mut bytes = [1; 5];
        there.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 7, 0, 0]);
    }

    #[test]
    fn an_end_that_is_gone_is_reported() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        let mut port = port(&here, 3);
        assert_eq!((port.receive(), port.send(1)), (Err(libc::ECONNRESET), Err(libc::ECONNRESET)));
        let (reads, writes) = std::io::pipe().unwrap();
        let mut pipe = StreamPort::<Pipe>::new(writes.as_raw_fd(), reads.as_raw_fd(), 1);
        assert_eq!((pipe.send(5), pipe.receive()), (Ok(()), Ok(5)));
        drop(writes);
        assert_eq!(pipe.receive(), Err(libc::ECONNRESET));
    }
}
