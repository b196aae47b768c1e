//! UDP over loopback, between two sockets that are connected to each other.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
};

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};

/// What fits into a datagram of IPv4: 65,535 bytes less the headers.
pub(super) const MOST: usize = 65_507;

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    Ok(([near.into()].into(), [far.into()].into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [socket] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::datagram(socket, end.size))
}
