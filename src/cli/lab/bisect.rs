//! `tardy lab bisect`: the kernel from which on a figure is worse.

mod candidates;
mod outcome;
mod step;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::{
    outcome::{BisectOutcome, put},
    step::{Asked, Stepper},
};
use super::{
    gates,
    plan_check::{check, has_boxes},
};
use crate::{
    analysis::{
        baseline::{Baseline, phases_of_gate},
        bisection::{BisectSide, Bisection},
        matrix::FIGURES,
    },
    cli::{
        Exit,
        flags::{self, FormatFlags, margin},
        output,
    },
    lab::{
        self,
        cell::guest_runner::GuestRunner,
        kernels::{Base, KernelSource},
        matrix::{results, results::Results, rows::LabRow},
    },
    plain::plain,
    plan::Plan,
    run::RunDirectory,
    store::Store,
    sys::signals::Quit,
    units::{Nanos, many},
};

/// Find the first kernel with a worse metric, by bisection.
///
/// Measures the good and the bad kernel in virtual time, and selects the percentile that became
/// worse by most, or else the maximum. Then it bisects the kernels between them. A kernel is bad if
/// the whole interval of its metric relative to the good kernel is above the margin, and good if it
/// is below. A kernel that is neither, or does not boot, is skipped; the answer may then be a
/// range. bisect assumes that the metric changed once.
///
/// Exit codes: 0 found, 3 the two do not differ or only a range was found.
#[derive(Debug, Args)]
pub(super) struct BisectFlags {
    /// Plan with the loads: a TOML file [default: the built-in plan]
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// A kernel before the change, named as for `tardy lab run`
    #[arg(long, value_name = "KERNEL")]
    good: String,
    /// A kernel after it
    #[arg(long, value_name = "KERNEL")]
    bad: String,
    /// Directory with the kernels between, ordered by name: bzImage*, *.deb
    ///
    /// Numbers in names sort by value: 6.9 before 6.10, and 6.9-rc2 before 6.9. A name may begin
    /// with a number, e.g. 017-bzImage.
    #[arg(long, value_name = "DIR")]
    between: Option<PathBuf>,
    /// Measure only this load of the plan
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// Judge only this metric: p50, p99, p99.9 or max
    #[arg(long, value_name = "FIGURE", value_parser = figure)]
    figure: Option<&'static str>,
    /// By how much a kernel may be worse and still be good [default: 5% up to p99, 10% beyond]
    #[arg(long, value_name = "SHARE", value_parser = margin)]
    margin: Option<f64>,
    /// Phase offsets of each kernel [default: the number a verdict takes]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Seed for the phase offsets
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Time limit for one guest, in time of this machine
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = flags::positive)]
    limit: Nanos,
    /// New directory for the runs, instead of one in the store
    #[arg(short, long, value_name = "DIRECTORY", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Print only the result: no progress, no hints
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    format: FormatFlags,
}

/// A figure by the name that people write.
fn figure(text: &str) -> Result<&'static str, String> {
    let name = text.strip_prefix('p').unwrap_or(text);
    let known = FIGURES.into_iter().find(|figure| *figure == name);
    known.ok_or_else(|| format!("unknown metric \"{text}\"; known are p50, p99, p99.9, max"))
}

/// Searches, and prints what was found.
pub(super) fn bisect(flags: &BisectFlags, store: &Store) -> Result<Exit> {
    let (plan, rows) = flags.rows()?;
    let kernels = flags.kernels()?;
    has_boxes(&rows, &kernels)?;
    let phases = flags.seeds.map_or_else(|| phases_of_gate(rows.len(), 1), |seeds| seeds as usize);
    let needed = phases_of_gate(rows.len(), 1);
    ensure!(
        phases >= needed,
        "--seeds {phases}: no kernel can be called bad with fewer than {needed} phase offsets of \
         {}; leave it out, or name one load with --load",
        many(rows.len() as u64, "load")
    );
    let cache = lab::cache()?;
    let place = flags.place(store, &plan);
    let quit = Quit::listen().context("cannot listen for signals")?;
    let notify = |line: &str| {
        if !flags.quiet {
            output::notice(line);
        }
    };
    let directory = RunDirectory::make(&place)?;
    let runner = GuestRunner::open(&cache, &notify).inspect_err(|_| directory.discard())?;
    notify(&format!(
        "{phases} phase offsets of {}; of {} between the two at most {} are measured, or more if \
         one can be told from neither",
        many(rows.len() as u64, "load"),
        many(kernels.len().saturating_sub(2) as u64, "kernel"),
        Bisection::steps(kernels.len()),
    ));
    let asked = Asked {
        plan: &plan,
        phases: u32::try_from(phases).unwrap_or(u32::MAX),
        seed: flags.seed,
        limit: Duration::from_nanos(flags.limit.0.unsigned_abs()),
        margin: flags.margin,
        quiet: flags.quiet,
    };
    let results = Results::at(&cache.join(results::DIRECTORY));
    let mut stepper = Stepper::new(asked, (runner, &cache), &results, (&directory, &place), &quit);
    let outcome = search(flags, &kernels, rows, &mut stepper)?;
    put(&outcome, flags.format.is_json())?;
    notify(&plain(&format!("runs in {}", place.display())));
    Ok(if outcome.first_bad.is_some() { Exit::Done } else { Exit::Inconclusive })
}

/// Measures both ends, then what is between until nothing is left to tell.
fn search(
    flags: &BisectFlags,
    row: &[KernelSource],
    mut rows: Vec<LabRow>,
    stepper: &mut Stepper<'_>,
) -> Result<BisectOutcome> {
    let [good, .., bad] = row else { unreachable!("a good and a bad kernel are required") };
    let loads: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let runs = stepper.measure(good, &rows).context("the good kernel")?;
    let baseline = Baseline::of("bisect", &loads, &runs.documents()).context("the good kernel")?;
    let mut outcome = BisectOutcome::new(&good.asked, &bad.asked);
    let runs = stepper.measure(bad, &rows).context("the bad kernel")?;
    let found = stepper.judge(&baseline, &runs);
    let Some(worst) = step::worst(&found, flags.figure) else {
        outcome.undecided_ends(&found, flags.figure);
        return Ok(outcome);
    };
    outcome.of_figure(&worst);
    rows.retain(|row| row.name == worst.load);
    let mut search = Bisection::new(row.len());
    outcome.note(&bad.asked, BisectSide::Bad, &gates::difference(&worst));
    while let Some(at) = search.next() {
        let Some(kernel) = row.get(at) else { break };
        if stepper.is_stopped() {
            outcome.stopped = true;
            break;
        }
        let (side, why) = stepper.look(kernel, &rows, &baseline, &worst);
        outcome.note(&kernel.asked, side, &why);
        search.note(at, side);
    }
    outcome.ends(row, &search);
    Ok(outcome)
}

impl BisectFlags {
    /// The plan's name, and the loads that are looked at.
    fn rows(&self) -> Result<(String, Vec<LabRow>)> {
        let plan = match &self.plan {
            Some(path) => Plan::open(path)?,
            None => Plan::parse(super::run::FOUNDING, "the built-in plan")?,
        };
        let mut rows: Vec<LabRow> = plan.rows.iter().map(LabRow::of).collect();
        check(&plan, &rows, self.plan.as_deref())?;
        if let Some(name) = &self.load {
            let names: Vec<String> = rows.iter().map(|row| format!("{:?}", row.name)).collect();
            rows.retain(|row| row.name == *name);
            ensure!(
                !rows.is_empty(),
                "--load {name:?}: the plan has no such load; it has {}",
                names.join(", ")
            );
        }
        Ok((plan.name, rows))
    }

    /// The good kernel, those between, the bad one.
    fn kernels(&self) -> Result<Vec<KernelSource>> {
        let good = KernelSource::parse(&self.good).context("--good")?;
        let bad = KernelSource::parse(&self.bad).context("--bad")?;
        for (flag, kernel) in [("--good", &good), ("--bad", &bad)] {
            ensure!(
                kernel.base != Base::Host,
                "{flag} host: only a virtual machine's instructions can be counted as time; name a \
                 kernel that boots in one"
            );
        }
        ensure!(good.asked != bad.asked, "--good and --bad are the same kernel; name two");
        let between = |directory: &Path| candidates::in_directory(directory, [&good, &bad]);
        let between = self.between.as_deref().map(between).transpose()?.unwrap_or_default();
        Ok(std::iter::once(good.clone()).chain(between).chain([bad]).collect())
    }

    fn place(&self, store: &Store, plan: &str) -> PathBuf {
        if let Some(directory) = &self.output {
            return directory.clone();
        }
        let name = lab::matrix::cell_runner::file_names(std::iter::once(plan)).remove(0);
        let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
        store.place(&format!("bisect-{name}-{now}"))
    }
}
