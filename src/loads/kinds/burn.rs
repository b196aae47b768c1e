//! The load `burn`: threads that compute, all the time or for a share of it.
//!
//! A thread computes for `share` percent of each `period` and sleeps for the rest. A millisecond of
//! CPU time is one operation. It takes CPU time and nothing else. Use `nice` to find tasks that
//! wait for a CPU behind it.

use std::thread::available_parallelism;

use rustix::process::setpriority_process;
use tardy_hot::clock::now_ns;

use crate::loads::task_loop::{THREAD_BYTES, sleep_until, spend_cpu, threads};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "burn",
    summary: "Threads that compute, all the time or for a share of it.",
    unit: "ms of CPU",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "threads",
        help: "Number of threads; 0 means one per CPU that tardy may use.",
        default: "0",
        kind: ParameterKind::Count { min: 0, max: 4096 },
    },
    Parameter {
        key: "nice",
        help: "Nice value of the threads.",
        default: "0",
        kind: ParameterKind::Count { min: 0, max: 19 },
    },
    Parameter {
        key: "share",
        help: "CPU time of each thread, percent of one CPU.",
        default: "100",
        kind: ParameterKind::Count { min: 1, max: 100 },
    },
    Parameter {
        key: "period",
        help: "Length of one cycle of computing and sleeping, for a share below 100.",
        default: "10ms",
        kind: ParameterKind::Time { min_ns: 100_000, max_ns: 10_000_000_000 },
    },
];

/// One operation, ns of CPU time.
pub(super) const OPERATION_NS: i64 = 1_000_000;

/// The number of threads, where 0 stands for one a CPU.
pub(super) fn per_cpu(number: u64) -> u64 {
    let cpus = || available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    if number == 0 { cpus() } else { number }
}

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = per_cpu(spec.number("threads")?);
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let nice = i32::try_from(spec.number("nice")?).unwrap_or(19);
    let period_ns = spec.time_ns("period")?;
    let share = i64::try_from(spec.number("share")?).unwrap_or(100);
    let count = per_cpu(spec.number("threads")?);
    let prepare = |_| {
        // On Linux a nice value belongs to a thread, and "process 0" names the calling one.
        setpriority_process(None, nice)?;
        Ok(Duty::new(period_ns, share))
    };
    threads(pool, 0..count, prepare, |duty| duty.spend(OPERATION_NS))
}

/// What is left of a thread's share.
#[derive(Debug)]
pub(super) struct Duty {
    period_ns: i64,
    /// CPU time per period; unlimited for a share of 100.
    share_ns: i64,
    left_ns: i64,
    next_ns: i64,
}

impl Duty {
    pub(super) fn new(period_ns: i64, percent: i64) -> Self {
        let share_ns = if percent >= 100 { i64::MAX } else { (period_ns * percent / 100).max(1) };
        Self { period_ns, share_ns, left_ns: share_ns, next_ns: now_ns() + period_ns }
    }

    /// Spends this much CPU time, over as many periods as that takes.
    pub(super) fn spend(&mut self, mut ns: i64) -> std::io::Result<()> {
        while ns > 0 {
            let slice_ns = ns.min(self.left_ns);
            spend_cpu(slice_ns);
            ns -= slice_ns;
            self.left_ns -= slice_ns;
            if self.left_ns <= 0 {
                sleep_until(self.next_ns)?;
                // A period that was too short for its share is not made up for.
                self.next_ns = now_ns().max(self.next_ns + self.period_ns);
                self.left_ns = self.share_ns;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_as_many_periods_as_it_must() {
        let before_ns = now_ns();
        let mut duty = Duty::new(1_000_000, 25);
        duty.spend(1_000_000).unwrap();
        assert!(now_ns() - before_ns >= 4_000_000);
        assert_eq!(duty.left_ns, 250_000);
        let mut whole = Duty::new(1_000_000, 100);
        whole.spend(1_000_000).unwrap();
        assert_eq!(whole.left_ns, i64::MAX - 1_000_000);
    }
}
