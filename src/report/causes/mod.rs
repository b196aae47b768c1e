//! Why wake-ups of a run were late: read and summed here, once for `tardy why`, for the page and
//! for the cells of a matrix.

pub mod cells;
pub mod page;
pub mod responses;
pub mod words;

use std::collections::BTreeSet;

use hdrhistogram::Histogram;

use crate::{
    analysis::{
        bands::{Band, bands, late_responses},
        between::{BetweenThreads, between},
    },
    run::{
        CaveatKind, Document, LATENESS, Run, SeriesSummary, Status,
        hlog::{self, HlogError, IntervalSpan},
        peaks::{Blame, Peak},
        peaks_file::{Brief, Damage},
    },
};

pub use page::{PageBlame, PagePeaks};

/// What a run knows of causes.
#[derive(Debug, Clone, Default)]
pub struct Causes {
    /// What all late wake-ups were blamed on; `None` if that was not recorded, or is damaged.
    pub blame: Option<Blame>,
    /// How far into the run the sums reach, ns, where it did not end in order; 0 where there are
    /// none yet.
    pub summed_ns: Option<i64>,
    /// From the widest to the worst; where `blame` is absent, the worst alone. All but the worst
    /// are of what the sums reach.
    pub bands: Vec<Band>,
    /// The worst wake-ups, worst first; all with `--peak-over`.
    pub worst: Vec<Peak>,
    /// Every wake-up that was kept, in short, by time.
    pub all: Vec<Brief>,
    /// What could not be read.
    pub damaged: Vec<Damage>,
    /// The same as caveats of the run.
    pub caveats: Vec<CaveatKind>,
}

/// What the threads of an attached program did to each other.
#[must_use]
pub fn between_threads(document: &Document, blame: &Blame, peaks: &[Peak]) -> Vec<BetweenThreads> {
    let rows = document.attached.iter().flat_map(|record| &record.rows);
    let known: BTreeSet<&str> = rows.map(|row| row.series.as_str()).collect();
    match known.is_empty() {
        true => Vec::new(),
        false => between(blame, peaks, &known),
    }
}

impl Causes {
    /// Reads them; `total` holds all whole latencies of the run that can be blamed.
    #[must_use]
    pub fn of(run: &Run, total: &Histogram<u64>) -> Self {
        let peaks = run.peaks();
        let mut caveats: Vec<CaveatKind> = peaks.caveat().into_iter().collect();
        let mut damaged = peaks.damaged;
        let blame = run.blame().unwrap_or_else(|damage| {
            caveats.push(CaveatKind::TrackDamaged { what: damage.to_string() });
            damaged.push(damage);
            None
        });
        let summed_ns = blame.as_ref().and_then(|blame| summed_ns(run, blame));
        let blame = blame.filter(|_| summed_ns != Some(0));
        let document = &run.document;
        let max = blamed(document).filter_map(|(_, series)| series.max).max().unwrap_or(0);
        let known = blame.clone().unwrap_or_default();
        let bands_of = |total: &Histogram<u64>| bands(total, max, &known, &peaks.worst);
        let (worst, mut bands): (Vec<Band>, Vec<Band>) =
            bands_of(total).into_iter().partition(|band| band.name == "worst");
        match (&blame, summed_ns) {
            // Without sums, a band of them would say that nothing was blamed.
            (None, _) => bands.clear(),
            // Nor was what came since blamed on anybody.
            (Some(_), Some(until_ns)) => {
                bands = bands_of(&total_until(run, until_ns));
                bands.retain(|band| band.name != "worst");
            }
            (Some(_), None) => {}
        }
        bands.extend(worst);
        if let Some(late) = blame.as_ref().and_then(|blame| late(document, blame)) {
            bands.insert(0, late);
        }
        Self { blame, summed_ns, bands, worst: peaks.worst, all: peaks.all, damaged, caveats }
    }
}

/// The series whose late samples bands speak of, with their numbers: wake-ups, also where responses
/// lead.
pub(in crate::report) fn blamed(
    document: &Document,
) -> impl Iterator<Item = (usize, &SeriesSummary)> {
    let is_wakeup = |series: &SeriesSummary| {
        let is_led = series.stage.as_deref() == Some(LATENESS);
        series.thread_of.is_none() && !series.is_response() && (is_led || !series.is_stage())
    };
    let all = document.series.iter().enumerate();
    all.filter(move |(_, series)| is_wakeup(series) && document.can_be_blamed(series))
}

/// The band of cycles over the deadline, where attached threads have one.
fn late(document: &Document, blame: &Blame) -> Option<Band> {
    let judged = document.judged_cycles();
    let max = judged.iter().filter_map(|own| own.response.max).max()?;
    late_responses(blame, max)
}

/// How far into the run its sums reach, ns; nothing where it ended in order, and so has them all,
/// and where an older tardy does not say.
fn summed_ns(run: &Run, blame: &Blame) -> Option<i64> {
    if !matches!(run.document.status, Status::Running | Status::Crashed) {
        return None;
    }
    match blame.until_ns {
        Some(until_ns) => Some(until_ns.saturating_sub(run.document.start_monotonic_ns).max(1)),
        None => (blame.blamed == 0).then_some(0),
    }
}

/// Whole latencies of a run that can be blamed, in the intervals of which more than half lies
/// before then.
fn total_until(run: &Run, until_ns: i64) -> Histogram<u64> {
    let until_s = until_ns as f64 / 1e9;
    let is_before = |span: &IntervalSpan| span.start_s + span.length_s / 2.0 < until_s;
    total_where(run, is_before).0
}

/// All whole latencies of a run that can be blamed: what there is up to the first damaged line,
/// where there is one.
pub fn total(run: &Run) -> (Histogram<u64>, Result<(), HlogError>) {
    total_where(run, |_| true)
}

fn total_where(
    run: &Run,
    is_meant: impl Fn(&IntervalSpan) -> bool,
) -> (Histogram<u64>, Result<(), HlogError>) {
    let mut total = hlog::empty();
    let mut is_blamed = vec![false; run.document.series.len()];
    for (number, _) in blamed(&run.document) {
        is_blamed.iter_mut().skip(number).take(1).for_each(|own| *own = true);
    }
    let read = run.intervals(|number, span, counts| {
        if is_blamed.get(number).is_some_and(|is_blamed| *is_blamed) && is_meant(&span) {
            // Bounds are equal, so that nothing can be lost.
            let _ = total.add(&counts);
        }
    });
    (total, read)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;
    use crate::run::{
        BlameFiles, InteractiveParameters, InteractiveTask, IntervalOf, PeakRoom, ProbeRecord,
        RunWriter,
        hlog::LogLine,
        peaks::{Basis, Cause, CauseOf, LatencyBucket},
    };

    const SECOND_NS: i64 = 1_000_000_000;

    /// A second of the run: 2,000 wake-ups, `late` of which were late.
    fn second(number: u32, late: u64) -> IntervalOf {
        let mut counts = hlog::empty();
        counts.record_n(10_000, 2_000 - late).unwrap();
        counts.record_n(100_000, late).unwrap();
        let span = IntervalSpan { tag: "cpu0".into(), start_s: f64::from(number), length_s: 1.0 };
        let mut totals = None;
        let count = 2_000 * (number + 1);
        let text = format!("#[Totals: tag=cpu0 count={count} min_ns=10000 max_ns=100000]\n");
        let found = |line| match line {
            LogLine::Totals(_, found) => totals = Some(found),
            LogLine::Interval(..) => {}
        };
        hlog::read(text.as_bytes(), found).unwrap();
        IntervalOf { span, counts, totals: totals.unwrap() }
    }

    /// A run that was killed after two seconds, with 15 late wake-ups in the first and 19 in the
    /// second, and these sums.
    fn killed(blame: &Blame) -> (TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r");
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let mut document = Run::open(&fixture).unwrap().document;
        document.series.truncate(1);
        assert_eq!(document.series[0].name, "cpu0");
        (document.status, document.start_monotonic_ns) = (Status::Running, 5 * SECOND_NS);
        let mut maker = RunWriter::create(&path, &document, false).unwrap();
        maker.begin(&document).unwrap();
        maker.append_intervals(&[second(0, 15), second(1, 19)]).unwrap();
        let mut files = BlameFiles::create(maker.directory(), PeakRoom::new(u64::MAX)).unwrap();
        files.replace_blame(blame).unwrap();
        (place, path)
    }

    fn causes(path: &Path) -> Causes {
        let run = Run::open(path).unwrap();
        assert_eq!(run.document.status, Status::Crashed);
        Causes::of(&run, &total(&run).0)
    }

    fn names(causes: &Causes) -> Vec<&str> {
        causes.bands.iter().map(|band| band.name.as_str()).collect()
    }

    #[test]
    fn sums_of_a_run_that_goes_on_are_compared_with_what_they_reach() {
        let of = CauseOf {
            series: "cpu0".into(),
            cause: Cause::Softirq,
            name: "NET_RX".into(),
            basis: Basis::Measured,
        };
        let bucket = LatencyBucket {
            low_ns: 98_304,
            wakeups: 15,
            ns: 15 * 100_000,
            parts: vec![(0, 15, 15 * 100_000)],
        };
        let until_ns = Some(6 * SECOND_NS + 1_000_000);
        let (causes_of, buckets) = (vec![of], vec![bucket]);
        let blame = Blame { until_ns, blamed: 15, causes: causes_of, buckets, ..Blame::default() };
        let (_place, path) = killed(&blame);
        let found = causes(&path);
        assert_eq!(found.summed_ns, Some(SECOND_NS + 1_000_000));
        assert_eq!(names(&found), ["p99", "worst"]);
        // Of both seconds it would be less than a half.
        assert!(found.bands[0].blamed_share > 0.99, "{:?}", found.bands[0]);
        assert_eq!(found.bands[0].wakeups, 15);
    }

    #[test]
    fn frames_of_a_task_that_never_sleeps_are_in_no_band() {
        let (_place, path) = killed(&Blame::default());
        let mut run = Run::open(&path).unwrap();
        let mut of_task = |period_ns| {
            let task = InteractiveTask { name: "cpu0".into(), period_ns, work_ns: Some(1) };
            let tasks = vec![task];
            let parameters = InteractiveParameters { tasks, cpu: 0, loops_per_ms: None };
            run.document.probe = ProbeRecord::Interactive(parameters);
            total(&run).0.len()
        };
        assert_eq!((of_task(Some(2)), of_task(None)), (4_000, 0));
    }

    #[test]
    fn before_the_first_sums_nothing_is_said_of_them() {
        let (_place, path) = killed(&Blame::default());
        let found = causes(&path);
        assert_eq!((found.summed_ns, &found.blame), (Some(0), &None));
        assert_eq!(names(&found), ["worst"]);
    }
}
