//! TCP over loopback. What is written is sent at once: Nagle's algorithm is off.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use super::{
    end::{Holds, TransportEnd},
    port::OpenPort,
};

pub(super) fn pair() -> io::Result<(Holds, Holds)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let own = near.local_addr()?;
    let far = loop {
        let (far, peer) = listener.accept()?;
        // Another process may have been faster.
        if peer == own {
            break far;
        }
    };
    for end in [&near, &far] {
        end.set_nodelay(true)?;
    }
    Ok(([near.into()].into(), [far.into()].into()))
}

pub(super) fn open(end: TransportEnd) -> io::Result<OpenPort> {
    let [socket] = TransportEnd::exactly(end.descriptors)?;
    Ok(OpenPort::stream(socket, end.size))
}
