//! The thread that reads packets.

use std::{
    os::fd::AsRawFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use tardy_hot::{
    receive::{
        self, AcceptAll, Await, Block, Epoll, Filter, Inlet, Nic, NicStamp, NoNic, Outlets, Own,
        Ppoll, ReceiveUntil, Seen, SpinReceive,
    },
    ring::{Sample, Writer},
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series, Sink},
};

use super::{
    ReceiveWait,
    receive_socket::ReceiveSocket,
    stages::{PacketStages, Receiving},
};
use crate::probes::{Schedule, measured_thread::LoopEnd};

/// The sender's last packet may be late by this without being lost, ns.
const GRACE_NS: i64 = 50_000_000;

/// The largest packet there is.
const ROOM: usize = 65_536;

/// What the thread shares with others.
#[derive(Debug, Default)]
pub(super) struct ReceiveShared {
    /// A wait that lasts longer than this must be ended by a signal; ns, 0 if none is.
    pub waits_until_ns: AtomicI64,
    /// What came of it, at the end.
    pub outcome: Mutex<ReceiveOutcome>,
}

/// What came of it, beside samples.
#[derive(Debug, Default)]
pub(super) struct ReceiveOutcome {
    pub seen: Seen,
    /// Of the sender's packets, where there is one.
    pub own: Option<Own>,
    /// The time was over before the samples were taken.
    pub is_out_of_time: bool,
    /// Where it was to poll a device: whether there was one that can be.
    pub could_poll: Option<bool>,
}

/// What the measuring thread owns, beside its socket.
pub(super) struct ReceiveThread {
    pub wait: ReceiveWait,
    /// Session of the sender, and where its packet begins.
    pub own: Option<(u64, usize)>,
    pub series: Arc<Series>,
    /// Takes the samples of the warm-up.
    pub scratch: Arc<Series>,
    pub writer: Option<Writer<Sample>>,
    /// Where stamps of the NIC go, if it makes any.
    pub nic: Option<Writer<NicStamp>>,
    pub stop: Arc<Stop>,
    pub shared: Arc<ReceiveShared>,
    /// Where the parts of packets go, if they are recorded.
    pub stages: Option<PacketStages>,
}

/// The measured loop, but for its sink.
struct Loop<'a, W: Await, F, N> {
    inlet: &'a mut Inlet<W>,
    filter: &'a mut F,
    nic: N,
    seen: &'a mut Seen,
    until: ReceiveUntil,
    stop: &'a Stop,
}

impl<W: Await, F: Filter, N: Nic> Receiving for Loop<'_, W, F, N> {
    fn into<S: Sink>(mut self, sink: &mut S) -> Ended {
        let nic = &mut self.nic;
        let out = Outlets { sink, filter: self.filter, nic, seen: self.seen };
        receive::run(self.inlet, out, self.until, self.stop)
    }
}

impl ReceiveThread {
    /// The warm-up, then the measured loop.
    pub(super) fn both_loops(mut self, schedule: Schedule, receiver: &ReceiveSocket) -> LoopEnd {
        let socket = receiver.raw();
        let end = match (self.wait, &receiver.epoll) {
            (ReceiveWait::Ppoll, _) => self.loops_by(Inlet::new(Ppoll, socket, ROOM), schedule),
            (ReceiveWait::Epoll, Some(watcher)) => {
                self.loops_by(Inlet::new(Epoll(watcher.as_raw_fd()), socket, ROOM), schedule)
            }
            (ReceiveWait::Spin, _) => {
                self.loops_by(Inlet::new(SpinReceive, socket, ROOM), schedule)
            }
            _ => self.loops_by(Inlet::new(Block, socket, ROOM), schedule),
        };
        self.shared.waits_until_ns.store(0, Ordering::Relaxed);
        if matches!(self.wait, ReceiveWait::BusyPoll(_)) {
            self.outcome(|outcome| outcome.could_poll = Some(receiver.can_busy_poll()));
        }
        match end.ended {
            // What was waited for beyond is not measured time.
            Ended::Done => LoopEnd { end_ns: schedule.end_ns, ..end },
            _ => end,
        }
    }

    fn outcome(&self, set: impl FnOnce(&mut ReceiveOutcome)) {
        set(&mut self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn loops_by<W: Await>(&mut self, mut inlet: Inlet<W>, schedule: Schedule) -> LoopEnd {
        // The measured loop begins within the warm-up: which packets count, their own times say.
        let middle_ns = i64::midpoint(schedule.warmup_ns, schedule.start_ns);
        let mut warm = AcceptAll { start_ns: i64::MIN, end_ns: middle_ns };
        let until = ReceiveUntil { end_ns: middle_ns, samples: u64::MAX, stop_over_ns: i64::MAX };
        self.shared.waits_until_ns.store(middle_ns, Ordering::Relaxed);
        let out = Outlets {
            sink: &mut Counted(Arc::clone(&self.scratch)),
            filter: &mut warm,
            nic: &mut NoNic,
            seen: &mut Seen::default(),
        };
        let warmed = receive::run(&mut inlet, out, until, &self.stop);
        LoopEnd::after_warm_up(warmed, || self.measured(&mut inlet, schedule))
    }

    fn measured<W: Await>(&mut self, inlet: &mut Inlet<W>, schedule: Schedule) -> Ended {
        let Schedule { start_ns, end_ns, .. } = schedule;
        let Some((session, at)) = self.own else {
            return self.filtered(inlet, &mut AcceptAll { start_ns, end_ns }, schedule, end_ns);
        };
        let mut own = Own { session, at, start_ns, ..Own::default() };
        let ended = self.filtered(inlet, &mut own, schedule, end_ns.saturating_add(GRACE_NS));
        self.outcome(|outcome| outcome.own = Some(own));
        ended
    }

    fn filtered<W: Await, F: Filter>(
        &mut self,
        inlet: &mut Inlet<W>,
        filter: &mut F,
        schedule: Schedule,
        end_ns: i64,
    ) -> Ended {
        let Schedule { samples, stop_over_ns, .. } = schedule;
        let until = ReceiveUntil { end_ns, samples, stop_over_ns };
        self.shared.waits_until_ns.store(end_ns, Ordering::Relaxed);
        let mut seen = Seen::default();
        let (nic, stages, writer) = (self.nic.take(), self.stages.take(), self.writer.take());
        let (notes, stop, series) = (&mut seen, &*self.stop, Arc::clone(&self.series));
        let ended = match nic {
            Some(nic) => {
                let receiving = Loop { inlet, filter, nic, seen: notes, until, stop };
                into(series, writer, stages, receiving)
            }
            None => {
                let receiving = Loop { inlet, filter, nic: NoNic, seen: notes, until, stop };
                into(series, writer, stages, receiving)
            }
        };
        let is_out_of_time = ended == Ended::Done && self.series.tally.totals().count < samples;
        self.outcome(|outcome| {
            outcome.seen = seen;
            outcome.is_out_of_time = is_out_of_time;
        });
        ended
    }
}

/// Runs a loop into what is wanted of its samples.
fn into(
    series: Arc<Series>,
    writer: Option<Writer<Sample>>,
    stages: Option<PacketStages>,
    receiving: impl Receiving,
) -> Ended {
    match (writer, stages) {
        (Some(writer), None) => receiving.into(&mut Kept(series, writer)),
        (None, None) => receiving.into(&mut Counted(series)),
        (Some(writer), Some(stages)) => stages.measured(Kept(series, writer), receiving),
        (None, Some(stages)) => stages.measured(Counted(series), receiving),
    }
}
