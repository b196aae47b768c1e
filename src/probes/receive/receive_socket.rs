//! Where packets come in: the socket, what it was granted, and where the sender sends to.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::event::epoll;

use super::{PacketSource, Receive, ReceiveWait};
use crate::{
    setup::threads::plain,
    sys::{interface::Interface, nic_clock::NicClock, timestamps},
    transports::streams::{held, hold, second_of},
};

/// What comes before a packet of the sender where headers are read too: those of IPv4 and UDP.
const HEADERS: usize = 28;

/// Packets per second that there is room for where the rate is not given, and their bytes.
const STRANGERS: (f64, usize) = (10_000.0, 1_500);

/// An open socket, whose packets are stamped.
#[derive(Debug)]
pub(super) struct ReceiveSocket {
    pub socket: OwnedFd,
    /// Watches the socket alone.
    pub epoll: Option<OwnedFd>,
    /// What it listens to.
    pub address: String,
    /// Bytes that it holds unread.
    pub room_bytes: u64,
    /// Identifies the sender's packets.
    pub session: u64,
    /// Where they begin in what is read.
    pub packet_at: usize,
    /// Where they are sent to; `None` if no sender of this tardy sends.
    pub sends_to: Option<SocketAddrV4>,
    /// The clock of the NIC, where that stamps packets too.
    pub nic_clock: Option<NicClock>,
    /// Where packets end up that are measured on the way. Never read.
    _end: Option<UdpSocket>,
}

impl ReceiveSocket {
    /// Opens what the plan says.
    ///
    /// # Errors
    /// For the user: the flag, what was expected and what to do.
    pub(super) fn open(plan: &Receive) -> Result<Self, String> {
        let has_sender = plan.sending.is_some();
        let session = session().map_err(|error| format!("no random number: {}", plain(&error)))?;
        let receiver = |socket, address| Self {
            socket,
            epoll: None,
            address,
            room_bytes: 0,
            session,
            packet_at: 0,
            sends_to: None,
            nic_clock: None,
            _end: None,
        };
        let mut receiver = match &plan.source {
            PacketSource::Port(port) => {
                let (socket, address) = bound(*port, has_sender)?;
                let local = socket.local_addr().map_err(|error| plain(&error))?;
                let sends_to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, local.port());
                Self {
                    sends_to: has_sender.then_some(sends_to),
                    ..receiver(socket.into(), address)
                }
            }
            PacketSource::Interface(name) => {
                let socket = all_of(name)?;
                let receiver = Self { packet_at: HEADERS, ..receiver(socket, name.clone()) };
                if has_sender {
                    receiver.with_end().map_err(|error| plain(&error))?
                } else {
                    receiver
                }
            }
        };
        let (per_s, size) =
            plan.sending.as_ref().map_or(STRANGERS, |sent| (sent.rate.per_s(), sent.size));
        let said = |error: io::Error| format!("a socket that stamps packets: {}", plain(&error));
        hold(&receiver.socket, second_of(size, per_s)).map_err(said)?;
        receiver.room_bytes = held(&receiver.socket).map_err(said)?.0 as u64;
        if let (true, PacketSource::Interface(name)) = (plan.by_nic, &plan.source) {
            receiver.nic_clock = Some(clock_of(name)?);
        }
        timestamps::stamp(&receiver.socket, plan.by_nic).map_err(said)?;
        timestamps::count_drops(&receiver.socket).map_err(said)?;
        receiver.prepare(plan.wait)?;
        Ok(receiver)
    }

    /// A socket without a reader for packets that are measured at an interface.
    fn with_end(self) -> io::Result<Self> {
        let end = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = end.local_addr()?.port();
        let sends_to = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        Ok(Self { sends_to, _end: Some(end), ..self })
    }

    fn prepare(&mut self, wait: ReceiveWait) -> Result<(), String> {
        match wait {
            ReceiveWait::BusyPoll(us) => timestamps::busy_poll(&self.socket, us).map_err(|error| {
                format!(
                    "--wait {wait}: the kernel allows no busy polling: {}; run as root, or give \
                     CAP_NET_ADMIN",
                    plain(&error)
                )
            }),
            ReceiveWait::Epoll => {
                let watch = || -> io::Result<OwnedFd> {
                    let watcher = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                    let (data, events) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
                    epoll::add(&watcher, &self.socket, data, events)?;
                    Ok(watcher)
                };
                self.epoll = Some(watch().map_err(|error| format!("epoll: {}", plain(&error)))?);
                Ok(())
            }
            ReceiveWait::Block | ReceiveWait::Ppoll | ReceiveWait::Spin => Ok(()),
        }
    }

    /// The number of the socket.
    pub(super) fn raw(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Whether its last packet came from a device that can be polled; so also where the kernel does
    /// not say.
    pub(super) fn can_busy_poll(&self) -> bool {
        timestamps::can_busy_poll(self.socket.as_fd()).unwrap_or(true)
    }
}

fn session() -> io::Result<u64> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}

/// On loopback alone where only the sender may be heard. It never answers.
fn bound(port: u16, is_loopback: bool) -> Result<(UdpSocket, String), String> {
    let socket = if is_loopback {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
    } else {
        // A kernel without IPv6 has the other alone.
        UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
        })
    };
    let socket = socket.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "--listen {port}: another program has this UDP port (`ss -ulpn` names it); use another \
             one, or 0 for any that is free"
        ),
        _ => format!("--listen {port}: {}; use a port from 1024 on", plain(&error)),
    })?;
    let address = socket.local_addr().map_err(|error| plain(&error))?.to_string();
    Ok((socket, address))
}

fn clock_of(name: &str) -> Result<NicClock, String> {
    let why = match NicClock::of(name) {
        Ok(Some(clock)) => return Ok(clock),
        Ok(None) => "it no longer stamps packets".into(),
        Err(error) => plain(&error),
    };
    Err(format!("--iface {name}: its timestamp clock cannot be read: {why}; run as root"))
}

fn all_of(name: &str) -> Result<OwnedFd, String> {
    let interface = Interface::find(name).map_err(|error| {
        format!("--iface {name}: {}; `ip link` lists the interfaces", plain(&error))
    })?;
    if !interface.is_up {
        return Err(format!(
            "--iface {name}: it is down and receives nothing; run `ip link set {name} up`"
        ));
    }
    interface.listen().map_err(|error| {
        let why = plain(&error);
        format!(
            "--iface {name}: {why}: reading all that comes there needs CAP_NET_RAW; run as root, \
             or measure one port with --listen"
        )
    })
}
