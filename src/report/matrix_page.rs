//! The page of a matrix: per load a row, per kernel a column, percentile curves over each other.
//! Of a plan of this machine rows and columns are those of the plan, and each run has a link.
//!
//! The data lies in the same block as that of runs, in `matrix`; `web/src/matrix/` draws it.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{
    curve::curve,
    lab::{ConfigTable, MatrixView, headline, meanings, verdicts},
    suite_page::PageSuite,
};
use crate::{
    analysis::matrix::{CellCause, Column, Figure, MatrixCell},
    run::{CellStatus, Document, Effect, LoadRecord, Run, Validity, hlog, lab::LabFailure},
};

/// What a matrix is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MatrixKind {
    /// Loads under kernels of the lab, over phase offsets.
    Lab,
    /// The cells of a plan that was measured on one machine, over repeats.
    Plan,
    /// The blocks of the two sides of a comparison, pooled.
    Ab,
}

/// Kernels beside each other; or the cells of a plan, or two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageMatrix {
    /// What it is of.
    pub kind: MatrixKind,
    /// How far it came, in words; empty of the lab.
    pub state: String,
    /// What was measured.
    pub title: String,
    /// What it comes to, in one sentence; empty of a comparison, whose answer it is.
    pub finding: String,
    /// How much of it, in one line.
    pub headline: String,
    /// What the numbers mean, a sentence a mode.
    pub meanings: Vec<String>,
    /// What a reader must know before comparing.
    pub remarks: Vec<String>,
    /// The columns.
    pub kernels: Vec<Column>,
    /// The rows.
    pub loads: Vec<PageRow>,
    /// How the kernels' configurations differ; absent if they are not known.
    pub config: Option<ConfigTable>,
    /// Cells without a run.
    pub failed: Vec<LabFailure>,
    /// Cells that an early end left undone.
    pub undone: usize,
    /// Each run by itself, in the order of time, with those that are to be measured yet; none of
    /// the lab.
    pub runs: Vec<PageCellRun>,
    /// The parts of a plan; absent if it has none, and of all others.
    pub suite: Option<Box<PageSuite>>,
}

/// One run of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageCellRun {
    /// The name of its row.
    pub row: String,
    /// The name of its column.
    pub column: String,
    /// Which run of its cell, from 1.
    pub repeat: u32,
    /// Whether it is measured.
    pub status: CellStatus,
    /// Its page, from this one; absent if none was made.
    pub page: Option<String>,
    /// Its directory, from that of the record; absent if it was not begun.
    pub path: Option<String>,
    /// Whether its numbers may be believed; absent if it has none.
    pub validity: Option<Validity>,
    /// Samples of whole latencies.
    pub samples: u64,
    /// Periods that its series missed together; absent if it has no schedule.
    pub missed: Option<u64>,
    /// The figures of the matrix in this run.
    pub figures: Vec<PageRunFigure>,
    /// What gates came to.
    pub gates: Vec<PageGate>,
    /// Why the run is missing, or why it cannot be read.
    pub error: Option<String>,
}

/// One figure of one run: that of the series where it is largest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageRunFigure {
    /// As in `figures` of the cells.
    pub name: String,
    /// Its value, ns.
    pub value_ns: i64,
    /// The lower end of its 95% interval; absent of the maximum, and where nothing tells.
    pub low_ns: Option<u64>,
    /// The upper end; absent if there are too few samples beyond it.
    pub high_ns: Option<u64>,
    /// Whether there are fewer than 10 samples beyond it, as far as they are independent.
    pub uncertain: bool,
}

/// A gate, and what one run says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageGate {
    /// As it was written.
    pub gate: String,
    /// The series; absent if it is of all together.
    pub series: Option<String>,
    /// `pass`, `fail` or `inconclusive`.
    pub verdict: String,
    /// Why.
    pub reason: String,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageRow {
    /// Its name in the plan.
    pub name: String,
    /// What it is: `signals (processes=300)`.
    pub load: String,
    /// One place a kernel; absent if nothing was measured.
    pub cells: Vec<Option<PageCell>>,
    /// What is judged, a sentence for each kernel but the first.
    pub verdicts: Vec<String>,
}

/// One load under one kernel, over phase offsets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageCell {
    /// Different phase offsets.
    pub phases: usize,
    /// Samples of all of them.
    pub samples: u64,
    /// Ranges over phase offsets.
    pub figures: Vec<Figure>,
    /// Of all samples together: pairs of percentile and latency in ns, the last one the maximum.
    pub curve: Vec<(f64, i64)>,
    /// Texts of caveats that weigh on a run of it.
    pub caveats: Vec<String>,
    /// What the worst wake-ups of its runs were spent on, largest first; none where no run of it
    /// was traced.
    pub causes: Vec<CellCause>,
}

/// What a page shows of `sheet`, which was made of `runs` in this order.
#[must_use]
pub fn matrix(sheet: &MatrixView, runs: &[Run]) -> PageMatrix {
    let matrix = &sheet.matrix;
    let row = |row: &crate::analysis::matrix::MatrixRow| PageRow {
        name: row.name.clone(),
        load: load_of(row.cells.iter().flatten(), runs),
        cells: row.cells.iter().map(|cell| Some(page_cell(cell.as_ref()?, runs))).collect(),
        verdicts: verdicts(matrix, row),
    };
    PageMatrix {
        kind: MatrixKind::Lab,
        state: String::new(),
        title: sheet.title.clone(),
        finding: sheet.finding.clone(),
        headline: headline(sheet),
        meanings: meanings(matrix),
        remarks: matrix.remarks.clone(),
        kernels: matrix.kernels.clone(),
        loads: matrix.loads.iter().map(row).collect(),
        config: sheet.config.clone(),
        failed: sheet.failed.clone(),
        undone: sheet.undone,
        runs: Vec::new(),
        suite: None,
    }
}

fn load_of<'a>(mut cells: impl Iterator<Item = &'a MatrixCell>, runs: &[Run]) -> String {
    let first = cells.next().and_then(|cell| runs.get(*cell.runs.first()?));
    let loads = first.map(|run| run.document.loads.as_slice()).unwrap_or_default();
    loads.iter().map(load_words).collect::<Vec<_>>().join(", ")
}

/// `signals (interval_ns=2000000, processes=300)`
fn load_words(load: &LoadRecord) -> String {
    let word = |(key, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    };
    let words: Vec<String> = load.parameters.iter().map(word).collect();
    if words.is_empty() {
        load.name.clone()
    } else {
        format!("{} ({})", load.name, words.join(", "))
    }
}

fn page_cell(cell: &MatrixCell, runs: &[Run]) -> PageCell {
    let own: Vec<&Run> = cell.runs.iter().filter_map(|at| runs.get(*at)).collect();
    let mut total = hlog::empty();
    let mut caveats: Vec<String> = Vec::new();
    for run in &own {
        caveats.extend(weighty(&run.document));
        let whole: Vec<bool> = run.document.series.iter().map(|own| !own.is_part()).collect();
        let read = run.intervals(|number, _, counts: Histogram<u64>| {
            if whole.get(number).copied().unwrap_or(false) {
                // Bounds are equal, so that nothing can be lost.
                let _ = total.add(&counts);
            }
        });
        if let Err(error) = read {
            caveats.push(format!("{}: {error}", run.document.name));
        }
    }
    caveats.sort();
    caveats.dedup();
    let series = own.iter().flat_map(|run| run.document.wakeups());
    PageCell {
        phases: cell.phases,
        samples: cell.samples,
        figures: cell.figures.clone(),
        curve: curve(&total, series.filter_map(|series| series.max).max()),
        caveats,
        causes: cell.causes.clone(),
    }
}

fn weighty(document: &Document) -> impl Iterator<Item = String> {
    let heavy = document.caveats.iter().filter(|caveat| caveat.effect != Effect::Informs);
    heavy.map(|caveat| caveat.text.clone())
}
