//! From runs to the data of a page: bins, curves, points and tracks. Reads runs, computes nothing
//! that `run` has not defined.

use std::path::Path;

use hdrhistogram::Histogram;

use super::{
    binned::{Binned, histogram},
    causes::{self, Causes},
    curve::curve,
    deadline::{SeriesDeadline, deadlines},
    headline,
    page::{
        InterruptRow, LoadTrack, MachineTrack, Page, PageRun, PageScheduled, PageSeries, PageStage,
        Points,
    },
    points::PointThinner,
    profile::PageCpuUse,
    sample_name::SampleName,
    tail::RunTail,
    time_range::TimeRange,
    tracks, without_host, words,
};
use crate::analysis::{between::BetweenThreads, steadiness::SeriesBlocks};
use crate::run::{
    CaveatKind, Document, LatencyView, Run, SeriesSummary, names,
    per_period::per_period,
    tracks::{InterruptCount, LoadRow, MachineRow, from_csv},
};

/// Bins of latency per factor of ten: narrow enough for a shape, wide enough to be seen.
const BINS_PER_DECADE: u32 = 25;

/// The data of a page that shows `runs` side by side.
#[must_use]
pub fn page(runs: Vec<Run>) -> Page {
    page_within(runs, TimeRange::ALL)
}

/// The same of a stretch of time of each run: what lies outside is neither counted nor thinned, but
/// the records speak of whole runs.
#[must_use]
pub fn page_within(mut runs: Vec<Run>, within: TimeRange) -> Page {
    for run in &mut runs {
        by_names(&mut run.document);
        run.document.lead_by_responses();
    }
    let documents = || runs.iter().map(|run| &run.document);
    let edges = latency_edges(documents());
    let mut of_runs: Vec<PageRun> = runs.iter().map(|run| page_run(run, &edges, within)).collect();
    if of_runs.len() > 1 && documents().any(LatencyView::lacks_periods) {
        // Side by side only what all of them have says something.
        of_runs.iter_mut().for_each(|run| run.scheduled_first = false);
    }
    Page { runs: of_runs, latency_edges_ns: edges, ..Page::empty(documents()) }
}

/// Leaves the series and figures of attached threads by their names: single threads may be
/// hundreds, and their samples are in those.
fn by_names(document: &mut Document) {
    let threads: Vec<String> = document.threads().map(|own| format!("{}/", own.name)).collect();
    document.series.retain(|series| series.thread_of.is_none());
    document.figures.retain(|figure| !threads.iter().any(|own| figure.name.starts_with(own)));
}

/// Edges in equal steps of the logarithm that hold every latency of every run.
fn latency_edges<'a>(documents: impl Iterator<Item = &'a Document>) -> Vec<u64> {
    let (mut low, mut high) = (u64::MAX, 0);
    for series in documents.flat_map(|document| &document.series) {
        low = low.min(u64::try_from(series.min.unwrap_or(i64::MAX)).unwrap_or(1));
        // What is left of a latency after whole periods may be anything.
        low = if has_missed(series) { low.min(1) } else { low };
        high = high.max(u64::try_from(series.max.unwrap_or(0)).unwrap_or(0));
    }
    let decade = |ns: u64| f64::from(ns.max(1).ilog10());
    let (first, last) = (decade(low.min(high)), decade(high) + 1.0);
    let steps = ((last - first) * f64::from(BINS_PER_DECADE)).round() as u32;
    let edge = |step: u32| 10_f64.powf(first + f64::from(step) / f64::from(BINS_PER_DECADE));
    let mut edges: Vec<u64> = (0..=steps).map(|step| edge(step).round() as u64).collect();
    if low == 0 {
        edges.insert(0, 0);
    }
    edges.dedup();
    edges
}

fn page_run(run: &Run, edges: &[u64], within: TimeRange) -> PageRun {
    let mut binned = Binned::new(&run.document, edges, within);
    let mut sieve = PointThinner::new(run, within);
    let mut blocks = SeriesBlocks::new(run.document.series.len());
    let read = run.intervals(|number, span, counts| {
        if within.holds(span.middle_s()) {
            binned.add(number, &span, &counts);
            sieve.interval(number, &span, &counts);
            blocks.add(number, &span, &counts);
        }
    });
    let damage = read.err().map(|error| error.to_string()).or_else(|| binned.totals().refusal());
    let mut caveats: Vec<CaveatKind> =
        damage.map(|what| CaveatKind::SeriesDamaged { what }).into_iter().collect();
    caveats.extend(blocks.caveats(&run.document));
    let wakeups = binned.wakeups();
    let (points, damage) = sieve.points(run, binned.totals(), &wakeups);
    caveats.extend(damage);
    let (machine, loads, interrupts) = tracks(run, &mut caveats);
    let blamed = causes::blamed(&run.document).map(|(number, _)| number);
    let causes = Causes::of(run, &binned.totals().sum(blamed));
    caveats.extend(causes.caveats.iter().cloned());
    let document = &run.document;
    let peaks = causes::page::peaks(&causes, document.start_monotonic_ns);
    let worst = causes::words::worst_in_words(document, &peaks);
    let series = wakeups.into_iter().zip(points);
    PageRun {
        headline: headline::headline_because(document, worst.as_deref()),
        line: words::line(document),
        without_host: without_host::sentences(document),
        samples: SampleName::of(document).into(),
        drawn: SampleName::drawn(document).into(),
        scheduled_first: headline::MissedInAll::of(document).come_first(),
        command: words::command(&document.argv),
        series: series
            .filter_map(|(number, points)| page_series(document, &binned, number, points, edges))
            .collect(),
        stages: page_stages(document, &binned, edges),
        time_edges_s: binned.time_edges_s(),
        heat: binned.together(),
        machine,
        loads,
        interrupts,
        between: between_of(run, &causes),
        blame: causes::page::blame(&causes, causes::responses::of(&causes)),
        peaks,
        deadlines: deadlines_of(run, within),
        tail: tail_of(run, &blocks, within),
        cpu_use: cpu_use(run, &causes, within),
        record: run.record_with(caveats),
    }
}

fn between_of(run: &Run, causes: &Causes) -> Vec<BetweenThreads> {
    let blame = causes.blame.as_ref();
    blame
        .map_or_else(Vec::new, |blame| causes::between_threads(&run.document, blame, &causes.worst))
}

/// Levels of a stretch say nothing of the run.
/// A log that cannot be read whole is told by a caveat already.
fn deadlines_of(run: &Run, within: TimeRange) -> Vec<SeriesDeadline> {
    if within != TimeRange::ALL {
        return Vec::new();
    }
    deadlines(run, &run.document.deadlines()).unwrap_or_default()
}

fn tail_of(run: &Run, blocks: &SeriesBlocks, within: TimeRange) -> RunTail {
    if within == TimeRange::ALL { RunTail::of(run, blocks) } else { RunTail::default() }
}

/// A profile is of the whole run.
fn cpu_use(run: &Run, causes: &Causes, within: TimeRange) -> PageCpuUse {
    if within == TimeRange::ALL {
        PageCpuUse::of(run, &causes.worst)
    } else {
        PageCpuUse::default()
    }
}

fn page_stages(document: &Document, binned: &Binned<'_>, edges: &[u64]) -> Vec<PageStage> {
    let stage = |number: usize| {
        let name = document.series.get(number)?.name.clone();
        Some(PageStage { name, histogram: histogram(&binned.totals().of(number), edges) })
    };
    binned.stages().into_iter().filter_map(stage).collect()
}

fn page_series(
    document: &Document,
    binned: &Binned<'_>,
    number: usize,
    points: Points,
    edges: &[u64],
) -> Option<PageSeries> {
    let series = document.series.get(number)?;
    let total = binned.totals().of(number);
    Some(PageSeries {
        name: series.name.clone(),
        curve: curve(&total, series.max),
        histogram: histogram(&total, edges),
        scheduled: scheduled(series, &total, edges),
        heat: binned.heat(number),
        points,
    })
}

fn has_missed(series: &SeriesSummary) -> bool {
    series.missed.is_some_and(|missed| missed > 0)
}

/// The view per scheduled period, where it is another one.
fn scheduled(
    series: &SeriesSummary,
    total: &Histogram<u64>,
    edges: &[u64],
) -> Option<PageScheduled> {
    let has_view = has_missed(series) && series.scheduled.is_some();
    let period_ns = series.period_ns.filter(|_| has_view)?;
    let view = per_period(total, series.max?, period_ns);
    Some(PageScheduled { curve: curve(&view, series.max), histogram: histogram(&view, edges) })
}

/// What happened beside the samples. A file that is missing is an empty track; a damaged one too,
/// with a doubt.
fn tracks(
    run: &Run,
    caveats: &mut Vec<CaveatKind>,
) -> (MachineTrack, Vec<LoadTrack>, Vec<InterruptRow>) {
    let machine = rows::<MachineRow>(run, names::MACHINE, caveats);
    let machine = tracks::machine(&machine).unwrap_or_else(|what| {
        let what = format!("{} is not read: {what}", names::MACHINE);
        caveats.push(CaveatKind::TrackDamaged { what });
        MachineTrack::default()
    });
    let loads = rows::<LoadRow>(run, names::LOADS, caveats);
    let interrupts = interrupts(run, caveats);
    (machine, tracks::loads(&run.document.loads, &loads), interrupts)
}

/// The sources of interrupts that moved during a run, busiest first; a damaged file adds to
/// `doubts`.
pub fn interrupts(run: &Run, caveats: &mut Vec<CaveatKind>) -> Vec<InterruptRow> {
    let counts = rows::<InterruptCount>(run, names::INTERRUPTS, caveats);
    tracks::interrupts(&counts, run.document.counted_s())
}

fn rows<T: serde::de::DeserializeOwned>(
    run: &Run,
    name: &str,
    caveats: &mut Vec<CaveatKind>,
) -> Vec<T> {
    let path: &Path = &run.path.join(name);
    match from_csv(path) {
        Ok(rows) => rows,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            caveats.push(CaveatKind::TrackDamaged { what: format!("{name} is damaged: {error}") });
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::fixture, run::hlog};

    #[test]
    fn a_series_has_a_view_per_period_where_periods_were_missed() {
        let mut own = fixture::summary("cpu0");
        (own.period_ns, own.max, own.missed) = (Some(1_000_000), Some(3_500_000), Some(3));
        own.scheduled = Some(crate::run::Scheduled {
            count: 100,
            mean: None,
            max: own.max,
            percentiles: own.percentiles.clone(),
            uncertain: Vec::new(),
        });
        let mut total = hlog::empty();
        total.record_n(5_000, 96).unwrap();
        total.record(3_500_000).unwrap();
        let edges: Vec<u64> = (0..10).map(|power| 10_u64.pow(power)).collect();
        let view = scheduled(&own, &total, &edges).unwrap();
        // 3.5 ms late is 3.5, 2.5, 1.5 and 0.5 ms.
        assert_eq!(view.histogram, [(3, 96), (5, 1), (6, 3)]);
        assert_eq!(view.curve.last(), Some(&(100.0, 3_500_000)));
        let late = |curve: &[(f64, i64)]| {
            curve.iter().find(|(p, _)| *p > 96.5).map(|(_, ns)| *ns).unwrap_or(0)
        };
        assert!(late(&view.curve) > 400_000, "{:?}", view.curve);
        assert!(late(&curve(&total, own.max)) < 6_000);
        let view = own.scheduled.take();
        assert_eq!(scheduled(&own, &total, &edges), None, "some were skipped");
        (own.scheduled, own.missed) = (view, Some(0));
        assert_eq!(scheduled(&own, &total, &edges), None, "both views are one");
        (own.missed, own.period_ns) = (None, None);
        assert_eq!(scheduled(&own, &total, &edges), None, "it has no schedule");
    }

    #[test]
    fn where_periods_were_missed_there_are_bins_for_what_is_left_of_a_latency() {
        let mut timer = fixture::of("timer", &["cpu0"]);
        assert_eq!(latency_edges([&timer].into_iter()).first(), Some(&10_000));
        timer.series[0].missed = Some(2);
        assert_eq!(latency_edges([&timer].into_iter()).first(), Some(&1));
    }

    #[test]
    fn periods_come_first_only_where_every_run_of_a_page_has_them() {
        let place = tempfile::tempdir().unwrap();
        let run = |name: &str, has_view: bool| {
            let series = [("cpu0", vec![vec![5_000; 96]])];
            fixture::written_with(&place.path().join(name), &series, |document| {
                let own = &mut document.series[0];
                (own.period_ns, own.missed) = (Some(1_000_000), Some(90));
                let view = crate::run::Scheduled {
                    count: 186,
                    mean: None,
                    max: own.max,
                    percentiles: own.percentiles.clone(),
                    uncertain: Vec::new(),
                };
                own.scheduled = has_view.then_some(view);
            })
        };
        let first = |runs: Vec<Run>| -> Vec<bool> {
            page(runs).runs.iter().map(|run| run.scheduled_first).collect()
        };
        assert_eq!(first(vec![run("a", true), run("b", true)]), [true, true]);
        assert_eq!(first(vec![run("c", true), run("d", false)]), [false, false]);
        assert_eq!(first(vec![run("e", true)]), [true]);
    }
}
