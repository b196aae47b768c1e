//! The workers of one load as the supervisor sees them: started, counted, found dead, ended.
//! Forks processes; the process that makes a pool is a subreaper and ends it.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Rlimit, getpid};
use tardy_hot::clock::now_ns;

use super::protocol::{LoadTotals, Progress};
use super::scratch::Scratch;
use super::worker::{BEGUN, FAILED, FIRST_COUNTER, READY, Worker, open, settle};
use super::{LoadError, Need};
use crate::sys::process::{self, Pid, ProcessEnd, ProcessUsage, Reaped};
use crate::sys::shared::SharedSlots;
use crate::sys::usage;

/// Called between two forks to learn whether to continue.
pub type EndAsked = fn() -> bool;

/// After this many forks in a row the supervisor sleeps for a moment: it has precedence over
/// everything, and is bounded in how long it may run without a pause.
const FORKS_IN_A_ROW: usize = 100;
const FORK_PAUSE: Duration = Duration::from_micros(100);

/// The workers of one load.
pub struct WorkerPool {
    load: &'static str,
    need: Need,
    board: SharedSlots,
    /// Living workers and their numbers.
    living: HashMap<Pid, usize>,
    spawned: usize,
    usage: ProcessUsage,
    opened_ns: Option<i64>,
    end_asked: EndAsked,
    rt_time: Option<Rlimit>,
    scratch: Option<Scratch>,
    /// For a load that has no counters: its CPU time so far, and the most processes it had.
    by_cpu: Option<Foreign>,
}

/// What can be seen of processes that do not count.
#[derive(Debug, Clone, Copy, Default)]
struct Foreign {
    cpu_us: u64,
    processes: u64,
}

impl WorkerPool {
    /// A pool without workers.
    ///
    /// # Errors
    /// No memory for the counters is left.
    pub fn new(load: &'static str, need: Need, end_asked: EndAsked) -> Result<Self, LoadError> {
        let slots = usize::try_from(need.counters).unwrap_or(usize::MAX);
        let board = SharedSlots::new(slots.saturating_add(FIRST_COUNTER)).map_err(|source| {
            let action = format!("map {} counters", need.counters);
            let remedy = "make the load smaller, or free memory";
            LoadError::System { load: load.to_owned(), action, source, remedy }
        })?;
        Ok(Self {
            load,
            need,
            board,
            living: HashMap::new(),
            spawned: 0,
            usage: ProcessUsage::default(),
            opened_ns: None,
            end_asked,
            rt_time: None,
            scratch: None,
            by_cpu: None,
        })
    }

    /// The limit of real-time CPU time to restore for workers.
    pub(super) fn give_workers(&mut self, rt_time: Rlimit) {
        self.rt_time = Some(rt_time);
    }

    /// Starts a process that does `work`. It dies with the supervisor; its standard input is
    /// empty, and what it prints goes to the load's log. If `work` returns, the load has died.
    ///
    /// # Errors
    /// Cancelled from outside, or no process is available.
    pub fn spawn<F>(&mut self, work: F) -> Result<Pid, LoadError>
    where
        F: FnOnce(&Worker<'_>) -> io::Result<()>,
    {
        if (self.end_asked)() {
            return Err(LoadError::Cancelled { load: self.load.to_owned() });
        }
        let supervisor = getpid();
        let worker = Worker::new(self.board.slots());
        let (load, number, rt_time) = (self.load, self.spawned, self.rt_time);
        let child = process::fork(|| {
            let done = settle(load, supervisor, rt_time).and_then(|()| work(&worker));
            worker.report_exit(number, done)
        });
        let pid = child.map_err(|source| LoadError::System {
            load: self.load.to_owned(),
            action: format!("start worker {number} of {}", self.need.tasks),
            source,
            remedy: "make the load smaller, or raise `ulimit -u`, the sysctl kernel.pid_max or \
                     the control group's pids.max",
        })?;
        self.living.insert(pid, number);
        self.spawned += 1;
        if self.spawned.is_multiple_of(FORKS_IN_A_ROW) {
            sleep(FORK_PAUSE);
        }
        Ok(pid)
    }

    /// Counts the CPU time of everything below the supervisor, microseconds, instead of operations.
    pub fn count_cpu_time(&mut self) {
        self.by_cpu = Some(Foreign::default());
    }

    /// A directory for the load's files below `parent`, held open: by its path something else may
    /// be found by now. It is removed with everything in it when the pool ends. What loads have
    /// left in `parent` that were killed is removed first.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_scratch(&mut self, parent: &Path) -> Result<OwnedFd, LoadError> {
        let made = Scratch::create(parent).and_then(|scratch| {
            let directory = scratch.directory().try_clone()?;
            self.scratch = Some(scratch);
            Ok(directory)
        });
        made.map_err(|source| {
            let action = format!("make a directory in {}", parent.display());
            let remedy = "name a directory that you may write to with dir=";
            self.refuse(&action, source, remedy)
        })
    }

    /// Wraps an error of a system call that a load made while it was starting.
    pub fn cannot(&self, action: &str, source: io::Error) -> LoadError {
        self.refuse(
            action,
            source,
            "make the load smaller, or raise the limit that the message names",
        )
    }

    /// The same with its own remedy.
    pub fn refuse(&self, action: &str, source: io::Error, remedy: &'static str) -> LoadError {
        let (load, action) = (self.load.to_owned(), action.to_owned());
        LoadError::System { load, action, source, remedy }
    }

    /// Whether every task waits at the start barrier.
    pub(super) fn all_ready(&self) -> bool {
        self.count(READY) >= self.need.tasks
    }

    /// Whether every task has passed the start barrier and runs.
    pub(super) fn all_begun(&self) -> bool {
        self.count(BEGUN) >= self.need.tasks
    }

    /// Whether the work is an external program, of which nothing but CPU time is known.
    pub(super) fn is_foreign(&self) -> bool {
        self.by_cpu.is_some()
    }

    /// Lets all tasks begin at once.
    pub(super) fn open_barrier(&mut self) {
        self.opened_ns = Some(now_ns());
        if let Some(slot) = self.board.slots().get(READY) {
            open(&slot.barrier);
        }
    }

    /// When the start barrier was opened: no operation was done before.
    pub(super) fn start(&self) -> Progress {
        Progress { monotonic_ns: self.opened_ns.unwrap_or_else(now_ns), operations: 0 }
    }

    /// Operations until now.
    pub(super) fn progress(&mut self) -> Progress {
        // The clock last: a delay between the two must not credit work to a time before it.
        let operations = if self.is_foreign() { self.look_at_cpu() } else { self.operations() };
        Progress { monotonic_ns: now_ns(), operations }
    }

    fn look_at_cpu(&mut self) -> u64 {
        let found = process::descendants(getpid()).unwrap_or_default();
        let living: Duration = found.iter().filter_map(|&pid| usage::cpu_time(pid)).sum();
        let cpu_us = u64::try_from((living + self.usage.cpu).as_micros()).unwrap_or(u64::MAX);
        let known = self.by_cpu.unwrap_or_default();
        // What a child had used is counted in coarser steps once its parent has waited for it.
        let cpu_us = cpu_us.max(known.cpu_us);
        let processes = known.processes.max(found.len() as u64).max(1);
        self.by_cpu = Some(Foreign { cpu_us, processes });
        cpu_us
    }

    fn operations(&self) -> u64 {
        let counters = self.board.slots().iter().skip(FIRST_COUNTER);
        counters.map(|slot| slot.count.load(Ordering::Relaxed)).sum()
    }

    /// Counters that still stand at zero.
    fn untouched(&self) -> u64 {
        let counters = self.board.slots().iter().skip(FIRST_COUNTER);
        let zero = counters.filter(|slot| slot.count.load(Ordering::Relaxed) == 0);
        if self.need.counters == 0 { 0 } else { zero.count() as u64 }
    }

    fn count(&self, slot: usize) -> u64 {
        self.board.slots().get(slot).map_or(0, |slot| slot.count.load(Ordering::Acquire))
    }

    /// The first worker found to have ended, as `worker 17: exit 1: No space left on device`.
    /// Adopted orphans, which a worker may leave at any time, are another case.
    pub(super) fn find_dead(&mut self) -> Option<String> {
        while let Ok(Reaped::One { pid, end, usage }) = process::reap() {
            if let Some(number) = self.reap_worker(pid, usage) {
                return Some(self.exit_reason(number, end));
            }
        }
        None
    }

    fn exit_reason(&self, number: usize, end: ProcessEnd) -> String {
        let who = if self.is_foreign() { "command".into() } else { format!("worker {number}") };
        let cause = i32::try_from(self.count(FAILED)).ok().filter(|&number| number != 0);
        match cause {
            Some(number) if end == ProcessEnd::Exit(1) => {
                let text = io::Error::from_raw_os_error(number).to_string();
                // The number adds nothing to the text.
                let words = text.split(" (os error").next().unwrap_or_default();
                format!("{who}: {end}: {words}")
            }
            _ => format!("{who}: {end}"),
        }
    }

    fn reap_worker(&mut self, pid: Pid, usage: ProcessUsage) -> Option<usize> {
        self.usage += usage;
        self.living.remove(&pid)
    }

    /// Kills everything below the supervisor until nothing is left, and removes the load's files.
    pub(super) fn end(mut self) -> LoadTotals {
        let last = self.progress();
        let known: Vec<Pid> = self.living.keys().copied().collect();
        process::end_descendants(&known, |pid, _: ProcessEnd, usage| {
            self.reap_worker(pid, usage);
        });
        // There may be many files, and nothing is urgent now.
        process::step_back();
        let files_left = self.scratch.take().and_then(|scratch| {
            let place = scratch.path().display().to_string();
            scratch.remove().err().map(|error| format!("{place}: {error}"))
        });
        let life_ns = self.opened_ns.map_or(0, |opened_ns| last.monotonic_ns - opened_ns);
        LoadTotals {
            last,
            context_switches: self.usage.context_switches,
            cpu_s: self.usage.cpu.as_secs_f64(),
            life_s: seconds(life_ns),
            tasks: self.by_cpu.map_or_else(|| self.count(BEGUN), |foreign| foreign.processes),
            tasks_idle: self.untouched(),
            files_left,
        }
    }
}

/// Nanoseconds as seconds, for rates.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 15 digits")]
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_wait_at_the_gate_until_it_opens() {
        let need = Need { tasks: 3, counters: 4, ..Need::default() };
        let mut pool = WorkerPool::new("test", need, || false).unwrap();
        assert!(!pool.all_ready() && pool.start().operations == 0);
        let worker = Worker::new(pool.board.slots());
        std::thread::scope(|scope| {
            for index in 0..3 {
                scope.spawn(move || {
                    let counter = worker.counter(index).unwrap();
                    worker.begin().unwrap();
                    counter.bump();
                });
            }
            while !pool.all_ready() {
                std::thread::yield_now();
            }
            assert!(!pool.all_begun());
            open(&pool.board.slots()[READY].barrier);
        });
        assert!(pool.all_ready() && pool.all_begun());
        assert_eq!((pool.progress().operations, pool.untouched()), (3, 1));
    }

    #[test]
    fn a_cause_is_reported_with_the_end_that_it_led_to() {
        let pool = WorkerPool::new("test", Need::default(), || false).unwrap();
        assert_eq!(pool.exit_reason(7, ProcessEnd::Exit(1)), "worker 7: exit 1");
        pool.board.slots()[FAILED].count.store(28, Ordering::Relaxed);
        assert_eq!(
            pool.exit_reason(7, ProcessEnd::Exit(1)),
            "worker 7: exit 1: No space left on device"
        );
        assert_eq!(pool.exit_reason(7, ProcessEnd::Signal(9)), "worker 7: signal 9");
    }
}
