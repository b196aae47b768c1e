//! System activity beside the measurement, in figures: the machine's averages, and the conditions
//! that the caveats are drawn from. Reading them is the session's work.

use serde::{Deserialize, Serialize};

/// What the machine did over the measured time, on average. The same interval by interval is in
/// `machine.csv`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MachineRecord {
    /// Hard interrupts.
    pub interrupts_per_s: f64,
    /// Soft interrupts.
    pub softirqs_per_s: f64,
    /// Context switches.
    pub context_switches_per_s: f64,
    /// Tasks created.
    pub forks_per_s: f64,
    /// Page faults of every kind.
    pub page_faults_per_s: f64,
    /// Page faults that had to wait for a disk.
    pub major_faults_per_s: f64,
    /// Bytes read from disks that are hardware (or a hypervisor's).
    pub disk_read_bytes_per_s: f64,
    /// Bytes written to them.
    pub disk_written_bytes_per_s: f64,
    /// Bytes received from the network, loopback not counted.
    pub network_received_bytes_per_s: f64,
    /// Bytes sent to the network, loopback not counted.
    pub network_sent_bytes_per_s: f64,
    /// Bytes sent over loopback.
    pub loopback_bytes_per_s: f64,
    /// Each CPU that was online all the time.
    pub cpus: Vec<CpuUse>,
}

/// What one CPU's time went to, as shares from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// Its number.
    pub cpu: u32,
    /// Not idle.
    pub busy: f64,
    /// Taken away by the hypervisor; part of `busy`.
    pub steal: f64,
}

/// The conditions of a run, as they were found during the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConditionsRecord {
    /// How often policy, priority and CPUs of the measured threads were asked for.
    pub looks: u64,
    /// How long interrupts (`interrupts.csv`, `nmis`) and the averages of the machine were counted,
    /// ns: from the end of the warm-up to the end of the last loop. Absent if the warm-up was
    /// not over, and in older runs, which counted interrupts from before the warm-up.
    pub counted_ns: Option<u64>,
    /// One entry a series: what its thread used between its first and its last turn.
    pub threads: Vec<ThreadUse>,
    /// One entry a measured CPU.
    pub cpus: Vec<CpuRecord>,
    /// The clock source, and those that came after it.
    pub clock_sources: Vec<String>,
    /// Time suspended meanwhile, ns.
    pub suspended_ns: i64,
    /// Bytes of locked memory at the end; absent if unknown.
    pub locked_bytes: Option<u64>,
    /// System management interrupts; absent if nothing counts them.
    pub smis: Option<u64>,
    /// Whether the kernel stopped real-time tasks in favor of others; absent if unknown:
    /// where the log cannot be read or has lost its beginning, had it before, or where this kernel
    /// never logs it. Older runs have false there.
    pub rt_throttled: Option<bool>,
    /// What other programs used; absent if unknown, and in older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignRecord>,
}

/// What other programs used of the measured CPUs: neither tardy and what it started, nor the
/// processes of attached threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForeignRecord {
    /// Their share of the time of the measured CPUs, from 0 to 1, from before the warm-up to the
    /// end.
    pub share: f64,
    /// Those that used most, also on other CPUs.
    pub users: Vec<ForeignUser>,
}

/// Other processes of one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForeignUser {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub processes: u64,
    /// CPU seconds per second; 2.0 is two CPUs busy.
    pub cpus: f64,
}

/// Foreign programs that use less of the measured CPUs are not worth a word: a machine does
/// something at all times.
const FOREIGN_SHARE: f64 = 0.05;

impl ForeignRecord {
    /// `other programs used 97% of the measured CPUs (6 spin 1.94 CPUs)`; `None` if that is little.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let user = |user: &ForeignUser| match user.processes {
            1 => format!("{} {:.2} CPUs", user.name, user.cpus),
            many => format!("{many} {} {:.2} CPUs", user.name, user.cpus),
        };
        let users: Vec<String> = self.users.iter().map(user).collect();
        let who = if users.is_empty() { String::new() } else { format!(" ({})", users.join(", ")) };
        let share = self.share * 100.0;
        (self.share >= FOREIGN_SHARE)
            .then(|| format!("other programs used {share:.0}% of the measured CPUs{who}"))
    }
}

/// What a measured thread used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadUse {
    /// Its series.
    pub series: String,
    /// Times it went to sleep voluntarily.
    pub voluntary_switches: u64,
    /// Times it was made to leave the CPU.
    pub involuntary_switches: u64,
    /// Page faults served without a disk.
    pub minor_faults: u64,
    /// Page faults served from a disk.
    pub major_faults: u64,
    /// Times it was moved to another CPU; absent if the kernel does not tell.
    pub migrations: Option<u64>,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Turns of its loop, where that never sleeps; those that were interrupted are among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
}

/// What became of a measured CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuRecord {
    /// Its number.
    pub cpu: u32,
    /// Its frequency governor; absent without one.
    pub governor: Option<String>,
    /// Its frequency before and after; absent if it cannot be read.
    pub frequency_khz: Option<(u64, u64)>,
    /// Times its frequency was changed; absent if nobody counts.
    pub frequency_changes: Option<u64>,
    /// Times it was slowed down because of heat; absent if nobody counts.
    pub throttles: Option<u64>,
    /// Non-maskable interrupts; absent if nobody counts.
    pub nmis: Option<u64>,
}
