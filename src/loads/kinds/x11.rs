//! The load `x11`: simulated windows that are dragged over the screen, as interbench has one.
//!
//! Each computes in bursts, one every 100 ms: 0, 1, ... 100 ms long, and again. A millisecond of
//! CPU time is one operation. The probe `interactive` simulates the same as a task that is
//! measured.

use std::io;

use tardy_hot::clock::now_ns;

use crate::loads::task_loop::{THREAD_BYTES, sleep_until, spend_cpu, threads};
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

use super::burn::OPERATION_NS;

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "x11",
    summary: "Simulated windows that are dragged: bursts from 0 to 100% of a CPU.",
    unit: "ms of CPU",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[Parameter {
    key: "windows",
    help: "Number of windows, a thread each.",
    default: "1",
    kind: ParameterKind::Count { min: 1, max: 4096 },
}];

const PERIOD_NS: i64 = 100_000_000;

/// The longest burst, operations: the whole period.
const LONGEST: i64 = PERIOD_NS / OPERATION_NS;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let tasks = spec.number("windows")?;
    Ok(Need { tasks, counters: tasks, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let prepare = |_| Ok(WindowLoad { burst: 1, left: 1, next_ns: now_ns() + PERIOD_NS });
    threads(pool, 0..spec.number("windows")?, prepare, WindowLoad::operation)
}

/// A window, and its burst.
#[derive(Debug)]
struct WindowLoad {
    /// The operations of this burst.
    burst: i64,
    /// How many of them are left.
    left: i64,
    /// When the next one begins.
    next_ns: i64,
}

impl WindowLoad {
    /// One operation, the first of a burst when that begins.
    fn operation(&mut self) -> io::Result<()> {
        while self.left == 0 {
            sleep_until(self.next_ns)?;
            // A burst that took longer than its period is not made up for.
            self.next_ns = now_ns().max(self.next_ns + PERIOD_NS);
            self.burst = (self.burst + 1) % (LONGEST + 1);
            self.left = self.burst;
        }
        spend_cpu(OPERATION_NS);
        self.left -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_grow_by_a_millisecond_and_begin_again_after_the_longest() {
        let long_ago_ns = now_ns() - 1_000 * PERIOD_NS;
        let mut window = WindowLoad { burst: LONGEST - 1, left: 1, next_ns: long_ago_ns };
        let before_ns = now_ns();
        window.operation().unwrap();
        assert_eq!(window.left, 0);
        window.next_ns = before_ns;
        window.operation().unwrap();
        assert_eq!((window.burst, window.left), (LONGEST, LONGEST - 1));
        window.left = 0;
        window.next_ns = before_ns;
        window.operation().unwrap();
        assert_eq!((window.burst, window.left), (1, 0), "a burst of nothing is skipped");
    }
}
