//! `tardy list` and `tardy show`: all runs, and the tables of one run.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    report::{collect, table::Table, terminal, words},
    run::RunEntry,
    store::Store,
    units::{Nanos, span},
};

/// List the runs, oldest first.
#[derive(Debug, Args)]
pub(super) struct ListFlags {
    #[command(flatten)]
    format: FormatFlags,
}

/// Show the tables of one run, its verdict and caveats first.
#[derive(Debug, Args)]
pub(super) struct ShowFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    format: FormatFlags,
}

/// Prints a line per run; errors of runs that cannot be opened go to standard error.
pub(super) fn list(flags: &ListFlags, store: &Store) -> Result<Exit> {
    let (runs, damaged) = store.list();
    if flags.format.is_json() {
        let lines: Vec<_> = runs.iter().map(entry).collect();
        output::put_json(&lines)?;
    } else if runs.is_empty() {
        output::notice(&format!("No runs in {}; `tardy run` makes one.", store.root().display()));
    } else {
        let mut table = Table::new(5, &["id", "name", "status", "verdict", "measured", "worst"]);
        runs.iter().for_each(|run| table.row(cells(run)));
        output::put(&(table.lines().join("\n") + "\n"))?;
    }
    damaged.iter().for_each(|error| output::warn(&error.to_string()));
    Ok(Exit::Done)
}

fn entry(run: &RunEntry) -> serde_json::Value {
    json!({
        "id": run.id,
        "name": run.name,
        "path": run.path,
        "status": run.status,
        "validity": run.validity,
        "probe": run.probe.name(),
        "transport": run.messages.as_ref().map(|messages| messages.transport.as_str()),
        "loads": run.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(),
        "started_at": run.started_at,
        "duration_ns": run.duration_ns,
        "max": run.max(),
    })
}

fn cells(run: &RunEntry) -> Vec<String> {
    let probe = words::probe(&run.probe, run.messages.as_ref());
    let length = span(run.duration_ns as f64 / 1e9);
    let name = if run.name == run.id { String::new() } else { run.name.clone() };
    vec![
        run.id.clone(),
        name,
        run.status.as_str().into(),
        run.validity.as_str().into(),
        format!("{probe} {}, {length}", words::loads(&run.loads)),
        run.max().map_or_else(|| "-".into(), |ns| Nanos(ns).to_string()),
    ]
}

/// Prints one run.
pub(super) fn show(flags: &ShowFlags, store: &Store) -> Result<Exit> {
    let run = store.find(&flags.run)?;
    if flags.format.is_json() {
        output::put_json(&run.document)?;
    } else {
        let mut caveats = Vec::new();
        let moved = collect::interrupts(&run, &mut caveats);
        let place = run.path.display().to_string();
        output::put(&terminal::show(&run.record_with(caveats), &place, &moved))?;
    }
    Ok(Exit::Done)
}
