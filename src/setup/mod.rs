//! Makes the machine fit for a measurement, verifies by reading back, and lets go at the end.
//!
//! What was asked for explicitly and cannot be had is an error that names the remedy; what tardy
//! would like by default and cannot have is a caveat of the run.

pub mod arrange;
pub mod facts;
pub mod governor;
pub mod journal;
pub mod memory;
pub mod power;
pub mod shield;
pub mod siblings;
pub mod threads;

use thiserror::Error;

use journal::JournalError;

/// A wish, and whether the user said it (then it must be had) or tardy chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish<T> {
    /// What is wanted.
    pub value: T,
    /// Whether the user asked for it.
    pub explicit: bool,
}

impl<T> Wish<T> {
    /// What the user said, or else the default.
    pub fn new(said: Option<T>, default: T) -> Self {
        let explicit = said.is_some();
        Self { value: said.unwrap_or(default), explicit }
    }
}

/// What was asked for explicitly and cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    /// Policy and priority.
    #[error(
        "{flags} cannot be had: {why}. Run as root, give the program CAP_SYS_NICE \
         (setcap cap_sys_nice,cap_ipc_lock+ep $(which tardy)), or add `@group - rtprio 95` to \
         /etc/security/limits.conf and log in again"
    )]
    Policy {
        /// The flags that asked.
        flags: String,
        /// What the kernel said.
        why: String,
    },
    /// The shield.
    #[error(
        "the shield cannot be had: {why}. It takes root, and the controller cpuset: in cgroup v2 \
         (kernel 6.1 and later), or mounted as cgroup v1"
    )]
    Shield {
        /// What is in the way.
        why: String,
    },
    /// A wish with one flag.
    #[error("{flag} cannot be had: {why}. {remedy}")]
    Wish {
        /// The flag, as typed.
        flag: String,
        /// What is in the way.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Nothing may be changed.
    #[error(transparent)]
    Journal(JournalError),
}
