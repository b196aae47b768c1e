//! The loop of the `timer` probe: wait for an expiry, read the clock, store the difference.
//!
//! # What lies between the clock reads
//!
//! The programmed expiry is a number, not a clock read; the sample is one clock read after the
//! wait returned, minus that number. In it are: the timer's expiry and interrupt, the wake-up, the
//! dispatch, the return to user space, and half of one clock read. Per kind of [`Wake`]:
//!
//! | kind | programmed expiry | also in the sample |
//! | --- | --- | --- |
//! | [`Absolute`] | the one passed to `clock_nanosleep(TIMER_ABSTIME)` | nothing |
//! | [`Relative`] | clock before the call + period | entering the system call, arming the timer |
//! | [`Periodic`] | start + n periods, armed once in a timerfd | `read` of the timerfd |
//!
//! Recording, and for [`Relative`] one more clock read, lie outside.

use core::ffi::c_int;
use std::sync::Arc;

use crate::{
    clock,
    histogram::{HIGHEST_NS, Histogram},
    ring::{Sample, Writer},
    stop::Stop,
    tally::Tally,
};

/// A way to sleep until the next expiry.
pub trait Wake {
    /// Waits, and returns the programmed expiry in ns, or the error number of a wait that failed.
    ///
    /// # Errors
    /// The `errno` of the system call; `EINTR` when a signal ended the wait.
    fn wait(&mut self) -> Result<i64, c_int>;

    /// Moves on to the next expiry after a wake-up that was late by `latency_ns`, and returns the
    /// number of periods that passed without their own wake-up.
    fn advance(&mut self, latency_ns: i64) -> u64;

    /// The expiry that the next [`Wake::wait`] waits for, in ns.
    fn next_ns(&self) -> i64;
}

/// Absolute `clock_nanosleep` on `CLOCK_MONOTONIC`. Periods that have passed are skipped: a
/// wake-up late by L at period T leaves out floor(L / T) of them.
#[derive(Debug)]
pub struct Absolute {
    next_ns: i64,
    period_ns: i64,
}

impl Absolute {
    /// First expiry and period in ns; the period must be positive.
    #[must_use]
    pub const fn new(first_ns: i64, period_ns: i64) -> Self {
        Self { next_ns: first_ns, period_ns }
    }
}

impl Wake for Absolute {
    #[inline(always)]
    fn wait(&mut self) -> Result<i64, c_int> {
        match sleep(libc::TIMER_ABSTIME, self.next_ns) {
            0 => Ok(self.next_ns),
            errno => Err(errno),
        }
    }

    #[inline(always)]
    fn advance(&mut self, latency_ns: i64) -> u64 {
        if latency_ns < self.period_ns {
            self.next_ns += self.period_ns;
            return 0;
        }
        let missed = latency_ns.checked_div(self.period_ns).unwrap_or(0);
        self.next_ns += (missed + 1) * self.period_ns;
        missed as u64
    }

    #[inline(always)]
    fn next_ns(&self) -> i64 {
        self.next_ns
    }
}

/// Relative `clock_nanosleep`: each sleep begins when the turn before has ended, so it has no
/// schedule and misses no period.
#[derive(Debug)]
pub struct Relative {
    next_ns: i64,
    period_ns: i64,
}

impl Relative {
    /// The period in ns, which must be positive; the first sleep begins at the first wait.
    #[must_use]
    pub fn new(period_ns: i64) -> Self {
        Self { next_ns: clock::now_ns() + period_ns, period_ns }
    }
}

impl Wake for Relative {
    #[inline(always)]
    fn wait(&mut self) -> Result<i64, c_int> {
        self.next_ns = clock::now_ns() + self.period_ns;
        match sleep(0, self.period_ns) {
            0 => Ok(self.next_ns),
            errno => Err(errno),
        }
    }

    #[inline(always)]
    fn advance(&mut self, latency_ns: i64) -> u64 {
        // The next sleep cannot begin before now: good enough to know when the time is over.
        self.next_ns += latency_ns + self.period_ns;
        0
    }

    #[inline(always)]
    fn next_ns(&self) -> i64 {
        self.next_ns
    }
}

/// A periodic timerfd, armed before the loop. Missed periods are the kernel's overrun count, and
/// those that expired between the `read` and the clock read: the kernel reports them only
/// at the next `read`, but they passed in the same stall.
#[derive(Debug)]
pub struct Periodic {
    timer: c_int,
    /// The number of expirations is in the bits above this shift.
    shift: u32,
    read: u64,
    grid: CountedGrid,
}

/// Expiries of a timer that is armed once, of which the kernel says how many there were.
#[derive(Debug)]
pub(crate) struct CountedGrid {
    next_ns: i64,
    period_ns: i64,
    /// Since the expiry before, as the kernel counts them.
    expirations: u64,
    /// Periods counted as missed that the kernel has not reported yet.
    counted: u64,
}

impl CountedGrid {
    pub(crate) const fn new(next_ns: i64, period_ns: i64) -> Self {
        Self { next_ns, period_ns, expirations: 0, counted: 0 }
    }

    /// Takes what the kernel reported: the expiry that was waited for, or nothing where all of it
    /// was counted before.
    #[inline(always)]
    pub(crate) fn report(&mut self, expirations: u64) -> Option<i64> {
        if expirations > self.counted {
            self.expirations = expirations - self.counted;
            self.counted = 0;
            return Some(self.next_ns);
        }
        self.counted -= expirations;
        None
    }

    /// As [`Wake::advance`].
    #[inline(always)]
    pub(crate) fn advance(&mut self, latency_ns: i64) -> u64 {
        let passed = if latency_ns < self.period_ns {
            1
        } else {
            1 + latency_ns.checked_div(self.period_ns).unwrap_or(0) as u64
        };
        let periods = passed.max(self.expirations);
        self.counted = periods - self.expirations;
        self.next_ns += periods as i64 * self.period_ns;
        periods - 1
    }

    #[inline(always)]
    pub(crate) const fn next_ns(&self) -> i64 {
        self.next_ns
    }
}

impl Periodic {
    /// A blocking timerfd on `CLOCK_MONOTONIC`, armed for `first_ns` and then every `period_ns`.
    /// The descriptor stays the caller's.
    #[must_use]
    pub const fn new(timer: c_int, first_ns: i64, period_ns: i64) -> Self {
        Self { timer, shift: 0, read: 0, grid: CountedGrid::new(first_ns, period_ns) }
    }

    /// The device of a real-time clock that interrupts at `first_ns` and then every `period_ns`
    /// (rtc(4)). The descriptor stays the caller's.
    #[must_use]
    pub const fn of_clock(device: c_int, first_ns: i64, period_ns: i64) -> Self {
        Self { shift: 8, ..Self::new(device, first_ns, period_ns) }
    }
}

impl Wake for Periodic {
    #[inline(always)]
    fn wait(&mut self) -> Result<i64, c_int> {
        loop {
            let target: *mut u64 = &raw mut self.read;
            // SAFETY: `target` points to 8 writable bytes, which is what a timerfd hands over.
            let got = unsafe { libc::read(self.timer, target.cast(), 8) };
            if got != 8 {
                return Err(errno());
            }
            if let Some(expiry_ns) = self.grid.report(self.read >> self.shift) {
                return Ok(expiry_ns);
            }
        }
    }

    #[inline(always)]
    fn advance(&mut self, latency_ns: i64) -> u64 {
        self.grid.advance(latency_ns)
    }

    #[inline(always)]
    fn next_ns(&self) -> i64 {
        self.grid.next_ns()
    }
}

/// Where samples go.
pub trait Sink {
    /// Takes one sample. Must keep the contract of this crate.
    fn take(&mut self, sample: Sample);
    /// Ends a turn: how late it was in the end, ns, with what came after the wake-up.
    #[inline(always)]
    fn end_turn(&mut self, sample: Sample) -> i64 {
        sample.latency_ns
    }
    /// Takes note of periods without a wake-up.
    fn miss(&mut self, periods: u64);
}

/// One series as the measuring thread writes it: counts and totals.
#[derive(Debug, Default)]
pub struct Series {
    /// Latencies from 0 to one hour.
    pub histogram: Histogram,
    /// All latencies.
    pub tally: Tally,
}

impl Series {
    /// Counts one latency: in the tally always, in the histogram where it fits.
    #[inline(always)]
    pub fn record(&self, latency_ns: i64) {
        self.tally.add(latency_ns);
        if latency_ns < 0 {
            self.tally.add_early();
        } else if latency_ns > HIGHEST_NS {
            self.tally.add_above();
        } else {
            self.histogram.record(latency_ns);
        }
    }

    /// Forgets everything. Only for the measuring thread, between loops.
    pub fn clear(&self) {
        self.histogram.clear();
        self.tally.clear();
    }
}

/// Counts only.
#[derive(Debug)]
pub struct Counted(pub Arc<Series>);

impl Sink for Counted {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        self.0.record(sample.latency_ns);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.0.tally.add_missed(periods);
    }
}

/// Counts, and hands every sample on.
#[derive(Debug)]
pub struct Kept(pub Arc<Series>, pub Writer<Sample>);

impl Sink for Kept {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        self.0.record(sample.latency_ns);
        self.1.push(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.0.tally.add_missed(periods);
    }
}

/// When a loop ends.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// No expiry at or after this time is waited for; ns, `i64::MAX` for no end.
    pub end_ns: i64,
    /// The maximum number of samples; `u64::MAX` for no limit.
    pub samples: u64,
    /// The first latency above this sets the stop flag; ns, `i64::MAX` for none.
    pub stop_over_ns: i64,
}

impl Until {
    /// Of `missed` periods between two expiries those before the end: later ones are of no run.
    #[inline(always)]
    const fn before_end(&self, missed: u64, t_ns: i64, next_ns: i64) -> u64 {
        if missed == 0 || next_ns <= self.end_ns {
            return missed;
        }
        self.cut(missed, t_ns, next_ns)
    }

    #[cold]
    const fn cut(&self, missed: u64, t_ns: i64, next_ns: i64) -> u64 {
        let period_ns = next_ns.abs_diff(t_ns) / (missed + 1);
        let (left_ns, last) = (self.end_ns.saturating_sub(1).saturating_sub(t_ns), missed);
        match (left_ns, left_ns.unsigned_abs().checked_div(period_ns)) {
            (0.., Some(before)) if before < last => before,
            (0.., _) => last,
            _ => 0,
        }
    }
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Time over, or all samples taken.
    Done,
    /// The stop flag was set, by another thread or by a latency above the limit.
    Stopped,
    /// A wait failed with this `errno`.
    Failed(c_int),
}

/// Waits, reads the clock, hands the difference over; until `until` or `stop` ends it.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn run<W: Wake, S: Sink>(wake: &mut W, sink: &mut S, until: Until, stop: &Stop) -> Ended {
    let mut left = until.samples;
    while left > 0 && wake.next_ns() < until.end_ns {
        let t_ns = match wake.wait() {
            Ok(t_ns) => t_ns,
            Err(libc::EINTR) if !stop.is_set() => continue,
            Err(_) if stop.is_set() => return Ended::Stopped,
            Err(errno) => return Ended::Failed(errno),
        };
        let latency_ns = clock::now_ns() - t_ns;
        let sample = Sample { t_ns, latency_ns };
        sink.take(sample);
        let late_ns = sink.end_turn(sample);
        let missed = wake.advance(late_ns);
        sink.miss(until.before_end(missed, t_ns, wake.next_ns()));
        if latency_ns > until.stop_over_ns {
            stop.set_over(latency_ns);
        }
        if stop.is_set() {
            return Ended::Stopped;
        }
        left -= 1;
    }
    Ended::Done
}

/// A way to sleep whose loops without stages are compiled in this crate, so that they are as fast
/// as they get however its user is compiled: what a test finds is then what a run will.
pub trait CompiledWake: Wake {
    /// [`run`], counting.
    fn count(&mut self, sink: &mut Counted, until: Until, stop: &Stop) -> Ended;
    /// [`run`], keeping every sample.
    fn keep(&mut self, sink: &mut Kept, until: Until, stop: &Stop) -> Ended;
}

// Its users have the names of this module in scope.
macro_rules! compiled {
    ($($wake:ty),*) => {$(
        impl CompiledWake for $wake {
            #[inline(never)]
            fn count(&mut self, sink: &mut Counted, until: Until, stop: &Stop) -> Ended {
                run(self, sink, until, stop)
            }

            #[inline(never)]
            fn keep(&mut self, sink: &mut Kept, until: Until, stop: &Stop) -> Ended {
                run(self, sink, until, stop)
            }
        }
    )*};
}

compiled!(Absolute, Relative, Periodic);
pub(crate) use compiled;

/// Not by libc's `clock_nanosleep`: that is a cancellation point, and leaves one on its way back,
/// before the clock can be read.
#[inline(always)]
pub(crate) fn sleep(flags: c_int, ns: i64) -> c_int {
    let request = clock::to_timespec(ns);
    // SAFETY: `request` is a valid timespec, as the kernel has it where a long has 64 bits, and a
    // null remainder is allowed.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            flags,
            &raw const request,
            core::ptr::null_mut::<libc::timespec>(),
        )
    };
    if failed == 0 { 0 } else { errno() }
}

// Elsewhere this system call takes another timespec than libc has.
const _: () = assert!(size_of::<libc::c_long>() == 8);

#[cold]
pub(crate) fn errno() -> c_int {
    // SAFETY: has no preconditions; the address is this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is always valid to read.
    unsafe { *place }
}
