//! Caveats about the measured threads: what they ran as, and what disturbed them.

use serde::{Deserialize, Serialize};

use super::values::{OsError, SeriesCount, list, moment, times};
use crate::{run::caveat::Effect, units::cpus};

/// A caveat about measured threads. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ThreadCaveat {
    /// The default policy was not available.
    NoRealTime {
        /// What was wanted, `fifo`.
        policy: String,
        /// The priority that was wanted, 1 to 99.
        priority: u32,
        /// What the kernel said.
        error: OsError,
    },
    /// A measured thread did not run as it should have.
    NotAsAsked {
        /// Which, and what was found instead.
        threads: Vec<ThreadDeviation>,
    },
    /// A measured thread took page faults.
    PageFaults {
        /// Those that did.
        threads: Vec<ThreadFaults>,
    },
    /// A loop ended with an error.
    WaitFailed {
        /// Those that did.
        threads: Vec<ThreadError>,
    },
    /// A measured thread left its CPU for another.
    Migrated {
        /// How often.
        threads: Vec<SeriesCount>,
    },
    /// A measured real-time thread was made to leave its CPU.
    Preempted {
        /// How often.
        threads: Vec<SeriesCount>,
    },
}

/// A measured thread that did not run as it should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadDeviation {
    /// Its series.
    pub series: String,
    /// How it ran.
    #[serde(flatten)]
    pub deviation: Deviation,
}

/// In what a thread did not run as it should have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Deviation {
    /// It died.
    Died,
    /// The kernel said otherwise when it was asked.
    Differs {
        /// What it ran as.
        found: ThreadTerms,
        /// What it should have run as.
        asked: ThreadTerms,
        /// When this was found, ns from the start of the run; absent at its ends.
        at_ns: Option<i64>,
    },
}

/// What a thread runs as, or should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTerms {
    /// `fifo`, `other`.
    pub policy: String,
    /// Real-time priority, 0 for `other`.
    pub priority: u32,
    /// Nice value; `None` if none is asked for.
    pub nice: Option<i32>,
    /// Its CPUs, `0-3,7`.
    pub cpus: String,
    /// Its timer slack, ns; `None` if it does not act.
    pub timer_slack_ns: Option<u64>,
}

/// The page faults of a measured thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadFaults {
    /// Its series.
    pub series: String,
    /// Served without a disk.
    pub minor: u64,
    /// Served from a disk.
    pub major: u64,
}

/// The error with which a measured thread ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadError {
    /// Its series.
    pub series: String,
    /// What its wait said.
    pub error: OsError,
}

impl Deviation {
    /// The difference between what was found and what was asked for, if there is one; `at_ns` is
    /// when it was found.
    #[must_use]
    pub fn between(found: ThreadTerms, asked: ThreadTerms, at_ns: Option<i64>) -> Option<Self> {
        let differs = !found.differences(&asked).is_empty();
        differs.then_some(Self::Differs { found, asked, at_ns })
    }

    fn text(&self) -> String {
        match self {
            Self::Died => "the thread died".into(),
            Self::Differs { found, asked, at_ns } => {
                let at = at_ns.map(|at_ns| format!(" at {}", moment(at_ns))).unwrap_or_default();
                found.differences(asked).join(", ") + &at
            }
        }
    }
}

impl ThreadTerms {
    /// "fifo 7 instead of fifo 90", "CPUs 0-1 instead of 0"
    fn differences(&self, asked: &Self) -> Vec<String> {
        let nice =
            |terms: &Self| terms.nice.filter(|_| asked.nice.is_some() && terms.priority == 0);
        let how = |terms: &Self| (terms.policy.clone(), terms.priority, nice(terms));
        let words = |terms: &Self| match how(terms) {
            (policy, 0, None | Some(0)) => policy,
            (policy, 0, Some(nice)) => format!("{policy} nice {nice}"),
            (policy, priority, _) => format!("{policy} {priority}"),
        };
        let mut differences = Vec::new();
        if how(self) != how(asked) {
            differences.push(format!("{} instead of {}", words(self), words(asked)));
        }
        if self.cpus != asked.cpus {
            differences.push(format!("{} instead of {}", cpus(&self.cpus), asked.cpus));
        }
        if let (Some(found), Some(asked)) = (self.timer_slack_ns, asked.timer_slack_ns)
            && found != asked
        {
            differences.push(format!("timer slack {found} ns instead of {asked} ns"));
        }
        differences
    }
}

impl ThreadCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::NoRealTime { policy, priority, error } => (
                "no_real_time",
                Weakens,
                format!(
                    "The measured threads ran as ordinary tasks, not {policy} {priority}: {error}."
                ),
                "If the text names a control group, `tardy check` shows how to give it time. Else \
                 run as root, or give CAP_SYS_NICE, or a line `@group - rtprio 95` in \
                 /etc/security/limits.conf; or use --policy other if you want ordinary tasks.",
            ),
            Self::NotAsAsked { threads } => (
                "thread_not_as_asked",
                Invalidates,
                format!(
                    "Read back from the kernel: {}.",
                    list(threads, "; ", |ThreadDeviation { series, deviation }| {
                        format!("{series}: {}", deviation.text())
                    })
                ),
                "Find the program that changes tardy's threads (a cgroup, a daemon that adjusts \
                 priorities), and repeat the run.",
            ),
            Self::PageFaults { threads } => (
                "page_faults",
                Weakens,
                format!(
                    "Measured threads took page faults: {}.",
                    list(threads, "; ", |ThreadFaults { series, minor, major }| {
                        format!("{series}: {minor} minor, {major} major")
                    })
                ),
                "Lock memory (see memory_not_locked), and leave more of it free.",
            ),
            Self::WaitFailed { threads } => (
                "wait_failed",
                Invalidates,
                format!(
                    "A measuring loop ended with an error: {}.",
                    list(threads, "; ", |ThreadError { series, error }| {
                        format!("{series}: {error}")
                    })
                ),
                "Try another --wake, and report it with the kernel's version.",
            ),
            Self::Migrated { threads } => (
                "thread_migrated",
                Invalidates,
                format!(
                    "Measured threads were moved to other CPUs while they measured: {}.",
                    times(threads)
                ),
                "Find the program that changes the affinity of tardy's threads (taskset, a cpuset, \
                 a balancing daemon), and repeat the run.",
            ),
            Self::Preempted { threads } => (
                "thread_preempted",
                Informs,
                format!("Measured real-time threads were preempted: {}.", times(threads)),
                "Something of higher priority runs there: look at `ps -eLo rtprio,psr,comm | sort \
                 -n`, or raise --priority. A few a minute are the kernel's own stopper threads, or \
                 tardy's watchdog where every CPU is measured.",
            ),
        }
    }
}
