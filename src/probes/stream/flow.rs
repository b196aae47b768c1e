//! One flow as its receiver saw it, on the way into its series.

use std::sync::Arc;

use tardy_hot::{
    ring::{Reader, Sample, Writer, ring},
    stream::{Passage, TracedPassage},
    wakeup::Series,
};

use super::{
    delivery::{Delivery, DeliveryCounts},
    far_end::FarEndCounts,
    stages::FlowStages,
};
use crate::{
    probes::Recorded,
    run::{FlowRecord, SeriesHead},
};

/// From the scheduled time to the real one of sending.
pub(super) const PACING: &str = "pacing";
/// From the real time of sending until the receiver had it.
pub(super) const TRANSIT: &str = "transit";

/// The series of whole latencies of a flow.
#[must_use]
pub(super) fn head(name: &str, cpu: Option<u32>) -> SeriesHead {
    SeriesHead { name: name.into(), cpu, period_ns: None }
}

/// The series of a flow: whole latencies, then their two parts.
#[must_use]
pub(super) fn heads(name: &str, cpu: Option<u32>) -> [SeriesHead; 3] {
    let whole = head(name, cpu);
    let (pacing, transit) = (whole.stage(PACING), whole.stage(TRANSIT));
    [whole, pacing, transit]
}

/// Packets in one direction to one receiver.
#[derive(Debug)]
pub(super) struct Flow {
    name: String,
    account: DeliveryCounts,
    late_over_ns: i64,
    /// Whole latencies.
    pub whole: Arc<Series>,
    pacing: Arc<Series>,
    transit: Arc<Series>,
    kept: Option<Writer<Sample>>,
    /// Where it is traced.
    pub stages: Option<FlowStages>,
    /// Of the first and the last recorded packet: number and time when it was sent, ns.
    sent: Option<[(u64, i64); 2]>,
    /// The largest recorded latency, ns.
    pub worst_ns: i64,
}

impl Flow {
    /// Nothing has arrived; single samples are kept in a ring of that size.
    #[must_use]
    pub(super) fn new(name: &str, late_over_ns: i64, ring_samples: Option<usize>) -> (Self, Taken) {
        let (kept, samples) = ring_samples.map(ring).unzip();
        let flow = Self {
            name: name.into(),
            account: DeliveryCounts::new(0, late_over_ns),
            late_over_ns,
            whole: Arc::default(),
            pacing: Arc::default(),
            transit: Arc::default(),
            kept,
            stages: None,
            sent: None,
            worst_ns: i64::MIN,
        };
        (flow, Taken(samples))
    }

    /// Where its series are read, in the order of [`heads`].
    #[must_use]
    pub(super) fn recorded(&self, cpu: Option<u32>, taken: Taken) -> [Recorded; 3] {
        let [whole, pacing, transit] = heads(&self.name, cpu);
        let part = |head, series: &Arc<Series>| Recorded {
            head,
            series: Arc::clone(series),
            samples: None,
        };
        let series = Arc::clone(&self.whole);
        [
            Recorded { head: whole, series, samples: taken.0 },
            part(pacing, &self.pacing),
            part(transit, &self.transit),
        ]
    }

    /// From this number on packets are recorded.
    pub(super) fn begin(&mut self, recorded_from: u64) {
        self.account = DeliveryCounts::new(recorded_from, self.late_over_ns);
    }

    /// Takes a packet that arrived: recorded once, and only where it belongs to the measured time.
    /// Whether it is, where it is here for the first time.
    pub(super) fn take(&mut self, Passage { packet, received_ns }: &Passage) -> Option<bool> {
        let whole_ns = received_ns.saturating_sub(packet.scheduled_ns);
        let delivery = self.account.arrived(packet.number, whole_ns);
        if delivery == Delivery::Again {
            return None;
        }
        if !self.account.is_recorded(packet.number) {
            return Some(false);
        }
        self.whole.record(whole_ns);
        self.pacing.record(packet.sent_ns.saturating_sub(packet.scheduled_ns));
        self.transit.record(received_ns.saturating_sub(packet.sent_ns));
        if let Some(kept) = &mut self.kept {
            kept.push(Sample { t_ns: packet.scheduled_ns, latency_ns: whole_ns });
        }
        self.worst_ns = self.worst_ns.max(whole_ns);
        let this = (packet.number, packet.sent_ns);
        let [first, last] = self.sent.unwrap_or([this; 2]);
        self.sent = Some([first.min(this), last.max(this)]);
        Some(true)
    }

    /// The same for one that comes with the last wake-up of its receiver.
    pub(super) fn take_traced(&mut self, traced: &TracedPassage) -> Option<bool> {
        let taken = self.take(&traced.passage);
        if let (Some(is_recorded), Some(stages)) = (taken, &mut self.stages) {
            stages.take(traced, is_recorded);
        }
        taken
    }

    /// Packets that arrived so far, each once, those of the warm-up too.
    #[must_use]
    pub(super) const fn known(&self) -> u64 {
        self.account.known
    }

    /// Highest number that arrived, plus one.
    #[must_use]
    pub(super) fn numbers_seen(&self) -> u64 {
        self.account.numbers_seen()
    }

    /// What came of it, when its sender had this number of packets to send from the first recorded
    /// one on and nothing is under way any more.
    #[must_use]
    pub(super) fn record(
        &self,
        sent: u64,
        receiver: &FarEndCounts,
        wanted_per_s: f64,
    ) -> FlowRecord {
        let account = &self.account;
        let achieved = self.sent.and_then(|[first, last]| {
            let (packets, ns) = (last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
            (packets > 0 && ns > 0).then(|| packets as f64 * 1e9 / ns as f64)
        });
        FlowRecord {
            series: self.name.clone(),
            sent,
            received: account.received,
            // What came and found no room here did come.
            lost: sent.saturating_sub(account.received).saturating_sub(receiver.dropped),
            late: Some(account.late),
            late_over_ns: Some(self.late_over_ns),
            duplicated: account.duplicated,
            reordered: account.reordered,
            foreign: receiver.foreign,
            wanted_per_s: Some(wanted_per_s),
            achieved_per_s: achieved,
        }
    }
}

/// Where single samples of a flow are read.
#[derive(Debug)]
pub(super) struct Taken(Option<Reader<Sample>>);

#[cfg(test)]
mod tests {
    use tardy_hot::packet::Packet;

    use super::*;

    fn passage(number: u64, pacing_ns: i64, transit_ns: i64) -> Passage {
        let scheduled_ns = 1_000_000 * number as i64;
        let sent_ns = scheduled_ns + pacing_ns;
        let packet = Packet { number, scheduled_ns, sent_ns, ..Packet::default() };
        Passage { packet, received_ns: sent_ns + transit_ns }
    }

    #[test]
    fn the_parts_of_a_latency_sum_to_the_whole_and_each_packet_is_recorded_once() {
        let (mut flow, _) = Flow::new("there", 50_000, None);
        flow.begin(1);
        for (number, pacing_ns, transit_ns) in
            [(0, 9, 9), (1, 1_000, 30_000), (3, 2_000, 70_000), (3, 2_000, 90_000)]
        {
            flow.take(&passage(number, pacing_ns, transit_ns));
        }
        let sum = |series: &Series| series.tally.totals().sum_ns;
        assert_eq!(flow.whole.tally.totals().count, 2);
        assert_eq!(sum(&flow.whole), sum(&flow.pacing) + sum(&flow.transit));
        let receiver = FarEndCounts { foreign: 5, ..FarEndCounts::default() };
        let found = flow.record(4, &receiver, 1_000.0);
        assert_eq!((found.sent, found.received, found.lost), (4, 2, 2));
        assert_eq!((found.late, found.duplicated, found.foreign), (Some(1), 1, 5));
        // Two periods and 1 us from the first to the last.
        let achieved = found.achieved_per_s.unwrap();
        assert!((achieved - 2e9 / 2_001_000.0).abs() < 1e-6, "{achieved}");
    }

    #[test]
    fn what_its_receiver_could_not_keep_is_not_lost() {
        let (flow, _) = Flow::new("back", 1, None);
        let receiver = FarEndCounts { dropped: 3, ..FarEndCounts::default() };
        assert_eq!(flow.record(5, &receiver, 1.0).lost, 2);
    }
}
