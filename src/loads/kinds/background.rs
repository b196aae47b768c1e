//! The load `background`: very many processes of the lowest priority that always want a CPU, and
//! short-lived ones like those of a compiler run.
//!
//! Each process computes at nice 19 and counts its own milliseconds of CPU time; so the proof shows
//! whether one of them never got any. The load average climbs towards their number: with 3200 of
//! them it passes 3000 after some three minutes. A forker starts a child again and again that fills
//! some memory, computes for a moment and ends. The load takes all CPU time that no other task
//! wants, and about 0.1 MiB per process.

use std::io;

use rustix::process::{getpid, setpriority_process};

use super::burn::OPERATION_NS;
use crate::loads::task_loop::{PROCESS_BYTES, processes, spend_cpu};
use crate::loads::worker::Worker;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::process::{die_with, fork, wait_for};
use crate::sys::region::Region;

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "background",
    summary: "Very many processes at the lowest priority, and short-lived ones.",
    unit: "ms of CPU",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "tasks",
        help: "Processes that always compute, at nice 19; more than 3100 for a load average of \
               3000.",
        default: "240",
        kind: ParameterKind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "forks",
        help: "Additional processes, at nice 0, that start one short-lived child after another.",
        default: "2",
        kind: ParameterKind::Count { min: 0, max: 100 },
    },
];

const LOWEST: i32 = 19;

/// Memory and CPU time of a short-lived child: about what compiling a small source file takes.
const CHILD_BYTES: usize = 4 << 20;
const CHILD_OPERATIONS: u32 = 20;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let (tasks, forks) = (spec.number("tasks")?, spec.number("forks")?);
    Ok(Need {
        tasks: tasks + forks,
        counters: tasks + forks,
        memory_bytes: (tasks + forks) * PROCESS_BYTES + forks * CHILD_BYTES as u64,
        ..Need::default()
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (tasks, forks) = (spec.number("tasks")?, spec.number("forks")?);
    for number in tasks..tasks + forks {
        pool.spawn(|worker| fork_for_ever(worker, number))?;
    }
    let prepare = |_| Ok(setpriority_process(None, LOWEST)?);
    processes(pool, 0..tasks, prepare, |()| {
        spend_cpu(OPERATION_NS);
        Ok(())
    })
}

fn fork_for_ever(worker: &Worker<'_>, number: u64) -> io::Result<()> {
    worker.begin()?;
    let own = getpid();
    loop {
        // The child counts: while it lives, its parent waits, so the counter has one writer.
        let child = fork(|| match die_with(own).and_then(|()| live_shortly(worker, number)) {
            Ok(()) => 0,
            Err(error) => worker.report_exit(usize::try_from(number).unwrap_or(0), Err(error)),
        })?;
        wait_for(child)?;
    }
}

fn live_shortly(worker: &Worker<'_>, number: u64) -> io::Result<()> {
    let counter = worker.counter(number)?;
    let mut memory = Region::map(CHILD_BYTES, false)?;
    memory.touch();
    for _ in 0..CHILD_OPERATIONS {
        spend_cpu(OPERATION_NS);
        counter.bump();
    }
    Ok(())
}
