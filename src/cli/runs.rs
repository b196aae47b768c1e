//! `tardy list` and `tardy show`: all runs, and the tables of one run.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{
    Exit,
    flags::{DeadlineFlags, FormatFlags},
    gates::{self, GateFlags},
    output,
};
use crate::{
    plain::plain_path,
    report::{
        collect,
        deadline::SeriesDeadline,
        gate::{Gate, GateResult},
        how_long::{self, StatementCost},
        intervals::{RunIntervals, RunLog},
        table::Table,
        tail::RunTail,
        terminal::{self, Asked},
        words,
    },
    run::{Document, Run, RunEntry},
    store::Store,
    sys::memory,
    units::{Nanos, span},
};

/// List the runs, oldest first.
#[derive(Debug, Args)]
pub(super) struct ListFlags {
    #[command(flatten)]
    format: FormatFlags,
}

/// Show the tables of one run, its verdict and caveats first, its headline last.
#[derive(Debug, Args)]
pub(super) struct ShowFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Also print how often each CPU was interrupted, and by what
    #[arg(long, help_heading = "Output")]
    interrupts: bool,
    /// Also print 95 % intervals of the percentiles, as far as the samples carry them
    ///
    /// Late samples come in groups, so that they say less than as many independent ones. With
    /// fewer than 10 independent ones beyond a percentile there is no upper end: "at least".
    #[arg(long, help_heading = "Output")]
    intervals: bool,
    /// Also print whether the run was long enough: what was not seen, and levels of longer times
    ///
    /// Levels that are exceeded once in an hour, a day, a year, with 95 % intervals, by a model of
    /// the tail of each series; or why there is none. Beyond ten times the observed time they are
    /// extrapolations of a model, and marked. No gate uses them.
    #[arg(long, help_heading = "Output")]
    tail: bool,
    /// Also print how long to run for this statement: p99.9<100us, cpu1:max<150us
    #[arg(long, value_name = "EXPR", help_heading = "Output")]
    how_long: Option<Gate>,
    #[command(flatten)]
    deadline: DeadlineFlags,
    #[command(flatten)]
    gates: GateFlags,
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
        let root = plain_path(store.root());
        output::notice(&format!("No runs in {root}; `tardy run` makes one."));
    } else {
        output::put(&(table(&runs, output::width()).join("\n") + "\n"))?;
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

/// A line per run, no wider than `width`: without ids then, but for runs that have no other name,
/// and without what was measured where that is still too wide.
fn table(runs: &[RunEntry], width: Option<usize>) -> Vec<String> {
    let mut whole = Table::new(5, &["id", "name", "status", "verdict", "measured", "worst"]);
    runs.iter().for_each(|run| whole.row(cells(run)));
    if width.is_none_or(|width| whole.width() <= width) {
        return whole.lines();
    }
    let mut short = Table::new(4, &["run", "status", "verdict", "measured", "worst"]);
    for run in runs {
        let rest = cells(run).into_iter().skip(2);
        short.row(std::iter::once(run.name.clone()).chain(rest).collect());
    }
    short.fitted(width, &["measured", "status"]).0
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
    flags.format.refuse_with_json("--interrupts", flags.interrupts)?;
    let run = store.find(&flags.run)?;
    memory::keep_heap();
    let log = RunLog::read(&run);
    let intervals = flags.intervals.then(|| RunIntervals::of_read(&run, &log));
    let found = flags.gates.find(store)?.decide(&run)?;
    let tail = log.as_ref().ok().filter(|_| flags.tail).map(|log| RunTail::of(&run, log.blocks()));
    let how_long = how_long_of(flags, &run)?;
    let deadlines = flags.deadline.of(&run)?;
    let mut caveats = RunLog::caveats(&run, &log);
    if flags.format.is_json() {
        let record = run.record_with(caveats);
        let gates = found.as_deref();
        let how_long = flags.how_long.as_ref().map(|_| how_long);
        output::put_json(&ShownRun {
            record: &record,
            intervals,
            tail,
            how_long,
            deadlines,
            gates,
        })?;
    } else {
        let moved = collect::interrupts(&run, &mut caveats);
        let moved = if flags.interrupts { moved } else { Vec::new() };
        let place = run.path.display().to_string();
        let record = run.record_with(caveats);
        let asked = Asked {
            interrupts: &moved,
            intervals: intervals.as_ref(),
            tail: tail.as_ref(),
            how_long: &how_long,
            deadlines: deadlines.as_deref().unwrap_or_default(),
        };
        output::put(&terminal::show(&record, &place, asked, output::width()))?;
        gates::put(found.as_deref())?;
    }
    // Whoever asks for a gate asks whether the figures may be believed.
    Ok(found.map_or(Exit::Done, |found| gates::exit(&run.document, Some(&found))))
}

/// What the statement takes that was asked about.
fn how_long_of(flags: &ShowFlags, run: &Run) -> Result<Vec<StatementCost>> {
    let Some(statement) = &flags.how_long else { return Ok(Vec::new()) };
    how_long::how_long(run, statement).map_err(|refusal| anyhow!("--how-long {refusal}"))
}

/// The record, and beside its members what was asked for.
#[derive(Serialize)]
pub(super) struct ShownRun<'a> {
    #[serde(flatten)]
    pub record: &'a Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<RunIntervals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<RunTail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how_long: Option<Vec<StatementCost>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<Vec<SeriesDeadline>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<&'a [GateResult]>,
}

impl<'a> ShownRun<'a> {
    /// A run that has just been measured.
    pub(super) const fn measured(
        record: &'a Document,
        deadlines: Option<Vec<SeriesDeadline>>,
        gates: Option<&'a [GateResult]>,
    ) -> Self {
        Self { record, intervals: None, tail: None, how_long: None, deadlines, gates }
    }
}

/// Time in ms, and four random digits in case two runs start in the same millisecond.
pub(super) fn new_id() -> Result<String> {
    let mut random = [0_u8; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .context("the kernel returned no random number")?;
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S%.3f").to_string();
    Ok(format!("{now}-{:04x}", u16::from_ne_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, name: &str) -> RunEntry {
        serde_json::from_value(json!({
            "schema_version": 2, "id": id, "name": name, "status": "complete",
            "validity": "weakened", "probe": {"name": "timer", "parameters": {}}, "loads": [],
            "started_at": "", "duration_ns": 20_000_000_000_u64,
            "series": [{"name": "cpu0", "max": 2_400_000}],
        }))
        .unwrap()
    }

    #[test]
    fn on_a_narrow_terminal_a_run_is_listed_under_the_name_that_finds_it() {
        let id = "20261121-203055.042-1f0c";
        let runs = [entry(id, id), entry("20261121-203056.042-1f0c", "named")];
        assert_eq!(table(&runs, None), table(&runs, Some(100)));
        let narrow = table(&runs, Some(72));
        assert!(narrow.iter().all(|line| line.chars().count() <= 72), "{narrow:?}");
        assert!(narrow[1].starts_with(id) && narrow[2].starts_with("named "), "{narrow:?}");
        assert!(narrow[1].contains("timer idle, 20 s") && narrow[1].ends_with("2.40 ms"));
        let narrower = table(&runs, Some(50));
        assert!(narrower.iter().all(|line| line.chars().count() <= 50), "{narrower:?}");
        assert!(narrower[1].contains("weakened") && narrower[1].ends_with("2.40 ms"));
    }
}
