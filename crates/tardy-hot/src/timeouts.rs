//! Waits of the `timer` probe as programs with an event loop have them: the time-out of a call that
//! waits for descriptors, and the signal of a POSIX timer.
//!
//! # What lies between the clock reads
//!
//! As in [`crate::wakeup`]. Of a [`TimeOut`] the programmed expiry is start + n periods, and the
//! time-out what is left until then by the clock; in the sample are also entering the call, arming
//! the timer, and for ordinary tasks the slack of such calls, up to 0.1% of the time-out
//! (`fs/select.c`, `select_estimate_accuracy`). Of a [`TimerSignal`] it is start + n periods, armed
//! once; in the sample are also queueing the signal and `rt_sigtimedwait`.

use core::{ffi::c_int, mem::MaybeUninit, ptr};

use crate::{
    clock,
    stop::Stop,
    uring::TimeOutRing,
    wakeup::{
        Absolute, CompiledWake, Counted, CountedGrid, Ended, Kept, Until, Wake, compiled, errno,
        run,
    },
};

/// A call that waits for nothing but its time-out.
pub trait TimedCall {
    /// Waits until then, ns of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// The `errno` of the system call.
    fn wait_until(&mut self, t_ns: i64) -> Result<(), c_int>;
}

/// What is left until then.
#[inline(always)]
fn left(t_ns: i64) -> libc::timespec {
    clock::to_timespec(t_ns - clock::now_ns())
}

/// `ppoll` of no descriptor.
#[derive(Debug)]
pub struct PpollCall;

/// `pselect6` of no descriptor.
#[derive(Debug)]
pub struct PselectCall;

/// `epoll_pwait2` of an instance that watches nothing; the descriptor stays the caller's.
#[derive(Debug)]
pub struct EpollCall(pub c_int);

/// 0 of a system call that timed out.
#[inline(always)]
fn checked(returned: libc::c_long) -> Result<(), c_int> {
    if returned == 0 { Ok(()) } else { Err(errno()) }
}

impl TimedCall for PpollCall {
    #[inline(always)]
    fn wait_until(&mut self, t_ns: i64) -> Result<(), c_int> {
        // The kernel writes what is left of the time.
        let mut time_out = left(t_ns);
        let (none, no_mask) = (ptr::null_mut::<libc::pollfd>(), ptr::null::<libc::sigset_t>());
        // SAFETY: no descriptors, no mask, and a live timespec, which the kernel may write.
        checked(unsafe { libc::syscall(libc::SYS_ppoll, none, 0, &raw mut time_out, no_mask, 8) })
    }
}

impl TimedCall for PselectCall {
    #[inline(always)]
    fn wait_until(&mut self, t_ns: i64) -> Result<(), c_int> {
        let mut time_out = left(t_ns);
        let none = ptr::null_mut::<libc::fd_set>();
        let no_mask = ptr::null::<libc::c_void>();
        // SAFETY: no descriptors, no mask, and a live timespec, which the kernel may write.
        checked(unsafe {
            libc::syscall(libc::SYS_pselect6, 0, none, none, none, &raw mut time_out, no_mask)
        })
    }
}

impl TimedCall for EpollCall {
    #[inline(always)]
    fn wait_until(&mut self, t_ns: i64) -> Result<(), c_int> {
        let mut event = MaybeUninit::<libc::epoll_event>::uninit();
        let no_mask = ptr::null::<libc::sigset_t>();
        let time_out = left(t_ns);
        // SAFETY: room for one event, no mask, and a live timespec.
        checked(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0,
                event.as_mut_ptr(),
                1,
                &raw const time_out,
                no_mask,
                8,
            )
        })
    }
}

/// Sleeps by the time-out of a call until the next expiry. Periods that have passed are skipped, as
/// by [`Absolute`].
#[derive(Debug)]
pub struct TimeOut<C> {
    call: C,
    grid: Absolute,
}

impl<C> TimeOut<C> {
    /// First expiry and period in ns; the period must be positive.
    pub const fn new(call: C, first_ns: i64, period_ns: i64) -> Self {
        Self { call, grid: Absolute::new(first_ns, period_ns) }
    }
}

impl<C: TimedCall> Wake for TimeOut<C> {
    #[inline(always)]
    fn wait(&mut self) -> Result<i64, c_int> {
        let next_ns = self.grid.next_ns();
        self.call.wait_until(next_ns)?;
        Ok(next_ns)
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

/// The signal of a periodic POSIX timer, armed before the loop, which waits for it. Missed periods
/// are the kernel's overrun count, and those that expired between the signal and the clock read.
#[derive(Debug)]
pub struct TimerSignal {
    /// The kernel's set of signals: that one alone.
    set: u64,
    grid: CountedGrid,
}

/// `siginfo_t` of the signal of a timer, as the kernel has it where a long has 64 bits.
#[repr(C)]
struct SignalInfo {
    head: [c_int; 4],
    timer: c_int,
    overrun: c_int,
    rest: [c_int; 26],
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

impl TimerSignal {
    /// A timer that sends this thread `signal`, 1 to 64, which it must have blocked, at `first_ns`
    /// and then every `period_ns`. The timer stays the caller's.
    #[must_use]
    pub const fn new(signal: c_int, first_ns: i64, period_ns: i64) -> Self {
        Self { set: 1 << (signal - 1), grid: CountedGrid::new(first_ns, period_ns) }
    }
}

impl Wake for TimerSignal {
    #[inline(always)]
    fn wait(&mut self) -> Result<i64, c_int> {
        loop {
            let mut info = MaybeUninit::<SignalInfo>::uninit();
            let (set, no_end) = (&raw const self.set, ptr::null::<libc::timespec>());
            // SAFETY: a live set of 8 bytes, room for what comes, and no time-out.
            let got = unsafe {
                libc::syscall(libc::SYS_rt_sigtimedwait, set, info.as_mut_ptr(), no_end, 8)
            };
            if got < 0 {
                return Err(errno());
            }
            // SAFETY: the kernel filled it.
            let overrun = unsafe { info.assume_init() }.overrun;
            if let Some(expiry_ns) = self.grid.report(1 + u64::from(overrun.unsigned_abs())) {
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

compiled!(
    TimeOut<PpollCall>,
    TimeOut<PselectCall>,
    TimeOut<EpollCall>,
    TimeOut<TimeOutRing>,
    TimerSignal
);
