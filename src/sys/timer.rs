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
