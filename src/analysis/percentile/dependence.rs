//! How much dependent samples say: the design effect.
//!
//! Late samples come in groups: a burst of a hundred is one incident, not a hundred. Cut the run
//! into blocks and count in each the samples beyond a threshold: the variance of these counts,
//! divided by the one that independent samples would have, is the design effect (Kish, Survey
//! Sampling, 1965; the variance is that of a ratio from clusters, Cochran, Sampling Techniques, 3rd
//! ed., chapter 9A). n samples then say as much as n / effect independent ones.
//!
//! Blocks that are too short cut groups apart and hide them, blocks that are too long are too few
//! to estimate a variance. So several lengths are tried, and the largest effect counts; each is
//! multiplied by the squared ratio of the quantiles of Student's t and of the normal distribution
//! (Korn and Graubard, Survey Methodology 24, 1998, p. 193). The degrees of freedom are those of
//! the blocks, and fewer where a few blocks make up the variance: a run with two bursts has an
//! uncertain variance, however many blocks it has. (The variance of an estimated variance is
//! (kurtosis - 1) / blocks, relative to its square, and 2 / freedom for the t distribution:
//! Satterthwaite, Biometrics Bulletin 2, 1946, p. 110, equates them.)

use crate::analysis::distributions::{normal_upper, t_upper};

/// With fewer blocks nothing is said about dependence.
pub const FEWEST_BLOCKS: usize = 5;

/// Blocks are merged into longer ones as long as this number remains.
const FEWEST_MERGED: usize = 20;

/// The tail at which t and normal quantiles are compared: that of a 95% interval.
const TAIL: f64 = 0.025;

/// One block of a run, in the order of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCount {
    /// Its samples.
    pub samples: u64,
    /// Those of them that lie beyond the threshold.
    pub beyond: u64,
}

impl BlockCount {
    fn merged(blocks: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| blocks.iter().map(of).fold(0, u64::saturating_add);
        Self { samples: sum(|block| block.samples), beyond: sum(|block| block.beyond) }
    }
}

/// How far samples depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependence {
    /// The number of samples that carry as much information as one independent sample; at least 1.
    pub design_effect: f64,
    /// The length of the blocks that showed it, in blocks as they were given.
    pub length: usize,
}

/// The largest design effect over block lengths 1, 2, 4, ...; absent with fewer than
/// [`FEWEST_BLOCKS`] blocks, and where no sample or each lies beyond the threshold.
#[must_use]
pub fn dependence(blocks: &[BlockCount]) -> Option<Dependence> {
    let filled: Vec<BlockCount> =
        blocks.iter().filter(|block| block.samples > 0).copied().collect();
    let all = BlockCount::merged(&filled);
    if filled.len() < FEWEST_BLOCKS || all.beyond == 0 || all.beyond >= all.samples {
        return None;
    }
    let share = all.beyond as f64 / all.samples as f64;
    let mut largest = Dependence { design_effect: 1.0, length: 1 };
    let mut length = 1;
    while length == 1 || filled.len() / length >= FEWEST_MERGED {
        let merged: Vec<BlockCount> = filled.chunks_exact(length).map(BlockCount::merged).collect();
        let design_effect = effect(&merged, share);
        if design_effect > largest.design_effect {
            largest = Dependence { design_effect, length };
        }
        length *= 2;
    }
    Some(largest)
}

/// The design effect of these blocks, corrected for how uncertain it is.
fn effect(blocks: &[BlockCount], share: f64) -> f64 {
    let count = blocks.len() as f64;
    let samples: f64 = blocks.iter().map(|block| block.samples as f64).sum();
    let excess = |block: &BlockCount| block.beyond as f64 - share * block.samples as f64;
    let excesses: Vec<f64> = blocks.iter().map(excess).collect();
    let squares: f64 = excesses.iter().map(|excess| excess.powi(2)).sum();
    let variance = squares * count / (count - 1.0);
    let correction = t_upper(TAIL, freedom(&excesses)) / normal_upper(TAIL);
    variance / (samples * share * (1.0 - share)) * correction.powi(2)
}

/// The degrees of freedom of the variance of these excesses, at least 1.
fn freedom(excesses: &[f64]) -> f64 {
    let count = excesses.len() as f64;
    let moment = |power: i32| excesses.iter().map(|excess| excess.powi(power)).sum::<f64>() / count;
    let kurtosis = moment(4) / moment(2).powi(2);
    let by_kurtosis = 2.0 * count / (kurtosis - 1.0);
    // Kurtosis, and so the correction, is undefined if the variance is 0.
    if by_kurtosis > 0.0 { by_kurtosis.clamp(1.0, count - 1.0) } else { count - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(beyond: &[u64]) -> Vec<BlockCount> {
        beyond.iter().map(|beyond| BlockCount { samples: 100, beyond: *beyond }).collect()
    }

    #[test]
    fn the_effect_is_the_one_computed_by_hand() {
        // Share 0.1; excesses -10, 10, -10, 10, 0: squares 400, by 5/4: 500. Independent samples
        // would have 500 * 0.1 * 0.9 = 45. t with 4 degrees of freedom: 2.7764 for 1.95996.
        let found = dependence(&blocks(&[0, 20, 0, 20, 10])).unwrap();
        let expected = 500.0 / 45.0 * (2.776_445_f64 / 1.959_964).powi(2);
        assert!((found.design_effect - expected).abs() < 1e-4, "{found:?} {expected}");
        assert_eq!(found.length, 1);
    }

    #[test]
    fn few_blocks_that_make_up_the_variance_leave_few_degrees_of_freedom() {
        // Excesses of 9, 9 and 18 times -1: second moment 9, fourth 657, kurtosis 8.111;
        // 40 / 7.111 = 5.625.
        let grouped: Vec<f64> = [9.0; 2].into_iter().chain([-1.0; 18]).collect();
        assert!((freedom(&grouped) - 5.625).abs() < 0.001, "{}", freedom(&grouped));
        // Kurtosis 1: as many as there are blocks, less one.
        assert_eq!(freedom(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 5.0);
        assert_eq!(freedom(&[0.0; 7]), 6.0);
        // One block of 100: kurtosis 98, 200 / 97.
        let single: Vec<f64> = [99.0].into_iter().chain([-1.0; 99]).collect();
        assert!((freedom(&single) - 200.0 / 97.01).abs() < 0.01, "{}", freedom(&single));
    }

    #[test]
    fn evenly_spread_samples_count_as_independent_and_not_as_more() {
        let found = dependence(&blocks(&[10; 40])).unwrap();
        assert_eq!(found, Dependence { design_effect: 1.0, length: 1 });
    }

    #[test]
    fn groups_that_outlast_a_block_show_in_longer_blocks() {
        // Eight blocks in a row with all, then eight with none.
        let beyond: Vec<u64> =
            (0..640).map(|block| if block / 8 % 2 == 0 { 20 } else { 0 }).collect();
        let found = dependence(&blocks(&beyond)).unwrap();
        let short = effect(&blocks(&beyond), 0.1);
        assert_eq!(found.length, 8, "the next length sees both halves of the wave");
        // Eight times the excess in an eighth of the blocks: eight times the variance, and a
        // little more for fewer blocks.
        let ratio = found.design_effect / short;
        assert!((8.0..8.6).contains(&ratio), "{ratio}");
    }

    #[test]
    fn too_few_blocks_or_nothing_to_count_says_nothing() {
        assert_eq!(dependence(&[]), None);
        assert_eq!(dependence(&blocks(&[1, 2, 3, 4])), None);
        assert_eq!(dependence(&blocks(&[0; 30])), None);
        assert_eq!(dependence(&blocks(&[100; 30])), None);
        let empty = BlockCount::default();
        let mut some = blocks(&[1, 2, 3, 4]);
        some.extend([empty; 100]);
        assert_eq!(dependence(&some), None, "a block without samples does not count");
    }
}
