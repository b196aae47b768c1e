//! Collects evidence from those who know it: before the start from the plan, at the end from the
//! measured threads, the drain and the recorder.

use tardy_hot::{clock::now_ns, wakeup::Ended};

use super::{
    RunPlan,
    drain::Drained,
    evidence::{MachineEvidence, Recording, RefusedWrite, SetupEvidence, ThreadEvidence},
    machine::Counted,
    tracing::TraceEnd,
};
use crate::{
    probes::{Schedule, ThreadReport},
    run::{CpuCount, Document, UnreadSource},
    sys::root::Root,
};

/// What planning found already.
pub(super) fn planned(plan: &mut RunPlan) -> SetupEvidence {
    let refused = plan.real_time_refused.take().map(|error| {
        let (policy, priority) = (plan.policy.0.value, plan.priority.0.value);
        (policy.to_string(), priority, error)
    });
    let left = std::mem::take(&mut plan.left);
    SetupEvidence { real_time_refused: refused, left, ..SetupEvidence::default() }
}

/// Whether the shield stayed.
pub(super) fn shield(evidence: &mut SetupEvidence, drained: &Drained) {
    evidence.shield_loss = drained.monitor.shield_loss();
    evidence.interrupts_back = drained.monitor.interrupts_back();
}

/// What is known of the measured threads.
pub(super) fn threads(
    plan: &RunPlan,
    reports: Vec<ThreadReport>,
    drained: &Drained,
) -> ThreadEvidence {
    let is_real_time = plan.policy.1.is_real_time();
    ThreadEvidence { is_real_time, reports, deviations: drained.monitor.deviations() }
}

/// What is known of the machine around them.
pub(super) fn machine(
    plan: &RunPlan,
    document: &Document,
    drained: &Drained,
    counted: &Counted,
) -> MachineEvidence {
    let nmis = counted.interrupts.iter().filter(|row| row.source == "NMI");
    MachineEvidence {
        measured: plan.cpus.clone(),
        virtualisation: document.facts.virtualisation.clone(),
        history: drained.monitor.history().clone(),
        cpu_use: counted.machine.iter().flat_map(|machine| &machine.cpus).copied().collect(),
        nmis: nmis.map(|row| CpuCount { cpu: row.cpu, count: row.difference }).collect(),
        smis: drained.monitor.smis(),
        unread: unread(plan, drained),
    }
}

/// What could not be looked at and is of this run.
fn unread(plan: &RunPlan, drained: &Drained) -> Vec<UnreadSource> {
    let mut unread = drained.monitor.unread();
    // Ordinary tasks are not throttled.
    unread.retain(|source| source.source != "/dev/kmsg" || plan.policy.1.is_real_time());
    let has_loads = plan.loads.iter().any(|load| load.name != "idle");
    if has_loads && Root::default().read("/proc/self/stat").is_none() {
        unread.push(UnreadSource::new("what the loads used", "/proc/PID/stat"));
    }
    unread
}

/// How recording went; `refused` is what the disk refused at the end.
pub(super) fn recording(
    drained: &Drained,
    refused: Option<RefusedWrite>,
    traced: Option<TraceEnd>,
) -> Recording {
    let mut recording = drained.recording.clone();
    recording.refused = recording.refused.or(refused);
    if let Some(TraceEnd { refused, helper, .. }) = traced {
        recording.refused = recording.refused.or(refused);
        recording.helpers.extend(helper);
    }
    recording
}

/// When the last loop ended. One that went on to its planned end covered the time up to there: the
/// expiry after its last one would lie beyond.
pub(super) fn end_of(reports: &[ThreadReport], schedule: &Schedule) -> i64 {
    let end = |report: &ThreadReport| match (report.ended, schedule.end_ns) {
        (Ended::Done, planned) if planned < i64::MAX => report.ended_ns.max(planned),
        _ => report.ended_ns,
    };
    reports.iter().map(end).max().unwrap_or_else(now_ns)
}
