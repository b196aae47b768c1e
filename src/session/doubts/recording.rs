//! Caveats of what was recorded: samples, series, and whether the loads were there.

use super::super::evidence::{Recording, RefusedWrite};
use crate::{
    loads::{LoadEnd, LoadFault},
    run::{Doubt, MissedPeriods, SeriesSummary},
};

/// A drain later than this is worth a word: an interval of the shortest log.
pub const LATE_NS: i64 = 500_000_000;

/// From how recording went.
pub fn caveats(recording: &Recording) -> Vec<Doubt> {
    let Recording { lost, late_ns, refused, not_real_time } = recording.clone();
    let lost = (lost > 0).then_some(Doubt::SamplesLost { lost });
    let late = (late_ns > LATE_NS).then_some(Doubt::DrainLate { late_ns });
    let refused = refused.map(|RefusedWrite { file, at_ns, error }| Doubt::RecordIncomplete {
        file,
        at_ns,
        error,
    });
    let helpers = not_real_time.map(|error| Doubt::HelpersNotRealTime { error });
    [lost, late, refused, helpers].into_iter().flatten().collect()
}

/// From how the loads ended.
pub fn of_loads(loads: &[(String, LoadEnd)]) -> Vec<Doubt> {
    loads.iter().filter_map(|(load, end)| of_load(load.clone(), end)).collect()
}

fn of_load(load: String, end: &LoadEnd) -> Option<Doubt> {
    match &end.fault {
        Some(LoadFault::Died(how)) => Some(Doubt::LoadDied { load, how: how.clone() }),
        Some(LoadFault::DidNothing) => Some(Doubt::LoadDidNothing { load }),
        None => {
            let proof = end.proof.as_ref().filter(|proof| proof.tasks_idle > 0)?;
            let (tasks_idle, tasks) = (proof.tasks_idle, proof.tasks);
            Some(Doubt::LoadInPart { load, tasks_idle, tasks })
        }
    }
}

/// From the series of whole latencies.
pub fn of_series(series: &[SeriesSummary]) -> Vec<Doubt> {
    let is_empty = series.iter().all(|series| series.count == 0);
    let early = series.iter().map(|series| series.early).sum();
    let missed: Vec<MissedPeriods> = series.iter().map(missed).collect();
    let missed: Vec<_> = missed.into_iter().filter(|missed| missed.percent() >= 1.0).collect();
    let none = is_empty.then_some(Doubt::NoSamples);
    let early = (early > 0).then_some(Doubt::EarlyWakeups { early });
    let missed = (!missed.is_empty()).then_some(Doubt::PeriodsMissed { series: missed });
    [none, early, missed].into_iter().flatten().collect()
}

fn missed(series: &SeriesSummary) -> MissedPeriods {
    let missed = series.missed.unwrap_or(0);
    MissedPeriods { series: series.name.clone(), missed, periods: series.count + missed }
}
