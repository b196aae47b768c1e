//! `tardy list` and `tardy show`: what is there, and the tables of one run.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    report::{collect, table::Table, terminal, words},
    run::{Document, Run},
    store::Store,
    units::{Nanos, span},
};

/// List the runs, oldest first.
#[derive(Debug, Args)]
pub struct ListFlags {
    #[command(flatten)]
    format: FormatFlags,
}

/// Show the tables of one run, its verdict and caveats first.
#[derive(Debug, Args)]
pub struct ShowFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    #[command(flatten)]
    format: FormatFlags,
}

/// Prints a line per run; those that cannot be opened are told on standard error.
pub fn list(flags: &ListFlags, store: &Store) -> Result<Exit> {
    let (runs, damaged) = store.list();
    if flags.format.is_json() {
        let lines: Vec<_> = runs.iter().map(entry).collect();
        output::put(&(serde_json::to_string_pretty(&lines)? + "\n"))?;
    } else if runs.is_empty() {
        output::tell(&format!("No runs in {}; `tardy run` makes one.", store.root().display()));
    } else {
        let mut table = Table::new(5, &["id", "name", "status", "verdict", "measured", "worst"]);
        runs.iter().for_each(|run| table.row(cells(&run.document)));
        output::put(&(table.lines().join("\n") + "\n"))?;
    }
    damaged.iter().for_each(|error| output::tell(&format!("warning: {error}")));
    Ok(Exit::Done)
}

fn entry(run: &Run) -> serde_json::Value {
    let document = &run.document;
    json!({
        "id": document.id,
        "name": document.name,
        "path": run.path,
        "status": document.status,
        "validity": document.validity,
        "probe": document.probe.name(),
        "transport": document.messages.as_ref().map(|messages| messages.transport.as_str()),
        "loads": document.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(),
        "started_at": document.started_at,
        "duration_ns": document.duration_ns,
        "max": worst(document),
    })
}

fn cells(document: &Document) -> Vec<String> {
    let seconds = document.duration_ns as f64 / 1e9;
    let name = if document.name == document.id { String::new() } else { document.name.clone() };
    vec![
        document.id.clone(),
        name,
        document.status.as_str().into(),
        document.validity.as_str().into(),
        format!("{} {}, {}", words::probe(document), words::loads(document), span(seconds)),
        worst(document).map_or_else(|| "-".into(), |ns| Nanos(ns).to_string()),
    ]
}

fn worst(document: &Document) -> Option<i64> {
    document.wakeups().filter_map(|series| series.max).max()
}

/// Prints one run.
pub fn show(flags: &ShowFlags, store: &Store) -> Result<Exit> {
    let mut run = store.find(&flags.run)?;
    if flags.format.is_json() {
        output::put(&(serde_json::to_string_pretty(&run.document)? + "\n"))?;
    } else {
        // First: a file that is damaged is a caveat, and these come first.
        let moved = collect::interrupts(&mut run);
        let place = run.path.display().to_string();
        output::put(&terminal::show(&run.document, &place, &moved))?;
    }
    Ok(Exit::Done)
}
