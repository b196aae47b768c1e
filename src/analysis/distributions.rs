//! Quantiles and tails of the normal, Student's t and the binomial distribution.
//!
//! Normal and t are those of `statrs`. The binomial distribution is summed here: `statrs` evaluates
//! it by a continued fraction that ends after 140 steps, which is too early for the number of
//! samples of a day.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// With more degrees of freedom Student's t differs from the normal distribution by less than
/// anything that is printed.
const FREEDOM_OF_NORMAL: f64 = 10_000.0;

/// From this variance on a binomial distribution is taken by its Cornish-Fisher expansion, which
/// then is wrong by about a thousandth of one sample.
const VARIANCE_OF_NORMAL: f64 = 1e6;

/// P(Z > z) of the standard normal distribution.
#[must_use]
pub fn normal_tail(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The z with P(Z > z) = `tail`: 1.96 for 0.025. Infinite for a tail of 0, NaN for one outside 0
/// to 1.
#[must_use]
pub fn normal_upper(tail: f64) -> f64 {
    if !(0.0..=1.0).contains(&tail) {
        return f64::NAN;
    }
    // From below, where small probabilities are exact.
    -Normal::standard().inverse_cdf(tail)
}

/// P(T > t) of Student's t with `freedom` degrees of freedom, at least 1.
#[must_use]
pub fn t_tail(t: f64, freedom: f64) -> f64 {
    if freedom >= FREEDOM_OF_NORMAL || t.is_infinite() {
        return normal_tail(t);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |student| student.sf(t))
}

/// The t with P(T > t) = `tail`, of Student's t with `freedom` degrees of freedom: 2.571 for 0.025
/// and 5. For tails up to 0.5; NaN otherwise.
#[must_use]
pub fn t_upper(tail: f64, freedom: f64) -> f64 {
    if tail == 0.0 {
        return f64::INFINITY;
    }
    if !(0.0..=0.5).contains(&tail) || freedom.is_nan() || freedom < 1.0 {
        return f64::NAN;
    }
    // Bisection: it ends, whatever the tail. The quantile is at least the normal one.
    let mut low = normal_upper(tail).max(0.0);
    let mut high = low.max(1.0);
    while t_tail(high, freedom) > tail {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if t_tail(middle, freedom) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The standard normal value that is as unlikely as `t` with `freedom` degrees of freedom.
#[must_use]
pub fn normal_of_t(t: f64, freedom: f64) -> f64 {
    normal_upper(t_tail(t.abs(), freedom)).copysign(t)
}

/// The central part of a binomial distribution, X successes of `trials` with probability `p`: the
/// smallest k with P(X <= k) > `tail`, and the smallest k with P(X > k) <= `tail`. So X lies below
/// the first with probability `tail` at most, and above the second likewise.
#[must_use]
pub fn binomial_center(trials: u64, p: f64, tail: f64) -> (u64, u64) {
    let mean = trials as f64 * p;
    let variance = mean * (1.0 - p);
    if variance > VARIANCE_OF_NORMAL {
        return expanded_center(mean, variance, p, tail);
    }
    let (first, weights) = binomial_weights(trials, p);
    let allowed = tail * weights.iter().sum::<f64>();
    let below = leading(weights.iter(), allowed);
    let above = leading(weights.iter().rev(), allowed);
    (first + below, (first + weights.len() as u64 - 1).saturating_sub(above))
}

/// How many of the first weights sum up to what is allowed at most.
fn leading<'a>(weights: impl Iterator<Item = &'a f64>, allowed: f64) -> u64 {
    let mut sum = 0.0;
    let is_within = |weight: &&f64| {
        sum += **weight;
        sum <= allowed
    };
    weights.take_while(is_within).count() as u64
}

/// The same by the expansion of Cornish and Fisher (1937) to the term of skewness.
fn expanded_center(mean: f64, variance: f64, p: f64, tail: f64) -> (u64, u64) {
    let z = normal_upper(tail);
    let skewed = mean + (1.0 - 2.0 * p) * (z * z - 1.0) / 6.0;
    let half = z * variance.sqrt();
    ((skewed - half).floor().max(0.0) as u64, (skewed + half).ceil() as u64)
}

/// Probabilities of a binomial distribution, relative to the most likely value; those that no
/// longer count are left out. The first belongs to the number beside them.
fn binomial_weights(trials: u64, p: f64) -> (u64, Vec<f64>) {
    const NEGLIGIBLE: f64 = 1e-18;
    if p <= 0.0 || p >= 1.0 {
        return (if p >= 1.0 { trials } else { 0 }, vec![1.0]);
    }
    let odds = p / (1.0 - p);
    let mode = (((trials as f64 + 1.0) * p).floor() as u64).min(trials);
    let mut weights = Vec::new();
    let (mut weight, mut k) = (1.0, mode);
    while k > 0 && weight > NEGLIGIBLE {
        weight *= k as f64 / ((trials - k + 1) as f64 * odds);
        k -= 1;
        weights.push(weight);
    }
    let first = k;
    weights.reverse();
    weights.push(1.0);
    (weight, k) = (1.0, mode);
    while k < trials && weight > NEGLIGIBLE {
        weight *= (trials - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        weights.push(weight);
    }
    (first, weights)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} instead of {expected}");
    }

    #[test]
    fn the_normal_distribution_has_the_quantiles_of_the_tables() {
        for (tail, z) in [(0.5, 0.0), (0.1, 1.281_552), (0.025, 1.959_964), (0.001, 3.090_232)] {
            assert_near(normal_upper(tail), z, 1e-6);
            assert_near(normal_tail(z), tail, 1e-7);
        }
        assert_near(normal_upper(1e-9), 5.997_807, 1e-5);
        assert_near(normal_upper(0.975), -1.959_964, 1e-6);
        assert!(normal_upper(f64::NAN).is_nan() && normal_upper(-0.1).is_nan());
    }

    #[test]
    fn students_t_has_the_quantiles_of_the_tables() {
        let table = [
            (1.0, 0.025, 12.706),
            (5.0, 0.025, 2.571),
            (10.0, 0.025, 2.228),
            (19.0, 0.025, 2.093),
            (120.0, 0.025, 1.980),
            (3.0, 0.001, 10.215),
            (29.0, 0.005, 2.756),
        ];
        for (freedom, tail, t) in table {
            assert_near(t_upper(tail, freedom), t, 0.0006);
        }
        assert_near(t_upper(0.025, 1e6), 1.959_964, 1e-5);
        assert!(t_upper(0.025, 0.0).is_nan() && t_upper(0.7, 5.0).is_nan());
    }

    #[test]
    fn tails_of_a_first_look_are_found_too() {
        // Of Cauchy's distribution, t with 1 degree of freedom: P(T > t) = atan(1/t) / pi.
        let tail = 1e-9;
        let t = 1.0 / (std::f64::consts::PI * tail).tan();
        assert_near(t_upper(tail, 1.0) / t, 1.0, 1e-6);
        assert!(t_upper(0.0, 3.0).is_infinite());
    }

    #[test]
    fn a_t_becomes_the_normal_value_that_is_as_unlikely() {
        assert_near(normal_of_t(2.571, 5.0), 1.96, 0.001);
        assert_near(normal_of_t(-2.228, 10.0), -1.96, 0.001);
        assert_near(normal_of_t(0.0, 3.0), 0.0, 1e-12);
    }

    #[test]
    fn the_binomial_center_is_that_of_the_tables() {
        // Ranks of the sign test (Conover, table A3): 20 throws, 2.07% at 5 or fewer, 5.77% at 6.
        assert_eq!(binomial_center(20, 0.5, 0.025), (6, 14));
        assert_eq!(binomial_center(6, 0.5, 0.025), (1, 5));
        // P(X = 0) = 0.9^10 = 0.3487; P(X <= 2) = 0.9298, P(X <= 3) = 0.9872.
        assert_eq!(binomial_center(10, 0.1, 0.025), (0, 3));
        assert_eq!(binomial_center(10, 0.1, 0.1), (0, 2));
        assert_eq!(binomial_center(5, 0.0, 0.025), (0, 0));
        assert_eq!(binomial_center(5, 1.0, 0.025), (5, 5));
        assert_eq!(binomial_center(0, 0.5, 0.025), (0, 0));
    }

    #[test]
    fn rare_successes_of_many_are_those_of_poisson() {
        // Poisson with mean 20: P(X <= 11) = 0.0214, P(X <= 12) = 0.0390; P(X > 28) = 0.0343,
        // P(X > 29) = 0.0218.
        assert_eq!(binomial_center(20_000_000, 1e-6, 0.025), (12, 29));
    }

    #[test]
    fn summing_and_the_expansion_agree_where_they_meet() {
        for p in [0.5, 0.1, 0.001] {
            let trials = (VARIANCE_OF_NORMAL * 0.999 / (p * (1.0 - p))) as u64;
            let (low, high) = binomial_center(trials, p, 0.025);
            let mean = trials as f64 * p;
            let (also_low, also_high) = expanded_center(mean, mean * (1.0 - p), p, 0.025);
            assert!(low.abs_diff(also_low) <= 1 && high.abs_diff(also_high) <= 1, "{p}");
        }
    }

    #[test]
    fn no_number_of_samples_is_too_large() {
        let (low, high) = binomial_center(u64::MAX, 0.5, 0.025);
        assert!(low < u64::MAX / 2 && u64::MAX / 2 < high);
    }

    proptest! {
        #[test]
        fn the_center_leaves_at_most_the_tail_on_either_side(
            trials in 1_u64..200, p in 0.001_f64..0.999, tail in 0.001_f64..0.4
        ) {
            let (low, high) = binomial_center(trials, p, tail);
            let (first, weights) = binomial_weights(trials, p);
            let sum = |range: std::ops::RangeInclusive<u64>| -> f64 {
                let of = |k: u64| weights.get(k.checked_sub(first)? as usize).copied();
                range.filter_map(of).sum::<f64>() / weights.iter().sum::<f64>()
            };
            prop_assert!(low == 0 || sum(0..=low - 1) <= tail + 1e-12);
            prop_assert!(sum(0..=low) > tail - 1e-12);
            prop_assert!(high == trials || sum(high + 1..=trials) <= tail + 1e-12);
            prop_assert!(sum(high..=trials) > tail - 1e-12);
        }
    }
}
