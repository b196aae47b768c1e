//! Percentile curves for drawing.

use hdrhistogram::Histogram;

use crate::run::summary::percentile;

/// The percentile curve in equal steps of "nines", twenty for each, and the maximum at its end.
#[must_use]
pub(super) fn curve(total: &Histogram<u64>, max: Option<i64>) -> Vec<(f64, i64)> {
    let Some(max) = max.filter(|_| !total.is_empty()) else {
        return Vec::new();
    };
    let mut curve = vec![(0.0, i64::try_from(total.min()).unwrap_or(max))];
    let nines = (total.len() as f64).log10();
    for step in 1.. {
        let beyond = 10_f64.powf(-f64::from(step) / 20.0);
        if f64::from(step) / 20.0 > nines {
            break;
        }
        let p = 100.0 * (1.0 - beyond);
        curve.push(((p * 1e7).round() / 1e7, percentile(total, p, Some(max))));
    }
    curve.push((100.0, max));
    curve
}
