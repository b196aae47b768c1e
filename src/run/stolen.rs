//! What `blame.json` says of the time that the hypervisor took from late samples, so that readers
//! can take it out of the latencies again.
//!
//! Only measured steal is in it (`measured_steal.rs`), whose amount the steal counter states. What
//! is inferred to be the hypervisor's, without a count, is not.

use serde::{Deserialize, Serialize};

/// The late samples of a run that lost time to the hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StolenRecord {
    /// Whether this machine counts stolen time, and the recorder read it; where not, nothing is
    /// known, and `series` is empty.
    pub counted: bool,
    /// Length of a slot of time, ns: moves are kept by slot. It doubles where there are many.
    pub slot_ns: i64,
    /// By series; only those with stolen time.
    pub series: Vec<StolenOf>,
    /// Late samples with stolen time for which there was no room here.
    #[serde(default)]
    pub no_room: u64,
}

/// The late samples of one series that lost time to the hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StolenOf {
    /// Its name.
    pub series: String,
    /// Late samples with stolen time that are in `moves`.
    pub samples: u64,
    /// What was stolen from them, ns.
    pub ns: u64,
    /// By time: where such samples are in the histogram of latencies, and where without that time.
    pub moves: Vec<StolenMove>,
}

/// Some samples of one slot and one latency, and what that is without the stolen time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(i64, i64, i64, u64)", into = "(i64, i64, i64, u64)")]
pub struct StolenMove {
    /// Number of the slot in which they were taken: `CLOCK_MONOTONIC` by the length of a slot.
    pub slot: i64,
    /// The lowest value of their bucket in the histogram, ns.
    pub from_ns: i64,
    /// The same without the stolen time, ns.
    pub to_ns: i64,
    /// How many.
    pub count: u64,
}

impl From<(i64, i64, i64, u64)> for StolenMove {
    fn from((slot, from_ns, to_ns, count): (i64, i64, i64, u64)) -> Self {
        Self { slot, from_ns, to_ns, count }
    }
}

impl From<StolenMove> for (i64, i64, i64, u64) {
    fn from(it: StolenMove) -> Self {
        (it.slot, it.from_ns, it.to_ns, it.count)
    }
}
