//! When a comparison may stop: at looks that are fixed beforehand.
//!
//! A look after every pair that stops at 5% errs in about 20% of the cases. So
//! there are five looks at most, at fixed numbers of pairs, with the boundaries of O'Brien and
//! Fleming (Biometrics 35, 1979, p. 549): strict at first, nearly the usual ones at the end, 5%
//! over all. The probabilities come from the recursion of Armitage, McPherson and Rowe (JRSS A 132,
//! 1969, p. 235), as in Jennison and Turnbull, Group Sequential Methods (2000), chapter 19. The
//! variance is estimated: boundaries are turned into those of Student's t with the same tail
//! (section 3.8 there), and intervals are the repeated ones of chapter 9, which hold at all looks
//! together.

use thiserror::Error;

use crate::analysis::distributions::{normal_tail, normal_upper, t_upper};

/// Fewer pairs decide nothing.
pub const FEWEST_PAIRS: u32 = 6;

/// More pairs than this are not planned.
pub const MOST_PAIRS: u32 = 1_000_000;

/// The first look has at least so many: with fewer, t has hardly any degrees of freedom.
const FIRST_LOOK: u32 = 4;

/// Looks that a budget is divided into.
const LOOKS: u32 = 5;

/// Steps of the numerical integration between the boundaries; even, as Simpson's rule wants it.
const STEPS: usize = 100;

/// Why looks are missing.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum LookError {
    /// The budget is too small, or absurd.
    #[error("{0} pairs of blocks; a comparison takes 6 to 1000000: give it more time (--budget)")]
    Pairs(u32),
    /// No figure.
    #[error("no metric to judge")]
    NoFigure,
    /// An invalid error probability.
    #[error("an error probability of {0} is not possible; it lies between 0 and 0.5, as 0.05 does")]
    Alpha(f64),
}

/// At which numbers of pairs to look, and which differences decide there.
#[derive(Debug, Clone, PartialEq)]
pub struct LookPlan {
    /// Pairs at each look, rising, and all even: whole quads.
    pairs: Vec<u32>,
    /// The O'Brien-Fleming constant where the error probability is shared by 1, 2, 3, ... figures.
    constants: Vec<f64>,
    /// The boundaries of t: for as many figures, at each look.
    critical: Vec<Vec<f64>>,
}

impl LookPlan {
    /// Looks for at most `most_pairs` pairs (an odd one is left out) and `figures` metrics, with an
    /// error probability of `alpha` over all of them.
    ///
    /// # Errors
    /// See [`LookError`].
    pub fn new(most_pairs: u32, figures: usize, alpha: f64) -> Result<Self, LookError> {
        Self::check(most_pairs, figures, alpha)?;
        let pairs = look_pairs(most_pairs);
        let fractions = fractions_of(&pairs);
        let constants: Vec<f64> =
            (1..=figures).map(|share| constant(&fractions, alpha / share as f64)).collect();
        let at = |constant: f64, pairs: u32, fraction: f64| {
            t_upper(normal_tail(constant / fraction.sqrt()), f64::from(pairs - 1))
        };
        let of = |constant: &f64| {
            let looks = pairs.iter().zip(&fractions);
            looks.map(|(pairs, fraction)| at(*constant, *pairs, *fraction)).collect()
        };
        let critical = constants.iter().map(of).collect();
        Ok(Self { pairs, constants, critical })
    }

    fn check(most_pairs: u32, figures: usize, alpha: f64) -> Result<(), LookError> {
        if !(FEWEST_PAIRS..=MOST_PAIRS).contains(&most_pairs) {
            return Err(LookError::Pairs(most_pairs));
        }
        if figures == 0 {
            return Err(LookError::NoFigure);
        }
        if !(alpha > 0.0 && alpha < 0.5) {
            return Err(LookError::Alpha(alpha));
        }
        Ok(())
    }

    /// What [`Self::crossing`] is for a plan for at most `most_pairs` pairs whose `figures` metrics
    /// all share the error probability; `drift` gives the expectation for the pairs of the last
    /// look. Computes no other constant than the one of these metrics.
    ///
    /// # Errors
    /// See [`LookError`].
    pub(super) fn crossing_of_all(
        most_pairs: u32,
        figures: usize,
        alpha: f64,
        drift: impl FnOnce(f64) -> f64,
    ) -> Result<f64, LookError> {
        Self::check(most_pairs, figures, alpha)?;
        let pairs = look_pairs(most_pairs);
        let fractions = fractions_of(&pairs);
        let last = pairs.last().map_or(0.0, |pairs| f64::from(*pairs));
        Ok(crossing(&fractions, constant(&fractions, alpha / figures as f64), drift(last)))
    }

    /// One look, after `pairs` pairs: metrics that are tested together are judged once.
    ///
    /// # Errors
    /// See [`LookError`].
    pub fn single(pairs: u32, figures: usize, alpha: f64) -> Result<Self, LookError> {
        let mut plan = Self::new(pairs, figures, alpha)?;
        let last = pairs - pairs % 2;
        let tail = |share: usize| alpha / share as f64 / 2.0;
        let freedom = f64::from(last - 1);
        plan.pairs = vec![last];
        plan.constants = (1..=figures).map(|share| normal_upper(tail(share))).collect();
        plan.critical = (1..=figures).map(|share| vec![t_upper(tail(share), freedom)]).collect();
        Ok(plan)
    }

    /// Pairs at each look.
    #[must_use]
    pub fn pairs(&self) -> &[u32] {
        &self.pairs
    }

    /// The number of looks that `pairs` pairs are enough for.
    #[must_use]
    pub fn reached(&self, pairs: usize) -> usize {
        self.pairs.iter().take_while(|look| **look as usize <= pairs).count()
    }

    /// Figures that it was made for.
    #[must_use]
    pub fn figures(&self) -> usize {
        self.constants.len()
    }

    /// The pairs of the look with this number, from 0, as a share of all.
    #[must_use]
    pub fn fraction(&self, look: usize) -> f64 {
        fractions_of(&self.pairs).get(look).copied().unwrap_or(1.0)
    }

    /// The constant that z times the root of [`Self::fraction`] must reach at any look, where
    /// `share` figures share the error probability. Infinite for more than there are.
    #[must_use]
    pub fn constant(&self, share: usize) -> f64 {
        let at = share.checked_sub(1).and_then(|at| self.constants.get(at));
        at.copied().unwrap_or(f64::INFINITY)
    }

    /// The same for a t at one look: half the width of its interval in standard errors.
    #[must_use]
    pub fn critical_t(&self, share: usize, look: usize) -> f64 {
        let of_share = share.checked_sub(1).and_then(|at| self.critical.get(at));
        of_share.and_then(|looks| looks.get(look)).copied().unwrap_or(f64::INFINITY)
    }

    /// The probability that a boundary is reached when the final z has this expectation, where
    /// `share` figures share the error probability.
    #[must_use]
    pub fn crossing(&self, share: usize, drift: f64) -> f64 {
        crossing(&fractions_of(&self.pairs), self.constant(share), drift)
    }
}

/// Fifths of the budget in whole quads.
fn look_pairs(most: u32) -> Vec<u32> {
    let most = most - most % 2;
    let even = |look: u32| (most * look).div_ceil(LOOKS).next_multiple_of(2);
    let mut pairs: Vec<u32> = (1..=LOOKS).map(|look| even(look).clamp(FIRST_LOOK, most)).collect();
    pairs.dedup();
    pairs
}

fn fractions_of(pairs: &[u32]) -> Vec<f64> {
    let all = f64::from(pairs.last().copied().unwrap_or(1));
    pairs.iter().map(|pairs| f64::from(*pairs) / all).collect()
}

/// The constant C for which |z| >= C / sqrt(fraction) happens at any look with probability `alpha`.
///
/// By false position, with half of the figure at an end that stays (Illinois): some eight steps,
/// each of which integrates from look to look.
fn constant(fractions: &[f64], alpha: f64) -> f64 {
    let excess = |constant: f64| crossing(fractions, constant, 0.0) - alpha;
    let exact = (alpha * 1e-10).max(1e-15);
    // One look at the end takes the usual quantile, and any number of looks less than one more.
    let mut low = normal_upper(alpha / 2.0);
    let mut high = low + 1.0;
    let (mut at_low, mut at_high) = (excess(low), excess(high));
    if at_low <= exact {
        return low;
    }
    // Which end stayed last.
    let mut stayed = 0;
    for _ in 0..60 {
        let middle = (low * at_high - high * at_low) / (at_high - at_low);
        let at_middle = excess(middle);
        if at_middle.abs() <= exact || high - low <= 1e-13 {
            return middle;
        }
        if at_middle > 0.0 {
            (low, at_low) = (middle, at_middle);
            at_high /= if stayed > 0 { 2.0 } else { 1.0 };
            stayed = 1;
        } else {
            (high, at_high) = (middle, at_middle);
            at_low /= if stayed < 0 { 2.0 } else { 1.0 };
            stayed = -1;
        }
    }
    high
}

/// The probability that |z| >= `constant` / sqrt(fraction) at any look, where z at the end has the
/// expectation `drift`.
///
/// z * sqrt(fraction) is a Brownian motion at the time `fraction`, and its boundary is level. The
/// density of the paths that have not crossed it is carried from look to look.
fn crossing(fractions: &[f64], constant: f64, drift: f64) -> f64 {
    let step = 2.0 * constant / STEPS as f64;
    let places: Vec<f64> = (0..=STEPS).map(|at| at as f64 * step - constant).collect();
    let mut before = 0.0;
    let mut density: Vec<f64> = Vec::new();
    for fraction in fractions {
        let time = fraction - before;
        let moved = |by: f64| normal_density(by - drift * time, time);
        density = if density.is_empty() {
            places.iter().map(|to| moved(*to)).collect()
        } else {
            // By how many steps a path moves, from all the way down to all the way up.
            let moves: Vec<f64> =
                (0..=2 * STEPS).map(|by| moved((by as f64 - STEPS as f64) * step)).collect();
            let weighted = weighted(&density);
            let arriving = |to: usize| {
                let moves = &moves[to..=to + STEPS];
                // A plain loop: all the time is spent here, and a debug build inlines nothing.
                let (mut sum, mut from) = (0.0, 0);
                while from <= STEPS {
                    sum += weighted[from] * moves[STEPS - from];
                    from += 1;
                }
                sum * step / 3.0
            };
            (0..=STEPS).map(arriving).collect()
        };
        before = *fraction;
    }
    1.0 - weighted(&density).iter().sum::<f64>() * step / 3.0
}

fn normal_density(distance: f64, variance: f64) -> f64 {
    (-distance * distance / (2.0 * variance)).exp() / (std::f64::consts::TAU * variance).sqrt()
}

/// The values at all places with the weights of Simpson's rule, whose sum is to be multiplied by a
/// third of a step.
fn weighted(values: &[f64]) -> Vec<f64> {
    let weight = |at: usize| match at {
        0 | STEPS => 1.0,
        _ if at % 2 == 1 => 4.0,
        _ => 2.0,
    };
    values.iter().enumerate().map(|(at, value)| weight(at) * value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} instead of {expected}");
    }

    fn equal(looks: usize) -> Vec<f64> {
        (1..=looks).map(|look| look as f64 / looks as f64).collect()
    }

    #[test]
    fn the_constants_are_those_of_the_published_table() {
        // Jennison and Turnbull (2000), table 2.3, C_B(K, alpha).
        for (looks, alpha, published) in [
            (1, 0.05, 1.960),
            (2, 0.05, 1.977),
            (3, 0.05, 2.004),
            (4, 0.05, 2.024),
            (5, 0.05, 2.040),
            (2, 0.01, 2.580),
            (5, 0.1, 1.751),
        ] {
            assert_near(constant(&equal(looks), alpha), published, 0.0008);
        }
    }

    #[test]
    fn a_single_look_is_the_t_test_of_its_pairs() {
        let plan = LookPlan::single(7, 2, 0.05).unwrap();
        assert_eq!((plan.pairs(), plan.figures(), plan.fraction(0)), (&[6][..], 2, 1.0));
        assert_near(plan.critical_t(1, 0), 2.5706, 1e-3);
        assert_near(plan.constant(2), 2.2414, 1e-3);
        assert_eq!(LookPlan::single(5, 1, 0.05), Err(LookError::Pairs(5)));
    }

    #[test]
    fn one_look_crosses_as_the_normal_distribution_does() {
        assert_near(crossing(&[1.0], 1.959_964, 0.0), 0.05, 1e-6);
        // P(Z > 1.96 - 2.8016) = 0.8, and hardly anything on the other side.
        assert_near(crossing(&[1.0], 1.959_964, 2.801_585), 0.8, 1e-5);
    }

    #[test]
    fn many_looks_err_nearly_as_often_as_looking_all_the_time() {
        // A Brownian motion leaves the interval of +-c by the time 1 with the probability
        // 4 (1 - Phi(c)) - 4 (1 - Phi(3 c)) + ...: 0.091 for c = 2.
        let all = 4.0 * (normal_tail(2.0) - normal_tail(6.0));
        let found: Vec<f64> = [1, 5, 20].map(|looks| crossing(&equal(looks), 2.0, 0.0)).into();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        assert!(found[2] < all && found[2] > 0.6 * all, "{found:?} {all}");
    }

    #[test]
    fn looks_are_fifths_of_the_budget_in_whole_quads() {
        let pairs = |most| LookPlan::new(most, 1, 0.05).unwrap().pairs().to_vec();
        assert_eq!(pairs(40), [8, 16, 24, 32, 40]);
        assert_eq!(pairs(33), [8, 14, 20, 26, 32]);
        assert_eq!(pairs(10), [4, 6, 8, 10]);
        assert_eq!(pairs(6), [4, 6]);
        assert_eq!(pairs(7), [4, 6]);
    }

    #[test]
    fn boundaries_of_t_are_wider_and_fall_from_look_to_look() {
        let plan = LookPlan::new(40, 3, 0.05).unwrap();
        let critical: Vec<f64> = (0..5).map(|look| plan.critical_t(1, look)).collect();
        assert!(critical.windows(2).all(|pair| pair[0] > pair[1]), "{critical:?}");
        // At the end P(Z > 2.040) = 0.0207 and t with 39 degrees of freedom: between the table's
        // 2.023 for 0.025 and 2.426 for 0.01.
        assert!((2.05..2.16).contains(&critical[4]), "{critical:?}");
        // At the first look z is 2.040 * sqrt(5) = 4.562, far beyond for t with 7.
        assert!(critical[0] > 4.562 * 2.0, "{critical:?}");
        assert!(plan.critical_t(3, 4) > plan.critical_t(2, 4));
        assert!(plan.critical_t(4, 0).is_infinite() && plan.critical_t(0, 0).is_infinite());
    }

    #[test]
    fn looks_are_reached_with_their_pairs() {
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        let reached = [0, 7, 8, 9, 39, 40, 100].map(|pairs| plan.reached(pairs));
        assert_eq!(reached, [0, 0, 1, 1, 4, 5, 5]);
        assert_near(plan.fraction(1), 0.4, 1e-12);
    }

    #[test]
    fn what_cannot_be_planned_is_refused_with_a_remedy() {
        assert_eq!(LookPlan::new(5, 1, 0.05), Err(LookError::Pairs(5)));
        assert_eq!(LookPlan::new(u32::MAX, 1, 0.05), Err(LookError::Pairs(u32::MAX)));
        assert_eq!(LookPlan::new(6, 0, 0.05), Err(LookError::NoFigure));
        assert!(LookPlan::new(6, 1, f64::NAN).is_err());
        assert!(LookError::Pairs(5).to_string().contains("6 to 1000000"));
    }
}
