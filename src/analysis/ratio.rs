//! Medians with an interval, and ratios of paired measurements.
//!
//! The interval is that of the sign test: between two order statistics, chosen by the binomial
//! distribution. It assumes nothing of the shape of the noise, only that the pairs are independent;
//! latencies have tails that would make a fool of anything that assumes more. (Conover, Practical
//! Nonparametric Statistics, 3rd ed., section 3.2.)

use thiserror::Error;

/// A median and the interval in which it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of what was measured.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How surely the interval holds the true median: at least what was asked for, and more where
    /// there are few values, for only whole ones can be its ends.
    pub confidence: f64,
    /// How many values there were.
    pub count: usize,
}

/// Why an estimate is missing.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum EstimateError {
    /// Even from the smallest to the largest is not sure enough.
    #[error("{count} values are too few for {percent}% confidence; take at least {needed}",
        percent = .confidence * 100.0)]
    TooFew {
        /// How many there were.
        count: usize,
        /// What was asked for, 0 to 1.
        confidence: f64,
        /// How many it takes.
        needed: usize,
    },
    /// A confidence that no number of values reaches.
    #[error("a confidence of {0} is not possible; it lies between 0 and 1, as 0.95 does")]
    Confidence(f64),
    /// No number, or a ratio to nothing.
    #[error("value {0} is not a number to compare; a pair needs two, above 0")]
    NoNumber(usize),
}

impl Estimate {
    /// Whether a limit from above is met: the interval does not lie wholly above it.
    #[must_use]
    pub fn meets(&self, limit: f64) -> bool {
        self.low <= limit
    }
}

/// The median of `values` and an interval that holds the true one with at least `confidence`.
///
/// # Errors
/// Too few values, a confidence outside 0 to 1, a value that is not a number.
pub fn median(values: &[f64], confidence: f64) -> Result<Estimate, EstimateError> {
    if !(0.0..1.0).contains(&confidence) {
        return Err(EstimateError::Confidence(confidence));
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(EstimateError::NoNumber(place));
    }
    let count = values.len();
    let Some((rank, confidence)) = rank(count, confidence) else {
        return Err(EstimateError::TooFew { count, confidence, needed: needed(confidence) });
    };
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    Ok(Estimate {
        median: f64::midpoint(at((count - 1) / 2), at(count / 2)),
        low: at(rank),
        high: at(count - 1 - rank),
        confidence,
        count,
    })
}

/// The ratio of the first of each pair to the second, as [`median`] estimates it.
///
/// # Errors
/// As [`median`]; and a pair that does not hold two positive numbers.
pub fn paired(pairs: &[(f64, f64)], confidence: f64) -> Result<Estimate, EstimateError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if let Some(place) = pairs.iter().position(|(a, b)| !positive(*a) || !positive(*b)) {
        return Err(EstimateError::NoNumber(place));
    }
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
    median(&ratios, confidence)
}

/// The largest `rank` (from 0) for which the interval from order statistic `rank` to that of the
/// same rank from above is sure enough, and how sure it is.
fn rank(count: usize, confidence: f64) -> Option<(usize, f64)> {
    // ln P(X = 0) of a binomial distribution over `count` fair coins, then upwards; as logarithms,
    // because 2^-1100 is 0 as a number.
    let mut point_ln = -(count as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut found = None;
    for rank in 0..count.div_ceil(2) {
        below += point_ln.exp();
        let sure = 1.0 - 2.0 * below;
        if sure < confidence || sure <= 0.0 {
            break;
        }
        found = Some((rank, sure));
        point_ln += ((count - rank) as f64 / (rank + 1) as f64).ln();
    }
    found
}

/// The smallest number of values whose range is sure enough.
fn needed(confidence: f64) -> usize {
    (2..10_000).find(|count| rank(*count, confidence).is_some()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimate(count: u32) -> Estimate {
        let values: Vec<f64> = (1..=count).map(f64::from).collect();
        median(&values, 0.95).unwrap()
    }

    #[test]
    fn the_ends_are_the_order_statistics_that_the_tables_give() {
        // Ranks from 1 of the lower end, and the confidence, by the binomial distribution.
        for (count, low, percent) in [
            (6, 1, 96.88),
            (7, 1, 98.44),
            (8, 1, 99.22),
            (9, 2, 96.09),
            (12, 3, 96.14),
            (20, 6, 95.86),
        ] {
            let found = estimate(count);
            assert_eq!((found.low, found.high), (f64::from(low), f64::from(count + 1 - low)));
            assert!((found.confidence * 100.0 - percent).abs() < 0.005, "{count}: {found:?}");
        }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert!((estimate(6).median - 3.5).abs() < f64::EPSILON);
        assert!((estimate(7).median - 4.0).abs() < f64::EPSILON);
    }

    #[test]
    fn too_few_values_are_refused_with_the_number_that_would_do() {
        let error = median(&[1.0; 5], 0.95).unwrap_err();
        assert_eq!(error, EstimateError::TooFew { count: 5, confidence: 0.95, needed: 6 });
        assert_eq!(error.to_string(), "5 values are too few for 95% confidence; take at least 6");
        assert!(median(&[], 0.95).is_err());
    }

    #[test]
    fn what_is_no_number_is_refused_by_its_place() {
        assert_eq!(median(&[1.0, f64::NAN], 0.5), Err(EstimateError::NoNumber(1)));
        for pair in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, f64::INFINITY)] {
            let pairs = [(1.0, 1.0), (1.0, 1.0), pair];
            assert_eq!(paired(&pairs, 0.5), Err(EstimateError::NoNumber(2)));
        }
        assert_eq!(median(&[1.0; 9], 1.0), Err(EstimateError::Confidence(1.0)));
        assert!(median(&[1.0; 9], f64::NAN).is_err());
    }

    #[test]
    fn a_limit_is_missed_only_where_the_whole_interval_lies_above_it() {
        let ratio = |low: f64| {
            let pairs: Vec<_> = (0..7).map(|i| (low + f64::from(i) / 100.0, 1.0)).collect();
            paired(&pairs, 0.95).unwrap()
        };
        assert!(ratio(0.99).meets(1.0), "the interval holds the limit");
        assert!(ratio(1.0).meets(1.0), "and begins there");
        assert!(!ratio(1.001).meets(1.0));
    }

    #[test]
    fn many_values_are_counted_as_exactly_as_few() {
        let found = estimate(10_000);
        // Ranks from 1, 5,000 - 1.96 * 50 by the normal distribution.
        assert!((4_901.0..=4_903.0).contains(&found.low), "{found:?}");
        assert!((0.95..0.952).contains(&found.confidence), "{found:?}");
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_is_as_sure_as_asked(
            values in prop::collection::vec(-1e9_f64..1e9, 6..60), confidence in 0.0_f64..0.96
        ) {
            let found = median(&values, confidence).unwrap();
            prop_assert!(found.low <= found.median && found.median <= found.high);
            prop_assert!(found.confidence >= confidence && found.confidence < 1.0);
        }

        #[test]
        fn turning_every_pair_around_turns_the_ratio_around(
            pairs in prop::collection::vec((0.1_f64..10.0, 0.1_f64..10.0), 7..30)
        ) {
            // Odd numbers: the middle of two is not the middle of their inverses.
            let pairs = &pairs[..pairs.len() - (1 - pairs.len() % 2)];
            let turned: Vec<_> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let (there, back) = (paired(pairs, 0.95).unwrap(), paired(&turned, 0.95).unwrap());
            prop_assert!((there.median * back.median - 1.0).abs() < 1e-9);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
        }
    }
}
