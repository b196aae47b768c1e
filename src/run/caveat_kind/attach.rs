//! Doubts about external threads: which were not measured, and what ended.

use serde::Serialize;

use crate::{
    run::caveat::{COMMAND_FAILED, Effect},
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
        /// How many of which nothing is known.
        threads: u64,
        /// How many for a part of the time, until others woke up more often.
        gave_way: u64,
        /// How many can be at one time.
        most: u64,
    },
    /// Threads were awake all the time.
    NeverSlept {
        /// Their series, `NAME/TID`.
        threads: Vec<String>,
    },
    /// Deadlines were given to threads that there were not.
    DeadlineOfNoThread {
        /// Their names.
        names: Vec<String>,
        /// The names of those that there were.
        known: Vec<String>,
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
    /// Of periods it is not known whether they were missed.
    PeriodsUnseen {
        /// How many.
        unseen: u64,
        /// Of so many.
        periods: u64,
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
                COMMAND_FAILED,
                Informs,
                format!("The command did not end with exit code 0: {ended}."),
                "Look at what it printed; tardy's own exit code is about the measurement.",
            ),
            Self::ThreadsWithoutRoom { threads, gave_way, most } => (
                "attach_threads_without_room",
                Weakens,
                without_room(*threads, *gave_way, *most),
                "Name fewer threads: --comm for those of one name, --tid for a single one.",
            ),
            Self::NeverSlept { threads } => (
                "attach_never_slept",
                Weakens,
                never_slept(threads),
                "If they compute all the time, name the others alone (--tid, --comm); if they have \
                 a period, they were behind it all the time.",
            ),
            Self::DeadlineOfNoThread { names, known } => unjudged(names, known),
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
                    "What threads did was not seen {}, beside {} wake-ups that were: a wake-up, or \
                     that a thread had the CPU or left it.",
                    crate::units::times(*unseen),
                    count(*wakeups)
                ),
                "The kernel leaves a program out that would interrupt itself, and one virtual \
                 machine leaves its tracepoints out on a CPU that comes out of idle. Please report \
                 others with the version of the kernel.",
            ),
            Self::PeriodsUnseen { unseen, periods } => (
                "attach_periods_unseen",
                Weakens,
                format!(
                    "{} of {} periods are unsure, neither met nor missed: an event of the thread \
                     was not seen, or it armed its timer for more than one period ahead.",
                    count(*unseen),
                    count(*periods)
                ),
                "Take the missed periods as the least that there were, and with the unsure ones as \
                 the most. Where events were not seen, the largest latency may be among these.",
            ),
        }
    }
}

/// The number of names that are listed.
const NAMED: usize = 4;

fn unjudged(names: &[String], known: &[String]) -> (&'static str, Effect, String, &'static str) {
    let text = format!(
        "No thread called {} woke up: its deadline judged nothing. Threads that did are {}.",
        listed(names),
        if known.is_empty() { "none".to_owned() } else { listed(known) }
    );
    let remedy =
        "Name the threads as `tardy show` lists them; the kernel keeps 15 bytes of a name.";
    ("attach_deadline_of_no_thread", Effect::Invalidates, text, remedy)
}

/// The first of them, and how many more there are.
fn listed(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn never_slept(threads: &[String]) -> String {
    let named = listed(threads);
    let there = if threads.len() == 1 { "it was" } else { "they were" };
    format!(
        "{} had or wanted a CPU in all of the measured time that {there} there, or in more than \
         the last half of it, and did not sleep ({named}): without a wake-up they have no latency.",
        many(threads.len() as u64, "thread")
    )
}

fn without_room(threads: u64, gave_way: u64, most: u64) -> String {
    let most = format!("At most {} threads are measured at a time.", count(most));
    let nothing = match threads {
        0 => String::new(),
        _ => format!(
            " There was no room for {}, of which nothing is known.",
            many(threads, "more thread")
        ),
    };
    let (were, them) = if gave_way == 1 { ("was", "it") } else { ("were", "them") };
    let partly = match gave_way {
        0 => String::new(),
        _ => format!(
            " {} {were} measured for a part of the time, until others woke up more often: what \
             became of {them} then is not known.",
            many(gave_way, "thread")
        ),
    };
    format!("{most}{nothing}{partly}")
}
