//! The shift function: by which factor B differs from A, percentile by percentile, each with a 95%
//! interval (Doksum, Annals of Statistics 2, 1974, p. 267). It shows where in the
//! distribution a difference is; it is not corrected for the number of percentiles, and judges
//! nothing.
//!
//! From one run of each side the interval is put together of the intervals of both percentiles, by
//! recovering their variances (MOVER: Zou and Donner, Statistics in Medicine 27, 2008, p. 1693). It
//! is about these two runs alone. From several runs it is that of Student's t.

use super::replicates::{ReplicatedFigure, judge};

/// A value with its interval, of which an end may not be known. Latencies, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// B / A with the ends of its interval, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// B / A.
    pub ratio: f64,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A latency of 0 has no logarithm; the clock does not tell it from 1 ns.
fn log(ns: f64) -> f64 {
    ns.max(1.0).ln()
}

/// The shift of one percentile of one run against that of one other, from both intervals.
#[must_use]
pub fn of_runs(a: Known, b: Known) -> Shift {
    let mean = log(b.value) - log(a.value);
    let far = |value: f64, end: Option<f64>| end.map(|end| log(end) - log(value));
    let reach = |one: Option<f64>, other: Option<f64>| Some((one?.powi(2) + other?.powi(2)).sqrt());
    let down = reach(far(b.value, b.low), far(a.value, a.high));
    let up = reach(far(b.value, b.high), far(a.value, a.low));
    Shift {
        ratio: mean.exp(),
        low: down.map(|down| (mean - down).exp()),
        high: up.map(|up| (mean + up).exp()),
    }
}

/// The same of several runs a side: `figure` holds a logarithm a run. Without an interval where
/// there are too few runs.
#[must_use]
pub fn of_replicates(figure: &ReplicatedFigure) -> Shift {
    let found = judge(std::slice::from_ref(figure)).into_iter().next().flatten();
    let mean = mean_of(&figure.b) - mean_of(&figure.a);
    Shift {
        ratio: mean.exp(),
        low: found.map(|found| found.low.exp()),
        high: found.map(|found| found.high.exp()),
    }
}

fn mean_of(logs: &[f64]) -> f64 {
    logs.iter().sum::<f64>() / logs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::random::SplitMix64;

    fn known(value: f64, low: Option<f64>, high: Option<f64>) -> Known {
        Known { value, low, high }
    }

    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn an_end_is_known_only_where_the_ends_that_it_is_made_of_are() {
        let a = known(1_000.0, Some(900.0), None);
        let b = known(2_000.0, Some(1_800.0), Some(2_200.0));
        let found = of_runs(a, b);
        assert!((found.ratio - 2.0).abs() < 1e-12);
        // B / A is low where A is high, which nobody knows.
        assert_eq!(found.low, None);
        assert!(found.high.is_some_and(|high| 2.2 < high && high < 2.5), "{found:?}");
        let back = of_runs(b, a);
        assert_eq!(back.high, None);
        assert!((back.low.unwrap() - 1.0 / found.high.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn intervals_of_two_runs_hold_the_true_shift_as_often_as_they_say() {
        let (mut random, mut held) = (SplitMix64::new(15), 0);
        let (truth, repeats) = (1.2_f64, 2_000);
        for _ in 0..repeats {
            // Percentiles that were estimated with other errors, and each with its own interval.
            let mut of = |value: f64, error: f64| {
                let log = value.ln() + error * normal(&mut random);
                let end = |far: f64| Some((log + far * 1.96 * error).exp());
                known(log.exp(), end(-1.0), end(1.0))
            };
            let (a, b) = (of(10_000.0, 0.03), of(10_000.0 * truth, 0.08));
            let found = of_runs(a, b);
            let is_held = found.low.unwrap() < truth && truth < found.high.unwrap();
            held += usize::from(is_held);
        }
        let share = f64::from(u32::try_from(held).unwrap()) / f64::from(repeats);
        assert!((0.935..0.965).contains(&share), "{share}");
    }

    #[test]
    fn few_runs_have_a_shift_and_no_interval() {
        let figure = |of: &[f64]| ReplicatedFigure {
            a: of.iter().map(|_| 0.0).collect(),
            b: of.to_vec(),
            least_sd: 0.01,
            margin: 0.05,
        };
        let two = of_replicates(&figure(&[0.5, 0.7]));
        assert!((two.ratio.ln() - 0.6).abs() < 1e-12 && two.low.is_none());
        let three = of_replicates(&figure(&[0.5, 0.6, 0.7]));
        assert!(three.low.unwrap() < three.ratio && three.ratio < three.high.unwrap());
    }
}
