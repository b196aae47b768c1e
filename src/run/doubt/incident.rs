//! What can happen to a machine or to a measured thread while a run goes on, and what it says.

use crate::run::caveat::Effect;

/// Something that happened meanwhile. One variant a code, as in [`super::Doubt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incident {
    /// A measured thread left its CPU for another.
    ThreadMigrated {
        /// Series and how often.
        what: String,
    },
    /// A measured real-time thread was made to leave its CPU.
    ThreadPreempted {
        /// Series and how often.
        what: String,
    },
    /// The hypervisor took more than a little of a measured CPU's time.
    StealTime {
        /// Shares per CPU.
        what: String,
    },
    /// The firmware took the machine away.
    SmiSeen {
        /// How often.
        count: u64,
    },
    /// Interrupts that cannot be masked came.
    NmiSeen {
        /// How many, per CPU.
        what: String,
    },
    /// The machine slept.
    Suspended {
        /// How long.
        time: String,
    },
    /// A measured CPU went offline.
    MeasuredCpuOffline {
        /// Which.
        cpus: String,
    },
    /// Other CPUs came or went.
    CpusChanged {
        /// Which.
        cpus: String,
    },
    /// The kernel took another clock source.
    ClockSourceChanged {
        /// All of them in turn.
        sources: String,
    },
    /// Somebody chose another governor.
    GovernorChanged {
        /// CPU, before and after.
        what: String,
    },
    /// A measured CPU ran at other frequencies.
    FrequencyChanged {
        /// Per CPU.
        what: String,
    },
    /// A measured CPU was slowed down because of heat.
    CpuThrottled {
        /// Per CPU, how often.
        what: String,
    },
    /// The kernel stopped real-time tasks for the sake of others.
    RtThrottled,
    /// Memory was locked at the start, and not at the end.
    MemoryUnlocked {
        /// Bytes before and after.
        what: String,
    },
}

impl Incident {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::ThreadMigrated { what } => (
                "thread_migrated",
                Invalidates,
                format!("Measured threads were moved to other CPUs while they measured: {what}."),
                "Look for whoever changes affinities behind tardy's back (taskset, a cpuset, a \
                 daemon that balances), and repeat the run.",
            ),
            Self::ThreadPreempted { what } => (
                "thread_preempted",
                Informs,
                format!("Measured real-time threads were made to leave their CPU: {what}."),
                "Something of higher priority runs there: look at `ps -eLo rtprio,psr,comm | sort \
                 -n`, or raise --priority. A few a minute are the kernel's own stopper threads, or \
                 tardy's watchdog where every CPU is measured.",
            ),
            Self::MemoryUnlocked { what } => (
                "memory_unlocked",
                Weakens,
                format!("Memory did not stay locked: {what}."),
                "Look for whoever unlocks it (a debugger, a tool that compacts memory), and repeat \
                 the run.",
            ),
            Self::StealTime { what } => (
                "steal_time",
                Weakens,
                format!("The hypervisor took time of measured CPUs for others: {what}."),
                "Measure on the bare machine, or give the virtual machine CPUs of its own (pinned, \
                 not overcommitted).",
            ),
            Self::SmiSeen { count } => (
                "smi_seen",
                Informs,
                format!("The firmware took the machine away {count} times (SMI)."),
                "Look into the firmware's set-up for USB legacy support, power capping and memory \
                 scrubbing, and ask its vendor; the kernel cannot prevent them.",
            ),
            Self::NmiSeen { what } => (
                "nmi_seen",
                Informs,
                format!("Interrupts that cannot be masked came (NMI): {what}."),
                "`sysctl -w kernel.nmi_watchdog=0`, and end `perf` where it runs.",
            ),
            Self::Suspended { time } => (
                "suspended",
                Invalidates,
                format!("The machine was suspended for {time} while the run went on."),
                "Repeat it with sleep inhibited: `systemd-inhibit --what=sleep tardy run ...`.",
            ),
            Self::MeasuredCpuOffline { cpus } => (
                "measured_cpu_offline",
                Invalidates,
                format!("Measured CPUs went offline while the run went on: {cpus}."),
                "Look for whoever switches CPUs off (a power daemon, the hypervisor), and repeat \
                 the run.",
            ),
            Self::CpusChanged { cpus } => (
                "cpus_changed",
                Weakens,
                format!("CPUs came or went while the run went on, which stops all others: {cpus}."),
                "Look for whoever switches CPUs on and off, and repeat the run.",
            ),
            Self::ClockSourceChanged { sources } => (
                "clock_source_changed",
                Invalidates,
                format!("The clock source changed while the run went on: {sources}."),
                "`dmesg | grep -i clocksource` tells why: a clock that the kernel gives up has \
                 shown wrong times before.",
            ),
            Self::GovernorChanged { what } => (
                "governor_changed",
                Weakens,
                format!("The frequency governor changed while the run went on: {what}."),
                "Stop the power daemon that changes it (power-profiles-daemon, tuned, TLP), and \
                 repeat the run.",
            ),
            Self::FrequencyChanged { what } => (
                "frequency_changed",
                Informs,
                format!("Measured CPUs changed their frequency: {what}."),
                "`cpupower frequency-set -g performance`, if changes of speed shall not be in the \
                 numbers.",
            ),
            Self::CpuThrottled { what } => (
                "cpu_throttled",
                Weakens,
                format!("Measured CPUs were slowed down because of heat: {what}."),
                "Cool the machine (fans, dust, a hard and flat place), or measure a smaller load.",
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
