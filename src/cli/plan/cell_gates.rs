//! The gates of a plan, of its file and of the command line, and what its cells say of them.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, anyhow};
use clap::{Args as _, Command, FromArgMatches as _};
use serde::Serialize;

use super::PlanFlags;
use crate::{
    cli::gates::{self, GateFlags, RunGates},
    plan::Plan,
    report::{
        finding::{PlanFinding, SharedGate},
        gate_decision::GateResult,
        plan_sheet::AskedGates,
    },
    run::{Document, PlanCell, PlanRecord, Run},
};

/// What gates are of that no cell can decide.
pub(super) const THE_PLAN: &str = "the plan";

/// A gate, and what one cell says of it.
#[derive(Serialize)]
pub(in crate::cli) struct CellGate {
    /// The path of the cell; of a gate for all repeats of a cell, its name.
    pub(in crate::cli) cell: String,
    #[serde(flatten)]
    pub(in crate::cli) result: GateResult,
}

/// The gates that a plan was begun with, of its file and its command line; none of the command line
/// where that cannot be read.
pub(in crate::cli) fn gates_of(record: &PlanRecord) -> GateFlags {
    let is_verb = |word: &&String| matches!(word.as_str(), "plan" | "suite");
    let words = record.argv.iter().skip_while(|word| !is_verb(word)).skip(1);
    let plan = Command::new("plan").no_binary_name(true).ignore_errors(true);
    let matches = PlanFlags::augment_args(plan).try_get_matches_from(words);
    let flags = matches.ok().and_then(|found| GateFlags::from_arg_matches(&found).ok());
    let mut gates = flags.unwrap_or_default();
    gates.gates.extend(record.gates.iter().filter_map(|gate| gate.parse().ok()));
    gates
}

/// The gates of the command line, and those that a record has of the plan's file.
///
/// # Errors
/// One that is not a gate.
pub(super) fn with_those_of(flags: &GateFlags, record: &PlanRecord) -> Result<GateFlags> {
    let mut all = flags.clone();
    for gate in &record.gates {
        let refused = |why: String| anyhow!("--resume: gates of the plan's record: {why}");
        all.gates.push(gate.parse().map_err(refused)?);
    }
    Ok(all)
}

/// The same of a file.
///
/// # Errors
/// One that is not a gate, with its line.
pub(super) fn with_those_of_file(flags: &GateFlags, plan: &Plan, file: &str) -> Result<GateFlags> {
    let mut all = flags.clone();
    for gate in &plan.gates {
        let refused = |why: String| anyhow!(gate.refusal(file, &why));
        all.gates.push(gate.text.parse().map_err(refused)?);
    }
    Ok(all)
}

/// What all repeats of each cell say of gates that hold them against others.
pub(in crate::cli) fn repeated(
    record: &PlanRecord,
    runs: &[Option<Run>],
    gates: &RunGates,
) -> Result<Vec<CellGate>> {
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for cell in &record.cells {
        if names.contains(&cell.name.as_str()) {
            continue;
        }
        names.push(&cell.name);
        let own = record.cells.iter().zip(runs).filter(|(other, _)| other.name == cell.name);
        let own: Vec<&Run> = own.filter_map(|(_, run)| run.as_ref()).collect();
        let named = |result| CellGate { cell: cell.name.clone(), result };
        // Gates of latencies are not for cells that have none.
        let Some(first) = own.first() else { continue };
        let results = gates.of_run(&first.document).decide_worse(&own)?;
        found.extend(results.into_iter().map(named));
    }
    Ok(found)
}

/// What a plan comes to, in one sentence; `found` is what came of its gates, of which it has
/// `asked`.
pub(super) fn finding(
    record: &PlanRecord,
    runs: &[Option<Document>],
    found: &[CellGate],
    asked: usize,
) -> String {
    let paths: HashSet<&str> =
        record.cells.iter().filter_map(|cell| cell.path.as_deref()).collect();
    let mut of_cells: HashMap<&str, Vec<&GateResult>> = HashMap::new();
    let mut shared = Vec::new();
    for gate in found {
        match paths.contains(gate.cell.as_str()) {
            true => of_cells.entry(&gate.cell).or_default().push(&gate.result),
            false => {
                let of = if gate.cell == THE_PLAN { "" } else { &gate.cell };
                shared.push(SharedGate { of, result: &gate.result });
            }
        }
    }
    let gates = |at: usize| {
        let path = record.cells.get(at).and_then(|cell| cell.path.as_deref());
        path.and_then(|path| of_cells.get(path)).cloned().unwrap_or_default()
    };
    let run = |at: usize| runs.get(at).and_then(Option::as_ref);
    let asked = AskedGates { asked, undecided: 0 };
    PlanFinding::of(record, run, gates, asked).with_shared(shared).sentence()
}

/// The table of reasons, under the name of each cell.
pub(super) fn put_gates(record: &PlanRecord, found: &[CellGate]) -> Result<()> {
    let named = |gate: &CellGate| {
        let is_it = |cell: &&PlanCell| cell.path.as_ref() == Some(&gate.cell);
        let cell = record.cells.iter().find(is_it);
        let cell = cell.map(|cell| format!("{}, repeat {}", cell.name, cell.repeat));
        let cell = cell.unwrap_or_else(|| format!("{}, all repeats", gate.cell));
        let series = gate.result.series.as_deref().unwrap_or("all");
        let series = Some(format!("{cell}: {series}"));
        GateResult { series, ..gate.result.clone() }
    };
    let all: Vec<GateResult> = found.iter().map(named).collect();
    gates::put((!all.is_empty()).then_some(all.as_slice()))
}
