//! What gates that hold runs against others take, by the nights before: said before anything is
//! measured.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::Result;

use crate::{
    cli::{
        gates::RunGates,
        nights::{KnownRun, NightsGate},
    },
    report::compare::GateBase,
    run::{PlanCell, PlanRecord, RunEntry},
    store::{CampaignKind, Listing, Store},
    units::many,
};

/// A line a gate and cell; nothing without such gates.
pub(super) fn outlook(record: &PlanRecord, gates: &RunGates, store: &Store) -> Result<Vec<String>> {
    if !gates.names_runs() {
        return Ok(Vec::new());
    }
    let listing = store.listing()?;
    let measured = words(&listing);
    let runs = KnownRun::all(listing.runs);
    let mut lines: Vec<String> =
        gates.bases().iter().filter_map(|base| of_base(base, record, &runs)).collect();
    for gate in gates.nights() {
        let mut unknown = 0;
        for cell in cells(record) {
            let own = |run: &&KnownRun| measured.get(&run.listed.place) == Some(&cell.words);
            match runs.iter().rev().find(own) {
                Some(run) if run.listed.entry.whole().next().is_some() => {
                    let sides = gate.planned(&run.listed.entry);
                    lines.push(format!("{}: {}", cell.name, gate.gate().outlook(&sides, None)));
                }
                Some(_) => {}
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            let cells = many(unknown, "planned cell");
            lines.push(format!(
                "{}: no past of {cells} is in this store; how much nights differ is unknown",
                gate.gate()
            ));
        }
    }
    Ok(lines)
}

/// One of each name.
fn cells(record: &PlanRecord) -> Vec<&PlanCell> {
    let mut found: Vec<&PlanCell> = Vec::new();
    for cell in &record.cells {
        if !found.iter().any(|own| own.name == cell.name) {
            found.push(cell);
        }
    }
    found
}

/// The words of `tardy run` by which cells of earlier plans were measured, by their runs.
fn words(listing: &Listing) -> BTreeMap<PathBuf, Vec<String>> {
    let plans = listing.campaigns.iter().filter(|own| own.kind == CampaignKind::Plan);
    let mut found = BTreeMap::new();
    for plan in plans {
        // One that is damaged is told of by `tardy list`.
        let Ok(record) = PlanRecord::open(&plan.path) else { continue };
        let Some(place) = plan.path.file_name() else { continue };
        for PlanCell { path, words, .. } in record.cells {
            found.extend(path.map(|path| (PathBuf::from(place).join(path), words)));
        }
    }
    found
}

/// Of runs that are named their own nights tell.
fn of_base(base: &GateBase, record: &PlanRecord, runs: &Arc<[KnownRun]>) -> Option<String> {
    let like = RunEntry::from(base.runs().first()?.clone());
    let known = NightsGate::among(base.gate().clone(), Arc::clone(runs));
    let sides = (base.runs().len(), record.repeat as usize);
    Some(base.gate().outlook(&known.planned(&like), Some(sides)))
}
