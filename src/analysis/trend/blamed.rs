//! Whose part of late samples changed with a level.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::TrendRun;
use crate::run::peaks::Cause;

/// Causes that are named of a change.
const MOST_CAUSES: usize = 3;

/// A cause of late samples before and after a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseShift {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// Its share of the time by which samples were late, 0 to 1.
    pub before: f64,
    /// The same after the change.
    pub after: f64,
}

/// Whose share of late time differs most.
pub(super) fn causes<'a>(
    before: impl Iterator<Item = &'a TrendRun>,
    after: impl Iterator<Item = &'a TrendRun>,
) -> Option<Vec<CauseShift>> {
    let (before, after) = (shares(before)?, shares(after)?);
    let names: BTreeSet<&(Cause, String)> = before.keys().chain(after.keys()).collect();
    let share = |of: &BTreeMap<(Cause, String), f64>, name: &(Cause, String)| {
        of.get(name).copied().unwrap_or(0.0)
    };
    let shift = |name: &(Cause, String)| CauseShift {
        cause: name.0,
        name: name.1.clone(),
        before: share(&before, name),
        after: share(&after, name),
    };
    let mut shifts: Vec<CauseShift> = names.into_iter().map(shift).collect();
    // In millionths: of two that differ alike, the one that grew is first.
    let size = |shift: &CauseShift| ((shift.after - shift.before).abs() * 1e6).round();
    shifts.sort_by(|a, b| size(b).total_cmp(&size(a)).then(b.after.total_cmp(&a.after)));
    shifts.truncate(MOST_CAUSES);
    Some(shifts)
}

/// The share of each cause over runs; `None` if none recorded any.
fn shares<'a>(runs: impl Iterator<Item = &'a TrendRun>) -> Option<BTreeMap<(Cause, String), f64>> {
    let (mut sums, mut all) = (BTreeMap::new(), 0.0);
    for late in runs.filter_map(|run| run.late.as_ref()) {
        all += late.ns as f64;
        for cause in &late.causes {
            *sums.entry((cause.cause, cause.name.to_string())).or_insert(0.0) += cause.ns as f64;
        }
    }
    (all > 0.0).then(|| sums.into_iter().map(|(name, sum)| (name, sum / all)).collect())
}
