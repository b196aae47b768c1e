//! `tardy lab run`: a plan on several kernels.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use super::{
    compare,
    gates::{LabGateFlags, LabGates},
    measure::LabMeasurement,
    plan_check::{check, has_boxes},
};
use crate::{
    analysis::{matrix::FIGURES, phases::phases_needed},
    cli::{Exit, flags, flags::FormatFlags, output, plan::PlanText, report, suite::SuiteName},
    lab::{
        self,
        cell::{ClockMode, guest_runner::GuestRunner},
        kernels::{self, Base, KernelSource},
        matrix::{
            cell_runner::{CellRunner, Target, file_names},
            host::HOST,
            results::{self, Results},
            rows::LabRow,
        },
    },
    plain::plain,
    plan::{Plan, order::CellOrder},
    report::finding::of_lab,
    run::{RunDirectory, TraceMode, lab::LabRecord},
    store::Store,
    sys::signals::Quit,
    units::Nanos,
};

/// The default plan.
pub(super) const FOUNDING: &str = include_str!("../../../lab/founding.toml");

/// Measure a plan's loads on several kernels, and compare them.
///
/// Boots each kernel in a virtual machine, once per load and phase offset, and runs this same
/// program inside. Each cell becomes a run below one directory; `tardy show`, `report` and `plot`
/// take them, and `tardy lab compare` prints the table again.
///
/// In --mode deterministic a guest's clock counts its instructions: the result is the same every
/// time, on any machine, so cells that were measured before are reused. It shows how long the code
/// paths of a kernel are, not how fast a machine is.
///
/// With --trace peaks the comparison shows for each load what held the CPU in its worst wake-ups.
/// It applies where the plan sets no `trace` itself. The instructions of the tracing are counted
/// too.
#[derive(Debug, Args)]
pub(super) struct LabRunFlags {
    /// Plan to measure: a TOML file [default: the built-in plan]
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Measure the built-in plan of `tardy suite`
    ///
    /// A cell that cannot run in a guest, e.g. a video load without a player, fails.
    #[arg(long, value_enum, value_name = "SUITE", conflicts_with = "plan")]
    suite: Option<SuiteName>,
    /// Kernels, as A,B,...: names as for `tardy lab kernels --fetch`, or host
    ///
    /// standard and rt are the Debian kernels; standard+preempt=full adds an option to the kernel
    /// command line; ./bzImage is a file. The first kernel is the baseline. host is this machine
    /// itself, in --mode real. The default is the plan's `kernels`, else standard,rt.
    #[arg(long, value_name = "KERNELS")]
    kernels: Option<String>,
    /// Clock of the guest: its instruction count, or real time
    #[arg(long, value_enum, value_name = "MODE", default_value = "deterministic")]
    mode: ModeName,
    /// Phase offsets per load; a verdict takes 5 to 8 [default: the plan's repeats]
    ///
    /// How many it takes depends on how much is compared, and is printed before the run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Seed for the phase offsets
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Leave out the A/A column of the first kernel
    ///
    /// The column shows how much equal kernels differ (A/A). It is measured if there are enough
    /// phase offsets for a verdict.
    #[arg(long)]
    no_control: bool,
    /// Guests to run in parallel [default: one per CPU; 1 in --mode real]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// Time limit for one guest, in time of this machine
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = flags::positive)]
    limit: Nanos,
    /// Repeat what was done before: measured cells, imported contents
    #[arg(long)]
    again: bool,
    /// What to trace for each wake-up
    ///
    /// Tracing needs root (or CAP_BPF and CAP_PERFMON) and a kernel with type information (BTF), as
    /// distribution kernels have. Without these, auto measures without tracing and reports it.
    #[arg(long, value_enum, value_name = "MODE", default_value = "off")]
    trace: TraceMode,
    #[command(flatten)]
    gates: LabGateFlags,
    #[command(flatten)]
    outcome: OutcomeFlags,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct OutcomeFlags {
    /// New directory for the runs, instead of one in the store
    #[arg(short, long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Also write the comparison as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print only the result: no progress, no hints
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// Instruction count: the same result every time, on one emulated CPU
    Deterministic,
    /// Real time: KVM where it works, else plain emulation, which is noisy and gets no verdict
    Real,
}

/// Measures, and prints the comparison.
pub(super) fn run(flags: &LabRunFlags, store: &Store) -> Result<Exit> {
    if let Some(file) = &flags.outcome.report {
        report::is_page("--report", file)?;
    }
    let plan = flags.plan()?;
    let rows = flags.rows(&plan, flags.plan.as_deref())?;
    let sources = flags.sources(&plan)?;
    has_boxes(&rows, &sources)?;
    let mut gates = flags.gates.read(flags.is_counted())?;
    gates.take_those_of(&plan, flags.plan.as_deref())?;
    let jobs = flags.jobs()?;
    let quit = Quit::listen().context("cannot listen for signals")?;
    let cache = lab::cache()?;
    let place = flags.place(store, &plan.name)?;
    // Before kernels are fetched, which takes minutes.
    let directory = RunDirectory::make(&place)?;
    let cell_runner = flags.cell_runner(rows, (&plan, &sources), &cache);
    let cell_runner = cell_runner.inspect_err(|_| directory.discard())?;
    let phases = flags.phases(&plan);
    gates.check(&cell_runner, phases).inspect_err(|_| directory.discard())?;
    flags.notice_phases(&cell_runner, phases);
    let record = LabMeasurement {
        plan: &plan.name,
        cell_runner: &cell_runner,
        results: &Results::at(&cache.join(results::DIRECTORY)),
        phases: 0..phases,
        order: flags.order(&plan),
        pause: flags.pause(&plan),
        budget: plan.budget(),
        jobs,
        again: flags.again,
        quiet: flags.outcome.quiet,
        quit: &quit,
    }
    .measure(&directory, &place)?;
    flags.result(&place, &directory, &record, &cell_runner, &gates)
}

impl LabRunFlags {
    fn plan(&self) -> Result<Plan> {
        match (&self.plan, self.suite) {
            (Some(path), _) => Plan::open(path),
            (None, Some(suite)) => {
                let PlanText { text, name } = suite.plan();
                Plan::parse(&text, &name)
            }
            (None, None) => Plan::parse(FOUNDING, "the built-in plan"),
        }
    }

    /// The rows of the plan, checked, with `--trace` added to each that does not set it.
    fn rows(&self, plan: &Plan, file: Option<&Path>) -> Result<Vec<LabRow>> {
        let flag = format!("--trace={}", self.trace.as_str());
        let mut rows: Vec<LabRow> = plan.rows.iter().map(LabRow::of).collect();
        for row in &mut rows {
            if !row.arguments.iter().any(|word| word.starts_with("--trace=")) {
                row.arguments.push(flag.clone());
            }
        }
        check(plan, &rows, file)?;
        Ok(rows)
    }

    /// In which order cells are measured, and what it is drawn by. Where time is counted no cell
    /// feels those before it.
    fn order(&self, plan: &Plan) -> (CellOrder, u64) {
        let order = if self.is_counted() { CellOrder::Listed } else { plan.order };
        (order, plan.seed.unwrap_or(self.seed))
    }

    /// A pause lets a machine cool down, which counted time does not see.
    fn pause(&self, plan: &Plan) -> Duration {
        if self.is_counted() { Duration::ZERO } else { plan.pause() }
    }

    fn phases(&self, plan: &Plan) -> u32 {
        self.seeds.unwrap_or(plan.repeat)
    }

    /// Whether the first of `kernels` kernels is measured twice: only if something can be judged.
    fn has_control(&self, plan: &Plan, kernels: usize) -> bool {
        let comparisons = comparisons(plan.rows.len(), kernels);
        let are_enough = self.phases(plan) as usize >= phases_needed(comparisons).unpaired;
        self.is_counted() && !self.no_control && kernels > 1 && are_enough
    }

    /// Says what the planned phase offsets can decide.
    fn notice_phases(&self, cells: &CellRunner, phases: u32) {
        let kernels = cells.targets.iter().filter(|target| !target.is_control).count();
        if self.outcome.quiet || kernels < 2 {
            return;
        }
        let comparisons = comparisons(cells.rows.len(), kernels);
        let needed = phases_needed(comparisons);
        let is_enough = phases as usize >= needed.unpaired;
        output::notice(&format!(
            "{comparisons} figures are compared: a verdict takes {} phase offsets of each kernel \
             ({} where they are compared in pairs), and {phases} {}",
            needed.unpaired,
            needed.paired,
            match (phases, is_enough) {
                (1, _) => "is planned: none will be judged",
                (_, true) => "are planned",
                (_, false) => "are planned: none will be judged",
            },
        ));
    }

    fn is_counted(&self) -> bool {
        self.mode == ModeName::Deterministic
    }

    fn jobs(&self) -> Result<usize> {
        let asked = self.jobs.and_then(|jobs| usize::try_from(jobs).ok());
        if self.is_counted() {
            let cores = || std::thread::available_parallelism().map_or(1, usize::from);
            return Ok(asked.unwrap_or_else(cores));
        }
        let jobs = asked.unwrap_or(1);
        ensure!(
            jobs == 1,
            "--jobs {jobs}: in --mode real, guests at the same time would be in each other's \
             numbers; leave it out"
        );
        Ok(jobs)
    }

    /// Of the flag, else of the plan, else Debian's standard and real-time kernel.
    fn sources(&self, plan: &Plan) -> Result<Vec<KernelSource>> {
        let (list, place) = match (&self.kernels, plan.kernels.as_slice()) {
            (Some(list), _) => (list.clone(), "--kernels"),
            (None, []) => ("standard,rt".to_owned(), "--kernels"),
            (None, named) => (named.join(","), "kernels of the plan"),
        };
        let sources = KernelSource::parse_list(&list).context(place)?;
        ensure!(
            !self.is_counted() || sources.iter().all(|source| source.base != Base::Host),
            "{place}: host cannot be measured in --mode deterministic: only a virtual machine's \
             instructions can be counted as time; use --mode real"
        );
        Ok(sources)
    }

    /// Where the runs go.
    fn place(&self, store: &Store, plan: &str) -> Result<PathBuf> {
        if let Some(directory) = &self.outcome.output {
            return Ok(directory.clone());
        }
        let name = file_names(std::iter::once(plan)).remove(0);
        let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
        let place = store.place(&format!("lab-{name}-{now}"));
        ensure!(!place.exists(), "{} exists; try again in a second", place.display());
        Ok(place)
    }

    fn cell_runner(
        &self,
        rows: Vec<LabRow>,
        (plan, sources): (&Plan, &[KernelSource]),
        cache: &Path,
    ) -> Result<CellRunner> {
        let notify = |line: &str| {
            if !self.outcome.quiet {
                output::notice(line);
            }
        };
        let needs_guests = sources.iter().any(|source| source.base != Base::Host);
        let runner = needs_guests.then(|| GuestRunner::open(cache, &notify)).transpose()?;
        let target = |source: &KernelSource| {
            if source.base == Base::Host {
                return Ok(Target { name: HOST.into(), kernel: None, is_control: false });
            }
            let kernel = kernels::get(source, &cache.join(kernels::DIRECTORY), &notify)?;
            kernel.check()?;
            let name = kernel.asked.clone();
            Ok(Target { name, kernel: Some(kernel), is_control: false })
        };
        let mut targets = sources.iter().map(target).collect::<Result<Vec<_>>>()?;
        if let Some(first) = targets.first().filter(|_| self.has_control(plan, sources.len())) {
            targets.insert(1, Target { is_control: true, ..first.clone() });
        }
        Ok(CellRunner {
            runner,
            targets,
            rows,
            mode: if self.is_counted() { ClockMode::Deterministic } else { ClockMode::Real },
            seed: self.seed,
            limit: Duration::from_nanos(self.limit.0.unsigned_abs()),
            program: std::env::current_exe().context("cannot find this program's executable")?,
        })
    }

    /// Prints the result, of the runs in the directory that is held open: another user may have put
    /// his own in its place.
    fn result(
        &self,
        place: &Path,
        directory: &RunDirectory,
        record: &LabRecord,
        cells: &CellRunner,
        gates: &LabGates,
    ) -> Result<Exit> {
        let gathered = compare::gather_held(directory, place)?;
        let exit = if record.failed.is_empty() { Exit::Done } else { Exit::Failed };
        if gathered.runs.is_empty() && record.failed.is_empty() {
            output::notice("Interrupted before anything was measured.");
            return Ok(exit);
        }
        let mut sheet = compare::sheet(&gathered)?;
        let results = match gates.is_empty() {
            true => None,
            false => Some(gates.decide(cells, &gathered.runs)?),
        };
        sheet.finding = of_lab(&sheet, results.as_deref());
        compare::put(&sheet, self.format.is_json(), results.as_deref())?;
        if let Some(file) = &self.outcome.report {
            compare::write_page(file, &sheet, &gathered)?;
        }
        if !self.outcome.quiet {
            output::notice(&plain(&format!("runs in {}", place.display())));
        }
        self.gates.write(&record.plan, cells, &gathered.runs)?;
        Ok(exit.worst(gates.exit(&results.unwrap_or_default(), &gathered.runs)))
    }
}

/// How many figures are compared in such a matrix.
fn comparisons(loads: usize, kernels: usize) -> usize {
    loads * kernels.saturating_sub(1) * FIGURES.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_that_comes_along_is_one() {
        let plan = Plan::parse(FOUNDING, "founding").unwrap();
        assert!(plan.rows.len() > 5);
    }
}
