//! Counts of many series at once, in memory that grows with what they hold.
//!
//! A histogram from 1 ns to 1 hour takes 264 KiB however few values it has. A run of thousands of
//! series, which a short `run.json` can name, would take gigabytes; here a series takes what its
//! values take, and all together are bounded.

use hdrhistogram::Histogram;
use tardy_hot::histogram::{HIGHEST_NS, LEN, highest_of, index_of, lowest_of};

use super::hlog;

/// Counters in a block, 2 KiB.
const BLOCK: usize = 256;

/// Blocks of all series together, 512 MiB. The latencies of one series lie in 10 to 30 of them.
const MOST_BLOCKS: usize = (512 << 20) / (BLOCK * size_of::<u64>());

type Block = Box<[u64; BLOCK]>;

/// The counts of the series of a run, by their number.
#[derive(Debug, Clone)]
pub struct SeriesCounts {
    /// One list of blocks a series, as long as its largest value needs.
    series: Vec<Vec<Option<Block>>>,
    blocks: usize,
    most: usize,
    is_full: bool,
}

impl SeriesCounts {
    /// Nothing counted yet, in `series` series.
    #[must_use]
    pub fn new(series: usize) -> Self {
        Self { series: vec![Vec::new(); series], blocks: 0, most: MOST_BLOCKS, is_full: false }
    }

    /// Adds counts to a series; nothing more once the memory is used up, see
    /// [`SeriesCounts::refusal`]. A series of no such number is skipped.
    pub fn add(&mut self, number: usize, counts: &Histogram<u64>) {
        for bucket in counts.iter_recorded() {
            let index = index_of(i64::try_from(bucket.value_iterated_to()).unwrap_or(i64::MAX));
            if index < LEN {
                self.add_to(number, index, bucket.count_since_last_iteration());
            }
        }
    }

    /// Adds counts by the number of their bucket; as [`SeriesCounts::add`] otherwise.
    pub(super) fn add_buckets(&mut self, number: usize, counts: &[(usize, u64)]) {
        for (index, count) in counts.iter().filter(|(index, _)| *index < LEN) {
            self.add_to(number, *index, *count);
        }
    }

    /// The highest value of the bucket in which each of these shares (0 to 1, ascending) of a
    /// series lies, ns: as [`Histogram::value_at_quantile`], without making one. Absent without
    /// values.
    pub(super) fn quantiles(&self, number: usize, shares: &[f64]) -> Vec<Option<i64>> {
        let blocks = || {
            let own = self.series.get(number).into_iter().flatten().enumerate();
            own.filter_map(|(at, block)| Some((at, block.as_deref()?)))
        };
        let all: u64 =
            blocks().flat_map(|(_, block)| block).fold(0, |sum, n| sum.saturating_add(*n));
        let mut found = Vec::with_capacity(shares.len());
        let rank = |share: f64| ((share * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut passed = 0_u64;
        for (at, block) in blocks() {
            for (within, count) in block.iter().enumerate().filter(|(_, count)| **count > 0) {
                passed = passed.saturating_add(*count);
                while let Some(share) = shares.get(found.len())
                    && passed >= rank(*share)
                {
                    found.push(Some(highest_of(at * BLOCK + within)));
                }
            }
        }
        found.resize(shares.len(), None);
        found
    }

    /// The number of samples of a series.
    #[must_use]
    pub fn count(&self, number: usize) -> u64 {
        let blocks = self.series.get(number).into_iter().flatten().flatten();
        blocks.flat_map(|block| block.iter()).fold(0, |sum, own| sum.saturating_add(*own))
    }

    /// Makes room for one more series; its number.
    pub fn push(&mut self) -> usize {
        self.series.push(Vec::new());
        self.series.len() - 1
    }

    /// Adds `count` samples of `latency_ns` (0 to 1 hour) to a series; as [`SeriesCounts::add`]
    /// otherwise.
    pub fn record(&mut self, number: usize, latency_ns: i64, count: u64) {
        if (0..=HIGHEST_NS).contains(&latency_ns) {
            self.add_to(number, index_of(latency_ns), count);
        }
    }

    fn add_to(&mut self, number: usize, index: usize, count: u64) {
        let Some(blocks) = self.series.get_mut(number).filter(|_| !self.is_full) else { return };
        let (at, within) = (index / BLOCK, index % BLOCK);
        if blocks.len() <= at {
            blocks.resize(at + 1, None);
        }
        let Some(block) = blocks.get_mut(at) else { return };
        if block.is_none() {
            if self.blocks == self.most {
                self.is_full = true;
                return;
            }
            self.blocks += 1;
        }
        let block = block.get_or_insert_with(|| Box::new([0; BLOCK]));
        if let Some(own) = block.get_mut(within) {
            *own = own.saturating_add(count);
        }
    }

    /// The number of buckets that have samples, in all series.
    #[must_use]
    pub fn recorded(&self) -> usize {
        let blocks = self.series.iter().flatten().filter_map(Option::as_deref);
        blocks.flatten().filter(|count| **count > 0).count()
    }

    /// Why not everything was counted, as the end of "series.hlog: ..."; nothing where all was.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let mib = (self.most * BLOCK * size_of::<u64>()) >> 20;
        self.is_full.then(|| format!("the counts of its series take more than {mib} MiB"))
    }

    /// The counts of these series together.
    #[must_use]
    pub fn sum(&self, numbers: impl IntoIterator<Item = usize>) -> Histogram<u64> {
        let mut sum = hlog::empty();
        let own = numbers.into_iter().filter_map(|number| self.series.get(number));
        let blocks = own.flat_map(|blocks| blocks.iter().enumerate());
        for (at, block) in blocks.filter_map(|(at, block)| Some((at, block.as_deref()?))) {
            for (within, count) in block.iter().enumerate().filter(|(_, count)| **count > 0) {
                let lowest = u64::try_from(lowest_of(at * BLOCK + within)).unwrap_or(0);
                sum.saturating_record_n(lowest, *count);
            }
        }
        sum
    }

    /// The counts of one series.
    #[must_use]
    pub fn of(&self, number: usize) -> Histogram<u64> {
        self.sum([number])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut counts = hlog::empty();
        values.iter().for_each(|value| counts.record(*value).unwrap());
        counts
    }

    #[test]
    fn thousands_of_series_without_values_take_next_to_nothing() {
        let counts = SeriesCounts::new(16_000);
        assert_eq!((counts.blocks, counts.of(15_999).len(), counts.refusal()), (0, 0, None));
    }

    #[test]
    fn counts_beyond_the_memory_are_refused_by_name_and_what_was_before_stays() {
        let mut counts = SeriesCounts { most: 2, ..SeriesCounts::new(3) };
        counts.add(0, &histogram(&[5, 6]));
        counts.add(1, &histogram(&[5_000_000]));
        assert_eq!(counts.refusal(), None);
        counts.add(2, &histogram(&[5]));
        counts.add(0, &histogram(&[5]));
        assert!(counts.refusal().unwrap().contains("take more than 0 MiB"));
        assert_eq!(counts.sum(0..3).len(), 3);
        counts.add(7, &histogram(&[5]));
    }

    #[test]
    fn the_whole_range_has_its_place() {
        let mut counts = SeriesCounts::new(1);
        let ends = histogram(&[0, 1, 2_047, 2_048, HIGHEST_NS as u64]);
        counts.add(0, &ends);
        assert_eq!(counts.of(0), ends);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_histogram(
            values in prop::collection::vec(0..HIGHEST_NS as u64, 1..60),
            low in 0.0..1.0_f64,
            high in 0.0..1.0_f64,
        ) {
            let mut counts = SeriesCounts::new(1);
            let whole = histogram(&values);
            counts.add(0, &whole);
            let shares = [low.min(high), low.max(high), 1.0];
            let expected = shares.map(|share| i64::try_from(whole.value_at_quantile(share)).ok());
            prop_assert_eq!(counts.quantiles(0, &shares), expected);
            prop_assert_eq!(counts.quantiles(7, &shares), [None; 3]);
        }

        #[test]
        fn what_was_added_is_the_same_histogram(
            first in prop::collection::vec(0..HIGHEST_NS as u64, 0..40),
            second in prop::collection::vec(0..10_000_000_u64, 0..40),
        ) {
            let mut counts = SeriesCounts::new(2);
            counts.add(0, &histogram(&first));
            counts.add(1, &histogram(&second));
            prop_assert_eq!(counts.of(0), histogram(&first));
            counts.add(0, &histogram(&second));
            let both = histogram(&[first, second.clone()].concat());
            prop_assert_eq!(counts.of(0), both.clone());
            let mut thrice = both;
            thrice.add(histogram(&second)).unwrap();
            let sum = counts.sum(0..2);
            prop_assert_eq!((sum.len(), sum.max(), sum.min()), (
                thrice.len(), thrice.max(), thrice.min()
            ));
            prop_assert_eq!(sum, thrice);
        }
    }
}
