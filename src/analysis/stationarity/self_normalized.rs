//! Is there a change of level in a sequence whose values depend on each other?
//!
//! For a step: the cumulated sum of deviations, divided by fluctuations of the same sums on either
//! side of the supposed change (Shao and Zhang, Journal of the American Statistical Association
//! 105, 2010, p. 1228). That takes no estimate of how values depend on each other, which a change
//! would spoil, and no bandwidth. A straight trend hides from it, as it makes these fluctuations
//! large, so there is a second one of the same kind: the slope of a line, divided by the
//! fluctuations of the cumulated sums of what the line leaves. Both are applied to ranks, so that
//! no tail is too heavy.

/// What a statistic exceeds with which probability where nothing changes.
struct Critical {
    /// Probabilities, falling, and the values that are exceeded with them: of 150,000 simulated
    /// sequences of 300 independent normal numbers.
    quantiles: [(f64, f64); 6],
    /// Beyond the last of them the square root of the value grows by this with each factor of e by
    /// which the probability falls: about as along the table, and in the simulation to 0.0001.
    slope: f64,
}

/// The paper has 29.6, 40.1, 52.2, 68.6, 84.6 and 121.9.
const STEP: Critical = Critical {
    quantiles: [
        (0.1, 29.1),
        (0.05, 40.5),
        (0.025, 53.1),
        (0.01, 70.9),
        (0.005, 84.5),
        (0.001, 124.3),
    ],
    slope: 1.2,
};

const SLOPE: Critical = Critical {
    quantiles: [
        (0.1, 54.4),
        (0.05, 82.6),
        (0.025, 115.9),
        (0.01, 166.9),
        (0.005, 210.6),
        (0.001, 327.8),
    ],
    slope: 2.45,
};

/// Whether these values have a step, or a straight trend, that unchanged ones have with half of
/// this probability each; as a multiple of what it takes, whichever is larger.
pub(super) fn evidence(values: &[f64], level: f64) -> f64 {
    let half = level / 2.0;
    (step(values) / STEP.value(half)).max(slope(values) / SLOPE.value(half))
}

/// Ranks from 1; equal values share theirs.
pub(super) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| a.1.total_cmp(&b.1).is_eq()) {
        let shared = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        for (place, _) in equal {
            if let Some(rank) = ranks.get_mut(*place) {
                *rank = shared;
            }
        }
        before += equal.len();
    }
    ranks
}

/// The largest self-normalised deviation over all places of a step; 0 where nothing varies.
fn step(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviations: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let forward = Fluctuations::of(deviations.iter());
    let backward = Fluctuations::of(deviations.iter().rev());
    let at = |left: usize| {
        let right = values.len() - left;
        let sum = forward.sums.get(left - 1).copied().unwrap_or(0.0);
        let within = forward.up_to(left) + backward.up_to(right);
        if within > 0.0 { sum * sum * count / within } else { 0.0 }
    };
    (1..values.len()).map(at).fold(0.0, f64::max)
}

/// Cumulated sums from one end, and what it takes to have the squares of their deviations from a
/// straight line up to any place.
struct Fluctuations {
    sums: Vec<f64>,
    squares: Vec<f64>,
    weighted: Vec<f64>,
}

impl Fluctuations {
    fn of<'a>(deviations: impl Iterator<Item = &'a f64>) -> Self {
        let mut own = Self { sums: Vec::new(), squares: Vec::new(), weighted: Vec::new() };
        let (mut sum, mut square, mut weighted) = (0.0, 0.0, 0.0);
        for (place, deviation) in deviations.enumerate() {
            sum += deviation;
            square += sum * sum;
            weighted += (place as f64 + 1.0) * sum;
            own.sums.push(sum);
            own.squares.push(square);
            own.weighted.push(weighted);
        }
        own
    }

    /// The sum over t = 1..k of (S(t) - t / k S(k))^2.
    fn up_to(&self, k: usize) -> f64 {
        let at = |of: &[f64]| k.checked_sub(1).and_then(|k| of.get(k)).copied().unwrap_or(0.0);
        let length = k as f64;
        let slope = at(&self.sums) / length;
        let steps = length * (length + 1.0) * (2.0 * length + 1.0) / 6.0;
        (at(&self.squares) - 2.0 * slope * at(&self.weighted) + slope * slope * steps).max(0.0)
    }
}

/// The square of the slope of a straight line, divided by the fluctuations of the cumulated sums of
/// what it leaves; 0 where nothing varies, infinite where it leaves nothing.
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let time = |place: usize| place as f64 - (count - 1.0) / 2.0;
    let products = values.iter().enumerate().map(|(at, value)| time(at) * (value - mean));
    let spread = count * (count * count - 1.0) / 12.0;
    let slope = products.sum::<f64>() / spread;
    let (mut sum, mut squares) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        sum += value - mean - slope * time(at);
        squares += sum * sum;
    }
    if slope == 0.0 { 0.0 } else { slope * slope * spread * count * count / squares }
}

impl Critical {
    /// The value that is exceeded with this probability.
    fn value(&self, level: f64) -> f64 {
        let [(first_level, first), ..] = self.quantiles;
        let (mut last_level, mut last) = (first_level, first.sqrt());
        for (next_level, next) in self.quantiles {
            if level >= next_level && next_level < last_level {
                let share = (last_level / level).ln() / (last_level / next_level).ln();
                return (last + share.max(0.0) * (next.sqrt() - last)).powi(2);
            }
            (last_level, last) = (next_level, next.sqrt());
        }
        let rarer = (last_level / level.max(f64::MIN_POSITIVE)).ln().max(0.0);
        (last + self.slope * rarer).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 7.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn the_statistic_is_the_one_computed_term_by_term() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let mean = values.iter().sum::<f64>() / 8.0;
        let part = |values: &[f64]| {
            let own = values.iter().map(|value| value - mean).sum::<f64>() / values.len() as f64;
            let mut sum = 0.0;
            let mut squares = 0.0;
            for value in values {
                sum += value - mean - own;
                squares += sum * sum;
            }
            squares
        };
        let mut largest = 0.0_f64;
        for left in 1..8 {
            let (before, mut after) = (&values[..left], values[left..].to_vec());
            after.reverse();
            let sum: f64 = before.iter().map(|value| value - mean).sum();
            let within = part(before) + part(&after);
            largest = largest.max(sum * sum * 8.0 / within);
        }
        assert!((step(&values) - largest).abs() < 1e-9 * largest);
        assert_eq!(step(&[2.0; 9]), 0.0);
    }

    #[test]
    fn a_slope_is_measured_by_what_it_leaves() {
        assert_eq!(slope(&[2.0; 9]), 0.0);
        // 0, 1, 0, 1, ...: 40 values leave nearly all; a slope of the same size leaves half of it.
        let flat: Vec<f64> = (0..40).map(|n| f64::from(n % 2)).collect();
        let rising: Vec<f64> = (0..40).map(|n| f64::from(n % 2) + 0.05 * f64::from(n)).collect();
        assert!(slope(&flat) < SLOPE.value(0.05) && slope(&rising) > SLOPE.value(1e-6));
    }

    #[test]
    fn rarer_false_alarms_take_more() {
        assert!((STEP.value(0.05) - 40.5).abs() < 1e-9);
        assert!((STEP.value(0.001) - 124.3).abs() < 1e-9);
        assert!((53.1..70.9).contains(&STEP.value(0.02)));
        for of in [STEP, SLOPE] {
            assert!(of.value(0.001) < of.value(0.0001) && of.value(1e-6) < of.value(1e-7));
        }
    }
}
