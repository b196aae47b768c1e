//! The log of a run without the time that the hypervisor took: samples whose stolen time is known
//! go to another bucket of the histogram of their interval.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use tardy_hot::histogram::{HIGHEST_NS, index_of, lowest_of};

use super::{
    hlog::{self, IntervalSpan},
    stolen::{StolenMove, StolenRecord},
    summary::SeriesSummary,
};

/// How much after the end of an interval a sample may still be of it, s: times in the log are
/// rounded to 1 ms.
const ROUNDED_S: f64 = 0.002;

/// What is to be moved in the log of a run, by the number of its series.
#[derive(Debug)]
pub(crate) struct HostMoves {
    slot_ns: i64,
    start_ns: i64,
    /// By time.
    moves: BTreeMap<usize, Vec<StolenMove>>,
}

impl HostMoves {
    /// Those of a run with these series that began at `start_ns` (`CLOCK_MONOTONIC`).
    pub(super) fn of(series: &[SeriesSummary], start_ns: i64, stolen: &StolenRecord) -> Self {
        let mut moves: BTreeMap<usize, Vec<StolenMove>> = BTreeMap::new();
        for own in &stolen.series {
            let is_it = |one: &SeriesSummary| one.name == own.series;
            if let Some(number) = series.iter().position(is_it) {
                moves.entry(number).or_default().extend(own.moves.iter().filter(|it| it.is_sane()));
            }
        }
        moves.values_mut().for_each(|own| own.sort_unstable());
        Self { slot_ns: stolen.slot_ns.max(1), start_ns, moves }
    }

    /// What applies them to a log from its beginning on.
    pub(super) fn pass(&self) -> MovesPass<'_> {
        let pending = self.moves.iter().map(|(number, own)| (*number, own.clone())).collect();
        MovesPass { moves: self, pending, moved: BTreeMap::new() }
    }

    /// The time of a slot, in s of the run.
    fn time_s(&self, slot: i64) -> (f64, f64) {
        let begin_ns = slot.saturating_mul(self.slot_ns).saturating_sub(self.start_ns);
        (begin_ns as f64 / 1e9, begin_ns.saturating_add(self.slot_ns) as f64 / 1e9)
    }
}

impl StolenMove {
    fn is_sane(&self) -> bool {
        let holds = |ns| (0..=HIGHEST_NS).contains(&ns);
        holds(self.from_ns) && holds(self.to_ns) && self.to_ns <= self.from_ns
    }
}

/// One reading of a log, in which samples are moved.
pub(super) struct MovesPass<'a> {
    moves: &'a HostMoves,
    /// Those that no interval had yet.
    pending: BTreeMap<usize, Vec<StolenMove>>,
    /// By series: samples of one bucket that went to another.
    pub(super) moved: BTreeMap<usize, BTreeMap<(i64, i64), u64>>,
}

impl MovesPass<'_> {
    /// The counts of the next interval of a series, with those of its samples moved that the time
    /// of the interval and their bucket show.
    pub(super) fn apply(
        &mut self,
        number: usize,
        span: &IntervalSpan,
        counts: Histogram<u64>,
    ) -> Histogram<u64> {
        let Some(pending) = self.pending.get_mut(&number) else { return counts };
        let end_s = span.start_s + span.length_s + ROUNDED_S;
        let is_due = |it: &StolenMove| self.moves.time_s(it.slot).0 <= end_s;
        let is_over = |it: &StolenMove| self.moves.time_s(it.slot).1 < span.start_s - ROUNDED_S;
        let due = pending.partition_point(is_due);
        if due == 0 {
            return counts;
        }
        let mut own: BTreeMap<usize, u64> = BTreeMap::new();
        for bucket in counts.iter_recorded() {
            let value = i64::try_from(bucket.value_iterated_to()).unwrap_or(HIGHEST_NS);
            let index = index_of(value.min(HIGHEST_NS));
            *own.entry(index).or_default() += bucket.count_since_last_iteration();
        }
        let moved = self.moved.entry(number).or_default();
        for it in pending.iter_mut().take(due).filter(|it| !is_over(it)) {
            let there = own.get_mut(&index_of(it.from_ns));
            let Some(there) = there.filter(|there| **there > 0) else { continue };
            let count = it.count.min(*there);
            *there -= count;
            it.count -= count;
            *own.entry(index_of(it.to_ns)).or_default() += count;
            *moved.entry((it.from_ns, it.to_ns)).or_default() += count;
        }
        pending.retain(|it| it.count > 0 && !is_over(it));
        histogram_of(&own)
    }
}

fn histogram_of(counts: &BTreeMap<usize, u64>) -> Histogram<u64> {
    let mut histogram = hlog::empty();
    for (index, count) in counts.iter().filter(|(_, count)| **count > 0) {
        let value = u64::try_from(lowest_of(*index)).unwrap_or(0);
        histogram.saturating_record_n(value, *count);
    }
    histogram
}
