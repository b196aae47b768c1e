//! What a far process is told, and what it tells: one JSON object a line on its standard input and
//! output. Both sides are the same executable, so the lines have no version; they are never stored.

use std::os::fd::{OwnedFd, RawFd};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tardy_hot::wakeup::Ended;

use super::Work;
use crate::{
    probes::{
        Report, Schedule,
        pingpong::Pong,
        receive::{Sender, SenderOrder},
        stream::{EndPlan, FarStream},
    },
    setup::threads::{Found, Terms},
    transports::pair::{End, EndOrder},
};

/// The hidden subcommand of tardy that is a far end; its argument is an order as JSON.
pub const SUBCOMMAND: &str = "__far";

/// What a far process shall be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// `far`, `far2`, ...: what it is called in `run.json`, and its series in reports.
    pub name: String,
    /// Its work.
    pub job: Job,
    /// What the thread that works shall run as.
    pub terms: Terms,
}

/// The kinds of work that a far process can do. One variant a kind, one arm in `Job::work`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Answers each message of a ping-pong.
    Pong(EndOrder),
    /// The same, and notes when it had each; the last descriptor is where.
    TracedPong(EndOrder),
    /// Sends packets on a schedule.
    Send(SenderOrder),
    /// Receives the packets of a stream, and sends its own.
    Stream(EndPlan),
}

impl Job {
    /// The work itself, with the descriptors that came with the order.
    pub(super) fn work(self, descriptors: Vec<OwnedFd>) -> Box<dyn Work> {
        match self {
            Self::Pong(order) => Box::new(Pong::new(End::from_order(order, descriptors))),
            Self::TracedPong(order) => {
                let mut own = descriptors;
                let note = own.pop();
                Box::new(Pong::traced(End::from_order(order, own), note))
            }
            Self::Send(order) => Box::new(Sender::new(order)),
            Self::Stream(plan) => Box::new(FarStream::new(plan, descriptors)),
        }
    }
}

/// An order as it is passed on, with the numbers of the descriptors that the process inherits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Passed {
    pub order: Order,
    pub descriptors: Vec<RawFd>,
    /// Where what it records is written to.
    pub outlet: RawFd,
}

/// One line to the far process. The end of its input ends it too.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// Begin.
    Go(Schedule),
    /// End in good order.
    Stop,
}

/// One line from the far process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// It is ready to be told to go.
    Armed(Ready),
    /// It cannot; nothing follows.
    Failed(String),
    /// Its work is over; nothing follows.
    Ended(Report, Value),
}

/// What a far end is when it is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ready {
    pub found: Found,
    pub facts: Value,
}

/// [`Ended`] for JSON: the measuring crate knows nothing of it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Ended")]
pub(in crate::probes) enum EndedInJson {
    Done,
    Stopped,
    Failed(i32),
}
