//! How long must a run be, so that a share of late samples can be said to be below a limit?
//!
//! The samples that it takes so that, with the share that was seen, the 95% interval lies below
//! the limit in four of five runs (the usual size of a test of one proportion: Fleiss, Levin, Paik,
//! Statistical Methods for Rates and Proportions, 3rd ed., section 2.2.1), and at least 20 beyond
//! the percentile: it takes 10, and how much samples depend on each other is itself an estimate.
//! Times the design effect, as late samples come in groups.

use super::{
    distributions::normal_upper,
    percentile::{BlockCount, dependence},
};
use crate::run::summary::ENOUGH_BEYOND;

/// The tail of a 95% interval, and one run in five that does not decide.
const TAIL: f64 = 0.025;
const UNDECIDED: f64 = 0.2;

/// How many samples it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needed {
    /// So many; a lower bound if none beyond the limit was seen, for how these would come in groups
    /// is then not known.
    Samples {
        /// How many.
        samples: f64,
        /// Whether it may take more.
        is_least: bool,
    },
    /// As large a share is late as may be, or a larger one: more of the same will not say so.
    Never {
        /// The share of late samples that was seen.
        share: f64,
        /// Whether its 95% interval (Wilson's score) lies above what may be late.
        is_certain: bool,
    },
    /// Nothing was measured, or nothing may be late.
    Unknown,
}

/// How many samples it takes to say that a share of less than `allowed` lies beyond a limit, from
/// blocks in which samples beyond it were counted. `at_percentile` is the design effect of those
/// beyond the percentile that has this share, where it is known: what is needed there counts too.
#[must_use]
pub fn needed(allowed: f64, blocks: &[BlockCount], at_percentile: Option<f64>) -> Needed {
    let sum = |of: fn(&BlockCount) -> u64| blocks.iter().map(of).fold(0, u64::saturating_add);
    let (samples, beyond) = (sum(|block| block.samples), sum(|block| block.beyond));
    if samples == 0 || allowed <= 0.0 {
        return Needed::Unknown;
    }
    let share = beyond as f64 / samples as f64;
    let at_limit = dependence(blocks).map(|found| found.design_effect);
    if share >= allowed {
        let effective = samples as f64 / at_limit.unwrap_or(samples as f64);
        return Needed::Never { share, is_certain: lower_end(share, effective) > allowed };
    }
    let least = 2.0 * ENOUGH_BEYOND as f64 / allowed;
    let spread = |share: f64| (share * (1.0 - share)).sqrt();
    let distance = normal_upper(TAIL) * spread(allowed) + normal_upper(UNDECIDED) * spread(share);
    let decided = (distance / (allowed - share)).powi(2);
    let effect = at_limit.into_iter().chain(at_percentile).fold(1.0, f64::max);
    Needed::Samples { samples: least.max(decided) * effect, is_least: at_limit.is_none() }
}

/// The lower end of the 95% interval of a share of `samples` samples (Wilson, Journal of the
/// American Statistical Association 22, 1927, p. 209).
fn lower_end(share: f64, samples: f64) -> f64 {
    let z = normal_upper(TAIL);
    let (z2, middle) = (z * z / samples, z * z / (2.0 * samples));
    let spread = z * ((share * (1.0 - share) + z2 / 4.0) / samples).sqrt();
    (share + middle - spread) / (1.0 + z2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(beyond: impl Fn(usize) -> u64) -> Vec<BlockCount> {
        (0..100).map(|block| BlockCount { samples: 1_000, beyond: beyond(block) }).collect()
    }

    #[test]
    fn the_number_is_that_of_the_formula() {
        // One in 2,000 was late in evenly spread blocks, one in 1,000 may be.
        let found = needed(0.001, &blocks(|block| (block % 2) as u64), None);
        let Needed::Samples { samples, is_least } = found else { panic!("{found:?}") };
        let root = |share: f64| (share * (1.0 - share)).sqrt();
        let expected = ((1.959_964 * root(0.001) + 0.841_621 * root(0.0005)) / 0.0005).powi(2);
        assert!((samples / expected - 1.0).abs() < 0.01, "{samples} {expected}");
        assert!(!is_least);
    }

    #[test]
    fn groups_take_more_and_ten_beyond_are_the_least() {
        let Needed::Samples { samples: spread, .. } = needed(0.01, &blocks(|_| 1), None) else {
            panic!()
        };
        let grouped = blocks(|block| if block % 20 == 0 { 20 } else { 0 });
        let Needed::Samples { samples: grouped, .. } = needed(0.01, &grouped, None) else {
            panic!()
        };
        assert!(spread >= 1_000.0 && grouped > 10.0 * spread, "{spread} {grouped}");
        let none = needed(0.001, &blocks(|_| 0), None);
        assert_eq!(none, Needed::Samples { samples: 20_000.0, is_least: true });
    }

    #[test]
    fn what_is_late_already_stays_so() {
        let certain = Needed::Never { share: 0.002, is_certain: true };
        assert_eq!(needed(0.001, &blocks(|_| 2), None), certain);
        // 20 in one block of 100,000 samples.
        let grouped = blocks(|block| if block == 7 { 20 } else { 0 });
        let open = Needed::Never { share: 0.0002, is_certain: false };
        assert_eq!(needed(0.0001, &grouped, None), open);
        assert_eq!(needed(0.001, &[], None), Needed::Unknown);
    }
}
