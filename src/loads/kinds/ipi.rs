//! The load `ipi`: threads that interrupt each other's CPUs as fast as they can.
//!
//! One thread a CPU calls `membarrier`; the kernel sends an interrupt to each other CPU that runs
//! a thread of the process and waits for its answer. A barrier is one operation. With one CPU, or
//! where others keep the threads from running, there is nobody to interrupt.

use std::io;

use super::burn::per_cpu;
use crate::loads::task_loop::{THREAD_BYTES, threads};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::cpus::Cpus;
use crate::sys::membarrier;

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "ipi",
    summary: "Storms of interrupts from CPU to CPU (membarrier).",
    unit: "barriers",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "threads",
    help: "Number of threads, each on one CPU; 0 means one per CPU that tardy may use.",
    default: "0",
    kind: ParameterKind::Count { min: 0, max: 4096 },
}];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = per_cpu(spec.number("threads")?);
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let remedy = "this kernel is built without CONFIG_MEMBARRIER; choose another load";
    membarrier::register().map_err(|error| pool.refuse("call membarrier", error, remedy))?;
    let allowed = Cpus::allowed()
        .map_err(|error| pool.cannot("ask which CPUs this process may use", error))?;
    let allowed: Vec<u32> = allowed.iter().collect();
    let prepare = |number| settle(&allowed, number);
    threads(pool, 0..per_cpu(spec.number("threads")?), prepare, |()| membarrier::barrier())
}

fn settle(allowed: &[u32], number: u64) -> io::Result<()> {
    // A fork does not inherit its parent's registration.
    membarrier::register()?;
    let place = usize::try_from(number).unwrap_or(0) % allowed.len().max(1);
    let own: Cpus = allowed.get(place).copied().into_iter().collect();
    own.pin_this_thread().map(|_| ())
}
