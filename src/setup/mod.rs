//! Sets the machine up for a measurement, verifies by reading back, and restores it at the end.
//!
//! What was requested explicitly and is not available is an error that names the remedy; a default
//! that is not available is a caveat of the run.

pub mod arrange;
pub mod facts;
pub mod governor;
pub mod journal;
pub mod machine;
pub mod memory;
pub mod power;
pub mod settings;
pub mod shield;
pub mod siblings;
pub mod threads;

use thiserror::Error;

use journal::JournalError;

/// A wish, and whether the user stated it (then it must be fulfilled) or it is a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<T> {
    /// What is wanted.
    pub value: T,
    /// Whether the user asked for it.
    pub explicit: bool,
}

impl<T> Choice<T> {
    /// What the user said, or else the default.
    pub fn new(said: Option<T>, default: T) -> Self {
        let explicit = said.is_some();
        Self { value: said.unwrap_or(default), explicit }
    }
}

/// What was wished, and what is available of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requested<T> {
    /// As requested.
    pub asked: Choice<T>,
    /// As available.
    pub granted: T,
}

/// What was requested explicitly and is not available.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    /// Policy and priority.
    #[error("{flags} is not available: {why}. {remedy}")]
    Policy {
        /// The flags that asked.
        flags: String,
        /// What the kernel said.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The shield.
    #[error(
        "the shield is not available: {why}. It requires root, and the controller cpuset: in \
         cgroup v2 (kernel 6.1 and later), or mounted as cgroup v1"
    )]
    Shield {
        /// What is in the way.
        why: String,
    },
    /// A wish with one flag.
    #[error("{flag} is not available: {why}. {remedy}")]
    Choice {
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
