//! What percentile intervals need of a run, collected histogram by histogram: a run of a day on 8
//! CPUs has 8,000 of them, which together would not fit into memory.

use hdrhistogram::Histogram;

use super::{BlockCount, PercentileInterval, Ranks, Support};
use crate::run::{hlog, summary::percentile};

/// A percentile, its value in the whole run, and the highest value of the bucket of that.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Threshold {
    percent: f64,
    value_ns: u64,
    key_ns: u64,
}

/// Per threshold: how many samples lie above its bucket, and how many in it or above.
#[derive(Debug, Clone, Default)]
struct Beyond {
    above: Vec<BlockCount>,
    reaching: Vec<BlockCount>,
}

/// Counts samples beyond the percentiles of a series, block by block. It takes some bytes a block
/// and keeps no histogram, so that thousands of series fit into memory.
#[derive(Debug, Clone)]
pub struct Exceedances {
    thresholds: Vec<Threshold>,
    beyond: Vec<Beyond>,
}

impl Exceedances {
    /// For these percentiles (0 to 100) and their values in the whole series, as its summary has
    /// them.
    #[must_use]
    pub fn new(percentiles: &[(f64, u64)]) -> Self {
        let bounds = hlog::empty();
        let threshold = |(percent, value_ns): &(f64, u64)| Threshold {
            percent: *percent,
            value_ns: *value_ns,
            key_ns: bounds.highest_equivalent(*value_ns),
        };
        Self {
            thresholds: percentiles.iter().map(threshold).collect(),
            beyond: vec![Beyond::default(); percentiles.len()],
        }
    }

    /// For the percentiles of a series of which the whole histogram is at hand, and its maximum.
    #[must_use]
    pub fn of_total(total: &Histogram<u64>, max_ns: Option<i64>, percents: &[f64]) -> Self {
        let value = |percent: &f64| u64::try_from(percentile(total, *percent, max_ns)).unwrap_or(0);
        Self::new(&percents.iter().map(|percent| (*percent, value(percent))).collect::<Vec<_>>())
    }

    /// Adds the next block in the order of time: an interval of `series.hlog`, say.
    pub fn add(&mut self, block: &Histogram<u64>) {
        for beyond in &mut self.beyond {
            beyond.above.push(BlockCount::default());
            beyond.reaching.push(BlockCount::default());
        }
        self.add_to_last(block);
    }

    /// Adds to the block that was added last: what another series had in the same time.
    pub fn add_to_last(&mut self, block: &Histogram<u64>) {
        let samples = block.len();
        let last = |counts: &mut Vec<BlockCount>, beyond: u64| {
            if let Some(last) = counts.last_mut() {
                last.samples = last.samples.saturating_add(samples);
                last.beyond = last.beyond.saturating_add(beyond);
            }
        };
        let mut sums = vec![(0_u64, 0_u64); self.thresholds.len()];
        let lowest = self.thresholds.iter().map(|own| own.key_ns).min().unwrap_or(u64::MAX);
        for bucket in block.iter_recorded() {
            let (value, count) = (bucket.value_iterated_to(), bucket.count_since_last_iteration());
            if value < lowest {
                continue;
            }
            for (threshold, (above, reaching)) in self.thresholds.iter().zip(&mut sums) {
                if value >= threshold.key_ns {
                    *reaching = reaching.saturating_add(count);
                }
                if value > threshold.key_ns {
                    *above = above.saturating_add(count);
                }
            }
        }
        for (beyond, (above, reaching)) in self.beyond.iter_mut().zip(sums) {
            last(&mut beyond.above, above);
            last(&mut beyond.reaching, reaching);
        }
    }

    /// Adds a block whose counts are known: per percentile how many of its samples lie above the
    /// bucket of that, and how many in it or above.
    pub(super) fn push(&mut self, samples: u64, beyond: &[(u64, u64)]) {
        for (own, (above, reaching)) in self.beyond.iter_mut().zip(beyond) {
            own.above.push(BlockCount { samples, beyond: *above });
            own.reaching.push(BlockCount { samples, beyond: *reaching });
        }
    }

    /// The interval of each percentile, in the order in which they were given. `total` holds all
    /// blocks together. No value lies above `max_ns`, which is exact where the histogram's is that
    /// of a bucket.
    #[must_use]
    pub fn intervals(
        &self,
        total: &Histogram<u64>,
        max_ns: Option<i64>,
    ) -> Vec<PercentileInterval> {
        let max_ns = max_ns.and_then(|max| u64::try_from(max).ok()).unwrap_or(u64::MAX);
        let samples = total.len();
        let at = |rank: u64| value_at(total, rank);
        let of = |(threshold, beyond): (&Threshold, &Beyond)| {
            let blocks = beyond.nearest(1.0 - threshold.percent / 100.0);
            let support = Support::of(threshold.percent, samples, blocks);
            let ranks = Ranks::of(threshold.percent, &support);
            let low_ns = ranks.low.map(|rank| total.lowest_equivalent(at(rank)));
            PercentileInterval {
                percent: threshold.percent,
                value_ns: threshold.value_ns,
                low_ns: low_ns.map(|low| low.min(threshold.value_ns)),
                high_ns: ranks.high.map(|rank| at(rank).min(max_ns).max(threshold.value_ns)),
                support,
            }
        };
        self.thresholds.iter().zip(&self.beyond).map(of).collect()
    }
}

/// The highest value of the bucket that holds the sample of this rank, from 1.
fn value_at(total: &Histogram<u64>, rank: u64) -> u64 {
    let samples = total.len().max(1) as f64;
    // In the middle of the rank, so that no rounding leaves it.
    total.value_at_quantile(((rank as f64 - 0.5) / samples).clamp(0.0, 1.0))
}

impl Beyond {
    /// The counts whose share is nearer to the one that the percentile leaves: where many samples
    /// share the bucket of a percentile, few lie above it.
    fn nearest(&self, share: f64) -> &[BlockCount] {
        let distance = |blocks: &[BlockCount]| {
            let sum = |of: fn(&BlockCount) -> u64| -> f64 {
                blocks.iter().map(|block| of(block) as f64).sum()
            };
            (sum(|block| block.beyond) / sum(|block| block.samples).max(1.0) - share).abs()
        };
        let is_above = distance(&self.above) <= distance(&self.reaching);
        if is_above { &self.above } else { &self.reaching }
    }
}
