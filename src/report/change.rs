//! By how much B is more or less than A, in words: a percentage, or a factor where it is large.

use crate::units;

/// How a row says by how much B is more or less than A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// `+19.6%`
    Percent,
    /// `x3.1`: where something in the row is at least doubled or halved.
    Factor,
}

impl Change {
    /// What fits a ratio and its interval.
    pub(super) fn of(ratio: f64, low: Option<f64>, high: Option<f64>) -> Self {
        let all = [Some(ratio), low, high];
        let is_small = |ratio: &f64| (0.5..=2.0).contains(ratio);
        if all.iter().flatten().all(is_small) { Self::Percent } else { Self::Factor }
    }

    /// A ratio in these words.
    pub(super) fn text(self, ratio: f64) -> String {
        if self == Self::Factor {
            let digits = match ratio {
                100_000.0.. => return "x>100,000".into(),
                10.0.. => 0,
                1.0.. => 1,
                0.1.. => 2,
                0.01.. => 3,
                0.0001.. => 4,
                _ => return "x<0.0001".into(),
            };
            return format!("x{ratio:.digits$}");
        }
        units::change(ratio)
    }
}

/// A change with its interval, as far as that is known: `+19.6% (+18.1% to +21.2%)`.
pub(super) fn with_interval(ratio: f64, low: Option<f64>, high: Option<f64>) -> String {
    let change = Change::of(ratio, low, high);
    let of = |ratio| change.text(ratio);
    match (low, high) {
        (Some(low), Some(high)) => format!("{} ({} to {})", of(ratio), of(low), of(high)),
        (Some(low), None) => format!("{} (at least {})", of(ratio), of(low)),
        (None, Some(high)) => format!("{} (at most {})", of(ratio), of(high)),
        (None, None) => of(ratio),
    }
}

/// Three digits: `1.12`, `0.987`, `12.3`; of what is below 0.01 two: `0.00013`.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        100.0.. => format!("{ratio:.0}"),
        10.0.. => format!("{ratio:.1}"),
        0.995.. => format!("{ratio:.2}"),
        0.01.. => format!("{ratio:.3}"),
        1e-6.. => {
            let digits = 1 + (-ratio.log10().floor()).max(0.0) as usize;
            format!("{ratio:.digits$}")
        }
        _ => "<0.000001".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_ratio_keeps_two_digits() {
        let said = [0.00013, 0.0048, 0.021, 0.987, 1.12, 12.34].map(ratio);
        assert_eq!(said, ["0.00013", "0.0048", "0.021", "0.987", "1.12", "12.3"]);
        assert_eq!(ratio(1e-9), "<0.000001");
    }
}
