//! Does the model fit, and from which threshold on?
//!
//! The statistic of Anderson and Darling, which weighs tails, compared with samples that are drawn
//! from the fitted distribution, put on the same grid of values, and fitted alike (a parametric
//! bootstrap: Stute, Manteiga, Quindimil, Metrika 40, 1993, p. 243). So neither the estimated
//! parameters nor ties need tables. Thresholds ascend; `ForwardStop` (G'Sell, Wager, Chouldechova,
//! Tibshirani, Journal of the Royal Statistical Society B 78, 2016, p. 423) ends the rejections, as
//! Bader, Yan and Zhang use it (Annals of Applied Statistics 12, 2018, p. 310).

use super::pareto::Pareto;
use crate::analysis::random::SplitMix64;

/// Samples that are drawn at most, and how many of them may fit worse before that says enough
/// (Besag and Clifford, Biometrika 78, 1991, p. 301).
const DRAWN: usize = 199;
const WORSE: usize = 20;

/// The expected share of rejected thresholds that would have fitted.
const FALSE_REJECTIONS: f64 = 0.1;

/// How likely excesses of the fitted distribution would fit it worse than these.
pub(super) fn probability(excesses: &[f64], random: &mut SplitMix64) -> f64 {
    let mut sorted = excesses.to_vec();
    sorted.sort_by(f64::total_cmp);
    let grid = grid(&sorted);
    let fit = Pareto::by_moments(&sorted);
    let own = statistic(&sorted, fit);
    let mut worse = 0;
    for drawn in 1..=DRAWN {
        let mut draw: Vec<f64> = sorted
            .iter()
            .map(|_| (fit.upper(random.uniform()) / grid).ceil().max(1.0) * grid)
            .collect();
        draw.sort_by(f64::total_cmp);
        worse += usize::from(statistic(&draw, Pareto::by_moments(&draw)) >= own);
        if worse == WORSE {
            return WORSE as f64 / drawn as f64;
        }
    }
    (worse + 1) as f64 / (DRAWN + 1) as f64
}

/// The smallest step between neighbouring values: that of the clock, or of buckets.
fn grid(sorted: &[f64]) -> f64 {
    let steps = sorted.iter().zip(sorted.iter().skip(1)).map(|(low, high)| high - low);
    let least = steps.filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

/// Of Anderson and Darling.
fn statistic(sorted: &[f64], fit: Pareto) -> f64 {
    let count = sorted.len() as f64;
    let tails: Vec<f64> = sorted.iter().map(|y| fit.tail(*y).clamp(1e-12, 1.0 - 1e-12)).collect();
    let pairs = tails.iter().zip(tails.iter().rev()).enumerate();
    let sum: f64 = pairs
        .map(|(place, (low, high))| (2.0 * place as f64 + 1.0) * ((1.0 - low).ln() + high.ln()))
        .sum();
    -count - sum / count
}

/// Which of ascending thresholds is the first that is not rejected, by the probabilities of their
/// fits; none where all are.
pub(super) fn first_that_fits(probabilities: &[f64]) -> Option<usize> {
    let mut sum = 0.0;
    let mut rejected = 0;
    for (place, probability) in probabilities.iter().enumerate() {
        sum -= (1.0 - probability.min(1.0 - 1e-9)).ln();
        if sum / (place as f64 + 1.0) <= FALSE_REJECTIONS {
            rejected = place + 1;
        }
    }
    (rejected < probabilities.len()).then_some(rejected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_the_one_computed_by_hand() {
        // Exponential with scale 1: F(ln 2) = 1/2, F(ln 4) = 3/4.
        let fit = Pareto { shape: 0.0, scale: 1.0 };
        let values = [2.0_f64.ln(), 4.0_f64.ln()];
        let expected =
            -2.0 - 0.5 * ((0.5_f64.ln() + 0.25_f64.ln()) + 3.0 * (0.75_f64.ln() + 0.5_f64.ln()));
        assert!((statistic(&values, fit) - expected).abs() < 1e-12);
    }

    #[test]
    fn probabilities_of_true_models_are_spread_evenly_also_with_ties() {
        let truth = Pareto { shape: 0.1, scale: 1_000.0 };
        for grid in [1.0, 150.0] {
            let mut random = SplitMix64::new(11);
            let mut low = 0;
            for _ in 0..60 {
                let drawn: Vec<f64> =
                    (0..30).map(|_| (truth.upper(random.uniform()) / grid).ceil() * grid).collect();
                low += usize::from(probability(&drawn, &mut random) <= 0.2);
            }
            // 12 expected, standard deviation 3.1.
            assert!((3..=22).contains(&low), "grid {grid}: {low} of 60");
        }
    }

    #[test]
    fn two_kinds_of_excesses_do_not_fit() {
        let mut random = SplitMix64::new(5);
        let mut mixed = |n: u32| {
            let far = if n.is_multiple_of(4) { 50_000.0 } else { 0.0 };
            far - 1_000.0 * random.uniform().ln()
        };
        let drawn: Vec<f64> = (0..200).map(&mut mixed).collect();
        assert!(probability(&drawn, &mut SplitMix64::new(1)) < 0.02);
    }

    #[test]
    fn rejections_end_where_thresholds_begin_to_fit() {
        assert_eq!(first_that_fits(&[0.005, 0.005, 0.6, 0.4, 0.8]), Some(2));
        assert_eq!(first_that_fits(&[0.3, 0.4, 0.9]), Some(0));
        assert_eq!(first_that_fits(&[0.005, 0.01, 0.02]), None);
        assert_eq!(first_that_fits(&[]), None);
    }
}
