//! A run that is followed look by look holds what one reads of it that is read at once.

use std::path::Path;

use tardy_hot::tally::Totals;

use super::*;
use crate::run::{
    BlameFiles, IntervalOf, LiveLoad, PeakRoom, Run, RunWriter, SeriesHead,
    hlog::{self, IntervalSpan},
    peaks::{Basis, Blame, Cause, Part, Peak},
    summary::summarize,
    tracks::to_csv,
};

const NAMES: [&str; 3] = ["cpu0", "cpu0/irq", "cpu1"];

fn planned() -> Document {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
    let mut document = Run::open(&fixture).unwrap().document;
    let head =
        |name: &&str| SeriesHead { name: (*name).into(), cpu: Some(0), period_ns: Some(1_000_000) };
    let series = NAMES.iter().map(|name| summarize(&head(name), &hlog::empty(), &Totals::NONE));
    (document.status, document.series) = (Status::Running, series.collect());
    document
}

/// A series that is written interval by interval, as the drain does it.
struct Written {
    name: &'static str,
    counts: hdrhistogram::Histogram<u64>,
    totals: Totals,
    start_s: f64,
}

impl Written {
    fn new(name: &'static str) -> Self {
        Self { name, counts: hlog::empty(), totals: Totals::NONE, start_s: 0.0 }
    }

    fn measure(&mut self, values: &[i64]) {
        for ns in values {
            self.counts.record(ns.unsigned_abs()).unwrap();
            let totals = &mut self.totals;
            totals.count += 1;
            totals.sum_ns += ns;
            (totals.min_ns, totals.max_ns) = (totals.min_ns.min(*ns), totals.max_ns.max(*ns));
            totals.missed += u64::try_from(ns / 1_000_000).unwrap();
        }
    }

    fn interval(&self, end_s: f64) -> IntervalOf {
        let (start_s, length_s) = (self.start_s, end_s - self.start_s);
        let span = IntervalSpan { tag: self.name.into(), start_s, length_s };
        IntervalOf { span, counts: self.counts.clone(), totals: self.totals }
    }

    fn keep(&mut self, end_s: f64) {
        (self.counts, self.start_s) = (hlog::empty(), end_s);
    }
}

/// Name, samples, missed periods, the largest, p50 and p99 of a series.
type Known = (String, u64, u64, i64, Vec<Option<i64>>);

/// What is known of each whole series, and what reading all of it says.
fn known(follower: &RunFollower) -> Vec<Known> {
    let series = follower.series().iter().enumerate();
    let one = |(number, series): (usize, &FollowedSeries)| {
        let Totals { count, missed, max_ns, .. } = series.totals;
        let quantiles = follower.quantiles(number, &[0.5, 0.99]);
        (series.head.name.clone(), count, missed, max_ns, quantiles)
    };
    series.map(one).collect()
}

fn whole(directory: &Path) -> Vec<Known> {
    let run = Run::open(directory).unwrap();
    let whole = run.document.series.iter().filter(|series| !series.is_stage());
    let one = |series: &crate::run::SeriesSummary| {
        let (max, missed) = (series.max.unwrap(), series.missed.unwrap());
        (
            series.name.clone(),
            series.count,
            missed,
            max,
            ["50", "99"].map(|name| i64::try_from(series.percentiles[name]).ok()).to_vec(),
        )
    };
    whole.map(one).collect()
}

#[test]
fn looks_at_what_was_added_come_to_what_is_read_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut maker = RunWriter::create(&path, &planned(), false).unwrap();
    maker.begin(&planned()).unwrap();
    let mut follower = RunFollower::open(&path).unwrap();
    let mut series = NAMES.map(Written::new);
    let mut nothing = || ();
    for step in 1..40_i64 {
        for (number, series) in (1..).zip(&mut series) {
            let values = [step * 1_000 * number, 77 * step, 3_000_000 % (step * 9_001)];
            series.measure(&values);
        }
        let end_s = step as f64;
        let mut intervals = series.iter().map(|series| series.interval(end_s));
        if step % 5 == 0 {
            maker.append_intervals_with(&mut intervals, &mut nothing).unwrap();
            series.iter_mut().for_each(|series| series.keep(end_s));
        } else {
            maker.replace_live(&mut intervals, &mut nothing).unwrap();
        }
        // Some looks come after several writes, also of both kinds.
        if step % 7 != 3 {
            follower.look();
            assert_eq!(known(&follower), whole(&path), "after {step} s");
        }
    }
    assert_eq!((follower.damage(), follower.read()), (&[][..], 1.0));
    let minute = follower.series()[0].minute.until(38);
    assert_eq!(minute.iter().flatten().count(), 39, "each second once: {minute:?}");
    let (from_s, to_s) = follower.series()[0].worst_s.unwrap();
    assert!(from_s < to_s && to_s <= 39.0);
    assert_eq!(follower.end_s(), 39.0);
}

#[test]
fn series_that_are_found_meanwhile_are_followed_where_the_probe_finds_them() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
    let mut document = Run::open(&fixture).unwrap().document;
    (document.status, document.series) = (Status::Running, Vec::new());
    let added = |finds: bool| {
        let mut log = SeriesLog::new(&path, &document, finds);
        log.look();
        log.series().iter().map(|series| series.head.name.clone()).collect::<Vec<_>>()
    };
    let mut maker = RunWriter::create(&path, &document, false).unwrap();
    maker.begin(&document).unwrap();
    let mut found = ["app", "app/12", "app/12/dispatch"].map(Written::new);
    found.iter_mut().for_each(|series| series.measure(&[5_000]));
    let intervals: Vec<_> = found.iter().map(|series| series.interval(1.0)).collect();
    maker.append_intervals(&intervals).unwrap();
    assert_eq!((added(true), added(false)), (vec!["app".into(), "app/12".into()], vec![]));
}

fn peak(at_ns: i64, latency_ns: i64, cause: Cause) -> Peak {
    let part = Part {
        cause,
        name: "NET_RX".into(),
        task: None,
        ns: latency_ns.unsigned_abs(),
        basis: Basis::Measured,
        evidence: None,
        stack: Vec::new(),
    };
    Peak {
        at_ns: Some(at_ns),
        series: "cpu0".into(),
        tid: None,
        cpu: 0,
        latency_ns,
        stages: None,
        ways: Vec::new(),
        blame: vec![part],
        timeline: Vec::new(),
        left_out: 0,
    }
}

#[test]
fn peaks_loads_and_what_is_known_meanwhile_are_followed_and_the_end_is_seen() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut maker = RunWriter::create(&path, &planned(), false).unwrap();
    maker.begin(&planned()).unwrap();
    let mut blame = BlameFiles::create(maker.directory(), PeakRoom::new(u64::MAX)).unwrap();
    let mut follower = RunFollower::open(&path).unwrap();
    follower.look();
    assert_eq!(
        (follower.worst(), follower.recent_causes(), follower.state()),
        (vec![], None, None)
    );
    blame.append_peaks(&[peak(1, 500, Cause::Softirq), peak(2, 900, Cause::Softirq)]).unwrap();
    blame.append_peaks(&[peak(3, 700, Cause::Host), peak(4, 600, Cause::Softirq)]).unwrap();
    blame.replace_blame(&Blame { until_ns: Some(9), blamed: 4, ..Blame::default() }).unwrap();
    let row = |t_s, rate| LoadRow { t_s, load: 1, operations_per_s: rate };
    maker.append(names::LOADS, &to_csv(&[row(1.0, 5.0)], true)).unwrap();
    let load = LiveLoad { name: "hackbench".into(), ..LiveLoad::default() };
    let state = LiveState { at_ns: 7, loads: vec![load], caveats: Vec::new() };
    maker.replace_state(&state).unwrap();
    follower.look();
    let worst: Vec<_> =
        follower.worst().iter().map(|peak| (peak.at_ns.unwrap(), peak.latency_ns)).collect();
    assert_eq!(worst, [(2, 900), (3, 700)], "of each cause the worst");
    let read = follower.worst()[0].whole(&path).unwrap();
    assert_eq!(read, peak(2, 900, Cause::Softirq));
    assert_eq!(follower.recent_causes().unwrap().blamed, 4);
    assert_eq!((follower.load_rate(1), follower.load_rate(0)), (Some((1.0, 5.0)), None));
    maker.append(names::LOADS, &to_csv(&[row(2.0, 6.0)], false)).unwrap();
    blame.append_peaks(&[peak(5, 950, Cause::Softirq)]).unwrap();
    follower.look();
    assert_eq!((follower.load_rate(1), follower.worst()[0].at_ns), (Some((2.0, 6.0)), Some(5)));
    assert_eq!(follower.state(), Some(&state));
    let ended = Document { status: Status::Complete, ..planned() };
    maker.finish(&ended).unwrap();
    follower.look();
    assert_eq!((follower.document().status, follower.state()), (Status::Complete, None));
}

#[test]
fn a_run_whose_maker_went_away_is_seen_to_have_crashed_and_damage_is_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let mut maker = RunWriter::create(&path, &planned(), false).unwrap();
    maker.begin(&planned()).unwrap();
    drop(maker);
    let mut follower = RunFollower::open(&path).unwrap();
    follower.look();
    assert_eq!(follower.document().status, Status::Crashed);
    std::fs::write(path.join(names::SERIES), "Tag=cpu0,0.0,1.0,1.0,HISTG\n").unwrap();
    std::fs::write(path.join(names::STATE), "{").unwrap();
    std::fs::write(path.join(names::PEAKS), "{\n").unwrap();
    std::fs::write(path.join(names::BLAME), "{").unwrap();
    let mut follower = RunFollower::open(&path).unwrap();
    follower.look();
    let damage = follower.damage().join("; ");
    for file in [names::SERIES, names::STATE, names::PEAKS, names::BLAME] {
        assert!(damage.contains(file), "{file}: {damage}");
    }
    assert_eq!(follower.quantiles(0, &[0.5]), [None]);
    assert!(RunFollower::open(place.path()).is_err(), "a directory without a run is refused");
}
