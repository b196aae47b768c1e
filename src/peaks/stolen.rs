//! Which late samples lost time to the hypervisor, and how much: for readers who ask what the
//! kernel alone did. A table of a bounded size.

use std::collections::BTreeMap;

use tardy_hot::histogram::{HIGHEST_NS, index_of, lowest_of};

use crate::run::stolen::{StolenMove, StolenOf, StolenRecord};

/// The length of a slot of time to begin with, ns: that of the shortest interval of a log.
const SLOT_NS: i64 = 100_000_000;

/// A slot is not longer than this, ns: a day, more than which hardly a run lasts.
const LONGEST_SLOT_NS: i64 = 86_400_000_000_000;

/// The number of moves that are kept; with more, slots grow. About 600 KB of `blame.json`.
const MOST_MOVES: usize = 16_384;

/// Series, slot, and the lowest values of both buckets.
type Key = (usize, i64, i64, i64);

/// What was taken from the samples of one series.
#[derive(Debug)]
struct Taken {
    series: String,
    samples: u64,
    ns: u64,
}

/// The table of a run.
#[derive(Debug)]
pub(crate) struct StolenSamples {
    slot_ns: i64,
    series: Vec<Taken>,
    moves: BTreeMap<Key, u64>,
    no_room: u64,
}

impl Default for StolenSamples {
    fn default() -> Self {
        Self { slot_ns: SLOT_NS, series: Vec::new(), moves: BTreeMap::new(), no_room: 0 }
    }
}

impl StolenSamples {
    /// Adds a late sample that was taken at `taken_ns` (`CLOCK_MONOTONIC`), of which `stolen_ns`
    /// were the hypervisor's.
    pub(crate) fn add(&mut self, series: &str, taken_ns: i64, latency_ns: i64, stolen_ns: u64) {
        let stolen = i64::try_from(stolen_ns).unwrap_or(i64::MAX);
        // Beyond an hour a sample is in no bucket.
        if !(0..=HIGHEST_NS).contains(&latency_ns) {
            self.no_room += 1;
            return;
        }
        let number = self.number(series);
        let to_ns = latency_ns.saturating_sub(stolen).max(0);
        let [from, to] = [latency_ns, to_ns].map(|ns| lowest_of(index_of(ns)));
        while self.is_full(&(number, taken_ns.div_euclid(self.slot_ns), from, to))
            && self.slot_ns < LONGEST_SLOT_NS
        {
            self.double_slots();
        }
        let key = (number, taken_ns.div_euclid(self.slot_ns), from, to);
        if self.is_full(&key) {
            self.no_room += 1;
            return;
        }
        *self.moves.entry(key).or_default() += 1;
        if let Some(taken) = self.series.get_mut(number) {
            taken.samples += 1;
            taken.ns = taken.ns.saturating_add((latency_ns - to_ns).unsigned_abs());
        }
    }

    fn is_full(&self, key: &Key) -> bool {
        self.moves.len() >= MOST_MOVES && !self.moves.contains_key(key)
    }

    fn number(&mut self, series: &str) -> usize {
        let known = self.series.iter().position(|taken| taken.series == series);
        known.unwrap_or_else(|| {
            self.series.push(Taken { series: series.to_owned(), samples: 0, ns: 0 });
            self.series.len() - 1
        })
    }

    fn double_slots(&mut self) {
        self.slot_ns *= 2;
        for ((series, slot, from, to), count) in std::mem::take(&mut self.moves) {
            *self.moves.entry((series, slot.div_euclid(2), from, to)).or_default() += count;
        }
    }

    /// The table as `blame.json` has it; `counted` says whether this machine counts stolen time.
    #[must_use]
    pub(crate) fn record(&self, counted: bool) -> StolenRecord {
        let of = |(number, taken): (usize, &Taken)| {
            let own = self.moves.range((number, i64::MIN, 0, 0)..(number + 1, i64::MIN, 0, 0));
            let moves = own.map(|((_, slot, from_ns, to_ns), count)| StolenMove {
                slot: *slot,
                from_ns: *from_ns,
                to_ns: *to_ns,
                count: *count,
            });
            StolenOf {
                series: taken.series.clone(),
                samples: taken.samples,
                ns: taken.ns,
                moves: moves.collect(),
            }
        };
        StolenRecord {
            counted,
            slot_ns: self.slot_ns,
            series: self.series.iter().enumerate().map(of).collect(),
            no_room: self.no_room,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_slot_and_one_move_are_one_entry_of_their_series() {
        let mut stolen = StolenSamples::default();
        for taken_ns in [100_000_000, 199_999_999, 200_000_000] {
            stolen.add("cpu0", taken_ns, 3_000_000, 2_900_000);
        }
        stolen.add("cpu1", 5, 50_000, 60_000);
        let record = stolen.record(true);
        let moves = |number: usize| -> Vec<(i64, i64, i64, u64)> {
            record.series[number].moves.iter().map(|it| (*it).into()).collect()
        };
        let [from, to] = [3_000_000, 100_000].map(|ns| lowest_of(index_of(ns)));
        assert_eq!(moves(0), [(1, from, to, 2), (2, from, to, 1)]);
        assert_eq!((record.series[0].samples, record.series[0].ns), (3, 8_700_000));
        assert_eq!(moves(1), [(0, lowest_of(index_of(50_000)), 0, 1)]);
        assert_eq!(record.series[1].ns, 50_000, "no more than all of it");
    }

    #[test]
    fn more_than_there_is_room_for_makes_slots_longer_and_then_is_counted() {
        let mut stolen = StolenSamples::default();
        let most = MOST_MOVES as i64;
        (0..2 * most).for_each(|slot| stolen.add("cpu0", slot * SLOT_NS, 9_000, 8_000));
        let record = stolen.record(true);
        assert!(record.series[0].moves.len() <= MOST_MOVES);
        assert_eq!((record.slot_ns, record.no_room), (2 * SLOT_NS, 0));
        assert_eq!(record.series[0].moves.iter().map(|it| it.count).sum::<u64>(), 2 * 16_384);
        // Latencies that no longer slots can put together.
        let mut apart = StolenSamples::default();
        let late = |n: i64| lowest_of(index_of(1_000_000) + n as usize);
        for (n, to) in (0..200).flat_map(|n| (0..100).map(move |to| (n, to))) {
            let latency_ns = late(n);
            apart.add("cpu0", 0, latency_ns, (latency_ns - to).unsigned_abs());
        }
        let record = apart.record(true);
        assert_eq!(record.series[0].moves.len(), MOST_MOVES);
        assert_eq!(record.no_room + record.series[0].samples, 20_000);
        apart.add("cpu0", 0, HIGHEST_NS + 1, 5);
        assert_eq!(apart.record(true).no_room, record.no_room + 1);
    }
}
