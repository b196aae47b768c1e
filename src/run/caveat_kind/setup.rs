//! Caveats about setting up the machine.

use serde::Serialize;

use super::values::list;
use crate::{
    run::{OsError, caveat::Effect},
    units::Nanos,
};

/// The code of a run after which something could not be restored.
pub const NOT_PUT_BACK: &str = "not_put_back";
/// The code of a run before which a killed tardy had left what nobody could restore.
pub const LEFT_CHANGED: &str = "left_changed";

/// A caveat about what tardy set up, could not set up, or could not restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SetupCaveat {
    /// A killed tardy left settings changed.
    LeftChanged {
        /// Which, and why they were not restored.
        failed: Vec<String>,
    },
    /// Another tardy holds settings changed.
    HeldByOther {
        /// The number of its process, in its own PID namespace.
        pid: i32,
        /// What was typed.
        command: String,
    },
    /// Whether a tardy has changed settings could not be looked at.
    JournalUnread {
        /// The journal, and why.
        why: String,
    },
    /// At the end something could not be restored.
    NotPutBack {
        /// What, and why.
        failed: Vec<String>,
    },
    /// A setting that was set for the run was another at its end.
    SettingChanged {
        /// As in `--set`.
        name: String,
        /// The file, or what of a task.
        place: String,
        /// What it was set to.
        was: String,
        /// What was found; `None` if it was gone.
        now: Option<String>,
    },
    /// Measured threads have the highest priority there is.
    NoHigherPriority {
        /// Why the kernel does not bound them either.
        #[serde(skip_serializing_if = "Option::is_none")]
        unbounded: Option<OsError>,
    },
    /// Measured threads kept every CPU for themselves.
    WatchdogEnded {
        /// How long no other thread of tardy got to run, s.
        silent_s: u32,
        /// They did not check the stop flag, and were made ordinary tasks.
        made_ordinary: bool,
    },
    /// Ordinary tasks that count, measured threads or carriers of messages, shared their CPUs with
    /// tardy's own.
    HelpersBeside {
        /// What each of these took.
        helpers: Vec<HelperTime>,
    },
    /// The same, and these took so much that what was measured is not what it is without them.
    HelpersBusy {
        /// What they took together, ns.
        cpu_ns: u64,
        /// Of all time of the measured CPUs, in whole percent.
        percent: u64,
        /// Whether cycles over a deadline were among what they looked at.
        has_deadline: bool,
    },
    /// Late samples were late because of tardy's own threads, to a part that counts.
    HelpersBlamed {
        /// Which.
        threads: Vec<String>,
        /// Of the time of all late samples that were explained, in whole percent.
        percent: u64,
    },
}

/// The remedy where tardy's own threads are in the way.
const LEAVE: &str = "Leave a CPU that is not measured (--cpus), or name those of tardy by \
                     --housekeeping; --trace off spares the work of tardy/recorder.";

/// What a helper thread of tardy took of the CPUs in the measured time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HelperTime {
    /// Its name, `tardy/drain`.
    pub thread: String,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// The longest uninterrupted part of it, ns.
    pub longest_ns: u64,
}

impl HelperTime {
    /// "tardy/drain 312 ms, at most 4.10 ms uninterrupted"
    fn text(&self) -> String {
        let time = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        let Self { thread, cpu_ns, longest_ns } = self;
        format!("{thread} {}, at most {} uninterrupted", time(*cpu_ns), time(*longest_ns))
    }
}

fn beside(helpers: &[HelperTime]) -> String {
    format!(
        "tardy's own threads ran on the measured CPUs: {}. Ordinary tasks there may have waited \
         for them.",
        list(helpers, "; ", HelperTime::text)
    )
}

fn watchdog_ended(silent_s: u32, made_ordinary: bool) -> String {
    format!(
        "The measured threads kept every CPU for themselves: for {silent_s} s no other thread of \
         tardy got to run; the watchdog ended the run{}.",
        if made_ordinary { " and made ordinary tasks of them" } else { "" }
    )
}

fn busy(cpu_ns: u64, percent: u64) -> String {
    format!(
        "tardy's own threads took {} of the measured CPUs ({percent}% of their time), ahead of \
         ordinary tasks. Some samples are late because of that.",
        Nanos(i64::try_from(cpu_ns).unwrap_or(i64::MAX))
    )
}

fn blamed(threads: &[String], percent: u64) -> String {
    format!(
        "tardy's own threads ({}) caused {percent}% of the analyzed late time. Without tardy the \
         tail would differ.",
        threads.join(", ")
    )
}

/// What became of a setting by the run's end.
fn changed(name: &str, place: &str, was: &str, now: Option<&str>) -> String {
    let found = match now {
        Some(now) => format!("{place} was {now:?} instead of {was:?}"),
        None => format!("{place}, which was {was:?}, was gone"),
    };
    format!("The setting {name} did not stay: at the run's end {found}.")
}

/// What is said of threads that nothing can interrupt.
fn nothing_above(unbounded: Option<&OsError>) -> String {
    match unbounded {
        None => "The measured threads have priority 99, and no thread can be above them: where \
                 they never sleep, the kernel interrupts them once a second, and ends the run if \
                 nothing else of tardy gets to run."
            .to_owned(),
        Some(error) => format!(
            "The measured threads have priority 99, and no thread can be above them; nor does the \
             kernel bound them: {error}. Where they never sleep, nothing ends the run."
        ),
    }
}

/// How tardy's own threads have less to do, without and with a deadline.
const LESS: &str = "Use --trace off, a higher --peak-over or fewer --peaks.";
const LESS_LATE: &str =
    "Use --trace off, a longer --deadline, a higher --peak-over or fewer --peaks.";

impl SetupCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::LeftChanged { failed } => (
                LEFT_CHANGED,
                Weakens,
                format!("A tardy that was killed left settings changed: {}.", failed.join("; ")),
                "Run `tardy restore` as root; docs/reference/setup.md explains how to do it by \
                 hand.",
            ),
            Self::HeldByOther { pid, command } => (
                "held_by_other",
                Informs,
                format!(
                    "Another tardy holds settings of this machine changed: process {pid} \
                     ({command})."
                ),
                "Wait until that process ends, to measure with the normal settings.",
            ),
            Self::JournalUnread { why } => (
                "journal_unread",
                Weakens,
                format!(
                    "Whether a tardy has changed settings of this machine is not known: {why}."
                ),
                "Run as root, or have root run `tardy restore`: it names the tardy that changed \
                 settings. A container needs /run/tardy of its host.",
            ),
            Self::NotPutBack { failed } => (
                NOT_PUT_BACK,
                Informs,
                format!("This could not be restored after the run: {}.", failed.join("; ")),
                "Run `tardy restore` as root; docs/reference/setup.md explains how to do it by \
                 hand.",
            ),
            Self::SettingChanged { name, place, was, now } => (
                "setting_changed",
                Invalidates,
                changed(name, place, was, now.as_deref()),
                "Find who else sets it: irqbalance, tuned, a power daemon; stop it while you \
                 measure.",
            ),
            Self::NoHigherPriority { unbounded } => (
                "nothing_above",
                Informs,
                nothing_above(unbounded.as_ref()),
                "Use --priority 98 or less, unless what is compared with needs 99.",
            ),
            Self::WatchdogEnded { silent_s, made_ordinary } => (
                "watchdog_ended",
                Weakens,
                watchdog_ended(*silent_s, *made_ordinary),
                "Use a longer --interval or fewer --threads, or leave a CPU that is not measured \
                 (--cpus).",
            ),
            Self::HelpersBeside { helpers } => ("helpers_beside", Informs, beside(helpers), LEAVE),
            Self::HelpersBusy { cpu_ns, percent, has_deadline } => (
                "helpers_busy",
                Weakens,
                busy(*cpu_ns, *percent),
                if *has_deadline { LESS_LATE } else { LESS },
            ),
            Self::HelpersBlamed { threads, percent } => {
                ("helpers_blamed", Weakens, blamed(threads, *percent), LEAVE)
            }
        }
    }
}
