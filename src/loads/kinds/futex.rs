//! The load `futex`: one call that wakes hundreds of waiting threads, again and again.
//!
//! The kernel removes all waiters from their queue in one step, under the queue's lock. A thread
//! that was woken is one operation. On the machine it takes a stack a thread.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::io::Errno;
use rustix::thread::futex;

use crate::loads::task_loop::{THREAD_BYTES, add, next_expiry_ns, repeat, sleep_until};
use crate::loads::worker::Worker;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "futex",
    summary: "Wakes hundreds of waiting threads with one FUTEX_WAKE call.",
    unit: "wake-ups",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "waiters",
        help: "Number of waiting threads.",
        default: "300",
        kind: ParameterKind::Count { min: 1, max: 20_000 },
    },
    Parameter {
        key: "interval",
        help: "Time from one call to the next.",
        default: "5ms",
        kind: ParameterKind::Time { min_ns: 50_000, max_ns: 60_000_000_000 },
    },
];

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    let waiters = spec.number("waiters")?;
    let tasks = waiters + 1;
    Ok(Need { tasks, counters: waiters, memory_bytes: tasks * THREAD_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (waiters, interval_ns) = (spec.number("waiters")?, spec.time_ns("interval")?);
    pool.spawn(|&worker| {
        let word = AtomicU32::new(0);
        thread::scope(|scope| {
            let word = &word;
            for number in 0..waiters {
                let task = move || repeat(&worker, number, |_| Ok(0), |seen| wait(word, seen));
                add(scope, worker, task);
            }
            add(scope, worker, move || wake(&worker, word, interval_ns));
        });
        Ok(())
    })
    .map(|_| ())
}

/// Waits until the word is another one than `seen`.
fn wait(word: &AtomicU32, seen: &mut u32) -> io::Result<()> {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != *seen {
            *seen = now;
            return Ok(());
        }
        match futex::wait(word, futex::Flags::PRIVATE, now, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn wake(worker: &Worker<'_>, word: &AtomicU32, interval_ns: i64) -> io::Result<()> {
    worker.begin()?;
    loop {
        sleep_until(next_expiry_ns(interval_ns))?;
        word.fetch_add(1, Ordering::Release);
        futex::wake(word, futex::Flags::PRIVATE, i32::MAX.unsigned_abs())?;
    }
}
