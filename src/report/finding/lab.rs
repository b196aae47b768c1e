//! The finding of a matrix of the lab: what fails, else how kernels differ, else the worst latency.

use super::{DECIDING, listed, sentence, worst_words};
use crate::{
    analysis::{
        Matrix,
        matrix::{Figure, Judgement, MatrixCell},
    },
    report::{
        gate_decision::{GateResult, GateVerdict},
        lab::{MatrixView, figure_name},
    },
    run::AbVerdict,
    units::many,
};

/// Metrics by which kernels are told apart, the one first that decides where several are judged in
/// as many rows.
const TOLD_BY: [&str; 4] = ["99.9", "99", "max", "50"];

/// Kernels that are named with what is judged of them.
const MOST_KERNELS: usize = 3;

/// The sentence; `gates` is what came of them, if there were some.
#[must_use]
pub fn of_lab(sheet: &MatrixView, gates: Option<&[GateResult]>) -> String {
    let matrix = &sheet.matrix;
    let mut parts: Vec<String> = invalid(matrix).into_iter().collect();
    parts.extend(gates.map(of_gates));
    let judged = judged(matrix);
    match judged.is_empty() {
        true => parts.extend(worst(matrix)),
        false => parts.extend(judged),
    }
    if parts.is_empty() {
        parts.push("no run was measured".into());
    }
    if !sheet.failed.is_empty() {
        parts.push(format!("{} failed", many(sheet.failed.len() as u64, "run")));
    }
    if sheet.undone > 0 {
        parts.push(format!("{} not measured yet", many(sheet.undone as u64, "run")));
    }
    sentence(parts)
}

/// The cells of a matrix with their places, without those that repeat a kernel.
fn cells(matrix: &Matrix) -> impl Iterator<Item = (String, &MatrixCell)> {
    matrix.loads.iter().flat_map(move |row| {
        let columns = matrix.kernels.iter().zip(&row.cells);
        columns.filter(|(kernel, _)| !kernel.is_control).filter_map(move |(kernel, cell)| {
            Some((format!("{} under {}", row.name, kernel.name), cell.as_ref()?))
        })
    })
}

fn invalid(matrix: &Matrix) -> Option<String> {
    let invalid = cells(matrix).filter(|(_, cell)| !cell.invalid.is_empty());
    let invalid: Vec<String> = invalid.map(|(place, _)| place).collect();
    let all = many(cells(matrix).count() as u64, "cell");
    (!invalid.is_empty())
        .then(|| format!("invalid: {} of {all}: {}", invalid.len(), listed(&invalid)))
}

/// `2 of 24 cells fail p99<=80us: files, rt: 3 of 5 phase offsets; ...`
fn of_gates(results: &[GateResult]) -> String {
    let with = |verdict| results.iter().filter(move |result| result.verdict == verdict);
    let all = many(results.len() as u64, "gate result");
    let first = |verdict| {
        let first = with(verdict).next();
        first.map(|gate| {
            let place = gate.series.as_deref().unwrap_or("all");
            format!("{} at {place}: {}", gate.gate, gate.reason)
        })
    };
    let (failed, open) = (with(GateVerdict::Fail).count(), with(GateVerdict::Inconclusive).count());
    match (first(GateVerdict::Fail), first(GateVerdict::Inconclusive)) {
        (Some(first), _) => format!("{failed} of {all} fail: {first}"),
        (None, Some(first)) => {
            format!("inconclusive: no gate fails, but {open} of {all} are open: {first}")
        }
        (None, None) if results.is_empty() => "inconclusive: no gate is decided".into(),
        (None, None) => "no cell fails".into(),
    }
}

/// `against standard, p99 of rt is lower in 9 of 12 loads, the same in 3`
fn judged(matrix: &Matrix) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = 0;
    for (at, kernel) in matrix.kernels.iter().enumerate().filter(|(_, own)| !own.is_control) {
        let rows = matrix.loads.iter().flat_map(|row| {
            let own = row.judgements.iter().filter(move |own| own.kernel == at);
            own.map(|judgement| (row.name.as_str(), judgement))
        });
        let rows: Vec<(&str, &Judgement)> = rows.collect();
        let Some((figure, against)) = told_by(&rows) else { continue };
        if found.len() == MOST_KERNELS {
            left += 1;
            continue;
        }
        let base = matrix.kernels.get(against).map_or("?", |base| base.name.as_str());
        let name = figure_name(figure);
        let said = counted(&rows, figure);
        found.push(format!("against {base}, {name} of {} is {said}", kernel.name));
    }
    if left > 0 {
        found.push(format!("{} more below", many(left, "kernel")));
    }
    found
}

/// The metric that is judged in most rows, and the column that it is compared with.
fn told_by(rows: &[(&str, &Judgement)]) -> Option<(&'static str, usize)> {
    let against = rows.iter().find(|(_, own)| !own.figures.is_empty())?.1.against;
    let judged = |name: &str| {
        let has = |own: &Judgement| own.figures.iter().any(|figure| figure.figure == name);
        rows.iter().filter(|(_, own)| has(own)).count()
    };
    // Of equal ones the first.
    let best = TOLD_BY.into_iter().rev().max_by_key(|name| judged(name))?;
    Some((best, against))
}

fn counted(rows: &[(&str, &Judgement)], figure: &str) -> String {
    let words = [
        (AbVerdict::Worse, "higher"),
        (AbVerdict::Better, "lower"),
        (AbVerdict::Same, "the same"),
        (AbVerdict::Inconclusive, "inconclusive"),
    ];
    let verdict = |own: &Judgement| {
        own.figures.iter().find(|own| own.figure == figure).map(|own| own.verdict)
    };
    let mut said: Vec<String> = Vec::new();
    for (wanted, word) in words {
        let own = rows.iter().filter(|(_, own)| verdict(own) == Some(wanted));
        let own: Vec<String> = own.map(|(row, _)| (*row).to_owned()).collect();
        if own.is_empty() {
            continue;
        }
        let loads = match said.is_empty() {
            true => format!("{} of {}", own.len(), many(rows.len() as u64, "load")),
            false => own.len().to_string(),
        };
        let names = match wanted {
            AbVerdict::Worse => format!(" ({})", listed(&own)),
            _ => String::new(),
        };
        said.push(format!("{word} in {loads}{names}"));
    }
    let open = rows.iter().filter(|(_, own)| verdict(own).is_none()).count();
    if open > 0 {
        said.push(format!("not judged in {open}"));
    }
    said.join(", ")
}

/// The worst latency, by the highest percentile that all cells have enough samples for.
fn worst(matrix: &Matrix) -> Option<String> {
    let believed: Vec<(String, &MatrixCell)> = cells(matrix)
        .filter(|(_, cell)| cell.invalid.is_empty() && !cell.figures.is_empty())
        .collect();
    let of = |cell: &MatrixCell, name: &str| -> Option<Figure> {
        cell.figures.iter().find(|own| own.name == name).cloned()
    };
    let is_certain = |name: &&str| {
        believed.iter().all(|(_, cell)| of(cell, name).is_some_and(|own| !own.uncertain))
    };
    let figure = DECIDING.into_iter().find(is_certain).unwrap_or("max");
    let found = believed.iter().filter_map(|(place, cell)| Some((of(cell, figure)?.high, place)));
    let (value_ns, place) = found.max_by_key(|(value_ns, _)| *value_ns)?;
    Some(format!("{}, at {place}", worst_words(figure, "", value_ns)))
}
