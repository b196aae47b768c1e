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
    plain::plain_path,
    run::{CellStatus, PlanCell, PlanRecord, Run},
    store::{CampaignKind, Candidates, PlaceKind, Store},
};

/// What was checked so far, and the exit code.
struct Checks {
    checked: Vec<CheckedRun>,
    exit: Exit,
}

/// The runs with their checks; adds to the exit code.
pub(super) fn checked(
    flags: &ExportFlags,
    store: &Store,
    exit: &mut Exit,
    write: impl FnOnce(&[CheckedRun]) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let gates = flags.gates.find(store)?;
    let chosen = flags.names()?.choose(store, Candidates::All)?;
    let is_only = chosen.places.len() == 1 && chosen.skipped.is_empty();
    let mut all = Checks { checked: Vec::new(), exit: *exit };
    for place in &chosen.places {
        let shown = || plain_path(&place.path);
        match place.kind {
            PlaceKind::Lab => {
                let (cells, own) = lab_cells(&place.path, &gates, store).with_context(shown)?;
                all.add(cells, own);
            }
            PlaceKind::Campaign(CampaignKind::Plan) => match PlanRecord::open(&place.path) {
                Ok(record) => {
                    let found = cells(&place.path, &record, flags, store).with_context(shown)?;
                    all.add(found.checked, found.exit);
                }
                Err(error) if is_only => return Err(error.into()),
                Err(error) => all.add_unreadable(&place.path, &error.to_string()),
            },
            PlaceKind::Campaign(CampaignKind::Comparison) | PlaceKind::Run => match place.runs() {
                Ok(runs) => all.add_runs(&runs, &gates, is_only)?,
                Err(error) if is_only => return Err(error.into()),
                Err(error) => all.add_unreadable(&place.path, &error.to_string()),
            },
        }
    }
    chosen.skipped.tell(chosen.places.len() as u64)?;
    *exit = if chosen.skipped.is_empty() { all.exit } else { all.exit.worst(Exit::Invalid) };
    CheckedRun::tell_apart(&mut all.checked);
    Ok(write(&all.checked)?)
}

impl Checks {
    fn add(&mut self, checked: Vec<CheckedRun>, exit: Exit) {
        self.checked.extend(checked);
        self.exit = self.exit.worst(exit);
    }

    /// What cannot be read is an error of the report: nobody knows what it would have said.
    fn add_unreadable(&mut self, place: &Path, why: &str) {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        self.add(vec![CheckedRun::unreadable(&name, why)], Exit::Invalid);
    }

    /// Runs by themselves; `is_only` if nothing else is in the report.
    fn add_runs(&mut self, places: &[PathBuf], gates: &RunGates, is_only: bool) -> Result<()> {
        for place in places {
            let run = match Run::open(place) {
                Ok(run) => run,
                Err(error) if is_only && places.len() == 1 => return Err(error.into()),
                Err(error) => {
                    self.add_unreadable(place, &error.to_string());
                    continue;
                }
            };
            let name = &run.document.name;
            let found = gates.decide(&run).map_err(|error| anyhow!("{name}: {error}"))?;
            let checked = CheckedRun::of(&run.document, found.as_deref().unwrap_or_default());
            self.add(vec![checked], gates::exit(&run.document, found.as_deref()));
        }
        Ok(())
    }
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
/// was begun with.
fn cells(place: &Path, record: &PlanRecord, flags: &ExportFlags, store: &Store) -> Result<Checks> {
    let named = if flags.gates.is_empty() { gates_of(record) } else { flags.gates.clone() };
    let gates = named.find(store)?;
    let (mut all, mut runs) = (Checks { checked: Vec::new(), exit: Exit::Done }, Vec::new());
    for cell in &record.cells {
        let run = measured(place, cell);
        match &run {
            Ok(run) => {
                let found = gates.of_run(&run.document).decide_limits(run)?;
                let exit = gates::exit(&run.document, found.as_deref());
                let own = CheckedRun::of(&run.document, &found.unwrap_or_default());
                all.add(vec![own.in_cell(record, cell)], exit);
            }
            Err(cell) => all.add(vec![CheckedRun::unmeasured(record, cell)], Exit::Invalid),
        }
        runs.push(run.ok());
    }
    for CellGate { cell, result } in repeated(record, &runs, &gates)? {
        all.exit = all.exit.worst(gates::verdict(Some(std::slice::from_ref(&result))));
        let first = record.cells.iter().position(|own| own.name == cell);
        if let Some(first) = first.and_then(|at| all.checked.get_mut(at)) {
            first.extend(&[result]);
        }
    }
    Ok(all)
}

/// The run of a cell; of one without a run that can be read the cell with the reason.
fn measured(place: &Path, cell: &PlanCell) -> Result<Run, Box<PlanCell>> {
    let path = cell.path.as_ref().filter(|_| cell.status == CellStatus::Measured);
    let Some(path) = path else { return Err(Box::new(cell.clone())) };
    Run::open(&place.join(path)).map_err(|error| {
        let error = Some(error.to_string());
        Box::new(PlanCell { error, ..cell.clone() })
    })
}
