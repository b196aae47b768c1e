//! Runs and cells of plans with what their gates came to: test reports.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};

use super::ExportFlags;
use crate::{
    cli::{
        Exit,
        gates::{self, RunGates},
        lab::{Gathered, gather},
        plan::{CellGate, gates_of, repeated},
    },
    exchange::export::CheckedRun,
    run::{CellStatus, PLAN, PlanRecord, Run, lab::LAB},
    store::Store,
};

/// The runs with their checks, and the exit code.
pub(super) fn checked(
    flags: &ExportFlags,
    store: &Store,
    write: impl FnOnce(&[CheckedRun]) -> io::Result<Vec<u8>>,
) -> Result<(Vec<u8>, Exit)> {
    let mut exit = Exit::Done;
    let mut checked = Vec::new();
    let gates = flags.gates.find(store)?;
    for name in &flags.runs {
        if let Some(place) = lab_place(name, store) {
            let (cells, own) = lab_cells(&place, &gates, store).with_context(|| name.clone())?;
            checked.extend(cells);
            exit = exit.worst(own);
            continue;
        }
        if let Some(place) = plan_place(name, store) {
            let (cells, own) = cells(&place, flags, store).with_context(|| name.clone())?;
            checked.extend(cells);
            exit = exit.worst(own);
            continue;
        }
        let run = store.find(name)?;
        let found = gates.decide(&run).map_err(|error| anyhow!("{name}: {error}"))?;
        exit = exit.worst(gates::exit(&run.document, found.as_deref()));
        checked.push(CheckedRun::of(&run.document, &found.unwrap_or_default()));
    }
    CheckedRun::tell_apart(&mut checked);
    Ok((write(&checked)?, exit))
}

/// Where this is a plan.
fn plan_place(name: &str, store: &Store) -> Option<PathBuf> {
    store.place_of(Path::new(name)).filter(|place| place.join(PLAN).is_file())
}

/// Where this is a directory of the lab.
fn lab_place(name: &str, store: &Store) -> Option<PathBuf> {
    store.place_of(Path::new(name)).filter(|place| place.join(LAB).is_file())
}

/// The cells of a matrix with their checks, and the exit code.
fn lab_cells(place: &Path, gates: &RunGates, store: &Store) -> Result<(Vec<CheckedRun>, Exit)> {
    let Gathered { runs, records, .. } = gather(&[place.display().to_string()], store)?;
    let (_, record) = records.first().context("it has no lab.json")?;
    let phases: BTreeSet<u32> =
        runs.iter().filter_map(|run| Some(run.document.facts.lab.as_ref()?.seed)).collect();
    let (mut exit, mut checked) = (Exit::Done, Vec::new());
    for run in &runs {
        let found = gates.decide(run)?;
        exit = exit.worst(gates::exit(&run.document, found.as_deref()));
        let own = CheckedRun::of(&run.document, &found.unwrap_or_default());
        checked.push(own.in_matrix(record, &run.document, phases.len() > 1));
    }
    for failure in &record.failed {
        checked.push(CheckedRun::failed(record, failure, phases.len() > 1));
    }
    if record.undone > 0 {
        checked.push(CheckedRun::undone(record));
    }
    let is_whole = record.failed.is_empty() && record.undone == 0;
    Ok((checked, if is_whole { exit } else { exit.worst(Exit::Invalid) }))
}

/// The cells of a plan with their checks, by the gates that are named, or else by those that it
/// was begun with; and the exit code.
fn cells(place: &Path, flags: &ExportFlags, store: &Store) -> Result<(Vec<CheckedRun>, Exit)> {
    let record = PlanRecord::open(place)?;
    let named = if flags.gates.is_empty() { gates_of(&record) } else { flags.gates.clone() };
    let gates = named.find(store)?;
    let (mut exit, mut checked, mut runs) = (Exit::Done, Vec::new(), Vec::new());
    for cell in &record.cells {
        let path = cell.path.as_ref().filter(|_| cell.status == CellStatus::Measured);
        let Some(path) = path else {
            exit = exit.worst(Exit::Invalid);
            checked.push(CheckedRun::unmeasured(&record, cell));
            runs.push(None);
            continue;
        };
        let run = Run::open(&place.join(path))?;
        let found = gates.of_run(&run.document).decide_limits(&run)?;
        exit = exit.worst(gates::exit(&run.document, found.as_deref()));
        let own = CheckedRun::of(&run.document, &found.unwrap_or_default());
        checked.push(own.in_cell(&record, cell));
        runs.push(Some(run));
    }
    for CellGate { cell, result } in repeated(&record, &runs, &gates)? {
        exit = exit.worst(gates::verdict(Some(std::slice::from_ref(&result))));
        let first = record.cells.iter().position(|own| own.name == cell);
        if let Some(first) = first.and_then(|at| checked.get_mut(at)) {
            first.extend(&[result]);
        }
    }
    Ok((checked, exit))
}
