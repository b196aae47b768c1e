//! What a run that has ended gives reason to doubt.

use std::io;

use tardy_hot::wakeup::Ended;

use super::{conditions::Watcher, drain::Recording};
use crate::{
    loads::{LoadEnd, LoadFault, LoadSpec},
    probes::Report,
    run::{
        Document, Doubt, Facts, Incident, MissingTracepoint, SeriesSummary, TraceDoubt, TraceMode,
        conditions::CpuUse, tracks::InterruptCount,
    },
    setup::threads::plain,
    sys::{cpus::Cpus, sched::Policy},
    units::Nanos,
};

/// A drain later than this is worth a word: an interval of the shortest log.
const LATE_NS: i64 = 500_000_000;

/// A larger share of a measured CPU's time that went to the hypervisor's other guests weakens: one
/// wake-up in twenty may then be the host's. Of less, `virtual_machine` has said enough.
const STEAL: f64 = 0.05;

/// More than one wake-up in so many without stages is told: percentiles of stages would be of
/// other wake-ups than those of the whole latency.
const UNMATCHED: u64 = 1_000;

/// From how the measuring threads fared, and how they were found by the `watcher` meanwhile.
pub fn of_threads(doubts: &mut Vec<Doubt>, reports: &[Report], watcher: &Watcher) {
    let list = |line: &dyn Fn(&Report) -> Option<String>| {
        let lines: Vec<String> = reports
            .iter()
            .filter_map(|report| Some(format!("{}: {}", report.series, line(report)?)))
            .collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    };
    let seen = |series: &str| {
        let (_, how) = watcher.broken().find(|(broken, _)| *broken == series)?;
        Some(how.to_owned())
    };
    let broken = list(&|report| report.broken.clone().or_else(|| seen(&report.series)));
    doubts.extend(broken.map(|what| Doubt::ThreadNotAsAsked { what }));
    let failed = list(&|report| match report.ended {
        Ended::Failed(errno) => Some(plain(&io::Error::from_raw_os_error(errno))),
        Ended::Done | Ended::Stopped => None,
    });
    doubts.extend(failed.map(|what| Doubt::WaitFailed { what }));
    let faults = list(&|report| {
        let (minor, major) = (report.usage.minor_faults, report.usage.major_faults);
        (minor + major > 0).then(|| format!("{minor} minor, {major} major"))
    });
    doubts.extend(faults.map(|what| Doubt::PageFaults { what }));
    let times = |count: u64| (count > 0).then(|| format!("{count} times"));
    let moved = list(&|report| times(report.migrations.unwrap_or(0)));
    let moved = moved.map(|what| Doubt::Happened(Incident::ThreadMigrated { what }));
    doubts.extend(moved);
}

/// From who took a measured CPU from a real-time thread. Where several are measured on one CPU,
/// that is what they are for.
pub fn of_preemption(
    doubts: &mut Vec<Doubt>,
    policy: Policy,
    series: &[SeriesSummary],
    reports: &[Report],
) {
    if !policy.is_real_time() {
        // An ordinary task takes turns.
        return;
    }
    let is_alone = |name: &str| {
        let own = series.iter().find(|known| known.name == name);
        own.is_some_and(|own| series.iter().filter(|other| other.cpu == own.cpu).count() == 1)
    };
    let line = |report: &Report| {
        let times = report.usage.involuntary_switches;
        let told = times > 0 && is_alone(&report.series);
        told.then(|| format!("{}: {times} times", report.series))
    };
    let lines: Vec<String> = reports.iter().filter_map(line).collect();
    if !lines.is_empty() {
        doubts.push(Doubt::Happened(Incident::ThreadPreempted { what: lines.join("; ") }));
    }
}

/// From what the hypervisor took of the measured CPUs.
pub fn of_steal(doubts: &mut Vec<Doubt>, measured: &Cpus, cpus: &[CpuUse]) {
    let line = |cpu: &CpuUse| {
        let told = cpu.steal > STEAL && measured.contains(cpu.cpu);
        told.then(|| format!("{:.1} % of CPU {}", cpu.steal * 100.0, cpu.cpu))
    };
    let lines: Vec<String> = cpus.iter().filter_map(line).collect();
    if !lines.is_empty() {
        doubts.push(Doubt::Happened(Incident::StealTime { what: lines.join(", ") }));
    }
}

/// From the interrupts that nobody can put off.
pub fn of_interrupts(doubts: &mut Vec<Doubt>, measured: &Cpus, rows: &[InterruptCount]) {
    let is_told = |row: &&InterruptCount| {
        row.source == "NMI" && row.difference > 0 && measured.contains(row.cpu)
    };
    let line = |row: &InterruptCount| format!("{} on CPU {}", row.difference, row.cpu);
    let lines: Vec<String> = rows.iter().filter(is_told).map(line).collect();
    if !lines.is_empty() {
        doubts.push(Doubt::Happened(Incident::NmiSeen { what: lines.join(", ") }));
    }
}

/// From how the loads ended.
pub fn of_loads(doubts: &mut Vec<Doubt>, specs: &[LoadSpec], ends: &[LoadEnd]) {
    for (spec, end) in specs.iter().zip(ends) {
        let load = spec.name.clone();
        let idle = end.proof.as_ref().map_or((0, 0), |proof| (proof.tasks_idle, proof.tasks));
        if let (None, (1.., _)) = (&end.fault, idle) {
            let what = format!("{} of {} tasks", idle.0, idle.1);
            doubts.push(Doubt::LoadInPart { load: load.clone(), what });
        }
        match &end.fault {
            Some(LoadFault::Died(how)) => doubts.push(Doubt::LoadDied { load, how: how.clone() }),
            Some(LoadFault::DidNothing) => doubts.push(Doubt::LoadDidNothing { load }),
            None => {}
        }
    }
}

/// From how recording went; `other` is what the disk refused of other files.
pub fn of_recording(doubts: &mut Vec<Doubt>, recording: &Recording, other: Option<String>) {
    if recording.lost > 0 {
        doubts.push(Doubt::SamplesLost { lost: recording.lost });
    }
    if recording.late_ns > LATE_NS {
        doubts.push(Doubt::DrainLate { by: Nanos(recording.late_ns).to_string() });
    }
    let refused = recording.refused.clone().or(other);
    doubts.extend(refused.map(|what| Doubt::RecordIncomplete { what }));
    let why = recording.not_real_time.clone();
    doubts.extend(why.map(|why| Doubt::HelpersNotRealTime { why }));
}

/// From how often the firmware took the machine away.
pub fn of_smis(doubts: &mut Vec<Doubt>, smis: Option<u64>) {
    let count = smis.filter(|count| *count > 0);
    doubts.extend(count.map(|count| Doubt::Happened(Incident::SmiSeen { count })));
}

/// From the series of whole latencies.
pub fn of_series(doubts: &mut Vec<Doubt>, series: &[SeriesSummary]) {
    if series.iter().all(|series| series.count == 0) {
        doubts.push(Doubt::NoSamples);
    }
    let early = series.iter().map(|series| series.early).sum();
    if early > 0 {
        doubts.push(Doubt::EarlyWakeups { early });
    }
    let share = |series: &SeriesSummary| {
        let missed = series.missed.unwrap_or(0);
        let percent = missed as f64 * 100.0 / (series.count + missed).max(1) as f64;
        (percent >= 1.0).then(|| format!("{percent:.1} % on {}", series.name))
    };
    let shares: Vec<String> = series.iter().filter_map(share).collect();
    if !shares.is_empty() {
        doubts.push(Doubt::PeriodsMissed { what: shares.join(", ") });
    }
}

/// From what tracing found, and did not.
pub fn of_trace(doubts: &mut Vec<Doubt>, document: &Document) {
    let trace = &document.trace;
    let line = |missing: &MissingTracepoint| {
        format!("no {} ({}): {}", missing.switches_off, missing.tracepoint, missing.why)
    };
    let mut lines: Vec<String> = trace.missing.iter().map(line).collect();
    if let (TraceMode::Stages, Some(why)) = (trace.found, &trace.why_not) {
        lines.push(format!("stages alone, no causes: {why}"));
    }
    if !lines.is_empty() {
        doubts.push(TraceDoubt::TracedInPart { what: lines.join("; ") }.into());
    }
    if trace.lost_events > 0 {
        doubts.push(TraceDoubt::EventsLost { lost: trace.lost_events }.into());
    }
    let wakeups: u64 = document.wakeups().map(|series| series.count).sum();
    if trace.unmatched > wakeups / UNMATCHED {
        let what = format!("{} of {wakeups}", trace.unmatched);
        doubts.push(TraceDoubt::WakeupsUnmatched { what }.into());
    }
}

/// From what the machine is.
pub fn of_facts(doubts: &mut Vec<Doubt>, facts: &Facts) {
    doubts.extend(facts.virtualisation.clone().map(|kind| Doubt::Virtual { kind }));
}

#[cfg(test)]
mod tests;
