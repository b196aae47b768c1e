//! What disturbs a test.

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use tardy::{
    analysis::random::SplitMix64,
    sys::{
        child,
        cpus::Cpus,
        sched::{self, Policy},
    },
};

use super::cgroup::{Cgroup, freeze};

/// A machine that a test has to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Condition {
    /// All of the test's processes stop for 5 to 500 ms about once a second, as under a host that
    /// stalls
    Frozen,
    /// The test has 60% of the CPUs, beside hackbench and a real-time thread that takes 3 ms of
    /// each 10 ms
    Busy,
    /// The test has little memory
    Memory,
}

/// Shortest and longest time that a test is stopped for, ms.
const FROZEN_MS: [f64; 2] = [5.0, 500.0];
/// Between two such times, ms.
const THAWED_MS: [f64; 2] = [500.0, 1500.0];
/// CPU time of a test in each period under the condition `busy`, of each CPU.
const SHARE: f64 = 0.6;
const PERIOD_US: u64 = 100_000;
/// What the real-time thread takes, and in how much time.
const HOG: Duration = Duration::from_millis(3);
const HOG_PERIOD: Duration = Duration::from_millis(10);
/// More than what tardy's own loads and helpers have, less than measured threads.
const HOG_PRIORITY: u32 = 40;

impl Condition {
    pub(super) const ALL: [Self; 3] = [Self::Frozen, Self::Busy, Self::Memory];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Busy => "busy",
            Self::Memory => "memory",
        }
    }

    fn controllers(self) -> &'static [&'static str] {
        match self {
            Self::Frozen => &["freezer"],
            Self::Busy => &["cpu"],
            Self::Memory => &["memory"],
        }
    }
}

/// A condition that holds until its end.
pub(super) struct Disturbance {
    group: Arc<Cgroup>,
    launcher: Vec<String>,
    worker: Option<Worker>,
    load: Option<Load>,
}

/// A thread that disturbs until its sender is dropped, and counts how often it did.
struct Worker {
    stop: Sender<()>,
    thread: JoinHandle<Result<u32>>,
}

/// hackbench in its own cgroup, which lists all of its processes.
struct Load {
    group: Cgroup,
    hackbench: Child,
}

impl Disturbance {
    /// `memory` is in MiB.
    pub(super) fn begin(condition: Condition, memory: u32, seed: u64) -> Result<Self> {
        let name = format!("tardy-stress-{}", std::process::id());
        let group = Arc::new(Cgroup::make(&name, condition.controllers())?);
        let launcher = group.launcher();
        let (mut worker, mut load) = (None, None);
        match condition {
            Condition::Frozen => {
                let (group, random) = (Arc::clone(&group), SplitMix64::new(seed));
                worker = Some(Worker::start(move |stop| freeze_now_and_then(&group, random, stop)));
            }
            Condition::Busy => {
                limit_cpu(&group)?;
                load = Some(Load::start(&format!("{name}-load"))?);
                worker = Some(Worker::start(hog));
            }
            Condition::Memory => {
                let bytes = (u64::from(memory) << 20).to_string();
                group.set("memory", ("memory.limit_in_bytes", &bytes), ("memory.high", &bytes))?;
            }
        }
        Ok(Self { group, launcher, worker, load })
    }

    /// The words before the test's command.
    pub(super) fn launcher(&self) -> &[String] {
        &self.launcher
    }

    /// Ends it; how often the test was stopped.
    pub(super) fn end(self) -> Result<u32> {
        let Self { group, worker, load, .. } = self;
        let counted = worker.map_or(Ok(0), Worker::end);
        load.map_or(Ok(()), Load::end)?;
        let group = Arc::into_inner(group).context("the cgroup is still in use")?;
        group.remove()?;
        counted
    }
}

impl Worker {
    fn start(work: impl FnOnce(&mpsc::Receiver<()>) -> Result<u32> + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        Self { stop, thread: thread::spawn(move || work(&stopped)) }
    }

    fn end(self) -> Result<u32> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the disturbing thread panicked"))?
    }
}

impl Load {
    fn start(name: &str) -> Result<Self> {
        let group = Cgroup::make(name, &["freezer"])?;
        let launcher = group.launcher();
        let (program, words) = launcher.split_first().context("no launcher")?;
        let mut command = Command::new(program);
        // Until it is killed: 2 groups of 40 tasks, which exchange messages.
        command.args(words).args(["hackbench", "-g", "2", "-l", "100000000"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        child::end_with_this_thread(&mut command);
        let hackbench = command.spawn().context("cannot start hackbench (package rt-tests)")?;
        Ok(Self { group, hackbench })
    }

    fn end(mut self) -> Result<()> {
        let ended = self.group.remove();
        let _ = (self.hackbench.kill(), self.hackbench.wait());
        ended
    }
}

/// Whether the time has passed, and nobody has ended it.
fn goes_on(stop: &mpsc::Receiver<()>, time: Duration) -> bool {
    stop.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

fn freeze_now_and_then(
    group: &Cgroup,
    mut random: SplitMix64,
    stop: &mpsc::Receiver<()>,
) -> Result<u32> {
    let mut freezes = 0;
    while goes_on(stop, between(&mut random, THAWED_MS)) {
        freeze(group, true)?;
        freezes += 1;
        let goes_on = goes_on(stop, between(&mut random, FROZEN_MS));
        freeze(group, false)?;
        if !goes_on {
            break;
        }
    }
    Ok(freezes)
}

/// A time between these, in ms; short ones are as frequent as long ones on a logarithmic scale.
fn between(random: &mut SplitMix64, [least, most]: [f64; 2]) -> Duration {
    Duration::from_secs_f64(least * (most / least).powf(random.uniform()) / 1e3)
}

fn limit_cpu(group: &Cgroup) -> Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let quota = (PERIOD_US as f64 * SHARE * cpus as f64) as u64;
    let both = format!("{quota} {PERIOD_US}");
    group.set("cpu", ("cpu.cfs_quota_us", &quota.to_string()), ("cpu.max", &both))?;
    // With RT_GROUP_SCHED, a new group has no real-time threads until it is given time.
    if group.has("cpu", "cpu.rt_runtime_us") {
        let value = ("cpu.rt_runtime_us", "900000");
        group.set("cpu", value, value)?;
    }
    Ok(())
}

/// Takes CPU time in front of all ordinary tasks, on one CPU after the other; how often.
fn hog(stop: &mpsc::Receiver<()>) -> Result<u32> {
    sched::set_this_thread(Policy::Fifo, HOG_PRIORITY).context("no right to real-time threads")?;
    let cpus = thread::available_parallelism().map_or(1, usize::from) as u32;
    for turn in 0.. {
        let cpu: Cpus = std::iter::once(turn / 100 % cpus).collect();
        cpu.pin(sched::thread_id()).context("cannot move to another CPU")?;
        let began = Instant::now();
        while began.elapsed() < HOG {
            std::hint::spin_loop();
        }
        if !goes_on(stop, HOG_PERIOD - HOG) {
            return Ok(turn);
        }
    }
    Ok(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_within_their_bounds_and_repeat_with_their_seed() {
        let times = |seed| {
            let mut random = SplitMix64::new(seed);
            (0..1_000).map(|_| between(&mut random, FROZEN_MS)).collect::<Vec<_>>()
        };
        let all = times(3);
        assert!(all.iter().all(|time| (5..=500).contains(&time.as_millis())));
        assert_eq!(all, times(3));
        assert_ne!(all, times(4));
    }
}
