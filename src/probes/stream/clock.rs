//! How two machines' clocks compare, from packets that went there and came back. Pure.
//!
//! A packet cannot arrive before it was sent. So each one that came back bounds the offset of the
//! remote endpoint's clock from both sides: it is at most what passed between sending here and
//! receiving there by those two clocks, and at least the same of the way back. Of many packets the
//! narrowest bounds count; the offset lies between them whatever the ways take, alike or not. Half
//! of what is between them is the uncertainty, which is at most half the shortest round trip.

use crate::run::ClockRecord;

/// The most that two clocks drift apart while neither is set, parts per million. One that
/// is kept in step needs less than 100; what goes faster was set.
const DRIFT_PPM: i64 = 100;

/// The four times of a packet: sent and received back by the local clock; received and sent back
/// by the remote one; ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// Near, sent.
    pub sent_ns: i64,
    /// Far, received.
    pub far_received_ns: i64,
    /// Far, sent back.
    pub far_sent_ns: i64,
    /// Near, received.
    pub received_ns: i64,
}

impl Exchange {
    /// Time on the way, both ways, ns.
    #[must_use]
    pub(super) const fn round_trip_ns(&self) -> i64 {
        let here = self.received_ns.saturating_sub(self.sent_ns);
        here.saturating_sub(self.far_sent_ns.saturating_sub(self.far_received_ns))
    }
}

/// What the exchanges of a short time say of the offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct OffsetBounds {
    low_ns: i64,
    high_ns: i64,
    shortest_ns: i64,
    exchanges: u64,
}

impl OffsetBounds {
    /// Of no exchange.
    pub(super) const NONE: Self =
        Self { low_ns: i64::MIN, high_ns: i64::MAX, shortest_ns: i64::MAX, exchanges: 0 };

    /// One more.
    pub(super) fn take(&mut self, exchange: &Exchange) {
        let low_ns = exchange.far_sent_ns.saturating_sub(exchange.received_ns);
        let high_ns = exchange.far_received_ns.saturating_sub(exchange.sent_ns);
        self.low_ns = self.low_ns.max(low_ns);
        self.high_ns = self.high_ns.min(high_ns);
        self.shortest_ns = self.shortest_ns.min(exchange.round_trip_ns());
        self.exchanges += 1;
    }

    /// Both measurements combined; the clocks may have drifted by `drift_ns` since `before`.
    const fn with(mut self, before: &Self, drift_ns: i64) -> Self {
        let low_ns = before.low_ns.saturating_sub(drift_ns);
        let high_ns = before.high_ns.saturating_add(drift_ns);
        self.low_ns = if low_ns > self.low_ns { low_ns } else { self.low_ns };
        self.high_ns = if high_ns < self.high_ns { high_ns } else { self.high_ns };
        self
    }

    /// Offset and uncertainty over `length_ns`; absent without an exchange, and where they
    /// contradict each other: then a clock was set meanwhile.
    #[must_use]
    pub(super) fn settle(&self, length_ns: i64) -> Option<Offset> {
        let drift_ns = ppm(length_ns, DRIFT_PPM);
        let width_ns = self.high_ns.checked_sub(self.low_ns)?;
        if self.exchanges == 0 || width_ns < -drift_ns {
            return None;
        }
        let offset_ns = self.low_ns + width_ns / 2;
        Some(Offset {
            offset_ns,
            uncertainty_ns: (width_ns.max(0) / 2 + 1).saturating_add(drift_ns),
        })
    }
}

/// The remote endpoint's clock minus the local endpoint's, and the uncertainty; ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// Far minus near.
    pub offset_ns: i64,
    /// The largest error of the estimate, ns.
    pub uncertainty_ns: i64,
}

const fn ppm(length_ns: i64, parts: i64) -> i64 {
    length_ns.saturating_mul(parts) / 1_000_000
}

/// How the offset went over a run.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    first: Option<(i64, Offset)>,
    last: Option<(i64, Offset)>,
    /// What is known by now, and since when.
    known: Option<(i64, OffsetBounds)>,
    worst_ns: i64,
    shortest_ns: Option<i64>,
    exchanges: u64,
    /// Times that a clock was set.
    pub steps: u64,
}

impl Clocks {
    /// Takes what was found of the time of `length_ns` around `at_ns` of the local clock.
    pub(super) fn take(
        &mut self,
        at_ns: i64,
        length_ns: i64,
        bounds: &OffsetBounds,
    ) -> Option<Offset> {
        self.exchanges += bounds.exchanges;
        let shortest_ns = self.shortest_ns.unwrap_or(i64::MAX).min(bounds.shortest_ns);
        self.shortest_ns = Some(shortest_ns).filter(|_| self.exchanges > 0);
        // What was known before still holds, but for what the clocks drifted.
        let joined = self.known.as_ref().map(|(before_ns, before)| {
            bounds.with(before, ppm(at_ns.saturating_sub(*before_ns), DRIFT_PPM))
        });
        let carried = joined.filter(|joined| joined.settle(length_ns).is_some());
        self.steps += u64::from(joined.is_some() && carried.is_none());
        let bounds = carried.unwrap_or(*bounds);
        let offset = bounds.settle(length_ns);
        if offset.is_none() {
            self.steps += u64::from(joined.is_none() && bounds.exchanges > 0);
            self.known = None;
            return None;
        }
        self.known = Some((at_ns, bounds));
        offset
    }

    /// This offset was made use of.
    pub(super) fn used(&mut self, at_ns: i64, offset: Offset) {
        self.first.get_or_insert((at_ns, offset));
        self.last = Some((at_ns, offset));
        self.worst_ns = self.worst_ns.max(offset.uncertainty_ns);
    }

    /// Its summary at the end.
    #[must_use]
    pub(super) fn record(&self) -> Option<ClockRecord> {
        let ((first_ns, first), (last_ns, last)) = (self.first?, self.last?);
        let moved_ns = last.offset_ns.saturating_sub(first.offset_ns);
        let drift_ppb = match last_ns.saturating_sub(first_ns) {
            0 => 0.0,
            passed_ns => moved_ns as f64 / passed_ns as f64 * 1e9,
        };
        Some(ClockRecord {
            offset_ns: first.offset_ns.saturating_add(moved_ns / 2),
            uncertainty_ns: self.worst_ns,
            drift_ppb,
            exchanges: self.exchanges,
            shortest_round_trip_ns: self.shortest_ns?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW_NS: i64 = 100_000_000;

    /// A packet sent at `at_ns` that takes `there` one way, is held for `held`, and takes `back` to
    /// return.
    fn exchange(at_ns: i64, offset_ns: i64, (there, held, back): (i64, i64, i64)) -> Exchange {
        Exchange {
            sent_ns: at_ns,
            far_received_ns: at_ns + there + offset_ns,
            far_sent_ns: at_ns + there + held + offset_ns,
            received_ns: at_ns + there + held + back,
        }
    }

    fn bounds(of: impl IntoIterator<Item = Exchange>) -> OffsetBounds {
        let mut bounds = OffsetBounds::NONE;
        of.into_iter().for_each(|exchange| bounds.take(&exchange));
        bounds
    }

    #[test]
    fn alike_ways_give_the_offset_and_half_the_round_trip() {
        let bounds = bounds([exchange(0, 7_000_000, (40_000, 5_000, 40_000))]);
        let offset = bounds.settle(0).unwrap();
        assert_eq!(offset, Offset { offset_ns: 7_000_000, uncertainty_ns: 40_001 });
        assert_eq!(bounds.shortest_ns, 80_000);
        assert_eq!(OffsetBounds::NONE.settle(0), None);
    }

    #[test]
    fn a_clock_that_drifts_is_followed() {
        let mut clocks = Clocks::default();
        // 50 ppm: 5 us in each window.
        for number in 0..600 {
            let at_ns = number * WINDOW_NS;
            let offset_ns = -3_000_000 + at_ns / 20_000;
            let found = bounds([exchange(at_ns, offset_ns, (20_000, 0, 30_000))]);
            let offset = clocks.take(at_ns, WINDOW_NS, &found).unwrap();
            clocks.used(at_ns, offset);
            assert!((offset.offset_ns - offset_ns).abs() <= offset.uncertainty_ns);
        }
        let record = clocks.record().unwrap();
        assert_eq!((clocks.steps, record.exchanges), (0, 600));
        assert!((record.drift_ppb - 50_000.0).abs() < 1_000.0, "{record:?}");
        assert_eq!(record.shortest_round_trip_ns, 50_000);
    }

    #[test]
    fn what_was_known_before_helps_where_all_packets_are_slow() {
        let mut clocks = Clocks::default();
        let quick = clocks.take(0, WINDOW_NS, &bounds([exchange(0, 5, (9_000, 0, 9_000))]));
        let slow = bounds([exchange(0, 5, (80_000_000, 0, 1_000_000))]);
        let offset = clocks.take(WINDOW_NS, WINDOW_NS, &slow).unwrap();
        // It may have drifted by 10 us meanwhile.
        assert!(offset.uncertainty_ns <= quick.unwrap().uncertainty_ns + 10_000, "{offset:?}");
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_within_a_window_and_between_two() {
        let mut clocks = Clocks::default();
        let way = (20_000, 0, 20_000);
        assert!(clocks.take(0, WINDOW_NS, &bounds([exchange(0, 0, way)])).is_some());
        let set = bounds([exchange(1, 0, way), exchange(2, 1_000_000_000, way)]);
        assert_eq!(clocks.take(WINDOW_NS, WINDOW_NS, &set), None);
        assert_eq!(clocks.steps, 1);
        let after = bounds([exchange(3, 1_000_000_000, way)]);
        assert!(clocks.take(2 * WINDOW_NS, WINDOW_NS, &after).is_some());
        assert_eq!(clocks.steps, 1, "it is counted once");
    }

    proptest! {
        #[test]
        fn whatever_the_ways_take_the_truth_is_within_the_uncertainty(
            offset_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in prop::collection::vec(
                (0_i64..10_000_000, 0_i64..1_000_000, 0_i64..10_000_000), 1..50),
        ) {
            let found = bounds(ways.iter().map(|way| exchange(0, offset_ns, *way)));
            let offset = found.settle(0).unwrap();
            prop_assert!((offset.offset_ns - offset_ns).abs() <= offset.uncertainty_ns);
            prop_assert!(offset.uncertainty_ns <= found.shortest_ns / 2 + 2);
        }
    }
}
