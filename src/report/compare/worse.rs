//! Gates of a comparison: by how much B may be worse, `worse<5%@p99`, or worse than runs that the
//! gate names, `worse<5%@p99 vs BASE`.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{SideComparison, Unjudged};
use crate::{
    analysis::{
        ab::figure::{ComparedFigure, UnknownFigure},
        nights::{FEWEST_NIGHTS, MOST_NIGHTS},
    },
    report::{
        change::ratio,
        gate_decision::{GateResult, GateVerdict},
    },
    run::ComparedFigureRow,
};

/// B's figure may be worse by less than a share, of all series together or of one.
#[derive(Debug, Clone, PartialEq)]
pub struct WorseGate {
    text: String,
    series: Option<String>,
    share: f64,
    /// Which figure: it is judged too.
    pub figure: ComparedFigure,
    /// The runs that it names: paths, names or ids; empty where the sides are those that are
    /// compared, and for the nights before.
    pub bases: Vec<String>,
    /// The number of nights before that it is against; `None` if it is against runs.
    pub past_nights: Option<usize>,
}

/// What stands behind `vs` for the nights before.
const BASELINE: &str = "baseline";

/// More nights than in a year are not asked for.
const LONGEST_BASELINE: usize = 365;

/// The reason why an expression is not a gate of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorseGateError {
    /// It has another form.
    #[error(
        "\"{0}\" is not a gate of a comparison; use worse<5%@p99, or cpu0:worse<5%@p99 for one \
         series; limits for latencies are gates of `tardy run` and `tardy show`"
    )]
    Form(String),
    /// Nothing behind `vs`.
    #[error(
        "\"{0}\": write a run behind vs, or three with commas between: worse<5%@p99 vs A1,A2,A3"
    )]
    Base(String),
    /// Nights before that are not asked for so.
    #[error(
        "\"{0}\": write baseline alone, or baseline:30 for the last 30 nights, \
         {FEWEST_NIGHTS} to {LONGEST_BASELINE}"
    )]
    Nights(String),
    /// A figure that many runs are not listed by.
    #[error("\"{0}\": the nights before have p50, p99 and p99.9; name one of them")]
    NightFigure(String),
    /// An invalid share.
    #[error("\"{0}\": write a share of more than 0% and at most 1000%, as in worse<5%@p99")]
    Share(String),
    /// A figure that there is not.
    #[error("\"{gate}\": {source}")]
    Figure {
        /// The gate.
        gate: String,
        /// What is wrong.
        source: UnknownFigure,
    },
}

impl FromStr for WorseGate {
    type Err = WorseGateError;

    fn from_str(text: &str) -> Result<Self, WorseGateError> {
        let text = text.trim();
        let form = || WorseGateError::Form(text.to_owned());
        let (limit, bases) = match text.split_once(" vs") {
            Some((limit, bases)) if bases.is_empty() || bases.starts_with(' ') => {
                let bases: Vec<String> =
                    bases.split(',').map(|base| base.trim().to_owned()).collect();
                if bases.iter().any(String::is_empty) {
                    return Err(WorseGateError::Base(text.to_owned()));
                }
                (limit, bases)
            }
            _ => (text, Vec::new()),
        };
        let (left, right) = limit.split_once('<').ok_or_else(form)?;
        let (series, word) = match left.rsplit_once(':') {
            Some((series, word)) => (Some(series.trim().to_owned()), word),
            None => (None, left),
        };
        if word.trim() != "worse" || series.as_deref() == Some("") {
            return Err(form());
        }
        let (share, figure) = right.split_once('@').ok_or_else(form)?;
        let percent = share.trim().strip_suffix('%').and_then(|own| own.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 1_000.0);
        let percent = percent.ok_or_else(|| WorseGateError::Share(text.to_owned()))?;
        let figure = figure.trim().parse();
        let figure =
            figure.map_err(|source| WorseGateError::Figure { gate: text.into(), source })?;
        let past_nights = past_nights(text, &bases)?;
        let is_listed = LISTED.contains(&figure);
        if past_nights.is_some() && !is_listed {
            return Err(WorseGateError::NightFigure(text.to_owned()));
        }
        let bases = if past_nights.is_some() { Vec::new() } else { bases };
        let (text, share) = (text.to_owned(), percent / 100.0);
        Ok(Self { text, series, share, figure, bases, past_nights })
    }
}

/// Figures that an index of runs has.
const LISTED: [ComparedFigure; 3] =
    [ComparedFigure::P50, ComparedFigure::P99, ComparedFigure::P999];

/// How many nights before are meant by what stands behind `vs`; `None` if runs are.
fn past_nights(gate: &str, bases: &[String]) -> Result<Option<usize>, WorseGateError> {
    let number = |base: &String| {
        let rest = base.strip_prefix(BASELINE)?;
        match rest.strip_prefix(':') {
            Some("") => Some("nothing".to_owned()),
            Some(number) => Some(number.to_owned()),
            None => rest.is_empty().then(String::new),
        }
    };
    let Some(asked) = bases.iter().find_map(number) else { return Ok(None) };
    let nights = if asked.is_empty() { Some(MOST_NIGHTS) } else { asked.parse().ok() };
    let nights = nights.filter(|nights| (FEWEST_NIGHTS..=LONGEST_BASELINE).contains(nights));
    match nights.filter(|_| bases.len() == 1) {
        Some(nights) => Ok(Some(nights)),
        None => Err(WorseGateError::Nights(gate.to_owned())),
    }
}

impl fmt::Display for WorseGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl WorseGate {
    /// The series that it is for; absent for all.
    #[must_use]
    pub fn series(&self) -> Option<&str> {
        self.series.as_deref()
    }

    /// By how much it may be worse.
    #[must_use]
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// Whether many runs are listed by its figure.
    pub(super) fn is_listed(&self) -> bool {
        LISTED.contains(&self.figure)
    }

    /// Whether it is about the sides that are compared.
    #[must_use]
    pub const fn is_of_sides(&self) -> bool {
        self.bases.is_empty() && self.past_nights.is_none()
    }

    /// It, with the reason why nothing decides it.
    #[must_use]
    pub fn inconclusive(&self, reason: String) -> GateResult {
        let (gate, series) = (self.text.clone(), self.series.clone());
        GateResult { gate, series, verdict: GateVerdict::Inconclusive, reason }
    }

    /// What a comparison says of it. Without a series it is about all of them together, or about
    /// each where they cannot be put together.
    ///
    /// # Errors
    /// A series or figure that the comparison does not have.
    pub fn decide(&self, comparison: &SideComparison) -> Result<Vec<GateResult>, String> {
        let rows = || comparison.figures.iter().filter(|row| row.figure == self.figure.name());
        let pooled = rows().any(|row| row.series.is_none());
        let is_meant = |row: &&ComparedFigureRow| match &self.series {
            Some(own) => row.series.as_ref() == Some(own),
            None => row.series.is_none() == pooled,
        };
        let results: Vec<GateResult> =
            rows().filter(is_meant).map(|row| self.result(row, comparison.unjudged)).collect();
        if results.is_empty() {
            let names: Vec<&str> = rows().filter_map(|row| row.series.as_deref()).collect();
            let there =
                if names.is_empty() { "no series with it".into() } else { names.join(", ") };
            return Err(format!("\"{}\": nothing to decide it by; there is {there}", self.text));
        }
        Ok(results)
    }

    fn result(&self, row: &ComparedFigureRow, unjudged: Option<Unjudged>) -> GateResult {
        let limit = 1.0 + self.share;
        let (verdict, reason) = match row.low.zip(row.high) {
            Some((low, high)) => {
                let verdict = match () {
                    () if high < limit => GateVerdict::Pass,
                    () if low >= limit => GateVerdict::Fail,
                    () => GateVerdict::Inconclusive,
                };
                (verdict, format!("B / A is {} to {}", digits(low), digits(high)))
            }
            None => (GateVerdict::Inconclusive, no_interval(unjudged).into()),
        };
        GateResult { gate: self.text.clone(), series: row.series.clone(), verdict, reason }
    }
}

/// Three decimals, or as many digits as tell it from 0.
pub(super) fn digits(of: f64) -> String {
    if (0.1..100.0).contains(&of) { format!("{of:.3}") } else { ratio(of) }
}

/// Why a gate finds no interval to decide by.
const fn no_interval(unjudged: Option<Unjudged>) -> &'static str {
    match unjudged {
        None => "no interval",
        Some(Unjudged::FewRuns) => "too few runs: it takes three of each side",
        Some(Unjudged::SeveralPrograms) => "different programs measured: take runs of one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{AbVerdict, ComparedUnit, Validity};

    fn row(series: Option<&str>, ends: Option<(f64, f64)>) -> ComparedFigureRow {
        ComparedFigureRow {
            series: series.map(str::to_owned),
            figure: "p99".into(),
            unit: ComparedUnit::Ns,
            above_ns: None,
            lower_is_better: true,
            a: 1.0,
            b: 1.0,
            ratio: 1.0,
            low: ends.map(|ends| ends.0),
            high: ends.map(|ends| ends.1),
            margin: 0.05,
            floor: None,
            pairs: 3,
            pairs_needed: None,
            verdict: AbVerdict::Inconclusive,
        }
    }

    fn comparison(figures: Vec<ComparedFigureRow>) -> SideComparison {
        SideComparison {
            a: Vec::new(),
            b: Vec::new(),
            verdict: AbVerdict::Inconclusive,
            judged: figures.iter().any(|row| row.low.is_some()),
            unjudged: match figures.iter().any(|row| row.low.is_some()) {
                true => None,
                false => Some(Unjudged::FewRuns),
            },
            figures,
            described: Vec::new(),
            shift: Vec::new(),
            remarks: Vec::new(),
            facts: Vec::new(),
            causes: Vec::new(),
            validity: Validity::Valid,
            samples: "wake-ups",
        }
    }

    #[test]
    fn a_gate_of_a_comparison_is_decided_by_the_interval_of_the_ratio() {
        let gate: WorseGate = "worse<5%@p99".parse().unwrap();
        let of = |ends| {
            let found = gate.decide(&comparison(vec![row(None, ends)])).unwrap();
            (found[0].verdict, found[0].reason.clone())
        };
        assert_eq!(of(Some((0.9, 1.04))), (GateVerdict::Pass, "B / A is 0.900 to 1.040".into()));
        assert_eq!(of(Some((1.01, 1.04))).0, GateVerdict::Pass, "worse, but by less");
        assert_eq!(of(Some((1.0, 1.2))).0, GateVerdict::Inconclusive);
        assert_eq!(of(Some((1.06, 1.2))).0, GateVerdict::Fail);
        assert_eq!(of(None).0, GateVerdict::Inconclusive);
        let tiny = of(Some((0.000_13, 0.004_8)));
        assert_eq!(tiny, (GateVerdict::Pass, "B / A is 0.00013 to 0.0048".into()));
    }

    #[test]
    fn a_gate_may_name_the_runs_that_it_is_against() {
        let bases = |text: &str| text.parse::<WorseGate>().unwrap().bases;
        assert_eq!(bases("worse<5%@p99"), Vec::<String>::new());
        assert_eq!(bases("cpu0:worse < 5% @ p99 vs runs/old"), ["runs/old"]);
        assert_eq!(bases("worse<5%@p99.9 vs a1, a2,a3"), ["a1", "a2", "a3"]);
        let nights = |text: &str| text.parse::<WorseGate>().unwrap().past_nights;
        assert_eq!(nights("worse<5%@p99 vs baseline"), Some(60));
        assert_eq!(nights("worse<5%@p50 vs baseline:30"), Some(30));
        assert_eq!((nights("worse<5%@p99"), nights("worse<5%@p99 vs baseline-1")), (None, None));
        assert_eq!(bases("worse<5%@p99 vs baseline"), Vec::<String>::new());
        let gate: WorseGate = " worse<5%@p99 vs a ".parse().unwrap();
        assert_eq!(gate.to_string(), "worse<5%@p99 vs a");
    }

    #[test]
    fn without_a_series_it_is_about_all_together_or_else_about_each() {
        let sound = Some((0.99, 1.01));
        let of = |text: &str, rows: &[Option<&str>]| {
            let gate: WorseGate = text.parse().unwrap();
            let rows = rows.iter().map(|series| row(*series, sound)).collect();
            let found = gate.decide(&comparison(rows))?;
            Ok::<_, String>(found.into_iter().map(|own| own.series).collect::<Vec<_>>())
        };
        let pooled = [None, Some("cpu0"), Some("cpu1")];
        assert_eq!(of("worse<5%@p99", &pooled), Ok(vec![None]));
        assert_eq!(of("cpu1:worse<5%@p99", &pooled), Ok(vec![Some("cpu1".into())]));
        let ways = [Some("there"), Some("back")];
        assert_eq!(of("worse<5%@p99", &ways).unwrap().len(), 2);
        let error = of("cpu9:worse<5%@p99", &pooled).unwrap_err();
        assert!(error.contains("there is cpu0, cpu1"), "{error}");
    }

    #[test]
    fn what_is_no_gate_of_a_comparison_is_refused() {
        for (text, says) in [
            ("p99<=80us", "use worse<5%@p99"),
            ("worse<5%", "use worse<5%@p99"),
            ("worse<5@p99", "write a share"),
            ("worse<0%@p99", "write a share"),
            ("worse<5%@p95", "unknown metric \"p95\""),
            ("worse<5%@p99 vs", "write a run behind vs"),
            ("worse<5%@p99 vs a,,b", "write a run behind vs"),
            ("worse<5%@p99 vs baseline:7", "for the last 30 nights, 8 to 365"),
            ("worse<5%@p99 vs baseline:x", "write baseline alone"),
            ("worse<5%@p99 vs baseline:", "write baseline alone"),
            ("worse<5%@p99 vs baseline,a", "write baseline alone"),
            ("worse<5%@max vs baseline", "the nights before have p50, p99 and p99.9"),
        ] {
            let error = text.parse::<WorseGate>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
