//! The parameters of the probes that exchange no messages.

use serde::{Deserialize, Serialize};

use super::{ProbeParameters, ProbeRecord};
use crate::run::ThreadDeadline;

/// The parameters of `timer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimerParameters {
    /// How its threads wait, as `--wake` has it.
    pub wake: String,
    /// Time from one expiry to the next, ns.
    pub interval_ns: i64,
    /// How much longer that is for each thread than for the one before, ns; absent if it is the
    /// same for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_step_ns: Option<i64>,
    /// Distance between the expiries of one thread and the next, ns.
    pub distance_ns: i64,
    /// The measured CPUs, as a list: `0-3,7`.
    pub cpus: String,
    /// Threads on each of them; with `total_threads`, the most on one.
    pub threads_per_cpu: u32,
    /// Threads in total, where they are on one CPU after another, and again from the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_threads: Option<u32>,
    /// How much the priority falls from one thread of a CPU to the next.
    pub priority_step: u32,
    /// The time that the work after each wake-up takes alone, ns; absent if
    /// it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ns: Option<i64>,
    /// The loops that were to stand for a millisecond of work; absent for those that each CPU did
    /// in one before the run, which the figures `work/CPU` have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops_per_ms: Option<u64>,
}

impl ProbeParameters for TimerParameters {
    fn interval_ns(&self) -> Option<i64> {
        Some(self.interval_ns)
    }
}

impl ProbeRecord {
    /// Time from one expiry of a thread to its next, ns, by its number from 0.
    #[must_use]
    pub fn interval_of(&self, thread: usize) -> Option<i64> {
        let step_ns = self.interval_step_ns().unwrap_or(0);
        let thread = i64::try_from(thread).unwrap_or(i64::MAX);
        Some(self.interval_ns()?.saturating_add(step_ns.saturating_mul(thread)))
    }

    /// How much longer it is for each thread than for the one before, ns, if it differs.
    #[must_use]
    pub const fn interval_step_ns(&self) -> Option<i64> {
        match self {
            Self::Timer(timer) => timer.interval_step_ns,
            _ => None,
        }
    }
}

/// The parameters of `noise`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseParameters {
    /// A longer time between two clock reads is a gap, ns.
    pub gap_over_ns: i64,
    /// The measured CPUs, as a list.
    pub cpus: String,
}

impl ProbeParameters for NoiseParameters {}

/// The parameters of `bandwidth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BandwidthParameters {
    /// What is measured, in this order: `pipe/64KiB`, `fork`, ...
    pub figures: Vec<String>,
    /// The CPU of the process that measures, and of all that it switches to.
    pub cpu: u32,
    /// The CPU of the senders of pipes and sockets.
    pub far_cpu: u32,
    /// Where the file is that is read; absent if no figure needs one.
    pub directory: Option<String>,
}

impl ProbeParameters for BandwidthParameters {}

/// The parameters of `inversion`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InversionParameters {
    /// CPU time for which the low thread has the mutex, ns.
    pub hold_ns: i64,
    /// CPU time of the medium thread in each round, ns.
    pub hog_ns: i64,
    /// From the begin of one round to that of the next, ns; the two mutexes take turns.
    pub period_ns: i64,
    /// The measured CPUs, as a list.
    pub cpus: String,
}

impl ProbeParameters for InversionParameters {}

/// The parameters of `irq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IrqParameters {
    /// What interrupts: `rtc` or `timerfd`.
    pub source: String,
    /// Interrupts per second.
    pub rate_hz: u32,
    /// From one interrupt to the next, ns.
    pub interval_ns: i64,
    /// How long the loop of each turn takes undisturbed, ns; 0 for none.
    pub loop_ns: i64,
    /// The measured CPUs, as a list.
    pub cpus: String,
}

impl ProbeParameters for IrqParameters {
    fn interval_ns(&self) -> Option<i64> {
        Some(self.interval_ns)
    }

    fn has_estimated_grid(&self) -> bool {
        self.source == "rtc"
    }
}

/// The parameters of `audio`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AudioParameters {
    /// The name of the JACK server; absent for the default one.
    pub server: Option<String>,
    /// Frames of a cycle.
    pub frames: u32,
    /// Frames of a second.
    pub rate_hz: u32,
    /// From one cycle to the next by these two, ns, rounded down.
    pub interval_ns: i64,
    /// The CPU of the thread that is called.
    pub cpu: u32,
}

impl ProbeParameters for AudioParameters {
    fn interval_ns(&self) -> Option<i64> {
        Some(self.interval_ns)
    }

    fn has_estimated_grid(&self) -> bool {
        true
    }
}

/// The parameters of `attach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachParameters {
    /// How its threads were named: `pid`, `tid`, `comm`, `cgroup` or `command`.
    pub by: String,
    /// The number, the name, the directory, or the words of the command.
    pub target: String,
    /// Only threads of this name; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// What the cycles of threads of a name are to keep, where that has a separate deadline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<ThreadDeadline>,
}

impl ProbeParameters for AttachParameters {}

/// The parameters of `fake`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FakeParameters {
    /// Time from one expiry to the next, ns.
    pub interval_ns: i64,
    /// The CPUs in whose names samples are made up, as a list.
    pub cpus: String,
    /// Whether they are made up as fast as possible.
    pub unpaced: bool,
    /// What they are drawn from, as `pareto:index=4,seed=1`, in simulated time; absent for known
    /// samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
}

impl ProbeParameters for FakeParameters {
    fn interval_ns(&self) -> Option<i64> {
        Some(self.interval_ns)
    }
}
