//! The load `signals`: `kill` of a whole group of hundreds of processes, again and again.
//!
//! The signal is number 0, which reaches nobody; but the kernel goes through all of them, with the
//! list of tasks locked. A call is one operation. The group is the load's own: its supervisor's. On
//! the machine it takes sleeping processes.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::{getpgrp, test_kill_process_group};

use super::crew::Crew;
use super::turns::{PROCESS_BYTES, next_expiry_ns, processes, sleep_until};
use super::{Kind, Load, LoadError, LoadSpec, Need, Parameter, Work};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "signals",
    summary: "kill() of hundreds of processes at once, with the signal 0.",
    unit: "calls",
    parameters: PARAMETERS,
    work: Some(Work { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "processes",
        help: "Sleeping processes that are gone through.",
        default: "300",
        kind: Kind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "From one call to the next.",
        default: "2ms",
        kind: Kind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("processes")? + 1;
    Ok(Need { tasks, counters: 1, memory_bytes: tasks * PROCESS_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, crew: &mut Crew) -> Result<(), LoadError> {
    let interval_ns = spec.time_ns("interval")?;
    for _ in 0..spec.number("processes")? {
        crew.spawn(|worker| {
            worker.begin()?;
            loop {
                sleep(Duration::from_secs(3600));
            }
        })?;
    }
    let group = getpgrp();
    processes(
        crew,
        0..1,
        |_| Ok(()),
        |()| {
            sleep_until(next_expiry_ns(interval_ns))?;
            Ok(test_kill_process_group(group)?)
        },
    )
}
