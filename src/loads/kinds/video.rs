//! The load `video`: simulated video players, as interbench has one.
//!
//! Each computes for 40% of a sixtieth of a second and sleeps for the rest. A millisecond of CPU
//! time is one operation. The probe `interactive` simulates the same as a task that is measured.

use crate::loads::task_loop::{THREAD_BYTES, threads};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

use super::burn::{Duty, OPERATION_NS};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "video",
    summary: "Simulated video players: 60 times a second 40% of a CPU.",
    unit: "ms of CPU",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "players",
    help: "Number of players, a thread each.",
    default: "1",
    kind: ParameterKind::Count { min: 1, max: 4096 },
}];

const PERIOD_NS: i64 = 16_666_667;
const PERCENT: i64 = 40;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("players")?;
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let prepare = |_| Ok(Duty::new(PERIOD_NS, PERCENT));
    threads(pool, 0..spec.number("players")?, prepare, |duty| duty.spend(OPERATION_NS))
}
