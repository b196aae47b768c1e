//! One run of a matrix by itself, as its page shows it: figures with intervals, missed, gates.

use super::{
    gate_decision::GateResult,
    intervals::{NamedInterval, RunIntervals},
    matrix_page::{PageCellRun, PageGate, PageRunFigure},
};
use crate::{
    analysis::matrix::{FIGURES, figures_of, whole},
    run::{CellStatus, Run},
};

/// What can be told of a measured run; its place in the matrix is for the caller to say.
#[must_use]
pub(super) fn measured(run: &Run, gates: &[GateResult]) -> PageCellRun {
    let document = &run.document;
    let missed: Vec<u64> = whole(document).filter_map(|series| series.missed).collect();
    PageCellRun {
        validity: Some(document.validity),
        samples: whole(document).map(|series| series.count).fold(0, u64::saturating_add),
        missed: (!missed.is_empty()).then(|| missed.into_iter().fold(0, u64::saturating_add)),
        figures: figures(run),
        gates: gates.iter().map(gate).collect(),
        ..unmeasured(CellStatus::Measured)
    }
}

/// A cell without numbers.
#[must_use]
pub(super) const fn unmeasured(status: CellStatus) -> PageCellRun {
    PageCellRun {
        row: String::new(),
        column: String::new(),
        repeat: 1,
        status,
        page: None,
        path: None,
        validity: None,
        samples: 0,
        missed: None,
        figures: Vec::new(),
        gates: Vec::new(),
        error: None,
    }
}

fn figures(run: &Run) -> Vec<PageRunFigure> {
    let own = figures_of(&run.document);
    let names: Vec<&str> = whole(&run.document).map(|series| series.name.as_str()).collect();
    let intervals = RunIntervals::of(run);
    let of = |name: &str| -> Option<&NamedInterval> {
        let series = intervals.series.iter().filter(|series| names.contains(&series.name.as_str()));
        let found = series.flat_map(|series| &series.percentiles);
        found.filter(|own| own.percentile == name).max_by_key(|own| own.value_ns)
    };
    let figure = |(at, name): (usize, &&str)| {
        let value_ns = own.values.get(at).copied().flatten()?;
        let interval = of(name);
        let is_few = own.uncertain.get(at).copied().unwrap_or(false);
        Some(PageRunFigure {
            name: (*name).to_owned(),
            value_ns,
            low_ns: interval.and_then(|own| own.low_ns),
            high_ns: interval.and_then(|own| own.high_ns),
            uncertain: is_few || interval.is_some_and(|own| own.backing == "too_few"),
        })
    };
    FIGURES.iter().enumerate().filter_map(figure).collect()
}

fn gate(result: &GateResult) -> PageGate {
    PageGate {
        gate: result.gate.clone(),
        series: result.series.clone(),
        verdict: result.verdict.as_str().into(),
        reason: result.reason.clone(),
    }
}
