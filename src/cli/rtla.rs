//! `tardy rtla`: the options and the output of rtla's timerlat and osnoise, on tardy's loops, with
//! the run kept as well. Also where tardy is called by one of these names.

mod histogram;
mod others;
#[cfg(test)]
mod tests;
mod threads;

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Subcommand};
use rustix::process::geteuid;

pub(super) use self::others::{with_mode, with_tip};
use self::{histogram::HistogramFlags, threads::ThreadFlags};
use super::{Cli, Exit, Verb, output, run, setup::exit_of_setup};
use crate::{
    exchange::export::{
        CountedRun,
        rtla::{RtlaColumn, RtlaStyle, histogram, stopped_at, summary},
    },
    kernel::can_trace,
    plain::plain,
    report::{
        terminal::{fold, push_caveat},
        why,
    },
    run::{Document, Run, RunDirectory, Status, TraceMode},
    store::Store,
};

/// Run with rtla's options and output format
///
/// The run is saved like any other: `tardy show last`, `tardy why last`. It needs none of the
/// kernel's tracers. A link to tardy with the name rtla, timerlat or osnoise does the same.
///
/// Exit codes, as those of rtla: 0 done, 1 an error, 2 a limit was met.
#[derive(Debug, Args)]
pub(super) struct RtlaFlags {
    #[command(subcommand)]
    tool: RtlaTool,
}

#[derive(Debug, Subcommand)]
enum RtlaTool {
    Timerlat(TimerlatFlags),
    Osnoise(OsnoiseFlags),
}

/// Measure how late threads run that a timer wakes
#[derive(Debug, Args)]
struct TimerlatFlags {
    #[command(subcommand)]
    mode: TimerlatMode,
}

#[derive(Debug, Subcommand)]
enum TimerlatMode {
    Hist(TimerlatHistFlags),
    Top(TimerlatTopFlags),
}

/// Find what interrupts a thread that never sleeps
#[derive(Debug, Args)]
struct OsnoiseFlags {
    #[command(subcommand)]
    mode: OsnoiseMode,
}

#[derive(Debug, Subcommand)]
enum OsnoiseMode {
    Hist(OsnoiseHistFlags),
}

/// Print a histogram for each CPU
///
/// IRQ ends when the timer's interrupt begins, and needs tracing, as `tardy run` does. Thr ends
/// when the thread reads the clock in user space: some microseconds after rtla's threads, which
/// are in the kernel.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
struct TimerlatHistFlags {
    #[command(flatten)]
    timer: TimerFlags,
    #[command(flatten)]
    threads: ThreadFlags,
    #[command(flatten)]
    rows: HistogramFlags,
    /// Leave out the columns of the interrupts
    #[arg(long)]
    no_irq: bool,
    /// Leave out the columns of the threads
    #[arg(long)]
    no_thread: bool,
}

/// Print a line for each CPU
///
/// The line is printed at the end; meanwhile `tardy top` shows the run. `cur`, the last latency, is
/// in no record and is printed as a dash. IRQ ends when the timer's interrupt begins, and needs
/// tracing, as `tardy run` does. Thread ends when the thread reads the clock in user space: some
/// microseconds after rtla's threads, which are in the kernel.
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
struct TimerlatTopFlags {
    #[command(flatten)]
    timer: TimerFlags,
    #[command(flatten)]
    threads: ThreadFlags,
    /// As -a, and print no line of a CPU, only why the limit was met
    #[arg(long, value_name = "US", conflicts_with = "auto")]
    aa_only: Option<u64>,
}

/// Print a histogram of interruptions for each CPU
#[derive(Debug, Args)]
#[command(infer_long_args = true)]
struct OsnoiseHistFlags {
    #[command(flatten)]
    threads: ThreadFlags,
    #[command(flatten)]
    rows: HistogramFlags,
    /// Period of the measurement, us; the thread spins for all of it
    #[arg(short, long, value_name = "US")]
    period: Option<u64>,
    /// How long the thread spins in each period, us: all of it
    #[arg(short, long, value_name = "US")]
    runtime: Option<u64>,
    /// End at the first interruption of more than this, us
    #[arg(short, long, value_name = "US")]
    stop: Option<u64>,
    /// Count interruptions of at least this, us
    #[arg(short = 'T', long, value_name = "US", default_value = "5")]
    threshold: u64,
    /// End at the first interruption of more than this, us, and say why
    #[arg(short, long, value_name = "US", conflicts_with = "stop")]
    auto: Option<u64>,
}

/// What timerlat measures.
#[derive(Debug, Args)]
struct TimerFlags {
    /// Time between two wake-ups of a thread, us
    #[arg(short, long, value_name = "US", default_value = "1000")]
    period: u64,
    /// End at the first latency of more than this, us, and say why
    #[arg(short, long, value_name = "US", conflicts_with = "thread")]
    auto: Option<u64>,
    /// End at the first latency of a thread of more than this, us, and say why
    #[arg(short = 'T', long, value_name = "US")]
    thread: Option<u64>,
    /// Keep stacks of what was late: tardy does so for every late wake-up that it explains
    #[arg(short, long, value_name = "US", conflicts_with = "no_aa")]
    stack: Option<u64>,
    /// Print times in ns
    #[arg(short, long)]
    nano: bool,
    /// Do not look for causes
    #[arg(long)]
    no_aa: bool,
    /// Limit the latency of idle states to this, us [default: as the CPUs are]
    #[arg(long, value_name = "US")]
    dma_latency: Option<u64>,
}

/// What is measured and printed.
struct RtlaPlan {
    /// Of `tardy run`.
    words: Vec<String>,
    style: RtlaStyle,
    form: RtlaForm,
    /// Whether causes of a latency beyond the limit are printed.
    is_explained: bool,
    is_quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RtlaForm {
    Histogram,
    Summary,
    /// Nothing but why a limit was met.
    Cause,
}

/// Whether tracing is worth a try: root has the kernel's own tracer without BPF, too.
fn may_trace() -> bool {
    geteuid().is_root() || can_trace().is_ok()
}

/// The longest time that is taken, us: an hour.
const MOST_US: u64 = 3_600_000_000;

/// Refuses 0, and what is longer than an hour.
fn check_us(option: &str, us: Option<u64>) -> Result<()> {
    let fits = us.is_none_or(|us| (1..=MOST_US).contains(&us));
    ensure!(fits, "{option} {}: write 1 to {MOST_US} us, which is an hour", us.unwrap_or(0));
    Ok(())
}

impl TimerFlags {
    /// The limit of a latency, us.
    fn limit_us(&self) -> Option<u64> {
        self.thread.or(self.auto)
    }

    /// Adds what `tardy run timer` is given. `has_irq`: whether interrupts are asked for.
    fn add_to(&self, words: &mut Vec<String>, limit_us: Option<u64>, has_irq: bool) -> Result<()> {
        check_us("-p", Some(self.period))?;
        check_us("-a", self.auto)?;
        check_us("-T", self.thread)?;
        let trace = match (self.no_aa, has_irq || limit_us.is_some()) {
            (true, true) if may_trace() => "stages",
            (true, true) => "off",
            (true, false) => "off",
            (false, true) if self.stack.is_some() => "peaks",
            (false, true) => "auto",
            (false, false) => "off",
        };
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--interval", format!("{}us", self.period));
        add("--trace", trace.to_owned());
        if let Some(us) = limit_us {
            add("--stop-over", format!("{us}us"));
        }
        match self.dma_latency {
            Some(us) => add("--max-idle-latency", format!("{us}us")),
            None => words.push("--no-dma-latency".into()),
        }
        Ok(())
    }

    const fn unit_ns(&self) -> u64 {
        if self.nano { 1 } else { 1_000 }
    }
}

impl TimerlatHistFlags {
    fn plan(&self) -> Result<RtlaPlan> {
        ensure!(
            !(self.no_irq && self.no_thread),
            "--no-irq --no-thread: no column is left; leave one of them out"
        );
        let limit_us = self.timer.limit_us();
        let mut words = self.threads.words("timer", "fifo 95")?;
        self.timer.add_to(&mut words, limit_us, !self.no_irq)?;
        let columns = [(RtlaColumn::Irq, self.no_irq), (RtlaColumn::Thread, self.no_thread)];
        let columns = columns.into_iter().filter(|(_, is_out)| !is_out).map(|(own, _)| own);
        Ok(RtlaPlan {
            words,
            style: self.rows.style("timerlat", columns.collect(), self.timer.unit_ns())?,
            form: RtlaForm::Histogram,
            is_explained: limit_us.is_some() && !self.timer.no_aa,
            is_quiet: self.threads.quiet,
        })
    }
}

impl TimerlatTopFlags {
    fn plan(&self) -> Result<RtlaPlan> {
        check_us("--aa-only", self.aa_only)?;
        ensure!(
            self.aa_only.is_none() || !self.timer.no_aa,
            "--aa-only --no-aa: nothing is left to print; leave one of them out"
        );
        let limit_us = self.aa_only.or_else(|| self.timer.limit_us());
        let mut words = self.threads.words("timer", "fifo 95")?;
        self.timer.add_to(&mut words, limit_us, true)?;
        let columns = vec![RtlaColumn::Irq, RtlaColumn::Thread];
        Ok(RtlaPlan {
            words,
            style: HistogramFlags::default().style("timerlat", columns, self.timer.unit_ns())?,
            form: if self.aa_only.is_some() { RtlaForm::Cause } else { RtlaForm::Summary },
            is_explained: limit_us.is_some() && !self.timer.no_aa,
            is_quiet: self.threads.quiet,
        })
    }
}

impl OsnoiseHistFlags {
    fn plan(&self) -> Result<RtlaPlan> {
        for (option, us) in [
            ("-p", self.period),
            ("-r", self.runtime),
            ("-s", self.stop),
            ("-T", Some(self.threshold)),
            ("-a", self.auto),
        ] {
            check_us(option, us)?;
        }
        let period_us = self.period.unwrap_or(1_000_000);
        ensure!(
            self.runtime.is_none_or(|us| us == period_us),
            "-r {}: the thread spins all the time, for {period_us} us of each period; leave -r \
             out. To leave time to others, leave a CPU out by -c, or use ordinary threads (-P o:0)",
            self.runtime.unwrap_or(0)
        );
        let mut words = self.threads.words("noise", "other")?;
        // -a counts from 1 us on there, too.
        let threshold_us = if self.auto.is_some() { 1 } else { self.threshold };
        let is_traced = self.auto.is_some() && may_trace();
        let trace = if is_traced { "peaks" } else { "off" };
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        // A gap of the threshold itself counts.
        add("--gap-over", format!("{}ns", threshold_us * 1_000 - 1));
        add("--trace", trace.to_owned());
        if let Some(us) = self.stop.or(self.auto) {
            add("--stop-over", format!("{us}us"));
        }
        words.push("--no-dma-latency".into());
        Ok(RtlaPlan {
            words,
            style: self.rows.style("osnoise", vec![RtlaColumn::Noise], 1_000)?,
            form: RtlaForm::Histogram,
            is_explained: self.auto.is_some(),
            is_quiet: self.threads.quiet,
        })
    }
}

impl RtlaFlags {
    fn plan(&self) -> Result<RtlaPlan> {
        match &self.tool {
            RtlaTool::Timerlat(TimerlatFlags { mode: TimerlatMode::Hist(flags) }) => flags.plan(),
            RtlaTool::Timerlat(TimerlatFlags { mode: TimerlatMode::Top(flags) }) => flags.plan(),
            RtlaTool::Osnoise(OsnoiseFlags { mode: OsnoiseMode::Hist(flags) }) => flags.plan(),
        }
    }
}

/// Measures, and prints what rtla would.
pub(super) fn rtla(flags: &RtlaFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let plan = flags.plan()?;
    let parsed = Cli::command().try_get_matches_from(&plan.words);
    let Verb::Run(asked) =
        Cli::from_arg_matches(&parsed.map_err(|error| anyhow!(error.to_string()))?)?.verb
    else {
        bail!("`tardy run` was expected");
    };
    let recorded = run::record(&asked, store, argv);
    let (document, held) = recorded.map_err(|error| threads::as_typed(&error))?;
    plan.put(&document, &held)?;
    if document.status == Status::StoppedOver {
        return Ok(Exit::No);
    }
    Ok(exit_of_setup(&document))
}

impl RtlaPlan {
    fn put(mut self, document: &Document, held: &RunDirectory) -> Result<()> {
        let run = Run::of(held.path(), document.clone());
        let counted = CountedRun::read(run).map_err(|what| anyhow!(what))?;
        self.leave_out_untraced(document)?;
        match self.form {
            RtlaForm::Histogram => output::put_columns(&histogram(&counted, &self.style)?)?,
            RtlaForm::Summary => output::put_columns(&summary(&counted, &self.style))?,
            RtlaForm::Cause => {}
        }
        if document.status == Status::StoppedOver {
            let at = stopped_at(&counted).map(|at| format!("{at}\n")).unwrap_or_default();
            output::put(&format!("rtla {} hit stop tracing\n{at}", self.style.tool))?;
            match document.trace.found {
                TraceMode::Off if self.is_explained => {
                    output::notice("Nothing was traced, and nothing shows why it was late.");
                }
                _ if self.is_explained => self.put_causes(document, held)?,
                _ => {}
            }
        }
        if !self.is_quiet {
            let mut caveats = String::new();
            document.caveats.iter().for_each(|caveat| push_caveat(&mut caveats, caveat));
            output::notice(caveats.trim_end());
        }
        Ok(())
    }

    /// Leaves the columns of interrupts out if the run has none, and says why.
    ///
    /// # Errors
    /// No other column was asked for.
    fn leave_out_untraced(&mut self, document: &Document) -> Result<()> {
        let is_traced = document.series.iter().any(|series| series.name.ends_with("/irq"));
        if is_traced || !self.style.columns.contains(&RtlaColumn::Irq) {
            return Ok(());
        }
        self.style.columns.retain(|own| *own != RtlaColumn::Irq);
        let why = document.trace.why_not.clone().unwrap_or_else(|| "nothing was traced".into());
        let why = why.trim_end_matches('.');
        ensure!(!self.style.columns.is_empty(), "--no-thread: IRQ was not measured: {why}");
        output::notice(&format!("IRQ: not measured, and left out: {why}"));
        Ok(())
    }

    /// What the worst latency waited for.
    fn put_causes(&self, document: &Document, held: &RunDirectory) -> Result<()> {
        let run = Run::of(held.path(), document.clone());
        let (report, document) = why::document(&run)?;
        let view = why::PeakView::Timelines(1);
        let text = why::text(&report, &document, &plain(&document.name), view);
        output::put(&fold(&text, output::width()))
    }
}
