//! `tardy cyclictest`: its options and its output, on tardy's loop, with the run kept as well. Also
//! where tardy is called by the name cyclictest.

mod length;
mod others;

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, CommandFactory as _, FromArgMatches as _};

use self::length::RunLength;
pub(super) use self::others::with_tip;
use super::{Cli, Exit, Verb, output, report, run, setup::exit_of_setup};
use crate::{
    exchange::export::{
        CountedRun,
        cyclictest::{CyclictestStyle, histogram, json, lines},
    },
    report::terminal,
    run::{Document, Run, RunDirectory, Status},
    store::Store,
    sys::cpus::Cpus,
};

/// Between two expiries of a thread.
const LONGEST_INTERVAL_US: u32 = 3_600_000_000;

/// Rows of a histogram at most, as there.
const MOST_BINS: u64 = 1_000_000;

/// Run with cyclictest's options and output format
///
/// The run is saved like any other: `tardy show last`, `tardy why last`. Every thread has one CPU
/// and the same interval and priority. Times are in us, as in cyclictest. A link to tardy with the
/// name cyclictest does the same.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, infer_long_args = true)]
pub(super) struct CyclictestFlags {
    /// The CPUs of the threads, as 0-3,7; alone or with all, thread N on CPU N
    #[arg(short, long, value_name = "CPUSET", num_args = 0..=1, default_missing_value = "")]
    affinity: Option<String>,
    /// How many threads; alone, one for each CPU [default: 1]
    #[arg(short, long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "0")]
    threads: Option<u32>,
    /// A thread on each CPU, all of one priority
    #[arg(short = 'S', long)]
    smp: bool,
    /// Priority of the threads; 0 for ordinary ones
    #[arg(short, long = "prio", value_name = "PRIO", alias = "priority", default_value = "0")]
    priority: u32,
    /// Policy: other, normal, fifo or rr [default: fifo where -p is given]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Interval of every thread
    #[arg(short, long, value_name = "US", default_value = "1000")]
    interval: u32,
    /// Must be 0: the threads of tardy have one interval
    #[arg(short, long, value_name = "US")]
    distance: Option<u32>,
    /// How long: a number, or one with m, h or d behind it; with -l until the first of both
    #[arg(short = 'D', long, value_name = "SECONDS")]
    duration: Option<String>,
    /// How many samples of each thread; 0 for no end
    #[arg(short, long, value_name = "COUNT", default_value = "0")]
    loops: u64,
    /// Print the histogram, up to this many us
    #[arg(short = 'h', long, value_name = "US", value_parser = number)]
    histogram: Option<u64>,
    /// The same with a column of sums
    #[arg(short = 'H', long, value_name = "US", value_parser = number)]
    #[arg(conflicts_with = "histogram")]
    histofall: Option<u64>,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print every sample at the end: task, cycle, latency
    #[arg(short, long)]
    verbose: bool,
    /// Print only the result: no progress, no hints
    #[arg(short, long)]
    quiet: bool,
    /// End at the first latency over this
    #[arg(short, long, value_name = "US")]
    breaktrace: Option<u64>,
    /// At -b write a mark into the kernel's trace, and stop it
    #[arg(long, requires = "breaktrace")]
    tracemark: bool,
    /// Latencies in ns
    #[arg(short = 'N', long)]
    nsecs: bool,
    /// The clock: 0, CLOCK_MONOTONIC
    #[arg(short, long, value_name = "CLOCK", default_value = "0")]
    clock: u32,
    /// Sleep for a relative time
    #[arg(short, long)]
    relative: bool,
    /// Lock memory: tardy always does
    #[arg(short, long)]
    mlockall: bool,
    /// Sleep by clock_nanosleep: tardy always does
    #[arg(short, long)]
    nanosleep: bool,
    /// Redraw at a new maximum only: tardy draws nothing on standard output
    #[arg(short = 'M', long)]
    refresh_on_max: bool,
    /// Let CPUs idle as deeply as they do by themselves
    #[arg(long)]
    laptop: bool,
    /// Change nothing of the system: the same as --laptop
    #[arg(long)]
    default_system: bool,
    /// CPUs of the threads that do not measure
    #[arg(long, value_name = "CPUSET")]
    mainaffinity: Option<Cpus>,
    /// Name of the run in the store; not in cyclictest
    #[arg(long, value_name = "NAME")]
    run_name: Option<String>,
    /// Write each line at once: tardy always does
    #[arg(short, long)]
    unbuffered: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// The words of the command line: where tardy is called as cyclictest, those of that verb.
pub(super) fn words(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = args.into_iter().collect();
    let name = words.first().map(PathBuf::from);
    if name.is_some_and(|name| name.file_name().is_some_and(|name| name == "cyclictest")) {
        words.splice(..1, ["tardy".into(), "cyclictest".into()]);
    }
    words
}

/// Measures, and prints what cyclictest would.
pub(super) fn cyclictest(
    flags: &CyclictestFlags,
    store: &Store,
    argv: Vec<String>,
) -> Result<Exit> {
    let words = flags.run_words()?;
    let matches =
        Cli::command().try_get_matches_from(&words).map_err(|error| anyhow!(unlabelled(&error)))?;
    let Verb::Run(asked) = Cli::from_arg_matches(&matches)?.verb else {
        bail!("`tardy run` was expected");
    };
    let (document, held) = run::record(&asked, store, argv)?;
    flags.put(&document, &held)?;
    if !flags.quiet {
        let mut caveats = String::new();
        document.caveats.iter().for_each(|caveat| terminal::push_caveat(&mut caveats, caveat));
        output::notice(caveats.trim_end());
    }
    // As cyclictest, which says by its output alone whether it broke off.
    Ok(exit_of_setup(&document))
}

/// What the parser of `tardy run` says, without the word and the hint that it puts around.
fn unlabelled(error: &clap::Error) -> String {
    let said = error.to_string();
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    said.split("\n\n").next().unwrap_or_default().to_owned()
}

impl CyclictestFlags {
    /// What `tardy run` is given.
    fn run_words(&self) -> Result<Vec<String>> {
        ensure!(
            self.clock == 0,
            "-c {}: tardy measures by CLOCK_MONOTONIC, -c 0; leave it out",
            self.clock
        );
        ensure!(
            self.distance.is_none_or(|us| us == 0),
            "-d: the threads of tardy have one interval, as with -d 0; leave it out, or set their \
             expiries apart: `tardy run --distance TIME`"
        );
        self.check_numbers()?;
        let mut words: Vec<String> =
            ["tardy", "run", "timer", "--warmup", "0s", "--trace", "off"].map(str::to_owned).into();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let (cpus, threads) = self.places()?;
        add("--cpus", cpus.to_string());
        add("--threads", threads.to_string());
        add("--interval", format!("{}us", self.interval));
        let policy = self.own_policy()?;
        add("--policy", policy.into());
        if policy != "other" {
            add("--priority", self.priority.max(1).to_string());
        }
        match RunLength::of(self.loops, self.duration.as_deref(), self.interval)? {
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
        if self.relative {
            add("--wake", "relative".into());
        }
        let leaves_idle = self.laptop || self.default_system;
        words.extend(leaves_idle.then(|| "--no-dma-latency".to_owned()));
        words.extend(self.tracemark.then(|| "--mark-trace".to_owned()));
        words.extend(self.verbose.then(|| "--raw".to_owned()));
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
            self.breaktrace != Some(0),
            "-b 0: every latency is over 0 us; write 1 or more, or leave -b out"
        );
        Ok(())
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

    /// The CPUs, and the threads on each of them.
    fn places(&self) -> Result<(Cpus, u32)> {
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
        if threads <= there {
            return Ok((asked.iter().take(threads as usize).collect(), 1));
        }
        ensure!(
            threads.is_multiple_of(there),
            "-t {threads}: tardy has as many threads on each CPU, and there are {there} CPUs; give \
             a multiple of them"
        );
        Ok((asked, threads / there))
    }

    fn bins(&self) -> Option<u64> {
        self.histogram.or(self.histofall).map(|bins| bins.min(MOST_BINS))
    }

    /// What cyclictest prints and writes at its end.
    fn put(&self, document: &Document, held: &RunDirectory) -> Result<()> {
        let run = Run::of(held.path(), document.clone());
        if let Some(us) = document.setup.found.dma_latency_us {
            output::put(&format!("# /dev/cpu_dma_latency set to {us}us\n"))?;
        }
        if self.verbose {
            self.put_samples(&run)?;
        }
        let counted = CountedRun::read(run).map_err(|what| anyhow!(what))?;
        let bins = self.bins();
        let unit_ns = if self.nsecs { 1 } else { 1_000 };
        let style = CyclictestStyle { unit_ns, bins, has_sums: self.histofall.is_some() };
        let mut out = String::new();
        if !self.verbose && (bins.is_none() || !self.quiet) {
            out.push_str(&lines(&counted, style));
        }
        if bins.is_some() {
            out.push_str(&histogram(&counted, style)?);
        }
        if self.breaktrace.is_some() {
            out.push_str(&self.broken_off(document, unit_ns));
        }
        output::put_columns(&out)?;
        if let Some(path) = &self.json {
            let bytes = json(&counted, style)?;
            if path.as_os_str() == "-" {
                output::put(&String::from_utf8_lossy(&bytes))?;
            } else if self.quiet {
                report::write_quietly(path, &bytes)?;
            } else {
                report::write(path, &bytes)?;
            }
        }
        Ok(())
    }

    /// Which threads there were, and the one that was too late.
    fn broken_off(&self, document: &Document, unit_ns: i64) -> String {
        let threads = &document.setup.found.threads;
        let ids = threads.iter().map(|thread| format!(" {:05}", thread.tid));
        let mut out = format!("# Thread Ids:{}\n", ids.collect::<String>());
        if document.status != Status::StoppedOver {
            return out;
        }
        let worst = document.wakeups().max_by_key(|series| series.max);
        if let Some((series, max)) = worst.and_then(|series| Some((series, series.max?))) {
            let own = threads.iter().find(|thread| thread.series == series.name);
            let tid = own.map_or(0, |own| own.tid);
            out.push_str(&format!("# Break thread: {tid}\n# Break value: {}\n", max / unit_ns));
        }
        out
    }

    /// A line a sample: task, cycle, latency.
    fn put_samples(&self, run: &Run) -> Result<()> {
        let unit_ns = if self.nsecs { 1 } else { 1_000 };
        let mut cycles = vec![0_u64; run.document.series.len()];
        let (mut text, mut failed) = (String::new(), Ok(()));
        let read = run.samples(|number, sample| {
            let Some(cycle) = cycles.get_mut(number).filter(|_| failed.is_ok()) else { return };
            let latency = sample.latency_ns.div_euclid(unit_ns);
            text.push_str(&format!("{number:8}:{cycle:8}:{latency:8}\n"));
            *cycle += 1;
            if text.len() > 64 << 10 {
                failed = output::put(&text);
                text.clear();
            }
        });
        failed?;
        read.map_err(|what| anyhow!(what))?;
        output::put(&text)
    }
}

/// A number with spaces before it, which C's `atoi` skips: rteval gives `-h 3500` as one word.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.trim_start().parse()
}

#[cfg(test)]
mod tests {
    use super::{others::OTHERS, *};
    use crate::cli::command;

    fn parsed(line: &str) -> CyclictestFlags {
        let matches = command().try_get_matches_from(line.split(' ')).unwrap();
        let Verb::Cyclictest(flags) = Cli::from_arg_matches(&matches).unwrap().verb else {
            panic!("{line}");
        };
        flags
    }

    fn run_words(line: &str) -> String {
        parsed(line).run_words().unwrap().join(" ")
    }

    #[test]
    fn what_people_type_becomes_a_run_of_the_timer() {
        let line = "tardy cyclictest -m -S -p 90 -i 200 -h 100 -D 10 -q --json=out.json";
        let words = run_words(line);
        for wanted in
            ["--interval 200us", "--policy fifo --priority 90", "--duration 10s", "--quiet"]
        {
            assert!(words.contains(wanted), "{words}");
        }
        assert_eq!(parsed(line).bins(), Some(100));
        let words = run_words("tardy cyclictest -t1 -n -M -l 500 -b 100 -r -v -N");
        for wanted in ["--samples 500", "--stop-over 100us", "--wake relative", "--raw"] {
            assert!(words.contains(wanted), "{words}");
        }
        assert!(words.contains("--policy other") && !words.contains("--priority"), "{words}");
        assert!(run_words("tardy cyclictest -a 0 -t -D5m --policy rr -p1").contains("--cpus 0 "));
        assert!(run_words("tardy cyclictest").contains("--duration inf"));
        let words = run_words("tardy cyclictest --loop=1000000 -D 1M --policy=FIFO -p 5 --laptop");
        for wanted in ["--duration 60s", "--policy fifo", "--no-dma-latency"] {
            assert!(words.contains(wanted), "the first of both ends it: {words}");
        }
        let words = run_words("tardy cyclictest -l 100 -D 2 --mainaffinity 0 --run-name base");
        for wanted in ["--samples 100", "--housekeeping 0", "--name base"] {
            assert!(words.contains(wanted), "{words}");
        }
    }

    #[test]
    fn what_rteval_and_linaro_type_is_understood() {
        let rteval = ["-i100", "-qmu", "-h 3500", "-p95", "-t1", "-a0", "-b500"];
        let line = [&["tardy", "cyclictest"][..], &rteval].concat();
        let matches = command().try_get_matches_from(line).unwrap();
        let Verb::Cyclictest(flags) = Cli::from_arg_matches(&matches).unwrap().verb else {
            panic!("{rteval:?}");
        };
        assert_eq!(flags.bins(), Some(3_500));
        let words = flags.run_words().unwrap().join(" ");
        assert!(words.contains("--interval 100us") && words.contains("--stop-over 500us"));
        let refused = command().try_get_matches_from(["tardy", "cyclictest", "-h", "x"]);
        assert!(refused.unwrap_err().to_string().contains("-h"));
        let all = run_words("tardy cyclictest -q -p 98 -i 1000 -t -a all -D 1m -h 100 -m");
        assert_eq!(all, run_words("tardy cyclictest -q -p 98 -i 1000 -t -a -D 1m -h 100 -m"));
    }

    #[test]
    fn what_is_not_covered_is_refused_with_the_way_of_tardy() {
        for (short, long, way) in OTHERS {
            for flag in [short, long].into_iter().filter(|flag| !flag.is_empty()) {
                let line = ["tardy", "cyclictest", flag];
                let error = with_tip(command().try_get_matches_from(line).unwrap_err());
                assert!(error.to_string().contains(way), "{flag}: {error}");
            }
        }
        for line in [
            "-c 1",
            "-d 500",
            "--policy batch",
            "-D x",
            "-D 5y",
            "-D 0",
            "-D 99999999d",
            "-p 100",
            "-i 0",
            "-i 4000000000",
            "-h 0",
            "-H 0",
            "-b 0",
        ] {
            let flags = parsed(&format!("tardy cyclictest {line}"));
            let refused = flags.run_words().unwrap_err().to_string();
            assert!(refused.starts_with(line.split(' ').next().unwrap()), "{refused}");
        }
        let other = command().try_get_matches_from(["tardy", "run", "--priority", "100"]);
        let said = unlabelled(&other.unwrap_err());
        assert!(said.starts_with("invalid value") && !said.contains("--help"), "{said}");
    }

    #[test]
    fn the_ways_that_are_named_are_there() {
        let known = command();
        let run = known.find_subcommand("run").unwrap();
        let flags: Vec<&str> = run.get_arguments().filter_map(clap::Arg::get_long).collect();
        for (.., way) in OTHERS.iter().filter(|(.., way)| way.contains("tardy run")) {
            for flag in way.split([' ', '`']).filter_map(|word| word.strip_prefix("--")) {
                assert!(flags.contains(&flag), "{flag}");
            }
        }
    }

    #[test]
    fn a_link_named_cyclictest_is_that_verb() {
        let called = |name: &str| words([name, "-q"].map(OsString::from)).len();
        assert_eq!((called("/usr/local/bin/cyclictest"), called("tardy")), (3, 2));
    }
}
