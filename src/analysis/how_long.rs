//! How long must a run be, so that a share of late samples can be said to be below a limit?
//!
//! The samples that it takes so that, with the share that was seen, the 95 % interval lies below
//! the limit in four of five runs (the usual size of a test of one proportion: Fleiss, Levin, Paik,
//! Statistical Methods for Rates and Proportions, 3rd ed., section 2.2.1), and at least 10 beyond
//! the percentile; times the design effect, as late samples come in groups.

use super::{
    distributions::normal_upper,
    percentile::{BlockCount, dependence},
};
use crate::run::summary::ENOUGH_BEYOND;

/// The tail of a 95 % interval, and one run in five that does not decide.
const TAIL: f64 = 0.025;
const UNDECIDED: f64 = 0.2;

/// How many samples it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needed {
    /// So many; a lower bound where none beyond the limit was seen, for how these would come in
    /// groups is then not known.
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
    },
    /// Nothing was measured, or nothing may be late.
    Unknown,
}

/// How many samples it takes to say that a share of less than `allowed` lies beyond a limit, from
/// blocks in which samples beyond it were counted.
#[must_use]
pub fn needed(allowed: f64, blocks: &[BlockCount]) -> Needed {
    let sum = |of: fn(&BlockCount) -> u64| blocks.iter().map(of).fold(0, u64::saturating_add);
    let (samples, beyond) = (sum(|block| block.samples), sum(|block| block.beyond));
    if samples == 0 || allowed <= 0.0 {
        return Needed::Unknown;
    }
    let share = beyond as f64 / samples as f64;
    if share >= allowed {
        return Needed::Never { share };
    }
    let least = ENOUGH_BEYOND as f64 / allowed;
    let spread = |share: f64| (share * (1.0 - share)).sqrt();
    let distance = normal_upper(TAIL) * spread(allowed) + normal_upper(UNDECIDED) * spread(share);
    let decided = (distance / (allowed - share)).powi(2);
    let effect = dependence(blocks).map(|found| found.design_effect);
    Needed::Samples {
        samples: least.max(decided) * effect.unwrap_or(1.0),
        is_least: effect.is_none(),
    }
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
        let found = needed(0.001, &blocks(|block| (block % 2) as u64));
        let Needed::Samples { samples, is_least } = found else { panic!("{found:?}") };
        let root = |share: f64| (share * (1.0 - share)).sqrt();
        let expected = ((1.959_964 * root(0.001) + 0.841_621 * root(0.0005)) / 0.0005).powi(2);
        assert!((samples / expected - 1.0).abs() < 0.01, "{samples} {expected}");
        assert!(!is_least);
    }

    #[test]
    fn groups_take_more_and_ten_beyond_are_the_least() {
        let Needed::Samples { samples: spread, .. } = needed(0.01, &blocks(|_| 1)) else {
            panic!()
        };
        let grouped = blocks(|block| if block % 20 == 0 { 20 } else { 0 });
        let Needed::Samples { samples: grouped, .. } = needed(0.01, &grouped) else { panic!() };
        assert!(spread >= 1_000.0 && grouped > 10.0 * spread, "{spread} {grouped}");
        let none = needed(0.001, &blocks(|_| 0));
        assert_eq!(none, Needed::Samples { samples: 10_000.0, is_least: true });
    }

    #[test]
    fn what_is_late_already_stays_so() {
        assert_eq!(needed(0.001, &blocks(|_| 2)), Needed::Never { share: 0.002 });
        assert_eq!(needed(0.001, &[]), Needed::Unknown);
    }
}
