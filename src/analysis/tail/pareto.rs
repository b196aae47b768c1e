//! The generalised Pareto distribution of what exceeds a high threshold (Coles, An Introduction to
//! Statistical Modeling of Extreme Values, 2001, chapter 4): P(Y > y) = (1 + shape y / scale)^(-1 /
//! shape), exponential where the shape is 0, bounded where it is negative.

/// Nearer to 0 a shape is taken as 0.
const FLAT: f64 = 1e-9;

/// The shapes that are looked at. Below -1 the likelihood has no maximum.
pub(super) const SHAPES: (f64, f64) = (-0.999, 3.0);

/// Steps of a search by sections: each narrows it by 0.618.
const SECTIONS: usize = 40;

/// Shape and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pareto {
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl Pareto {
    /// P(Y > y).
    pub(super) fn tail(self, y: f64) -> f64 {
        if self.shape.abs() < FLAT {
            return (-y / self.scale).exp();
        }
        (1.0 + self.shape * y / self.scale).max(0.0).powf(-1.0 / self.shape)
    }

    /// The y with P(Y > y) = `tail`.
    pub(super) fn upper(self, tail: f64) -> f64 {
        self.scale * grown(self.shape, -tail.ln())
    }

    /// By probability-weighted moments (Hosking and Wallis, Technometrics 29, 1987, p. 339): quick
    /// and steady for shapes below 0.5; for goodness of fit. `sorted` ascends.
    pub(super) fn by_moments(sorted: &[f64]) -> Self {
        let count = sorted.len() as f64;
        let first = sorted.iter().sum::<f64>() / count;
        let weighted = |(place, y): (usize, &f64)| (count - 1.0 - place as f64) / (count - 1.0) * y;
        let second = sorted.iter().enumerate().map(weighted).sum::<f64>() / count;
        let rest = (first - 2.0 * second).max(first * 1e-9);
        Self { shape: 2.0 - first / rest, scale: (2.0 * first * second / rest).max(first * 1e-9) }
    }

    /// Of largest likelihood.
    pub(super) fn likeliest(excesses: &[f64]) -> Self {
        let of = |shape: f64| scale_of(excesses, shape).1;
        let shape = maximum(SHAPES.0, 1.5, of);
        Self { shape, scale: scale_of(excesses, shape).0 }
    }

    /// The logarithm of the likelihood of these excesses.
    pub(super) fn log_likelihood(self, excesses: &[f64]) -> f64 {
        let count = excesses.len() as f64;
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return f64::NEG_INFINITY;
        }
        if self.shape.abs() < FLAT {
            return -count * self.scale.ln() - excesses.iter().sum::<f64>() / self.scale;
        }
        let ratio = self.shape / self.scale;
        let mut sum = 0.0;
        for excess in excesses {
            let inner = 1.0 + ratio * excess;
            if inner <= 0.0 {
                return f64::NEG_INFINITY;
            }
            sum += inner.ln();
        }
        -count * self.scale.ln() - (1.0 + 1.0 / self.shape) * sum
    }
}

/// (exp(shape * log) - 1) / shape: how far a scale is multiplied where a tail falls by exp(-log).
pub(super) fn grown(shape: f64, log: f64) -> f64 {
    if shape.abs() < FLAT { log } else { (shape * log).exp_m1() / shape }
}

/// The likeliest scale of this shape, and the logarithm of its likelihood.
pub(super) fn scale_of(excesses: &[f64], shape: f64) -> (f64, f64) {
    let mean = excesses.iter().sum::<f64>() / excesses.len().max(1) as f64;
    let largest = excesses.iter().copied().fold(0.0, f64::max);
    // A bounded distribution must reach the largest excess.
    let least = if shape < 0.0 { (-shape * largest).max(mean * 0.02) } else { mean * 0.02 };
    let of = |log: f64| Pareto { shape, scale: log.exp() }.log_likelihood(excesses);
    let log = maximum((least * (1.0 + 1e-9)).ln(), (mean * 20.0).max(least * 2.0).ln(), of);
    (log.exp(), of(log))
}

/// Where a function with one hill between `low` and `high` is highest, by golden sections.
pub(super) fn maximum(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = (low, high);
    let mut left = high - GOLDEN * (high - low);
    let mut right = low + GOLDEN * (high - low);
    let (mut at_left, mut at_right) = (of(left), of(right));
    for _ in 0..SECTIONS {
        if at_left >= at_right {
            high = right;
            (right, at_right) = (left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = of(left);
        } else {
            low = left;
            (left, at_left) = (right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = of(right);
        }
        if high - low < 1e-7 * high.abs().max(1.0) {
            break;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::random::SplitMix64;

    fn drawn(of: Pareto, count: usize) -> Vec<f64> {
        let mut random = SplitMix64::new(3);
        let mut drawn: Vec<f64> = (0..count).map(|_| of.upper(random.uniform())).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    #[test]
    fn tails_and_their_inverse_agree_with_known_values() {
        let heavy = Pareto { shape: 0.5, scale: 2.0 };
        // (1 + 0.5 * 12 / 2)^-2
        assert!((heavy.tail(12.0) - 1.0 / 16.0).abs() < 1e-12);
        assert!((heavy.upper(1.0 / 16.0) - 12.0).abs() < 1e-9);
        let exponential = Pareto { shape: 0.0, scale: 3.0 };
        assert!((exponential.tail(3.0) - (-1.0_f64).exp()).abs() < 1e-12);
        assert_eq!(Pareto { shape: -0.5, scale: 1.0 }.tail(2.5), 0.0, "beyond its end");
    }

    #[test]
    fn both_fits_find_what_the_numbers_were_drawn_from() {
        for shape in [-0.4, 0.0, 0.3] {
            let truth = Pareto { shape, scale: 1_500.0 };
            let drawn = drawn(truth, 20_000);
            for fit in [Pareto::by_moments(&drawn), Pareto::likeliest(&drawn)] {
                assert!((fit.shape - shape).abs() < 0.04, "{truth:?} {fit:?}");
                assert!((fit.scale / 1_500.0 - 1.0).abs() < 0.05, "{truth:?} {fit:?}");
            }
        }
    }

    #[test]
    fn a_search_by_sections_ends_at_the_top() {
        let top = maximum(-3.0, 8.0, |x| -(x - 1.25) * (x - 1.25));
        assert!((top - 1.25).abs() < 1e-5, "{top}");
    }
}
