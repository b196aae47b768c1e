//! What a record says where it is shown without the time of the hypervisor.

use serde::{Deserialize, Serialize};

/// What was removed from a run, and what could not be. Latencies in ns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WithoutHost {
    /// Samples that were moved to a smaller latency.
    pub samples: u64,
    /// The stolen time that was removed from them, ns.
    pub removed_ns: u64,
    /// Scheduled periods that passed in that time and are no longer counted as missed; they have no
    /// sample.
    pub missed_removed: u64,
    /// By series; only those with stolen time.
    pub series: Vec<SeriesWithoutHost>,
    /// Samples up to this latency were not judged: what was stolen from them stays in; ns. The
    /// threshold follows the 99th percentile, and this is the one at the end of the run.
    pub judged_over_ns: i64,
    /// Late samples that were not judged: what was stolen from them stays in.
    pub passed_over: u64,
    /// Samples that were judged without a record of the wake-up.
    pub unmatched: u64,
    /// Events that the recorder lost: stolen time may be among them.
    pub lost_events: u64,
    /// Judged samples with stolen time that stay as they were: the table had no room for them, or
    /// the log has no such sample at that time.
    pub not_moved: u64,
    /// What the steal clock of the measured CPUs counted in the run, ns, in ticks of 10 ms; absent
    /// where it was not recorded. A sample may share stolen time with another, and most of it may
    /// be where no sample was waited for.
    pub counted_ns: Option<u64>,
    /// Series that are left out, because what was stolen from them is not known apart: stages.
    pub left_out: Vec<String>,
}

/// What was removed from one series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesWithoutHost {
    /// Its name.
    pub name: String,
    /// Samples that were moved.
    pub samples: u64,
    /// What was removed from them, ns.
    pub removed_ns: u64,
    /// Scheduled periods that passed in that time.
    pub missed_removed: u64,
}
