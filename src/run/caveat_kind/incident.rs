//! What can happen to a machine during a run, and the caveat texts.

use serde::Serialize;

use super::values::{CpuCount, list};
use crate::{
    run::caveat::Effect,
    units::{self, Nanos, times},
};

/// Something that happened meanwhile. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Incident {
    /// The hypervisor took more than a little of a measured CPU's time.
    StealTime {
        /// Those of which it took.
        cpus: Vec<CpuShare>,
    },
    /// The firmware took the machine away.
    SmiSeen {
        /// How often.
        count: u64,
    },
    /// Interrupts that cannot be masked came.
    NmiSeen {
        /// How many.
        cpus: Vec<CpuCount>,
    },
    /// The machine slept.
    Suspended {
        /// How long, ns.
        suspended_ns: i64,
    },
    /// A measured CPU went offline.
    MeasuredCpuOffline {
        /// Which, `0-3,7`.
        cpus: String,
    },
    /// Other CPUs came or went.
    CpusChanged {
        /// Which, `0-3,7`.
        cpus: String,
    },
    /// The kernel took another clock source.
    ClockSourceChanged {
        /// All of them in turn.
        sources: Vec<String>,
    },
    /// Somebody chose another governor.
    GovernorChanged {
        /// Each change once.
        changes: Vec<GovernorChange>,
    },
    /// A measured CPU ran at other frequencies.
    FrequencyChanged {
        /// Those that did.
        cpus: Vec<FrequencyChange>,
    },
    /// The CPU of simulated tasks did more or less work in a millisecond after the run than before.
    WorkChanged {
        /// Before the run, loops in a millisecond.
        before_per_ms: f64,
        /// After it.
        after_per_ms: f64,
    },
    /// A measured CPU was slowed down because of heat.
    CpuThrottled {
        /// How often.
        cpus: Vec<CpuCount>,
    },
    /// The kernel stopped real-time tasks for the sake of others.
    RtThrottled,
    /// A control group that tardy is in had used up its CPU quota.
    CpuQuotaUsedUp {
        /// In how many periods of the quota.
        times: u64,
        /// How long tasks were kept from running for that, ns; a sum over CPUs.
        kept_ns: i64,
    },
    /// Other programs used much of the measured CPUs, where that was not wanted.
    ForeignUse {
        /// Which, and how much.
        text: String,
        /// `--load idle` was asked for; else the measured threads are ordinary tasks.
        is_idle_asked: bool,
    },
    /// Memory was locked at the start, and not at the end.
    MemoryUnlocked {
        /// Bytes that were locked at the start.
        start_bytes: u64,
        /// Bytes that were locked at the end.
        end_bytes: u64,
    },
    /// What would have shown some of the others could not be read.
    NotLookedAt {
        /// What, and where it would have been read.
        sources: Vec<UnreadSource>,
    },
}

/// A condition that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadSource {
    /// What nothing is known of: `steal time`.
    pub what: String,
    /// The file or the call that would have shown it.
    pub source: String,
}

impl UnreadSource {
    /// Nothing is known of `what`, as `source` could not be read.
    #[must_use]
    pub fn new(what: &str, source: &str) -> Self {
        Self { what: what.into(), source: source.into() }
    }
}

/// The share of a CPU's time that the hypervisor took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuShare {
    /// The CPU.
    pub cpu: u32,
    /// From 0 to 1.
    pub share: f64,
}

/// A change of a CPU's frequency governor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GovernorChange {
    /// The CPU.
    pub cpu: u32,
    /// The governor until then.
    pub before: String,
    /// The governor from then on.
    pub after: String,
}

/// How a CPU changed its frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrequencyChange {
    /// The CPU.
    pub cpu: u32,
    /// How often; `None` if the kernel counts none.
    pub changes: Option<u64>,
    /// At the start and at the end, kHz; `None` if they hardly differ.
    pub frequency_khz: Option<(u64, u64)>,
}

impl FrequencyChange {
    /// "CPU 0 3 times, from 1200 MHz at the start to 3000 at the end"
    fn text(&self) -> String {
        let changes = self.changes.map(times);
        let ends = self.frequency_khz.map(|(start, end)| {
            format!("from {} MHz at the start to {} at the end", start / 1000, end / 1000)
        });
        let parts: Vec<String> = changes.into_iter().chain(ends).collect();
        format!("CPU {} {}", self.cpu, parts.join(", "))
    }
}

impl Incident {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::MemoryUnlocked { start_bytes, end_bytes } => (
                "memory_unlocked",
                Weakens,
                format!(
                    "Memory did not stay locked: {} KiB at the start, {} KiB at the end.",
                    start_bytes >> 10,
                    end_bytes >> 10
                ),
                "Find the program that unlocks it (a debugger, a memory compactor), and repeat \
                 the run.",
            ),
            Self::StealTime { cpus } => (
                "steal_time",
                Weakens,
                format!(
                    "The hypervisor took time of measured CPUs for others: {}.",
                    list(cpus, ", ", |CpuShare { cpu, share }| {
                        format!("{:.1}% of CPU {cpu}", share * 100.0)
                    })
                ),
                "Measure on the bare machine, or give the virtual machine dedicated CPUs (pinned, \
                 not overcommitted).",
            ),
            Self::SmiSeen { count } => (
                "smi_seen",
                Informs,
                format!("The firmware interrupted the machine {} (SMI).", times(*count)),
                "Look into the firmware's set-up for USB legacy support, power capping and memory \
                 scrubbing, and ask its vendor; the kernel cannot prevent them.",
            ),
            Self::NmiSeen { cpus } => (
                "nmi_seen",
                Informs,
                format!(
                    "Non-maskable interrupts (NMI) occurred: {}.",
                    list(cpus, ", ", |CpuCount { cpu, count }| format!("{count} on CPU {cpu}"))
                ),
                "`sysctl -w kernel.nmi_watchdog=0`, and end `perf` where it runs.",
            ),
            Self::Suspended { suspended_ns } => (
                "suspended",
                Invalidates,
                format!("The machine was suspended for {} during the run.", Nanos(*suspended_ns)),
                "Repeat it with sleep inhibited: `systemd-inhibit --what=sleep tardy run ...`.",
            ),
            Self::MeasuredCpuOffline { cpus } => (
                "measured_cpu_offline",
                Invalidates,
                format!("Measured CPUs went offline during the run: {cpus}."),
                "Find what takes CPUs offline (a power daemon, the hypervisor), and repeat \
                 the run.",
            ),
            Self::CpusChanged { cpus } => (
                "cpus_changed",
                Weakens,
                format!("CPUs went online or offline during the run; this stops all CPUs: {cpus}."),
                "Find what takes CPUs online and offline, and repeat the run.",
            ),
            Self::ClockSourceChanged { sources } => (
                "clock_source_changed",
                Invalidates,
                format!("The clock source changed during the run: {}.", sources.join(", then ")),
                "`dmesg | grep -i clocksource` shows why: a clock that the kernel gives up has \
                 shown wrong times before.",
            ),
            Self::GovernorChanged { changes } => (
                "governor_changed",
                Weakens,
                format!(
                    "The frequency governor changed during the run: {}.",
                    list(changes, "; ", |GovernorChange { cpu, before, after }| {
                        format!("CPU {cpu} from {before} to {after}")
                    })
                ),
                "Stop the power daemon that changes it (power-profiles-daemon, tuned, TLP), and \
                 repeat the run.",
            ),
            Self::FrequencyChanged { cpus } => (
                "frequency_changed",
                Informs,
                format!(
                    "Measured CPUs changed their frequency: {}.",
                    list(cpus, "; ", FrequencyChange::text)
                ),
                "`cpupower frequency-set -g performance`, to keep frequency changes out of the \
                 numbers.",
            ),
            Self::WorkChanged { before_per_ms, after_per_ms } => (
                "work_changed",
                Weakens,
                format!(
                    "The measured CPU did {:+.0}% work in a millisecond after the run, compared \
                     with before it: the work of the tasks did not take the CPU time that it \
                     stands for.",
                    (after_per_ms / before_per_ms - 1.0) * 100.0
                ),
                "Keep the frequency of the CPU: --governor performance, and without turbo; or \
                 measure when nothing shares its core.",
            ),
            Self::CpuThrottled { cpus } => (
                "cpu_throttled",
                Weakens,
                format!(
                    "Measured CPUs were slowed down because of heat: {}.",
                    list(cpus, "; ", |CpuCount { cpu, count }| {
                        format!("CPU {cpu} {}", times(*count))
                    })
                ),
                "Cool the machine (fans, dust, a hard and flat place), or measure a smaller load.",
            ),
            Self::NotLookedAt { sources } => (
                "not_looked_at",
                Weakens,
                format!(
                    "Some validity checks could not run: {}.",
                    list(sources, ", ", |UnreadSource { what, source }| {
                        format!("{what} ({source})")
                    })
                ),
                "Measure where /proc, /sys and the kernel's log can be read: as root. A container \
                 needs CAP_SYSLOG for the log; mount what it hides (also /sys/fs/cgroup of its \
                 host) below /host, e.g. on /host/proc/interrupts, as \
                 deploy/kubernetes/job.yaml does.",
            ),
            Self::CpuQuotaUsedUp { times, kept_ns } => (
                "cpu_quota_used_up",
                Weakens,
                format!(
                    "The control group of this run had used up its CPU quota {}: its ordinary \
                     threads, measured ones and loads, were kept from running, for {} in all.",
                    units::times(*times),
                    Nanos(*kept_ns)
                ),
                "Measure without a quota (`CPUQuota=`, `cpu.max`, a container's `--cpus`), or know \
                 that these figures are the quota's.",
            ),
            Self::ForeignUse { text, is_idle_asked } => (
                "foreign_use",
                Weakens,
                format!(
                    "Beside the run, {text}{}.",
                    if *is_idle_asked {
                        ", and `--load idle` was asked for"
                    } else {
                        "; the measured threads are ordinary tasks and share their CPUs with them"
                    }
                ),
                "Stop them, keep them off these CPUs (--shield, --cpus), or measure with a \
                 real-time --policy and without `--load idle`.",
            ),
            Self::RtThrottled => (
                "rt_throttled",
                Weakens,
                "The kernel stopped real-time tasks for the sake of others (RT throttling).".into(),
                "Find the real-time task that takes all CPU time; or `sysctl -w \
                 kernel.sched_rt_runtime_us=-1`, and then know that such a task locks its CPU up.",
            ),
        }
    }
}
