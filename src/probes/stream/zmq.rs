//! Streams through ZeroMQ: where each end publishes, and what it subscribes to.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket},
    os::fd::OwnedFd,
};

use super::{Stream, StreamTransport, end::EndPlan};
use crate::transports::{
    streams::SocketPair,
    zmq::publish::{Places, check},
};

/// Multicast carries headers, and what was lost once more; the factor over the packets.
const MULTICAST_SHARE: u32 = 4;
/// The least that multicast may use, kbit/s.
const KBIT_LEAST: u32 = 10_000;

/// A listening socket for each end; multicast only needs a port that is free, and descriptors that
/// stand for its sockets, which the library makes.
pub(super) fn sockets(way: StreamTransport) -> io::Result<SocketPair> {
    check(is_multicast(way)).map_err(io::Error::other)?;
    if !is_multicast(way) {
        return Ok(SocketPair { near: listener()?, far_end: vec![listener()?] });
    }
    let port = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port();
    let end = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        io::Result::Ok((OwnedFd::from(socket), SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)))
    };
    let far_end = (0..way.receivers()).map(|_| end()).collect::<io::Result<_>>()?;
    Ok(SocketPair { near: end()?, far_end })
}

const fn is_multicast(way: StreamTransport) -> bool {
    matches!(way, StreamTransport::Epgm { .. })
}

fn listener() -> io::Result<(OwnedFd, SocketAddrV4)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((listener.into(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)))
}

/// Sets for both ends where they publish and what they subscribe to, where ZeroMQ carries the
/// stream.
pub(super) fn place(stream: &Stream, ends: (&mut EndPlan, &mut EndPlan), sockets: &SocketPair) {
    let (near, far_end) = ends;
    let per_s = stream.rate.per_s().ceil() as u32;
    let kbit = (stream.size as f64 * stream.rate.per_s() / 125.0) as u32;
    let (there, back) = match stream.way {
        StreamTransport::ZmqPubSub => {
            let back = sockets.far_end.first().map(|(_, at)| format!("tcp://{at}"));
            (format!("tcp://{}", sockets.near.1), back.filter(|_| stream.both_ways))
        }
        StreamTransport::Epgm { group, .. } => {
            let port = sockets.near.1.port();
            (format!("epgm://{};{group}:{port}", Ipv4Addr::LOCALHOST), None)
        }
        _ => return,
    };
    let subscribers = u32::from(stream.way == StreamTransport::ZmqPubSub);
    let places = Places {
        publish: Some(there.clone()),
        subscribers,
        subscribe: back.clone(),
        waiting: per_s.max(1_000),
        kbit_per_s: kbit.saturating_mul(MULTICAST_SHARE).max(KBIT_LEAST),
    };
    far_end.zmq = Some(Places { publish: back, subscribe: Some(there), ..places.clone() });
    near.zmq = Some(places);
}
