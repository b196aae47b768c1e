//! Collects evidence from those who know it: before the start from the plan, at the end from the
//! measured threads, the drain and the recorder.

use anyhow::Result;
use tardy_hot::{clock::now_ns, wakeup::Ended};

use super::{
    RunPlan,
    active_tracing::TraceEnd,
    drain::Drained,
    evidence::{Evidence, MachineEvidence, Recording, RefusedWrite, SetupEvidence, ThreadEvidence},
    figure_collector::FigureCollector,
    machine::Counted,
    profiling::ProfileEnd,
};
use crate::{
    probes::{FinishedAttach, Schedule, ThreadReport, simulated_time::SimulatedTime},
    run::{
        CpuCount, Document, FigureRecord, HelperTime, UnreadSource,
        peaks::{Blame, Cause, CauseOf},
    },
    setup::power::DmaLatency,
    sys::{idle, quota, root::Root},
};

/// What planning found already.
pub(super) fn planned(plan: &mut RunPlan) -> SetupEvidence {
    let refused = plan.real_time_refused.take().map(|error| {
        let (policy, priority) = (plan.policy.asked.value, plan.priority.asked.value);
        (policy.to_string(), priority, error)
    });
    let left = std::mem::take(&mut plan.left);
    SetupEvidence { real_time_refused: refused, left, ..SetupEvidence::default() }
}

/// The request on `/dev/cpu_dma_latency`. What was requested must be available; where it is only
/// the default, a refusal is evidence, unless the request would change nothing here.
pub(super) fn dma_latency(
    plan: &RunPlan,
    evidence: &mut SetupEvidence,
) -> Result<Option<DmaLatency>> {
    if let Some(longest_us) = plan.wishes.max_idle_latency_us {
        return Ok(Some(DmaLatency::hold_asked(longest_us)?));
    }
    let held = plan.hold_dma_latency.then(DmaLatency::hold).transpose();
    Ok(held.unwrap_or_else(|refused| {
        let may_help = idle::chooses_states(&Root::default()) != Some(false);
        evidence.dma_latency_refused = may_help.then_some(refused);
        None
    }))
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
    let is_real_time = plan.policy.granted.is_real_time();
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
        foreign: document.conditions.as_ref().and_then(|found| found.foreign.clone()),
        nmis: nmis.map(|row| CpuCount { cpu: row.cpu, count: row.difference }).collect(),
        smis: drained.monitor.smis(),
        unread: unread(plan, drained),
    }
}

/// What could not be looked at and is of this run.
fn unread(plan: &RunPlan, drained: &Drained) -> Vec<UnreadSource> {
    let mut unread = drained.monitor.unread();
    // Ordinary tasks are not throttled.
    unread.retain(|source| source.source != "/dev/kmsg" || plan.policy.granted.is_real_time());
    let has_loads = plan.loads.iter().any(|load| load.name != "idle");
    // A quota does not stop real-time threads.
    let is_ordinary = !plan.policy.granted.is_real_time();
    if (has_loads || is_ordinary) && quota::has_hidden_groups(&Root::default()) {
        let what = "CPU quotas of the control groups above this container's";
        unread.push(UnreadSource::new(what, "/sys/fs/cgroup"));
    }
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
    length_ns: i64,
) -> Recording {
    let mut recording = Recording { length_ns, ..drained.recording.clone() };
    recording.refused = recording.refused.or(refused);
    if let Some(traced) = traced {
        recording.helpers.extend(traced.helper.clone());
        let blamed = traced.blame().and_then(|blame| blamed_on(blame, &recording.helpers));
        recording.blamed_on_helpers = blamed;
        recording.refused = recording.refused.or(traced.refused);
    }
    recording
}

/// The share of the late samples' time that was blamed on these threads; nothing where no sample
/// was blamed.
fn blamed_on(blame: &Blame, helpers: &[HelperTime]) -> Option<f64> {
    let is_one = |part: &CauseOf| {
        part.cause == Cause::Thread && helpers.iter().any(|helper| helper.thread == part.name)
    };
    let buckets = || blame.buckets.iter().chain(&blame.responses);
    let parts = buckets().flat_map(|bucket| &bucket.parts);
    let own = parts.filter(|(number, ..)| blame.causes.get(*number as usize).is_some_and(is_one));
    let own_ns: u64 = own.map(|(.., ns)| ns).sum();
    let all_ns: u64 = buckets().map(|bucket| bucket.ns).sum();
    (all_ns > 0).then(|| own_ns as f64 / all_ns as f64)
}

/// What there is to say of figures; `refusals` says why some have no value, by their place.
pub(super) fn figures(
    evidence: &mut Evidence,
    document: &Document,
    collected: &FigureCollector,
    refusals: &[(usize, String)],
) {
    evidence.has_figures = collected.have_values();
    evidence.figure_gaps = collected.gaps(refusals);
    evidence.impossible_figures =
        document.figures.iter().filter_map(FigureRecord::impossible).collect();
}

/// What a profile leaves, where there is one.
pub(super) fn profile(evidence: &mut Evidence, profile: Option<ProfileEnd>) {
    let Some(ProfileEnd { evidence: profiled, symbols_hidden, refused, helper }) = profile else {
        return;
    };
    evidence.trace.profiled = Some(profiled);
    evidence.trace.symbols_hidden |= symbols_hidden;
    let recording = &mut evidence.recording;
    recording.refused = recording.refused.take().or(refused);
    recording.helpers.push(helper);
}

/// When the last loop ended. One that continued to its planned end covered the time up to there:
/// the expiry after its last one would lie beyond. Where time was simulated, in that; of threads of
/// others, when counting ended.
pub(super) fn end_of(
    reports: &[ThreadReport],
    schedule: &Schedule,
    simulated: Option<&SimulatedTime>,
    attached: Option<&FinishedAttach>,
) -> i64 {
    if let Some(attached) = attached {
        return attached.ended_ns.max(schedule.start_ns);
    }
    if let Some(time) = simulated {
        return time.ended_ns().max(schedule.start_ns);
    }
    let end = |report: &ThreadReport| match (report.ended, schedule.end_ns) {
        (Ended::Done, planned) if planned < i64::MAX => report.ended_ns.max(planned),
        _ => report.ended_ns,
    };
    reports.iter().map(end).max().unwrap_or_else(now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, LatencyBucket};

    #[test]
    fn what_is_blamed_on_helpers_is_a_share_of_all_late_samples() {
        let of = |cause, name: &str| CauseOf {
            series: "a/1".into(),
            cause,
            name: name.into(),
            basis: Basis::default(),
        };
        let bucket = |ns, parts| LatencyBucket { low_ns: 0, wakeups: 2, ns, parts };
        let helpers = [HelperTime { thread: "tardy/recorder".into(), cpu_ns: 1, longest_ns: 1 }];
        let mut blame = Blame::default();
        assert_eq!(blamed_on(&blame, &helpers), None);
        blame.causes = vec![
            of(Cause::Thread, "tardy/recorder"),
            of(Cause::Thread, "hog"),
            of(Cause::Hardirq, "tardy/recorder"),
        ];
        blame.buckets = vec![bucket(1_000, vec![(0, 1, 200), (1, 1, 700), (2, 1, 50)])];
        blame.responses = vec![bucket(1_000, vec![(0, 2, 400)])];
        assert_eq!(blamed_on(&blame, &helpers), Some(0.3));
    }
}
