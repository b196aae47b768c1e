//! The load `timers`: hundreds of threads that sleep until the same moment, again and again.
//!
//! All of their timers expire in one interrupt, which wakes one thread after the other. A wake-up
//! is one operation. On the machine it takes a timer and a stack a thread.

use crate::loads::task_loop::{THREAD_BYTES, next_expiry_ns, sleep_until, threads};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "timers",
    summary: "Hundreds of threads whose timers expire at the same moment.",
    unit: "wake-ups",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "threads",
        help: "Number of sleeping threads.",
        default: "200",
        kind: ParameterKind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "Time from one expiry to the next.",
        default: "10ms",
        kind: ParameterKind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("threads")?;
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let interval_ns = spec.time_ns("interval")?;
    // The default slack of 50 us spreads nothing: the expiries are equal to begin with.
    let turn = move |(): &mut ()| sleep_until(next_expiry_ns(interval_ns));
    threads(pool, 0..spec.number("threads")?, |_| Ok(()), turn)
}
