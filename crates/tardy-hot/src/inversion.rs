//! The loops of the `inversion` probe: three threads of one CPU and a mutex.
//!
//! A round, by priority alone and without any timing:
//!
//! 1. The high thread wakes the low one and waits. The low one takes the mutex and says so, upon
//!    which the high one preempts it.
//! 2. The high thread wakes the medium one, the hog, which cannot run yet, and wants the mutex.
//! 3. The mutex has priority inheritance: the low thread runs with the priority of the high one,
//!    works, and gives the mutex up. It has none: the hog runs first, and then the low thread.
//! 4. The high thread has the mutex. It gives it up and waits until the other two are done.
//!
//! # What lies between the clock reads
//!
//! `pthread_mutex_lock` of the high thread: the call, the wait, in it whatever the low thread and
//! the hog do, the wake-up and the return. Waking the hog and reading the CPU time of the two lie
//! outside.

use core::{
    cell::UnsafeCell,
    ffi::{c_int, c_uint},
    mem::MaybeUninit,
    sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
};
use std::io;

use crate::{
    clock,
    ring::Sample,
    stop::Stop,
    wakeup::{Ended, Sink, Until, errno, sleep},
};

/// The mutexes, in the order of [`Contest::new`]: with priority inheritance, and without.
pub const KINDS: usize = 2;

/// The number of slices of the measured time; each slice has its own sums.
pub const SLICES: usize = 20;

/// A mutex of the C library, at its own place: it must not move.
#[derive(Debug)]
struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: it is made to be used by several threads, and only the C library touches it.
unsafe impl Sync for Mutex {}
// SAFETY: it lies behind a pointer, and no thread has it where its owner changes.
unsafe impl Send for Mutex {}

impl Mutex {
    fn new(protocol: c_int) -> io::Result<Self> {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let own = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: `attributes` is writable, and is initialised here.
        done(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: it has just been initialised.
        let set =
            done(unsafe { libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol) });
        let made = set.and_then(|()| {
            // SAFETY: nobody uses the mutex yet, and the attributes are initialised.
            done(unsafe { libc::pthread_mutex_init(own.get(), attributes.as_ptr()) })
        });
        // SAFETY: it was initialised, and is not used again.
        unsafe { libc::pthread_mutexattr_destroy(attributes.as_mut_ptr()) };
        made.map(|()| Self(own))
    }

    /// 0, or an error number.
    #[inline(always)]
    fn lock(&self) -> c_int {
        // SAFETY: it was initialised, and does not move.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    /// By the thread that has it.
    #[inline(always)]
    fn unlock(&self) {
        // SAFETY: it was initialised, does not move, and this thread has it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more: it is dropped after the threads that use it have ended.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

fn done(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// A semaphore of the C library, likewise.
#[derive(Debug)]
struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: it is made to be used by several threads, and only the C library touches it.
unsafe impl Sync for Semaphore {}
// SAFETY: it lies behind a pointer.
unsafe impl Send for Semaphore {}

impl Semaphore {
    fn new() -> io::Result<Self> {
        const EMPTY: c_uint = 0;
        // SAFETY: all zero is memory that `sem_init` may write to.
        let own = Box::new(UnsafeCell::new(unsafe { core::mem::zeroed::<libc::sem_t>() }));
        // SAFETY: nobody uses it yet.
        if unsafe { libc::sem_init(own.get(), 0, EMPTY) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(own))
    }

    #[inline(always)]
    fn post(&self) {
        // SAFETY: it was initialised, and does not move; it never counts beyond 2.
        unsafe { libc::sem_post(self.0.get()) };
    }

    /// A signal does not end it: who posts runs in bounded time.
    #[inline(always)]
    fn wait(&self) {
        // SAFETY: it was initialised, and does not move.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 && errno() == libc::EINTR {}
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: nobody waits for it any more.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// What the three threads share.
#[derive(Debug)]
pub struct Contest {
    mutexes: [Mutex; KINDS],
    /// Which of them a round is about.
    kind: AtomicUsize,
    low_goes: Semaphore,
    low_has_it: Semaphore,
    low_is_done: Semaphore,
    hog_goes: Semaphore,
    hog_is_done: Semaphore,
    /// Why the low thread could not have the mutex; 0 where it could.
    refused: AtomicI32,
    is_over: AtomicBool,
}

impl Contest {
    /// The mutexes and semaphores, all free.
    ///
    /// # Errors
    /// The C library has no such mutex.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            mutexes: [
                Mutex::new(libc::PTHREAD_PRIO_INHERIT)?,
                Mutex::new(libc::PTHREAD_PRIO_NONE)?,
            ],
            kind: AtomicUsize::new(0),
            low_goes: Semaphore::new()?,
            low_has_it: Semaphore::new()?,
            low_is_done: Semaphore::new()?,
            hog_goes: Semaphore::new()?,
            hog_is_done: Semaphore::new()?,
            refused: AtomicI32::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Lets [`hold`] and [`burst`] end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.low_goes.post();
        self.hog_goes.post();
    }

    fn mutex(&self) -> Option<&Mutex> {
        self.mutexes.get(self.kind.load(Ordering::Relaxed))
    }
}

/// The low thread: takes the mutex in each round, and has it for `hold_ns` of its CPU time.
pub fn hold(contest: &Contest, hold_ns: i64) {
    loop {
        contest.low_goes.wait();
        if contest.is_over.load(Ordering::Acquire) {
            return;
        }
        let Some(mutex) = contest.mutex() else { return };
        let error = mutex.lock();
        contest.refused.store(error, Ordering::Relaxed);
        contest.low_has_it.post();
        if error == 0 {
            work(hold_ns);
            mutex.unlock();
        }
        contest.low_is_done.post();
    }
}

/// The hog: uses `hog_ns` of CPU time in each round.
pub fn burst(contest: &Contest, hog_ns: i64) {
    loop {
        contest.hog_goes.wait();
        if contest.is_over.load(Ordering::Acquire) {
            return;
        }
        work(hog_ns);
        contest.hog_is_done.post();
    }
}

/// Uses `ns` of CPU time.
fn work(ns: i64) {
    let end_ns = cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID) + ns;
    while cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID) < end_ns {}
}

/// CPU time by such a clock, ns; 0 of a thread that is gone.
fn cpu_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; a clock whose thread has ended is an error and no more.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    clock::from_timespec(time)
}

/// WaitSums over the waits of one slice for one mutex.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitSums {
    /// Waits.
    pub rounds: i64,
    /// When the last of them ended, ns.
    pub end_ns: i64,
    /// CPU time that the low thread had within them, ns.
    pub low_ns: i64,
    /// CPU time that the hog had within them, ns.
    pub hog_ns: i64,
}

/// The high thread: what it carries from round to round.
#[derive(Debug)]
pub struct High<'a, S> {
    /// What it shares with the others.
    pub contest: &'a Contest,
    /// Where the waits for each mutex go.
    pub sinks: [S; KINDS],
    /// WaitSums of them by slice.
    pub sums: [[WaitSums; KINDS]; SLICES],
    /// The kernel's numbers of the low thread and of the hog.
    pub tids: (i32, i32),
    /// When the next round begins, ns.
    pub next_ns: i64,
    /// From the begin of one round to that of the next, ns; a round that comes too late leaves out
    /// those that have passed.
    pub period_ns: i64,
    /// A slice takes so long, ns; `i64::MAX` where all is one.
    pub slice_ns: i64,
}

/// One round, once it is over.
struct Round {
    sample: Sample,
    low_ns: i64,
    hog_ns: i64,
}

impl<S: Sink> High<'_, S> {
    /// Rounds for the two mutexes in turns, until `until` or `stop` ends them. `until.samples` is
    /// for each of the two.
    #[inline(never)]
    pub fn run(&mut self, until: Until, stop: &Stop) -> Ended {
        let begin_ns = self.next_ns;
        let mut left = [until.samples; KINDS];
        let mut kind = 0;
        while left.iter().any(|left| *left > 0) && self.next_ns < until.end_ns {
            match sleep(libc::TIMER_ABSTIME, self.next_ns) {
                0 => {}
                libc::EINTR if !stop.is_set() => continue,
                _ if stop.is_set() => return Ended::Stopped,
                errno => return Ended::Failed(errno),
            }
            let round = match self.round(kind) {
                Ok(round) => round,
                Err(errno) => return Ended::Failed(errno),
            };
            self.add(kind, begin_ns, &round);
            if round.sample.latency_ns > until.stop_over_ns {
                stop.set_over(round.sample.latency_ns);
            }
            if stop.is_set() {
                return Ended::Stopped;
            }
            if let Some(left) = left.get_mut(kind) {
                *left -= 1;
            }
            kind = (kind + 1) % KINDS;
            let late_ns = (clock::now_ns() - self.next_ns).max(0);
            self.next_ns += (late_ns.checked_div(self.period_ns).unwrap_or(0) + 1) * self.period_ns;
        }
        Ended::Done
    }

    #[inline(always)]
    fn round(&self, kind: usize) -> Result<Round, c_int> {
        let contest = self.contest;
        contest.kind.store(kind, Ordering::Relaxed);
        let Some(mutex) = contest.mutex() else { return Err(libc::EINVAL) };
        contest.low_goes.post();
        contest.low_has_it.wait();
        let refused = contest.refused.load(Ordering::Relaxed);
        if refused != 0 {
            contest.low_is_done.wait();
            return Err(refused);
        }
        let (low, hog) = (thread_clock(self.tids.0), thread_clock(self.tids.1));
        let before_ns = (cpu_ns(low), cpu_ns(hog));
        contest.hog_goes.post();
        let t_ns = clock::now_ns();
        let error = mutex.lock();
        let latency_ns = clock::now_ns() - t_ns;
        let after_ns = (cpu_ns(low), cpu_ns(hog));
        if error == 0 {
            mutex.unlock();
        }
        contest.hog_is_done.wait();
        contest.low_is_done.wait();
        if error != 0 {
            return Err(error);
        }
        let (low_ns, hog_ns) = (after_ns.0 - before_ns.0, after_ns.1 - before_ns.1);
        Ok(Round { sample: Sample { t_ns, latency_ns }, low_ns, hog_ns })
    }

    fn add(&mut self, kind: usize, begin_ns: i64, round: &Round) {
        let Round { sample, low_ns, hog_ns } = *round;
        if let Some(sink) = self.sinks.get_mut(kind) {
            sink.take(sample);
        }
        let number = (sample.t_ns - begin_ns).max(0).checked_div(self.slice_ns).unwrap_or(0);
        let slice = (number as usize).min(SLICES - 1);
        if let Some(sums) = self.sums.get_mut(slice).and_then(|slice| slice.get_mut(kind)) {
            sums.rounds += 1;
            sums.end_ns = sample.t_ns + sample.latency_ns;
            sums.low_ns += low_ns;
            sums.hog_ns += hog_ns;
        }
    }
}

/// The kernel's number of the CPU clock of a thread of this process: `CPUCLOCK_SCHED` and
/// `CPUCLOCK_PERTHREAD_MASK` of `include/linux/posix-timers_types.h`.
const fn thread_clock(tid: i32) -> libc::clockid_t {
    (!tid << 3) | 2 | 4
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, mpsc},
        thread,
    };

    use super::*;
    use crate::wakeup::{Counted, Series};

    #[test]
    fn rounds_alternate_between_the_mutexes_and_end_by_their_number() {
        let contest = Contest::new().unwrap();
        let (send, tids) = mpsc::channel();
        // SAFETY: has no preconditions.
        let tid = || unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        thread::scope(|scope| {
            let (own, send_low, send_hog) = (&contest, send.clone(), send);
            scope.spawn(move || {
                send_low.send((0, tid())).unwrap();
                hold(own, 200_000);
            });
            scope.spawn(move || {
                send_hog.send((1, tid())).unwrap();
                burst(own, 100_000);
            });
            let mut known: Vec<(i32, i32)> = tids.iter().take(2).collect();
            known.sort_unstable();
            let series: [Arc<Series>; KINDS] = Default::default();
            let mut high = High {
                contest: &contest,
                sinks: series.each_ref().map(|series| Counted(Arc::clone(series))),
                sums: [[WaitSums::default(); KINDS]; SLICES],
                tids: (known[0].1, known[1].1),
                next_ns: clock::now_ns(),
                period_ns: 1_000_000,
                slice_ns: i64::MAX,
            };
            let until = Until { end_ns: i64::MAX, samples: 3, stop_over_ns: i64::MAX };
            assert_eq!(high.run(until, &Stop::new()), Ended::Done);
            contest.end();
            for (kind, series) in series.iter().enumerate() {
                assert_eq!(series.tally.totals().count, 3);
                let sums = high.sums[0][kind];
                assert_eq!(sums.rounds, 3);
                assert!(sums.low_ns >= 0 && sums.hog_ns <= 3 * 100_000 * 10, "{sums:?}");
            }
        });
    }

    #[test]
    fn a_set_flag_ends_it_after_the_round() {
        let contest = Contest::new().unwrap();
        thread::scope(|scope| {
            let own = &contest;
            scope.spawn(|| hold(own, 1_000));
            scope.spawn(|| burst(own, 1_000));
            let series: Arc<Series> = Arc::default();
            let mut high = High {
                contest: &contest,
                sinks: [Counted(Arc::clone(&series)), Counted(Arc::clone(&series))],
                sums: [[WaitSums::default(); KINDS]; SLICES],
                tids: (0, 0),
                next_ns: clock::now_ns(),
                period_ns: 1_000_000,
                slice_ns: i64::MAX,
            };
            let until = Until { end_ns: i64::MAX, samples: u64::MAX, stop_over_ns: 0 };
            assert_eq!(high.run(until, &Stop::new()), Ended::Stopped);
            contest.end();
            assert_eq!(series.tally.totals().count, 1);
        });
    }
}
