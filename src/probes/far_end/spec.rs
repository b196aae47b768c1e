//! The messages to and from a far process: one JSON object per line on its standard input and
//! output. Both sides are the same executable, so the lines have no version; they are never stored.

use std::os::fd::{OwnedFd, RawFd};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FarEndWork;
use crate::{
    probes::{ArmError, Schedule, ThreadReport},
    setup::threads::{Found, ThreadConfig},
};

/// The hidden subcommand of tardy that is a remote endpoint; its argument is an order as JSON.
pub const SUBCOMMAND: &str = "__far";

/// What a far process is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FarEndSpec {
    /// `far`, `far2`, ...: what it is called in `run.json`, and its series in reports.
    pub name: String,
    /// The name of its [`FarEndJob`].
    pub job: String,
    /// What the job is about.
    pub arguments: Value,
    /// What the working thread is to run as.
    pub terms: ThreadConfig,
    /// Whether the memory of the process is locked.
    pub locks_memory: bool,
}

impl FarEndSpec {
    /// To do the job called `job` with these arguments, on these terms, under the name `name`.
    ///
    /// Its memory is locked.
    ///
    /// # Errors
    /// The arguments cannot be written as JSON.
    pub fn new(
        name: String,
        job: &str,
        arguments: &impl Serialize,
        terms: ThreadConfig,
    ) -> Result<Self, ArmError> {
        match serde_json::to_value(arguments) {
            Ok(arguments) => {
                Ok(Self { name, job: job.into(), arguments, terms, locks_memory: true })
            }
            Err(error) => Err(ArmError::Far { name, why: error.to_string() }),
        }
    }

    /// The same without locked memory: page faults and its own processes are what it measures.
    #[must_use]
    pub fn unlocked(self) -> Self {
        Self { locks_memory: false, ..self }
    }
}

/// A kind of work that a far process can do.
#[derive(Debug, Clone, Copy)]
pub struct FarEndJob {
    /// By which orders name it.
    pub name: &'static str,
    /// Makes the work of the arguments and the descriptors that come with an order.
    pub work: fn(Value, Vec<OwnedFd>) -> serde_json::Result<Box<dyn FarEndWork>>,
}

/// An order as it is passed on, with the numbers of the descriptors that the process inherits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InheritedFds {
    pub order: FarEndSpec,
    pub descriptors: Vec<RawFd>,
    /// Where what it records is written to.
    pub outlet: RawFd,
}

/// One line to the far process. The end of its input ends it too.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FarEndCommand {
    /// Begin.
    Go(Schedule),
    /// End in good order.
    Stop,
}

/// One line from the far process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FarEndReply {
    /// It is ready to begin.
    Armed(Ready),
    /// It cannot; nothing follows.
    Failed(String),
    /// Its work is over; nothing follows.
    Ended(Box<ThreadReport>, Value),
}

/// What a remote endpoint is when it is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ready {
    pub found: Found,
    pub facts: Value,
}
