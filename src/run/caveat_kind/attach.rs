//! Doubts about threads of others: who was not measured, and what ended.

use serde::Serialize;

use crate::{
    run::caveat::Effect,
    units::{Nanos, count, many},
};

/// A caveat of a run of `attach`. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AttachCaveat {
    /// What was looked at ended before the run.
    TargetEnded {
        /// `process 12`, `thread 12`.
        what: String,
        /// When, ns from the start of the run.
        at_ns: i64,
    },
    /// The command did not end well.
    CommandFailed {
        /// `exit 3`, `signal 9`, `not started: ...`.
        ended: String,
    },
    /// Threads were not measured.
    ThreadsWithoutRoom {
        /// How many.
        threads: u64,
        /// How many can be at one time.
        most: u64,
    },
    /// No thread woke up.
    NothingWoke,
    /// Wake-ups were not seen.
    WakeupsUnseen {
        /// How many.
        unseen: u64,
        /// Beside so many that were.
        wakeups: u64,
    },
}

impl AttachCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::TargetEnded { what, at_ns } => (
                "attach_target_ended",
                Informs,
                format!(
                    "The {what} ended {} after the start, and the run with it; what was measured \
                     until then is complete.",
                    Nanos(*at_ns)
                ),
                "Use --comm to look at every thread of a name, also at those that come later.",
            ),
            Self::CommandFailed { ended } => (
                "attach_command_failed",
                Informs,
                format!("The command did not end with exit code 0: {ended}."),
                "Look at what it printed; tardy's own exit code is about the measurement.",
            ),
            Self::ThreadsWithoutRoom { threads, most } => (
                "attach_threads_without_room",
                Weakens,
                format!(
                    "There was no room for {}, as at most {} are measured at a time: nothing is \
                     known of them.",
                    many(*threads, "thread"),
                    count(*most)
                ),
                "Name fewer threads: --comm for those of one name, --tid for a single one.",
            ),
            Self::NothingWoke => (
                "attach_nothing_woke",
                Invalidates,
                "No thread that was looked at woke up in the measured time.".into(),
                "Measure for longer; with -- COMMAND leave --warmup out; with --comm and --cgroup \
                 see whether there are such threads: `ps -eLo pid,tid,comm`.",
            ),
            Self::WakeupsUnseen { unseen, wakeups } => (
                "attach_wakeups_unseen",
                Weakens,
                format!(
                    "Threads were seen to get the CPU {} without a wake-up before that: it is \
                     missing beside {} that were seen.",
                    crate::units::times(*unseen),
                    count(*wakeups)
                ),
                "The kernel leaves a program out that would interrupt itself; nothing else is \
                 known to hide a wake-up. Please report it with the version of the kernel.",
            ),
        }
    }
}
