//! `tardy trend`: the runs of many nights, and where their latencies changed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, list::WhereFlags, output};
use crate::{
    analysis::trend::{self, TrendKey, TrendRow, TrendRun},
    plain::plain_path,
    report::{trend as page, words},
    run::{RunEntry, SeriesEntry, Status, Validity},
    store::{ListedRun, Listing, Store, Where},
    units::span,
};

/// Nights to a false alarm, over all figures together, where nothing else is said.
const RUN_LENGTH: &str = "3650";

/// Show how latencies went over many runs, and where they changed.
///
/// Runs are compared that are alike in machine, probe, loads, policy, length and series: a row
/// each. Runs of a day under one kernel are one value. Changes are found by ranks, with what nights
/// depend on each other counted in; of all changes that are named 5 % are none on average, however
/// many rows there are. Invalid and imported runs, and those that did not end, are left out.
#[derive(Debug, Args)]
pub(super) struct TrendFlags {
    #[command(flatten)]
    question: WhereFlags,
    /// Take invalid and imported runs too
    #[arg(long = "all-runs", help_heading = "Runs")]
    all: bool,
    /// Exit with 1 if nightly looks saw a change for the worse within the last DAYS [without: 1]
    ///
    /// For a job that runs every night. Each night all nights so far are looked at, which a test
    /// with 5 % would answer with a false alarm within months; here the time between false alarms
    /// is set by --run-length. A change is seen some nights after it came. A night is a day under
    /// one kernel.
    #[arg(long, value_name = "DAYS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(help_heading = "Alarm")]
    alarm: Option<usize>,
    /// Nights from one false alarm to the next, on average, over all figures together
    #[arg(long, value_name = "NIGHTS", default_value = RUN_LENGTH, requires = "alarm")]
    #[arg(help_heading = "Alarm")]
    run_length: u32,
    #[command(flatten)]
    format: FormatFlags,
}

/// Runs that are left out, by why.
#[derive(Debug, Default)]
struct LeftOut {
    invalid: usize,
    imported: usize,
    unfinished: usize,
    /// Without a time at which they started: there is no night to which they belong.
    undated: usize,
}

/// Prints the rows and what changed.
pub(super) fn trend(flags: &TrendFlags, store: &Store) -> Result<Exit> {
    ensure!(flags.alarm != Some(0), "--alarm: 0 days hold no night; write 1 or more");
    ensure!(
        flags.run_length > 1,
        "--run-length: an alarm every night says nothing; write 2 or more"
    );
    let everything = Where::default();
    let question = flags.question.question.as_ref().unwrap_or(&everything);
    let mut left_out = LeftOut::default();
    let mut listing = store.listing();
    let asked = listing.runs.iter().filter(|run| question.holds(run));
    asked.for_each(|run| left_out.count(run, flags.all));
    let takes = |run: &ListedRun| question.holds(run) && flags.takes(&run.entry);
    listing.add_details(takes);
    let groups = groups(listing.runs.iter().filter(|run| takes(run)), question);
    let run_length = flags.alarm.map(|_| f64::from(flags.run_length));
    let rows = trend::trend(groups, run_length);
    put(flags, store, &listing, &rows, &left_out)?;
    let is_alarm = |days: usize| {
        let figures = rows.iter().flat_map(|row| &row.figures);
        let mut alarms = figures.flat_map(|figure| &figure.alarms);
        alarms.any(|alarm| alarm.is_worse && alarm.points_ago < days)
    };
    Ok(if flags.alarm.is_some_and(is_alarm) { Exit::No } else { Exit::Done })
}

fn put(
    flags: &TrendFlags,
    store: &Store,
    listing: &Listing,
    rows: &[TrendRow],
    left_out: &LeftOut,
) -> Result<()> {
    let LeftOut { invalid, imported, unfinished, undated } = *left_out;
    if flags.format.is_json() {
        output::put_json(&json!({
            "rows": rows,
            "left_out": {
                "invalid": invalid, "imported": imported, "unfinished": unfinished,
                "undated": undated,
            },
            "files_read": listing.reads(),
            "run_length": flags.alarm.map(|_| flags.run_length),
        }))?;
    } else if rows.is_empty() {
        output::notice(&format!("No such runs with latencies in {}.", plain_path(store.root())));
    } else {
        output::put(&page::text(rows, output::width()))?;
    }
    let counts = [
        (invalid, "invalid"),
        (imported, "imported"),
        (unfinished, "unfinished"),
        (undated, "undated"),
    ];
    if let Some(words) = page::left_out(&counts) {
        output::notice(&words);
    }
    listing.damaged.iter().for_each(|error| output::warn(error));
    Ok(())
}

impl LeftOut {
    /// Counts a run, if there is a reason to leave it out.
    fn count(&mut self, run: &ListedRun, takes_doubtful: bool) {
        match (run.entry.has_ended(), run.entry.status, run.entry.validity) {
            (false, ..) => self.unfinished += 1,
            (_, Status::Imported, _) if !takes_doubtful => self.imported += 1,
            (.., Validity::Invalid) if !takes_doubtful => self.invalid += 1,
            _ => self.undated += usize::from(run.entry.start().is_none()),
        }
    }
}

impl TrendFlags {
    fn takes(&self, run: &RunEntry) -> bool {
        let is_doubtful = run.status == Status::Imported || run.validity == Validity::Invalid;
        run.has_ended() && (self.all || !is_doubtful)
    }
}

/// The series of runs, by what must be equal.
fn groups<'a>(
    runs: impl Iterator<Item = &'a ListedRun>,
    question: &Where,
) -> BTreeMap<TrendKey, Vec<TrendRun>> {
    let mut groups: BTreeMap<TrendKey, Vec<TrendRun>> = BTreeMap::new();
    for run in runs {
        let Some(started) = run.entry.start() else { continue };
        for series in question.chosen(run).filter(|series| series.count > 0) {
            let details = run.details().and_then(|details| details.series(&series.name));
            let p99 = series.percentile("99").filter(|_| !series.is_uncertain("99"));
            groups.entry(key(&run.entry, series)).or_default().push(TrendRun {
                started,
                kernel: run.entry.facts.kernel.clone(),
                p99_ns: p99.and_then(|ns| i64::try_from(ns).ok()),
                block_max_ns: details.and_then(|details| details.block_max_ns),
                max_ns: series.max,
                late: details.and_then(|details| details.late.clone()),
            });
        }
    }
    groups
}

fn key(run: &RunEntry, series: &SeriesEntry) -> TrendKey {
    let asked = &run.parameters;
    let length = match (asked.duration_ns, asked.samples) {
        (Some(ns), _) => span(ns as f64 / 1e9),
        (None, Some(samples)) => format!("{samples} samples"),
        (None, None) => "no fixed length".into(),
    };
    let loads: Vec<_> = run.loads.iter().map(|load| (&load.name, &load.parameters)).collect();
    let rest = json!([
        run.probe,
        loads,
        run.setup.found.cpus,
        run.trace.found,
        [Some(&run.facts.architecture), run.facts.cpu_model.as_ref()],
        asked.stop_over_ns,
        run.messages.as_ref().map(|messages| (&messages.transport, messages.size)),
    ]);
    TrendKey {
        machine: run.facts.hostname.clone(),
        probe: words::probe(&run.probe, run.messages.as_ref()),
        loads: words::loads(&run.loads),
        policy: run.setup.found.policy.clone().unwrap_or_default(),
        length,
        rest: rest.to_string(),
        series: series.name.clone(),
    }
}
