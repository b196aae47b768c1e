//! `tardy lab publish`: counted figures as one file that anybody can repeat to the last bit.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::{compare, repeater::Repeater};
use crate::{
    cli::{Exit, output, report as page},
    lab::cell::published::{PublishedCell, PublishedRuns},
    report::{table::Table, terminal::fold},
    run::files,
    store::Store,
};

/// No file of these comes near it.
const LARGEST: u64 = 64 << 20;

/// Write the figures of runs of the lab to a file that others can verify.
///
/// The file has for each run what decides its samples, the hash of all of them, and the figures,
/// but no samples. With the same tardy, kernel and QEMU `tardy lab verify --published FILE` gives
/// the same samples anywhere.
#[derive(Debug, Args)]
pub(super) struct PublishFlags {
    /// Output directory of `tardy lab run`, or runs in it, measured with --mode deterministic
    #[arg(value_name = "PLACE", required = true)]
    places: Vec<String>,
    /// The file to write; an older one is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Writes the file.
pub(super) fn publish(flags: &PublishFlags, store: &Store) -> Result<Exit> {
    let gathered = compare::gather(&flags.places, store)?;
    let published = PublishedRuns::of(&gathered.runs)?;
    let text = serde_json::to_string_pretty(&published)? + "\n";
    page::write(&flags.output, text.as_bytes())?;
    Ok(Exit::Done)
}

/// Reads such a file.
pub(super) fn read(file: &Path) -> Result<PublishedRuns> {
    let named = || format!("--published {}", file.display());
    let text = files::read(file, LARGEST).with_context(|| format!("{}: cannot read", named()))?;
    let parsed: PublishedRuns = serde_json::from_slice(&text)
        .with_context(|| format!("{}: `tardy lab publish` writes such files", named()))?;
    parsed.check().with_context(named)?;
    Ok(parsed)
}

/// What came of one run.
struct Repeated<'a> {
    cell: &'a PublishedCell,
    /// The hash of the samples now, or why there are none.
    now: Result<String, String>,
}

impl Repeated<'_> {
    /// Whether the samples are the same; none where it could not be repeated.
    fn is_same(&self) -> Option<bool> {
        self.now.as_ref().ok().map(|now| Some(now) == self.cell.lab.sample_hash.as_ref())
    }
}

/// Repeats at most so many of these runs, and prints what came of each.
pub(super) fn repeat(
    published: &PublishedRuns,
    most: usize,
    repeater: &Repeater,
    as_json: bool,
) -> Result<Exit> {
    let cells = published.some(most);
    let mut repeated = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        if repeater.is_stopped() {
            break;
        }
        let lab = &cell.lab;
        output::notice(&format!(
            "{}/{} {} under {}, phase {}",
            number + 1,
            cells.len(),
            lab.load,
            lab.kernel,
            lab.seed
        ));
        let now = repeater.repeat(lab).map(|outcome| outcome.now);
        repeated.push(Repeated { cell, now: now.map_err(|error| format!("{error:#}")) });
    }
    let is_whole = repeated.len() == cells.len();
    if as_json {
        put_json(&repeated, cells.len())?;
    } else {
        put(&repeated, cells.len())?;
    }
    Ok(exit(&repeated, is_whole))
}

/// Different samples are a no; what could not be repeated leaves it open.
fn exit(repeated: &[Repeated], is_whole: bool) -> Exit {
    let results: Vec<Option<bool>> = repeated.iter().map(Repeated::is_same).collect();
    match () {
        () if results.contains(&Some(false)) => Exit::No,
        () if is_whole && !results.is_empty() && results.iter().all(Option::is_some) => Exit::Done,
        () => Exit::Inconclusive,
    }
}

fn put(repeated: &[Repeated], planned: usize) -> Result<()> {
    let mut table = Table::new(5, &["load", "kernel", "phase", "samples", "why"]);
    for one in repeated {
        let lab = &one.cell.lab;
        let (result, why) = match (one.is_same(), &one.now) {
            (Some(true), _) => ("the same", String::new()),
            (Some(false), Ok(now)) => ("different", format!("their hash is {now}")),
            (_, Err(why)) => ("not repeated", why.clone()),
            (None, Ok(_)) => ("not repeated", String::new()),
        };
        let phase = lab.seed.to_string();
        table.row(vec![lab.load.clone(), lab.kernel.clone(), phase, result.into(), why]);
    }
    let same = repeated.iter().filter(|one| one.is_same() == Some(true)).count();
    let sum = format!("{same} of {planned} runs gave the same samples.");
    output::put(&fold(&format!("{}\n{sum}\n", table.lines().join("\n")), output::width()))
}

fn put_json(repeated: &[Repeated], planned: usize) -> Result<()> {
    let cell = |one: &Repeated| {
        let lab = &one.cell.lab;
        json!({
            "load": lab.load,
            "kernel": lab.kernel,
            "phase": lab.seed,
            "same": one.is_same(),
            "sample_hash": lab.sample_hash,
            "sample_hash_now": one.now.as_ref().ok(),
            "why_not": one.now.as_ref().err(),
        })
    };
    let cells: Vec<_> = repeated.iter().map(cell).collect();
    output::put_json(&json!({ "planned": planned, "cells": cells }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LabFacts;

    #[test]
    fn one_other_sample_is_a_no_and_what_was_not_repeated_stays_open() {
        let lab = LabFacts { sample_hash: Some("aa".into()), ..LabFacts::default() };
        let cell = PublishedCell {
            tardy_version: String::new(),
            release: String::new(),
            series: std::collections::BTreeMap::new(),
            lab,
        };
        let of = |now: &[Result<&str, &str>], is_whole: bool| {
            let repeated: Vec<Repeated> = now
                .iter()
                .map(|now| Repeated {
                    cell: &cell,
                    now: now.map(str::to_owned).map_err(str::to_owned),
                })
                .collect();
            exit(&repeated, is_whole)
        };
        assert_eq!(of(&[Ok("aa"), Ok("aa")], true), Exit::Done);
        assert_eq!(of(&[Ok("aa"), Ok("ab"), Err("x")], true), Exit::No);
        assert_eq!(of(&[Ok("aa"), Err("another QEMU")], true), Exit::Inconclusive);
        assert_eq!(of(&[Ok("aa")], false), Exit::Inconclusive, "stopped before the end");
        assert_eq!(of(&[], true), Exit::Inconclusive);
    }
}
