//! What a run that has ended gives reason to doubt: from evidence to caveats, by pure functions.
//! One file a topic; nothing here asks the machine.

mod attach;
mod machine;
mod messages;
mod recording;
mod setup;
mod threads;
mod trace;

use super::{
    conditions_monitor::ConditionsMonitor,
    evidence::{Evidence, MachineEvidence, Recording},
};
use crate::run::{CaveatKind, LiveLoad, MissedPeriods, ThreadCaveat};
pub(crate) use setup::{left_changed, shield_gaps};

/// Every caveat that follows from the evidence.
#[must_use]
pub(super) fn caveats(evidence: &Evidence) -> Vec<CaveatKind> {
    let by = evidence.ended_by.clone();
    let mut found = setup::caveats(&evidence.setup);
    let (own, probe) = (evidence.messages.as_ref(), &evidence.probe);
    found.extend(messages::caveats(own, probe, &evidence.series));
    found.extend(messages::of_server(probe));
    found.extend(by.map(|by| CaveatKind::Interrupted { by }));
    found.extend(threads::caveats(evidence));
    found.extend(machine::caveats(&evidence.machine));
    found.extend(machine::of_work(evidence.work));
    found.extend(machine::of_foreign(evidence));
    found.extend(recording::of_loads(&evidence.loads));
    found.extend(recording::caveats(&evidence.recording));
    found.extend(recording::of_series(evidence));
    found.extend(recording::of_figures(&evidence.figure_gaps, &evidence.impossible_figures));
    found.extend(attach::caveats(evidence.asked.as_ref(), evidence.attached.as_ref()));
    found.extend(trace::caveats(&evidence.trace, &evidence.series));
    found
}

/// What is reason to doubt the run before it has begun: what could not be arranged, or traced.
#[must_use]
pub(super) fn begun(evidence: &Evidence) -> Vec<CaveatKind> {
    let mut found = setup::caveats(&evidence.setup);
    found.extend(trace::caveats(&evidence.trace, &[]));
    found
}

/// What was counted of series of whole latencies so far.
#[derive(Debug, Default)]
pub(super) struct CountedSoFar {
    /// Samples before their time.
    pub early: u64,
    /// Missed periods, of each series that has a schedule.
    pub missed: Vec<MissedPeriods>,
    /// See [`Evidence::has_estimated_grid`].
    pub has_estimated_grid: bool,
}

/// What was found since then, while the run is in progress. What only its end shows is not among
/// it.
#[must_use]
pub(super) fn meanwhile(
    machine: &MachineEvidence,
    recording: &Recording,
    counted: CountedSoFar,
    monitor: &ConditionsMonitor,
    loads: &[LiveLoad],
) -> Vec<CaveatKind> {
    let CountedSoFar { early, missed, has_estimated_grid } = counted;
    let mut found = machine::caveats(machine);
    found.extend(recording::caveats(recording));
    found.extend(recording::of_counts(early, missed, has_estimated_grid));
    let threads = monitor.deviations();
    let deviations = (!threads.is_empty()).then_some(ThreadCaveat::NotAsAsked { threads });
    found.extend(deviations.map(CaveatKind::from));
    let lost = monitor.shield_loss().map(setup::of_loss);
    found.extend(lost.map(CaveatKind::from));
    let died = |load: &LiveLoad| {
        let (load, how) = (load.name.clone(), load.died.clone()?);
        Some(CaveatKind::LoadDied { load, how })
    };
    found.extend(loads.iter().filter_map(died));
    found
}

#[cfg(test)]
mod tests;
