//! `tardy lab run`: a plan on several kernels.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{
    compare,
    gates::{LabGateFlags, LabGates},
    measure::LabMeasurement,
};
use crate::{
    analysis::{matrix::FIGURES, phases::phases_needed},
    cli::{self, Exit, flags, flags::FormatFlags, output, report},
    lab::{
        self,
        cell::{ClockMode, guest_runner::GuestRunner},
        kernels::{self, Base, KernelSource},
        matrix::{
            cell_runner::{CellRunner, Target, file_names},
            host::HOST,
            plan::LabPlan,
            results::{self, Results},
        },
    },
    loads::LoadSpec,
    plain::plain,
    run::{RunDirectory, TraceMode, lab::LabRecord},
    store::Store,
    sys::signals::Quit,
    units::Nanos,
};

/// The default plan.
const FOUNDING: &str = include_str!("../../../lab/founding.toml");

/// Measure a plan's loads on several kernels, and compare them.
///
/// Boots each kernel in a virtual machine, once per load and start phase, and runs this same
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
    /// Kernels, as A,B,...: names as for `tardy lab kernels --fetch`, or host
    ///
    /// standard and rt are the Debian kernels; standard+preempt=full adds an option to the kernel
    /// command line; ./bzImage is a file. The first kernel is the baseline. host is this machine
    /// itself, in --mode real.
    #[arg(long, value_name = "KERNELS", default_value = "standard,rt")]
    kernels: String,
    /// Clock of the guest: its instruction count, or real time
    #[arg(long, value_enum, value_name = "MODE", default_value = "deterministic")]
    mode: ModeName,
    /// Start phases per load; a verdict takes 5 to 8 [default: the plan's repeats]
    ///
    /// How many it takes depends on how much is compared, and is printed before the run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Draws the start phases; the same seed draws the same ones
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Leave out the second column of the first kernel, with other padding of its command line
    ///
    /// It shows how far equal kernels come apart (A/A), and is measured where there are enough
    /// start phases for a verdict.
    #[arg(long)]
    no_control: bool,
    /// Guests to run in parallel [default: one per CPU; 1 in --mode real]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// Time limit for one guest, in time of this machine
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = flags::positive)]
    limit: Nanos,
    /// Measure every cell again, also those measured before
    #[arg(long)]
    again: bool,
    /// What to record about each wake-up besides its latency
    ///
    /// Needs root, or CAP_BPF and CAP_PERFMON, and a kernel with type information (BTF), as
    /// distribution kernels have. Where that is missing, auto measures without and reports it.
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
    let plan = flags.traced(flags.plan()?);
    check(&plan, flags.plan.as_deref())?;
    let sources = flags.sources()?;
    has_boxes(&plan, &sources)?;
    let gates = flags.gates.read(flags.is_counted())?;
    let jobs = flags.jobs()?;
    let quit = Quit::listen().context("cannot listen for signals")?;
    let cache = lab::cache()?;
    let place = flags.place(store, &plan.name)?;
    // Before kernels are fetched, which takes minutes.
    let directory = RunDirectory::make(&place)?;
    let cell_runner = flags.cell_runner(&plan, &sources, &cache);
    let cell_runner = cell_runner.inspect_err(|_| directory.discard())?;
    let phases = flags.phases(&plan);
    gates.check(&cell_runner, phases).inspect_err(|_| directory.discard())?;
    flags.notice_phases(&cell_runner, phases);
    let record = LabMeasurement {
        plan: &plan.name,
        cell_runner: &cell_runner,
        results: &Results::at(&cache.join(results::DIRECTORY)),
        phases: 0..phases,
        jobs,
        again: flags.again,
        quiet: flags.outcome.quiet,
        quit: &quit,
    }
    .measure(&directory, &place)?;
    flags.result(&place, &directory, &record, &cell_runner, &gates)
}

impl LabRunFlags {
    fn plan(&self) -> Result<LabPlan> {
        match &self.plan {
            Some(path) => LabPlan::open(path),
            None => LabPlan::parse(FOUNDING, "the built-in plan"),
        }
    }

    /// The plan, with `--trace` added to each load that does not set it.
    fn traced(&self, mut plan: LabPlan) -> LabPlan {
        let flag = format!("--trace={}", self.trace.as_str());
        for row in &mut plan.loads {
            if !row.arguments.iter().any(|word| word.starts_with("--trace=")) {
                row.arguments.push(flag.clone());
            }
        }
        plan
    }

    fn phases(&self, plan: &LabPlan) -> u32 {
        self.seeds.unwrap_or(plan.repeats)
    }

    /// Whether the first of so many kernels is measured twice: where something can be judged.
    fn has_control(&self, plan: &LabPlan, kernels: usize) -> bool {
        let comparisons = comparisons(plan.loads.len(), kernels);
        let are_enough = self.phases(plan) as usize >= phases_needed(comparisons).unpaired;
        self.is_counted() && !self.no_control && kernels > 1 && are_enough
    }

    /// Says what the planned start phases can decide.
    fn notice_phases(&self, cells: &CellRunner, phases: u32) {
        let kernels = cells.targets.iter().filter(|target| !target.is_control).count();
        if self.outcome.quiet || kernels < 2 {
            return;
        }
        let comparisons = comparisons(cells.rows.len(), kernels);
        let needed = phases_needed(comparisons);
        let is_enough = phases as usize >= needed.unpaired;
        output::notice(&format!(
            "{comparisons} figures are compared: a verdict takes {} start phases of each kernel \
             ({} where they are compared in pairs), and {phases} {}",
            needed.unpaired,
            needed.paired,
            if is_enough { "are planned" } else { "are planned: none will be judged" },
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

    fn sources(&self) -> Result<Vec<KernelSource>> {
        let sources = KernelSource::parse_list(&self.kernels).context("--kernels")?;
        ensure!(
            !self.is_counted() || sources.iter().all(|source| source.base != Base::Host),
            "--kernels: host cannot be measured in --mode deterministic: only a virtual machine's \
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
        plan: &LabPlan,
        sources: &[KernelSource],
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
            rows: plan.loads.clone(),
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
        let sheet = compare::sheet(&gathered)?;
        let results = match gates.is_empty() {
            true => None,
            false => Some(gates.decide(cells, &gathered.runs)?),
        };
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

/// Checks that `tardy run` accepts the arguments of each load: a guest would fail minutes later.
fn check(plan: &LabPlan, file: Option<&Path>) -> Result<()> {
    let file = file.map_or_else(|| "the plan".into(), |path| path.display().to_string());
    for row in &plan.loads {
        let place = || format!("{file}, line {}: load {:?}", row.line, row.name);
        would_take(&row.arguments).with_context(place)?;
        if !row.far.is_empty() {
            would_take(&row.far).context("its second box").with_context(place)?;
        }
        for load in row.arguments.iter().filter_map(|word| word.strip_prefix("--load=")) {
            LoadSpec::parse(load).with_context(place)?;
        }
    }
    Ok(())
}

/// This machine is one box.
fn has_boxes(plan: &LabPlan, sources: &[KernelSource]) -> Result<()> {
    let two = plan.loads.iter().find(|row| !row.far.is_empty());
    if let Some(row) = two.filter(|_| sources.iter().any(|source| source.base == Base::Host)) {
        bail!(
            "--kernels: host is one box, and load {:?} wants two; leave host out, or measure it \
             with `tardy run --to` and an echo on another machine",
            row.name
        );
    }
    Ok(())
}

/// The error of clap for these arguments of tardy, without the usage line.
fn would_take(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("tardy").chain(arguments.iter().map(String::as_str));
    let Err(error) = cli::command().try_get_matches_from(words) else { return Ok(()) };
    let text = error.to_string();
    let about = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let about = about.take_while(|line| !line.starts_with("Usage:"));
    let about = about.filter(|line| !line.starts_with("For more")).collect::<Vec<_>>();
    bail!("{}", about.join("; ").trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: &str) -> String {
        let text = format!("name = \"x\"\n[[load]]\nname = \"y\"\n{change}\n");
        let plan = LabPlan::parse(&text, "p.toml").unwrap();
        format!("{:#}", check(&plan, Some(Path::new("p.toml"))).unwrap_err())
    }

    #[test]
    fn the_plan_that_comes_along_is_one() {
        let plan = LabPlan::parse(FOUNDING, "founding").unwrap();
        assert!(plan.loads.len() > 5);
    }

    #[test]
    fn this_machine_is_one_box() {
        let text = "name = \"x\"\nboxes = 2\n[[load]]\nname = \"y\"\n";
        let plan = LabPlan::parse(text, "p.toml").unwrap();
        let sources = |list: &str| KernelSource::parse_list(list).unwrap();
        has_boxes(&plan, &sources("standard,rt")).unwrap();
        let error = has_boxes(&plan, &sources("standard,host")).unwrap_err().to_string();
        assert!(error.contains("host is one box") && error.contains("\"y\""), "{error}");
    }

    #[test]
    fn what_tardy_run_would_not_take_is_reported_before_anything_boots() {
        let error = refused("run.interval = \"200\"");
        assert!(error.starts_with("p.toml, line 2: load \"y\": invalid value '200'"), "{error}");
        assert!(error.contains("200 has no unit"), "{error}");
        let error = refused("run.intervall = \"200us\"");
        assert!(error.contains("--intervall") && error.contains("'--interval'"), "{error}");
        let error = refused("use = [\"signals:processes=0\"]");
        assert!(error.contains("line 2") && error.contains("processes"), "{error}");
        assert!(refused("use = [\"nothing\"]").contains("nothing"), "unknown loads");
    }
}
