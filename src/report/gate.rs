//! Gates: limits that the figures of a run must keep, as they are written, and what they ask for.
//! What a run says of them is decided in [`super::gate_decision`].

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::{
    run::{
        series_name::is_called,
        summary::{ENOUGH_BEYOND, PERCENTILES},
    },
    units::{Nanos, UnitError, count, many},
};

/// What a gate looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GatedFigure {
    Percentile(&'static str, f64),
    Max,
    Missed,
}

/// A limit for one figure, of every series or of one: `p99.9<=80us`, `cpu1:max<1ms`, `missed=0`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub(super) text: String,
    pub(super) series: Option<String>,
    pub(super) figure: GatedFigure,
    /// Whether the limit itself is too much.
    pub(super) is_strict: bool,
    /// ns, or a count of periods.
    pub(super) limit: u64,
}

/// The reason why an expression is not a gate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// No comparison in it.
    #[error(
        "\"{0}\" is not a gate; use a metric, <= or <, and a limit, e.g. p99.9<=80us or missed=0"
    )]
    Form(String),
    /// A figure that there is not.
    #[error(
        "\"{gate}\": unknown metric \"{figure}\"; there are p50, p90, p99, p99.9, p99.99, \
         p99.999, max and missed"
    )]
    Figure {
        /// The gate.
        gate: String,
        /// What stands for a figure.
        figure: String,
    },
    /// An equality of what is never exact.
    #[error("\"{0}\": a latency is never exactly that; write <= or <")]
    Equal(String),
    /// A limit that is not a time.
    #[error("\"{gate}\": {source}")]
    Time {
        /// The gate.
        gate: String,
        /// What is wrong.
        source: UnitError,
    },
    /// A limit that is not a count.
    #[error("\"{0}\": missed periods are counted; write missed=0 or missed<=5")]
    Count(String),
    /// A gate of two sides.
    #[error(
        "\"{0}\" compares runs; here a limit is meant, as p99.9<=80us. Runs are compared by `tardy \
         plan`, `tardy suite`, `tardy run`, `show`, `export` and `compare`"
    )]
    Worse(String),
    /// A limit that names another run.
    #[error("\"{0}\": a limit names no other run; write worse<5%@p99 vs RUN, or p99<=80us alone")]
    Versus(String),
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let text = text.trim();
        let form = || GateError::Form(text.to_owned());
        let at = text.find(['<', '=']).ok_or_else(form)?;
        let (left, right) = text.split_at(at);
        let operators = [("<=", false, false), ("<", true, false), ("==", false, true)];
        let operators = operators.into_iter().chain([("=", false, true)]);
        let found = operators.into_iter().find_map(|(operator, is_strict, is_equal)| {
            Some((right.strip_prefix(operator)?.trim(), is_strict, is_equal))
        });
        let (limit, is_strict, is_equal) = found.ok_or_else(form)?;
        let (series, figure) = match left.rsplit_once(':') {
            Some((series, figure)) => (Some(series.trim().to_owned()), figure.trim()),
            None => (None, left.trim()),
        };
        if figure.is_empty() || limit.is_empty() || series.as_deref() == Some("") {
            return Err(form());
        }
        let figure = figure_of(text, figure)?;
        if limit.contains(" vs ") {
            return Err(GateError::Versus(text.to_owned()));
        }
        let limit = match figure {
            GatedFigure::Missed if is_equal && limit != "0" => {
                return Err(GateError::Count(text.to_owned()));
            }
            GatedFigure::Missed => limit.parse().map_err(|_| GateError::Count(text.to_owned()))?,
            _ if is_equal => return Err(GateError::Equal(text.to_owned())),
            _ => {
                let time = limit.parse::<Nanos>();
                let time = time.map_err(|source| GateError::Time { gate: text.into(), source })?;
                u64::try_from(time.0).unwrap_or(0)
            }
        };
        Ok(Self { text: text.to_owned(), series, figure, is_strict, limit })
    }
}

fn figure_of(gate: &str, name: &str) -> Result<GatedFigure, GateError> {
    let percentile = || {
        let own = name.strip_prefix('p')?;
        let (name, percent) = PERCENTILES.iter().find(|(known, _)| *known == own)?;
        Some(GatedFigure::Percentile(name, *percent))
    };
    match name {
        "max" => Ok(GatedFigure::Max),
        "missed" => Ok(GatedFigure::Missed),
        "worse" => Err(GateError::Worse(gate.to_owned())),
        _ => percentile()
            .ok_or_else(|| GateError::Figure { gate: gate.to_owned(), figure: name.to_owned() }),
    }
}

impl Gate {
    /// Why a run of these series cannot have it; nothing where it can.
    #[must_use]
    pub fn refusal(&self, series: &[String]) -> Option<String> {
        if series.is_empty() {
            return Some(format!(
                "\"{self}\": this run has no latencies; name one of its figures with a limit in \
                 its unit, as pipe/64KiB>=900MB/s, or leave the gate out"
            ));
        }
        let own =
            self.series.as_ref().filter(|own| !series.iter().any(|name| is_called(own, name)))?;
        Some(format!("\"{self}\": unknown series {own}; there are {}", series.join(", ")))
    }

    /// The name of the percentile that it limits, as in `run.json`.
    pub(super) const fn percentile(&self) -> Option<&'static str> {
        match self.figure {
            GatedFigure::Percentile(name, _) => Some(name),
            GatedFigure::Max | GatedFigure::Missed => None,
        }
    }

    /// The percentile, 0 to 100; absent for the maximum and for missed periods.
    pub(super) const fn percent(&self) -> Option<f64> {
        match self.figure {
            GatedFigure::Percentile(_, percent) => Some(percent),
            GatedFigure::Max | GatedFigure::Missed => None,
        }
    }

    /// Whether it limits a latency.
    pub(super) const fn is_latency(&self) -> bool {
        !matches!(self.figure, GatedFigure::Missed)
    }

    /// The largest latency that keeps it, ns.
    pub(super) const fn limit_ns(&self) -> u64 {
        self.limit.saturating_sub(self.is_strict as u64)
    }

    /// Whether it is for this series.
    pub(super) fn is_of(&self, series: &str) -> bool {
        self.series.as_ref().is_none_or(|own| is_called(own, series))
    }

    /// The number of samples a series that it takes at least to pass.
    #[must_use]
    pub fn fewest_samples(&self) -> u64 {
        match self.figure {
            GatedFigure::Percentile(_, percent) => {
                (ENOUGH_BEYOND as f64 / (1.0 - percent / 100.0) * (1.0 - 1e-9)).ceil() as u64
            }
            GatedFigure::Max | GatedFigure::Missed => 1,
        }
    }

    /// The reason why it can never pass with `planned` samples a series; `None` if it can.
    #[must_use]
    pub fn doubt(&self, planned: u64) -> Option<String> {
        let fewest = self.fewest_samples();
        (planned < fewest).then(|| {
            format!(
                "gate {self} can fail, but never pass: {} a series are planned, and it takes {} at \
                 least",
                many(planned, "sample"),
                count(fewest)
            )
        })
    }

    /// Whether this value keeps the limit.
    pub(super) const fn is_kept(&self, value: u64) -> bool {
        if self.is_strict { value < self.limit } else { value <= self.limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap()
    }

    #[test]
    fn a_gate_is_a_figure_a_comparison_and_a_limit() {
        let of = |text| {
            let Gate { series, is_strict, limit, .. } = gate(text);
            (series, is_strict, limit)
        };
        assert_eq!(of("p99.9<=80us"), (None, false, 80_000));
        assert_eq!(of(" max < 1.5ms "), (None, true, 1_500_000));
        assert_eq!(of("cpu1#2:p50<=7us"), (Some("cpu1#2".into()), false, 7_000));
        assert_eq!((of("missed=0"), of("missed<=5")), ((None, false, 0), (None, false, 5)));
        assert_eq!(gate("p99<=1ms").to_string(), "p99<=1ms");
    }

    #[test]
    fn what_is_no_gate_is_refused_by_what_is_wrong_with_it() {
        for (text, says) in [
            ("p99", "use a metric, <= or <, and a limit"),
            ("<=80us", "use a metric"),
            ("p99<=", "use a metric"),
            (":p99<=1us", "use a metric"),
            ("p95<=80us", "unknown metric \"p95\"; there are p50, p90, p99"),
            ("p99<=80", "80 has no unit; write 80us, 80ms or 80s"),
            ("p99<=80parsec", "\"parsec\" is not a unit of time"),
            ("max=3us", "a latency is never exactly that"),
            ("missed=3", "missed periods are counted"),
            ("missed<=1%", "missed periods are counted"),
            ("worse<5%@p99", "here a limit is meant"),
            ("p99<80us vs a", "a limit names no other run; write worse<5%@p99 vs RUN"),
        ] {
            let error = text.parse::<Gate>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_gate_that_the_planned_samples_can_never_pass_is_known_before() {
        assert_eq!(gate("p99.9<=80us").fewest_samples(), 10_000);
        assert_eq!(gate("p50<=80us").fewest_samples(), 20);
        assert_eq!(gate("p99.999<=80us").fewest_samples(), 1_000_000);
        assert_eq!(gate("p99.9<=80us").doubt(10_000), None);
        let doubt = gate("p99.9<=80us").doubt(5_000).unwrap();
        assert!(
            doubt.contains("5,000 samples a series are planned, and it takes 10,000"),
            "{doubt}"
        );
        assert_eq!(gate("max<1ms").doubt(1), None);
    }
}
