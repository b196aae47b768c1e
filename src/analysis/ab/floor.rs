//! What equal sides differ by: the floor under every difference.
//!
//! The two blocks in the middle of a quad are of the same side, and as near to each other as those
//! that are compared. So their differences are those of a comparison of A with A and of B with B,
//! and come for free. The floor raises the margin below which sides are called the same; it is not
//! a second test.

use crate::analysis::distributions::t_upper;

/// The probability that equal sides differ by more, on either side.
const TAIL: f64 = 0.025;

/// The mean difference that `pairs` pairs of equal sides would stay below in 95% of the sessions,
/// as a logarithm; from the log ratios of pairs of equals. Drift is in it: the differences are
/// taken from 0, not from their mean. Absent without a pair.
#[must_use]
pub fn floor(equal_log_ratios: &[f64], least_sd: f64, pairs: usize) -> Option<f64> {
    let count = equal_log_ratios.len();
    if count == 0 || pairs == 0 {
        return None;
    }
    let square: f64 = equal_log_ratios.iter().map(|ratio| ratio * ratio).sum();
    let sd = (square / count as f64).sqrt().max(least_sd);
    // From 0: every difference is a degree of freedom.
    Some(t_upper(TAIL, count as f64) * sd / (pairs as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_one_computed_by_hand() {
        // Root mean square of 0.1, -0.1, 0.1, -0.1, 0.1: 0.1. t with 5 degrees of freedom: 2.5706.
        let found = floor(&[0.1, -0.1, 0.1, -0.1, 0.1], 0.0, 10).unwrap();
        assert!((found - 2.5706 * 0.1 / 10.0_f64.sqrt()).abs() < 1e-5, "{found}");
    }

    #[test]
    fn equals_that_all_drift_alike_have_a_floor() {
        assert!(floor(&[0.1; 5], 0.0, 10).unwrap() > 0.08);
    }

    #[test]
    fn equals_that_are_alike_by_chance_have_the_floor_of_chance() {
        assert_eq!(floor(&[0.0; 5], 0.3, 10), floor(&[0.3; 5], 0.0, 10));
        assert_eq!(floor(&[], 0.3, 10), None);
        assert_eq!(floor(&[0.1], 0.3, 0), None);
    }
}
