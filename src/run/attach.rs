//! What `run.json` says of threads of others that were looked at: the part that is not a latency.

use serde::{Deserialize, Serialize};

use crate::units::times;

/// What became of a run of `attach`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachRecord {
    /// Threads that were measured, in all.
    pub threads: u64,
    /// Of them those without a separate series, as they lived for less than a second, or others
    /// woke up more often: their wake-ups are in the series of their name.
    pub pooled_only: u64,
    /// Threads for which there was no room; nothing is known of them.
    pub no_room: u64,
    /// For how many threads there was room at one time; older versions always had room for 511.
    #[serde(default = "room_of_old")]
    pub room: u64,
    /// Threads that were measured for a part of the time, as others woke up more often and had the
    /// room from then on.
    #[serde(default)]
    pub gave_way: u64,
    /// Threads that were awake in all of the measured time, so that they have no row; or in more
    /// than the last half of it, in which they have no latency. Of one that has ended: of the time
    /// until then, which was 1 s or more, and a tenth of the measured time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_slept: Vec<String>,
    /// When the last of the threads had ended, ns from the start of the run; absent if the run
    /// ended first.
    pub ended_ns: Option<i64>,
    /// The command that was started; absent if none was.
    pub command: Option<AttachedCommand>,
    /// The system calls in which event loops were seen to wait, if tardy can follow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_calls: Vec<AttachedWaitCall>,
    /// The threads of each name, and after them each thread that has a separate series.
    pub rows: Vec<AttachedRow>,
}

/// A system call in which event loops wait. A loop returns to it without sleeping if something is
/// ready; tardy sees that by a program at the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedWaitCall {
    /// Its name: `epoll_wait`.
    pub call: String,
    /// Why the program could not be loaded; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn room_of_old() -> u64 {
    511
}

/// A command that tardy started to look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedCommand {
    /// Its words.
    pub argv: Vec<String>,
    /// How it ended: `exit 3`, `signal 9`; of one that could not be started, why.
    pub ended: Option<String>,
    /// Its exit code; absent if a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether tardy ended it, as the run was over.
    pub ended_by_tardy: bool,
}

impl AttachedCommand {
    /// How it failed: `was killed by signal 11 (SIGSEGV)`, `ended with exit code 3`, `could not be
    /// started: ...`. Nothing if it ended with 0, if tardy ended it, and while it runs.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let ended = self.ended.as_deref().filter(|_| !self.ended_by_tardy)?;
        if let Some(code) = self.exit_code {
            return (code != 0).then(|| format!("ended with exit code {code}"));
        }
        let Some(number) = ended.strip_prefix("signal ") else {
            let why = ended.strip_prefix("not started: ").unwrap_or(ended);
            return (ended != "exit 0").then(|| format!("could not be started: {why}"));
        };
        let known = number.parse().ok().and_then(signal_name);
        let name = known.map_or_else(String::new, |name| format!(" ({name})"));
        Some(format!("was killed by signal {number}{name}"))
    }
}

/// Signals that end a program, by the numbers that x86 and arm64 have in common (signal(7)).
const SIGNALS: [(u32, &str); 21] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (16, "SIGSTKFLT"),
    (24, "SIGXCPU"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
];

/// The name of a signal that ends a program.
#[must_use]
pub fn signal_name(signal: u32) -> Option<&'static str> {
    SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// What the latency of an attached thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttachedLatency {
    /// From the hard expiry of its timer to the CPU.
    Lateness,
    /// From each wake-up to the CPU.
    Dispatch,
}

/// What begins a cycle of an attached thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CycleBegin {
    /// The hard expiry of the thread's timer. The cycle ends with the last sleep before the next.
    #[default]
    Timer,
    /// A wake-up by others. It ends with the next wait; what was done before the wake-up is not in
    /// it.
    WakeUp,
}

impl CycleBegin {
    /// Whether it is the thread's own timer.
    #[must_use]
    pub const fn is_timer(&self) -> bool {
        matches!(self, Self::Timer)
    }
}

impl AttachedRow {
    /// The times of its latency, where the record has them.
    #[must_use]
    pub const fn latencies(&self) -> Option<&AttachedTimes> {
        match self.latency {
            Some(AttachedLatency::Lateness) => self.lateness.as_ref(),
            _ => self.dispatch.as_ref(),
        }
    }

    /// Expiries of the thread's timers that woke it, and are not part of a cycle.
    #[must_use]
    pub const fn expiries(&self) -> u64 {
        self.by_own_timer.saturating_sub(self.asides)
    }

    /// What was not seen of it, where its largest latency may have been: `what it did was not 3
    /// times`.
    #[must_use]
    pub fn unseen(&self) -> Option<String> {
        let unmatched = self.unmatched;
        (unmatched > 0).then(|| format!("what it did was not {}", times(unmatched)))
    }

    /// Whether its own timers made neither most of the wake-ups, three of four, nor few, one of
    /// four, as its latency has it: it could have been the other one.
    #[must_use]
    pub const fn is_mixed(&self) -> bool {
        let four_times = self.by_own_timer.saturating_mul(4);
        match self.latency {
            Some(AttachedLatency::Lateness) => four_times < self.wakeups.saturating_mul(3),
            Some(AttachedLatency::Dispatch) => four_times > self.wakeups,
            None => false,
        }
    }
}

impl AttachedLatency {
    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lateness => "lateness",
            Self::Dispatch => "dispatch",
        }
    }
}

/// One thread, or all of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedRow {
    /// The series: `name` or `name/1234`; in names `%2F`, `%20` and the like stand for slashes,
    /// spaces, commas and what cannot be printed.
    pub series: String,
    /// The kernel's number of the thread; absent for all of one name.
    pub tid: Option<u32>,
    /// That of its process; absent likewise.
    pub pid: Option<u32>,
    /// How many threads there were of this name; absent for one thread.
    pub threads: Option<u64>,
    /// How the thread was scheduled in the measured time: `fifo 50`, `other`; where it was seen to
    /// change one after the other, `other, then fifo 50`; of all of one name where they have the
    /// same. Absent if that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What the series has; absent while that is not known, as nothing woke the thread.
    pub latency: Option<AttachedLatency>,
    /// Wake-ups after which it was seen to have the CPU.
    pub wakeups: u64,
    /// Of them by timers.
    pub by_timer: u64,
    /// By interrupts and softirqs.
    pub by_interrupt: u64,
    /// By calls from other CPUs.
    pub by_ipi: u64,
    /// By other tasks.
    pub by_task: u64,
    /// By the thread's timers, whose expiry is known.
    pub by_own_timer: u64,
    /// Of those: from sleeps for a time within the cycle of its period. They are part of it, and in
    /// no lateness.
    #[serde(default)]
    pub asides: u64,
    /// Of the others: they had the CPU before the hard expiry, within the slack.
    pub in_slack: u64,
    /// Mean of hard less soft expiry of its timers, ns; absent without any.
    pub slack_ns: Option<i64>,
    /// From one programmed expiry to the next, ns; absent if they follow no period.
    pub period_ns: Option<i64>,
    /// Periods that are known to have had no expiry that woke the thread; absent if it has no
    /// period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Unsure periods, neither met nor missed: something that the thread did was not seen, or it
    /// was late and armed its timer for more than one period ahead. Absent if it has no period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure_periods: Option<u64>,
    /// It had another period before: what it missed is counted by the period of the time, and
    /// `period_ns` is the last one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub period_changed: bool,
    /// How often it lost its CPU while it wanted it.
    pub preempted: u64,
    /// How often something that it did was not seen: a wake-up, or that it had the CPU or left it.
    pub unmatched: u64,
    /// From the hard expiry to the CPU, of the wake-ups by the thread's timers except those within
    /// a cycle; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<AttachedTimes>,
    /// From each wake-up to the CPU; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<AttachedTimes>,
    /// On a CPU, of each wake-up.
    pub run: AttachedTimes,
    /// Ready but not running, of each wake-up in which it lost its CPU.
    pub ready: AttachedTimes,
    /// Asleep, up to each wake-up.
    pub blocked: AttachedTimes,
    /// How long its cycles took; absent if that was not measured, or if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<AttachedTimes>,
    /// What begins its cycles.
    #[serde(default, skip_serializing_if = "CycleBegin::is_timer")]
    pub cycle_begin: CycleBegin,
    /// Of a thread whose timer begins its cycles, and that waits in one place for its timer and for
    /// others: its work for others, from each wake-up to its return to that wait. Absent without
    /// any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_work: Option<AttachedTimes>,
    /// Of the expiries of its timer that came during such work: for how long that kept them
    /// waiting. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_waiting: Option<AttachedTimes>,
    /// The cycles that took longer than the deadline; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<AttachedOver>,
    /// What the thread is given of `SCHED_DEADLINE`; absent for threads of another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<AttachedBudget>,
}

/// Cycles of a thread, or of all of one name, that took longer than the deadline: their parts,
/// summed, in ns. They sum to the responses of these cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedOver {
    /// The deadline, ns: as asked for, or that of `SCHED_DEADLINE`.
    pub deadline_ns: u64,
    /// How many cycles.
    pub cycles: u64,
    /// From the hard expiry to the CPU.
    pub late_ns: u64,
    /// On a CPU; interrupts that came meanwhile are in it.
    pub run_ns: u64,
    /// Ready but not running: preempted, or woken again and not switched in yet.
    pub ready_ns: u64,
    /// Asleep in between.
    pub wait_ns: u64,
    /// What was not seen.
    pub unseen_ns: u64,
    /// What it slept for; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<AttachedWaits>,
    /// Page faults in it; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<AttachedFaults>,
}

/// Page faults in cycles that took longer than the deadline, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedFaults {
    /// Cycles with a page fault.
    pub cycles: u64,
    /// Page faults for which nothing was read.
    pub minor: u64,
    /// Page faults for which the page was read from a device.
    pub major: u64,
}

/// What threads slept for within their cycles, summed, in ns: together `wait_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedWaits {
    /// A futex: any mutex, condition variable or semaphore of the C library; absent if the
    /// kernel or the processor does not tell, and it is in `other_ns`.
    pub futex_ns: Option<u64>,
    /// A mutex with priority inheritance; absent likewise.
    pub pi_mutex_ns: Option<u64>,
    /// A device, or a page.
    pub io_ns: u64,
    /// Anything else: the kernel does not say what.
    pub other_ns: u64,
}

/// What a thread is given of `SCHED_DEADLINE` (sched(7)), ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedBudget {
    /// Time on a CPU in each period.
    pub runtime_ns: u64,
    /// From the start of a period until that time has been given.
    pub deadline_ns: u64,
    /// From one start to the next.
    pub period_ns: u64,
}

/// A time that was measured again and again; ns, absent without a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachedTimes {
    /// How often.
    pub count: u64,
    /// Mean.
    pub mean: Option<i64>,
    /// Median.
    pub p50: Option<i64>,
    /// 99th percentile.
    pub p99: Option<i64>,
    /// Largest.
    pub max: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_failed_if_it_ended_by_itself_and_not_with_0() {
        let failure = |ended: Option<&str>, exit_code, ended_by_tardy| {
            let ended = ended.map(str::to_owned);
            AttachedCommand { argv: Vec::new(), ended, exit_code, ended_by_tardy }.failure()
        };
        assert_eq!(failure(Some("exit 0"), Some(0), false), None);
        assert_eq!(failure(None, None, false), None, "it runs");
        assert_eq!(failure(Some("signal 15"), None, true), None);
        for (ended, code, says) in [
            ("exit 3", Some(3), "ended with exit code 3"),
            ("signal 11", None, "was killed by signal 11 (SIGSEGV)"),
            ("signal 40", None, "was killed by signal 40"),
            ("not started: No such file", None, "could not be started: No such file"),
        ] {
            assert_eq!(failure(Some(ended), code, false).as_deref(), Some(says));
        }
    }
}
