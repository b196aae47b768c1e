//! What a run that has ended gives reason to doubt: from evidence to caveats, by pure functions.
//! One file a topic; nothing here asks the machine.

mod machine;
mod messages;
mod recording;
mod setup;
mod threads;
mod trace;

use super::evidence::Evidence;
use crate::run::CaveatKind;
pub(crate) use setup::{left_changed, shield_gaps};

/// Every caveat that follows from the evidence.
#[must_use]
pub(super) fn caveats(evidence: &Evidence) -> Vec<CaveatKind> {
    let by = evidence.ended_by.clone();
    let mut found = setup::caveats(&evidence.setup);
    let (own, probe) = (evidence.messages.as_ref(), &evidence.probe);
    found.extend(messages::caveats(own, probe, &evidence.series));
    found.extend(by.map(|by| CaveatKind::Interrupted { by }));
    found.extend(threads::caveats(evidence));
    found.extend(machine::caveats(&evidence.machine));
    found.extend(machine::of_work(evidence.work));
    found.extend(recording::of_loads(&evidence.loads));
    found.extend(recording::caveats(&evidence.recording));
    found.extend(recording::of_series(evidence));
    found.extend(recording::of_figures(&evidence.figure_gaps));
    found.extend(trace::caveats(&evidence.trace, &evidence.series));
    found
}

#[cfg(test)]
mod tests;
