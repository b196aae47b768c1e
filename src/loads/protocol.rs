//! The supervisor's reports to tardy: one JSON object per line on its standard output. Both are
//! the same executable, so the lines have no version; they are never stored.

use serde::{Deserialize, Serialize};

/// The line on the control pipe that asks for an orderly end. The pipe's end asks for the same.
pub const STOP: &[u8] = b"stop\n";

/// The hidden subcommand of tardy that is the supervisor; its argument is a spec as JSON.
pub const SUBCOMMAND: &str = "__load";

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadReport {
    /// Every task has begun to work.
    Ready(Progress),
    /// Its progress.
    Progress(Progress),
    /// A worker ended before it was asked to: `worker 17: exit 1`. `ended` follows.
    Died(String),
    /// The load cannot start; nothing follows.
    Failed(String),
    /// No descendant is left; nothing follows.
    Ended(LoadTotals),
}

/// How many operations were done by when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// `CLOCK_MONOTONIC`, ns.
    pub monotonic_ns: i64,
    /// Operations since the load began.
    pub operations: u64,
}

/// What a load did in its whole life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTotals {
    /// When it began to kill its workers, and what they had done by then.
    pub last: Progress,
    /// Voluntary and involuntary context switches of all its tasks.
    pub context_switches: u64,
    /// CPU seconds of all its tasks, user and system.
    pub cpu_s: f64,
    /// From the common beginning of the work to its end, s; 0 where it never began.
    pub life_s: f64,
    /// Tasks that worked.
    pub tasks: u64,
    /// How many of the tasks that count operations had done none by the end.
    pub tasks_idle: u64,
    /// Files of the load that could not be removed, and why.
    pub files_left: Option<String>,
}
