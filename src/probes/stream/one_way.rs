//! One-way latencies of packets that an echo sends back: there and back apart, by the clocks of
//! two machines, as far as it is known how these compare.

use std::sync::Arc;

use tardy_hot::{stream::Passage, wakeup::Series};

use super::clock::{Clocks, Exchange, OffsetBounds};
use crate::{
    probes::{ClockEvidence, Recorded},
    run::{ClockRecord, SeriesHead},
};

/// How often the offset is determined, ns: in this time clocks drift apart by less than a wake-up
/// takes.
const WINDOW_NS: i64 = 100_000_000;

/// The least number of packets in a window.
const WINDOW_PACKETS: i64 = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct OneWay {
    window_ns: i64,
    end_ns: i64,
    bounds: OffsetBounds,
    /// Packets of this window, and whether each is recorded.
    waiting: Vec<(Passage, bool)>,
    clocks: Clocks,
    /// Windows that did not bound the offset of the clocks well enough.
    vague: u64,
    windows: u64,
    there: Arc<Series>,
    back: Arc<Series>,
}

/// The series, in their order.
#[must_use]
pub(super) fn heads(there: &str, back: &str, cpu: u32) -> [SeriesHead; 2] {
    let head = |name: &str| SeriesHead { name: name.into(), cpu: Some(cpu), period_ns: None };
    [head(there), head(back)]
}

impl OneWay {
    /// Nothing has come back; packets are so far apart.
    #[must_use]
    pub(super) fn new(period_ns: i64) -> Self {
        Self {
            window_ns: WINDOW_NS.max(period_ns.saturating_mul(WINDOW_PACKETS)),
            end_ns: i64::MIN,
            bounds: OffsetBounds::NONE,
            waiting: Vec::new(),
            clocks: Clocks::default(),
            vague: 0,
            windows: 0,
            there: Arc::default(),
            back: Arc::default(),
        }
    }

    /// Where its series are read, in the order of [`heads`].
    #[must_use]
    pub(super) fn recorded(&self, heads: [SeriesHead; 2]) -> [Recorded; 2] {
        let [there, back] = heads;
        let of = |head, series: &Arc<Series>| Recorded {
            head,
            series: Arc::clone(series),
            samples: None,
        };
        [of(there, &self.there), of(back, &self.back)]
    }

    /// Takes a packet that has come back for the first time.
    pub(super) fn take(&mut self, passage: &Passage, is_recorded: bool) {
        let sent_ns = passage.packet.sent_ns;
        if sent_ns >= self.end_ns {
            self.settle();
            self.end_ns = sent_ns.saturating_add(self.window_ns);
        }
        self.bounds.take(&exchange(passage));
        self.waiting.push((*passage, is_recorded));
    }

    /// Records what waits for the offset.
    pub(super) fn settle(&mut self) {
        let bounds = std::mem::replace(&mut self.bounds, OffsetBounds::NONE);
        if self.waiting.is_empty() {
            return;
        }
        self.windows += 1;
        let at_ns = self.end_ns.saturating_sub(self.window_ns / 2);
        let offset = self.clocks.take(at_ns, self.window_ns, &bounds);
        // The remote endpoint's stamps are what a peer says: any numbers.
        let trips = self.waiting.iter().map(|(passage, _)| exchange(passage).round_trip_ns());
        let sum_ns = trips.fold(0_i64, i64::saturating_add);
        let mean_way_ns = sum_ns / self.waiting.len() as i64 / 2;
        // Where both ways are steady the doubt is all of the latency. Far above, a figure would be
        // of the clocks.
        let known = offset.filter(|offset| offset.uncertainty_ns / 2 <= mean_way_ns);
        self.vague += u64::from(known.is_none());
        if let (Some(offset), true) = (known, self.waiting.iter().any(|(_, recorded)| *recorded)) {
            self.clocks.used(at_ns, offset);
        }
        for (passage, is_recorded) in self.waiting.drain(..) {
            if let (Some(offset), true) = (known, is_recorded) {
                let Passage { packet, received_ns } = passage;
                let [arrived_ns, left_ns] = [packet.far_received_ns, packet.far_sent_ns]
                    .map(|far_ns| far_ns.saturating_sub(offset.offset_ns));
                self.there.record(arrived_ns.saturating_sub(packet.scheduled_ns));
                self.back.record(received_ns.saturating_sub(left_ns));
            }
        }
    }

    /// How the clocks compared.
    #[must_use]
    pub(super) fn record(&self) -> Option<ClockRecord> {
        self.clocks.record()
    }

    /// How well the clocks could be compared.
    #[must_use]
    pub(super) const fn evidence(&self) -> ClockEvidence {
        ClockEvidence {
            steps: self.clocks.steps,
            unknown_periods: self.vague,
            periods: self.windows,
        }
    }
}

const fn exchange(passage: &Passage) -> Exchange {
    let Passage { packet, received_ns } = passage;
    Exchange {
        sent_ns: packet.sent_ns,
        far_received_ns: packet.far_received_ns,
        far_sent_ns: packet.far_sent_ns,
        received_ns: *received_ns,
    }
}

#[cfg(test)]
mod tests {
    use tardy_hot::packet::Packet;

    use super::*;

    const PERIOD_NS: i64 = 1_000_000;

    /// The n-th packet, by a clock of the remote endpoint that is ahead by `offset_ns`.
    fn passage(number: i64, offset_ns: i64, there_ns: i64, back_ns: i64) -> Passage {
        let sent_ns = number * PERIOD_NS;
        let far_ns = sent_ns + there_ns + offset_ns;
        let packet = Packet {
            scheduled_ns: sent_ns,
            sent_ns,
            far_received_ns: far_ns,
            far_sent_ns: far_ns,
            ..Packet::default()
        };
        Passage { packet, received_ns: sent_ns + there_ns + back_ns }
    }

    #[test]
    fn each_way_is_measured_within_the_uncertainty() {
        let mut ways = OneWay::new(PERIOD_NS);
        for number in 0..1_000 {
            // One in ten waits for 500 us on its way back.
            let back_ns = if number % 10 == 0 { 600_000 } else { 100_000 };
            ways.take(&passage(number, -80_000_000, 100_000, back_ns), number >= 100);
        }
        ways.settle();
        let clock = ways.record().unwrap();
        assert!((clock.offset_ns + 80_000_000).abs() <= clock.uncertainty_ns, "{clock:?}");
        let (there, back) = (ways.there.tally.totals(), ways.back.tally.totals());
        assert_eq!((there.count, back.count), (900, 900));
        assert!((there.max_ns - 100_000).abs() <= clock.uncertainty_ns, "{there:?}");
        assert!((back.max_ns - 600_000).abs() <= clock.uncertainty_ns, "{back:?}");
        let ClockEvidence { steps, unknown_periods, .. } = ways.evidence();
        assert_eq!((steps, unknown_periods), (0, 0));
    }

    #[test]
    fn a_clock_that_is_set_costs_its_window_and_is_reported() {
        let mut ways = OneWay::new(PERIOD_NS);
        for number in 0..300 {
            let offset_ns = if number < 150 { 0 } else { 2_000_000_000 };
            ways.take(&passage(number, offset_ns, 100_000, 100_000), true);
        }
        ways.settle();
        assert_eq!(ways.there.tally.totals().count, 200);
        let max_ns = ways.there.tally.totals().max_ns;
        assert!(max_ns < 1_000_000, "no step is in the figures: {max_ns}");
        assert!(ways.evidence().unknown_periods > 0);
    }

    #[test]
    fn a_peer_that_lies_about_its_clock_ends_nothing() {
        let extremes = [i64::MIN, -1, 0, i64::MAX - 1, i64::MAX];
        for (near_ns, far_ns) in extremes.into_iter().flat_map(|n| extremes.map(|f| (n, f))) {
            let mut ways = OneWay::new(PERIOD_NS);
            for number in 0..200 {
                let honest = passage(number, 0, 100_000, 100_000);
                ways.take(&honest, true);
                let lie = Packet { far_received_ns: near_ns, far_sent_ns: far_ns, ..honest.packet };
                ways.take(&Passage { packet: lie, ..honest }, true);
                let sent_ns = if number % 2 == 0 { near_ns } else { far_ns };
                let lie = Packet { sent_ns, scheduled_ns: far_ns, ..lie };
                ways.take(&Passage { packet: lie, ..honest }, true);
            }
            ways.settle();
            let _ = ways.record();
        }
    }

    #[test]
    fn what_is_known_too_badly_is_not_recorded() {
        // Ten seconds a window: clocks may drift apart by a millisecond.
        let mut ways = OneWay::new(1_000_000_000);
        for number in 0..20 {
            ways.take(&passage(number * 1_000, 0, 50_000, 50_000), true);
        }
        ways.settle();
        assert_eq!(ways.there.tally.totals().count, 0);
        let ClockEvidence { unknown_periods, periods, .. } = ways.evidence();
        assert!(ways.record().is_none() && unknown_periods == periods && periods > 0);
    }
}
