//! What a NIC stamped itself, by its own clock: converted once both sides of a stamp are known.

use std::{collections::VecDeque, sync::Arc};

use tardy_hot::{receive::NicStamp, ring::Reader, wakeup::Series};

use crate::{
    run::ClockRecord,
    sys::nic_clock::{Compared, NicClock},
};

/// Stamps that wait for a comparison after them; beyond that the oldest go.
const MOST_WAITING: usize = 1 << 16;

/// Converts stamps to `CLOCK_REALTIME` and records how late the reader was after them.
#[derive(Debug)]
pub(super) struct NicLatency {
    clock: NicClock,
    stamps: Reader<NicStamp>,
    series: Arc<Series>,
    waiting: VecDeque<NicStamp>,
    history: ClockHistory,
}

impl NicLatency {
    pub(super) fn new(clock: NicClock, stamps: Reader<NicStamp>, series: Arc<Series>) -> Self {
        Self { clock, stamps, series, waiting: VecDeque::new(), history: ClockHistory::default() }
    }

    /// Compares the clocks, and converts what came since the last time.
    pub(super) fn poll(&mut self) {
        let waiting = &mut self.waiting;
        self.stamps.drain(|stamp| {
            if waiting.len() == MOST_WAITING {
                waiting.pop_front();
            }
            waiting.push_back(stamp);
        });
        // Where the driver refuses once, the next comparison spans the gap.
        let Ok(compared) = self.clock.compare() else { return };
        self.history.push(compared);
        let (history, series) = (&self.history, &self.series);
        waiting.retain(|stamp| match history.realtime_ns(stamp.nic_ns) {
            StampPosition::Known(at_ns) => {
                series.record(stamp.realtime_ns - at_ns);
                false
            }
            StampPosition::Early => false,
            StampPosition::NotYet => true,
        });
    }

    /// How the clocks compared.
    pub(super) fn record(&self) -> Option<ClockRecord> {
        self.history.record()
    }
}

/// Where a stamp lies among the comparisons.
#[derive(Debug, PartialEq, Eq)]
enum StampPosition {
    /// Between the last two; `CLOCK_REALTIME` ns.
    Known(i64),
    /// Before them.
    Early,
    /// After them.
    NotYet,
}

/// The last two comparisons, and what all of them say.
#[derive(Debug, Default)]
struct ClockHistory {
    first: Option<Compared>,
    before: Option<Compared>,
    last: Option<Compared>,
    exchanges: u64,
    /// The largest error of a conversion, ns.
    uncertainty_ns: i64,
    tightest_ns: Option<i64>,
}

impl ClockHistory {
    fn push(&mut self, compared: Compared) {
        self.exchanges += 1;
        self.first.get_or_insert(compared);
        let tightest_ns = self.tightest_ns.unwrap_or(i64::MAX);
        self.tightest_ns = Some(tightest_ns.min(compared.uncertainty_ns * 2));
        self.before = self.last.replace(compared);
        if let Some(before) = self.before {
            // Between the two, a clock that is steered may run anywhere between both offsets.
            let change_ns = (offset_ns(compared) - offset_ns(before)).abs() / 2;
            let error_ns = before.uncertainty_ns.max(compared.uncertainty_ns) + change_ns;
            self.uncertainty_ns = self.uncertainty_ns.max(error_ns);
        }
    }

    fn realtime_ns(&self, nic_ns: i64) -> StampPosition {
        let Some(last) = self.last.filter(|last| nic_ns <= last.nic_ns) else {
            return StampPosition::NotYet;
        };
        let Some(before) = self.before.filter(|before| nic_ns >= before.nic_ns) else {
            return StampPosition::Early;
        };
        let (passed, length) = (nic_ns - before.nic_ns, last.nic_ns - before.nic_ns);
        let span_ns = i128::from(last.realtime_ns - before.realtime_ns);
        let part = i128::from(passed) * span_ns / i128::from(length.max(1));
        StampPosition::Known(before.realtime_ns + i64::try_from(part).unwrap_or(passed))
    }

    fn record(&self) -> Option<ClockRecord> {
        let (first, last) = self.first.zip(self.last)?;
        let length_ns = (last.realtime_ns - first.realtime_ns).max(1) as f64;
        let drift = (offset_ns(last) - offset_ns(first)) as f64 / length_ns;
        Some(ClockRecord {
            offset_ns: i64::midpoint(offset_ns(first), offset_ns(last)),
            uncertainty_ns: self.uncertainty_ns.max(last.uncertainty_ns),
            drift_ppb: drift * 1e9,
            exchanges: self.exchanges,
            shortest_round_trip_ns: self.tightest_ns.unwrap_or(0),
        })
    }
}

/// The NIC's clock minus `CLOCK_REALTIME`.
const fn offset_ns(compared: Compared) -> i64 {
    compared.nic_ns - compared.realtime_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock ahead by 1 s that runs fast by 10 ppm, read with an error of up to 200 ns.
    fn compared(realtime_ns: i64) -> Compared {
        let nic_ns = realtime_ns + 1_000_000_000 + realtime_ns / 100_000;
        Compared { nic_ns, realtime_ns: realtime_ns + realtime_ns % 150, uncertainty_ns: 200 }
    }

    #[test]
    fn a_stamp_between_two_comparisons_is_converted_within_what_is_stated() {
        let mut history = ClockHistory::default();
        assert_eq!(history.realtime_ns(5), StampPosition::NotYet);
        let tick_ns = 50_000_000;
        for tick in 0..20 {
            history.push(compared(tick * tick_ns));
            assert_eq!(
                history.realtime_ns(compared((tick + 1) * tick_ns).nic_ns),
                StampPosition::NotYet
            );
            if tick == 0 {
                continue;
            }
            for part in 1..10 {
                let true_ns = (tick - 1) * tick_ns + part * 4_999_999;
                let StampPosition::Known(found_ns) = history.realtime_ns(compared(true_ns).nic_ns)
                else {
                    panic!("it lies between");
                };
                let stated_ns = history.record().unwrap().uncertainty_ns;
                assert!((found_ns - true_ns).abs() <= stated_ns, "{found_ns} {true_ns}");
            }
        }
        let record = history.record().unwrap();
        // Both ends of the 950 ms that were compared are uncertain by 200 ns.
        assert!((record.drift_ppb - 10_000.0).abs() < 400.0 / 0.95, "{record:?}");
        assert_eq!((record.exchanges, record.shortest_round_trip_ns), (20, 400));
        assert_eq!(history.realtime_ns(compared(0).nic_ns - 1), StampPosition::Early);
    }

    #[test]
    fn a_clock_that_stands_still_divides_nothing_by_zero() {
        let mut history = ClockHistory::default();
        let still = Compared { nic_ns: 7, realtime_ns: 9, uncertainty_ns: 1 };
        history.push(still);
        history.push(Compared { realtime_ns: 50, ..still });
        assert_eq!(history.realtime_ns(7), StampPosition::Known(9));
    }
}
