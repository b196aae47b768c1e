//! `tardy show`: the tables of one run.

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use serde::Serialize;

pub(super) use crate::sys::run_id::new_id;

use super::{
    Exit,
    deadline::DeadlineFlags,
    flags::{FormatFlags, WithoutFlags},
    gates::{self, GateFlags},
    output,
};
use crate::{
    report::{
        collect,
        deadline::SeriesDeadline,
        gate::Gate,
        gate_decision::GateResult,
        how_long::{self, StatementCost},
        intervals::{RunIntervals, RunLog},
        tail::RunTail,
        terminal::{self, Asked},
    },
    run::{Document, Run},
    store::Store,
    sys::memory,
};

/// Show one run: verdict, caveats, tables, headline.
#[derive(Debug, Args)]
pub(super) struct ShowFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Also print how often each CPU was interrupted, by source
    #[arg(long, help_heading = "Output")]
    interrupts: bool,
    /// Also print 95% confidence intervals of the percentiles
    ///
    /// Late samples come in groups, so they carry less information than independent ones. With
    /// fewer than 10 independent samples beyond a percentile, its upper end is unknown: "at least".
    #[arg(long, help_heading = "Output")]
    intervals: bool,
    /// Also print whether the run was long enough, and expected maxima of longer times
    ///
    /// Latencies that are exceeded once in an hour, a day or a year, with 95% intervals, from a
    /// model of the tail of each series; or why a model is missing. Beyond ten times the observed
    /// time they are marked as extrapolations. No gate uses them.
    #[arg(long, help_heading = "Output")]
    tail: bool,
    /// Also print how long to run for this statement: p99.9<100us, cpu1:max<150us
    #[arg(long, value_name = "EXPR", help_heading = "Output")]
    how_long: Option<Gate>,
    #[command(flatten)]
    without: WithoutFlags,
    #[command(flatten)]
    deadline: DeadlineFlags,
    #[command(flatten)]
    gates: GateFlags,
    #[command(flatten)]
    format: FormatFlags,
}

/// Prints one run.
pub(super) fn show(flags: &ShowFlags, store: &Store) -> Result<Exit> {
    flags.format.refuse_with_json("--interrupts", flags.interrupts)?;
    ensure!(
        flags.gates.is_empty() || !flags.without.is_given(),
        "--gate decides on what was measured, with its host: leave out --without host, or --gate"
    );
    memory::keep_heap();
    let run = flags.without.of(store.find(&flags.run)?)?;
    let log = RunLog::read(&run);
    let intervals = flags.intervals.then(|| RunIntervals::of_read(&run, &log));
    let found = flags.gates.find(store)?.decide(&run)?;
    let tail = flags.tail.then(|| tail_of(&run)).flatten();
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
    // A gate also tells whether the figures may be believed.
    Ok(found.map_or(Exit::Done, |found| gates::exit(&run.document, Some(&found))))
}

/// What can be said of its tail, of responses where they lead; nothing if its log is damaged.
fn tail_of(run: &Run) -> Option<RunTail> {
    let led = run.led_by_responses();
    RunLog::read(&led).ok().map(|log| RunTail::of(&led, log.blocks()))
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
