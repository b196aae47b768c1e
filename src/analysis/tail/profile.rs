//! Intervals by profile likelihood (Coles 2001, section 4.3.3): they lean to the side on which less
//! is known, as intervals from a standard error do not.

use super::pareto::{Pareto, SHAPES, grown, maximum, scale_of};

/// A value stays in the interval while the logarithm of its likelihood is not lower than the
/// largest by more: half of the 97.5% quantile of chi-squared with one degree of freedom. That of
/// 95% is for many excesses and a threshold that nobody chose by them; there are about 80, and it
/// was.
const DROP: f64 = 5.023_886 / 2.0;

/// Halvings of an interval in which an end is sought.
const HALVINGS: usize = 40;

/// An estimate with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The likeliest value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite where the likelihood hardly falls.
    pub high: f64,
}

/// A fit to excesses over a threshold.
#[derive(Debug, Clone)]
pub(super) struct Fit<'a> {
    excesses: &'a [f64],
    pub(super) likeliest: Pareto,
    highest: f64,
}

impl<'a> Fit<'a> {
    pub(super) fn of(excesses: &'a [f64]) -> Self {
        let likeliest = Pareto::likeliest(excesses);
        Self { excesses, likeliest, highest: likeliest.log_likelihood(excesses) }
    }

    /// The shape.
    pub(super) fn shape(&self) -> Interval {
        let of = |shape: f64| scale_of(self.excesses, shape).1 - self.highest + DROP;
        let value = self.likeliest.shape;
        Interval { value, low: end(value, SHAPES.0, &of), high: end(value, SHAPES.1, &of) }
    }

    /// The excess that is exceeded once among `clusters` clusters, more than 1.
    pub(super) fn level(&self, clusters: f64) -> Interval {
        let log = clusters.ln();
        let value = self.likeliest.scale * grown(self.likeliest.shape, log);
        let of = |level: f64| self.likelihood_of_level(level, log) - self.highest + DROP;
        let mut beyond = value * 2.0;
        let mut doublings = 0;
        while of(beyond) > 0.0 {
            beyond *= 2.0;
            doublings += 1;
            if doublings == HALVINGS {
                return Interval { value, low: end(value, 0.0, &of), high: f64::INFINITY };
            }
        }
        Interval { value, low: end(value, 0.0, &of), high: end(value, beyond, &of) }
    }

    /// The largest likelihood with this level: the scale follows from it and the shape.
    fn likelihood_of_level(&self, level: f64, log: f64) -> f64 {
        if level <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let of = |shape: f64| {
            Pareto { shape, scale: level / grown(shape, log) }.log_likelihood(self.excesses)
        };
        // A level below the largest excess takes shapes that reach it.
        let shape = maximum(self.least_shape(level, log), 1.5, of);
        of(shape)
    }

    /// The smallest shape at which the distribution with this level reaches the largest excess.
    fn least_shape(&self, level: f64, log: f64) -> f64 {
        let largest = self.excesses.iter().copied().fold(0.0, f64::max);
        // The end point is level / (1 - exp(shape * log)), which grows with the shape.
        let reaches = |shape: f64| level > largest * -(shape * log).exp_m1();
        let (mut low, mut high) = (SHAPES.0, 0.0);
        if reaches(low) {
            return low;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if reaches(middle) { high = middle } else { low = middle }
        }
        high
    }
}

/// Where `of`, positive at `within`, falls to 0 on the way to `limit`; `limit` if it does not.
fn end(within: f64, limit: f64, of: &dyn Fn(f64) -> f64) -> f64 {
    if of(limit) > 0.0 {
        return limit;
    }
    let (mut inner, mut outer) = (within, limit);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inner, outer);
        if of(middle) > 0.0 {
            inner = middle;
        } else {
            outer = middle;
        }
        if (outer - inner).abs() < 1e-4 * inner.abs().max(1e-3) {
            break;
        }
    }
    f64::midpoint(inner, outer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::random::SplitMix64;

    #[test]
    fn an_exponential_of_known_shape_has_the_interval_of_its_likelihood() {
        let mut random = SplitMix64::new(2);
        let truth = Pareto { shape: 0.0, scale: 1_000.0 };
        let drawn: Vec<f64> = (0..400).map(|_| truth.upper(random.uniform())).collect();
        let fit = Fit::of(&drawn);
        let shape = fit.shape();
        assert!(shape.low < shape.value && shape.value < shape.high, "{shape:?}");
        // The standard error is (1 + shape) / sqrt(n): 0.05, and 1.96 of it either way.
        assert!((0.14..0.27).contains(&(shape.high - shape.low)), "{shape:?}");
        for end in [shape.low, shape.high] {
            let drop = fit.highest - scale_of(&drawn, end).1;
            assert!((drop - DROP).abs() < 0.02, "{end}: {drop}");
        }
    }

    #[test]
    fn intervals_of_levels_lean_upwards_and_widen_with_the_distance() {
        let mut random = SplitMix64::new(4);
        let truth = Pareto { shape: 0.1, scale: 1_000.0 };
        let drawn: Vec<f64> = (0..200).map(|_| truth.upper(random.uniform())).collect();
        let fit = Fit::of(&drawn);
        let (near, far) = (fit.level(1_000.0), fit.level(1e6));
        for level in [near, far] {
            assert!(level.low < level.value && level.value < level.high, "{level:?}");
            assert!(level.high - level.value > level.value - level.low, "{level:?}");
        }
        assert!(far.high / far.low > near.high / near.low);
    }

    #[test]
    fn bounded_excesses_have_levels_too() {
        let mut random = SplitMix64::new(6);
        let drawn: Vec<f64> = (0..300).map(|_| 500.0 * random.uniform()).collect();
        let fit = Fit::of(&drawn);
        assert!(fit.shape().high < -0.5, "{:?}", fit.shape());
        let level = fit.level(1e5);
        assert!((490.0..520.0).contains(&level.value), "{level:?}");
        assert!(level.low <= level.value && level.high >= level.value, "{level:?}");
    }
}
