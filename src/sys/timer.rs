//! Timers and timer slack.

use std::{io, num::NonZeroU64, os::fd::OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A blocking timerfd on `CLOCK_MONOTONIC`, due at `first_ns` and then every `period_ns`.
///
/// # Errors
/// No descriptor left, or a period the kernel does not take.
pub fn periodic(first_ns: i64, period_ns: i64) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let setting = Itimerspec { it_interval: timespec(period_ns), it_value: timespec(first_ns) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    Ok(timer)
}

/// A POSIX timer on `CLOCK_MONOTONIC` that signals one thread. It is deleted when this is dropped.
#[derive(Debug)]
pub struct SignalTimer(libc::timer_t);

impl SignalTimer {
    /// The n-th signal that nothing else here uses, of some thirty. A timer whose signal still
    /// waits does not expire again.
    #[must_use]
    pub fn signal(number: u8) -> i32 {
        libc::SIGRTMIN() + i32::from(number % 30)
    }

    /// Blocks a signal for the calling thread, which is sent it at `first_ns` and then every
    /// `period_ns`.
    ///
    /// # Errors
    /// What the kernel says, such as that there are too many timers (`RLIMIT_SIGPENDING`).
    pub fn start(signal: i32, first_ns: i64, period_ns: i64) -> io::Result<Self> {
        // SAFETY: an empty set is all zeros.
        let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: a live set, and a signal that there is.
        unsafe { libc::sigaddset(&raw mut set, signal) };
        // SAFETY: a live set, and no old one is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut()) };
        // SAFETY: a sigevent of zeros is valid.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer: libc::timer_t = core::ptr::null_mut();
        let clock = libc::CLOCK_MONOTONIC;
        // SAFETY: a valid event, and room for the number of the timer.
        if unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Self(timer);
        let at = tardy_hot::clock::to_timespec;
        let setting = libc::itimerspec { it_interval: at(period_ns), it_value: at(first_ns) };
        let (absolute, no_old) = (libc::TIMER_ABSTIME, core::ptr::null_mut());
        // SAFETY: a timer of this process, and a valid setting.
        match unsafe { libc::timer_settime(timer.0, absolute, &raw const setting, no_old) } {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own.
        unsafe { libc::timer_delete(self.0) };
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

/// Sets the timer slack of the calling thread, ns; 0 would mean the default of 50 us, and sets 1.
///
/// # Errors
/// What the kernel says.
pub fn set_slack(slack_ns: u64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(slack_ns.max(1)))?)
}

/// The timer slack of the calling thread, ns.
///
/// # Errors
/// What the kernel says.
pub fn slack() -> io::Result<u64> {
    Ok(rustix::thread::current_timer_slack()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_read_back_from_the_kernel() {
        set_slack(12_345).unwrap();
        assert_eq!(slack().unwrap(), 12_345);
        set_slack(0).unwrap();
        assert_eq!(slack().unwrap(), 1, "0 would mean the default of 50 us");
    }
}
