//! The parts of a traced flow: their series, and late packets on their way to the blame.
//!
//! All of it is done where packets are counted, and nothing in the threads that send and receive
//! but to note a wake-up with each packet.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use tardy_hot::{
    ring::{Reader, Writer, ring},
    stages::Records,
    stream::{Passage, TracedPassage},
    traced::TraceControl,
    trips::{Backlog, LateLeg, LatePacket, WaySeries},
    wakeup::Series,
};

use crate::{
    probes::{Recorded, TracedSamples, TracedThread, Tracing},
    run::SeriesHead,
    setup::threads::Found,
};

/// The parts of the transit by name, in the order of time.
const PARTS: [&str; 3] = ["send", "dispatch", "receive"];

/// Late packets that wait to be blamed: those of a stall of 100 ms at 40,000 a second.
const LATE_RING: usize = 4_096;

/// Packets before a late one that are remembered, at the most.
const MOST_RECENT: usize = 1 << 16;

/// The series of the parts of `total`.
pub(super) fn heads(total: &SeriesHead) -> Vec<SeriesHead> {
    PARTS.into_iter().map(|part| total.stage(part)).collect()
}

/// What a traced flow has beside its series.
#[derive(Debug)]
pub(super) struct FlowStages {
    records: Arc<dyn Records>,
    /// Who sends, as a number among the traced threads.
    sender: usize,
    parts: WaySeries,
    /// Whole latencies of the warm-up, from which the first threshold comes.
    warmup: Arc<Series>,
    control: Arc<TraceControl>,
    late: Writer<LatePacket>,
    sent: Recent,
    received: Recent,
    behind: BehindSchedule,
    last: LastPacket,
}

/// The packet before.
#[derive(Debug, Clone, Copy, Default)]
struct LastPacket {
    latency_ns: i64,
    sent_ns: i64,
    received_ns: i64,
}

/// The same, for its readers.
#[derive(Debug)]
pub(super) struct SharedFlowStages {
    sender: usize,
    series: [Arc<Series>; 3],
    warmup: Arc<Series>,
    total: Arc<Series>,
    control: Arc<TraceControl>,
    late: Reader<LatePacket>,
}

impl FlowStages {
    /// Of a flow whose whole latencies are in `total`.
    pub(super) fn new(
        tracing: &Tracing,
        sender: usize,
        total: &Arc<Series>,
    ) -> (Self, SharedFlowStages) {
        let series: [Arc<Series>; 3] = std::array::from_fn(|_| Arc::default());
        let (warmup, control) = (Arc::<Series>::default(), Arc::<TraceControl>::default());
        let (late, reader) = ring(LATE_RING);
        let [send, dispatch, receive] = series.clone();
        let own = Self {
            records: Arc::clone(&tracing.records),
            sender,
            parts: WaySeries { send, dispatch, receive },
            warmup: Arc::clone(&warmup),
            control: Arc::clone(&control),
            late,
            sent: Recent::default(),
            received: Recent::default(),
            behind: BehindSchedule::default(),
            last: LastPacket::default(),
        };
        let total = Arc::clone(total);
        (own, SharedFlowStages { sender, series, warmup, total, control, late: reader })
    }

    /// Takes a packet that is here for the first time.
    pub(super) fn take(&mut self, traced: &TracedPassage, is_recorded: bool) {
        let TracedPassage { passage: Passage { packet, received_ns }, woken } = *traced;
        let (t_ns, sent_ns) = (packet.scheduled_ns, packet.sent_ns);
        let latency_ns = received_ns.saturating_sub(t_ns);
        // Also in the warm-up: what is recorded may have waited behind it.
        let sent_before = self.sent.since(t_ns, sent_ns);
        let received_before = self.received.since(sent_ns, received_ns);
        let behind_since_ns = self.behind.since(t_ns, sent_ns);
        let last =
            std::mem::replace(&mut self.last, LastPacket { latency_ns, sent_ns, received_ns });
        if !is_recorded {
            self.warmup.record(latency_ns);
            return;
        }
        let parts = woken.parts(sent_ns, received_ns);
        match parts {
            Some(parts) => self.parts.record(parts),
            None => {
                self.control.unmatched.fetch_add(1, Relaxed);
            }
        }
        if latency_ns <= self.control.late_over_ns.load(Relaxed) {
            return;
        }
        // Later than this one, so that it is late, too.
        let follows_later =
            last.latency_ns > latency_ns && (last.received_ns > sent_ns || last.sent_ns > t_ns);
        let sender = self.records.record(self.sender).map(LateLeg::read).unwrap_or_default();
        self.late.push(LatePacket {
            t_ns,
            latency_ns,
            sent_ns,
            way: woken,
            behind_since_ns,
            sender_stopped_ns: sender.stopped_ns,
            sent_before,
            received_before,
            follows_later,
        });
    }
}

impl SharedFlowStages {
    /// Where the parts of `total` are read.
    pub(super) fn recorded(&self, total: &SeriesHead) -> Vec<Recorded> {
        let one = |(head, series)| Recorded { head, series, samples: None };
        heads(total).into_iter().zip(self.series.clone()).map(one).collect()
    }

    /// The thread that receives, for the BPF side to follow; its packets took the way `way`, and
    /// their series is `name`.
    pub(super) fn thread(
        self,
        name: &str,
        way: &'static str,
        cpu: u32,
        found: &Found,
    ) -> TracedThread {
        let (parts, late, sender) = (self.series, self.late, Some(self.sender));
        TracedThread {
            warmup: self.warmup,
            total: self.total,
            control: self.control,
            samples: TracedSamples::Packets { parts, late, way, sender },
            ..TracedThread::far(name, cpu, found)
        }
    }
}

/// Since when a sender has been behind its schedule.
#[derive(Debug, Default)]
struct BehindSchedule {
    since_ns: i64,
    sent_ns: i64,
}

impl BehindSchedule {
    /// When the first was due of those that it sent late without a break, up to this one.
    fn since(&mut self, due_ns: i64, sent_ns: i64) -> i64 {
        if due_ns >= self.sent_ns {
            self.since_ns = due_ns;
        }
        self.sent_ns = sent_ns;
        self.since_ns.min(due_ns)
    }
}

/// When a thread last saw to packets, in the order in which they came.
#[derive(Debug, Default)]
struct Recent(VecDeque<i64>);

impl Recent {
    /// Those of them after `from_ns`, and takes note of one more. Later calls have a later
    /// `from_ns`, but for packets out of order, before which some are missing then.
    fn since(&mut self, from_ns: i64, at_ns: i64) -> Backlog {
        while self.0.front().is_some_and(|first_ns| *first_ns <= from_ns) {
            self.0.pop_front();
        }
        let found = Backlog {
            packets: self.0.len() as u64,
            until_ns: self.0.back().copied().unwrap_or_default(),
        };
        self.0.push_back(at_ns);
        if self.0.len() > MOST_RECENT {
            self.0.pop_front();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use tardy_hot::{packet::Packet, stages::ThreadRecord};

    use super::*;

    /// The sender's record alone.
    #[derive(Debug, Default)]
    struct One(ThreadRecord);

    impl Records for One {
        fn record(&self, n: usize) -> Option<&ThreadRecord> {
            (n == 0).then_some(&self.0)
        }
    }

    /// Scheduled, sent and received at these times, by a receiver that was last woken at `woken`.
    fn passage(times: [i64; 3], woken: i64) -> TracedPassage {
        let [scheduled_ns, sent_ns, received_ns] = times;
        let packet = Packet { scheduled_ns, sent_ns, ..Packet::default() };
        let woken = LateLeg {
            waking_ns: woken,
            switch_ns: woken + 2,
            stopped_ns: (4, 5),
            ..LateLeg::default()
        };
        TracedPassage { passage: Passage { packet, received_ns }, woken }
    }

    /// What was handed over of these packets, later than 50 ns; how many were not split, and the
    /// sums of the parts of the others.
    fn taken(passages: &[(TracedPassage, bool)]) -> (Vec<LatePacket>, u64, [i64; 3], u64) {
        let records = One::default();
        records.0.stopped_from_ns.store(8, Relaxed);
        let tracing = Tracing { records: Arc::new(records), is_rt: false };
        let (mut own, mut shared) = FlowStages::new(&tracing, 0, &Arc::default());
        shared.control.late_over_ns.store(50, Relaxed);
        for (passage, is_recorded) in passages {
            own.take(passage, *is_recorded);
        }
        let mut late = Vec::new();
        shared.late.drain(|packet| late.push(packet));
        let sums = shared.series.each_ref().map(|series| series.tally.totals().sum_ns);
        let unmatched: &AtomicU64 = &shared.control.unmatched;
        (late, unmatched.load(Relaxed), sums, shared.warmup.tally.totals().count)
    }

    #[test]
    fn a_packet_that_woke_its_receiver_is_split_there() {
        let (late, unmatched, sums, _) = taken(&[(passage([100, 110, 200], 150), true)]);
        assert_eq!((unmatched, sums), (0, [40, 2, 48]));
        let [packet] = late[..] else { panic!("{late:?}") };
        assert_eq!((packet.t_ns, packet.sent_ns, packet.latency_ns), (100, 110, 100));
        assert_eq!((packet.way.waking_ns, packet.sender_stopped_ns), (150, (8, 0)));
        assert_eq!((packet.sent_before.packets, packet.received_before.packets), (0, 0));
    }

    #[test]
    fn those_behind_it_have_what_came_before_them() {
        let behind = [
            (passage([100, 110, 200], 190), true),
            (passage([120, 130, 203], 190), true),
            (passage([140, 205, 260], 190), true),
        ];
        let (late, unmatched, ..) = taken(&behind);
        assert_eq!(unmatched, 1, "the third was sent after its receiver had been woken");
        let before: Vec<_> =
            late.iter().map(|one| (one.sent_before, one.received_before)).collect();
        let none = Backlog::default();
        let first = Backlog { packets: 1, until_ns: 200 };
        // The third was due when the others had been sent, and sent when they had come.
        assert_eq!(before[..2], [(none, none), (none, first)]);
        assert_eq!((before[2].0.packets, before[2].1.packets), (0, 0));
        let follows: Vec<bool> = late.iter().map(|one| one.follows_later).collect();
        assert_eq!(follows, [false, true, false], "the third had nothing to wait for but itself");
        assert_eq!((late[2].way.waking_ns, late[2].way.stopped_ns), (190, (4, 5)));
        let since: Vec<i64> = late.iter().map(|one| one.behind_since_ns).collect();
        assert_eq!(since, [100, 120, 140], "each was due when the one before it had been sent");
    }

    #[test]
    fn a_sender_behind_its_schedule_had_others_to_send_first() {
        let behind = [
            (passage([100, 500, 510], 505), true),
            (passage([200, 515, 530], 520), true),
            (passage([300, 535, 550], 540), true),
        ];
        let (late, ..) = taken(&behind);
        let sent: Vec<Backlog> = late.iter().map(|one| one.sent_before).collect();
        let of = |packets, until_ns| Backlog { packets, until_ns };
        assert_eq!(sent, [of(0, 0), of(1, 500), of(2, 515)]);
        assert!(late.iter().all(|one| one.behind_since_ns == 100), "{late:?}");
        assert_eq!(
            late.iter().map(|one| one.follows_later).collect::<Vec<_>>(),
            [false, true, true]
        );
    }

    #[test]
    fn the_warm_up_is_in_no_part_and_yet_before_what_follows() {
        let passages =
            [(passage([100, 110, 200], 150), false), (passage([150, 160, 260], 150), true)];
        let (late, unmatched, sums, warmed_up) = taken(&passages);
        assert_eq!((late.len(), unmatched, sums, warmed_up), (1, 1, [0; 3], 1));
        assert_eq!(late[0].received_before, Backlog { packets: 1, until_ns: 200 });
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut recent = Recent::default();
        for at_ns in 1..=MOST_RECENT as i64 + 9 {
            recent.since(0, at_ns);
        }
        assert_eq!(recent.since(0, i64::MAX).packets, MOST_RECENT as u64);
        assert_eq!(recent.since(i64::MAX, i64::MAX), Backlog::default());
    }
}
