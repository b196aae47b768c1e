//! Causes that come at a beat.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    analysis::period::{Periodicity, period},
    run::{
        peaks::{Cause, MESSAGE_PATH, WAKE_UP_PATH},
        peaks_file::Brief,
    },
};

/// How often a period may be seen where there is none, over all causes of a run together.
const LEVEL: f64 = 0.01;

/// So many causes are looked at, those with the most peaks.
const MOST_CAUSES: usize = 16;

/// A cause that comes at a beat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeriodicCause {
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// The series that it hit.
    pub series: Vec<String>,
    /// How regularly.
    #[serde(flatten)]
    pub period: Periodicity,
}

/// The periodic causes among peaks (sorted by time) that can be `grid_ns` apart; peaks have the
/// cause of their largest part. Those of one cause that are nearer than two steps are one event:
/// they are the same delay on several CPUs, or its end.
pub(super) fn causes(peaks: &[Brief], grid_ns: i64) -> Vec<PeriodicCause> {
    let mut causes: BTreeMap<(Cause, &Arc<str>), Vec<&Brief>> = BTreeMap::new();
    // What every wake-up has, and tardy's own work, come with the peaks of others.
    let own = |peak: &&Brief| {
        [WAKE_UP_PATH, MESSAGE_PATH].contains(&&*peak.name) || peak.cause == Cause::Tracing
    };
    for peak in peaks.iter().filter(|peak| !own(peak)) {
        causes.entry((peak.cause, &peak.name)).or_default().push(peak);
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, peaks)| std::cmp::Reverse(peaks.len()));
    causes.truncate(MOST_CAUSES);
    let level = LEVEL / causes.len().max(1) as f64;
    let of = |((cause, name), peaks): ((Cause, &Arc<str>), Vec<&Brief>)| {
        let period = period(&events(&peaks, grid_ns), grid_ns, level)?;
        let mut series: Vec<String> = peaks.iter().map(|peak| peak.series.to_string()).collect();
        series.sort();
        series.dedup();
        Some(PeriodicCause { cause, name: name.to_string(), series, period })
    };
    let mut periodic: Vec<PeriodicCause> = causes.into_iter().filter_map(of).collect();
    periodic.sort_by_key(|one| std::cmp::Reverse(one.period.events));
    periodic
}

fn events(peaks: &[&Brief], grid_ns: i64) -> Vec<i64> {
    let mut events: Vec<i64> = Vec::new();
    let near = grid_ns.saturating_mul(2);
    let mut last = None;
    for at_ns in peaks.iter().filter_map(|peak| peak.at_ns) {
        if last.is_none_or(|last: i64| at_ns.saturating_sub(last) >= near) {
            events.push(at_ns);
        }
        last = Some(at_ns);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn peak(at_ns: i64, cpu: u32, name: &str) -> Brief {
        Brief {
            at_ns: Some(at_ns),
            latency_ns: 5 * MS / 10,
            series: format!("cpu{cpu}").into(),
            cpu,
            cause: Cause::IrqsOff,
            name: name.into(),
        }
    }

    #[test]
    fn a_cause_at_a_beat_is_found_beside_one_without() {
        let mut peaks: Vec<Brief> = (0..60)
            .flat_map(|k| [peak(k * 50 * MS, 0, "beat"), peak(k * 50 * MS, 1, "beat")])
            .collect();
        // Gaps without any period: squares modulo a prime.
        let mut at = 0;
        for k in 1..40_i64 {
            at += (k * k % 83 + 7) * MS;
            peaks.push(peak(at, 2, "noise"));
        }
        peaks.sort_by_key(|peak| peak.at_ns);
        let found = causes(&peaks, MS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name.as_str(), found[0].period.events), ("beat", 60));
        assert_eq!(found[0].series, ["cpu0", "cpu1"]);
        assert!((found[0].period.period_ns / 5e7 - 1.0).abs() < 1e-3);
        assert_eq!(causes(&[], MS), []);
    }
}
