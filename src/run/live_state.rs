//! `live.json`: what is known of a run while it is in progress and stands in no other file yet.
//! Written once a second while somebody looks, and removed at the end.

use serde::{Deserialize, Serialize};

use super::caveat::Caveat;

/// What `live.json` holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveState {
    /// When this was so, ns since the start.
    pub at_ns: i64,
    /// Each load, in the order of the record.
    pub loads: Vec<LiveLoad>,
    /// What the run gives reason to doubt so far; more may follow from its end.
    pub caveats: Vec<Caveat>,
}

/// A load while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLoad {
    /// Its name.
    pub name: String,
    /// What one operation is; empty where it cannot count any.
    pub unit: String,
    /// Operations since it was started; absent before it said any.
    pub operations: Option<u64>,
    /// Why it is gone, if it is.
    pub died: Option<String>,
}
