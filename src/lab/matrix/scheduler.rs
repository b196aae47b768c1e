//! Schedules a matrix of cells, several at a time: the next task, known results, and outcomes.
//!
//! One that fails does not end the others. The watcher receives all events in one thread.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::results::Results;
use crate::run::RunDirectory;

/// How often a watcher gets a tick while nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// One place of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTask {
    /// The place of the load in the plan.
    pub load: usize,
    /// The place of the kernel among those asked for.
    pub kernel: usize,
    /// Which phase offset, or which repeat on a machine.
    pub seed: u32,
    /// The directory of its run, from that of the matrix.
    pub place: PathBuf,
    /// What people call it: `idle under rt, phase 0`.
    pub name: String,
}

/// What can measure a task.
pub trait Measure: Sync {
    /// Under which key its outcome is known; none where it must be measured each time.
    ///
    /// # Errors
    /// A kernel or a program that cannot be read.
    fn key(&self, task: &CellTask) -> Result<Option<String>>;

    /// Puts a run into `place`, which is new. Ends soon after `stop` says so.
    ///
    /// # Errors
    /// Why a run is missing; what is in `place` then is taken away.
    fn measure(&self, task: &CellTask, place: &RunDirectory, stop: &dyn Fn() -> bool)
    -> Result<()>;
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Measured now, in this time.
    Measured(Duration),
    /// Known from before.
    Known,
    /// The run failed, and why.
    Failed(String),
    /// Ended early, or not begun.
    Stopped,
}

/// An event for the watcher.
#[derive(Debug)]
pub enum TaskEvent<'a> {
    /// It is measured now, or looked up.
    Began(&'a CellTask),
    /// It is done.
    Ended(&'a CellTask, &'a TaskOutcome),
    /// Time has passed.
    Tick,
}

/// How a matrix is to be measured.
pub struct ScheduleOptions<'a> {
    /// Where the runs go.
    pub directory: &'a RunDirectory,
    /// Threads, 1 or more.
    pub jobs: usize,
    /// Where outcomes are kept.
    pub results: &'a Results,
    /// Whether to measure also what is known.
    pub again: bool,
    /// How long nothing is done after a cell that was measured.
    pub pause: Duration,
    /// Whether to end.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Measures all tasks; one outcome each, in their order.
pub fn run_tasks(
    tasks: &[CellTask],
    measure: &dyn Measure,
    orders: &ScheduleOptions,
    watch: &mut dyn FnMut(TaskEvent),
) -> Vec<TaskOutcome> {
    let next = Mutex::new(0..tasks.len());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut outcomes = vec![TaskOutcome::Stopped; tasks.len()];
    let (sender, received) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..orders.jobs.clamp(1, tasks.len().max(1)) {
            let sender = sender.clone();
            let work = move || {
                while !(orders.stop)()
                    && let Some(number) = take()
                    && let Some(task) = tasks.get(number)
                {
                    // The receiver ends after all senders.
                    let _ = sender.send((number, None));
                    let outcome = one(task, measure, orders);
                    let is_measured = matches!(outcome, TaskOutcome::Measured(_));
                    let _ = sender.send((number, Some(outcome)));
                    if is_measured && number + 1 < tasks.len() {
                        rest(orders);
                    }
                }
            };
            let Err(error) = thread::Builder::new().spawn_scoped(scope, work) else { continue };
            // Those that there are do the work of all.
            if number == 0 {
                outcomes.fill(TaskOutcome::Failed(format!("cannot start a thread: {error}")));
            }
            break;
        }
        drop(sender);
        loop {
            match received.recv_timeout(TICK) {
                Ok((number, outcome)) => note(tasks, &mut outcomes, number, outcome, watch),
                Err(mpsc::RecvTimeoutError::Timeout) => watch(TaskEvent::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    outcomes
}

/// Does nothing for the pause, unless all is to end.
fn rest(orders: &ScheduleOptions) {
    let began = Instant::now();
    while let left = orders.pause.saturating_sub(began.elapsed())
        && !left.is_zero()
        && !(orders.stop)()
    {
        thread::sleep(left.min(TICK));
    }
}

fn note(
    tasks: &[CellTask],
    outcomes: &mut [TaskOutcome],
    number: usize,
    outcome: Option<TaskOutcome>,
    watch: &mut dyn FnMut(TaskEvent),
) {
    let (Some(task), Some(place)) = (tasks.get(number), outcomes.get_mut(number)) else { return };
    match outcome {
        None => watch(TaskEvent::Began(task)),
        Some(outcome) => {
            *place = outcome;
            watch(TaskEvent::Ended(task, place));
        }
    }
}

fn one(task: &CellTask, measure: &dyn Measure, orders: &ScheduleOptions) -> TaskOutcome {
    let began = Instant::now();
    let place = orders.directory.below(&task.place);
    let place = place.with_context(|| format!("cannot make {}", task.place.display()));
    let known = place.and_then(|place| {
        // A run or nothing.
        fill(task, &place, measure, orders).inspect_err(|_| place.discard())
    });
    match known {
        Ok(true) => TaskOutcome::Known,
        Ok(false) => TaskOutcome::Measured(began.elapsed()),
        Err(_) if (orders.stop)() => TaskOutcome::Stopped,
        Err(error) => TaskOutcome::Failed(format!("{error:#}")),
    }
}

/// Puts the run of a task into its place; whether it was known.
fn fill(
    task: &CellTask,
    place: &RunDirectory,
    measure: &dyn Measure,
    orders: &ScheduleOptions,
) -> Result<bool> {
    let key = measure.key(task)?;
    let known = key.as_ref().filter(|_| !orders.again);
    if let Some(key) = known
        && orders.results.get(key, place)?.is_some()
    {
        return Ok(true);
    }
    measure.measure(task, place, orders.stop)?;
    if let Some(key) = key {
        // The run exists; a full cache only costs time later.
        let _ = orders.results.put(&key, &place.path());
    }
    Ok(false)
}

/// What is left to do, from what was done: nothing is known before something was measured.
#[must_use]
pub fn time_left(outcomes: &[Option<TaskOutcome>], jobs: usize) -> Option<Duration> {
    let took = |outcome: &Option<TaskOutcome>| match outcome {
        Some(TaskOutcome::Measured(time)) => Some(*time),
        _ => None,
    };
    let times: Vec<Duration> = outcomes.iter().filter_map(took).collect();
    let count = u32::try_from(times.len()).ok().filter(|count| *count > 0)?;
    let left = u32::try_from(outcomes.iter().filter(|outcome| outcome.is_none()).count()).ok()?;
    let each = times.iter().sum::<Duration>() / count;
    Some(each * left / u32::try_from(jobs).ok()?.max(1))
}

#[cfg(test)]
mod tests;
