//! The load `rt`: real-time tasks that compute at the beginning of each period, as those of a
//! controller or an audio engine do.
//!
//! The periods are 1, 2, 5 and 10 ms in turns, all begin together, and each task has the same share
//! of the utilisation. The shorter the period, the higher the priority (rate monotonic: Liu and
//! Layland, Journal of the ACM 20, 1973, p. 46). A job, the computing of one period, is one
//! operation. A job that is not done when the next is due takes the place of that one: nothing is
//! made up for, so that fewer jobs per second than the periods have show that the set did not fit.
//! Tasks are not pinned: the kernel moves waiting real-time tasks to where there is room.

use std::{io, thread};

use crate::{
    loads::{
        Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind,
        kinds::burn::per_cpu,
        task_loop::{THREAD_BYTES, next_expiry_ns, sleep_until, spend_cpu, threads},
        worker_pool::WorkerPool,
    },
    sys::sched::{Policy, set_this_thread},
};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "rt",
    summary: "Periodic real-time tasks of a stated utilisation; needs SCHED_FIFO.",
    unit: "jobs",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "tasks",
        help: "Number of tasks.",
        default: "4",
        kind: ParameterKind::Count { min: 1, max: 1024 },
    },
    Parameter {
        key: "utilisation",
        help: "CPU time of all tasks together, percent of one CPU.",
        default: "40",
        kind: ParameterKind::Count { min: 1, max: 90_000 },
    },
    Parameter {
        key: "priority",
        help: "SCHED_FIFO priority of the tasks of the shortest period; longer ones are lower.",
        default: "40",
        kind: ParameterKind::Count { min: 4, max: 98 },
    },
];

/// Periods of the tasks, in turns, ns.
const PERIODS_NS: [i64; 4] = [1_000_000, 2_000_000, 5_000_000, 10_000_000];

/// A shorter job would be mostly the reading of clocks, ns.
const SHORTEST_JOB_NS: i64 = 20_000;

/// What is left to other tasks of each CPU, so that the machine stays usable.
const MOST_OF_A_CPU: u64 = 90;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let (tasks, share) = (spec.number("tasks")?, spec.number("utilisation")?);
    let (least, most) = (2 * tasks, MOST_OF_A_CPU * per_cpu(0).min(tasks));
    if share > most || Task::of(0, tasks, share).work_ns < SHORTEST_JOB_NS {
        return Err(LoadError::BadValue {
            load: spec.name.clone(),
            key: "utilisation".into(),
            value: share.to_string(),
            expected: format!(
                "from {least} to {most} for {tasks} tasks here: a job takes 20 us or more, and a \
                 tenth of each CPU is left"
            ),
            example: least.to_string(),
        });
    }
    let priority = priority(spec, 0)?;
    let trial = thread::spawn(move || set_this_thread(Policy::Fifo, priority)).join();
    if !matches!(trial, Ok(Ok(()))) {
        return Err(LoadError::Missing {
            load: spec.name.clone(),
            what: format!("the right to SCHED_FIFO {priority}"),
            remedy: format!("run tardy as root, or allow rtprio {priority} in limits.conf"),
        });
    }
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (tasks, share) = (spec.number("tasks")?, spec.number("utilisation")?);
    let priorities: Vec<u32> =
        (0..PERIODS_NS.len() as u32).map(|rank| priority(spec, rank)).collect::<Result<_, _>>()?;
    let prepare = |number: u64| -> io::Result<Task> {
        let task = Task::of(number, tasks, share);
        let priority = priorities.get(task.rank).copied().unwrap_or(1);
        set_this_thread(Policy::Fifo, priority)?;
        Ok(task)
    };
    threads(pool, 0..tasks, prepare, Task::job)
}

fn priority(spec: &LoadSpec, rank: u32) -> Result<u32, LoadError> {
    Ok(u32::try_from(spec.number("priority")?).unwrap_or(4).saturating_sub(rank).max(1))
}

/// One task of the set.
#[derive(Debug)]
struct Task {
    /// The place of its period among [`PERIODS_NS`].
    rank: usize,
    period_ns: i64,
    /// CPU time of a job.
    work_ns: i64,
}

impl Task {
    /// The `number`-th of `tasks` tasks, which together use `percent` of one CPU.
    fn of(number: u64, tasks: u64, percent: u64) -> Self {
        let rank = usize::try_from(number).unwrap_or(0) % PERIODS_NS.len();
        let period_ns = PERIODS_NS.get(rank).copied().unwrap_or(1_000_000);
        let share = percent as f64 / 100.0 / tasks.max(1) as f64;
        Self { rank, period_ns, work_ns: (period_ns as f64 * share).round() as i64 }
    }

    /// Waits for the next period and does its job.
    fn job(&mut self) -> io::Result<()> {
        // Periods of all tasks lie on the same grid, so that every 10 ms all of them begin at once.
        sleep_until(next_expiry_ns(self.period_ns))?;
        spend_cpu(self.work_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_the_utilisation_and_shorter_periods_come_first() {
        let tasks: Vec<Task> = (0..5).map(|number| Task::of(number, 5, 50)).collect();
        let used: f64 = tasks.iter().map(|own| own.work_ns as f64 / own.period_ns as f64).sum();
        assert!((used - 0.5).abs() < 1e-9, "{used}");
        let ranks: Vec<usize> = tasks.iter().map(|own| own.rank).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 0]);
        let spec = LoadSpec::parse("rt:priority=5").unwrap();
        let priorities: Vec<u32> = (0..6).map(|rank| priority(&spec, rank).unwrap()).collect();
        assert_eq!(priorities, [5, 4, 3, 2, 1, 1]);
    }

    #[test]
    fn jobs_that_are_too_short_to_be_any_are_refused() {
        let spec = LoadSpec::parse("rt:tasks=16,utilisation=10").unwrap();
        let error = need(&spec).unwrap_err().to_string();
        assert!(error.contains("utilisation=10 is not from 32 to "), "{error}");
    }
}
