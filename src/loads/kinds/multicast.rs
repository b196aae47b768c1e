//! The load `multicast`: one datagram to hundreds of sockets, again and again.
//!
//! All sockets are in one multicast group on the loopback device. The kernel copies each datagram
//! for every one of them, and wakes a thread a copy, in one softirq. A datagram received by a
//! socket is one operation. On the machine it takes a socket and a stack a thread; the group's
//! address is one for documentation, which no program uses.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::thread;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::loads::task_loop::{THREAD_BYTES, add, next_expiry_ns, repeat, sleep_until};
use crate::loads::worker::Worker;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "multicast",
    summary: "One datagram to hundreds of sockets at once, over loopback.",
    unit: "datagrams",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "sockets",
        help: "Number of receiving sockets, each with its own thread.",
        default: "200",
        kind: ParameterKind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "Time from one datagram to the next.",
        default: "5ms",
        kind: ParameterKind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
    Parameter {
        key: "size",
        help: "Payload of a datagram.",
        default: "64",
        kind: ParameterKind::Bytes { min: 1, max: 1472 },
    },
];

/// Of documentation (RFC 6676).
const GROUP: Ipv4Addr = Ipv4Addr::new(233, 252, 0, 1);

/// A socket, with the little that waits in it.
const SOCKET_BYTES: u64 = 8 * 1024;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let sockets = spec.number("sockets")?;
    let tasks = sockets + 1;
    Ok(Need {
        tasks,
        counters: sockets,
        open_files: tasks,
        memory_bytes: tasks * (THREAD_BYTES + SOCKET_BYTES),
        disk_bytes: 0,
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (count, interval_ns) = (spec.number("sockets")?, spec.time_ns("interval")?);
    let payload = vec![0x55; usize::try_from(spec.number("size")?).unwrap_or(1)];
    let (sockets, from, group) = open(count).map_err(|error| {
        let remedy = "bring the loopback device up: ip link set lo up; or take fewer sockets";
        pool.refuse("open sockets of one multicast group on 127.0.0.1", error, remedy)
    })?;
    let (from, payload) = (&from, &payload);
    pool.spawn(|&worker| {
        thread::scope(|scope| {
            for (number, socket) in (0..count).zip(&sockets) {
                let receive = |packet: &mut [u8; 2048]| socket.recv(packet).map(|_| ());
                add(scope, worker, move || repeat(&worker, number, |_| Ok([0; 2048]), receive));
            }
            add(scope, worker, move || send(&worker, from, group, payload, interval_ns));
        });
        Ok(())
    })
    .map(|_| ())
}

/// Receivers, the sender, and where it sends to.
fn open(count: u64) -> io::Result<(Vec<UdpSocket>, UdpSocket, SocketAddr)> {
    // The first one finds a port that is free, and the others share it.
    let mut port = 0;
    let mut sockets = Vec::new();
    for _ in 0..count {
        let socket = receiver(port)?;
        port = socket.local_addr()?.port();
        sockets.push(socket);
    }
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sockopt::set_ip_multicast_if(&from, &Ipv4Addr::LOCALHOST)?;
    Ok((sockets, from, (GROUP, port).into()))
}

fn receiver(port: u16) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Bound to the group, it gets nothing else.
    bind(&socket, &SocketAddrV4::new(GROUP, port))?;
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
    Ok(socket)
}

fn send(
    worker: &Worker<'_>,
    from: &UdpSocket,
    group: SocketAddr,
    payload: &[u8],
    interval_ns: i64,
) -> io::Result<()> {
    worker.begin()?;
    loop {
        sleep_until(next_expiry_ns(interval_ns))?;
        match from.send_to(payload, group) {
            // The socket is full; the next datagram will find room.
            Err(error) if is_passing(&error) => {}
            sent => sent.map(|_| ())?,
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::OutOfMemory || error.raw_os_error() == Some(libc::ENOBUFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_datagram_reaches_every_socket_once() {
        let (sockets, from, group) = open(5).unwrap();
        from.send_to(b"all", group).unwrap();
        from.send_to(b"end", group).unwrap();
        for socket in sockets {
            let mut packet = [0; 16];
            for expected in [b"all", b"end"] {
                let length = socket.recv(&mut packet).unwrap();
                assert_eq!(&packet[..length], expected);
            }
        }
    }
}
