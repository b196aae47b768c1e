//! A pair of Unix sockets, of streams or of datagrams.

use std::{
    io,
    os::unix::net::{UnixDatagram, UnixStream},
};

use rustix::net::sockopt;

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};

pub(super) fn stream_pair() -> io::Result<(Holds, Holds)> {
    let (near, far) = UnixStream::pair()?;
    Ok(([near.into()].into(), [far.into()].into()))
}

pub(super) fn open_stream(end: TransportEnd) -> io::Result<OpenPort> {
    let [socket] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::stream(socket, end.size))
}

/// What the kernel keeps for itself of a send buffer.
const KEPT: usize = 32;

/// The longest message is what fits into a send buffer; an error of the kind `FileTooLarge` where
/// that cannot be made large enough.
pub(super) fn datagram_pair(size: usize) -> io::Result<(Holds, Holds)> {
    let (near, far) = UnixDatagram::pair()?;
    for end in [&near, &far] {
        if most_of(end)? < size {
            sockopt::set_socket_send_buffer_size(end, size + KEPT)?;
        }
        if most_of(end)? < size {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(([near.into()].into(), [far.into()].into()))
}

/// The longest message that any such pair carries here, bytes.
pub(super) fn most() -> usize {
    let most = |end: &UnixDatagram| {
        // The kernel cuts this down to what it allows.
        sockopt::set_socket_send_buffer_size(end, 1 << 30)?;
        most_of(end)
    };
    UnixDatagram::unbound().and_then(|end| most(&end)).unwrap_or(0)
}

fn most_of(end: &UnixDatagram) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(end)?.saturating_sub(KEPT))
}

pub(super) fn open_datagram(end: TransportEnd) -> io::Result<OpenPort> {
    let [socket] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::datagram(socket, end.size))
}
