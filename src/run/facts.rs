//! What the machine was: read once before a run, stored with it. Reading is `setup`'s work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Facts of the machine and of the program that measured. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Facts {
    /// Name of the machine.
    pub hostname: String,
    /// The machine's own id: 32 hexadecimal digits made of `/etc/machine-id`, which they do not
    /// reveal, as by `systemd-id128 --app-specific`. Absent if it has none, and in runs of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// Labels that its owner gave the machine (`/etc/tardy/labels`), such as `rack`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `uname -r`
    pub kernel: String,
    /// `uname -v`
    pub kernel_version: String,
    /// `uname -m`
    pub architecture: String,
    /// `PRETTY_NAME` of os-release.
    pub distribution: Option<String>,
    /// The kernel's command line.
    pub kernel_cmdline: Option<String>,
    /// How far the kernel lets itself be preempted.
    pub preemption: Preemption,
    /// Model name of the first CPU.
    pub cpu_model: Option<String>,
    /// The microcode of the first CPU, as the kernel reports it; absent if it does not, and in
    /// runs of older versions.
    #[serde(default)]
    pub microcode: Option<String>,
    /// CPUs online, as a list: `0-3`.
    pub cpus_online: String,
    /// CPUs that tardy was allowed to use.
    pub cpus_allowed: String,
    /// Packages, cores and threads as the kernel counts them.
    pub topology: Vec<CpuPlace>,
    /// Current clock source: `tsc`, `kvm-clock`, ...
    pub clock_source: Option<String>,
    /// What kind of virtual machine or container this is; absent on bare metal or where unknown.
    pub virtualisation: Option<String>,
    /// Frequency governor, one entry for each different one: `performance: 0-3`.
    pub governors: Vec<String>,
    /// Idle states of the first measured CPU: name and exit latency in us.
    pub idle_states: Vec<IdleState>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes when the run began.
    pub load_average: Option<[f64; 3]>,
    /// Share of time real-time tasks may take, in percent; absent if unlimited or unknown.
    pub rt_throttling_percent: Option<f64>,
    /// The kernel's id of this boot.
    pub boot_id: Option<String>,
    /// The tardy that measured.
    pub tardy_version: String,
    /// The virtual machine that the lab made for this run; absent outside of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabFacts>,
}

impl Facts {
    /// Short id of the machine for keys: 16 hexadecimal digits of its id and its name. Copies of
    /// one image may share the id, and two machines the name; only both together tell them apart.
    #[must_use]
    pub fn machine_key(&self) -> String {
        let id = self.machine_id.as_deref().unwrap_or_default();
        let hash = Sha256::new().chain_update(id).chain_update([0]).chain_update(&self.hostname);
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether both name one machine. A record without an id knows it by its name alone.
    #[must_use]
    pub fn is_same_machine(&self, other: &Self) -> bool {
        let ids = self.machine_id.as_ref().zip(other.machine_id.as_ref());
        self.hostname == other.hostname && ids.is_none_or(|(one, other)| one == other)
    }
}

/// The virtual machine that the lab made for a run. The same values make the same run again, where
/// time is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabFacts {
    /// `deterministic`, `kvm`, or `emulated`: plain emulation, whose times are the host's noise.
    pub mode: String,
    /// QEMU's version.
    pub qemu: String,
    /// The CPU model that it emulated.
    pub cpu_model: String,
    /// Where time is counted: an instruction takes 2^shift ns.
    pub shift: Option<u8>,
    /// Which phase offset.
    pub seed: u32,
    /// How long the guest waited before it measured, ns; absent if phase offsets lay on a fixed
    /// lattice, as before tardy drew them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// Bytes of padding on the kernel's command line.
    #[serde(default)]
    pub padding: u16,
    /// Whether it repeats another column of the table with other padding.
    #[serde(default)]
    pub is_control: bool,
    /// The kernel as it was asked for: `standard+preempt=full`.
    pub kernel: String,
    /// SHA-256 of the kernel's image.
    pub kernel_hash: String,
    /// SHA-256 of the guest's first file system.
    pub initramfs_hash: String,
    /// SHA-256 over the latencies of all samples, in their order; absent if none were kept.
    pub sample_hash: Option<String>,
    /// The name of the load in the plan.
    pub load: String,
    /// SHA-256 of the part of the first file system that holds tardy and its libraries.
    #[serde(default)]
    pub program_hash: String,
    /// CPUs of the machine.
    #[serde(default)]
    pub cpus: u8,
    /// What `tardy run` was given inside, without what the lab itself gives it.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What the tardy in the second box was given; empty where there was one box.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<String>,
    /// SHA-256 over everything that decides what comes out.
    #[serde(default)]
    pub key: String,
}

/// The preemption model, and which source said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preemption {
    /// `none`, `voluntary`, `full`, `lazy`, `rt` or `unknown`.
    pub model: String,
    /// Where that comes from; empty for `unknown`.
    pub source: String,
}

impl Default for Preemption {
    fn default() -> Self {
        Self { model: "unknown".into(), source: String::new() }
    }
}

/// Where a CPU sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuPlace {
    /// Its number.
    pub cpu: u32,
    /// Physical package.
    pub package: u32,
    /// Core within the package; two CPUs of one core are hardware threads.
    pub core: u32,
}

/// A state that an idle CPU may fall into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleState {
    /// `POLL`, `C1`, ...
    pub name: String,
    /// How long leaving it takes, us, as the driver says.
    pub exit_latency_us: u64,
}
