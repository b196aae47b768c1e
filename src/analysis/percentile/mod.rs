//! Percentiles of one run with a 95% interval.
//!
//! Between two order statistics, chosen by the binomial distribution (Conover, Practical
//! Nonparametric Statistics, 3rd ed., section 3.2), as if there were only as many samples as
//! independent ones would say as much (Woodruff, JASA 47, 1952, p. 635; Korn and Graubard, Survey
//! Methodology 24, 1998, p. 193). That assumes nothing of the shape of the distribution. It assumes
//! that the run is long beside its own structure: what comes once an hour is not in a minute.
//!
//! `docs/explanation/statistics.md` has the coverage that simulations find.

mod dependence;
mod exceedances;
mod pooled;
mod share;
#[cfg(test)]
mod tests;

pub use dependence::{BlockCount, Dependence, FEWEST_BLOCKS, dependence};
pub use exceedances::Exceedances;
pub use pooled::PooledExceedances;
pub use share::ShareBeyond;

use super::distributions::binomial_center;
use crate::run::summary::ENOUGH_BEYOND;

/// The probability with which an interval misses the percentile on either side.
const TAIL: f64 = 0.025;

/// With fewer effective samples beyond a percentile its interval is marked.
pub const SOUND_BEYOND: f64 = 20.0;

/// How well an interval is founded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// At least 20 effective samples beyond the percentile.
    Sound,
    /// 10 to 19: an interval, to be marked.
    Few,
    /// Fewer, or dependence cannot be estimated: no interval, at most a lower end ("at least X").
    TooFew,
}

/// What a percentile rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    /// Samples of the histogram.
    pub samples: u64,
    /// How many independent samples say as much; 0 where dependence cannot be estimated.
    pub effective: f64,
    /// How many of those lie beyond the percentile; below p50, on its other side.
    pub beyond: f64,
    /// The dependence that was found; `None` if it cannot be estimated.
    pub dependence: Option<Dependence>,
    /// What follows.
    pub backing: Backing,
}

/// A percentile with a 95% interval; latencies in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentileInterval {
    /// 0 to 100.
    pub percent: f64,
    /// Its value in this run.
    pub value_ns: u64,
    /// Lower end, the lowest value of its bucket; `None` if not even that can be said.
    pub low_ns: Option<u64>,
    /// Upper end, the highest value of its bucket; absent with [`Backing::TooFew`]: then the
    /// percentile is "at least" the lower end, at 97.5%.
    pub high_ns: Option<u64>,
    /// What it rests on.
    pub support: Support,
}

/// Ranks, from 1, of the samples at the ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranks {
    low: Option<u64>,
    high: Option<u64>,
}

/// The interval of a percentile of raw samples in the order of time, cut into blocks of
/// `block_length` samples; what is left over at the end is in the percentile, and in no block.
#[must_use]
pub fn of_samples(percent: f64, samples_ns: &[u64], block_length: usize) -> PercentileInterval {
    let mut sorted = samples_ns.to_vec();
    sorted.sort_unstable();
    let at =
        |rank: u64| usize::try_from(rank).ok().and_then(|rank| sorted.get(rank.checked_sub(1)?));
    let count = sorted.len() as u64;
    // As summaries do it: 99.9 / 100 is a little above 0.999 in binary.
    let rank = (count as f64 * percent / 100.0 * (1.0 - 1e-12)).ceil() as u64;
    let value_ns = at(rank.max(1)).copied().unwrap_or(0);
    let block = |block: &[u64]| BlockCount {
        samples: block.len() as u64,
        beyond: block.iter().filter(|sample| **sample > value_ns).count() as u64,
    };
    let blocks: Vec<BlockCount> = samples_ns.chunks_exact(block_length.max(1)).map(block).collect();
    let support = Support::of(percent, count, &blocks);
    let ranks = Ranks::of(percent, &support);
    PercentileInterval {
        percent,
        value_ns,
        low_ns: ranks.low.and_then(at).map(|low| (*low).min(value_ns)),
        high_ns: ranks.high.and_then(at).map(|high| (*high).max(value_ns)),
        support,
    }
}

impl Support {
    /// What these samples, with these numbers beyond the percentile in each block, say about it.
    #[must_use]
    pub fn of(percent: f64, samples: u64, blocks: &[BlockCount]) -> Self {
        let dependence = dependence(blocks);
        let effective = dependence.map_or(0.0, |found| samples as f64 / found.design_effect);
        let share = (percent / 100.0).clamp(0.0, 1.0);
        // A little more than it is, so that 10,000 samples have 10 beyond p99.9.
        let beyond = effective * share.min(1.0 - share) * (1.0 + 1e-9);
        let backing = if beyond >= SOUND_BEYOND {
            Backing::Sound
        } else if beyond >= ENOUGH_BEYOND as f64 {
            Backing::Few
        } else {
            Backing::TooFew
        };
        Self { samples, effective, beyond, dependence, backing }
    }
}

impl Ranks {
    /// The ranks of an interval that misses with 2.5% on either side.
    fn of(percent: f64, support: &Support) -> Self {
        let (samples, effective) = (support.samples, support.effective.floor() as u64);
        if effective == 0 {
            return Self { low: None, high: None };
        }
        let (below, above) = binomial_center(effective, percent / 100.0, TAIL);
        // From ranks of the effective samples to those of all.
        let scaled = |rank: u64| {
            let scaled = u128::from(rank) * u128::from(samples) / u128::from(effective);
            u64::try_from(scaled).unwrap_or(samples)
        };
        let low = scaled(below);
        let left = effective.checked_sub(above + 1);
        let high = left.filter(|_| support.backing != Backing::TooFew).map(|left| {
            // What lies above is rounded down, so that the interval is never the shorter.
            samples - scaled(left).min(samples)
        });
        Self { low: (low > 0).then_some(low), high }
    }
}
