//! The common shape of a load: tasks that get ready, wait for all others, and then repeat one
//! operation forever, as processes or as threads of one process.

use std::io;
use std::ops::Range;
use std::thread::{self, Scope};

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use tardy_hot::clock::now_ns;

use super::LoadError;
use super::worker::Worker;
use super::worker_pool::WorkerPool;

/// The stack of a thread: it holds a handful of frames, data is on the heap.
const STACK_BYTES: usize = 64 * 1024;

/// Minimum memory of a process and a thread, with their kernel stacks and page tables: 96 and
/// 14 KiB when 3000 of them were counted by `MemAvailable` on Linux 6.18, x86-64; and some more for
/// those that have more to do.
pub(super) const PROCESS_BYTES: u64 = 128 * 1024;
pub(super) const THREAD_BYTES: u64 = 32 * 1024;

/// Starts one process a number. Each prepares, waits for all others, and then does one turn after
/// another; a turn is one operation of the counter of that number.
///
/// # Errors
/// Those of [`WorkerPool::spawn`].
pub(super) fn processes<S>(
    pool: &mut WorkerPool,
    numbers: Range<u64>,
    prepare: impl Fn(u64) -> io::Result<S>,
    turn: impl Fn(&mut S) -> io::Result<()>,
) -> Result<(), LoadError> {
    for number in numbers {
        pool.spawn(|worker| repeat(worker, number, &prepare, &turn))?;
    }
    Ok(())
}

/// The same as threads of one process.
///
/// # Errors
/// Those of [`WorkerPool::spawn`].
pub(super) fn threads<S>(
    pool: &mut WorkerPool,
    numbers: Range<u64>,
    prepare: impl Fn(u64) -> io::Result<S> + Sync,
    turn: impl Fn(&mut S) -> io::Result<()> + Sync,
) -> Result<(), LoadError> {
    let (prepare, turn) = (&prepare, &turn);
    pool.spawn(|&worker| {
        thread::scope(|scope| {
            for number in numbers {
                add(scope, worker, move || repeat(&worker, number, prepare, turn));
            }
        });
        Ok(())
    })
    .map(|_| ())
}

/// Begins with the others and repeats `turn` for ever, counting.
pub(super) fn repeat<S>(
    worker: &Worker<'_>,
    number: u64,
    prepare: impl FnOnce(u64) -> io::Result<S>,
    turn: impl Fn(&mut S) -> io::Result<()>,
) -> io::Result<()> {
    let counter = worker.counter(number)?;
    let mut state = prepare(number)?;
    worker.begin()?;
    loop {
        turn(&mut state)?;
        counter.bump();
    }
}

/// Starts a thread of a worker. A thread that cannot be started, or that ends, ends the process at
/// once: the others may wait at the barrier, and a load that runs in part is a different load.
pub(super) fn add<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    worker: Worker<'scope>,
    task: impl FnOnce() -> io::Result<()> + Send + 'scope,
) {
    let run = move || match task() {
        Ok(()) => worker.give_up("a thread ended", &io::Error::other("it came to its end")),
        Err(error) => worker.give_up("a thread ended", &error),
    };
    let builder = thread::Builder::new().stack_size(STACK_BYTES);
    if let Err(error) = builder.spawn_scoped(scope, run) {
        worker.give_up("cannot start a thread", &error);
    }
}

/// Sleeps until that moment, ns of `CLOCK_MONOTONIC`.
pub(super) fn sleep_until(monotonic_ns: i64) -> io::Result<()> {
    const SECOND: i64 = 1_000_000_000;
    let (tv_sec, tv_nsec) = (monotonic_ns.div_euclid(SECOND), monotonic_ns.rem_euclid(SECOND));
    let until = Timespec { tv_sec, tv_nsec };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(Errno::INTR) => {}
            slept => return Ok(slept?),
        }
    }
}

/// The next whole multiple of `interval_ns` on `CLOCK_MONOTONIC`: the same for all callers in the
/// same interval.
pub(super) fn next_expiry_ns(interval_ns: i64) -> i64 {
    let interval_ns = interval_ns.max(1);
    (now_ns() / interval_ns + 1) * interval_ns
}

/// CPU time of the calling thread, ns.
pub(super) fn thread_cpu_ns() -> i64 {
    let time = clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Computes for `ns` of CPU time of the calling thread, however long that takes on the clock.
pub(super) fn spend_cpu(ns: i64) {
    let end_ns = thread_cpu_ns().saturating_add(ns);
    let mut value = 1_u64;
    loop {
        // About 10 us, which makes the cost of reading the clock small, and 1 us near the end.
        let turns = match end_ns - thread_cpu_ns() {
            ..=0 => return,
            1..=20_000 => 500,
            _ => 5_000,
        };
        for _ in 0..turns {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) | 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries_lie_on_one_grid() {
        let first = next_expiry_ns(1_000_000_000);
        assert_eq!(first % 1_000_000_000, 0);
        assert!(first > now_ns() - 1_000_000_000);
    }

    #[test]
    fn cpu_time_is_spent_and_counted() {
        let before = thread_cpu_ns();
        spend_cpu(2_000_000);
        assert!(thread_cpu_ns() - before >= 2_000_000);
    }

    #[test]
    fn a_moment_that_has_passed_is_not_waited_for() {
        sleep_until(0).unwrap();
        let until = now_ns() + 1_000_000;
        sleep_until(until).unwrap();
        assert!(now_ns() >= until);
    }
}
