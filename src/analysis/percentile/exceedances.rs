//! What percentile intervals need of a run, collected histogram by histogram: a run of a day on 8
//! CPUs has 8,000 of them, which together would not fit into memory.

use hdrhistogram::Histogram;

use super::{BlockCount, PercentileInterval, Ranks, Support};
use crate::run::{hlog, summary::percentile};

/// A percentile and its value in the whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Threshold {
    percent: f64,
    value_ns: u64,
}

/// Per threshold: how many samples lie above its bucket, and how many in it or above.
#[derive(Debug, Clone, Default)]
struct Beyond {
    above: Vec<BlockCount>,
    reaching: Vec<BlockCount>,
}

/// Counts samples beyond the percentiles of a series, block by block.
#[derive(Debug, Clone)]
pub struct Exceedances {
    thresholds: Vec<Threshold>,
    beyond: Vec<Beyond>,
    total: Histogram<u64>,
}

impl Exceedances {
    /// For these percentiles (0 to 100) and their values in the whole series, as its summary has
    /// them.
    #[must_use]
    pub fn new(percentiles: &[(f64, u64)]) -> Self {
        let threshold =
            |(percent, value_ns): &(f64, u64)| Threshold { percent: *percent, value_ns: *value_ns };
        Self {
            thresholds: percentiles.iter().map(threshold).collect(),
            beyond: vec![Beyond::default(); percentiles.len()],
            total: hlog::empty(),
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
        let keys: Vec<u64> = self
            .thresholds
            .iter()
            .map(|threshold| self.total.highest_equivalent(threshold.value_ns))
            .collect();
        let (mut above, mut reaching) = (vec![0; keys.len()], vec![0; keys.len()]);
        for bucket in block.iter_recorded() {
            let (value, count) = (bucket.value_iterated_to(), bucket.count_since_last_iteration());
            for (place, key) in keys.iter().enumerate().filter(|(_, key)| value >= **key) {
                reaching[place] = count.saturating_add(reaching[place]);
                if value > *key {
                    above[place] = count.saturating_add(above[place]);
                }
            }
            self.total.saturating_record_n(value, count);
        }
        let samples = block.len();
        for (place, beyond) in self.beyond.iter_mut().enumerate() {
            beyond.above.push(BlockCount { samples, beyond: above[place] });
            beyond.reaching.push(BlockCount { samples, beyond: reaching[place] });
        }
    }

    /// The interval of each percentile, in the order in which they were given. No value lies above
    /// `max_ns`, which is exact where the histogram's is that of a bucket.
    #[must_use]
    pub fn intervals(&self, max_ns: Option<i64>) -> Vec<PercentileInterval> {
        let max_ns = max_ns.and_then(|max| u64::try_from(max).ok()).unwrap_or(u64::MAX);
        let samples = self.total.len();
        let at = |rank: u64| self.value_at(rank);
        let of = |(threshold, beyond): (&Threshold, &Beyond)| {
            let blocks = beyond.nearest(1.0 - threshold.percent / 100.0);
            let support = Support::of(threshold.percent, samples, blocks);
            let ranks = Ranks::of(threshold.percent, &support);
            let low_ns = ranks.low.map(|rank| self.total.lowest_equivalent(at(rank)));
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

    /// The highest value of the bucket that holds the sample of this rank, from 1.
    fn value_at(&self, rank: u64) -> u64 {
        let samples = self.total.len().max(1) as f64;
        // In the middle of the rank, so that no rounding leaves it.
        self.total.value_at_quantile(((rank as f64 - 0.5) / samples).clamp(0.0, 1.0))
    }
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
