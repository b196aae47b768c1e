//! `tardy run`: flags to a plan, a plan to a run.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{
    Exit,
    flags::{CommandFlags, FormatFlags, interval, positive, samples},
    messages::MessageFlags,
    output,
    progress::Line,
    setup::{SetupFlags, name_holder, recover_first},
    trace::TraceFlags,
};
use crate::{
    loads::LoadSpec,
    probes::{
        Probe,
        fake::Fake,
        timer::{Timer, WakeKind},
    },
    report::{collect, terminal},
    run::Run,
    session::{CALIBRATION_NS, Length, Plan, Session},
    setup::{Wish, threads},
    store::{Store, is_plain},
    sys::{cpus::Cpus, sched::Policy, signals::Quit},
    units::{Nanos, span},
};

/// Measure how late this machine answers, under a load or idle, and record it.
///
/// A bare `tardy run` measures timer wake-ups on every CPU under hackbench (4 groups) for 60 s. A
/// PROBE without --load measures the machine as it is.
#[derive(Debug, Args)]
pub struct Flags {
    /// What to measure [default: timer]
    #[arg(value_enum, value_name = "PROBE")]
    probe: Option<ProbeName>,
    #[command(flatten)]
    length: LengthFlags,
    #[command(flatten)]
    timer: TimerFlags,
    #[command(flatten)]
    messages: MessageFlags,
    #[command(flatten)]
    setup: SetupFlags,
    /// What disturbs the machine meanwhile: NAME[:key=value,...]; repeatable
    ///
    /// `tardy load --list` shows all loads with their parameters. idle is none.
    #[arg(long = "load", value_name = "LOAD", help_heading = "Loads")]
    loads: Vec<String>,
    #[command(flatten)]
    commands: CommandFlags,
    #[command(flatten)]
    trace: TraceFlags,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Length")]
struct LengthFlags {
    /// How long to measure [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = positive, conflicts_with = "samples")]
    #[arg(allow_hyphen_values = true)]
    duration: Option<Nanos>,
    /// How many samples to take per thread, instead of a time: 1000, 50k, 300M
    #[arg(long, value_name = "N", value_parser = samples)]
    samples: Option<u64>,
    /// How long to measure beforehand without recording it
    #[arg(long, value_name = "TIME", default_value = "1s")]
    warmup: Nanos,
    /// End the run at the first latency over this, with exit code 1
    #[arg(long, value_name = "TIME", value_parser = positive)]
    stop_over: Option<Nanos>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Probe")]
struct TimerFlags {
    /// Time from one expiry to the next, the same on every CPU
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = interval)]
    #[arg(allow_hyphen_values = true)]
    interval: Nanos,
    /// CPUs to measure, as 0-3,7 [default: all that this process may use]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<Cpus>,
    /// How threads wait for an expiry
    #[arg(long, value_enum, default_value = "nanosleep", value_name = "KIND")]
    wake: Wake,
    /// Threads per CPU
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// How much the priority falls from one thread of a CPU to the next
    #[arg(long, value_name = "N", default_value = "0")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=98))]
    priority_step: u32,
    /// How much later each thread expires than the one before it
    #[arg(long, value_name = "TIME", default_value = "0us")]
    distance: Nanos,
    /// Feed the fake probe as fast as possible
    #[arg(long, hide = true)]
    unpaced: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct RecordFlags {
    /// Keep every single sample too, as Parquet files
    #[arg(long)]
    raw: bool,
    /// Directory to record the run in, instead of a new one in the store
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Name of the run and of its directory, to find it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the result alone: no progress, no hints
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProbeName {
    /// Sleep until a programmed time; how late is the wake-up?
    Timer,
    /// Known samples, fed instead of slept for: for tests and demos
    Fake,
}

impl ProbeName {
    /// As on the command line.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Fake => "fake",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wake {
    /// Absolute clock_nanosleep, as cyclictest does
    Nanosleep,
    /// Relative clock_nanosleep: entering the call counts, no period can be missed
    Relative,
    /// Reads of a periodic timerfd; missed periods are the kernel's overrun count
    Timerfd,
}

/// Measures, records, and prints what came of it.
pub fn run(flags: Flags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let (json, quiet) = (flags.format.is_json(), flags.record.quiet);
    if flags.is_bare() && !quiet {
        output::tell("No PROBE and no --load: timer under hackbench (4 groups), 60 s.");
    }
    let left = recover_first(quiet);
    let mut plan = flags.plan(store, argv).map_err(|error| name_holder(error, &left))?;
    plan.doubts.extend(left);
    let directory = plan.directory.clone();
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let session = Session::arm(plan)?;
    if session.calibrates() && !quiet {
        let length = span(CALIBRATION_NS as f64 / 1e9);
        output::tell(&format!("Measuring first for {length} what tracing costs."));
    }
    let mut line = Line::new(!quiet && io::stderr().is_terminal());
    let document = session.run(|| quit.seen().map(signal_name), |glance| line.show(glance))?;
    line.clear();
    if json {
        output::put(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let moved = Run::open(&directory).map(|mut run| collect::interrupts(&mut run));
        let place = directory.display().to_string();
        output::put(&terminal::show(&document, &place, &moved.unwrap_or_default()))?;
    }
    if json && !quiet {
        let mut caveats = String::new();
        document.caveats.iter().for_each(|caveat| terminal::push_caveat(&mut caveats, caveat));
        output::tell(caveats.trim_end());
    }
    Ok(Exit::of(&document))
}

fn signal_name(number: usize) -> String {
    match i32::try_from(number) {
        Ok(libc::SIGINT) => "Ctrl-C".into(),
        Ok(libc::SIGTERM) => "SIGTERM".into(),
        Ok(libc::SIGHUP) => "SIGHUP".into(),
        _ => format!("signal {number}"),
    }
}

impl Flags {
    fn is_bare(&self) -> bool {
        self.probe.is_none() && self.loads.is_empty() && self.commands.load_commands.is_empty()
    }

    /// Checks everything that can be checked before anything is touched.
    fn plan(self, store: &Store, argv: Vec<String>) -> Result<Plan> {
        self.messages.check(self.probe.unwrap_or(ProbeName::Timer).as_str())?;
        let loads = self.load_specs()?;
        let cpus = self.measured_cpus()?;
        let policy = self.setup.policy(self.timer.interval)?;
        let priority = Wish::new(self.setup.priority, DEFAULT_PRIORITY);
        self.check_priorities(policy.value, priority.value)?;
        let (found_policy, found_priority, doubt) = threads::settle(policy, priority)?;
        let wishes = self.setup.wishes(&cpus)?;
        let slack_ns = u64::try_from(self.setup.timer_slack.0).unwrap_or(1).max(1);
        let probe = self.probe(&cpus, found_policy, found_priority, slack_ns);
        let id = new_id()?;
        let name = self.record.name.clone();
        Ok(Plan {
            probe,
            loads,
            length: match self.length.samples {
                Some(samples) => Length::Samples(samples),
                None => Length::Time(self.length.duration.unwrap_or(DEFAULT_DURATION).0),
            },
            interval_ns: self.timer.interval.0,
            warmup_ns: self.length.warmup.0,
            stop_over_ns: self.length.stop_over.map(|over| over.0),
            raw: self.record.raw,
            cpus,
            policy: (policy, found_policy),
            priority: (priority, found_priority),
            slack_ns,
            hold_dma_latency: !self.setup.no_dma_latency,
            wishes,
            trace: self.trace.wish()?,
            doubts: doubt.into_iter().collect(),
            directory: self.directory(store, &id)?,
            name,
            id,
            argv,
        })
    }

    fn load_specs(&self) -> Result<Vec<LoadSpec>> {
        let typed = if self.is_bare() { vec!["hackbench".into()] } else { self.loads.clone() };
        let read = |text: &String| LoadSpec::parse(text).with_context(|| format!("--load {text}"));
        typed.iter().map(read).chain(self.commands.specs()).collect()
    }

    fn measured_cpus(&self) -> Result<Cpus> {
        let allowed = Cpus::allowed().context("cannot ask which CPUs this process may use")?;
        let Some(asked) = self.timer.cpus.clone() else {
            return Ok(allowed);
        };
        let refused = asked.without(&allowed);
        ensure!(
            refused.is_empty(),
            "--cpus {asked}: CPU {refused} is not online or not allowed for this process; \
             allowed are {allowed}"
        );
        Ok(asked)
    }

    fn check_priorities(&self, policy: Policy, priority: u32) -> Result<()> {
        if !policy.is_real_time() {
            if self.setup.priority.is_some() {
                bail!("--priority has no meaning with --policy {policy}; leave one of them out");
            }
            return Ok(());
        }
        let (step, threads) = (self.timer.priority_step, self.timer.threads);
        ensure!(
            step * (threads - 1) < priority,
            "--priority-step {step}: the last of {threads} threads would have a priority below 1; \
             use a smaller step, fewer --threads or a higher --priority than {priority}"
        );
        Ok(())
    }

    fn probe(&self, cpus: &Cpus, policy: Policy, priority: u32, slack_ns: u64) -> Box<dyn Probe> {
        let interval_ns = self.timer.interval.0;
        if self.probe == Some(ProbeName::Fake) {
            let scheduling = self.setup.says_policy().then_some((policy, priority));
            let (cpus, unpaced) = (cpus.clone(), self.timer.unpaced);
            return Box::new(Fake { cpus, interval_ns, unpaced, scheduling });
        }
        Box::new(Timer {
            cpus: cpus.clone(),
            threads_per_cpu: self.timer.threads,
            interval_ns,
            distance_ns: self.timer.distance.0,
            wake: match self.timer.wake {
                Wake::Nanosleep => WakeKind::Nanosleep,
                Wake::Relative => WakeKind::Relative,
                Wake::Timerfd => WakeKind::Timerfd,
            },
            policy,
            priority,
            priority_step: self.timer.priority_step,
            slack_ns,
        })
    }

    fn directory(&self, store: &Store, id: &str) -> Result<PathBuf> {
        if let Some(name) = &self.record.name {
            ensure!(is_plain(name), "--name {name:?}: a name has no / in it and is not . or ..");
        }
        if let Some(directory) = &self.record.output {
            return Ok(directory.clone());
        }
        let place = store.place(self.record.name.as_deref().unwrap_or(id));
        if let (true, Some(name)) = (place.exists(), &self.record.name) {
            bail!("--name {name}: {} exists; choose another name", place.display());
        }
        Ok(place)
    }
}

const DEFAULT_PRIORITY: u32 = 90;
const DEFAULT_DURATION: Nanos = Nanos(60_000_000_000);

/// Time, and four digits in case two runs start in one second.
fn new_id() -> Result<String> {
    let mut random = [0_u8; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .context("the kernel gives no random number")?;
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    Ok(format!("{now}-{:04x}", u16::from_ne_bytes(random)))
}
