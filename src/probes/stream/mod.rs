//! The `stream` probe: packets on a schedule that is known beforehand, and how long after its time
//! each of them arrived.
//!
//! Latency is counted from the scheduled time, so that a sender that could not keep up shows; its
//! two parts, from there to the real time of sending and on to the receiver, are their own series.
//! `tardy_hot::stream` documents what lies between the clock reads.

pub(super) mod flags;
mod delivery;
mod clock;
mod echo;
mod end;
mod far_end;
mod flow;
mod here;
mod supervisor;
mod near_end;
mod one_way;
mod passages;
mod stages;
mod wait;
mod zmq;

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::OwnedFd,
    sync::Arc,
};

use tardy_hot::{stop::Stop, stream::PacketPeriod};

use self::end::{SendPlan, SocketKind};
pub use self::{echo::RemoteEcho, end::EndPlan, far_end::FarEndStream, wait::PacketWait};
use super::{ArmError, ArmOptions, Armed, Probe, Tracing};
use crate::{
    probes::{MessageEvidence, OneThread},
    run::{
        EndRecord, MessageRecord, ProbeRecord, SeriesHead, StreamParameters, messages::ROUND_TRIP,
    },
    setup::threads::{ThreadConfig, describe, plain},
    transports::{
        pair::without_loopback,
        streams::{self, SocketPair},
    },
    units::PacketRate,
};

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamTransport {
    /// UDP to one receiver.
    Udp,
    /// UDP to all members of a group.
    Multicast {
        /// The group.
        group: Ipv4Addr,
        /// How many receive.
        receivers: u32,
    },
    /// TCP.
    Tcp,
    /// ZeroMQ over TCP: one socket publishes, the other has subscribed.
    ZmqPubSub,
    /// ZeroMQ over PGM in UDP, to all members of a group.
    Epgm {
        /// The group.
        group: Ipv4Addr,
        /// How many receive.
        receivers: u32,
    },
}

impl StreamTransport {
    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Udp | Self::Multicast { .. } => "udp",
            Self::Tcp => "tcp",
            Self::ZmqPubSub => "zmq-pubsub",
            Self::Epgm { .. } => "epgm",
        }
    }

    const fn kind(self) -> SocketKind {
        match self {
            Self::Udp | Self::Multicast { .. } => SocketKind::Datagrams,
            Self::Tcp => SocketKind::Bytes,
            Self::ZmqPubSub | Self::Epgm { .. } => SocketKind::Zmq,
        }
    }

    const fn receivers(self) -> u32 {
        match self {
            Self::Multicast { receivers, .. } | Self::Epgm { receivers, .. } => receivers,
            Self::Udp | Self::Tcp | Self::ZmqPubSub => 1,
        }
    }
}

/// A planned stream, between two ends on this machine or to an echo and back.
#[derive(Debug, Clone)]
pub struct Stream {
    /// What carries the packets.
    pub way: StreamTransport,
    /// Bytes of one packet, at least [`tardy_hot::packet::LEN`].
    pub size: usize,
    /// Packets per second, in each direction.
    pub rate: PacketRate,
    /// The remote endpoint sends as many.
    pub both_ways: bool,
    /// How the local and the remote endpoint wait.
    pub waits: (PacketWait, PacketWait),
    /// What arrives later than this after its time is late, ns.
    pub late_over_ns: i64,
    /// What the local endpoint runs as.
    pub near: ThreadConfig,
    /// What the remote endpoints run as, where they are this tardy's.
    pub far_end: ThreadConfig,
    /// Who sends the packets back instead.
    pub echo: Option<RemoteEcho>,
}

/// The series of packets that this end sends; `there2` is that to the second receiver.
const THERE: &str = "there";
/// The series of those that come back.
const BACK: &str = "back";

/// What the process of a remote endpoint does: it receives packets, and sends its own.
pub(super) const JOB: &str = "stream";

fn numbered(name: &str, number: u32) -> String {
    if number == 0 { name.into() } else { format!("{name}{}", number + 1) }
}

impl Stream {
    /// The flows by name, with the CPU of their receiver.
    fn flows(&self) -> Vec<(String, u32)> {
        let there = |number| (numbered(THERE, number), self.far_end.cpu);
        let mut flows: Vec<_> = (0..self.way.receivers()).map(there).collect();
        flows.extend(self.both_ways.then(|| (BACK.into(), self.near.cpu)));
        flows
    }

    /// What the remote endpoint sends, half a period apart from this one.
    fn sending_back(&self) -> Option<SendPlan> {
        let period = PacketPeriod::of_rate(self.rate.per_1000_s);
        self.both_ways.then_some(SendPlan { phase_ns: period.ns / 2, flow: 1 })
    }

    /// Of both ends, the local one first.
    fn plans(&self, session: u64, near: Option<SocketAddrV4>) -> (EndPlan, EndPlan) {
        let (wait, far_wait) = self.waits;
        let plan = EndPlan {
            kind: self.way.kind(),
            size: self.size,
            session,
            per_1000_s: self.rate.per_1000_s,
            sends: Some(SendPlan { phase_ns: 0, flow: 0 }),
            to: None,
            receives: self.both_ways,
            wait,
            patience_ns: end::PATIENCE_NS,
            zmq: None,
            record_at: None,
        };
        let far_end = EndPlan {
            sends: self.sending_back(),
            // It is not connected, so that packets of strangers arrive and are counted.
            to: near.filter(|_| self.way == StreamTransport::Udp && self.both_ways),
            receives: true,
            wait: far_wait,
            ..plan.clone()
        };
        (plan, far_end)
    }

    /// Both ends' sockets, with buffers that hold a second where the kernel grants that.
    fn sockets(&self) -> io::Result<SocketPair> {
        let bytes = self.second();
        let sockets = match self.way {
            StreamTransport::Udp => streams::udp()?,
            StreamTransport::Multicast { group, receivers } => {
                streams::multicast(group, receivers)?
            }
            StreamTransport::Tcp => streams::tcp(bytes)?,
            // The library makes its own, and keeps a second's packets itself.
            StreamTransport::ZmqPubSub | StreamTransport::Epgm { .. } => {
                return zmq::sockets(self.way);
            }
        };
        streams::hold(&sockets.near.0, bytes)?;
        for (far_end, _) in &sockets.far_end {
            streams::hold(far_end, bytes)?;
        }
        Ok(sockets)
    }

    fn refused(&self, error: &io::Error) -> ArmError {
        let way = self.way.as_str();
        let why = format!("{}{}", plain(error), without_loopback(error));
        ArmError::Transport(format!("cannot create sockets for {way}: {why}"))
    }

    fn second(&self) -> usize {
        streams::second_of(self.size, self.rate.per_s())
    }

    /// What is known of both ends beforehand.
    fn record(&self, sockets: &SocketPair) -> io::Result<MessageRecord> {
        let end = |name: String,
                   socket: &OwnedFd,
                   at: SocketAddrV4,
                   terms: &ThreadConfig,
                   wait: PacketWait| {
            let (receive, send) = match self.way.kind() {
                SocketKind::Zmq => (None, None),
                _ => streams::held(socket).map(|(receive, send)| (Some(receive), Some(send)))?,
            };
            io::Result::Ok(EndRecord {
                name,
                place: "process".into(),
                address: Some(at.to_string()),
                cpu: Some(terms.cpu),
                policy: Some(describe(terms.policy, terms.priority)),
                wait: Some(wait.to_string()),
                receive_buffer_bytes: receive.map(|bytes| bytes as u64),
                send_buffer_bytes: send.map(|bytes| bytes as u64),
                version: None,
            })
        };
        let (near, at) = &sockets.near;
        let mut ends = vec![end("near".into(), near, *at, &self.near, self.waits.0)?];
        for (number, (far_end, at)) in (0_u32..).zip(&sockets.far_end) {
            ends.push(end(numbered("far", number), far_end, *at, &self.far_end, self.waits.1)?);
        }
        let (transport, size) = (self.way.as_str().into(), self.size as u64);
        Ok(MessageRecord { transport, size, ends, flows: Vec::new(), clock: None })
    }

    /// What is known before anything is sent.
    fn evidence(&self, near: &OwnedFd) -> MessageEvidence {
        let is_datagrams = self.way.kind() == SocketKind::Datagrams;
        let mtu = is_datagrams.then(|| rustix::net::sockopt::ip_mtu(near).ok()).flatten();
        MessageEvidence {
            needed_bytes: Some(self.second() as u64),
            frame_bytes: mtu.map(|mtu| ((self.size + HEADERS) as u64, mtu.into())),
            one_thread: self.one_thread(),
            ..MessageEvidence::default()
        }
    }

    /// Which ends send what they cannot receive meanwhile. ZeroMQ sends by its own threads.
    fn one_thread(&self) -> Option<OneThread> {
        let period_ns = end::period_ns(self.rate.per_1000_s);
        let of = |ends: &[&str], series: &[&str], meets_ns| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            OneThread { ends: owned(ends), series: owned(series), meets_ns, period_ns }
        };
        match (&self.echo, self.sending_back()) {
            _ if self.way.kind() == SocketKind::Zmq => None,
            (Some(_), _) => Some(of(&["near"], &[ROUND_TRIP], period_ns)),
            (None, Some(back)) => Some(of(&["near", "far"], &[BACK, THERE], back.phase_ns)),
            (None, None) => None,
        }
    }
}

/// Of IP and UDP.
const HEADERS: usize = 28;

impl Probe for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn parameters(&self) -> ProbeRecord {
        let (group, receivers) = match self.way {
            StreamTransport::Multicast { group, receivers }
            | StreamTransport::Epgm { group, receivers } => {
                (Some(group.to_string()), Some(receivers))
            }
            _ => (None, None),
        };
        let is_here = self.echo.is_none();
        ProbeRecord::Stream(StreamParameters {
            transport: self.way.as_str().into(),
            size: self.size as u64,
            rate_per_s: self.rate.per_s(),
            both_ways: self.both_ways,
            wait: self.waits.0.to_string(),
            far_wait: is_here.then(|| self.waits.1.to_string()),
            late_over_ns: self.late_over_ns,
            cpu: self.near.cpu,
            far_cpu: is_here.then_some(self.far_end.cpu),
            far_priority: is_here.then_some(self.far_end.priority),
            to: self.echo.as_ref().map(|echo| echo.to.to_string()),
            group,
            receivers,
        })
    }

    fn can_be_traced(&self) -> bool {
        let is_woken = |wait: PacketWait| !wait.spins();
        self.echo.is_none() && is_woken(self.waits.1) && (!self.both_ways || is_woken(self.waits.0))
    }

    fn why_untraceable(&self) -> &'static str {
        match self.echo {
            Some(_) => {
                "cannot be traced to another machine (--to): what delays a packet there is not \
                 recorded here; on each machine, `tardy run timer --trace peaks` shows what delays \
                 threads on the CPUs of its end"
            }
            None => {
                "has no wake-ups that can be traced where an end spins that receives; use \
                 --far-wait sleep, and with --both-ways --wait sleep"
            }
        }
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        if self.echo.is_some() {
            return self.echo_heads();
        }
        let of = |(name, cpu): (String, u32)| {
            let heads = flow::heads(&name, Some(cpu));
            let parts = tracing.map(|_| stages::heads(&heads[0])).unwrap_or_default();
            heads.into_iter().chain(parts)
        };
        self.flows().into_iter().flat_map(of).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        if let Some(echo) = &self.echo {
            return self.arm_with(echo, wants, stop);
        }
        self.arm_here(wants, stop)
    }
}

/// A number that cannot be guessed.
fn session() -> io::Result<u64> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}
