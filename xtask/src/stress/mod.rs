//! `cargo xtask stress`: tests again and again, each alone, on a machine that disturbs them.
//!
//! A test that depends on the speed of the machine fails here before it fails by chance. Each
//! condition repeats what has made tests fail: a host that stalls, a busy machine, little memory.

mod cgroup;
mod condition;
mod table;

use std::{
    ffi::OsString,
    fs,
    num::NonZero,
    path::Path,
    process::Command,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tardy::{
    analysis::random::SplitMix64,
    sys::{notifier::Notifier, signals::Quit},
};

use crate::{
    bench::say,
    suite::{
        flags::time,
        listing::{self, Ignored, TestCase},
        print,
        process::{self, Terms},
        programs::{self, BuildRequest},
        results::Verdict,
    },
};
use condition::{Condition, Disturbance};
use table::Table;

/// Programs whose tests start tardy, which measures by the live clock.
const LIVE: [&str; 3] = ["loads::", "outside::", "truth::"];

/// Run tests again and again, each alone, on a machine that disturbs them
///
/// Needs root. Without FILTER it runs the tests that start tardy. The outputs of failures are kept
/// in target/stress. With a COMMAND it runs this instead of tests, as in `-- make test`.
#[derive(Debug, Args)]
pub(crate) struct StressFlags {
    /// Only tests whose full names (PROGRAM::MODULE::TEST) contain one of these texts
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Runs of each test in each condition
    #[arg(long, value_name = "N", default_value = "20")]
    times: NonZero<u32>,
    /// Only this condition (repeatable); all if absent
    #[arg(long, value_name = "NAME")]
    condition: Vec<Condition>,
    /// Repeats the pauses of an earlier run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Memory of a test under the condition `memory`, MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    memory: NonZero<u32>,
    /// Also run ignored tests
    #[arg(long)]
    include_ignored: bool,
    /// Kill a test that takes longer
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    limit: Duration,
    /// Instead of tests
    #[arg(last = true, conflicts_with_all = ["filters", "include_ignored", "limit"])]
    command: Vec<OsString>,
}

/// Runs the tests under each condition, and prints the table; whether none has failed.
pub(crate) fn run(flags: &StressFlags) -> Result<bool> {
    ensure!(rustix::process::geteuid().is_root(), "stress: only root can make cgroups");
    let conditions =
        if flags.condition.is_empty() { &Condition::ALL[..] } else { &flags.condition[..] };
    let seed = flags.seed.unwrap_or_else(from_the_clock);
    if let Some((program, words)) = flags.command.split_first() {
        return run_command(flags, conditions, seed, (program, words));
    }
    let cases = cases(flags)?;
    say(&format!("{} tests; --seed {seed} repeats the pauses", cases.len()));
    let kept = crate::target()?.join("stress");
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
    let scratch = tempfile::Builder::new().prefix("run-").tempdir_in(&kept)?;
    let (quit, bell) = (Quit::listen()?, Notifier::new()?);
    quit.rings(&bell)?;
    let mut session = Session { flags, kept: &kept, scratch: scratch.path(), quit, bell, runs: 0 };
    let mut random = SplitMix64::new(seed);
    let mut table = Table::new(&cases, conditions);
    for _ in 0..flags.times.get() {
        for case in &cases {
            for condition in conditions {
                if session.quit.seen().is_some() {
                    break;
                }
                let verdict = session.run(case, *condition, random.bits())?;
                table.add(&case.full_name(), *condition, &verdict);
            }
        }
    }
    print(&table.text())?;
    Ok(!table.has_failed() && session.quit.seen().is_none())
}

/// The same of a command; its output goes where that of this program goes.
fn run_command(
    flags: &StressFlags,
    conditions: &[Condition],
    seed: u64,
    (program, words): (&OsString, &[OsString]),
) -> Result<bool> {
    say(&format!("--seed {seed} repeats the pauses"));
    let (mut random, mut has_failed) = (SplitMix64::new(seed), false);
    for _ in 0..flags.times.get() {
        for condition in conditions {
            let begin = Instant::now();
            let disturbance = Disturbance::begin(*condition, flags.memory.get(), random.bits())?;
            let (launcher, first) = disturbance.launcher().split_first().context("no launcher")?;
            let mut command = Command::new(launcher);
            let status = command.args(first).arg(program).args(words).status();
            let freezes = disturbance.end()?;
            let status = status.with_context(|| format!("cannot start {}", program.display()))?;
            has_failed |= !status.success();
            let (name, took) = (condition.name(), begin.elapsed().as_secs());
            say(&format!("{name}: {status} after {took} s, frozen {freezes} times"));
        }
    }
    Ok(!has_failed)
}

/// What all runs share.
struct Session<'a> {
    flags: &'a StressFlags,
    /// For the outputs of failures.
    kept: &'a Path,
    scratch: &'a Path,
    quit: Quit,
    bell: Notifier,
    runs: usize,
}

impl Session<'_> {
    fn run(&mut self, case: &TestCase, condition: Condition, seed: u64) -> Result<Verdict> {
        self.runs += 1;
        let disturbance = Disturbance::begin(condition, self.flags.memory.get(), seed)?;
        let terms = Terms {
            limit: self.flags.limit,
            patience: 1,
            directory: self.scratch,
            quit: &self.quit,
            launcher: disturbance.launcher(),
        };
        let ended = process::run(case, self.runs, &self.bell, &terms)?;
        let freezes = disturbance.end()?;
        if let Verdict::Failed(why) = &ended.verdict {
            let name = format!("{}.{}.{}", case.full_name(), condition.name(), self.runs);
            fs::write(self.kept.join(&name), &ended.output)?;
            say(&format!(
                "{name}: {why}; {:.1} s, frozen {freezes} times",
                ended.took.as_secs_f64()
            ));
        }
        Ok(ended.verdict)
    }
}

fn cases(flags: &StressFlags) -> Result<Vec<TestCase>> {
    let messages = programs::build(&BuildRequest::default())?;
    let all = listing::list(programs::test_programs(&messages))?;
    let ignored = if flags.include_ignored { Ignored::Include } else { Ignored::LeaveOut };
    let mut cases = listing::select(all, &flags.filters, ignored).cases;
    if flags.filters.is_empty() {
        cases.retain(|case| LIVE.iter().any(|program| case.full_name().starts_with(program)));
    }
    ensure!(!cases.is_empty(), "no test has {:?} in its name", flags.filters);
    Ok(cases)
}

fn from_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs())
}
