//! Runs of A against runs of B: figures side by side, a verdict where there are enough runs, which
//! facts differ, and which causes.
//!
//! One run beside one other is described and not judged: how much runs of one set-up differ from
//! each other, and from boot to boot, is in neither of them.

mod against;
mod causes;
mod delays;
mod facts;
mod figures;
mod for_page;
mod nights;
mod reading;
mod remarks;
mod sentence;
mod shift;
mod side;
#[cfg(test)]
mod tests;
mod text;
mod worse;

use serde::Serialize;
use thiserror::Error;

use super::{
    comparison_page::{FactDifference, ShiftPoint},
    intervals::RunIntervals,
};
use crate::{
    analysis::ab::figure::ComparedFigure,
    run::{AbVerdict, BandDifference, ComparedFigureRow, Validity, without_host::WithoutHost},
};

pub use against::{GateBase, HeldRuns};
pub use causes::causes_between;
pub(super) use for_page::of_blocks;
pub use for_page::of_report;
pub use nights::SeriesNights;
pub use reading::compare_runs;
use sentence::{of_band, of_figures};
pub use side::LoggedRun;
pub(super) use text::push_causes;
pub use text::text;
pub use worse::{WorseGate, WorseGateError};

/// What is to be compared, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// The figures that are judged; the others are described.
    pub judged: Vec<ComparedFigure>,
    /// Differences below this share are called the same, 0.05 for 5%; without it each figure has
    /// its own.
    pub margin: Option<f64>,
}

/// Why runs are not compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompareError {
    /// Their samples are different things.
    #[error(
        "{a} is a run of {probe_a}, {b} one of {probe_b}: their samples are different things; \
         compare runs of one probe"
    )]
    Probes {
        /// A run.
        a: String,
        /// Its probe.
        probe_a: String,
        /// Another run.
        b: String,
        /// Its probe.
        probe_b: String,
    },
    /// Nothing in common.
    #[error("{a} has {series_a}, and {b} has {series_b}: no series is in both; measure the same")]
    Series {
        /// A run.
        a: String,
        /// Its series.
        series_a: String,
        /// Another run.
        b: String,
        /// Its series.
        series_b: String,
    },
    /// A run that says nothing.
    #[error("{0} has no sample; leave it out")]
    Empty(String),
    /// A run whose figures are not latencies.
    #[error(
        "{0} has figures and no latencies, and latencies are compared; `tardy report` shows its \
         figures beside those of other runs"
    )]
    FiguresOnly(String),
    /// A log that cannot be read to its end.
    #[error("{name}: series.hlog: {what}; copy the run directory again from where it was measured")]
    Damaged {
        /// The run.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The same run on both sides, or twice on one.
    #[error("{0} is listed twice; list each run once")]
    Twice(String),
    /// A figure that is not in all of them.
    #[error("--figures {figure}: {why}")]
    Figure {
        /// Its name.
        figure: &'static str,
        /// Why not.
        why: String,
    },
}

/// Runs of B beside those of A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideComparison {
    /// The names of the runs of A.
    pub a: Vec<String>,
    /// Those of B.
    pub b: Vec<String>,
    /// Over the judged figures of all series together, or of the series that cannot be put
    /// together: worse if any is, else better if any is, else the same if any is, else
    /// inconclusive.
    pub verdict: AbVerdict,
    /// Whether there are enough runs to judge anything.
    pub judged: bool,
    /// The judged figures; `pairs` is the number of runs of the smaller side, 0 where nothing can
    /// be judged; `pairs_needed` that of runs a side.
    pub figures: Vec<ComparedFigureRow>,
    /// The other figures, without intervals.
    pub described: Vec<ComparedFigureRow>,
    /// B / A at every percentile with its own 95% interval; judges nothing. Empty if a side has
    /// one or two runs and the other more.
    pub shift: Vec<ShiftPoint>,
    /// What these runs cannot tell, and what it would take.
    pub remarks: Vec<String>,
    /// Where the difference may come from: what is not the same in all runs.
    pub facts: Vec<FactDifference>,
    /// What the slowest samples were blamed on, side by side; empty where not all runs were
    /// traced.
    pub causes: Vec<BandDifference>,
    /// The worst validity of all runs.
    pub validity: Validity,
    /// Why nothing is judged; `None` if all is that can be.
    #[serde(skip)]
    pub unjudged: Option<Unjudged>,
    /// What the figures are figures of: `wake-ups`.
    #[serde(skip)]
    pub samples: &'static str,
}

/// Why a difference is described and not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// How much runs of one set-up differ is not known.
    FewRuns,
    /// Nor is how much what measured them differs.
    SeveralPrograms,
}

/// A run that was compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInComparison {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its directory.
    pub path: String,
    /// Whether its figures are valid.
    pub validity: Validity,
    /// What was removed from it, where its figures are without the time of its hypervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_host: Option<WithoutHost>,
    /// Its percentiles with intervals, where it is one run beside one other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<RunIntervals>,
}

impl RunInComparison {
    /// What is said of a run.
    #[must_use]
    pub fn of(run: &LoggedRun) -> Self {
        let document = run.document();
        Self {
            name: document.name.clone(),
            id: document.id.clone(),
            path: run.run().path.display().to_string(),
            validity: document.validity,
            without_host: document.without_host.clone(),
            intervals: run.intervals().cloned(),
        }
    }
}

/// `tardy compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareReport {
    /// Over all comparisons, as over figures.
    pub verdict: AbVerdict,
    /// One; of several runs without `--vs` one for each but the first.
    pub comparisons: Vec<SideComparison>,
    /// Every run, in the order in which they were named.
    pub runs: Vec<RunInComparison>,
}

/// Compares runs of B with runs of A.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    options: &CompareOptions,
) -> Result<SideComparison, CompareError> {
    side::check(a, b, options)?;
    let series = side::common_series(a, b)?;
    let all = || a.iter().chain(b);
    let mut found = figures::of(a, b, &series, options);
    let mut unjudged = (!found.judged).then_some(Unjudged::FewRuns);
    if delays::are_of_several_programs(all().map(|run| run.document())) {
        found.describe();
        unjudged = Some(Unjudged::SeveralPrograms);
    }
    let pools = figures::pools(a, b, &series);
    let names = |side: &[&LoggedRun]| side.iter().map(|run| run.name().to_owned()).collect();
    let (of_a, of_b) = (side::runs(a), side::runs(b));
    let causes = causes_between(&of_a, &of_b);
    let mut remarks = remarks::of(a, b, &series, &found.figures, options);
    remarks.extend(causes.is_empty().then(|| causes::unlike(&of_a, &of_b)).flatten());
    Ok(SideComparison {
        a: names(a),
        b: names(b),
        verdict: found.verdict,
        judged: found.judged,
        unjudged,
        remarks,
        figures: found.figures,
        described: found.described,
        shift: shift::of(a, b, &series, pools),
        facts: facts::differences(a, b),
        causes,
        validity: all().map(|run| run.document().validity).max().unwrap_or(Validity::Valid),
        samples: super::sample_name::SampleName::of_all(all().map(|run| run.document())).many(),
    })
}
