//! Fills in `run.json`: as planned, when it begins, when it ends.

use super::{
    Length, RunPlan, caveats, drain::Drained, evidence::Evidence, interval_reader::IntervalReader,
    machine::Counted,
};
use crate::{
    analysis::steadiness::found_in_log,
    loads::{LoadEnd, LoadSpec},
    probes::{Armed, FinishedAttach, Schedule, ThreadReport, Tracing, found_series::FoundSeries},
    run::{
        AskedSetup, Document, Facts, FoundSetup, FoundThread, KnownCost, LoadRecord, Provenance,
        Run, RunDirectory, RunParameters, SCHEMA_VERSION, SetupRecord, Status, TraceBy, TraceMode,
        TraceRecord, Validity,
        conditions::{ForeignRecord, ThreadUse},
        figures::summarize_figure,
        hlog,
        summary::{SeriesHead, summarize},
    },
    setup::{
        arrange::Arranged,
        facts,
        memory::Locked,
        power::DmaLatency,
        settings::SettingChoice,
        threads::{Found, describe},
    },
    sys::{clock::realtime_offset_ns, cpus::Cpus, sched::Scheduling},
};
use tardy_hot::tally::Totals;

/// The record before anything is touched.
pub(super) fn planned(plan: &RunPlan, tracing: Option<&Tracing>, trace: TraceRecord) -> Document {
    let parameters = parameters(plan);
    let facts = facts::read(plan.cpus.iter().next().unwrap_or(0));
    let known_cost = known_cost(plan, &facts, (trace.found, trace.by()));
    Document {
        schema_version: SCHEMA_VERSION,
        id: plan.id.clone(),
        name: plan.name.clone().unwrap_or_else(|| plan.id.clone()),
        argv: plan.argv.clone(),
        provenance: Provenance::measured(env!("CARGO_PKG_VERSION")),
        status: Status::Running,
        validity: Validity::Valid,
        caveats: Vec::new(),
        probe: plan.probe.parameters(),
        log_interval_ns: parameters.log_interval_ns(plan.interval_ns),
        parameters,
        loads: plan.loads.iter().map(planned_load).collect(),
        setup: SetupRecord { asked: Some(asked(plan)), found: FoundSetup::default() },
        trace: TraceRecord { known_cost, ..trace },
        facts,
        started_at: rfc3339(tardy_hot::clock::now_ns()),
        ended_at: None,
        duration_ns: 0,
        start_monotonic_ns: 0,
        machine: None,
        conditions: None,
        messages: None,
        attached: None,
        series: plan.probe.heads(tracing).iter().map(empty).collect(),
        figures: plan.probe.figures().iter().map(|head| summarize_figure(head, &[])).collect(),
        without_host: None,
    }
}

/// What another run found that tracing costs here; this one may yet measure it.
fn known_cost(plan: &RunPlan, facts: &Facts, found: (TraceMode, TraceBy)) -> Option<KnownCost> {
    let mut known = plan.calibrations.iter();
    known.find_map(|known| known.known_to(facts, found, plan.probe.name())).cloned()
}

/// A load that has not started.
pub(super) fn planned_load(spec: &LoadSpec) -> LoadRecord {
    LoadRecord {
        name: spec.name.clone(),
        parameters: spec.parameters.clone(),
        proof: None,
        ended: None,
    }
}

fn empty(head: &SeriesHead) -> crate::run::SeriesSummary {
    summarize(head, &hlog::empty(), &Totals::NONE)
}

/// What the run is to be, whatever its probe.
fn parameters(plan: &RunPlan) -> RunParameters {
    let (duration_ns, samples) = match plan.length {
        Length::Time(ns) => (Some(ns), None),
        Length::Samples(samples) => (None, Some(samples)),
        Length::Unlimited => (None, None),
    };
    let has_peaks = matches!(plan.trace.mode, TraceMode::Auto | TraceMode::Peaks);
    RunParameters {
        duration_ns,
        samples,
        warmup_ns: plan.warmup_ns,
        stop_over_ns: plan.stop_over_ns,
        deadline_ns: plan.deadline_ns,
        raw: plan.raw,
        peaks: has_peaks.then_some(plan.trace.keep as u64),
        peak_over_ns: plan.trace.peak_over_ns.filter(|_| has_peaks),
        profile_hz: plan.profile_hz,
    }
}

fn asked(plan: &RunPlan) -> AskedSetup {
    let (policy, priority, wishes) = (plan.policy.asked, plan.priority.asked, &plan.wishes);
    AskedSetup {
        policy: policy.value.to_string(),
        policy_explicit: policy.explicit,
        priority: if policy.value.is_real_time() { priority.value } else { 0 },
        priority_explicit: priority.explicit,
        cpus: plan.cpus.to_string(),
        timer_slack_ns: plan.slack_ns,
        memory_lock: true,
        dma_latency_us: wishes.max_idle_latency_us.or(plan.hold_dma_latency.then_some(0)),
        shield: wishes.shield,
        governor: wishes.governor.clone(),
        max_idle_latency_us: wishes.max_idle_latency_us,
        no_smt_sibling: wishes.no_smt_sibling,
        housekeeping: wishes.housekeeping.as_ref().map(Cpus::to_string),
        settings: wishes.settings.iter().map(SettingChoice::asked).collect(),
    }
}

/// What is known when the schedule is: the moment of the first expiry.
pub(super) fn begin(document: &mut Document, plan: &RunPlan, armed: &Armed, schedule: &Schedule) {
    document.started_at = rfc3339(schedule.start_ns);
    document.start_monotonic_ns = schedule.start_ns;
    let found = &mut document.setup.found;
    found.threads = armed.found.iter().map(|(series, found)| thread(series, found)).collect();
    found.policy = Some(describe(plan.policy.granted, plan.priority.granted));
}

fn thread(series: &str, found: &Found) -> FoundThread {
    let Scheduling { policy, priority, nice } = found.scheduling.clone();
    FoundThread {
        series: series.to_owned(),
        tid: found.tid,
        policy,
        priority,
        nice,
        cpus: found.cpus.clone(),
        timer_slack_ns: found.timer_slack_ns,
    }
}

/// The result of setting up memory, power and the machine.
pub(super) fn setup(
    document: &mut Document,
    plan: &RunPlan,
    locked: &Locked,
    held: Option<&DmaLatency>,
    arranged: &Arranged,
) {
    let found = &mut document.setup.found;
    found.cpus = Some(plan.cpus.to_string());
    found.memory_lock = Some(locked.found());
    found.dma_latency_us = held.and_then(|held| held.found_us);
    arranged.record(found);
}

/// The series as they are now, and when that is.
pub(super) fn end(
    document: &mut Document,
    schedule: &Schedule,
    end_ns: i64,
    readers: &[IntervalReader],
    found: &[FoundSeries],
) {
    document.ended_at = Some(rfc3339(end_ns));
    document.duration_ns = u64::try_from(end_ns - schedule.start_ns).unwrap_or(0);
    for (series, reader) in document.series.iter_mut().zip(readers) {
        let (counts, totals) = reader.total();
        *series = summarize(&series.head(), &counts, &totals);
    }
    document.series.extend(found.iter().map(FoundSeries::summary));
}

/// What is known of threads of others.
pub(super) fn attached(document: &mut Document, attached: Option<FinishedAttach>) {
    let Some(FinishedAttach { record, figures, .. }) = attached else { return };
    document.figures.extend(figures);
    document.attached = Some(record);
}

/// What the loads did, and how they ended.
pub(super) fn ended_loads(loads: &mut [LoadRecord], ends: &[LoadEnd]) {
    for (load, end) in loads.iter_mut().zip(ends) {
        load.proof.clone_from(&end.proof);
        load.ended = Some(end.ended.clone());
    }
}

/// What the machine did meanwhile, and under which conditions.
pub(super) fn conditions(
    document: &mut Document,
    drained: &Drained,
    reports: &[ThreadReport],
    counted: &Counted,
) {
    let mut conditions = drained.monitor.record();
    conditions.counted_ns = counted.counted_ns;
    conditions.threads = reports.iter().map(thread_use).collect();
    for cpu in &mut conditions.cpus {
        let nmi = counted.interrupts.iter().find(|row| row.source == "NMI" && row.cpu == cpu.cpu);
        cpu.nmis = nmi.map(|row| row.difference);
    }
    conditions.foreign = foreign(document, drained, counted, &conditions.threads);
    document.machine.clone_from(&counted.machine);
    document.conditions = Some(conditions);
}

/// What other programs used of the measured CPUs. Simulated samples have none.
fn foreign(
    document: &Document,
    drained: &Drained,
    counted: &Counted,
    threads: &[ThreadUse],
) -> Option<ForeignRecord> {
    let measured: Cpus = document.setup.found.cpus.as_ref()?.parse().ok()?;
    let (cpus, counted_ns) = (measured.iter().count(), counted.counted_ns?);
    let used = counted.machine.as_ref()?.cpus.iter().filter(|used| measured.contains(used.cpu));
    let busy: f64 = used.map(|used| used.busy - used.steal).sum();
    let own_ns: u64 = threads.iter().map(|thread| thread.cpu_ns).sum();
    let free = (busy - own_ns as f64 / counted_ns.max(1) as f64) / cpus.max(1) as f64;
    let rows = document.attached.iter().flat_map(|attached| &attached.rows);
    let known = rows.filter_map(|row| i32::try_from(row.pid?).ok()).collect();
    let own = i32::try_from(std::process::id()).ok()?;
    drained.monitor.foreign().record((own, &known), cpus, free)
}

fn thread_use(report: &ThreadReport) -> ThreadUse {
    let usage = report.usage;
    ThreadUse {
        series: report.series.clone(),
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        migrations: report.migrations,
        cpu_ns: usage.cpu_ns,
        turns: report.turns,
    }
}

/// The largest latency of all series.
pub(super) fn worst(document: &Document) -> Option<i64> {
    document.wakeups().filter_map(|series| series.max).max()
}

/// The record with what follows from the evidence and from the log, and with the verdict.
pub(super) fn judged(document: Document, evidence: &Evidence, place: &RunDirectory) -> Document {
    let run = Run::of(place.path(), Document { caveats: Vec::new(), ..document });
    let found = found_in_log(&run);
    run.record_with(caveats::caveats(evidence).into_iter().chain(found))
}

/// A moment of `CLOCK_MONOTONIC` as RFC 3339, UTC, to the microsecond.
fn rfc3339(monotonic_ns: i64) -> String {
    let ns = i128::from(monotonic_ns) + i128::from(realtime_offset_ns());
    let time = jiff::Timestamp::from_nanosecond(ns).unwrap_or_default();
    format!("{time:.6}")
}
