//! Caveats of the measured threads: what they ran as, and what disturbed them.

use tardy_hot::wakeup::Ended;

use super::super::evidence::{Evidence, Recording, ThreadEvidence};
use crate::{
    probes::ThreadReport,
    run::{
        CaveatKind, OsError, SeriesCount, SeriesSummary, SetupCaveat, ThreadCaveat,
        ThreadDeviation, ThreadError, ThreadFaults,
    },
};

/// Background threads that take more than this share (1 in `BUSY_SHARE`) of the measured CPUs
/// change the measurement.
const BUSY_SHARE: u64 = 20;

/// A tail of which helpers are such a part is not the one that the machine has without them.
const BLAMED_SHARE: f64 = 0.25;

/// To wait this long for a helper is worth a word: an idle machine wakes an ordinary thread sooner.
const LONG_NS: u64 = 100_000;

pub(super) fn caveats(evidence: &Evidence) -> Vec<CaveatKind> {
    let reports = &evidence.threads.reports;
    let mut found = Vec::new();
    let mut note = |is_some: bool, caveat: ThreadCaveat| {
        found.extend(is_some.then(|| CaveatKind::from(caveat)));
    };
    let threads = deviations(&evidence.threads);
    // A watchdog that ended the run may have made ordinary tasks of them, and has its own caveat.
    let is_by_watchdog = evidence.setup.watchdog.is_some();
    note(!threads.is_empty() && !is_by_watchdog, ThreadCaveat::NotAsAsked { threads });
    let threads: Vec<ThreadError> = reports.iter().filter_map(failure).collect();
    note(!threads.is_empty(), ThreadCaveat::WaitFailed { threads });
    let threads: Vec<ThreadFaults> = reports.iter().filter_map(faults).collect();
    note(!threads.is_empty(), ThreadCaveat::PageFaults { threads });
    let threads = counts(reports, |report| report.migrations.unwrap_or(0));
    note(!threads.is_empty(), ThreadCaveat::Migrated { threads });
    let threads = preemptions(&evidence.threads, &evidence.series);
    note(!threads.is_empty(), ThreadCaveat::Preempted { threads });
    found.extend(helpers_beside(evidence).map(CaveatKind::from));
    found.extend(helpers_busy(evidence).map(CaveatKind::from));
    found.extend(helpers_blamed(&evidence.recording).map(CaveatKind::from));
    found
}

/// That measured threads had to share their CPUs with helpers, where those go before them.
fn helpers_beside(evidence: &Evidence) -> Option<SetupCaveat> {
    let helpers = evidence.recording.helpers.clone();
    let is_long = helpers.iter().any(|helper| helper.longest_ns > LONG_NS);
    (evidence.setup.helpers_beside && is_long).then_some(SetupCaveat::HelpersBeside { helpers })
}

/// That these took much of them.
fn helpers_busy(evidence: &Evidence) -> Option<SetupCaveat> {
    let recording = &evidence.recording;
    let cpu_ns: u64 = recording.helpers.iter().map(|helper| helper.cpu_ns).sum();
    let length_ns = u64::try_from(recording.length_ns).unwrap_or(0);
    let cpus = evidence.machine.measured.iter().count() as u64;
    let all_ns = length_ns.saturating_mul(cpus);
    let is_busy = evidence.setup.helpers_beside && all_ns > 0 && cpu_ns > all_ns / BUSY_SHARE;
    let percent = u128::from(cpu_ns) * 100 / u128::from(all_ns.max(1));
    let percent = u64::try_from(percent).unwrap_or(u64::MAX);
    let mut rows = evidence.attached.iter().flat_map(|attached| &attached.rows);
    let has_deadline = rows.any(|row| row.over.is_some());
    is_busy.then_some(SetupCaveat::HelpersBusy { cpu_ns, percent, has_deadline })
}

/// That they made up much of what was late.
fn helpers_blamed(recording: &Recording) -> Option<SetupCaveat> {
    let share = recording.blamed_on_helpers.filter(|share| *share >= BLAMED_SHARE)?;
    let threads = recording.helpers.iter().map(|helper| helper.thread.clone()).collect();
    Some(SetupCaveat::HelpersBlamed { threads, percent: (share * 100.0).round() as u64 })
}

/// Each thread once: what it found itself, or else what was found meanwhile.
fn deviations(threads: &ThreadEvidence) -> Vec<ThreadDeviation> {
    let deviation = |report: &ThreadReport| {
        let seen = threads.deviations.iter().find(|seen| seen.series == report.series);
        let deviation = report.broken.clone().or_else(|| Some(seen?.deviation.clone()))?;
        Some(ThreadDeviation { series: report.series.clone(), deviation })
    };
    threads.reports.iter().filter_map(deviation).collect()
}

fn failure(report: &ThreadReport) -> Option<ThreadError> {
    match report.ended {
        Ended::Failed(errno) => {
            Some(ThreadError { series: report.series.clone(), error: OsError::of(errno) })
        }
        Ended::Done | Ended::Stopped => None,
    }
}

fn faults(report: &ThreadReport) -> Option<ThreadFaults> {
    let (minor, major) = (report.usage.minor_faults, report.usage.major_faults);
    let series = report.series.clone();
    (minor + major > 0).then_some(ThreadFaults { series, minor, major })
}

fn counts(reports: &[ThreadReport], of: impl Fn(&ThreadReport) -> u64) -> Vec<SeriesCount> {
    let count =
        |report: &ThreadReport| SeriesCount { series: report.series.clone(), count: of(report) };
    reports.iter().map(count).filter(|of| of.count > 0).collect()
}

/// How often a real-time thread had to leave its CPU to another one. Ordinary tasks take turns, and
/// where several are measured on one CPU, so do these.
fn preemptions(threads: &ThreadEvidence, series: &[SeriesSummary]) -> Vec<SeriesCount> {
    let is_alone = |name: &str| {
        let own = series.iter().find(|known| known.name == name);
        own.is_some_and(|own| series.iter().filter(|other| other.cpu == own.cpu).count() == 1)
    };
    counts(&threads.reports, |report| match threads.is_real_time && is_alone(&report.series) {
        true => report.usage.involuntary_switches,
        false => 0,
    })
}
