//! `tardy lab run`: a plan on several kernels.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{compare, matrix_progress::MatrixProgress};
use crate::{
    cli::{self, Exit, flags, flags::FormatFlags, output, report},
    lab::{
        self,
        cell::ClockMode,
        cell_runner::{CellRunner, Target, file_names},
        guest_runner::GuestRunner,
        host::HOST,
        kernels::{self, Base, KernelSource},
        plan::LabPlan,
        results::{self, Results},
        scheduler::{CellTask, ScheduleOptions, TaskOutcome, run_tasks},
    },
    loads::LoadSpec,
    run::{
        TraceMode,
        lab::{LAB_VERSION, LabFailure, LabKernel, LabRecord},
    },
    store::Store,
    sys::signals::Quit,
    units::Nanos,
};

/// The plan that is run where none is named.
const FOUNDING: &str = include_str!("../../../lab/founding.toml");

/// Measure a plan's loads on several kernels, and compare them.
///
/// Boots each kernel in a virtual machine, once for each load and start phase, and runs this same
/// program inside. What is measured lies below one directory, a run each, which `tardy show`,
/// `report` and `plot` take; `tardy lab compare` shows the table again.
///
/// In --mode deterministic a guest's time is the count of its instructions: the same answer every
/// time, on any machine, so that what is known already is not measured again. It shows how long the
/// paths of a kernel are, not how fast a machine is.
///
/// With --trace peaks the comparison names for each load who held the CPU in its worst wake-ups. It
/// counts where the plan itself does not say `trace`, and makes the counted paths longer by that of
/// the tracing.
#[derive(Debug, Args)]
pub struct LabRunFlags {
    /// What to measure: a TOML file [default: what the founding texts compare]
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// The kernels, as A,B,...: what `tardy lab kernels --fetch` takes, or host
    ///
    /// standard and rt are those of Debian; standard+preempt=full is one with a word on its command
    /// line; ./bzImage is a file. The first is the one that the others are compared with. host is
    /// this machine itself, in --mode real.
    #[arg(long, value_name = "KERNELS", default_value = "standard,rt")]
    kernels: String,
    /// What makes a guest's time: the count of its instructions, or the clock
    #[arg(long, value_enum, value_name = "MODE", default_value = "deterministic")]
    mode: ModeName,
    /// Start phases to measure of each load; 5 or more make a verdict [default: the plan's repeats]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Guests at the same time [default: as many as CPUs; 1 in --mode real]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// How long the guest may take, of this machine's time
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = flags::positive)]
    limit: Nanos,
    /// Measure also what is known from before
    #[arg(long)]
    again: bool,
    /// What to find out about wake-ups, beside how late they were
    ///
    /// Needs root, or CAP_BPF and CAP_PERFMON, and a kernel that describes its types (BTF), as
    /// those of distributions do. auto goes on without where that is missing, and says so.
    #[arg(long, value_enum, value_name = "MODE", default_value = "off")]
    trace: TraceMode,
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
    /// Write the comparison as one self-contained HTML page too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the result alone: no progress, no hints
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// The count of instructions: the same every time, on one emulated CPU
    Deterministic,
    /// The clock: KVM where it works, else plain emulation, which is noisy and never judged
    Real,
}

/// Measures, and prints the comparison.
pub fn run(flags: &LabRunFlags, store: &Store) -> Result<Exit> {
    if let Some(file) = &flags.outcome.report {
        report::is_page("--report", file)?;
    }
    let plan = flags.traced(flags.plan()?);
    check(&plan, flags.plan.as_deref())?;
    let sources = flags.sources()?;
    has_boxes(&plan, &sources)?;
    let jobs = flags.jobs()?;
    let quit = Quit::listen().context("cannot listen for signals")?;
    let directory = flags.directory(store, &plan.name)?;
    let cache = lab::cache()?;
    let cell_runner = flags.cell_runner(&plan, &sources, &cache)?;
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let tasks = cell_runner.tasks(&directory, flags.seeds.unwrap_or(plan.repeats));
    let mut record = record(&plan, &cell_runner, &directory)?;
    let results = Results::at(&cache.join(results::DIRECTORY));
    let stop = || quit.seen().is_some();
    let orders = ScheduleOptions { jobs, results: &results, again: flags.again, stop: &stop };
    let mut watch = MatrixProgress::new(tasks.len(), jobs, flags.outcome.quiet);
    let outcomes = run_tasks(&tasks, &cell_runner, &orders, &mut |event| watch.note(&event));
    watch.end();
    note(&mut record, &cell_runner, &tasks, &outcomes);
    record.write(&directory).with_context(|| format!("cannot write to {}", directory.display()))?;
    flags.result(&directory, &record, store)
}

impl LabRunFlags {
    fn plan(&self) -> Result<LabPlan> {
        match &self.plan {
            Some(path) => LabPlan::open(path),
            None => LabPlan::parse(FOUNDING, "the plan that tardy brings along"),
        }
    }

    /// The plan with `--trace` where a load does not say it.
    fn traced(&self, mut plan: LabPlan) -> LabPlan {
        let flag = format!("--trace={}", self.trace.as_str());
        for row in &mut plan.loads {
            if !row.arguments.iter().any(|word| word.starts_with("--trace=")) {
                row.arguments.push(flag.clone());
            }
        }
        plan
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

    fn directory(&self, store: &Store, plan: &str) -> Result<PathBuf> {
        let Some(directory) = &self.outcome.output else {
            let name = file_names(std::iter::once(plan)).remove(0);
            let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let place = store.place(&format!("lab-{name}-{now}"));
            ensure!(!place.exists(), "{} exists; try again in a second", place.display());
            return Ok(place);
        };
        let is_free = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
        ensure!(
            is_free && !directory.is_file(),
            "-o {}: it is there and not empty; name a new directory, or remove it. What was \
             measured is not measured again",
            directory.display()
        );
        Ok(directory.clone())
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
                return Ok(Target { name: HOST.into(), kernel: None });
            }
            let kernel = kernels::get(source, &cache.join(kernels::DIRECTORY), &notify)?;
            kernel.check()?;
            Ok(Target { name: kernel.asked.clone(), kernel: Some(kernel) })
        };
        let targets = sources.iter().map(target).collect::<Result<Vec<_>>>()?;
        Ok(CellRunner {
            runner,
            targets,
            rows: plan.loads.clone(),
            mode: if self.is_counted() { ClockMode::Deterministic } else { ClockMode::Real },
            limit: Duration::from_nanos(self.limit.0.unsigned_abs()),
            program: std::env::current_exe().context("cannot find this program's own file")?,
        })
    }

    /// Prints what came of it.
    fn result(&self, directory: &Path, record: &LabRecord, store: &Store) -> Result<Exit> {
        let place = directory.display().to_string();
        let gathered = compare::gather(std::slice::from_ref(&place), store)?;
        let exit = if record.failed.is_empty() { Exit::Done } else { Exit::Failed };
        if gathered.runs.is_empty() && record.failed.is_empty() {
            output::notice("Ended before anything was measured.");
            return Ok(exit);
        }
        let sheet = compare::sheet(&gathered)?;
        compare::put(&sheet, self.format.is_json())?;
        if let Some(file) = &self.outcome.report {
            compare::write_page(file, &sheet, &gathered)?;
        }
        if !self.outcome.quiet {
            output::notice(&format!("runs in {place}"));
        }
        Ok(exit)
    }
}

/// Whether `tardy run` would take each load's arguments: a guest would say it minutes later.
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

/// What clap says against these arguments of tardy, without how it is used.
fn would_take(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("tardy").chain(arguments.iter().map(String::as_str));
    let Err(error) = cli::command().try_get_matches_from(words) else { return Ok(()) };
    let text = error.to_string();
    let about = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let about = about.take_while(|line| !line.starts_with("Usage:"));
    let about = about.filter(|line| !line.starts_with("For more")).collect::<Vec<_>>();
    bail!("{}", about.join("; ").trim_start_matches("error: "))
}

/// What is known before anything was measured; written at once, so that a lab that is killed leaves
/// its runs in order.
fn record(plan: &LabPlan, cell_runner: &CellRunner, directory: &Path) -> Result<LabRecord> {
    let names = file_names(cell_runner.targets.iter().map(|target| target.name.as_str()));
    let mut kernels = Vec::new();
    for (target, name) in cell_runner.targets.iter().zip(names) {
        let config = target.kernel.as_ref().map(|kernel| &kernel.config);
        let config = config.filter(|config| !config.is_empty()).map(|config| {
            let place = directory.join(format!("config-{name}"));
            fs::write(&place, config.text())
                .with_context(|| format!("cannot write {}", place.display()))
                .map(|()| PathBuf::from(format!("config-{name}")))
        });
        kernels.push(LabKernel { name: target.name.clone(), config: config.transpose()? });
    }
    let record = LabRecord {
        lab_version: LAB_VERSION,
        plan: plan.name.clone(),
        kernels,
        loads: plan.loads.iter().map(|row| row.name.clone()).collect(),
        ..LabRecord::default()
    };
    record.write(directory).with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(record)
}

fn note(
    record: &mut LabRecord,
    cell_runner: &CellRunner,
    tasks: &[CellTask],
    outcomes: &[TaskOutcome],
) {
    for (task, outcome) in tasks.iter().zip(outcomes) {
        let name = |name: Option<&String>| name.cloned().unwrap_or_default();
        match outcome {
            TaskOutcome::Failed(why) => record.failed.push(LabFailure {
                load: name(cell_runner.rows.get(task.load).map(|row| &row.name)),
                kernel: name(cell_runner.targets.get(task.kernel).map(|target| &target.name)),
                seed: task.seed,
                why: why.clone(),
            }),
            TaskOutcome::Stopped => record.undone += 1,
            TaskOutcome::Measured(_) | TaskOutcome::Known => {}
        }
    }
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
    fn what_tardy_run_would_not_take_is_told_before_anything_boots() {
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
