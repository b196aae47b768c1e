//! `peaks.jsonl` and `blame.json`: why wake-ups were late.
//!
//! `peaks.jsonl` holds the worst wake-ups whole, one a line, in the order in which they were found:
//! during a run, a peak that is admitted is appended, and none is taken back, so that there
//! are more lines than peaks were asked for; readers keep the worst. `blame.json` holds what all
//! late wake-ups were blamed on, as sums; it is replaced after one second, every few seconds from
//! then on, and at the end.

use std::{cmp::Reverse, collections::HashMap};

use serde::{Deserialize, Serialize};

pub use super::part_names::{
    EARLIER_PACKETS, EARLIER_WORK, EVENTS_LOST, FAIR_SERVER, HELD_BY, INVERSION, KERNEL_ENTRY,
    MESSAGE_PATH, NOT_ANALYSED, OUT_OF_BUDGET, PACING, REAL_TIME_THROTTLING, WAKE_UP_PATH,
};
use super::{stolen::StolenRecord, trace::is_zero};

/// What made a wake-up late. The order is that of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The CPU kept interrupts off, so that the timer's came late.
    IrqsOff,
    /// A hard interrupt's handler.
    Hardirq,
    /// A softirq.
    Softirq,
    /// A task that went before the measured thread: of higher or, without real-time, of any
    /// priority.
    Thread,
    /// Kernel work of a task that ought to have made way and could not be preempted; also the
    /// wake-up's own path through the scheduler, a message's through both ends' calls, and what a
    /// thread did for packets before one.
    Nonpreemptible,
    /// Waiting for a lock.
    Lock,
    /// The CPU came out of an idle state.
    IdleExit,
    /// The thread moved to another CPU.
    Migration,
    /// The scheduler held the thread back: a quota of its group, the budget of its deadline policy,
    /// real-time throttling, or the fair server.
    Throttled,
    /// A page fault of the measured thread.
    PageFault,
    /// Of the work of an attached thread: that work itself.
    OwnWork,
    /// Of the same: it slept meanwhile, until somebody woke it.
    Wait,
    /// The measured thread was stopped (SIGSTOP, a debugger).
    Stopped,
    /// The hypervisor ran something else; where the name says "probable", that is an inference.
    Host,
    /// The firmware (SMI), or the hardware.
    Hardware,
    /// tardy's own stack walks.
    Tracing,
    /// Nobody knows.
    Unexplained,
}

impl Cause {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 17] = [
        Self::IrqsOff,
        Self::Hardirq,
        Self::Softirq,
        Self::Thread,
        Self::Nonpreemptible,
        Self::Lock,
        Self::IdleExit,
        Self::Migration,
        Self::Throttled,
        Self::PageFault,
        Self::OwnWork,
        Self::Wait,
        Self::Stopped,
        Self::Host,
        Self::Hardware,
        Self::Tracing,
        Self::Unexplained,
    ];

    /// Its name in the files of a run: `irqs_off`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::IrqsOff => "irqs_off",
            Self::Hardirq => "hardirq",
            Self::Softirq => "softirq",
            Self::Thread => "thread",
            Self::Nonpreemptible => "nonpreemptible",
            Self::Lock => "lock",
            Self::IdleExit => "idle_exit",
            Self::Migration => "migration",
            Self::Throttled => "throttled",
            Self::PageFault => "page_fault",
            Self::OwnWork => "own_work",
            Self::Wait => "wait",
            Self::Stopped => "stopped",
            Self::Host => "host",
            Self::Hardware => "hardware",
            Self::Tracing => "tracing",
            Self::Unexplained => "unexplained",
        }
    }
}

/// What the name of a cause rests on.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Events of the run have that party on that CPU over that time.
    Measured,
    /// A rule concludes it from other evidence, which [`Part::evidence`] names.
    Inferred,
    /// Nothing that would carry a name; also a run of a tardy that did not record its evidence.
    #[default]
    None,
}

/// A part of one latency. Parts sum to the whole; nested time counts once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// What kind of cause.
    pub cause: Cause,
    /// Which one: an interrupt's name, a softirq's, a function, a task's name.
    pub name: String,
    /// The task whose work it was, as `name/pid`, where there is one; of an interrupt from another
    /// CPU, who sent it, as `name/pid on CPU 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How much of the latency, ns.
    pub ns: u64,
    /// What the name rests on.
    #[serde(default)]
    pub basis: Basis,
    /// Of an inference: what it was concluded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The kernel's functions that were at it, innermost first, as `function+0x12`; empty where no
    /// stack was walked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// The stages of one latency, in ns; they sum to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StagesOf {
    /// Programmed expiry to the entry of the timer interrupt.
    pub irq: i64,
    /// Interrupt to the timer's callback, where that runs in a softirq.
    #[serde(default)]
    pub softirq: i64,
    /// To the moment the thread was made runnable.
    pub handler: i64,
    /// Runnable to switched in.
    pub dispatch: i64,
    /// Switched in to the clock read in user space.
    pub user: i64,
}

/// One way of a message that was late; the ways sum to the latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WayOf {
    /// `there` or `back`; `packet` from its stamp on; `pacing` from its scheduled time until it was
    /// sent.
    pub way: String,
    /// How long it took, ns.
    pub ns: i64,
    /// Absent if the receiver had not gone to sleep: nothing shows when the message came; and of
    /// `pacing`.
    pub stages: Option<MessageStages>,
}

/// The stages of one way of a message, in ns; they sum to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageStages {
    /// The sender in the call that sends, or kept from it, up to the receiver's wake-up.
    pub send: i64,
    /// The same in softirqs, and while neither end had the message.
    pub stack: i64,
    /// The receiver was made runnable, to the moment its CPU was interrupted for it or left its
    /// idle state; 0 where it was woken on its own CPU.
    pub wake_up: i64,
    /// To the switch to it.
    pub dispatch: i64,
    /// To the clock read after the call that receives.
    pub receive: i64,
}

/// Where something of a timeline happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Outside the kernel: hypervisor, firmware, NMI.
    Host,
    /// Hard interrupts.
    Hardirq,
    /// Softirqs.
    Softirq,
    /// The measured thread.
    Thread,
    /// Other tasks.
    Others,
    /// Nothing to do.
    Idle,
}

/// One entry of a timeline: a span where it has `ns`, a point where not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Moment {
    /// ns after the programmed expiry, after the message was sent or after it should have been;
    /// negative before it.
    pub at: i64,
    /// How long it took, ns; absent for a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// On which CPU.
    pub cpu: u32,
    /// Where.
    pub lane: Lane,
    /// What: `irq`, `softirq`, `timer`, `vector`, `task`, `idle`, `waking`, `migration`, `ipi`,
    /// `page_fault`, `nmi`, `steal`, `lock`, `lock_owner`, `stopped`, `expiry`, `stack`, `woke`,
    /// `sent`, `received`, `function`, `poll`, `frequency` (to which the kernel set the CPU),
    /// `sibling` (a hardware thread of the same core), `priority` (inherited, or its own again).
    pub what: String,
    /// Its name: an interrupt's, a softirq's, a task's, a function's.
    pub name: String,
    /// Number of the task, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its priority as users know it: `fifo 90`, `nice 0`, `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// What else is known: who woke it, why a task left the CPU, where interrupts were enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Functions, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// One late wake-up or message, whole: a line of `peaks.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peak {
    /// The programmed expiry, or when the message was or should have been sent, `CLOCK_MONOTONIC`
    /// ns; the wake-up was at `at_ns + latency_ns`. Absent if the file of another program does
    /// not say when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<i64>,
    /// The series it belongs to: `cpu0`, `rtt`, `there`.
    pub series: String,
    /// Of an attached thread, whose series may be that of several, its number; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// The CPU on which the thread ran when it woke up.
    pub cpu: u32,
    /// How late, ns.
    pub latency_ns: i64,
    /// Absent if the kernel's record of this wake-up did not match, of a message, and of the
    /// work of an attached thread.
    pub stages: Option<StagesOf>,
    /// The ways of a message, by time; of nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<WayOf>,
    /// Why, largest part first.
    pub blame: Vec<Part>,
    /// What happened, by time; from a little before the expiry to the wake-up.
    pub timeline: Vec<Moment>,
    /// Entries left out of the timeline, where there were too many.
    #[serde(default)]
    pub left_out: u64,
}

impl Peak {
    /// Whether it is the work of an attached thread, from an expiry of its timer to the end.
    #[must_use]
    pub fn is_cycle(&self) -> bool {
        self.series.ends_with("/response")
    }

    /// Its parts by cause and name, largest first. What several tasks did under one name, as the
    /// hundreds of a load, is one part here, whose task is `136 tasks`.
    #[must_use]
    pub fn parts_by_name(&self) -> Vec<Part> {
        let mut groups: Vec<(Part, usize)> = Vec::new();
        let mut places = HashMap::new();
        for part in &self.blame {
            let key = (part.cause, part.basis, &part.name, &part.evidence);
            let place = *places.entry(key).or_insert(groups.len());
            match groups.get_mut(place) {
                None => groups.push((part.clone(), 1)),
                Some((group, tasks)) => {
                    group.ns = group.ns.saturating_add(part.ns);
                    *tasks += 1;
                    group.task = Some(format!("{tasks} tasks"));
                    if group.stack.is_empty() {
                        group.stack.clone_from(&part.stack);
                    }
                }
            }
        }
        let mut parts: Vec<Part> = groups.into_iter().map(|(part, _)| part).collect();
        parts.sort_by_key(|part| Reverse(part.ns));
        parts
    }
}

/// What all late wake-ups together were blamed on: `blame.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blame {
    /// Until when late wake-ups are in the sums, `CLOCK_MONOTONIC` ns; absent before the first
    /// ones, and in runs of older versions.
    #[serde(default)]
    pub until_ns: Option<i64>,
    /// Above this every wake-up was blamed, at the end of the run; ns. It follows the run's p99.
    pub threshold_ns: i64,
    /// The lowest threshold there was; ns.
    pub lowest_threshold_ns: i64,
    /// Late wake-ups that were blamed.
    pub blamed: u64,
    /// Late wake-ups that were not: their events were overwritten by then, or too many later ones
    /// were waiting.
    pub passed_over: u64,
    /// Wake-ups that matched no record of the BPF side.
    pub unmatched: u64,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Peaks that were not kept, as there was no more room for them (`--peak-room`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peaks_left_out: u64,
    /// The parts that appear in `buckets`, each once.
    pub causes: Vec<CauseOf>,
    /// By latency, lowest first; only those with a wake-up.
    pub buckets: Vec<LatencyBucket>,
    /// As `buckets`, of late responses: of work, from an expiry of a thread's timer to the end of
    /// what it did for it. They are not wake-ups, and in no other number here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<LatencyBucket>,
    /// Late responses that are not in them, for the reasons of `passed_over`.
    #[serde(default)]
    pub responses_passed_over: u64,
    /// What was stolen from them by the hypervisor; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<StolenRecord>,
    /// As `buckets`, of the same wake-ups without the time that the hypervisor is known to have
    /// taken; empty where it took none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_host: Vec<LatencyBucket>,
}

/// A cause of one series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CauseOf {
    /// Whose wake-ups.
    pub series: String,
    /// What kind.
    pub cause: Cause,
    /// Which one; `(others)` where there were too many names.
    pub name: String,
    /// What the name rests on.
    #[serde(default)]
    pub basis: Basis,
}

/// Late wake-ups of about one latency, and what they were blamed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Latencies from here, ns; up to a sixteenth of an octave more.
    pub low_ns: i64,
    /// How many were blamed.
    pub wakeups: u64,
    /// Sum of their latencies, ns.
    pub ns: u64,
    /// Index into `causes`, wake-ups with such a part, and its sum in ns.
    pub parts: Vec<(u32, u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_called_as_in_the_files() {
        for cause in Cause::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.code());
        }
    }

    #[test]
    fn the_tasks_of_one_name_are_one_part_that_may_be_the_largest() {
        let part = |cause, name: &str, task: &str, ns| Part {
            cause,
            name: name.into(),
            task: (!task.is_empty()).then(|| task.into()),
            ns,
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        };
        let mut blame = vec![part(Cause::Host, "steal", "", 80)];
        let hackbench =
            |number| part(Cause::Thread, "hackbench", &format!("hackbench/{number}"), 5);
        blame.extend((1..=136).map(hackbench));
        blame.push(part(Cause::Thread, "dd", "dd/7", 3));
        let peak = Peak {
            at_ns: None,
            series: "cpu0".into(),
            cpu: 0,
            latency_ns: 763,
            stages: None,
            ways: Vec::new(),
            blame,
            timeline: Vec::new(),
            tid: None,
            left_out: 0,
        };
        let parts = peak.parts_by_name();
        let shown = parts.iter().map(|p| (p.name.as_str(), p.task.as_deref(), p.ns));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [("hackbench", Some("136 tasks"), 680), ("steal", None, 80), ("dd", Some("dd/7"), 3)]
        );
    }
}
