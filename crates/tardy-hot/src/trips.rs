//! The parts of a round trip: a sink around another that reads what the BPF side wrote about
//! the threads at both ends; and those of a packet, by the thread that reads it.
//!
//! Per turn it reads two [`ThreadRecord`]s and one word that the remote endpoint wrote, records six
//! more latencies, and compares once with a threshold. All of that lies after the clock read of the
//! turn. Either record was written before the message that ended this turn was received, so that
//! neither changes meanwhile.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::{
    ring::{Sample, Writer},
    stages::ThreadRecord,
    traced::TraceControl,
    wakeup::{Series, Sink},
};

/// The parts of a message's way; they sum to it. Times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TripParts {
    /// From before the call that sends to the moment the receiver was made runnable: the call, and
    /// what carries the message.
    pub send_ns: i64,
    /// To the switch to the receiver.
    pub dispatch_ns: i64,
    /// To the clock read after the call that receives.
    pub receive_ns: i64,
}

/// What the BPF side saw of the receiver of a message that was late. Times are
/// `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LateLeg {
    /// It was made runnable; 0 where it had not gone to sleep.
    pub waking_ns: i64,
    /// It was switched in.
    pub switch_ns: i64,
    /// The CPU on which it was woken, and that on which it was switched in.
    pub cpus: (u32, u32),
    /// When it was stopped and continued for the last time; 0 for never.
    pub stopped_ns: (u64, u64),
}

/// A round trip that was late: for the analysis of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LateTrip {
    /// The message was sent; `CLOCK_MONOTONIC` ns.
    pub t_ns: i64,
    /// How long the round trip took.
    pub latency_ns: i64,
    /// When the remote endpoint had the message.
    pub turned_ns: i64,
    /// To the remote endpoint.
    pub there: LateLeg,
    /// To the local one.
    pub back: LateLeg,
}

/// Earlier packets that a thread saw to before it came to a late one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// How many.
    pub packets: u64,
    /// Until then; `CLOCK_MONOTONIC` ns.
    pub until_ns: i64,
}

/// A packet that was late: for the analysis of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatePacket {
    /// Its stamp, or its scheduled time; `CLOCK_MONOTONIC` ns.
    pub t_ns: i64,
    /// How late the thread had it.
    pub latency_ns: i64,
    /// When it was sent; its stamp if that is not known.
    pub sent_ns: i64,
    /// The last wake-up of that thread by then: on the way of the packet, or before that where it
    /// found the thread awake.
    pub way: LateLeg,
    /// Since when its sender was behind with what it sent: when the first of these was due; that is
    /// this packet where the others had been sent by its time, and 0 where nobody has a schedule.
    pub behind_since_ns: i64,
    /// When its sender was stopped and continued for the last time; 0 for never.
    pub sender_stopped_ns: (u64, u64),
    /// What its sender had still to send when it was due, as far as that arrived.
    pub sent_before: Backlog,
    /// What the thread received between its sending and its receipt.
    pub received_before: Backlog,
    /// The packet before it waited for the same, and was later.
    pub follows_later: bool,
}

impl LateLeg {
    /// Bytes that it has between two processes.
    pub const BYTES: usize = 40;

    /// The last wake-up of the thread of this record, which calls this, whatever it was for.
    #[inline(always)]
    #[must_use]
    pub fn read(record: &ThreadRecord) -> Self {
        let at = |field: &AtomicU64| field.load(Ordering::Relaxed);
        let (waking_ns, switch_ns) = woken(record);
        let cpu = record.cpu.load(Ordering::Relaxed);
        let is_pending = record.pending.load(Ordering::Relaxed) != 0;
        let switch_cpu = if is_pending { cpu } else { record.switch_cpu.load(Ordering::Relaxed) };
        let stopped_ns = (at(&record.stopped_from_ns), at(&record.stopped_until_ns));
        Self { waking_ns, switch_ns, cpus: (cpu, switch_cpu), stopped_ns }
    }

    /// The parts of a way from `from_ns` to `to_ns` on which its receiver was woken so; `None` if
    /// it was woken before: it had not gone to sleep.
    #[must_use]
    pub fn parts(&self, from_ns: i64, to_ns: i64) -> Option<TripParts> {
        parts((self.waking_ns, self.switch_ns), from_ns, to_ns)
    }

    /// Of a receiver that was not woken on this way.
    #[must_use]
    fn without_wake_up(self) -> Self {
        Self { stopped_ns: self.stopped_ns, ..Self::default() }
    }

    fn of(record: &ThreadRecord, way: Option<TripParts>) -> Self {
        let last = Self::read(record);
        if way.is_some() { last } else { last.without_wake_up() }
    }

    /// For another process, which reads it by [`LateLeg::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let cpus = u64::from(self.cpus.0) | u64::from(self.cpus.1) << 32;
        let (from_ns, until_ns) = self.stopped_ns;
        let times = [self.waking_ns as u64, self.switch_ns as u64, cpus, from_ns, until_ns];
        let mut bytes = [0; Self::BYTES];
        for (into, word) in bytes.chunks_exact_mut(8).zip(times) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Of another process.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut words = [0; Self::BYTES / 8];
        for (word, from) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*from);
        }
        let [waking_ns, switch_ns, cpus, from_ns, until_ns] = words;
        Self {
            waking_ns: waking_ns as i64,
            switch_ns: switch_ns as i64,
            cpus: (cpus as u32, (cpus >> 32) as u32),
            stopped_ns: (from_ns, until_ns),
        }
    }
}

/// When the receiver of a message was woken, and when it ran.
#[inline(always)]
fn woken(record: &ThreadRecord) -> (i64, i64) {
    let waking_ns = record.waking_ns.load(Ordering::Relaxed) as i64;
    // Still pending: it was woken before it had gone to sleep, and was never switched in.
    let is_pending = record.pending.load(Ordering::Relaxed) != 0;
    let switch_ns = record.switch_ns.load(Ordering::Relaxed) as i64;
    (waking_ns, if is_pending { waking_ns } else { switch_ns })
}

/// The way of a message from `from_ns` to `to_ns`; `None` if its receiver was not woken meanwhile:
/// it had not gone to sleep.
#[inline(always)]
fn way(record: &ThreadRecord, from_ns: i64, to_ns: i64) -> Option<TripParts> {
    parts(woken(record), from_ns, to_ns)
}

#[inline(always)]
fn parts((waking_ns, switch_ns): (i64, i64), from_ns: i64, to_ns: i64) -> Option<TripParts> {
    let in_order = from_ns <= waking_ns && waking_ns <= switch_ns && switch_ns <= to_ns;
    in_order.then_some(TripParts {
        send_ns: waking_ns - from_ns,
        dispatch_ns: switch_ns - waking_ns,
        receive_ns: to_ns - switch_ns,
    })
}

/// Where the parts of one way go.
#[derive(Debug, Default)]
pub struct WaySeries {
    /// Of [`TripParts::send_ns`].
    pub send: Arc<Series>,
    /// Of [`TripParts::dispatch_ns`].
    pub dispatch: Arc<Series>,
    /// Of [`TripParts::receive_ns`].
    pub receive: Arc<Series>,
}

impl WaySeries {
    /// Records the parts of a message.
    #[inline(always)]
    pub fn record(&self, way: TripParts) {
        self.send.record(way.send_ns);
        self.dispatch.record(way.dispatch_ns);
        self.receive.record(way.receive_ns);
    }
}

/// Records the parts of both ways, and every sample in `inner`.
#[derive(Debug)]
pub struct TracedTrips<'a, S> {
    /// Keeps the whole round trip.
    pub inner: S,
    /// What the BPF side writes about this thread.
    pub near: &'a ThreadRecord,
    /// And about that of the remote endpoint.
    pub far: &'a ThreadRecord,
    /// When the remote endpoint had the message, ns: written by it before it answers.
    pub far_received_ns: &'a AtomicU64,
    /// Where the parts of the way there go; that back begins when the remote endpoint had the
    /// message.
    pub there: WaySeries,
    /// Where those of the way back go.
    pub back: WaySeries,
    /// Counts the round trips in which an end had not gone to sleep, and says which are late.
    pub control: Arc<TraceControl>,
    /// Late round trips on their way.
    pub late: Writer<LateTrip>,
}

impl<S> TracedTrips<'_, S> {
    #[inline(always)]
    fn ways(&self, sample: Sample, turned_ns: i64) -> (Option<TripParts>, Option<TripParts>) {
        let there = way(self.far, sample.t_ns, turned_ns);
        (there, way(self.near, turned_ns, sample.t_ns + sample.latency_ns))
    }

    /// Not inlined: one round trip in a hundred comes here.
    #[cold]
    #[inline(never)]
    fn hand_over(
        &mut self,
        sample: Sample,
        turned_ns: i64,
        ways: (Option<TripParts>, Option<TripParts>),
    ) {
        self.late.push(LateTrip {
            t_ns: sample.t_ns,
            latency_ns: sample.latency_ns,
            turned_ns,
            there: LateLeg::of(self.far, ways.0),
            back: LateLeg::of(self.near, ways.1),
        });
    }
}

impl<S: Sink> Sink for TracedTrips<'_, S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let turned_ns = self.far_received_ns.load(Ordering::Acquire) as i64;
        let ways = self.ways(sample, turned_ns);
        match ways {
            (Some(there), Some(back)) => {
                self.there.record(there);
                self.back.record(back);
            }
            _ => {
                let unmatched = &self.control.unmatched;
                // One writer: a load and a store suffice.
                unmatched.store(unmatched.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
        if sample.latency_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            self.hand_over(sample, turned_ns, ways);
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

/// Records the parts of a packet's way from its stamp on, and every sample in `inner`.
#[derive(Debug)]
pub struct TracedPackets<'a, S> {
    /// Keeps the whole latency.
    pub inner: S,
    /// What the BPF side writes about this thread.
    pub record: &'a ThreadRecord,
    /// Where the parts go.
    pub way: WaySeries,
    /// Counts the packets that found the thread awake, and says which are late.
    pub control: Arc<TraceControl>,
    /// Late packets on their way.
    pub late: Writer<LatePacket>,
}

impl<S> TracedPackets<'_, S> {
    /// Not inlined: one packet in a hundred comes here.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, sample: Sample) {
        let Sample { t_ns, latency_ns } = sample;
        let (sent_ns, way) = (t_ns, LateLeg::read(self.record));
        self.late.push(LatePacket { t_ns, latency_ns, sent_ns, way, ..LatePacket::default() });
    }
}

impl<S: Sink> Sink for TracedPackets<'_, S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let found = way(self.record, sample.t_ns, sample.t_ns + sample.latency_ns);
        match found {
            Some(parts) => self.way.record(parts),
            None => {
                let unmatched = &self.control.unmatched;
                // One writer: a load and a store suffice.
                unmatched.store(unmatched.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
        if sample.latency_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            self.hand_over(sample);
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ring::ring, wakeup::Counted};

    fn record(waking_ns: u64, switch_ns: u64) -> ThreadRecord {
        let record = ThreadRecord::default();
        record.waking_ns.store(waking_ns, Ordering::Relaxed);
        record.switch_ns.store(switch_ns, Ordering::Relaxed);
        record
    }

    /// Totals of the parts of a round trip from 100 to 200 ns in which the remote endpoint had the
    /// message at 150: sums of the ways there and back, and how many did not match.
    fn taken(near: &ThreadRecord, far: &ThreadRecord) -> ([i64; 6], u64) {
        let (sums, unmatched, late) = late_over(i64::MAX, near, far);
        assert_eq!(late, [], "nothing is late while nobody says so");
        (sums, unmatched)
    }

    /// The same, and what was handed over as later than `late_ns`.
    fn late_over(
        late_ns: i64,
        near: &ThreadRecord,
        far: &ThreadRecord,
    ) -> ([i64; 6], u64, Vec<LateTrip>) {
        let (writer, mut reader) = ring(4);
        let whole = Arc::new(Series::default());
        let control: Arc<TraceControl> = Arc::default();
        let mut sink = TracedTrips {
            inner: Counted(Arc::clone(&whole)),
            near,
            far,
            far_received_ns: &AtomicU64::new(150),
            there: WaySeries::default(),
            back: WaySeries::default(),
            control: Arc::clone(&control),
            late: writer,
        };
        control.late_over_ns.store(late_ns, Ordering::Relaxed);
        sink.take(Sample { t_ns: 100, latency_ns: 100 });
        let WaySeries { send: a, dispatch: b, receive: c } = &sink.there;
        let WaySeries { send: d, dispatch: e, receive: f } = &sink.back;
        assert_eq!(whole.tally.totals().count, 1, "the whole is there in any case");
        let sums = [a, b, c, d, e, f].map(|series| series.tally.totals().sum_ns);
        let mut late = Vec::new();
        reader.drain(|trip| late.push(trip));
        (sums, control.unmatched.load(Ordering::Relaxed), late)
    }

    #[test]
    fn a_late_round_trip_is_handed_over_with_what_is_known_of_either_way() {
        let far = record(120, 140);
        far.cpu.store(1, Ordering::Relaxed);
        far.switch_cpu.store(2, Ordering::Relaxed);
        far.stopped_from_ns.store(7, Ordering::Relaxed);
        let (.., late) = late_over(99, &record(140, 145), &far);
        let there = LateLeg { waking_ns: 120, switch_ns: 140, cpus: (1, 2), stopped_ns: (7, 0) };
        let back = LateLeg::default();
        assert_eq!(late, [LateTrip { t_ns: 100, latency_ns: 100, turned_ns: 150, there, back }]);
        assert_eq!(late_over(100, &record(170, 185), &far).2, [], "not late");
    }

    #[test]
    fn the_parts_of_both_ways_sum_to_the_round_trip() {
        let (sums, unmatched) = taken(&record(170, 185), &record(120, 140));
        assert_eq!((sums, unmatched), ([20, 20, 10, 20, 15, 15], 0));
        assert_eq!(sums.iter().sum::<i64>(), 100);
    }

    #[test]
    fn a_packet_has_the_parts_from_its_stamp_to_the_thread_that_reads_it() {
        let (whole, control) = (Arc::new(Series::default()), Arc::<TraceControl>::default());
        let (writer, mut reader) = ring(4);
        let record = record(120, 140);
        let mut sink = TracedPackets {
            inner: Counted(Arc::clone(&whole)),
            record: &record,
            way: WaySeries::default(),
            control: Arc::clone(&control),
            late: writer,
        };
        control.late_over_ns.store(60, Ordering::Relaxed);
        sink.take(Sample { t_ns: 100, latency_ns: 50 });
        sink.take(Sample { t_ns: 130, latency_ns: 70 });
        let WaySeries { send, dispatch, receive } = &sink.way;
        let sums = [send, dispatch, receive].map(|series| series.tally.totals().sum_ns);
        assert_eq!(sums, [20, 20, 10], "the second found the thread awake");
        assert_eq!(control.unmatched.load(Ordering::Relaxed), 1);
        let mut late = Vec::new();
        reader.drain(|packet| late.push(packet));
        let (t_ns, latency_ns) = (130, 70);
        let way = LateLeg { waking_ns: 120, switch_ns: 140, ..LateLeg::default() };
        let second = LatePacket { t_ns, latency_ns, sent_ns: t_ns, way, ..LatePacket::default() };
        assert_eq!((late, whole.tally.totals().count), (vec![second], 2));
    }

    #[test]
    fn an_end_that_was_woken_before_it_slept_is_dispatched_at_once() {
        let far = record(120, 90);
        far.pending.store(1, Ordering::Relaxed);
        assert_eq!(taken(&record(170, 185), &far), ([20, 0, 30, 20, 15, 15], 0));
    }

    #[test]
    fn an_end_that_had_not_gone_to_sleep_matches_nothing() {
        assert_eq!(taken(&record(170, 185), &record(80, 90)), ([0; 6], 1));
        assert_eq!(taken(&record(140, 145), &record(120, 140)), ([0; 6], 1));
    }
}
