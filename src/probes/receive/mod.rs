//! The `receive` probe: from the moment when the kernel stamps a packet to the one when the reading
//! thread has it. Its own sender sends the packets, or they come from elsewhere.
//!
//! `tardy_hot::receive` documents what lies between the clock reads, per kind of wait. It changes
//! nothing on the machine that outlives its sockets.

pub(super) mod flags;
mod receive_socket;
mod supervisor;
mod near_end;
mod nic;
mod sender;
mod stages;

use std::{fmt, sync::Arc};

use tardy_hot::{packet, ring::ring, stop::Stop, wakeup::Series};

pub use self::sender::{PacketSender, SenderOrder};
use self::{
    near_end::{ReceiveShared, ReceiveThread},
    nic::NicLatency,
    receive_socket::ReceiveSocket,
    stages::PacketStages,
    supervisor::ReceiveKeeper,
};
use super::{
    ArmError, ArmOptions, Armed, Probe, Recorded, Tracing,
    far_end::{FarEndSpec, Launched, RunningFarEnd},
};
use crate::{
    run::{EndRecord, MessageRecord, ProbeRecord, ReceiveParameters, SeriesHead},
    setup::threads::{ThreadConfig, describe},
    units::{Nanos, PacketRate},
};

/// The name of its series.
const SERIES: &str = "receive";

/// The name of the series that counts from the stamps of a NIC.
const NIC_SERIES: &str = "nic";

/// Most stamps of a NIC between two reads.
const NIC_RING: usize = 1 << 16;

/// What the sender is called.
const FAR: &str = "far";

/// What its process does: it sends packets on a schedule.
pub(super) const JOB: &str = "send";

/// Where packets come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketSource {
    /// A UDP port; 0 for any that is free.
    Port(u16),
    /// A network interface, whatever comes there.
    Interface(String),
}

/// How the reading thread waits for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveWait {
    /// `recvmsg` blocks.
    Block,
    /// `ppoll`, then `recvmsg`.
    Ppoll,
    /// `epoll_wait`, then `recvmsg`.
    Epoll,
    /// `recvmsg` blocks, and asks the device for packets for this number of us before.
    BusyPoll(u32),
    /// `recvmsg` again and again.
    Spin,
}

impl fmt::Display for ReceiveWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.write_str("block"),
            Self::Ppoll => f.write_str("ppoll"),
            Self::Epoll => f.write_str("epoll"),
            Self::BusyPoll(us) => write!(f, "busy-poll:{us}us"),
            Self::Spin => f.write_str("spin"),
        }
    }
}

/// The packets of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderPlan {
    /// Bytes of one.
    pub size: usize,
    /// How many a second.
    pub rate: PacketRate,
    /// What the sender runs as.
    pub terms: ThreadConfig,
}

impl SenderPlan {
    /// From each packet to the next, ns.
    #[must_use]
    pub fn period_ns(&self) -> i64 {
        ((1e9 / self.rate.per_s()).round() as i64).max(1)
    }
}

/// A planned receive probe.
#[derive(Debug, Clone)]
pub struct Receive {
    /// Where packets come in.
    pub source: PacketSource,
    /// How the reading thread waits.
    pub wait: ReceiveWait,
    /// What it runs as.
    pub near: ThreadConfig,
    /// Whether the NIC stamps packets too.
    pub by_nic: bool,
    /// Its own sender; `None` if others send.
    pub sending: Option<SenderPlan>,
}

impl Receive {
    fn head(&self) -> SeriesHead {
        SeriesHead { name: SERIES.into(), cpu: Some(self.near.cpu), period_ns: None }
    }

    fn nic_head(&self) -> SeriesHead {
        SeriesHead { name: NIC_SERIES.into(), ..self.head() }
    }

    /// Starts the sender, which waits for the schedule.
    fn launch(&self, receiver: &ReceiveSocket) -> Result<Option<Launched>, ArmError> {
        let (Some(sending), Some(to)) = (&self.sending, receiver.sends_to) else { return Ok(None) };
        let order = SenderOrder {
            session: receiver.session,
            size: sending.size,
            period_ns: sending.period_ns(),
            to,
        };
        let order = FarEndSpec::new(FAR.into(), JOB, &order, sending.terms.clone())?;
        Launched::process(order, Vec::new()).map(Some)
    }

    fn record(&self, receiver: &ReceiveSocket, far_end: Option<&RunningFarEnd>) -> MessageRecord {
        let end = |name: &str, place: &str, terms: &ThreadConfig| EndRecord {
            name: name.into(),
            place: place.into(),
            cpu: Some(terms.cpu),
            policy: Some(describe(terms.policy, terms.priority)),
            ..EndRecord::default()
        };
        let near = EndRecord {
            address: Some(receiver.address.clone()),
            wait: Some(self.wait.to_string()),
            receive_buffer_bytes: Some(receiver.room_bytes),
            ..end("near", "process", &self.near)
        };
        let far_end = self.sending.as_ref().zip(far_end);
        let far_end = far_end.map(|(sending, far_end)| EndRecord {
            send_buffer_bytes: far_end.facts()["send"].as_u64(),
            ..end(FAR, far_end.place(), &sending.terms)
        });
        let transport = match self.source {
            PacketSource::Port(_) => "udp",
            PacketSource::Interface(_) => "packet",
        };
        MessageRecord {
            transport: transport.into(),
            size: self.sending.as_ref().map_or(0, |sending| sending.size as u64),
            ends: std::iter::once(near).chain(far_end).collect(),
            flows: Vec::new(),
            clock: None,
        }
    }

    fn supervisor(
        &self,
        far_end: Option<RunningFarEnd>,
        receiver: &ReceiveSocket,
        shared: Arc<ReceiveShared>,
        tid: i32,
    ) -> ReceiveKeeper {
        let record = self.record(receiver, far_end.as_ref());
        let per_s = self.sending.as_ref().map(|sending| sending.rate.per_s());
        ReceiveKeeper::new(far_end, tid, shared, record, per_s)
    }
}

impl Probe for Receive {
    fn name(&self) -> &'static str {
        "receive"
    }

    fn parameters(&self) -> ProbeRecord {
        let (listen, iface) = match &self.source {
            PacketSource::Port(port) => (Some(*port), None),
            PacketSource::Interface(name) => (None, Some(name.clone())),
        };
        let sending = self.sending.as_ref();
        ProbeRecord::Receive(ReceiveParameters {
            listen,
            iface,
            wait: self.wait.to_string(),
            cpu: self.near.cpu,
            sender: sending.map_or("none", |_| "builtin").into(),
            size: sending.map(|sending| sending.size as u64),
            rate: sending.map(|sending| sending.rate.to_string()),
            far_cpu: sending.map(|sending| sending.terms.cpu),
            far_priority: sending.map(|sending| sending.terms.priority),
        })
    }

    fn can_be_traced(&self) -> bool {
        // Who spins is never woken.
        self.wait != ReceiveWait::Spin
    }

    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead> {
        let parts = tracing.map(|_| stages::heads(&self.head())).unwrap_or_default();
        let nic = self.by_nic.then(|| self.nic_head());
        std::iter::once(self.head()).chain(parts).chain(nic).collect()
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut receiver = ReceiveSocket::open(self).map_err(ArmError::Transport)?;
        let clock = receiver.nic_clock.take();
        let launched = self.launch(&receiver)?;
        let (series, scratch) = (Arc::new(Series::default()), Arc::new(Series::default()));
        let (writer, reader) = wants.ring_samples.map(ring).unzip();
        let (nic_writer, nic_reader) = clock.as_ref().map(|_| ring(NIC_RING)).unzip();
        let shared = Arc::new(ReceiveShared::default());
        let mut armed = Armed::new(stop);
        let traced = wants.tracing.as_ref().map(|it| PacketStages::new(it, &self.head()));
        let (stages, others) = traced.unzip();
        let near = ReceiveThread {
            wait: self.wait,
            own: self.sending.as_ref().map(|_| (receiver.session, receiver.packet_at)),
            series: Arc::clone(&series),
            scratch: Arc::clone(&scratch),
            writer,
            nic: nic_writer,
            stop: Arc::clone(stop),
            shared: Arc::clone(&shared),
            stages,
        };
        let receiver = Arc::new(receiver);
        let socket = Arc::clone(&receiver);
        armed.spawn_with(
            Recorded { head: self.head(), series: Arc::clone(&series), samples: reader },
            Some(self.near.clone()),
            move || Ok(socket),
            move |schedule, receiver| near.both_loops(schedule, receiver),
        )?;
        if let (Some(others), Some((_, found))) = (others, armed.found.last()) {
            let (recorded, thread) = others.thread(found, &self.head(), &series, &scratch);
            armed.recorded.extend(recorded);
            armed.traced = vec![thread];
        }
        let nic = clock.zip(nic_reader).map(|(clock, stamps)| {
            let series = Arc::new(Series::default());
            let recorded =
                Recorded { head: self.nic_head(), series: Arc::clone(&series), samples: None };
            armed.recorded.push(recorded);
            NicLatency::new(clock, stamps, series)
        });
        let far_end = launched.map(Launched::ready).transpose()?;
        armed.found.extend(far_end.as_ref().map(RunningFarEnd::found));
        let tid = armed.tids().first().copied().unwrap_or_default();
        armed.supervisor =
            Some(Box::new(self.supervisor(far_end, &receiver, shared, tid).with_nic(nic)));
        Ok(armed)
    }
}

/// The fewest bytes that a packet of the sender has.
pub const LEAST_BYTES: u64 = packet::LEN as u64;

/// The most that fit into one datagram.
pub const MOST_BYTES: u64 = 65_507;

/// How long busy polling asks a device by default.
pub const BUSY_POLL: Nanos = Nanos(50_000);
