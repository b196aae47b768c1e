//! One end of a stream, in whichever process it is: its socket, its port, and its part of the
//! schedule.

use std::{
    net::SocketAddrV4,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tardy_hot::{
    clock::now_ns,
    stop::Stop,
    stream::{
        Arrivals, Counts, PacketPeriod, PacketSchedule, Packets, StreamEnd, StreamLimits, Tcp,
        TracedArrivals, Udp,
    },
    wakeup::Ended,
};

use super::{
    passages::{PassageReader, PassageWriter, ReceiverRecord, passages},
    wait::{self, EndRole, PacketWait},
};
use crate::{
    probes::Schedule,
    sys::{address, zmq::Published},
    transports::zmq::publish::{self, Places},
};

/// How long after the last packet others may still be under way, ns.
pub(super) const LINGER_NS: i64 = 1_000_000_000;

/// An end stops receiving this long after the last packet, ns.
pub(super) const PATIENCE_NS: i64 = 10 * LINGER_NS;

/// The time of packets that is buffered between the measuring thread and its reader.
const RING_S: f64 = 2.0;

/// What an end sends.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SendPlan {
    /// Its first packet comes this long after the schedule's first, ns.
    pub phase_ns: i64,
    /// The flow.
    pub flow: u32,
}

/// What kind of socket it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketKind {
    /// UDP.
    Datagrams,
    /// TCP.
    Bytes,
    /// Those of ZeroMQ's library.
    Zmq,
}

/// What one end is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndPlan {
    /// Its socket.
    pub kind: SocketKind,
    /// Bytes of a packet.
    pub size: usize,
    /// The number that both ends know.
    pub session: u64,
    /// Packets in 1,000 s.
    pub per_1000_s: u64,
    /// What it sends.
    pub sends: Option<SendPlan>,
    /// Where to, unless its socket is connected.
    pub to: Option<SocketAddrV4>,
    /// Whether it receives.
    pub receives: bool,
    /// How it waits.
    pub wait: PacketWait,
    /// It receives until this long after the last packet was due, unless it is stopped, ns.
    pub patience_ns: i64,
    /// Where it publishes and subscribes, through ZeroMQ.
    #[serde(default)]
    pub zmq: Option<Places>,
    /// Where, in memory that comes with it, the BPF side writes about its thread; in words of 8
    /// bytes. `None` if wake-ups are not noted.
    #[serde(default)]
    pub record_at: Option<usize>,
}

impl EndPlan {
    /// The packets of a schedule, those that `sending` says or, without it, those of a first flow.
    #[must_use]
    pub fn packet_schedule(
        &self,
        schedule: &Schedule,
        sending: Option<SendPlan>,
    ) -> PacketSchedule {
        packet_schedule(self.per_1000_s, schedule, sending)
    }

    /// Where packets go that arrive, and where they are taken from.
    #[must_use]
    pub(super) fn ring(&self) -> (PassageWriter, PassageReader) {
        let packets = if self.receives { self.per_1000_s as f64 / 1e3 * RING_S } else { 0.0 };
        passages(packets as usize + 1_024, self.record_at.is_some())
    }
}

/// Time between two packets, ns, at least 1.
#[must_use]
pub(super) const fn period_ns(per_1000_s: u64) -> i64 {
    let period = PacketPeriod::of_rate(per_1000_s);
    if period.ns < 1 { 1 } else { period.ns }
}

/// All packets of a flow: those of the warm-up, then those that are recorded.
#[must_use]
pub(super) fn packet_schedule(
    per_1000_s: u64,
    schedule: &Schedule,
    sending: Option<SendPlan>,
) -> PacketSchedule {
    let SendPlan { phase_ns, flow } = sending.unwrap_or(SendPlan { phase_ns: 0, flow: 0 });
    let period = PacketPeriod::of_rate(per_1000_s);
    let first_ns = schedule.warmup_ns.saturating_add(phase_ns);
    let recorded_from = period.packets_before(first_ns, schedule.start_ns);
    let by_count = recorded_from.saturating_add(schedule.samples);
    let packets = match schedule.end_ns {
        i64::MAX => by_count,
        end_ns => by_count.min(period.packets_before(first_ns, end_ns)),
    };
    PacketSchedule { first_ns, period, packets, recorded_from, flow }
}

/// When the packet after the last one would be due, ns.
#[must_use]
pub(super) fn end_of(sending: &PacketSchedule) -> i64 {
    let parts = (i128::from(sending.period.ns) << 32) + i128::from(sending.period.fraction);
    let length_ns = parts.saturating_mul(i128::from(sending.packets)) >> 32;
    i64::try_from(i128::from(sending.first_ns) + length_ns).unwrap_or(i64::MAX)
}

#[derive(Debug)]
enum Port {
    Udp(Udp),
    Tcp(Tcp),
    Zmq(Box<Published>),
}

/// An end that can begin.
#[derive(Debug)]
pub(super) struct OpenEnd {
    plan: EndPlan,
    port: Port,
    passages: PassageWriter,
    watch: Option<ReceiverRecord>,
    counts: Arc<Counts>,
    /// Open for as long as the port uses it.
    _socket: Option<OwnedFd>,
}

impl OpenEnd {
    /// With its socket, the ring for what it receives and, where wake-ups are noted, the record of
    /// them; touches all memory that it will use.
    ///
    /// # Errors
    /// What ZeroMQ's library refuses, for the user.
    pub(super) fn new(
        plan: EndPlan,
        socket: OwnedFd,
        passages: PassageWriter,
        watch: Option<ReceiverRecord>,
        counts: Arc<Counts>,
    ) -> Result<Self, String> {
        let descriptor = socket.as_raw_fd();
        // The page that the clock is read from can be touched, but not locked.
        let _ = now_ns();
        let (port, socket) = match (plan.kind, &plan.zmq) {
            (SocketKind::Zmq, Some(places)) => {
                let opened = publish::open(places, socket, plan.size);
                (Port::Zmq(Box::new(opened.map_err(|error| error.to_string())?)), None)
            }
            (SocketKind::Zmq, None) => return Err("its order names no ZeroMQ endpoints".into()),
            (SocketKind::Datagrams, _) => {
                let to = plan.to.map(address::of);
                (Port::Udp(Udp::new(descriptor, plan.size, to)), Some(socket))
            }
            (SocketKind::Bytes, _) => (Port::Tcp(Tcp::new(descriptor, plan.size)), Some(socket)),
        };
        Ok(Self { plan, port, passages, watch, counts, _socket: socket })
    }

    /// Packets that the ring had no room for.
    #[must_use]
    pub(super) fn dropped(&self) -> u64 {
        self.passages.dropped()
    }

    /// Does its part of the schedule.
    pub(super) fn run(&mut self, schedule: &Schedule, stop: &Stop, enough: &Stop) -> Ended {
        let sending = self.plan.packet_schedule(schedule, self.plan.sends);
        let over_ns = end_of(&sending);
        let until_ns = over_ns.saturating_add(self.plan.patience_ns);
        let limits = StreamLimits { until_ns, stop, enough };
        let role = match (self.plan.sends.is_some(), self.plan.receives) {
            (true, true) => EndRole::Both(sending),
            (true, false) => EndRole::Send(sending),
            (false, _) => EndRole::Receive,
        };
        let Self { plan, port, passages, watch, counts, .. } = self;
        let ended = match (passages, watch.as_ref().and_then(ReceiverRecord::record)) {
            (PassageWriter::Plain(passages), _) => {
                by_port(plan, port, passages, counts, &role, limits)
            }
            (PassageWriter::Traced(passages), Some(record)) => {
                let passages = &mut TracedArrivals { record, passages };
                by_port(plan, port, passages, counts, &role, limits)
            }
            // Its order has a place for a record, and came without the memory.
            (PassageWriter::Traced(_), None) => Ended::Failed(libc::EBADF),
        };
        match ended {
            // The other end was faster to go.
            Ended::Failed(libc::ECONNRESET | libc::EPIPE) if stop.is_set() => Ended::Stopped,
            Ended::Failed(libc::ECONNRESET | libc::EPIPE) if now_ns() >= over_ns => Ended::Done,
            ended => ended,
        }
    }
}

fn by_port<A: Arrivals>(
    plan: &EndPlan,
    port: &mut Port,
    passages: &mut A,
    counts: &Counts,
    role: &EndRole,
    limits: StreamLimits<'_>,
) -> Ended {
    match port {
        Port::Udp(port) => with(plan, port, passages, counts, role, limits),
        Port::Tcp(port) => with(plan, port, passages, counts, role, limits),
        Port::Zmq(port) => with(plan, port.as_mut(), passages, counts, role, limits),
    }
}

fn with<P: Packets, A: Arrivals>(
    plan: &EndPlan,
    port: &mut P,
    passages: &mut A,
    counts: &Counts,
    role: &EndRole,
    limits: StreamLimits<'_>,
) -> Ended {
    let end = StreamEnd { port, pace: plan.wait, session: plan.session, passages, counts };
    wait::run(end, role, limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(end_ns: i64, samples: u64) -> Schedule {
        let (warmup_ns, start_ns) = (1_000_000_000, 1_100_000_000);
        Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns: i64::MAX }
    }

    #[test]
    fn the_warm_up_has_packets_of_its_own_and_the_measured_time_all_of_its() {
        // 1,000 a second: 100 in the warm-up, 500 measured.
        let found = packet_schedule(1_000_000, &schedule(1_600_000_000, u64::MAX), None);
        assert_eq!((found.recorded_from, found.packets), (100, 600));
        assert_eq!(end_of(&found), 1_600_000_000);
        let found = packet_schedule(1_000_000, &schedule(i64::MAX, 7), None);
        assert_eq!((found.recorded_from, found.packets), (100, 107));
    }

    #[test]
    fn a_flow_of_its_own_phase_has_as_many() {
        let sending = Some(SendPlan { phase_ns: 500_000, flow: 1 });
        let found = packet_schedule(1_000_000, &schedule(1_600_000_000, u64::MAX), sending);
        assert_eq!((found.recorded_from, found.packets, found.flow), (100, 600, 1));
        assert_eq!(found.first_ns, 1_000_500_000);
    }
}
