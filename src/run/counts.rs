//! Counts of many series at once, in memory that grows with what they hold.
//!
//! A histogram from 1 ns to 1 hour takes 264 KiB however few values it has. A run of thousands of
//! series, which a short `run.json` can name, would take gigabytes; here a series takes what its
//! values take, and all together are bounded.

use hdrhistogram::Histogram;
use tardy_hot::histogram::{LEN, index_of, lowest_of};

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
    /// Nothing counted yet, in so many series.
    #[must_use]
    pub fn new(series: usize) -> Self {
        Self { series: vec![Vec::new(); series], blocks: 0, most: MOST_BLOCKS, is_full: false }
    }

    /// Adds counts to a series; nothing more once the memory is used up, see
    /// [`SeriesCounts::refusal`]. A series of no such number is passed over.
    pub fn add(&mut self, number: usize, counts: &Histogram<u64>) {
        let Some(blocks) = self.series.get_mut(number).filter(|_| !self.is_full) else { return };
        for bucket in counts.iter_recorded() {
            let index = index_of(i64::try_from(bucket.value_iterated_to()).unwrap_or(i64::MAX));
            if index >= LEN {
                continue;
            }
            let (at, within) = (index / BLOCK, index % BLOCK);
            if blocks.len() <= at {
                blocks.resize(at + 1, None);
            }
            let Some(block) = blocks.get_mut(at) else { continue };
            if block.is_none() {
                if self.blocks == self.most {
                    self.is_full = true;
                    return;
                }
                self.blocks += 1;
            }
            let block = block.get_or_insert_with(|| Box::new([0; BLOCK]));
            if let Some(count) = block.get_mut(within) {
                *count = count.saturating_add(bucket.count_since_last_iteration());
            }
        }
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
    use tardy_hot::histogram::HIGHEST_NS;

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
