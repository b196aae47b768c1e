//! Listening sockets of an echo, and the sockets of its peers.

use std::{
    cell::RefCell,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Gid, Uid, fchown},
    net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt},
};

use super::{EchoError, EchoOptions};
use crate::{
    sys::rights::{self, NOBODY},
    transports::hello::Ask,
};

/// Attempts to find a port that is free for both UDP and TCP, if any port will do.
const TRIES: u32 = 20;

/// Kernel overhead that is charged for a small datagram, in bytes.
const OVERHEAD_BYTES: u64 = 768;

/// Largest socket buffer to request, in bytes.
const BUFFER_MAX: u64 = 64 << 20;

/// Sockets that are given large buffers while there is a right to it; those of later peers have
/// what the kernel gives to anybody.
const SPARE: usize = 64;

/// Bytes that the kernel is asked for, and counts twice: 10,000 packets of a second, and more.
const SPARE_BYTES: usize = 8 << 20;

/// Sockets that listen.
#[derive(Debug)]
pub(super) struct Listeners {
    /// Where.
    pub address: SocketAddr,
    /// Datagrams from anybody.
    pub udp: Option<UdpSocket>,
    /// Connections from anybody.
    pub tcp: Option<TcpListener>,
    /// Not bound yet, with large buffers.
    spare: RefCell<Vec<OwnedFd>>,
}

impl Listeners {
    /// Takes the address, for both transports where both are wanted.
    ///
    /// # Errors
    /// It is not available.
    pub(super) fn open(plan: &EchoOptions) -> Result<Self, EchoError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_open(plan) {
                Err(EchoError::InUse { .. }) if plan.listen.port() == 0 && tries < TRIES => {}
                opened => return opened,
            }
        }
    }

    fn try_open(plan: &EchoOptions) -> Result<Self, EchoError> {
        let mut address = plan.listen;
        let refused = |at: SocketAddr, kind| {
            move |why: io::Error| match why.kind() {
                ErrorKind::AddrInUse => EchoError::InUse { at, kind },
                _ => EchoError::Bind { at, kind, why },
            }
        };
        let mut udp = None;
        if plan.udp {
            let socket = UdpSocket::bind(address).map_err(refused(address, "udp"))?;
            address = socket.local_addr()?;
            // The thread that serves strangers waits; the admission does not.
            socket.set_nonblocking(!plan.foreign)?;
            // More hellos are waiting where a flood comes while this thread does not run; without
            // the right to it there are fewer.
            let _ = sockopt::set_socket_recv_buffer_size_force(&socket, SPARE_BYTES);
            udp = Some(socket);
        }
        let mut tcp = None;
        if plan.tcp {
            let listener = TcpListener::bind(address).map_err(refused(address, "tcp"))?;
            address = listener.local_addr()?;
            listener.set_nonblocking(true)?;
            tcp = Some(listener);
        }
        let wants_spare = plan.udp && !plan.foreign;
        let spare = RefCell::new(if wants_spare { spare(address) } else { Vec::new() });
        Ok(Self { address, udp, tcp, spare })
    }

    /// Lets the user nobody, which this process becomes, share the address: the kernel compares
    /// owners.
    pub(super) fn hand_to_nobody(&self) {
        if !rights::is_root() {
            return;
        }
        let (owner, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let spare = self.spare.borrow();
        let sockets = self.udp.iter().map(AsFd::as_fd).chain(spare.iter().map(AsFd::as_fd));
        for socket in sockets {
            // Without the user nobody, this process stays root as well.
            let _ = fchown(socket, Some(owner), Some(group));
        }
    }

    /// Waits until there is a datagram, where `hears_udp`, a new connection, or something to read
    /// on one of the `connections`, and says so; or until `longest` is over.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn wait<'a>(
        &'a self,
        hears_udp: bool,
        connections: impl Iterator<Item = BorrowedFd<'a>>,
        longest: Duration,
    ) -> io::Result<bool> {
        let udp = self.udp.as_ref().filter(|_| hears_udp);
        let listening = [udp.map(AsFd::as_fd), self.tcp.as_ref().map(AsFd::as_fd)];
        let all = listening.into_iter().flatten().chain(connections);
        let mut waited: Vec<PollFd<'_>> = all.map(readable).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(longest.subsec_nanos()) };
        match poll(&mut waited, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A socket at this address to which the kernel gives the datagrams of `peer` alone; `others`
    /// are those of the peers that there are.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn of_peer<'a>(
        &'a self,
        peer: SocketAddr,
        ask: &Ask,
        others: impl Iterator<Item = BorrowedFd<'a>>,
    ) -> io::Result<UdpSocket> {
        let socket = self.with_room_for(ask)?;
        let listening = self.udp.iter().map(AsFd::as_fd);
        share(&listening.chain(others).collect::<Vec<_>>(), &socket, self.address)?;
        connect(&socket, &peer)?;
        let socket = UdpSocket::from(socket);
        drain(&socket)?;
        Ok(socket)
    }

    /// A socket with room for what comes in one second, as far as the kernel grants it; what it
    /// granted is sent in the welcome.
    fn with_room_for(&self, ask: &Ask) -> io::Result<OwnedFd> {
        let plain = datagrams(self.address)?;
        let wanted = ask.rate.saturating_mul(u64::from(ask.size) + OVERHEAD_BYTES);
        let wanted = usize::try_from(wanted.min(BUFFER_MAX)).unwrap_or(usize::MAX);
        let has = || sockopt::socket_recv_buffer_size(&plain).unwrap_or(usize::MAX);
        if wanted > has() {
            sockopt::set_socket_recv_buffer_size(&plain, wanted)?;
        }
        let spare = (wanted > has()).then(|| self.spare.borrow_mut().pop()).flatten();
        Ok(spare.unwrap_or(plain))
    }
}

/// Binds a socket to the address that `others` have. They share it for this moment only: otherwise
/// nobody can bind it beside this program, and have a part of what is sent to it, not even a
/// process of the same user, which may be `nobody`. The kernel asks any of them whether it shares.
fn share(others: &[BorrowedFd<'_>], socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let set = |is_shared| {
        let own = std::iter::once(socket.as_fd());
        let mut all = others.iter().copied().chain(own);
        all.try_for_each(|socket| sockopt::set_socket_reuseport(socket, is_shared))
    };
    let bound = set(true).and_then(|()| bind(socket, &address));
    set(false)?;
    Ok(bound?)
}

fn datagrams(at: SocketAddr) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// As many as there is a right to.
fn spare(at: SocketAddr) -> Vec<OwnedFd> {
    let one = || {
        let socket = datagrams(at).ok()?;
        sockopt::set_socket_recv_buffer_size_force(&socket, SPARE_BYTES).ok()?;
        Some(socket)
    };
    std::iter::from_fn(one).take(SPARE).collect()
}

/// Takes away what others sent between the binding and the connection.
fn drain(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    for _ in 0..10_000 {
        match socket.recv(&mut [0; 1]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    socket.set_nonblocking(false)
}

fn readable(descriptor: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(descriptor, PollFlags::IN)
}

/// What a socket holds unread and unsent, bytes, as the kernel says.
pub(super) fn buffers(socket: impl AsFd) -> (u32, u32) {
    let size = |bytes: rustix::io::Result<usize>| {
        bytes.ok().and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0)
    };
    let receive = size(sockopt::socket_recv_buffer_size(&socket));
    (receive, size(sockopt::socket_send_buffer_size(&socket)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{echo::PeerTerms, sys::sched::Policy, transports::hello::EchoMode};

    const ASK: Ask = Ask { mode: EchoMode::PingPong, size: 8, rate: 0 };

    fn listeners() -> Listeners {
        let terms = PeerTerms { policy: Policy::Other, priority: 0, cpus: vec![0] };
        let plan = EchoOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            udp: true,
            tcp: false,
            zmq: false,
            token: Vec::new(),
            foreign: false,
            rate_max: 1000,
            size_max: 64,
            terms,
        };
        Listeners::open(&plan).unwrap()
    }

    /// What another process of the same user could do at any time.
    fn beside(address: SocketAddr) -> io::Result<()> {
        let socket = datagrams(address)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        Ok(bind(&socket, &address)?)
    }

    #[test]
    fn nobody_else_can_bind_the_address_and_each_peer_has_its_own_socket() {
        let listeners = listeners();
        let address = listeners.address;
        let client = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let refused = || {
            let error = beside(address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        };
        refused();
        let mut peers: Vec<UdpSocket> = Vec::new();
        for number in 0..12 {
            let client = client();
            let from = client.local_addr().unwrap();
            let others = peers.iter().map(AsFd::as_fd);
            let own = listeners.of_peer(from, &ASK, others).unwrap();
            peers.push(own);
            refused();
            client.send_to(&[number], address).unwrap();
        }
        let stranger = client();
        stranger.send_to(&[9], address).unwrap();
        let listening = listeners.udp.as_ref().unwrap();
        listening.set_nonblocking(false).unwrap();
        let mut byte = [0];
        assert_eq!(listening.recv_from(&mut byte).unwrap().1, stranger.local_addr().unwrap());
        assert_eq!(byte, [9]);
        for (own, number) in peers.iter().zip(0..) {
            own.recv(&mut byte).unwrap();
            assert_eq!(byte, [number]);
        }
    }
}
