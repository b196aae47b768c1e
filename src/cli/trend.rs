//! `tardy trend`: the runs of many nights, and where their latencies changed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::{ArgGroup, Args};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Exit, alike, flags::FormatFlags, list::WhereFlags, output};
use crate::{
    analysis::trend::{self, TrendRow},
    plain::plain_path,
    report::{html, page::Page, trend as page},
    run::{RunEntry, Validity},
    store::{ListedRun, Listing, Store, Where},
};

/// Nights to a false alarm, over all figures together, where nothing else is said.
const RUN_LENGTH: &str = "10000";

/// The beginning of 2001, UTC, in seconds since 1970.
pub(super) const EARLIEST_S: i64 = 978_307_200;

/// Clocks of machines that share a store differ by less.
const LATEST_AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// Show latency trends over many runs, and detect changes.
///
/// A row has the runs with the same machine, probe, loads, policy, length and series. The runs of
/// one day under one kernel are one value. Changes are found by ranks, which accounts for the
/// dependence between nights. On average 5% of the reported changes are false, for any number of
/// rows. Invalid and unfinished runs are left out.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("alarms").args(["alarm", "output"]).multiple(true))]
pub(super) struct TrendFlags {
    #[command(flatten)]
    question: WhereFlags,
    /// Include invalid runs
    #[arg(long = "all-runs", help_heading = "Runs")]
    all: bool,
    /// Exit with 1 if latency became worse within the last DAYS days [without: 1]
    ///
    /// For a nightly job. An ordinary 5% test of all nights, repeated each night, would give a
    /// false alarm within months; here --run-length sets the time between false alarms. A change is
    /// detected some nights after it happened. A night is a day under one kernel.
    #[arg(long, value_name = "DAYS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(help_heading = "Alarm", value_parser = days)]
    alarm: Option<usize>,
    /// Mean nights between false alarms, over all metrics together
    ///
    /// Applies to --alarm, and to the alarms on the page of -o.
    #[arg(long, value_name = "NIGHTS", default_value = RUN_LENGTH, requires = "alarms")]
    #[arg(help_heading = "Alarm")]
    run_length: u32,
    /// Also print the metrics of the last DAYS days of each row
    ///
    /// A line for each day and kernel: the median of its runs' p99 and of their usual maximum, and
    /// their largest latency. JSON has all days.
    #[arg(long, value_name = "DAYS", help_heading = "Output", value_parser = days)]
    days: Option<usize>,
    /// File to write; an existing one is replaced
    ///
    /// One self-contained HTML page; its name ends in .html.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: FormatFlags,
}

/// Runs that are left out, by why.
#[derive(Debug, Default)]
struct LeftOut {
    invalid: usize,
    unfinished: usize,
    /// Without a time at which they started: they belong to no night.
    undated: usize,
    /// Of a clock that was not set.
    misdated: usize,
}

fn days(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number of days, 1 or more".into())
}

/// Prints the rows and what changed.
pub(super) fn trend(flags: &TrendFlags, store: &Store) -> Result<Exit> {
    ensure!(flags.alarm != Some(0), "--alarm: 0 days hold no night; write 1 or more");
    ensure!(
        flags.days != Some(0),
        "--days: 0 days have no figures; write 1 or more, or leave it out"
    );
    ensure!(
        flags.run_length > 1,
        "--run-length: an alarm every night says nothing; write 2 or more"
    );
    if let Some(file) = &flags.output {
        super::report::is_page("-o", file)?;
    }
    let everything = Where::default();
    let now = Timestamp::now();
    let question = flags.question.question.as_ref().unwrap_or(&everything);
    let mut left_out = LeftOut::default();
    let mut listing = store.listing()?;
    let asked = listing.runs.iter().filter(|run| question.holds(run));
    asked.for_each(|run| left_out.count(run, flags.all, now));
    let takes = |run: &ListedRun| question.holds(run) && flags.takes(&run.entry, now);
    listing.add_details(takes);
    let groups = alike::rows(listing.runs.iter().filter(|run| takes(run)), question);
    ensure!(
        flags.alarm.is_none() || !groups.is_empty(),
        "--alarm: no such runs with latencies in {}, so that nothing watches over them{}",
        plain_path(store.root()),
        left_out.remedy()
    );
    let looks_nightly = flags.alarm.is_some() || flags.output.is_some();
    let rows = trend::trend(groups, looks_nightly.then(|| f64::from(flags.run_length)));
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
    let LeftOut { invalid, unfinished, undated, misdated } = *left_out;
    if flags.format.is_json() {
        output::put_json(&json!({
            "rows": rows,
            "left_out": {
                "invalid": invalid, "unfinished": unfinished, "undated": undated,
                "misdated": misdated,
            },
            "files_read": listing.reads(),
            "run_length": (flags.alarm.is_some() || flags.output.is_some())
                .then_some(flags.run_length),
        }))?;
    } else if rows.is_empty() {
        let (root, remedy) = (plain_path(store.root()), left_out.remedy());
        output::notice(&format!("No such runs with latencies in {root}{remedy}."));
    } else {
        output::put(&page::text(rows, output::width(), flags.days.unwrap_or(0)))?;
    }
    let words = page::left_out(&[
        (invalid, "invalid", ""),
        (unfinished, "unfinished", ""),
        (undated, "undated", ""),
        (misdated, "misdated", " (before 2001, or in the future)"),
    ]);
    if let Some(words) = &words {
        output::notice(words);
    }
    listing.damaged.iter().for_each(|error| output::warn(error));
    match &flags.output {
        Some(file) => write_page(flags, file, rows, words),
        None => Ok(()),
    }
}

/// Writes the page. Without rows it fails.
fn write_page(
    flags: &TrendFlags,
    file: &Path,
    rows: &[TrendRow],
    left_out: Option<String>,
) -> Result<()> {
    ensure!(!rows.is_empty(), "-o {}: there is nothing to show", plain_path(file));
    let asked = flags.question.question.as_ref().map(ToString::to_string).unwrap_or_default();
    let page = Page::of_trend(page::page(rows, &asked, left_out, flags.run_length));
    let text = html::render(&page).context("cannot write the data of the page")?;
    super::report::write(file, text.as_bytes())
}

impl LeftOut {
    /// What takes runs that were left out, where there are some.
    const fn remedy(&self) -> &'static str {
        match self.invalid {
            0 => "",
            _ => "; --all-runs takes the invalid ones too",
        }
    }

    /// Counts a run, if there is a reason to leave it out.
    fn count(&mut self, run: &ListedRun, takes_invalid: bool, now: Timestamp) {
        match (run.entry.has_ended(), run.entry.validity) {
            (false, _) => self.unfinished += 1,
            (true, Validity::Invalid) if !takes_invalid => self.invalid += 1,
            _ => match run.entry.start() {
                None => self.undated += 1,
                Some(start) => self.misdated += usize::from(!is_possible(start, now)),
            },
        }
    }
}

impl TrendFlags {
    fn takes(&self, run: &RunEntry, now: Timestamp) -> bool {
        let is_dated = run.start().is_some_and(|start| is_possible(start, now));
        run.has_ended() && is_dated && (self.all || run.validity != Validity::Invalid)
    }
}

/// Whether a clock that was set can have said this. A machine without a battery begins in 1970 or
/// 2000; a night of the future would be the last one for years.
fn is_possible(start: Timestamp, now: Timestamp) -> bool {
    let earliest = Timestamp::constant(EARLIEST_S, 0);
    start >= earliest && start <= now + LATEST_AHEAD
}
