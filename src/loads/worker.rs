//! A worker of a load as it sees itself: the start barrier, its counters,
//! and its final report. [`super::worker_pool`] owns the supervisor's side.

use std::ffi::CString;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::futex;

use crate::sys::process::{self, Pid};
use crate::sys::shared::Slot;

/// The slot in which tasks report that they are ready, and at whose barrier they wait.
pub(super) const READY: usize = 0;
/// The slot in which tasks report that they have begun.
pub(super) const BEGUN: usize = 1;
/// The slot that holds the error number with which the first task has failed.
pub(super) const FAILED: usize = 2;
/// Counters come behind those.
pub(super) const FIRST_COUNTER: usize = 3;

/// A worker process, as it sees itself. May be shared among its threads.
#[derive(Debug, Clone, Copy)]
pub struct Worker<'a> {
    board: &'a [Slot],
}

impl<'a> Worker<'a> {
    pub(super) fn new(board: &'a [Slot]) -> Self {
        Self { board }
    }

    /// To be called once by each task when it is ready to work: returns when all are.
    ///
    /// # Errors
    /// Those of the futex; none is known to happen.
    pub fn begin(&self) -> io::Result<()> {
        if let Some(slot) = self.board.get(READY) {
            slot.count.fetch_add(1, Ordering::AcqRel);
            pass(&slot.barrier)?;
        }
        if let Some(slot) = self.board.get(BEGUN) {
            slot.count.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// A counter of operations for the use of one task.
    ///
    /// # Errors
    /// The load asked for fewer counters than that.
    pub fn counter(&self, index: u64) -> io::Result<Counter<'a>> {
        let slot = usize::try_from(index).ok().and_then(|index| index.checked_add(FIRST_COUNTER));
        match slot.and_then(|slot| self.board.get(slot)) {
            Some(slot) => Ok(Counter(&slot.count)),
            None => Err(io::Error::other(format!("no counter {index}"))),
        }
    }

    /// Ends the process from any of its threads, with the error as its final report.
    pub fn give_up(&self, what: &str, error: &io::Error) -> ! {
        self.note(error);
        // As in `report_exit`.
        let _ = writeln!(io::stderr(), "worker: {what}: {error}");
        process::exit_now(1)
    }

    /// Keeps the number of the first error for the supervisor, which reports it to tardy.
    fn note(&self, error: &io::Error) {
        let number = error.raw_os_error().and_then(|number| u64::try_from(number).ok());
        if let (Some(slot), Some(number)) = (self.board.get(FAILED), number) {
            // Only the first cause counts; the others' errors may follow from it.
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = slot.count.compare_exchange(0, number, order.0, order.1);
        }
    }

    /// Writes why the worker ends to the log; its exit code.
    pub(super) fn report_exit(&self, number: usize, done: io::Result<()>) -> u8 {
        let Err(error) = done else { return 0 };
        self.note(&error);
        // If even the log is gone, the exit code still shows the failure.
        let _ = writeln!(io::stderr(), "worker {number}: {error}");
        1
    }
}

/// What every worker does first. `rt_time` is the limit that the supervisor has set for itself, as
/// it was before.
pub(super) fn settle(load: &str, supervisor: Pid, rt_time: Option<Rlimit>) -> io::Result<()> {
    process::die_with(supervisor)?;
    // The two pipes are between tardy and the supervisor: a worker must neither read a command nor
    // write into the reports, nor keep the pipes open.
    process::detach_from_pipes()?;
    if let Some(limit) = rt_time {
        setrlimit(Resource::Rttime, limit)?;
    }
    let name = CString::new(load.get(..15).unwrap_or(load)).unwrap_or_default();
    Ok(rustix::thread::set_name(&name)?)
}

fn pass(barrier: &AtomicU32) -> io::Result<()> {
    while barrier.load(Ordering::Acquire) == 0 {
        match futex::wait(barrier, futex::Flags::empty(), 0, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Releases all tasks that wait at the barrier.
pub(super) fn open(barrier: &AtomicU32) {
    barrier.store(1, Ordering::Release);
    // The wake-up can only fail on a bad address, and this one is mapped.
    let _ = futex::wake(barrier, futex::Flags::empty(), i32::MAX.unsigned_abs());
}

/// A task's own counter of operations.
#[derive(Debug)]
pub struct Counter<'a>(&'a AtomicU64);

impl Counter<'_> {
    /// Counts one operation. There is one writer, so a plain load and store are enough.
    #[inline]
    pub fn bump(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::shared::SharedSlots;

    #[test]
    fn a_counter_that_was_not_asked_for_is_an_error() {
        let shared = SharedSlots::new(FIRST_COUNTER).unwrap();
        let worker = Worker::new(shared.slots());
        assert!(worker.counter(0).is_err());
        assert!(worker.counter(u64::MAX).is_err());
    }

    #[test]
    fn the_first_error_of_the_system_is_kept() {
        let shared = SharedSlots::new(FIRST_COUNTER).unwrap();
        let worker = Worker::new(shared.slots());
        assert_eq!(worker.report_exit(0, Err(io::Error::other("no number"))), 1);
        assert_eq!(shared.slots()[FAILED].count.load(Ordering::Relaxed), 0);
        for number in [libc::ENOSPC, libc::EIO] {
            assert_eq!(worker.report_exit(0, Err(io::Error::from_raw_os_error(number))), 1);
        }
        assert_eq!(shared.slots()[FAILED].count.load(Ordering::Relaxed), 28);
    }
}
