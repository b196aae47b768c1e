//! Figures: results of a probe that are not latencies, as bandwidths, times of system calls and
//! shares of CPU time. Each is measured again and again; every value is kept, and the mean has an
//! interval.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// What a figure is called and counted in, before anything is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureHead {
    /// `pipe/64KiB`, `fork`, `cpu0/lost`.
    pub name: String,
    /// What it is counted in.
    pub unit: FigureUnit,
}

/// What a figure is counted in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum FigureUnit {
    /// 1,000,000 bytes a second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Hundredths of the whole.
    #[serde(rename = "percent")]
    Percent,
    /// Loops of work in a millisecond.
    #[serde(rename = "loops/ms")]
    LoopsPerMillisecond,
    /// How often.
    #[serde(rename = "count")]
    Count,
    /// A unit that this version does not know.
    #[serde(untagged)]
    Other(String),
}

impl FigureUnit {
    /// As in `run.json` and in tables.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::Microseconds => "us",
            Self::Percent => "percent",
            Self::LoopsPerMillisecond => "loops/ms",
            Self::Count => "count",
            Self::Other(name) => name,
        }
    }
}

/// One figure of a run. What needs a value is absent without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRecord {
    /// `pipe/64KiB`, `fork`, `cpu0/lost`.
    pub name: String,
    /// `MB/s`, `us`, `percent`, `loops/ms` or `count`; a later tardy may have others.
    pub unit: FigureUnit,
    /// Mean of the values.
    pub mean: Option<f64>,
    /// Lower end of the 95% interval of the mean, by Student's t over the values, and 0 at least
    /// if none of them is negative; absent with fewer than two.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Each repeat, in the order of time.
    pub values: Vec<f64>,
}

impl FigureRecord {
    /// What it was measured as.
    #[must_use]
    pub fn head(&self) -> FigureHead {
        FigureHead { name: self.name.clone(), unit: self.unit.clone() }
    }

    /// The least value, if that cannot be: no time, rate, share or count is negative. What is the
    /// difference of two measured times may be a little below 0, but not by as much as it usually
    /// is above. A mean below 0 is always such a case.
    #[must_use]
    pub fn impossible(&self) -> Option<ImpossibleFigure> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let (least, median) = (*values.first()?, *values.get(values.len() / 2)?);
        let (name, unit) = (self.name.clone(), self.unit.as_str().to_owned());
        (least < 0.0 && least <= -median).then_some(ImpossibleFigure { name, unit, least })
    }
}

/// A figure with a value that cannot be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImpossibleFigure {
    /// The figure.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// That value.
    pub least: f64,
}

impl ImpossibleFigure {
    /// `switch/2 (-198 us)`.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} ({:.3} {})", self.name, self.least, self.unit)
    }
}

/// A figure without a value, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureGap {
    /// The figure.
    pub name: String,
    /// What was in the way; absent if the run ended before its turn.
    pub why: Option<String>,
}

impl FigureGap {
    /// `exec (no /bin/true)`.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.why {
            Some(why) => format!("{} ({why})", self.name),
            None => format!("{} (the run ended before its turn)", self.name),
        }
    }
}

/// `figures.csv`: one repeat of one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// End of the repeat, seconds since the start of the run.
    pub t_s: f64,
    /// The figure.
    pub name: String,
    /// In its unit.
    pub value: f64,
}

/// Everything that `run.json` says of a figure, from its values; those that are not numbers are
/// left out.
#[must_use]
pub fn summarize_figure(head: &FigureHead, values: &[f64]) -> FigureRecord {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let mean = (!values.is_empty()).then(|| mean(&values));
    let half = mean.and_then(|mean| half_width(&values, mean));
    // Of few values the interval is wide: if none is negative, neither is what they estimate.
    let least = if values.iter().all(|value| *value >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    FigureRecord {
        name: head.name.clone(),
        unit: head.unit.clone(),
        mean,
        low: mean.zip(half).map(|(mean, half)| (mean - half).max(least)),
        high: mean.zip(half).map(|(mean, half)| mean + half),
        values,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half of the 95% interval of the mean.
fn half_width(values: &[f64], mean: f64) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some(t * (squares / freedom / values.len() as f64).sqrt()).filter(|half| half.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> FigureRecord {
        let unit = FigureUnit::MegabytesPerSecond;
        summarize_figure(&FigureHead { name: "pipe/64KiB".into(), unit }, values)
    }

    #[test]
    fn the_interval_of_the_mean_is_that_of_students_t() {
        // SD 1.5811, divided by the root of 5, times 2.7764 of the tables.
        let figure = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(figure.mean, Some(3.0));
        let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
        assert!((low - 1.0368).abs() < 1e-3 && (high - 4.9632).abs() < 1e-3, "{low} {high}");
        let many: Vec<f64> = (0..200_000).map(|n| f64::from(n % 2)).collect();
        let figure = of(&many);
        // That of the normal distribution: 1.95996 * 0.5 / sqrt(200000).
        assert!((figure.high.unwrap() - 0.5 - 0.002_191_3).abs() < 1e-6, "{:?}", figure.high);
    }

    #[test]
    fn what_was_measured_once_has_a_mean_and_no_interval_and_nothing_has_neither() {
        let figure = of(&[7.0]);
        assert_eq!((figure.mean, figure.low, figure.high), (Some(7.0), None, None));
        let figure = of(&[f64::NAN, f64::INFINITY]);
        assert_eq!((figure.mean, figure.low, figure.values), (None, None, vec![]));
        assert_eq!(of(&[2.0, 2.0]).low, Some(2.0));
    }

    #[test]
    fn an_interval_of_times_does_not_begin_below_0_and_one_of_differences_may() {
        // Half of it is 12.7062 * 0.5: from 1 to 2 it would begin at -4.85.
        let figure = of(&[1.0, 2.0]);
        assert_eq!((figure.mean, figure.low), (Some(1.5), Some(0.0)));
        assert!((figure.high.unwrap() - 7.8531).abs() < 1e-3, "{figure:?}");
        let figure = of(&[-1.0, 2.0]);
        assert!((figure.low.unwrap() + 18.559).abs() < 1e-2, "{figure:?}");
    }

    #[test]
    fn a_value_far_below_0_cannot_be_and_a_difference_of_almost_nothing_may_be_just_below_it() {
        let least = |values: &[f64]| of(values).impossible().map(|found| found.least);
        assert_eq!(least(&[1.5, 2.0, 1.8]), None);
        assert_eq!(least(&[-0.2, 1.5, 0.9]), None);
        assert_eq!(least(&[12.0, -198.0, 11.0, 12.5]), Some(-198.0));
        // Whatever the others are, the mean is not negative.
        assert_eq!((least(&[-1.0]), least(&[-1.2, 1.0])), (Some(-1.0), Some(-1.2)));
        assert_eq!((least(&[0.0, 0.0]), least(&[])), (None, None));
        let text = of(&[-198.0625]).impossible().map(|found| found.text());
        assert_eq!(text.as_deref(), Some("pipe/64KiB (-198.062 MB/s)"));
    }

    #[test]
    fn units_are_written_as_they_are_read_also_those_of_later_versions() {
        for unit in ["MB/s", "us", "percent", "loops/ms", "count", "frames"] {
            let read: FigureUnit = serde_json::from_value(unit.into()).unwrap();
            assert_eq!((read.as_str(), serde_json::to_value(&read).unwrap()), (unit, unit.into()));
            assert_eq!(matches!(read, FigureUnit::Other(_)), unit == "frames");
        }
    }
}
