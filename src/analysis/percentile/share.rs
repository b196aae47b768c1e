//! Whether a limit is kept by the share of samples beyond it, where a percentile has too few beyond
//! it for an interval: none of 3,000 over 1 ms says that p99 is below it.
//!
//! The share is that of a binomial distribution, by the exact limit of Clopper and Pearson
//! (Biometrika 26, 1934, p. 404) with as many samples as independent ones would say as much (Korn
//! and Graubard, Survey Methodology 24, 1998, p. 193).

use super::TAIL;
use crate::analysis::distributions::binomial_center;

/// Samples, and those beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareBeyond {
    /// All of them.
    pub samples: u64,
    /// Those beyond the limit, or that may be.
    pub beyond: u64,
    /// How many independent samples say as much.
    pub effective: f64,
}

impl ShareBeyond {
    /// Whether at 97.5% fewer lie beyond the limit than beyond the percentile, so that this keeps
    /// the limit.
    #[must_use]
    pub fn keeps(&self, percent: f64) -> bool {
        // Of what is not a number the cast makes 0.
        let effective = (self.effective.floor() as u64).min(self.samples);
        let scaled = u128::from(self.beyond) * u128::from(effective);
        let beyond = u64::try_from(scaled.div_ceil(u128::from(self.samples.max(1))));
        let share = (1.0 - percent / 100.0).clamp(0.0, 1.0);
        beyond.is_ok_and(|beyond| beyond < binomial_center(effective, share, TAIL).0)
    }

    /// The number of independent samples that it takes without any beyond the limit.
    #[must_use]
    pub fn fewest(percent: f64) -> u64 {
        (TAIL.ln() / (percent / 100.0).ln()).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::{
        percentile::{BlockCount, Support},
        random::SplitMix64,
    };

    fn none_in(samples: u64) -> ShareBeyond {
        ShareBeyond { samples, beyond: 0, effective: samples as f64 }
    }

    #[test]
    fn none_in_so_many_decides_as_the_tables_say() {
        // 0.99^368 = 0.0248, 0.999^3688 = 0.02497.
        assert_eq!((ShareBeyond::fewest(99.0), ShareBeyond::fewest(99.9)), (368, 3_688));
        for percent in [90.0, 99.0, 99.9, 99.99] {
            let fewest = ShareBeyond::fewest(percent);
            assert!(none_in(fewest).keeps(percent) && !none_in(fewest - 1).keeps(percent));
        }
        // Clopper and Pearson: 2 of 1,000 have an upper limit of 0.72%, 5 of 1,000 of 1.16%.
        let of = |beyond| ShareBeyond { beyond, ..none_in(1_000) }.keeps(99.0);
        assert_eq!([0, 2, 3, 4, 5].map(of), [true, true, true, false, false]);
    }

    #[test]
    fn samples_that_depend_on_each_other_say_less() {
        let of = |effective| ShareBeyond { samples: 2_976, beyond: 0, effective }.keeps(99.0);
        assert_eq!(
            [2_976.0, 368.5, 367.0, 0.0, f64::NAN].map(of),
            [true, true, false, false, false]
        );
    }

    proptest! {
        #[test]
        fn more_beyond_or_fewer_samples_never_decide_more(
            samples in 1_u64..100_000,
            beyond in 0_u64..200,
            effect in 1.0_f64..50.0,
        ) {
            let own = ShareBeyond { samples, beyond, effective: samples as f64 / effect };
            for percent in [50.0, 90.0, 99.0, 99.9] {
                if own.keeps(percent) {
                    let fewer = ShareBeyond { beyond: beyond.saturating_sub(1), ..own };
                    let sounder = ShareBeyond { effective: own.effective * 2.0, ..own };
                    prop_assert!(fewer.keeps(percent) && sounder.keeps(percent));
                }
            }
        }
    }

    /// How often a limit that exactly 1% of all samples lie beyond is taken for kept, of runs of
    /// 3,000 samples in blocks of 100; `next` says whether a sample lies beyond it, and whether it
    /// does beyond the median, by which the effective number is estimated.
    fn taken_for_kept(seed: u64, next: impl Fn(&mut SplitMix64, &mut f64) -> (bool, bool)) -> f64 {
        const RUNS: u32 = 1_500;
        let mut random = SplitMix64::new(seed);
        let mut kept = 0;
        for _ in 0..RUNS {
            let mut state = 0.0;
            // It forgets where it began.
            for _ in 0..300 {
                next(&mut random, &mut state);
            }
            let (mut late, mut high) = (Vec::new(), Vec::new());
            for _ in 0..30 {
                let (mut over, mut above) = (0, 0);
                for _ in 0..100 {
                    let (is_over, is_above) = next(&mut random, &mut state);
                    over += u64::from(is_over);
                    above += u64::from(is_above);
                }
                late.push(BlockCount { samples: 100, beyond: over });
                high.push(BlockCount { samples: 100, beyond: above });
            }
            let effective = |blocks: &[BlockCount]| Support::of(50.0, 3_000, blocks).effective;
            let share = ShareBeyond {
                samples: 3_000,
                beyond: late.iter().map(|block| block.beyond).sum(),
                effective: effective(&high).min(effective(&late)),
            };
            kept += u32::from(share.keeps(99.0));
        }
        f64::from(kept) / f64::from(RUNS)
    }

    #[test]
    fn a_limit_that_is_just_exceeded_is_seldom_taken_for_kept() {
        let independent = taken_for_kept(1, |random, _| {
            let value = random.uniform();
            (value < 0.01, value < 0.5)
        });
        assert!(independent <= 0.03, "{independent}");
        // Normal samples of which each keeps 0.9 of the one before.
        let follows = taken_for_kept(2, |random, state| {
            let normal: f64 = (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
            *state = 0.9 * *state + (1.0 - 0.81_f64).sqrt() * normal;
            (*state > 2.326, *state > 0.0)
        });
        assert!(follows <= 0.05, "{follows}");
    }
}
