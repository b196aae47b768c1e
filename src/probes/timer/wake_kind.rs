//! The ways to wait for an expiry.

use std::io;

use tardy_hot::uring::TimeOutRing;

use crate::probes::ArmError;

/// How a thread waits for its next expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeKind {
    /// Absolute `clock_nanosleep`.
    Nanosleep,
    /// Relative `clock_nanosleep`.
    Relative,
    /// `read` of a periodic timerfd.
    Timerfd,
    /// Time-out of `ppoll`.
    Ppoll,
    /// Time-out of `pselect6`.
    Pselect,
    /// Time-out of `epoll_pwait2`.
    Epoll,
    /// Signal of a periodic POSIX timer.
    Signal,
    /// Absolute time-out of io_uring.
    Uring,
}

impl WakeKind {
    /// In the order of the help text.
    pub const ALL: [Self; 8] = [
        Self::Nanosleep,
        Self::Relative,
        Self::Timerfd,
        Self::Ppoll,
        Self::Pselect,
        Self::Epoll,
        Self::Signal,
        Self::Uring,
    ];

    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nanosleep => "nanosleep",
            Self::Relative => "relative",
            Self::Timerfd => "timerfd",
            Self::Ppoll => "ppoll",
            Self::Pselect => "pselect",
            Self::Epoll => "epoll",
            Self::Signal => "signal",
            Self::Uring => "io-uring",
        }
    }

    /// Tries what not every system allows.
    ///
    /// # Errors
    /// It is refused here; with the remedy.
    pub(super) fn check(self) -> Result<(), ArmError> {
        if self != Self::Uring {
            return Ok(());
        }
        TimeOutRing::new().map(drop).map_err(|errno| {
            let error = io::Error::from_raw_os_error(errno);
            let why = match errno {
                libc::EPERM => format!(
                    "{error}: sysctl kernel.io_uring_disabled, or a container's seccomp profile, \
                     refuses io_uring; allow it, or use another --wake"
                ),
                libc::ENOSYS => format!(
                    "{error}: io_uring needs Linux 5.4 or newer, built with CONFIG_IO_URING; use \
                     another --wake"
                ),
                _ => error.to_string(),
            };
            ArmError::Wait { wake: self.as_str(), why }
        })
    }

    /// Whether expiries lie on a grid, so that periods can be missed.
    #[must_use]
    pub const fn has_schedule(self) -> bool {
        !matches!(self, Self::Relative)
    }

    /// Whether each sleep is for a time that the thread has computed from the clock.
    pub(super) const fn is_for_a_time(self) -> bool {
        matches!(self, Self::Relative | Self::Ppoll | Self::Pselect | Self::Epoll)
    }

    /// Whether its timer expires in a softirq on real-time kernels, whoever sleeps by it.
    pub(super) const fn is_soft_on_rt(self) -> bool {
        matches!(self, Self::Timerfd | Self::Signal | Self::Uring)
    }
}
