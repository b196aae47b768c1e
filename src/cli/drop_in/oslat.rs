//! `tardy oslat`: its options and its output, on the loop of the noise probe, with the run kept as
//! well.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, CommandFactory as _, FromArgMatches as _};

use super::{notice_caveats, unlabelled, words};
use crate::{
    cli::{
        Cli, Exit, Verb, cyclictest_flags::seconds_of, output, report, run, setup::exit_of_setup,
        verb_at,
    },
    exchange::export::{
        CountedRun,
        oslat::{OslatStyle, OslatTable},
        rt_tests::VERSION,
    },
    run::{Document, Run, RunDirectory, Status},
    store::Store,
    sys::{
        cpus::Cpus,
        ftrace::{ForeignTrace, TRACEFS},
    },
};

/// A turn of 1 us or more is no longer in the first row.
const GAP_OVER: &str = "999ns";

/// Run with oslat's options and output format
///
/// The run is saved like any other: `tardy show last`, `tardy why last`. Every CPU has a thread
/// that reads the clock all the time. Times are in us, as in oslat. A link to tardy with the name
/// oslat does the same.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
pub(in crate::cli) struct OslatFlags {
    /// Rows of the histogram, 4 to 1024
    #[arg(short, long, value_name = "COUNT", default_value = "32")]
    bucket_size: u64,
    /// Begin the rows above the smallest latency of the run
    #[arg(short = 'B', long)]
    bias: bool,
    /// The CPUs to measure, as 1,3,5-7 [default: all]
    #[arg(short, long, value_name = "CPUSET")]
    cpu_list: Option<String>,
    /// The CPU of the threads that do not measure [default: those not measured]
    #[arg(short = 'C', long, value_name = "CPU")]
    cpu_main_thread: Option<u32>,
    /// How long: seconds, or a number with m, h or d behind it
    #[arg(short = 'D', long, value_name = "RUNTIME", default_value = "1")]
    duration: String,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Priority of the threads under SCHED_FIFO, 1 to 99 [default: ordinary threads]
    #[arg(short = 'f', long, value_name = "PRIO")]
    rtprio: Option<u32>,
    /// Print only the result: no progress, no hints
    #[arg(short, long)]
    quiet: bool,
    /// End at the first latency of this many us, and mark and stop the kernel's trace
    #[arg(short = 'T', long, value_name = "US")]
    trace_threshold: Option<u64>,
    /// Print the version
    #[arg(short, long)]
    version: bool,
    /// What each turn of the loop does: no
    #[arg(short, long, value_name = "NAME", default_value = "no")]
    workload: String,
    /// Leave out rows that count nothing
    #[arg(short, long)]
    zero_omit: bool,
    /// Name of the run in the store; an option of tardy alone
    #[arg(long, value_name = "NAME")]
    run_name: Option<String>,
}

/// The exit code of an error on this command line: oslat has 1.
pub(in crate::cli) fn exit_of_error(argv: &[String]) -> Exit {
    let words = words(argv.iter().map(Into::into));
    let verb = verb_at(&words).and_then(|at| words.get(at));
    if verb.is_some_and(|verb| verb == "oslat") { Exit::No } else { Exit::Failed }
}

/// Measures, and prints what oslat would.
pub(in crate::cli) fn oslat<E: Into<anyhow::Error>>(
    flags: &OslatFlags,
    store: impl FnOnce() -> Result<Store, E>,
    argv: Vec<String>,
) -> Result<Exit> {
    let version = format!("oslat V {VERSION} (tardy {})\n", env!("CARGO_PKG_VERSION"));
    if flags.version {
        output::put(&version)?;
        return Ok(Exit::Done);
    }
    let plan = OslatPlan::of(flags, &Cpus::allowed().context(UNREADABLE)?)?;
    let words = plan.run_words(flags, plan.marks_trace());
    let matches =
        Cli::command().try_get_matches_from(&words).map_err(|error| anyhow!(unlabelled(&error)))?;
    let Verb::Run(asked) = Cli::from_arg_matches(&matches)?.verb else {
        bail!("`tardy run` was expected");
    };
    let store = store().map_err(Into::into)?;
    output::put_columns(&version)?;
    if !flags.quiet {
        output::put_columns(&plan.header())?;
    }
    let (document, held) = run::record(&asked, &store, argv).map_err(|error| plan.typed(&error))?;
    if document.status == Status::StoppedOver {
        plan.say_threshold(&document);
        return Ok(Exit::No);
    }
    flags.put(&document, &held)?;
    if !flags.quiet {
        notice_caveats(&document);
    }
    Ok(exit_of_setup(&document))
}

const UNREADABLE: &str = "cannot read which CPUs this process may use";

/// What the options come to.
struct OslatPlan {
    cpus: Cpus,
    /// As typed.
    cpu_list: String,
    /// Where the threads run that do not measure.
    others: Cpus,
    is_place_asked: bool,
    seconds: u64,
    priority: Option<u32>,
    threshold_us: Option<u64>,
}

impl OslatPlan {
    /// Refuses what `tardy run` would, which names options that are not typed here.
    fn of(flags: &OslatFlags, allowed: &Cpus) -> Result<Self> {
        flags.check_numbers()?;
        let cpu_list = flags.cpu_list.clone().unwrap_or_else(|| "all".to_owned());
        let cpus: Cpus = match cpu_list.as_str() {
            "all" => allowed.clone(),
            list => list.parse().map_err(|error| anyhow!("-c {list}: {error}"))?,
        };
        let refused = |option: &str, cpus: &Cpus| {
            anyhow!(
                "{option}: CPU {cpus} is not online or not allowed for this process; allowed are \
                 {allowed}"
            )
        };
        let absent = cpus.without(allowed);
        ensure!(absent.is_empty(), refused(&format!("-c {cpu_list}"), &absent));
        let left = allowed.without(&cpus);
        ensure!(
            flags.rtprio.is_none() || !left.is_empty(),
            "-f: SCHED_FIFO threads on all CPUs ({cpus}) would keep everything else from them, for \
             they never sleep; leave a CPU out by -c, or leave -f out"
        );
        let asked: Option<Cpus> = flags.cpu_main_thread.map(|cpu| [cpu].into_iter().collect());
        if let Some(place) = asked.as_ref().filter(|place| !place.without(allowed).is_empty()) {
            bail!(refused(&format!("-C {place}"), place));
        }
        let is_place_asked = asked.is_some();
        let others = asked.unwrap_or_else(|| if left.is_empty() { cpus.clone() } else { left });
        let seconds = seconds_of(&flags.duration, "for 1 second")?;
        let (priority, threshold_us) = (flags.rtprio, flags.trace_threshold);
        Ok(Self { cpus, cpu_list, others, is_place_asked, seconds, priority, threshold_us })
    }

    /// What `tardy run` is given.
    fn run_words(&self, flags: &OslatFlags, marks_trace: bool) -> Vec<String> {
        // oslat lets CPUs idle as they do by themselves.
        let fixed = ["--warmup", "1s", "--trace", "off", "--no-dma-latency", "--gap-over"];
        let mut words: Vec<String> =
            ["tardy", "run", "noise"].into_iter().chain(fixed).map(str::to_owned).collect();
        words.push(GAP_OVER.to_owned());
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--cpus", self.cpus.to_string());
        add("--duration", format!("{}s", self.seconds));
        match self.priority {
            Some(priority) => {
                add("--policy", "fifo".into());
                add("--priority", priority.to_string());
            }
            None => add("--policy", "other".into()),
        }
        if self.is_place_asked {
            add("--housekeeping", self.others.to_string());
        }
        if let Some(name) = &flags.run_name {
            add("--name", name.clone());
        }
        if let Some(us) = self.threshold_us {
            // A latency counts as the us in which it ends.
            add("--stop-over", format!("{}ns", (us - 1) * 1_000 - 1));
        }
        words.extend(marks_trace.then(|| "--mark-trace".to_owned()));
        words.extend(flags.quiet.then(|| "--quiet".to_owned()));
        words
    }

    /// Whether the kernel's trace can be marked at the threshold. If not, oslat continues, too.
    fn marks_trace(&self) -> bool {
        let opened = self.threshold_us.map(|_| ForeignTrace::open(Path::new(TRACEFS)));
        if let Some(Err(error)) = &opened {
            output::notice(&format!(
                "-T: the threshold ends the run, but does not mark or stop a trace: {error}"
            ));
        }
        opened.is_some_and(|opened| opened.is_ok())
    }

    /// What oslat says before it measures.
    fn header(&self) -> String {
        let priority = self.priority.map(|priority| format!("SCHED_FIFO:{priority}"));
        format!(
            "Total runtime: \t\t{} seconds\nThread priority: \t{}\nCPU list: \t\t{}\n\
             CPU for main thread: \t{}\nWorkload: \t\tno\nWorkload mem: \t\t0 (KiB)\n\
             Preheat cores: \t\t{}\n\nPre-heat for 1 seconds...\n",
            self.seconds,
            priority.as_deref().unwrap_or("default"),
            self.cpu_list,
            self.others,
            self.cpus.iter().count()
        )
    }

    /// An error with the options that were typed.
    fn typed(&self, error: &anyhow::Error) -> anyhow::Error {
        let said = format!("{error:#}");
        let priority = self.priority.unwrap_or(0);
        anyhow!(
            said.replace(
                &format!("--policy fifo --priority {priority}"),
                &format!("-f {priority}")
            )
        )
    }

    /// What oslat says where a latency reached the threshold.
    fn say_threshold(&self, document: &Document) {
        let longest = document.wakeups().max_by_key(|series| series.max);
        let longest = longest.and_then(|series| Some((series.cpu?, series.max?)));
        if let Some((cpu, max_ns)) = longest {
            let (threshold, us) = (self.threshold_us.unwrap_or(0), max_ns / 1_000 + 1);
            output::notice(&format!(
                "oslat: Trace threshold ({threshold} us) triggered on cpu {cpu} with {us} us!\n\
                 Stopping the test."
            ));
        }
    }
}

impl OslatFlags {
    fn check_numbers(&self) -> Result<()> {
        let Self { bucket_size, rtprio, trace_threshold, workload, .. } = self;
        ensure!(
            (4..=1_024).contains(bucket_size),
            "-b {bucket_size}: a histogram has 4 to 1024 rows"
        );
        if let Some(priority) = rtprio {
            ensure!(
                (1..=99).contains(priority),
                "-f {priority}: priorities are 1 to 99; leave -f out for ordinary threads"
            );
        }
        if let Some(us) = trace_threshold {
            ensure!(*us >= 2, "-T {us}: every turn of the loop counts as 1 us; write 2 or more");
            ensure!(*us <= LONGEST_US, "-T {us}: it is longer than 292 years");
        }
        ensure!(
            workload == "no",
            "-w {workload}: the loop only reads the clock; leave -w out, or run a load beside it: \
             `tardy run noise --load memory`"
        );
        Ok(())
    }

    /// What oslat prints and writes at its end.
    fn put(&self, document: &Document, held: &RunDirectory) -> Result<()> {
        let run = Run::of(held.path(), document.clone());
        let counted = CountedRun::read(run).map_err(|what| anyhow!(what))?;
        let Self { bucket_size: rows, bias: is_biased, zero_omit: omits_zeros, .. } = *self;
        let table = OslatTable::of(&counted, OslatStyle { rows, is_biased, omits_zeros })?;
        let mut out = String::new();
        if !self.quiet {
            out.push_str(&table.bias_line());
            out.push_str("Test starts...\nTest completed.\n\n");
        }
        out.push_str(&table.text());
        output::put_columns(&out)?;
        let Some(path) = &self.json else { return Ok(()) };
        let bytes = table.json(&counted)?;
        if path.as_os_str() == "-" {
            output::put(&String::from_utf8_lossy(&bytes))
        } else if self.quiet {
            report::write_quietly(path, &bytes)
        } else {
            report::write(path, &bytes)
        }
    }
}

/// The longest threshold whose ns are a time.
const LONGEST_US: u64 = 9_000_000_000_000_000;

#[cfg(test)]
mod tests;
