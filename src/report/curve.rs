//! Percentile curves for drawing.

use hdrhistogram::Histogram;

use crate::run::summary::percentiles_of;

/// The percentile curve in equal steps of "nines", twenty for each, and the maximum at its end.
#[must_use]
pub(super) fn curve(total: &Histogram<u64>, max: Option<i64>) -> Vec<(f64, i64)> {
    let Some(max) = max.filter(|_| !total.is_empty()) else {
        return Vec::new();
    };
    let mut curve = vec![(0.0, i64::try_from(total.min()).unwrap_or(max))];
    let nines = (total.len() as f64).log10();
    let steps = (1..).map(|step| f64::from(step) / 20.0).take_while(|own| *own <= nines);
    let ps: Vec<f64> = steps.map(|own| 100.0 * (1.0 - 10_f64.powf(-own))).collect();
    let values = percentiles_of(total, ps.iter().copied(), Some(max));
    curve.extend(ps.iter().map(|p| (p * 1e7).round() / 1e7).zip(values));
    curve.push((100.0, max));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run::hlog,
        testing::{cpu_ns, eventually},
    };

    #[test]
    fn a_curve_takes_one_walk_however_many_nines_it_has() {
        let of = |samples: u64| {
            let mut total = hlog::empty();
            total.record_n(3_599_000_000_000, samples).unwrap();
            (curve(&total, Some(5)).len(), cpu_ns(|| curve(&total, Some(5))))
        };
        assert_eq!((of(10).0, of(u64::MAX).0), (22, 387));
        let is_fast = || of(u64::MAX).1 < 5 * of(10).1;
        assert!(eventually(is_fast), "387 points take 5 times as long as 22");
    }
}
