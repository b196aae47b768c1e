//! `tardy ab`: from flags to a comparison, from its record to a verdict and an exit code.

pub(super) mod options;
pub(super) mod progress;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use super::{
    Exit,
    deadline::DeadlineFlags,
    flags::{FormatFlags, LoadFlags, margin, positive, random_seed},
    output,
    run::of_probe::{CommonOptions, OfProbe},
    runs::new_id,
    setup::{SetupFlags, recover_first, recover_last},
    trace::TraceFlags,
};
use crate::{
    analysis::ab::figure::{ComparedFigure, JUDGED_BY_DEFAULT},
    campaign::{self, Ab, AbEvent, AbRequest},
    report::{ab as text, compare::causes_between},
    run::{AbRecord, AbStatus, AbVerdict, BandDifference, Run},
    store::{Store, check_name},
    sys::signals::Quit,
    units::Nanos,
};
use options::{Side, common_words};
use progress::AbStatusView;

/// Test whether a change helps: alternate A and B until the result is clear
///
/// Blocks of both sides alternate in the order ABBA or BAAB, drawn by a seed; each block is a run.
/// After fixed numbers of pairs tardy judges whether B is better, worse or the same. If the budget
/// ends before that, the result is inconclusive. The change is an option of `tardy run` (--a
/// '--policy other' --b '--policy fifo'), or your own command before each block (--prepare-a,
/// --prepare-b).
///
/// Exit codes: 0 B is better or the same, 1 worse, 2 error, 3 inconclusive, 4 a block was invalid.
#[derive(Debug, Args)]
pub(super) struct CommonFlags {
    #[command(flatten)]
    compared: ComparedFlags,
    // Both sides get them as words; see `options`.
    #[command(flatten)]
    block: BlockFlags,
    /// Directory for the run [default: a new one in the store]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Name of the run and of its directory
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    name: Option<String>,
    /// Print only the result: no progress, no hints
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
struct ComparedFlags {
    /// Options of side A, as for `tardy run`; '' for none
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, required = true)]
    a: String,
    /// Options of side B, which is judged
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, required = true)]
    b: String,
    /// Command to run before each block of A, by sh -c
    ///
    /// E.g. write a sysctl, load a module, start or stop a daemon. The command is not measured; its
    /// output goes to commands.log. If you prepare one side, prepare the other too, since the state
    /// stays for the next block; `true` does nothing.
    #[arg(long, value_name = "CMD")]
    prepare_a: Option<String>,
    /// Command to run before each block of B, by sh -c
    #[arg(long, value_name = "CMD")]
    prepare_b: Option<String>,
    /// Command that restores what the prepare commands changed
    ///
    /// It runs at the end, also after Ctrl-C, SIGTERM and errors. It does not run after kill -9, or
    /// if a second Ctrl-C, more than a second after the first, ends tardy at once.
    #[arg(long, value_name = "CMD")]
    undo: Option<String>,
    /// Total time, with preparation
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = positive)]
    budget: Nanos,
    /// What to judge: p50, p90, p99, p99.9, p99.99, max, missed [default: p50,p99,p99.9]
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    figures: Vec<ComparedFigure>,
    /// Largest difference that still counts as the same [default: 5% up to p99, 10% beyond]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Seed for the order of the blocks [default: a random one, which is printed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    seed: Option<u64>,
}

/// Larger numbers are not exact in every reader of JSON.
const MOST_SEED: u64 = (1 << 53) - 1;

impl CommonOptions for CommonFlags {
    const WITHOUT: &'static [&'static str] = &["command", "require_exit_0", "calibrate"];
}

/// The options of `tardy ab`.
pub(super) type AbFlags = OfProbe<CommonFlags>;

/// The options of `run` that both sides have in common, beside those of the probe.
#[derive(Debug, Args)]
struct BlockFlags {
    /// How long to run the probe before recording starts
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Length")]
    warmup: Nanos,
    #[command(flatten)]
    setup: SetupFlags,
    #[command(flatten)]
    loads: LoadFlags,
    #[command(flatten)]
    trace: TraceFlags,
    #[command(flatten)]
    deadline: DeadlineFlags,
}

/// Compares, and prints the result.
pub(super) fn ab(flags: AbFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let (json, quiet) = (flags.common.format.is_json(), flags.common.quiet);
    let request = flags.request(store, argv)?;
    recover_first(quiet);
    if request.a.words == request.b.words && request.a.record.prepare.is_none() && !quiet {
        output::notice("A and B are alike: this shows what equal sides differ by.");
    }
    let place = request.directory.display().to_string();
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let mut view = AbStatusView::new(quiet);
    let pace = view.pace();
    let mut show = |event: AbEvent<'_>| view.show(&event);
    let record = campaign::run(request, quit, &mut Ab { pace, show: &mut show, causes: &causes });
    view.clear();
    let left = recover_last();
    let record = record?;
    match (json, quiet) {
        (true, _) => output::put_json(&record)?,
        (false, true) => output::put(&text::verdict(&record, output::width()))?,
        (false, false) => output::put(&text::show(&record, &place, output::width()))?,
    }
    Ok(left.worst(exit_of(&record)))
}

/// Which causes differ between blocks; nothing if that is not known of all.
pub(super) fn causes(a: &[PathBuf], b: &[PathBuf]) -> Option<Vec<BandDifference>> {
    let open = |side: &[PathBuf]| -> Option<Vec<Run>> {
        side.iter().map(|path| Run::open(path).ok()).collect()
    };
    let (a, b) = (open(a)?, open(b)?);
    let found = causes_between(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>());
    (!found.is_empty()).then_some(found)
}

pub(super) fn exit_of(record: &AbRecord) -> Exit {
    match (record.status, record.verdict) {
        (AbStatus::Invalid, _) => Exit::Invalid,
        (_, AbVerdict::Worse) => Exit::No,
        (_, AbVerdict::Better | AbVerdict::Same) => Exit::Done,
        (_, AbVerdict::Inconclusive) => Exit::Inconclusive,
    }
}

impl AbFlags {
    /// Checks everything that can be checked before anything is changed.
    fn request(self, store: &Store, argv: Vec<String>) -> Result<AbRequest> {
        let words = common_words(&argv)?;
        let probe = self.info();
        let common = self.common;
        let ComparedFlags { a, b, prepare_a, prepare_b, undo, budget, figures, margin, seed } =
            common.compared;
        for (flag, command) in
            [("--prepare-a", &prepare_a), ("--prepare-b", &prepare_b), ("--undo", &undo)]
        {
            let is_empty = command.as_ref().is_some_and(|command| command.trim().is_empty());
            ensure!(!is_empty, "{flag}: no command; `true` does nothing");
        }
        let missing = match (&prepare_a, &prepare_b) {
            (Some(_), None) => Some("--prepare-b"),
            (None, Some(_)) => Some("--prepare-a"),
            _ => None,
        };
        if let Some(missing) = missing {
            bail!(
                "{missing} is missing: that side would be measured as the blocks of the other left \
                 the machine; {missing} true does nothing"
            );
        }
        ensure!(
            undo.is_none() || prepare_a.is_some(),
            "--undo restores what --prepare-a and --prepare-b change, and neither is given; leave \
             it out"
        );
        ensure!(
            !common.block.deadline.is_given() || probe.is_attached(),
            "--deadline: {} has no cycles to judge in a comparison; leave it out, and name missed \
             in --figures for missed periods",
            probe.name
        );
        let a = Side { flag: "--a", options: a, prepare: prepare_a }.request(&words, store)?;
        let b = Side { flag: "--b", options: b, prepare: prepare_b }.request(&words, store)?;
        let id = new_id()?;
        let (directory, name) = place(common.output, common.name, store, &id)?;
        Ok(AbRequest {
            a,
            b,
            undo,
            budget_ns: budget.0,
            fixed: None,
            figures: judged(figures)?,
            margin,
            seed: seed.map_or_else(random_seed, Ok)?,
            directory,
            store: store.root().to_owned(),
            id,
            name,
            argv,
        })
    }
}

/// The figures to judge, each once.
fn judged(figures: Vec<ComparedFigure>) -> Result<Vec<ComparedFigure>> {
    if figures.is_empty() {
        return Ok(JUDGED_BY_DEFAULT.to_vec());
    }
    for (number, figure) in figures.iter().enumerate() {
        let is_again = figures.iter().take(number).any(|other| other == figure);
        ensure!(!is_again, "--figures: {figure} stands there twice; name it once");
    }
    Ok(figures)
}

/// Where it goes, and its name: the id where it has no other.
fn place(
    output: Option<PathBuf>,
    name: Option<String>,
    store: &Store,
    id: &str,
) -> Result<(PathBuf, String)> {
    if let Some(name) = &name {
        check_name(name)?;
    }
    if let Some(directory) = output {
        return Ok((directory, name.unwrap_or_else(|| id.to_owned())));
    }
    Ok(name.map_or_else(|| (store.place(id), id.to_owned()), |name| store.free_place(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_judged_once_and_by_default_three() {
        use ComparedFigure::{Max, P50};
        assert_eq!(judged(vec![]).unwrap(), JUDGED_BY_DEFAULT);
        assert_eq!(judged(vec![Max, P50]).unwrap(), [Max, P50]);
        assert!(judged(vec![Max, P50, Max]).unwrap_err().to_string().contains("max stands"));
    }
}
