//! Samples beyond the percentiles of several series together, which are not known before all of
//! them were read: each lies between the smallest and the largest of the series' own, so that only
//! samples between these need to be told apart. So one reading of a log is enough.

use hdrhistogram::Histogram;

use super::Exceedances;
use crate::run::{hlog, summary::percentiles_of};

/// Values that are kept to be told apart, all blocks together: 64 MiB.
const MOST_KEPT: usize = (64 << 20) / size_of::<(u64, u64)>();

/// Between which values a percentile lies, as the highest of their buckets.
#[derive(Debug, Clone, Copy)]
struct Range {
    percent: f64,
    low_ns: u64,
    high_ns: u64,
}

/// What a block has of one percentile.
#[derive(Debug, Clone, Default)]
struct Part {
    /// Samples above the range.
    above: u64,
    /// Those within, by value.
    within: Vec<(u64, u64)>,
}

#[derive(Debug, Clone)]
struct Block {
    samples: u64,
    parts: Vec<Part>,
}

/// Counts samples beyond percentiles that are not known yet, block by block.
#[derive(Debug, Clone)]
pub struct PooledExceedances {
    ranges: Vec<Range>,
    blocks: Vec<Block>,
    kept: usize,
    most: usize,
}

impl PooledExceedances {
    /// For these percentiles (0 to 100, ascending), with the smallest and the largest value that a
    /// series has.
    #[must_use]
    pub fn new(percentiles: &[(f64, u64, u64)]) -> Self {
        let bounds = hlog::empty();
        let range = |(percent, low_ns, high_ns): &(f64, u64, u64)| Range {
            percent: *percent,
            low_ns: bounds.highest_equivalent(*low_ns),
            high_ns: bounds.highest_equivalent(*high_ns),
        };
        let ranges = percentiles.iter().map(range).collect();
        Self { ranges, blocks: Vec::new(), kept: 0, most: MOST_KEPT }
    }

    /// Begins the next block, and adds to it.
    pub fn add(&mut self, block: &Histogram<u64>) {
        let parts = vec![Part::default(); self.ranges.len()];
        self.blocks.push(Block { samples: 0, parts });
        self.add_to_last(block);
    }

    /// Adds to the block that was begun last: what another series had in the same time.
    pub fn add_to_last(&mut self, block: &Histogram<u64>) {
        let Some(last) = self.blocks.last_mut() else { return };
        last.samples = last.samples.saturating_add(block.len());
        for bucket in block.iter_recorded() {
            let (value, count) = (bucket.value_iterated_to(), bucket.count_since_last_iteration());
            // Most buckets lie below most percentiles, whose values ascend as they do.
            let reached = self.ranges.iter().take_while(|range| value >= range.low_ns);
            for (range, part) in reached.zip(&mut last.parts) {
                if value > range.high_ns {
                    part.above = part.above.saturating_add(count);
                } else if self.kept < self.most {
                    part.within.push((value, count));
                    self.kept += 1;
                }
            }
        }
    }

    /// Counts beyond the percentiles of `total`, which holds all blocks together; `None` if that
    /// took more memory than there is for it.
    #[must_use]
    pub fn exceedances(&self, total: &Histogram<u64>, max_ns: Option<i64>) -> Option<Exceedances> {
        if self.kept >= self.most {
            return None;
        }
        let percents = self.ranges.iter().map(|range| range.percent);
        let values = percentiles_of(total, percents.clone(), max_ns);
        let values: Vec<(f64, u64)> =
            percents.zip(values.map(|ns| u64::try_from(ns).unwrap_or(0))).collect();
        let keys: Vec<u64> =
            values.iter().map(|(_, value)| total.highest_equivalent(*value)).collect();
        let mut found = Exceedances::new(&values);
        for block in &self.blocks {
            let of = |(part, key): (&Part, &u64)| {
                let from = |is_beyond: &dyn Fn(u64) -> bool| {
                    let counts = part.within.iter().filter(|(value, _)| is_beyond(*value));
                    counts.map(|(_, count)| *count).fold(part.above, u64::saturating_add)
                };
                (from(&|value| value > *key), from(&|value| value >= *key))
            };
            let beyond: Vec<(u64, u64)> = block.parts.iter().zip(&keys).map(of).collect();
            found.push(block.samples, &beyond);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::random::SplitMix64;

    /// Two series, the second twice as late, in 60 blocks.
    fn series() -> Vec<[Histogram<u64>; 2]> {
        let mut random = SplitMix64::new(3);
        let mut block = |scale: f64| {
            let mut counts = hlog::empty();
            for _ in 0..200 {
                counts.saturating_record((1_000.0 * scale / random.uniform().sqrt()) as u64);
            }
            counts
        };
        (0..60).map(|_| [block(1.0), block(2.0)]).collect()
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
        let mut sum = hlog::empty();
        all.for_each(|own| sum.add(own).unwrap());
        sum
    }

    const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

    fn pooled(blocks: &[[Histogram<u64>; 2]], most: usize) -> PooledExceedances {
        let own = [0, 1].map(|number| sum(blocks.iter().map(|block| &block[number])));
        let values = |total: &Histogram<u64>| {
            percentiles_of(total, PERCENTS, None).map(|ns| ns as u64).collect::<Vec<_>>()
        };
        let [one, two] = [values(&own[0]), values(&own[1])];
        let range = |at: usize| (PERCENTS[at], one[at].min(two[at]), one[at].max(two[at]));
        let mut found = PooledExceedances::new(&[range(0), range(1), range(2), range(3)]);
        found.most = most;
        for [one, two] in blocks {
            found.add(one);
            found.add_to_last(two);
        }
        found
    }

    #[test]
    fn one_reading_gives_the_same_as_one_with_the_percentiles_known() {
        let blocks = series();
        let total = sum(blocks.iter().flatten());
        let mut known = Exceedances::of_total(&total, None, &PERCENTS);
        for [one, two] in &blocks {
            known.add(one);
            known.add_to_last(two);
        }
        let found = pooled(&blocks, MOST_KEPT).exceedances(&total, None).unwrap();
        assert_eq!(found.intervals(&total, None), known.intervals(&total, None));
        assert!(found.intervals(&total, None)[2].high_ns.is_some());
    }

    #[test]
    fn what_takes_too_much_memory_is_left_to_another_reading() {
        let blocks = series();
        let total = sum(blocks.iter().flatten());
        let found = pooled(&blocks, 50);
        assert!(found.kept == 50 && found.exceedances(&total, None).is_none());
    }
}
