//! The supervisor: a process between tardy and the workers of one load. It starts them, counts
//! what they do, and leaves none behind, however tardy ended.
//!
//! tardy starts its own executable as `tardy __load SPEC`: standard input is the control pipe
//! (the line `stop`, or its end, ends the load), standard output takes [`LoadReport`]s, standard
//! error is the load's log. The end of the control pipe is the one thing that no way of ending
//! tardy can prevent, so everything here depends on it; a death signal would reach the
//! supervisor but not the children of its children.
//!
//! On the machine it changes: its own scheduling (so that the load cannot starve the one process
//! that can end it) and a limit on it, its limit of open files, and what its load documents.

use std::io::{self, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Rlimit;
use tardy_hot::clock::now_ns;

use super::protocol::{LoadReport, LoadTotals, Progress, STOP};
use super::worker_pool::WorkerPool;
use super::{LoadError, LoadSpec, find, prepare};
use crate::sys::{
    open_files,
    process::{self, ParentPriority},
    sched,
};

/// How often progress is reported and dead workers are looked for.
const TICK: Duration = Duration::from_millis(250);

/// The same where each report reads every process.
const FOREIGN_TICK: Duration = Duration::from_millis(500);

/// How often the supervisor checks whether the workers have started.
const STARTING_TICK: Duration = Duration::from_millis(5);

/// CPU time without a pause after which a supervisor under `SCHED_FIFO` counts as runaway.
const RUNAWAY: Duration = Duration::from_secs(3);

/// How long an external program may take to detect that it cannot run.
const FOREIGN_START: Duration = Duration::from_millis(200);

/// Exit codes of the supervisor, for logs.
const ASKED: u8 = 0;
const DIED: u8 = 1;
const FAILED: u8 = 2;

/// How the work ended.
enum Outcome {
    Asked,
    Died(String),
}

/// Runs the load that `spec_json` describes until it is asked to end; the exit code.
#[must_use]
pub fn supervise(spec_json: &str) -> u8 {
    match LoadSpec::from_json(spec_json).and_then(|spec| supervise_spec(&spec)) {
        Ok((Outcome::Asked, totals)) => {
            send(&LoadReport::Ended(totals));
            ASKED
        }
        Ok((Outcome::Died(who), totals)) => {
            send(&LoadReport::Died(who));
            send(&LoadReport::Ended(totals));
            DIED
        }
        Err(error) => {
            send(&LoadReport::Failed(error.to_string()));
            FAILED
        }
    }
}

fn supervise_spec(spec: &LoadSpec) -> Result<(Outcome, LoadTotals), LoadError> {
    let load = find(&spec.name)?;
    let Some((work, need)) = prepare(spec)? else {
        let why = "it needs no supervisor; there is nothing to do".to_owned();
        return Err(LoadError::NotStarted { load: spec.name.clone(), why });
    };
    let rt_time = settle(load.name)?;
    let mut pool = WorkerPool::new(load.name, need, || is_end_asked(Duration::ZERO))?;
    pool.give_workers(rt_time);
    let outcome = match (work.start)(spec, &mut pool) {
        Ok(()) => Ok(supervise_pool(&mut pool)),
        Err(LoadError::Cancelled { .. }) => Ok(Outcome::Asked),
        Err(error) => Err(error),
    };
    let totals = pool.end();
    if let Some(left) = &totals.files_left {
        log(&format!("cannot remove {left}; the next start will"));
    }
    Ok((outcome?, totals))
}

/// The limit of real-time CPU time as it was before, for the workers.
fn settle(load: &str) -> Result<Rlimit, LoadError> {
    let cannot = |action: &str, source: io::Error| LoadError::System {
        load: load.to_owned(),
        action: action.to_owned(),
        source,
        remedy: "check whether a container or seccomp filter forbids it",
    };
    process::become_subreaper().map_err(|error| cannot("become a subreaper", error))?;
    process::reset_child_signal().map_err(|error| cannot("reset SIGCHLD", error))?;
    open_files::raise_open_files()
        .map_err(|error| cannot("raise its limit of open files", error))?;
    // The name is for readers of `ps`; the load works without it.
    let _ = rustix::thread::set_name(c"tardy-load");
    let rt_time = sched::bound_real_time(RUNAWAY)
        .map_err(|error| cannot("bound its real-time CPU time", error))?;
    if process::take_precedence() == ParentPriority::Equal {
        log("no right to SCHED_FIFO or nice -20 for the supervisor: its reports may come late; \
             run as root, or allow rtprio 1 in limits.conf");
    }
    Ok(rt_time)
}

/// From the first worker's life to the end of the work.
fn supervise_pool(pool: &mut WorkerPool) -> Outcome {
    if let Some(outcome) = wait_until(pool, WorkerPool::all_ready) {
        return outcome;
    }
    pool.open_barrier();
    if let Some(outcome) = wait_until(pool, WorkerPool::all_begun) {
        return outcome;
    }
    if pool.is_foreign()
        && let Some(outcome) = poll_end(pool, FOREIGN_START)
    {
        return outcome;
    }
    send(&LoadReport::Ready(pool.start()));
    let tick = if pool.is_foreign() { FOREIGN_TICK } else { TICK };
    let mut next_ns = now_ns();
    loop {
        if let Some(outcome) = poll_end(pool, until(next_ns)) {
            return outcome;
        }
        // After a stall, the next tick is a whole one from now, not a burst of missed ones.
        let progress: Progress = pool.progress();
        next_ns = progress.monotonic_ns + as_ns(tick);
        send(&LoadReport::Progress(progress));
    }
}

fn wait_until(pool: &mut WorkerPool, condition: fn(&WorkerPool) -> bool) -> Option<Outcome> {
    while !condition(pool) {
        let outcome = poll_end(pool, STARTING_TICK);
        if outcome.is_some() {
            return outcome;
        }
    }
    None
}

/// Sleeps for `pause`, unless there is a reason to end.
fn poll_end(pool: &mut WorkerPool, pause: Duration) -> Option<Outcome> {
    if is_end_asked(pause) {
        return Some(Outcome::Asked);
    }
    pool.find_dead().map(Outcome::Died)
}

fn until(moment_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(moment_ns - now_ns()).unwrap_or(0))
}

fn as_ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Waits up to `pause` for the request to end: the line, the pipe's end, or a broken pipe.
fn is_end_asked(pause: Duration) -> bool {
    let control = io::stdin();
    let mut watched = [PollFd::new(&control, PollFlags::IN)];
    let timeout = Timespec::try_from(pause).unwrap_or_default();
    match poll(&mut watched, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => false,
        Ok(_) => is_end_said(),
        Err(_) => true,
    }
}

fn is_end_said() -> bool {
    let mut said = [0; 64];
    match rustix::io::read(io::stdin(), &mut said) {
        Ok(0) => true,
        Ok(count) => said.get(..count).is_some_and(|said| said.ends_with(STOP)),
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// A report without a reader is not an error here: the end of the control pipe will end the load.
fn send(report: &LoadReport) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Writes to the load's log; if that is full or gone, the load continues.
fn log(text: &str) {
    let _ = writeln!(io::stderr(), "supervisor: {text}");
}
