//! Caveats of the machine: what changed during the run, and what else took its time.

use super::super::{
    conditions_monitor::ConditionsHistory,
    evidence::{Evidence, MachineEvidence},
};
use crate::{
    run::{CaveatKind, CpuCount, CpuShare, FrequencyChange, Incident, conditions::CpuUse},
    sys::{conditions::CpuConditions, cpus::Cpus},
};

/// A larger share of a measured CPU's time that went to the hypervisor's other guests weakens: one
/// wake-up in twenty may then be the host's. Of less, `virtual_machine` has said enough.
const STEAL: f64 = 0.05;

/// A larger change of the work that a CPU does in a millisecond is not an error of its measurement:
/// of the median of five times, each the shortest of four.
const WORK: f64 = 0.05;

/// Whether simulated work took as long at the end as at the start.
pub(super) fn of_work(before_and_after: Option<(f64, f64)>) -> Option<CaveatKind> {
    let (before_per_ms, after_per_ms) = before_and_after?;
    let has_changed = (after_per_ms / before_per_ms - 1.0).abs() > WORK;
    has_changed.then(|| Incident::WorkChanged { before_per_ms, after_per_ms }.into())
}

pub(super) fn caveats(machine: &MachineEvidence) -> Vec<CaveatKind> {
    let MachineEvidence { measured, history, .. } = machine;
    let is_stolen = |used: &&CpuUse| used.steal > STEAL && measured.contains(used.cpu);
    let share = |used: &CpuUse| CpuShare { cpu: used.cpu, share: used.steal };
    let stolen: Vec<_> = machine.cpu_use.iter().filter(is_stolen).map(share).collect();
    let is_hit = |nmi: &&CpuCount| nmi.count > 0 && measured.contains(nmi.cpu);
    let hit: Vec<_> = machine.nmis.iter().filter(is_hit).copied().collect();
    let smis = machine.smis.filter(|count| *count > 0);
    let incidents = [
        (!stolen.is_empty()).then_some(Incident::StealTime { cpus: stolen }),
        (!hit.is_empty()).then_some(Incident::NmiSeen { cpus: hit }),
        smis.map(|count| Incident::SmiSeen { count }),
        history
            .is_suspended()
            .then_some(Incident::Suspended { suspended_ns: history.suspended_ns() }),
        history.is_throttled().then_some(Incident::RtThrottled),
        history.quota_used_up().map(|used| Incident::CpuQuotaUsedUp {
            times: used.times,
            kept_ns: i64::try_from(used.kept_ns).unwrap_or(i64::MAX),
        }),
        unlocked(history),
        unread(machine),
    ];
    let mut found: Vec<CaveatKind> =
        incidents.into_iter().flatten().map(CaveatKind::from).collect();
    found.extend(of_cpus(history, measured).into_iter().map(CaveatKind::from));
    let kind = machine.virtualisation.clone();
    found.extend(kind.map(|kind| CaveatKind::Virtual { kind }));
    found
}

/// What became of CPUs and of the clock.
fn of_cpus(history: &ConditionsHistory, measured: &Cpus) -> Vec<Incident> {
    let gone = history.gone.common(measured);
    let changed = history.changed.without(&gone);
    let some = |cpus: Cpus| (!cpus.is_empty()).then(|| cpus.to_string());
    let sources = history.clock_sources.clone();
    let changes = history.governors.clone();
    let frequencies: Vec<_> = history.cpus().filter_map(frequency).collect();
    let throttled: Vec<_> = history.cpus().filter_map(throttles).collect();
    let incidents = [
        some(gone).map(|cpus| Incident::MeasuredCpuOffline { cpus }),
        some(changed).map(|cpus| Incident::CpusChanged { cpus }),
        (sources.len() > 1).then_some(Incident::ClockSourceChanged { sources }),
        (!changes.is_empty()).then_some(Incident::GovernorChanged { changes }),
        (!frequencies.is_empty()).then_some(Incident::FrequencyChanged { cpus: frequencies }),
        (!throttled.is_empty()).then_some(Incident::CpuThrottled { cpus: throttled }),
    ];
    incidents.into_iter().flatten().collect()
}

/// What other programs used, where that is much, if it is not what is looked for: ordinary threads
/// share their CPUs with them, and no load is what was asked for.
pub(super) fn of_foreign(evidence: &Evidence) -> Option<CaveatKind> {
    let text = evidence.machine.foreign.as_ref()?.text()?;
    let is_idle_asked = evidence.loads.iter().any(|(load, _)| load == "idle");
    let is_ordinary = evidence.attached.is_none() && !evidence.threads.is_real_time;
    (is_idle_asked || is_ordinary).then(|| Incident::ForeignUse { text, is_idle_asked }.into())
}

/// More than half of the locked memory: what a thread had on its stack may go with it.
fn unlocked(history: &ConditionsHistory) -> Option<Incident> {
    let (start_bytes, end_bytes) = history.locked_bytes()?;
    let is_lost = end_bytes < start_bytes / 2;
    is_lost.then_some(Incident::MemoryUnlocked { start_bytes, end_bytes })
}

/// What was not looked at is not known to have been well.
fn unread(machine: &MachineEvidence) -> Option<Incident> {
    let sources = machine.unread.clone();
    (!sources.is_empty()).then_some(Incident::NotLookedAt { sources })
}

fn frequency((first, last): (&CpuConditions, &CpuConditions)) -> Option<FrequencyChange> {
    let changes = first.transitions.zip(last.transitions);
    let changes = changes.map(|(first, last)| last.saturating_sub(first)).filter(|many| *many > 0);
    let ends = first.frequency_khz.zip(last.frequency_khz);
    // A reading wavers by a little even where nothing changes.
    let frequency_khz = ends.filter(|(start, end)| start.abs_diff(*end) > start / 10);
    let cpu = last.cpu;
    let is_change = changes.is_some() || frequency_khz.is_some();
    is_change.then_some(FrequencyChange { cpu, changes, frequency_khz })
}

fn throttles((first, last): (&CpuConditions, &CpuConditions)) -> Option<CpuCount> {
    let count = last.throttles?.saturating_sub(first.throttles?);
    (count > 0).then_some(CpuCount { cpu: last.cpu, count })
}
