//! What `run.json` says of tracing: what was asked for, what came of it, and what it cost.

use serde::{Deserialize, Serialize};

/// How much is found out about wake-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TraceMode {
    /// As much as the machine allows.
    Auto,
    /// Nothing.
    #[default]
    Off,
    /// The stages of each.
    Stages,
    /// The stages of each, and why the late ones were late.
    Peaks,
}

impl TraceMode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Off, Self::Stages, Self::Peaks];

    /// As on the command line and in `run.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Stages => "stages",
            Self::Peaks => "peaks",
        }
    }
}

/// The tracing backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TraceBy {
    /// Programs in the kernel, at its tracepoints.
    Bpf,
    /// The kernel's own tracer.
    Tracefs,
}

impl TraceBy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Bpf, Self::Tracefs];

    /// As on the command line and in `run.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Tracefs => "tracefs",
        }
    }
}

/// Events that the kernel's tracer lost on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostEvents {
    /// The CPU.
    pub cpu: u32,
    /// How many, at least.
    pub events: u64,
}

/// Whether a count need not be written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether wake-ups were traced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceRecord {
    /// What was asked for.
    pub asked: TraceMode,
    /// What it came to; never `auto`.
    pub found: TraceMode,
    /// By whom; absent if nothing was traced, and in runs of versions that had BPF alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<TraceBy>,
    /// Why not by BPF, with the remedy; absent if it was, and where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_bpf: Option<String>,
    /// CPUs on which the kernel's tracer lost events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_on: Vec<LostEvents>,
    /// Why not what was asked for, with the remedy; absent if it was had.
    #[serde(default)]
    pub why_not: Option<String>,
    /// Tracepoints that this kernel lacks or refuses.
    #[serde(default)]
    pub missing: Vec<MissingTracepoint>,
    /// Wake-ups that matched nothing that was traced and so have no stages.
    #[serde(default)]
    pub unmatched: u64,
    /// Events that the recorder lost.
    #[serde(default)]
    pub lost_events: u64,
    /// Late wake-ups that were blamed.
    #[serde(default)]
    pub blamed: u64,
    /// Late wake-ups that were not: their events were overwritten by then, or too many later ones
    /// were waiting.
    #[serde(default)]
    pub passed_over: u64,
    /// Peaks that were not kept, as there was no more room for them (`--peak-room`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peaks_left_out: u64,
    /// Above this every wake-up was blamed, at the end of the run; ns. 0 if there was no such
    /// wake-up.
    #[serde(default)]
    pub threshold_ns: i64,
    /// What tracing costs here, where it was measured (`--calibrate`).
    #[serde(default)]
    pub cost: Option<TraceCost>,
    /// What the latest run of the store with `--calibrate` found on the same machine, with the same
    /// kernel and probe, where as much was traced; absent if it has none, and where this run
    /// measured it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_cost: Option<KnownCost>,
}

impl TraceRecord {
    /// Nothing was traced.
    #[must_use]
    pub fn off(asked: TraceMode) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Who traced, or would have.
    #[must_use]
    pub fn by(&self) -> TraceBy {
        self.by.unwrap_or(TraceBy::Bpf)
    }
}

/// What another run on the same machine found that tracing costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownCost {
    /// The id of that run.
    pub run: String,
    /// Its name.
    pub name: String,
    /// Its loads, by name.
    pub loads: Vec<String>,
    /// What it found.
    pub cost: TraceCost,
}

/// A tracepoint without which some causes cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingTracepoint {
    /// Its name.
    pub tracepoint: String,
    /// What cannot be measured without it.
    pub switches_off: String,
    /// Why it is missing.
    pub why: String,
}

/// What tracing adds, from slices with and without it in turn, under the loads of the run, before
/// it. Medians are over the wake-ups of all measured threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceCost {
    /// Pairs of slices.
    pub pairs: u32,
    /// Length of a slice, ns.
    pub slice_ns: i64,
    /// Median of the slices' median latencies, without tracing; ns.
    pub median_without_ns: i64,
    /// The same with tracing; ns.
    pub median_with_ns: i64,
    /// Median of the differences within the pairs; ns. Negative where noise is larger than the
    /// cost.
    pub added_median_ns: i64,
    /// Smallest and largest of these differences; ns.
    pub added_range_ns: (i64, i64),
    /// CPU time of the measured threads per wake-up, without and with; ns. What the programs do in
    /// interrupts is not in it.
    pub cpu_per_wakeup_ns: (i64, i64),
    /// Median of the differences of the whole machine's busy share within the pairs, in percent of
    /// one CPU.
    pub added_cpu_percent: f64,
}
