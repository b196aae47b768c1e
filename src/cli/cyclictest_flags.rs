//! The options of cyclictest, and what `tardy run` is asked for by them.

mod job;
mod length;

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::Args;

use self::length::RunLength;
pub(super) use self::{job::CyclictestJob, length::seconds_of};
use crate::sys::cpus::Cpus;

/// Between two expiries of a thread.
const LONGEST_INTERVAL_US: u32 = 3_600_000_000;

/// Rows of a histogram at most, as there.
const MOST_BINS: u64 = 1_000_000;

/// How much longer the interval of each thread is than that of the thread before, unless told
/// otherwise, as there.
const DISTANCE_US: u32 = 500;

/// Threads on a CPU at most.
const MOST_THREADS: u32 = 64;

/// Spikes that are kept, unless told otherwise, as there.
pub(super) const SPIKES: usize = 1_024;

/// Spikes that are kept at most.
const MOST_SPIKES: i64 = 1_000_000;

/// Run with cyclictest's options and output format
///
/// The run is saved like any other: `tardy show last`, `tardy why last`. Every thread has one CPU,
/// and all have the same priority. Times are in us, as in cyclictest. A link to tardy with the
/// name cyclictest does the same.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, infer_long_args = true)]
pub(super) struct CyclictestFlags {
    /// The CPUs of the threads, as 0-3,7; alone or with all, thread N on CPU N
    #[arg(short, long, value_name = "CPUSET", num_args = 0..=1, default_missing_value = "")]
    pub(super) affinity: Option<String>,
    /// How many threads; alone, one for each CPU [default: 1]
    #[arg(short, long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "0")]
    pub(super) threads: Option<u32>,
    /// A thread on each CPU, all of one priority
    #[arg(short = 'S', long)]
    pub(super) smp: bool,
    /// Priority of the threads; 0 for ordinary ones
    #[arg(short, long = "prio", value_name = "PRIO", alias = "priority", default_value = "0")]
    pub(super) priority: u32,
    /// Policy: other, normal, fifo or rr [default: fifo where -p is given]
    #[arg(short_alias = 'y', long, value_name = "NAME")]
    pub(super) policy: Option<String>,
    /// Interval of the first thread
    #[arg(short, long, value_name = "US", default_value = "1000")]
    pub(super) interval: u32,
    /// How much longer the interval of each next thread is; 0 with -h [default: 500]
    #[arg(short, long, value_name = "US")]
    pub(super) distance: Option<u32>,
    /// Time from each thread's expiries to those of the next thread [default: 0]
    #[arg(short = 'A', long, value_name = "US", num_args = 0..=1, default_missing_value = "0")]
    pub(super) aligned: Option<u32>,
    /// How long: a number, or one with m, h or d behind it; with -l until the first of both
    #[arg(short = 'D', long, value_name = "SECONDS")]
    pub(super) duration: Option<String>,
    /// How many samples of each thread; 0 for no end
    #[arg(short, long, value_name = "COUNT", default_value = "0")]
    pub(super) loops: u64,
    /// Print the histogram, up to this many us
    #[arg(short = 'h', long, value_name = "US", value_parser = number)]
    pub(super) histogram: Option<u64>,
    /// The same with a column of sums
    #[arg(short = 'H', long, value_name = "US", value_parser = number)]
    #[arg(conflicts_with = "histogram")]
    pub(super) histofall: Option<u64>,
    /// Write the histogram to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(super) histfile: Option<PathBuf>,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Print every sample at the end: task, cycle, latency
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// With -v, print the largest of each COUNT samples
    #[arg(short, long, value_name = "COUNT", requires = "verbose", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) oscope: u32,
    /// Print the wake-ups later than this, with their times; keeps every sample
    #[arg(long, value_name = "US")]
    pub(super) spike: Option<u64>,
    /// How many of them: the first ones [default: 1024]
    #[arg(long, value_name = "COUNT", requires = "spike")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=MOST_SPIKES))]
    pub(super) spike_nodes: Option<i64>,
    /// Print only the result: no progress, no hints
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// End at the first latency over this
    #[arg(short, long, value_name = "US")]
    pub(super) breaktrace: Option<u64>,
    /// At -b write a mark into the kernel's trace, and stop it
    #[arg(long, requires = "breaktrace")]
    pub(super) tracemark: bool,
    /// Latencies in ns
    #[arg(short = 'N', long)]
    pub(super) nsecs: bool,
    /// The clock: 0, CLOCK_MONOTONIC
    #[arg(short, long, value_name = "CLOCK", default_value = "0")]
    pub(super) clock: u32,
    /// Measure the resolution of the clock first; a warning says where it is coarse
    #[arg(short = 'R', long)]
    pub(super) resolution: bool,
    /// Sleep for a relative time
    #[arg(short, long)]
    pub(super) relative: bool,
    /// Sleep by nanosleep, which is a relative time: the same as -r
    #[arg(short, long)]
    pub(super) system: bool,
    /// Wait for the signal of a periodic POSIX timer
    #[arg(short = 'x', long = "posix_timers", conflicts_with = "system")]
    pub(super) posix_timers: bool,
    /// Lock memory: tardy always does
    #[arg(short, long)]
    pub(super) mlockall: bool,
    /// Sleep by clock_nanosleep: tardy always does
    #[arg(short, long)]
    pub(super) nanosleep: bool,
    /// Redraw at a new maximum only: tardy draws nothing on standard output
    #[arg(short = 'M', long = "refresh_on_max", alias = "refresh-on-max")]
    pub(super) refresh_on_max: bool,
    /// Keep CPUs out of idle states with an exit latency above this [default: 0]
    #[arg(long, value_name = "US")]
    pub(super) latency: Option<u32>,
    /// Let CPUs idle as deeply as they do by themselves
    #[arg(long)]
    pub(super) laptop: bool,
    /// Change nothing of the system: the same as --laptop
    #[arg(long)]
    pub(super) default_system: bool,
    /// CPUs of the threads that do not measure
    #[arg(long, value_name = "CPUSET")]
    pub(super) mainaffinity: Option<Cpus>,
    /// Name of the run in the store; an option of tardy alone
    #[arg(long, value_name = "NAME")]
    pub(super) run_name: Option<String>,
    /// Write each line at once: tardy always does
    #[arg(short, long)]
    pub(super) unbuffered: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub(super) help: Option<bool>,
}

/// Thread N is on the Nth CPU, and after the last again on the first.
struct Places {
    cpus: Cpus,
    threads: u32,
}

impl CyclictestFlags {
    /// What `tardy run` is given.
    pub(super) fn run_words(&self) -> Result<Vec<String>> {
        ensure!(
            self.clock == 0,
            "-c {}: tardy measures by CLOCK_MONOTONIC, -c 0; leave it out",
            self.clock
        );
        self.check_numbers()?;
        let mut words: Vec<String> =
            ["tardy", "run", "timer", "--warmup", "0s", "--trace", "off"].map(str::to_owned).into();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let Places { cpus, threads } = self.places()?;
        add("--cpus", cpus.to_string());
        add("--total-threads", threads.to_string());
        add("--interval", format!("{}us", self.interval));
        let step_us = self.step_us(threads);
        if step_us > 0 {
            add("--interval-step", format!("{step_us}us"));
        }
        let policy = self.own_policy()?;
        add("--policy", policy.into());
        if policy != "other" {
            add("--priority", self.priority.max(1).to_string());
        }
        let longest_us = u64::from(self.interval) + u64::from(step_us) * u64::from(threads - 1);
        match RunLength::of(self.loops, self.duration.as_deref(), longest_us)? {
            RunLength::Endless => add("--duration", "inf".into()),
            RunLength::Seconds(seconds) => add("--duration", format!("{seconds}s")),
            RunLength::Samples(loops) => add("--samples", loops.to_string()),
        }
        if let Some(cpus) = &self.mainaffinity {
            add("--housekeeping", cpus.to_string());
        }
        if let Some(name) = &self.run_name {
            add("--name", name.clone());
        }
        if let Some(us) = self.breaktrace {
            add("--stop-over", format!("{us}us"));
        }
        if let Some(wake) = self.wake() {
            add("--wake", wake.into());
        }
        if let Some(us) = self.aligned {
            add("--distance", format!("{us}us"));
        }
        let leaves_idle = self.laptop || self.default_system;
        if let Some(us) = self.latency.filter(|_| !leaves_idle) {
            add("--max-idle-latency", format!("{us}us"));
        }
        words.extend(leaves_idle.then(|| "--no-dma-latency".to_owned()));
        words.extend(self.tracemark.then(|| "--mark-trace".to_owned()));
        let needs_samples = self.verbose || self.spike.is_some();
        words.extend(needs_samples.then(|| "--raw".to_owned()));
        words.extend(self.quiet.then(|| "--quiet".to_owned()));
        Ok(words)
    }

    /// Refuses what `tardy run` would, which names options that are not typed here, and what has
    /// nothing to print.
    fn check_numbers(&self) -> Result<()> {
        let Self { priority, interval, .. } = self;
        ensure!(
            *priority <= 99,
            "-p {priority}: priorities are 1 to 99, and 0 of ordinary threads"
        );
        ensure!(
            (1..=LONGEST_INTERVAL_US).contains(interval),
            "-i {interval}: an interval is 1 to {LONGEST_INTERVAL_US} us, which is an hour"
        );
        for (name, bins) in [("-h", self.histogram), ("-H", self.histofall)] {
            ensure!(
                bins != Some(0),
                "{name} 0: a histogram of 0 us has no rows; write how many it is to have, or leave \
                 {name} out"
            );
        }
        ensure!(
            self.histfile.is_none() || self.bins().is_some(),
            "--histfile: no histogram was asked for; add -h US, or leave --histfile out"
        );
        ensure!(
            self.breaktrace != Some(0),
            "-b 0: every latency is over 0 us; write 1 or more, or leave -b out"
        );
        Ok(())
    }

    /// Rows of the histogram, if one is printed.
    pub(super) fn bins(&self) -> Option<u64> {
        self.histogram.or(self.histofall).map(|bins| bins.min(MOST_BINS))
    }

    /// How threads wait, by its name in tardy, unless as they do by default. On Linux, nanosleep
    /// is a relative sleep by CLOCK_MONOTONIC.
    const fn wake(&self) -> Option<&'static str> {
        match (self.posix_timers, self.relative || self.system) {
            (true, _) => Some("signal"),
            (false, true) => Some("relative"),
            (false, false) => None,
        }
    }

    /// The policy by its name in tardy.
    fn own_policy(&self) -> Result<&'static str> {
        Ok(match self.policy.as_deref().map(str::to_lowercase).as_deref() {
            None if self.priority > 0 => "fifo",
            None | Some("other" | "normal") => "other",
            Some("fifo") => "fifo",
            Some("rr") => "rr",
            Some(_) => bail!(
                "--policy {}: tardy measures under fifo, rr and other",
                self.policy.as_deref().unwrap_or_default()
            ),
        })
    }

    /// How much longer the interval of each thread is than that of the thread before, us; the
    /// columns of a histogram have one.
    fn step_us(&self, threads: u32) -> u32 {
        let has_steps = threads > 1 && self.bins().is_none();
        if has_steps { self.distance.unwrap_or(DISTANCE_US) } else { 0 }
    }

    fn places(&self) -> Result<Places> {
        let allowed = Cpus::allowed().context("cannot read which CPUs this process may use")?;
        let asked = match self.affinity.as_deref() {
            None | Some("" | "all") => allowed,
            Some(list) => list.parse().map_err(|error| anyhow!("-a {list}: {error}"))?,
        };
        let there = u32::try_from(asked.iter().count()).unwrap_or(u32::MAX).max(1);
        let threads = match self.threads {
            _ if self.smp => there,
            Some(0) => there,
            Some(threads) => threads,
            None => 1,
        };
        let most = there.saturating_mul(MOST_THREADS);
        ensure!(
            threads <= most,
            "-t {threads}: tardy has at most {MOST_THREADS} threads on each CPU, and there are \
             {there} CPUs; give {most} or fewer"
        );
        Ok(Places { cpus: asked.iter().take(threads as usize).collect(), threads })
    }
}

/// A number with spaces before it, which C's `atoi` skips: rteval gives `-h 3500` as one word.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.trim_start().parse()
}
