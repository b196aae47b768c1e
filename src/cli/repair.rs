//! `tardy repair`: close the files of samples that a killed tardy left open.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    plain::plain,
    run::{
        Run, Status,
        repair::{RunRepair, SpoolRepair, repair},
    },
    store::Store,
    units::{count, many, span},
};

/// Close the sample files that a killed run left open
///
/// During a run with --raw the latest samples are in samples/NNNNNN.spool, which only tardy reads.
/// After a kill the file is still there. `repair` writes the missing Parquet file, reports which
/// samples are lost, and changes nothing else: the run remains "crashed". It refuses a run that is
/// still being measured; a run that ended normally needs no repair.
#[derive(Debug, Args)]
pub(super) struct RepairFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    #[command(flatten)]
    format: FormatFlags,
}

/// Repairs each, and prints what came of it; one that cannot be repaired keeps no other from it.
pub(super) fn run(flags: &RepairFlags, store: &Store) -> Result<Exit> {
    let (mut text, mut results, mut exit) = (String::new(), Vec::new(), Exit::Done);
    for name in &flags.runs {
        match one(name, store) {
            Ok((run, repaired)) => {
                text.push_str(&lines(&run, &repaired));
                results.push(json!({
                    "run": run.document.id,
                    "name": run.document.name,
                    "path": run.path.display().to_string(),
                    "repair": repaired,
                }));
            }
            Err(error) => {
                output::complain(&error);
                exit = Exit::Failed;
            }
        }
    }
    if flags.format.is_json() {
        output::put_json(&results)?;
    } else {
        output::put(&text)?;
    }
    Ok(exit)
}

fn one(name: &str, store: &Store) -> Result<(Run, RunRepair)> {
    let run = store.find(name)?;
    let repaired = repair(&run.path)?;
    Ok((run, repaired))
}

/// What came of a run, each thing in a line.
fn lines(run: &Run, repaired: &RunRepair) -> String {
    let mut lines: Vec<String> = repaired.spools.iter().flat_map(of_spool).collect();
    if lines.is_empty() {
        lines.push(format!("nothing to repair: {}", why_nothing(run, repaired)));
    } else {
        lines.push(totals(run, repaired));
    }
    lines.extend(repaired.unread.iter().map(|what| format!("not counted: {}", plain(what))));
    let name = plain(&run.document.name);
    lines.into_iter().map(|line| format!("{name}: {line}\n")).collect()
}

fn why_nothing(run: &Run, repaired: &RunRepair) -> &'static str {
    match repaired.status {
        Status::Complete | Status::Interrupted | Status::StoppedOver => "it ended in order",
        Status::Imported => "it was imported from a file, which is still as it was",
        _ if !run.document.parameters.raw => "it kept no single samples (--raw)",
        _ => "all files of its samples are closed",
    }
}

fn of_spool(spool: &SpoolRepair) -> Vec<String> {
    let SpoolRepair { spool: open, closed, samples, unread_bytes, strangers, .. } = spool;
    let Some(closed) = closed else {
        return vec![match &spool.kept_as {
            Some(_) => format!("{open} is left as it is: no sample can be read of it"),
            None => format!("{open} had no sample, and is removed"),
        }];
    };
    let all = many(*samples, "sample");
    let until = spool.until_ns.map_or_else(String::new, |ns| format!(" up to {}", seconds(ns)));
    let mut lines = vec![match spool.was_closed {
        true => format!("{closed} had the {all} of {open} already{until}"),
        false => format!("{closed} has the {all} of {open}{until}"),
    }];
    if *unread_bytes > 0 {
        lines.push(format!(
            "{} at the end of {open} could not be read: cut short or damaged",
            many(*unread_bytes, "byte")
        ));
    }
    if *strangers > 0 {
        lines.push(format!("no series of the run has {} of it", many(*strangers, "sample")));
    }
    lines.extend(spool.kept_as.iter().map(|kept| format!("it is kept as {kept}")));
    lines
}

fn totals(run: &Run, repaired: &RunRepair) -> String {
    let RunRepair { samples, counted, missing, .. } = repaired;
    let length = span(run.document.duration_ns as f64 / 1e9);
    let missing = match missing {
        0 => "none is missing".to_owned(),
        1 => "1 is missing".to_owned(),
        missing => format!("{} are missing", count(*missing)),
    };
    format!(
        "{} in closed files now; of the {} that the histograms count in {length}, {missing}",
        many(*samples, "sample"),
        count(*counted),
    )
}

/// A moment of the run: `29.970 s`.
fn seconds(ns: i64) -> String {
    format!("{:.3} s into the run", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> SpoolRepair {
        SpoolRepair {
            spool: "samples/000003.spool".into(),
            closed: Some("samples/000003.parquet".into()),
            was_closed: false,
            samples: 9_970,
            until_ns: Some(29_970_400_000),
            unread_bytes: 0,
            strangers: 0,
            kept_as: None,
        }
    }

    #[test]
    fn a_spool_is_reported_with_its_samples_and_what_could_not_be_read() {
        let whole = "samples/000003.parquet has the 9,970 samples of samples/000003.spool up to \
                     29.970 s into the run";
        assert_eq!(of_spool(&spool()), [whole]);
        let kept_as = Some("samples/.000003.damaged".to_owned());
        let damaged = SpoolRepair { unread_bytes: 1_000, kept_as, ..spool() };
        let lines = of_spool(&damaged);
        assert_eq!(lines[0], whole);
        assert!(lines[1].starts_with("1,000 bytes at the end of samples/"), "{lines:?}");
        assert_eq!(lines[2], "it is kept as samples/.000003.damaged");
        let none = SpoolRepair { closed: None, ..damaged };
        assert!(of_spool(&none)[0].ends_with("no sample can be read of it"));
        let empty = SpoolRepair { kept_as: None, ..none };
        assert!(of_spool(&empty)[0].ends_with("had no sample, and is removed"));
    }
}
