//! `tardy lab publish`: counted figures as one file that anybody can repeat to the last bit.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::json;

use super::{
    compare,
    repeater::{Repeater, refuse_others},
};
use crate::limits::matrix::{JSON, LARGEST_PUBLISHED as LARGEST};
use crate::{
    cli::{Exit, output, report as page},
    lab::cell::published::{PublishedCell, PublishedRuns},
    plain::plain_path,
    report::{table::Table, terminal::fold},
    run::{Author, Document, files},
    store::Store,
    units::many,
};

/// Write the metrics of lab runs to a file that others can verify.
///
/// For each run the file has the inputs that determine its samples, a hash of all samples, and the
/// metrics, but no samples. With the same tardy, kernel and QEMU, `tardy lab verify --published
/// FILE` gives the same results anywhere.
#[derive(Debug, Args)]
pub(super) struct PublishFlags {
    /// Output directory of `tardy lab run`, or runs in it (mode deterministic)
    #[arg(value_name = "PLACE", required = true)]
    places: Vec<String>,
    /// File to write; an existing one is replaced
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

/// Reads such a file, if the caller alone can have written it.
pub(super) fn read(file: &Path) -> Result<PublishedRuns> {
    let named = || format!("--published {}", file.display());
    let unreadable = || format!("{}: cannot read", named());
    let open = files::open(file).with_context(unreadable)?;
    let author = Author::of(&open).with_context(unreadable)?;
    let place = plain_path(file);
    refuse_others(author, &named(), |distrust| distrust.remedy(&place))?;
    let text = files::read_whole(&open, LARGEST).with_context(unreadable)?;
    JSON.check(&text).map_err(|what| anyhow!("{}: {what}", named()))?;
    let parsed: PublishedRuns = serde_json::from_slice(&text)
        .with_context(|| format!("{}: `tardy lab publish` writes such files", named()))?;
    parsed.check().with_context(named)?;
    Ok(parsed)
}

/// What came of one run.
struct Repeated<'a> {
    cell: &'a PublishedCell,
    outcome: Outcome,
}

/// Whether a repetition gives what was published.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Same,
    /// In what it differs.
    Different(String),
    /// Why a repetition is missing.
    NotRepeated(String),
}

impl Outcome {
    fn of(cell: &PublishedCell, again: Result<Document>) -> Self {
        match again.map(|again| cell.difference(&again)) {
            Ok(None) => Self::Same,
            Ok(Some(why)) => Self::Different(why),
            Err(error) => Self::NotRepeated(format!("{error:#}")),
        }
    }

    fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Same => ("the same", ""),
            Self::Different(why) => ("different", why),
            Self::NotRepeated(why) => ("not repeated", why),
        }
    }
}

/// Repeats at most the given number of these runs, and prints the result of each.
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
        repeated.push(Repeated { cell, outcome: Outcome::of(cell, repeater.repeat(lab)) });
    }
    let is_whole = repeated.len() == cells.len();
    if as_json {
        put_json(&repeated, cells.len())?;
    } else {
        put(&repeated, cells.len())?;
    }
    let outcomes: Vec<&Outcome> = repeated.iter().map(|one| &one.outcome).collect();
    Ok(exit(&outcomes, is_whole))
}

/// A difference is a no; what could not be repeated leaves it open.
fn exit(outcomes: &[&Outcome], is_whole: bool) -> Exit {
    let is = |wanted: fn(&Outcome) -> bool| outcomes.iter().any(|outcome| wanted(outcome));
    if is(|outcome| matches!(outcome, Outcome::Different(_))) {
        return Exit::No;
    }
    let is_open = !is_whole || outcomes.is_empty();
    match is_open || is(|outcome| matches!(outcome, Outcome::NotRepeated(_))) {
        true => Exit::Inconclusive,
        false => Exit::Done,
    }
}

fn put(repeated: &[Repeated], planned: usize) -> Result<()> {
    let mut table = Table::new(5, &["load", "kernel", "phase", "again", "why"]);
    for one in repeated {
        let lab = &one.cell.lab;
        let (result, why) = one.outcome.words();
        let phase = lab.seed.to_string();
        table.row(vec![lab.load.clone(), lab.kernel.clone(), phase, result.into(), why.into()]);
    }
    let same = repeated.iter().filter(|one| one.outcome == Outcome::Same).count();
    let sum =
        format!("{same} of {} gave the same samples and figures.", many(planned as u64, "run"));
    output::put(&fold(&format!("{}\n{sum}\n", table.lines().join("\n")), output::width()))
}

fn put_json(repeated: &[Repeated], planned: usize) -> Result<()> {
    let cell = |one: &Repeated| {
        let lab = &one.cell.lab;
        let (result, why) = one.outcome.words();
        json!({
            "load": lab.load,
            "kernel": lab.kernel,
            "phase": lab.seed,
            "sample_hash": lab.sample_hash,
            "again": result.replace(' ', "_"),
            "why": Some(why).filter(|why| !why.is_empty()),
        })
    };
    let cells: Vec<_> = repeated.iter().map(cell).collect();
    output::put_json(&json!({ "planned": planned, "cells": cells }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_difference_is_a_no_and_what_was_not_repeated_stays_open() {
        let (same, other) = (Outcome::Same, Outcome::Different("x".into()));
        let open = Outcome::NotRepeated("another QEMU".into());
        assert_eq!(exit(&[&same, &same], true), Exit::Done);
        assert_eq!(exit(&[&same, &other, &open], true), Exit::No);
        assert_eq!(exit(&[&same, &open], true), Exit::Inconclusive);
        assert_eq!(exit(&[&same], false), Exit::Inconclusive, "stopped before the end");
        assert_eq!(exit(&[], true), Exit::Inconclusive);
    }
}
