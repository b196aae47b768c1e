//! What the page of a plan with parts has beside its matrix.

use serde::{Deserialize, Serialize};

use crate::{analysis::matrix::CellCause, run::AbVerdict};

/// The parts of a plan, or of several plans beside each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSuite {
    /// What each plan comes to, in the order they were named.
    pub plans: Vec<PagePlan>,
    /// In the order of the first plan.
    pub parts: Vec<PlanPart>,
    /// What the worst samples of all runs were spent on, largest first; none where no run was
    /// traced.
    pub causes: Vec<CellCause>,
}

/// What one plan comes to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePlan {
    /// Its name.
    pub name: String,
    /// The machine and its kernel, in a line; empty where nothing was measured.
    pub machine: String,
    /// What it comes to, a sentence each, from what was recorded.
    pub answers: Vec<String>,
    /// What `tardy check` found before, but for what is fine; absent if it was not checked.
    pub findings: Option<Vec<PageFinding>>,
}

/// One part of a plan, or of plans beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanPart {
    /// Its name.
    pub name: String,
    /// Its rows of the matrix, by name.
    pub rows: Vec<String>,
    /// Figures other than latencies; empty if its probe has no such figures.
    pub figures: Vec<PartFigure>,
}

/// What `tardy check` found; see `docs/reference/check.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageFinding {
    /// Stable name.
    pub code: String,
    /// `ok`, `costs` or `unknown`.
    pub status: String,
    /// `serious`, `matters` or `little`; null where it costs nothing or is unknown.
    pub severity: Option<String>,
    /// What was read.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

/// One figure of one row of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartFigure {
    /// As in `figures` of the runs.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The row of the matrix.
    pub row: String,
    /// One for each column of the matrix; null where no run of it has the figure.
    pub cells: Vec<Option<FigureRange>>,
    /// The second column against the first, of two plans beside each other; null elsewhere, and
    /// where there are too few runs.
    pub change: Option<FigureChange>,
}

/// The means of a figure over the runs of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRange {
    /// The median of the runs' means.
    pub median: f64,
    /// The smallest of them.
    pub low: f64,
    /// The largest of them.
    pub high: f64,
    /// The mean of each run.
    pub values: Vec<f64>,
}

/// The second plan against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureChange {
    /// The second to the first.
    pub ratio: f64,
    /// Lower end of its interval, at the error probability at which it was judged.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Whether it is better, worse or the same within 5%: all figures of the page share an error
    /// probability of 5%.
    pub verdict: AbVerdict,
    /// The number of repeats a plan that would decide it if the spread holds; null if it is
    /// decided, and where no number would.
    pub needed: Option<u32>,
}
