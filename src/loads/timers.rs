//! The load `timers`: hundreds of threads that sleep until the same moment, again and again.
//!
//! All of their timers expire in one interrupt, which wakes one thread after the other. A wake-up
//! is one operation. On the machine it takes a timer and a stack a thread.

use super::crew::Crew;
use super::turns::{THREAD_BYTES, next_expiry_ns, sleep_until, threads};
use super::{Kind, Load, LoadError, LoadSpec, Need, Parameter, Work};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "timers",
    summary: "Hundreds of threads whose timers expire at the same moment.",
    unit: "wake-ups",
    parameters: PARAMETERS,
    work: Some(Work { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "threads",
        help: "Threads that sleep.",
        default: "200",
        kind: Kind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "From one expiry to the next.",
        default: "10ms",
        kind: Kind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("threads")?;
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, crew: &mut Crew) -> Result<(), LoadError> {
    let interval_ns = spec.time_ns("interval")?;
    // The default slack of 50 us spreads nothing: the expiries are equal to begin with.
    let turn = move |(): &mut ()| sleep_until(next_expiry_ns(interval_ns));
    threads(crew, 0..spec.number("threads")?, |_| Ok(()), turn)
}
