//! The load `signals`: `kill` of a whole group of hundreds of processes, again and again.
//!
//! The kernel goes through all of them in one call, with the list of tasks locked and interrupts
//! partly off. With `deliver=yes` the signal is a real one, and each of them is woken by it: the
//! longest path. With `deliver=no` it is number 0, which reaches no process: the kernel only checks
//! permissions. A call is one operation. The group is that of the load's supervisor, which blocks
//! the signal. The load takes sleeping processes.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{getpgrp, kill_process_group, test_kill_process_group};

use crate::loads::task_loop::{PROCESS_BYTES, next_expiry_ns, processes, sleep_until};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::signals::{CALL, hold_calls, wait_for_call};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "signals",
    summary: "Signals a group of hundreds of processes with one kill() call.",
    unit: "calls",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "processes",
        help: "Number of sleeping processes that receive the signal.",
        default: "300",
        kind: ParameterKind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "Time from one call to the next.",
        default: "10ms",
        kind: ParameterKind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
    Parameter {
        key: "deliver",
        help: "Whether the signal wakes the processes (yes), or is signal 0 (no).",
        default: "yes",
        kind: ParameterKind::Choice(&["yes", "no"]),
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("processes")? + 1;
    Ok(Need { tasks, counters: 1, memory_bytes: tasks * PROCESS_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let interval_ns = spec.time_ns("interval")?;
    let is_delivered = spec.text("deliver")? == "yes";
    // The supervisor and the sender are in the group as well, and must survive the signal.
    hold_calls().map_err(|error| pool.cannot("hold a signal back", error))?;
    for _ in 0..spec.number("processes")? {
        pool.spawn(|worker| {
            worker.begin()?;
            loop {
                if is_delivered {
                    wait_for_call()?;
                } else {
                    sleep(Duration::from_secs(3600));
                }
            }
        })?;
    }
    let group = getpgrp();
    processes(
        pool,
        0..1,
        |_| Ok(()),
        |()| {
            sleep_until(next_expiry_ns(interval_ns))?;
            let sent = if is_delivered {
                kill_process_group(group, CALL)
            } else {
                test_kill_process_group(group)
            };
            Ok(sent?)
        },
    )
}
