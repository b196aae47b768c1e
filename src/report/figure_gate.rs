//! Limits of figures that are not latencies: `pipe/64KiB>=900MB/s`, `cpu0/lost<0.5%`, `xruns=0`.
//!
//! A figure is measured again and again. It passes where the 95% interval of its mean keeps the
//! limit, fails where all of the interval is beyond, and is inconclusive else. Counts are summed:
//! how often something happened is a fact of the run.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{
    figures::number,
    gate_decision::{GateResult, GateVerdict},
};
use crate::{
    run::{Document, FigureHead, FigureRecord, FigureUnit, Validity},
    units::{Nanos, many},
};

/// Which side of the limit is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    AtMost,
    Below,
    AtLeast,
    Above,
    Exactly,
}

/// As they are written; those that begin like others stand before them.
const SIDES: [(&str, Side); 6] = [
    ("<=", Side::AtMost),
    (">=", Side::AtLeast),
    ("==", Side::Exactly),
    ("<", Side::Below),
    (">", Side::Above),
    ("=", Side::Exactly),
];

/// A limit of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureGate {
    text: String,
    figure: String,
    side: Side,
    limit: f64,
    unit: FigureUnit,
}

/// Why an expression is not a limit of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FigureGateError {
    /// No comparison in it.
    #[error(
        "\"{0}\" is not a gate; use a metric, a comparison and a limit, e.g. p99.9<=80us, missed=0 \
         or pipe/64KiB>=900MB/s"
    )]
    Form(String),
    /// A limit that is not an amount.
    #[error(
        "\"{gate}\": \"{limit}\" is not a limit; use a number with its unit, e.g. 80us, 900MB/s, \
         0.5%, 1000loops/ms, or a count as 0"
    )]
    Limit {
        /// The gate.
        gate: String,
        /// What stands for a limit.
        limit: String,
    },
    /// An equality of what is never exact.
    #[error("\"{0}\": only a count is exactly that; write <=, <, >= or >")]
    Equal(String),
}

impl fmt::Display for FigureGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FigureGate {
    type Err = FigureGateError;

    fn from_str(text: &str) -> Result<Self, FigureGateError> {
        let text = text.trim();
        let form = || FigureGateError::Form(text.to_owned());
        let (figure, right) = text.split_at(text.find(['<', '>', '=']).ok_or_else(form)?);
        let found = SIDES
            .into_iter()
            .find_map(|(sign, side)| Some((side, right.strip_prefix(sign)?.trim())));
        let (figure, (side, written)) = (figure.trim(), found.ok_or_else(form)?);
        if figure.is_empty() || written.is_empty() {
            return Err(form());
        }
        let (limit, unit) = amount(written).ok_or_else(|| FigureGateError::Limit {
            gate: text.to_owned(),
            limit: written.to_owned(),
        })?;
        if side == Side::Exactly && unit != FigureUnit::Count {
            return Err(FigureGateError::Equal(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), figure: figure.to_owned(), side, limit, unit })
    }
}

/// An amount in the unit that figures have.
fn amount(text: &str) -> Option<(f64, FigureUnit)> {
    const UNITS: [(&str, FigureUnit); 4] = [
        ("MB/s", FigureUnit::MegabytesPerSecond),
        ("loops/ms", FigureUnit::LoopsPerMillisecond),
        ("percent", FigureUnit::Percent),
        ("%", FigureUnit::Percent),
    ];
    let value = |text: &str| {
        let value = text.trim().parse::<f64>().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    if let Some((number, unit)) =
        UNITS.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
    {
        return Some((value(number)?, unit));
    }
    if let Ok(count) = text.parse::<u32>() {
        return Some((f64::from(count), FigureUnit::Count));
    }
    let time = text.parse::<Nanos>().ok()?;
    Some((time.0 as f64 / 1e3, FigureUnit::Microseconds))
}

impl FigureGate {
    /// The figure that it limits.
    #[must_use]
    pub fn figure(&self) -> &str {
        &self.figure
    }

    /// Why a run of these figures cannot have it; nothing where it can.
    #[must_use]
    pub fn refusal(&self, figures: &[FigureHead], series: &[String]) -> Option<String> {
        let Some(own) = figures.iter().find(|own| own.name == self.figure) else {
            return Some(self.unknown(figures, series));
        };
        self.limit_in(&own.unit).is_none().then(|| {
            let unit = own.unit.as_str();
            format!("\"{self}\": {} is counted in {unit}; give the limit in it", self.figure)
        })
    }

    fn unknown(&self, figures: &[FigureHead], series: &[String]) -> String {
        let names: Vec<&str> = figures.iter().map(|own| own.name.as_str()).collect();
        let there = match (names.is_empty(), series.is_empty()) {
            (false, true) => format!("there are {}", names.join(", ")),
            (true, _) => "there are p50, p90, p99, p99.9, p99.99, p99.999, max and missed".into(),
            (false, false) => {
                format!("there are p50 to p99.999, max, missed, and {}", names.join(", "))
            }
        };
        format!("\"{self}\": unknown metric \"{}\"; {there}", self.figure)
    }

    /// The limit in the unit of a figure; `None` if the limit is not an amount of that unit. Other
    /// programs count times in other units than tardy does.
    fn limit_in(&self, unit: &FigureUnit) -> Option<f64> {
        if *unit == self.unit {
            return Some(self.limit);
        }
        let (FigureUnit::Microseconds, FigureUnit::Other(name)) = (&self.unit, unit) else {
            return None;
        };
        match name.as_str() {
            "s" => Some(self.limit / 1e6),
            "ms" => Some(self.limit / 1e3),
            "ns" => Some(self.limit * 1e3),
            _ => None,
        }
    }

    const fn is_kept(&self, value: f64, limit: f64) -> bool {
        match self.side {
            Side::AtMost => value <= limit,
            Side::Below => value < limit,
            Side::AtLeast => value >= limit,
            Side::Above => value > limit,
            Side::Exactly => value == limit,
        }
    }

    /// What a run says of it.
    ///
    /// # Errors
    /// A figure that the run does not have, or has in another unit.
    pub fn decide(&self, document: &Document) -> Result<GateResult, String> {
        let heads: Vec<FigureHead> = document.figures.iter().map(FigureRecord::head).collect();
        let series: Vec<String> = document.wakeups().map(|series| series.name.clone()).collect();
        if let Some(refusal) = self.refusal(&heads, &series) {
            return Err(refusal);
        }
        let own = document.figures.iter().find(|own| own.name == self.figure);
        let (verdict, reason) = match own {
            _ if document.validity == Validity::Invalid => (
                GateVerdict::Inconclusive,
                "the run is invalid, and its figures decide nothing".to_owned(),
            ),
            Some(own) if !own.values.is_empty() => self.of_values(own),
            _ => (GateVerdict::Inconclusive, "it has no value".to_owned()),
        };
        Ok(self.result(verdict, reason))
    }

    /// What is said of it where nothing has the figure.
    #[must_use]
    pub fn unmeasured(&self, reason: &str) -> GateResult {
        self.result(GateVerdict::Inconclusive, reason.to_owned())
    }

    fn result(&self, verdict: GateVerdict, reason: String) -> GateResult {
        let series = Some(self.figure.clone());
        GateResult { gate: self.text.clone(), series, verdict, reason }
    }

    fn of_values(&self, own: &FigureRecord) -> (GateVerdict, String) {
        let unit = own.unit.as_str();
        let limit = self.limit_in(&own.unit).unwrap_or(self.limit);
        let repeats = many(own.values.len() as u64, "repeat");
        if own.unit == FigureUnit::Count {
            let sum: f64 = own.values.iter().sum();
            let verdict =
                if self.is_kept(sum, limit) { GateVerdict::Pass } else { GateVerdict::Fail };
            return (verdict, format!("{sum} in all"));
        }
        let (Some(low), Some(high)) = (own.low, own.high) else {
            let value = own.mean.map_or_else(|| "-".to_owned(), number);
            let reason = format!(
                "{value} {unit} is its only value, and one value has no interval: it takes 2 at \
                 least to say how far they differ"
            );
            return (GateVerdict::Inconclusive, reason);
        };
        let between =
            format!("between {} and {} {unit} (mean of {repeats})", number(low), number(high));
        match (self.is_kept(low, limit), self.is_kept(high, limit)) {
            (true, true) => (GateVerdict::Pass, between),
            (false, false) => (GateVerdict::Fail, between),
            _ => (GateVerdict::Inconclusive, format!("{between}: the limit lies within")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::fixture, run::figures::summarize_figure};

    fn gate(text: &str) -> FigureGate {
        text.parse().unwrap()
    }

    fn document() -> Document {
        let figure = |name: &str, unit, values: &[f64]| {
            summarize_figure(&FigureHead { name: name.into(), unit }, values)
        };
        let mut document = fixture::of("timer", &[]);
        document.validity = Validity::Valid;
        document.figures = vec![
            figure("pipe/64KiB", FigureUnit::MegabytesPerSecond, &[900.0, 910.0, 905.0]),
            figure("fork", FigureUnit::Microseconds, &[81.25]),
            figure("exec", FigureUnit::Microseconds, &[]),
            figure("xruns", FigureUnit::Count, &[0.0, 2.0, 1.0]),
            figure("cpu0/lost", FigureUnit::Percent, &[0.25, 0.25, 0.25]),
        ];
        document
    }

    #[test]
    fn a_limit_is_read_in_the_unit_of_figures() {
        let of = |text| {
            let FigureGate { figure, limit, unit, .. } = gate(text);
            (figure, limit, unit)
        };
        let expected = ("pipe/64KiB".to_owned(), 900.0, FigureUnit::MegabytesPerSecond);
        assert_eq!(of(" pipe/64KiB >= 900 MB/s "), expected);
        assert_eq!(of("fork<1.5ms"), ("fork".into(), 1_500.0, FigureUnit::Microseconds));
        assert_eq!(of("cpu0/lost<0.5%"), ("cpu0/lost".into(), 0.5, FigureUnit::Percent));
        assert_eq!(of("cpu0/lost<1 percent").2, FigureUnit::Percent);
        assert_eq!(of("xruns=0"), ("xruns".into(), 0.0, FigureUnit::Count));
        for (text, says) in [
            ("fork", "use a metric, a comparison"),
            (">=3us", "use a metric, a comparison"),
            ("fork<=", "use a metric, a comparison"),
            ("fork<=80", "xruns"),
            ("fork<=80parsec", "is not a limit; use a number with its unit"),
            ("fork<=NaN%", "is not a limit"),
            ("fork<=-1%", "is not a limit"),
            ("fork=3us", "only a count is exactly that"),
        ] {
            // Without a unit it is a count, which is refused unless the metric is a count.
            let error = text.parse::<FigureGate>().map_or_else(
                |error| error.to_string(),
                |found| format!("xruns {}", found.decide(&document()).unwrap_err()),
            );
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_time_limits_figures_of_every_unit_of_time() {
        use GateVerdict::{Fail, Pass};
        let mut document = document();
        let units = [("s", 1.5), ("ms", 1_500.0), ("us", 1_500_000.0), ("ns", 1_500_000_000.0)];
        for (unit, value) in units {
            let unit = match unit {
                "us" => FigureUnit::Microseconds,
                other => FigureUnit::Other(other.into()),
            };
            let head = FigureHead { name: "process/10x400/300x100B".into(), unit };
            document.figures = vec![summarize_figure(&head, &[value; 3])];
            for (limit, expected) in [
                ("<=2s", Pass),
                ("<=2000ms", Pass),
                ("<=1.5s", Pass),
                ("<1.5s", Fail),
                ("<=1400ms", Fail),
            ] {
                let text = format!("process/10x400/300x100B{limit}");
                let found = gate(&text).decide(&document).unwrap();
                assert_eq!(found.verdict, expected, "{text}: {found:?}");
            }
        }
        let error = gate("process/10x400/300x100B<=2").decide(&document).unwrap_err();
        assert!(error.contains("is counted in ns; give the limit in it"), "{error}");
    }

    #[test]
    fn the_interval_of_the_mean_decides_and_a_count_is_a_fact() {
        use GateVerdict::{Fail, Inconclusive, Pass};
        for (text, expected, says) in [
            ("pipe/64KiB>=850MB/s", Pass, "(mean of 3 repeats)"),
            ("pipe/64KiB>=950MB/s", Fail, "between"),
            ("pipe/64KiB>905MB/s", Inconclusive, "the limit lies within"),
            ("fork<=100us", Inconclusive, "one value has no interval"),
            ("exec<=100us", Inconclusive, "it has no value"),
            ("xruns<=3", Pass, "3 in all"),
            ("xruns=0", Fail, "in all"),
            ("cpu0/lost<=0.25%", Pass, "0.250"),
            ("cpu0/lost<0.25%", Fail, "0.250"),
        ] {
            let found = gate(text).decide(&document()).unwrap();
            assert_eq!(found.verdict, expected, "{text}: {found:?}");
            assert!(found.reason.contains(says), "{text}: {found:?}");
        }
        let mut invalid = document();
        invalid.validity = Validity::Invalid;
        assert_eq!(gate("xruns=0").decide(&invalid).unwrap().verdict, Inconclusive);
    }

    #[test]
    fn what_a_run_does_not_have_is_refused_with_what_it_has() {
        let of = |text: &str| gate(text).decide(&document()).unwrap_err();
        assert!(of("pipe/1KiB>1MB/s").contains("unknown metric \"pipe/1KiB\"; there are"));
        assert!(of("fork<1%").contains("fork is counted in us; give the limit in it"));
        let nothing = gate("forks<1us").refusal(&[], &["cpu0".into()]).unwrap();
        assert!(nothing.contains("there are p50, p90"), "{nothing}");
    }
}
