//! Caveats of what was recorded: samples, series, and whether the loads were there.

use super::super::evidence::{Evidence, Recording, RefusedWrite};
use crate::{
    loads::{LoadEnd, LoadFault},
    run::{AttachCaveat, CaveatKind, FigureGap, ImpossibleFigure, MissedPeriods},
};

/// A drain later than this is worth a word: an interval of the shortest log.
pub(super) const LATE_NS: i64 = 500_000_000;

/// From how recording went.
pub(super) fn caveats(recording: &Recording) -> Vec<CaveatKind> {
    let Recording { lost, late_ns, refused, not_real_time, .. } = recording.clone();
    let lost = (lost > 0).then_some(CaveatKind::SamplesLost { lost });
    let late = (late_ns > LATE_NS).then_some(CaveatKind::DrainLate { late_ns });
    let refused = refused.map(|RefusedWrite { file, at_ns, error }| CaveatKind::RecordIncomplete {
        file,
        at_ns,
        error,
    });
    let helpers = not_real_time.map(|error| CaveatKind::HelpersNotRealTime { error });
    [lost, late, refused, helpers].into_iter().flatten().collect()
}

/// From how the loads ended.
pub(super) fn of_loads(loads: &[(String, LoadEnd)]) -> Vec<CaveatKind> {
    loads.iter().filter_map(|(load, end)| of_load(load.clone(), end)).collect()
}

fn of_load(load: String, end: &LoadEnd) -> Option<CaveatKind> {
    match &end.fault {
        Some(LoadFault::Died(how)) => Some(CaveatKind::LoadDied { load, how: how.clone() }),
        Some(LoadFault::DidNothing) => Some(CaveatKind::LoadDidNothing { load }),
        None => {
            let proof = end.proof.as_ref().filter(|proof| proof.tasks_idle > 0)?;
            let (tasks_idle, tasks) = (proof.tasks_idle, proof.tasks);
            Some(CaveatKind::LoadInPart { load, tasks_idle, tasks })
        }
    }
}

/// From the figures that have no value, or one that cannot be.
pub(super) fn of_figures(
    gaps: &[FigureGap],
    impossible: &[ImpossibleFigure],
) -> impl Iterator<Item = CaveatKind> {
    let missing = (!gaps.is_empty()).then(|| CaveatKind::FiguresMissing { figures: gaps.to_vec() });
    let impossible = (!impossible.is_empty())
        .then(|| CaveatKind::FiguresImpossible { figures: impossible.to_vec() });
    missing.into_iter().chain(impossible)
}

/// From the series of whole latencies.
pub(super) fn of_series(evidence: &Evidence) -> Vec<CaveatKind> {
    let Evidence { series, has_figures, has_estimated_grid, .. } = evidence;
    let is_empty = series.iter().all(|series| series.count == 0) && !has_figures;
    let none = is_empty.then(|| match evidence.attached {
        Some(_) => AttachCaveat::NothingWoke.into(),
        None => CaveatKind::NoSamples,
    });
    let early = series.iter().map(|series| series.early).sum();
    let missed = series.iter().map(MissedPeriods::of).collect();
    none.into_iter().chain(of_counts(early, missed, *has_estimated_grid)).collect()
}

/// From what was counted of series of whole latencies, which may continue.
pub(super) fn of_counts(
    early: u64,
    missed: Vec<MissedPeriods>,
    has_estimated_grid: bool,
) -> Vec<CaveatKind> {
    let missed: Vec<_> = missed.into_iter().filter(are_material).collect();
    let early = (early > 0 && !has_estimated_grid).then_some(CaveatKind::EarlyWakeups { early });
    let missed = (!missed.is_empty()).then_some(CaveatKind::PeriodsMissed { series: missed });
    [early, missed].into_iter().flatten().collect()
}

fn are_material(of: &MissedPeriods) -> bool {
    MissedPeriods::are_material(of.missed, of.periods)
}
