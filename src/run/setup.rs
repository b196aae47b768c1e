//! How a run was set up: what was asked for, and what the kernel said afterwards.

use serde::{Deserialize, Serialize};

/// What was arranged, as asked and as read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SetupRecord {
    /// What the user or the default wanted; null where the samples were not measured by tardy.
    pub asked: Option<AskedSetup>,
    /// What the kernel said afterwards.
    pub found: FoundSetup,
}

/// What the user or the default wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskedSetup {
    /// Scheduling policy of the measured threads.
    pub policy: String,
    /// Whether the user asked for that policy.
    pub policy_explicit: bool,
    /// Real-time priority of the first thread; 0 for other.
    pub priority: u32,
    /// Whether the user asked for that priority.
    pub priority_explicit: bool,
    /// CPUs to measure, as a list.
    pub cpus: String,
    /// Timer slack of the measured threads. In ns.
    pub timer_slack_ns: u64,
    /// Whether memory was to be locked.
    pub memory_lock: bool,
    /// The request on /dev/cpu_dma_latency in us; null for none.
    pub dma_latency_us: Option<i32>,
    /// Whether everything else was to be kept off the measured CPUs.
    pub shield: bool,
    /// Frequency governor for the measured CPUs; null for no wish.
    pub governor: Option<String>,
    /// Longest exit of an idle state that the user allows; null for no wish. In us.
    pub max_idle_latency_us: Option<i32>,
    /// Whether siblings of the measured CPUs were to be taken offline.
    pub no_smt_sibling: bool,
    /// CPUs for loads and recording threads, as a list; null for no wish.
    pub housekeeping: Option<String>,
    /// Settings of the machine (`--set`).
    #[serde(default)]
    pub settings: Vec<AskedSetting>,
}

/// A setting of the machine as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskedSetting {
    /// Its name, as in `--set`.
    pub name: String,
    /// The value, as typed; `now` for the one that it has.
    pub value: String,
}

/// A setting of the machine as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundSetting {
    /// Its name, as in `--set`.
    pub name: String,
    /// What it was before, for people.
    pub was: String,
    /// What was read back, for people.
    pub found: String,
    /// How many of its files the kernel keeps as they are: interrupts that it manages itself.
    pub refused: u32,
}

/// What the kernel said afterwards; null where nothing was arranged, or not yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FoundSetup {
    /// Policy and priority as available: fifo 90, other.
    pub policy: Option<String>,
    /// CPUs that were measured, as a list.
    pub cpus: Option<String>,
    /// Locked memory.
    pub memory_lock: Option<MemoryLock>,
    /// What the kernel held when the request was in place, in us; null if it had none.
    pub dma_latency_us: Option<i32>,
    /// What the shield came to; null without one.
    pub shield: Option<FoundShield>,
    /// The frequency governor that was set and read back; null if it was not requested.
    pub governor: Option<String>,
    /// CPUs that were taken offline, as a list, empty where cores have one hardware thread; null
    /// where that was not asked for.
    pub siblings_offline: Option<String>,
    /// Settings of the machine that were set (`--set`).
    pub settings: Vec<FoundSetting>,
    /// One entry a series: what its thread ran as when it was armed.
    pub threads: Vec<FoundThread>,
}

/// Locked memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryLock {
    /// What was locked.
    pub locked: LockedMemory,
    /// Bytes locked when the run began; null where unknown.
    pub bytes: Option<u64>,
}

/// How much of the memory was locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LockedMemory {
    /// What there was and what came later.
    #[serde(rename = "all")]
    All,
    /// What there was when the measured threads were armed.
    #[serde(rename = "what existed when armed")]
    Existing,
    /// Nothing: the kernel refused.
    #[serde(rename = "none")]
    None,
}

/// What a shield came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundShield {
    /// The shielded CPUs, as a list.
    pub cpus: String,
    /// Who keeps tasks off them.
    pub backend: String,
    /// Interrupts that were moved off them.
    pub interrupts_moved: u32,
    /// Interrupts and the like that the kernel did not let go, by number and name.
    pub interrupts_stay: Vec<String>,
    /// Kernel threads that could not be moved; with cgroup v2 not counted, 0.
    pub kernel_tasks_stay: usize,
}

/// One measured thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundThread {
    /// The name of its series.
    pub series: String,
    /// The kernel's number of the thread.
    pub tid: i32,
    /// Scheduling policy.
    pub policy: String,
    /// Real-time priority; 0 for an ordinary task.
    pub priority: u32,
    /// Nice value.
    pub nice: i32,
    /// CPUs it may run on, as a list.
    pub cpus: String,
    /// Timer slack; 0 for real-time threads, which have none. In ns.
    pub timer_slack_ns: u64,
}
