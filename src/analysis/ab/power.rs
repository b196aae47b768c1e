//! What a comparison can find: pairs for a difference, the difference for a number of pairs.
//!
//! The looks are computed as for a known variance. That it is estimated costs about z^2 / 2 pairs,
//! z being the quantile of the test (Guenther, The American Statistician 35, 1981, p. 243).

use super::{
    ALPHA,
    looks::{FEWEST_PAIRS, LookError, LookPlan},
};
use crate::analysis::distributions::normal_upper;

/// The usual probability with which a difference is to be found.
pub const POWER: f64 = 0.8;

/// More pairs than this are called too many.
const MOST: u32 = 100_000;

/// Pairs for a test with a single look and a known standard deviation `sd` of a pair's log ratio,
/// which finds a difference of `shift` (0.05 is 5%) with the probability `power`:
/// (z(alpha/2) + z(1 - power))^2 (sd / ln(1 + shift))^2. The least that any test needs.
#[must_use]
pub fn pairs_at_least(sd: f64, shift: f64, alpha: f64, power: f64) -> f64 {
    let z = normal_upper(alpha / 2.0) + normal_upper(1.0 - power);
    (z * sd / shift.ln_1p()).powi(2)
}

/// The probability that a figure is called different with this plan, when its pairs have this mean
/// log ratio and standard deviation, and `share` figures share the error probability.
#[must_use]
pub fn power(plan: &LookPlan, share: usize, mean: f64, sd: f64) -> f64 {
    let pairs = plan.pairs().last().map_or(0.0, |pairs| f64::from(*pairs));
    plan.crossing(share, drift(pairs, share, mean, sd))
}

/// Expected z of the final interim analysis, after `pairs` pairs.
fn drift(pairs: f64, share: usize, mean: f64, sd: f64) -> f64 {
    let lost = normal_upper(ALPHA / share.max(1) as f64 / 2.0).powi(2) / 2.0;
    mean.abs() / sd * (pairs - lost).max(1.0).sqrt()
}

/// How many pairs find a mean log ratio with the probability [`POWER`]; `figures` share the error
/// probability, and this one is the first by Holm's rule. `None` if it takes more than 100,000, or
/// the difference or the spread is 0.
///
/// # Errors
/// No figure.
pub fn pairs_needed(mean: f64, sd: f64, figures: usize) -> Result<Option<u32>, LookError> {
    let is_enough = |pairs: u32| {
        let drift = |pairs| drift(pairs, figures, mean, sd);
        Ok(LookPlan::crossing_of_all(pairs, figures, ALPHA, drift)? >= POWER)
    };
    if !(mean.abs() > 0.0 && mean.is_finite() && sd > 0.0 && sd.is_finite()) {
        return Ok(None);
    }
    if is_enough(FEWEST_PAIRS)? {
        return Ok(Some(FEWEST_PAIRS));
    }
    let mut enough = 2 * FEWEST_PAIRS;
    while !is_enough(enough)? {
        enough *= 2;
        if enough > MOST {
            return Ok(None);
        }
    }
    let mut few = enough / 2;
    while enough - few > 2 {
        // Whole quads.
        let middle = few.midpoint(enough).next_multiple_of(2);
        let middle = if middle == enough { middle - 2 } else { middle };
        if middle <= few {
            break;
        }
        if is_enough(middle)? { enough = middle } else { few = middle }
    }
    Ok(Some(enough))
}

/// The smallest share by which B may be slower than A and be found so with the probability
/// [`POWER`]: 0.05 for 5%. `None` if even a factor of 1,000 is not found.
#[must_use]
pub fn smallest_difference(plan: &LookPlan, share: usize, sd: f64) -> Option<f64> {
    let is_found = |mean: f64| power(plan, share, mean, sd) >= POWER;
    let (mut low, mut high) = (0.0, 1_000.0_f64.ln());
    if !is_found(high) {
        return None;
    }
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if is_found(middle) { high = middle } else { low = middle }
    }
    Some(high.exp_m1())
}

/// How many pairs it would take to decide a figure, if its mean and standard deviation stay as they
/// are: for better or worse, or for "the same" where it lies within the margin (a logarithm),
/// whichever is easier. Absent as in [`pairs_needed`].
///
/// # Errors
/// No figure.
pub fn pairs_to_decide(
    mean: f64,
    sd: f64,
    margin: f64,
    figures: usize,
) -> Result<Option<u32>, LookError> {
    // From the nearest value that it must be told from: no difference, or the margin.
    pairs_needed(mean.abs().max(margin - mean.abs()), sd, figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_numbers_of_pairs_are_those_of_the_normal_distribution() {
        // (1.96 + 0.8416)^2 = 7.849 and, for a sixth of 5%, (2.638 + 0.8416)^2 = 12.108, times
        // (sd / ln(1 + shift))^2, computed by hand.
        for (sd, shift, alone, of_six) in [
            (0.1, 0.05, 33.0, 51.0),
            (0.1, 0.1, 9.0, 14.0),
            (0.1, 0.2, 3.0, 4.0),
            (0.3, 0.05, 297.0, 458.0),
            (0.3, 0.1, 78.0, 120.0),
            (0.3, 0.2, 22.0, 33.0),
        ] {
            assert_eq!(pairs_at_least(sd, shift, 0.05, 0.8).ceil(), alone, "{sd} {shift}");
            assert_eq!(pairs_at_least(sd, shift, 0.05 / 6.0, 0.8).ceil(), of_six, "{sd} {shift}");
        }
    }

    #[test]
    fn looks_and_an_unknown_variance_cost_a_few_pairs() {
        for (sd, shift) in [(0.1, 0.05), (0.1, 0.1), (0.3, 0.1), (0.3, 0.05_f64)] {
            let least = pairs_at_least(sd, shift, 0.05, 0.8);
            let needed = f64::from(pairs_needed(shift.ln_1p(), sd, 1).unwrap().unwrap());
            // Inflation of five looks: 1.028 (Jennison and Turnbull 2000, table 2.4); Guenther's
            // correction: 1.96^2 / 2 = 1.92; up to a quad for rounding.
            let expected = 1.028 * least + 1.92;
            assert!((expected - 0.6..=expected + 2.6).contains(&needed), "{needed} {expected}");
        }
        assert_eq!(pairs_needed(0.2_f64.ln_1p(), 0.1, 1), Ok(Some(6)));
    }

    #[test]
    fn what_cannot_be_found_takes_no_number_of_pairs() {
        assert_eq!(pairs_needed(0.0, 0.1, 1), Ok(None));
        assert_eq!(pairs_needed(1e-6, 0.1, 1), Ok(None));
        assert_eq!(pairs_needed(f64::NAN, 0.1, 1), Ok(None));
        assert_eq!(pairs_needed(0.1, 0.1, 0), Err(LookError::NoFigure));
    }

    #[test]
    fn the_smallest_difference_takes_the_pairs_of_the_plan() {
        let plan = LookPlan::new(40, 3, ALPHA).unwrap();
        for share in [1, 3] {
            let smallest = smallest_difference(&plan, share, 0.1).unwrap();
            let found = power(&plan, share, smallest.ln_1p(), 0.1);
            assert!((found - POWER).abs() < 1e-4, "{found}");
        }
        // (2.040 + 0.8416) * 0.1 / sqrt(40 - 1.92), about.
        let smallest = smallest_difference(&plan, 1, 0.1).unwrap();
        assert!((0.042..0.051).contains(&smallest), "{smallest}");
        assert_eq!(smallest_difference(&plan, 1, 1e6), None);
    }

    #[test]
    fn a_figure_near_neither_end_is_decided_by_the_nearer() {
        let of = |mean| pairs_to_decide(mean, 0.1, 0.1, 1).unwrap();
        // Without a difference, the margin is to be excluded: as for a difference of 10%.
        assert_eq!(of(0.0), pairs_needed(0.1, 0.1, 1).unwrap());
        assert_eq!(of(0.08), pairs_needed(0.08, 0.1, 1).unwrap());
        assert_eq!(of(-0.08), of(0.08));
        assert!(of(0.05) > of(0.0) && of(0.05) > of(0.09), "between them most");
        assert_eq!(of(0.3), pairs_needed(0.3, 0.1, 1).unwrap());
    }
}
