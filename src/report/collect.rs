//! From runs to the data of a page: bins, curves, points and tracks. Reads runs, computes nothing
//! that `run` has not defined.

use std::path::Path;

use hdrhistogram::Histogram;

use super::{
    causes::{self, Causes},
    curve::curve,
    page::{
        CpuBusy, Heat, InterruptRow, LoadTrack, MachineTrack, Page, PageRun, PageSeries, PageStage,
        Points,
    },
    points::PointThinner,
    sample_name::SampleName,
    words,
};
use crate::run::{
    CaveatKind, Document, Run, SeriesSummary, hlog, names,
    tracks::{InterruptCount, LoadRow, MachineRow, from_csv},
};

/// Bins of latency per factor of ten: narrow enough for a shape, wide enough to be seen.
const BINS_PER_DECADE: u32 = 25;

/// Maximum number of columns of a heat map: about what a narrow screen can show.
const TIME_BINS: usize = 250;

/// With more series than this, only the heat map of all together is kept.
const SERIES_WITH_HEAT: usize = 16;

/// The data of a page that shows `runs` side by side.
#[must_use]
pub fn page(runs: Vec<Run>) -> Page {
    let documents = || runs.iter().map(|run| &run.document);
    let edges = latency_edges(documents());
    Page {
        runs: runs.iter().map(|run| page_run(run, &edges)).collect(),
        latency_edges_ns: edges,
        ..Page::empty(documents())
    }
}

/// Edges in equal steps of the logarithm that hold every latency of every run.
fn latency_edges<'a>(documents: impl Iterator<Item = &'a Document>) -> Vec<u64> {
    let (mut low, mut high) = (u64::MAX, 0);
    for series in documents.flat_map(|document| &document.series) {
        low = low.min(u64::try_from(series.min.unwrap_or(i64::MAX)).unwrap_or(1));
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

fn page_run(run: &Run, edges: &[u64]) -> PageRun {
    let bins = TimeBins::of(&run.document);
    let mut binned: Vec<Binned> = run.document.series.iter().map(|_| Binned::new(&bins)).collect();
    let mut sieve = PointThinner::new(run);
    let stages: Vec<bool> = run.document.series.iter().map(SeriesSummary::is_stage).collect();
    let read = run.intervals(|number, span, counts| {
        let Some(binned) = binned.get_mut(number) else { return };
        if stages.get(number).copied().unwrap_or(false) {
            binned.add_total(&counts);
            return;
        }
        binned.add(bins.at(span.start_s + span.length_s / 2.0), &counts, edges);
        sieve.interval(number, &span, &counts);
    });
    let mut caveats: Vec<CaveatKind> = read
        .err()
        .map(|error| CaveatKind::SeriesDamaged { what: error.to_string() })
        .into_iter()
        .collect();
    let (stages, binned) = parted(&run.document, binned);
    let totals: Vec<_> = binned.iter().map(|binned| binned.total.clone()).collect();
    let (points, damage) = sieve.points(run, &totals);
    caveats.extend(damage);
    let (machine, loads, interrupts) = tracks(run, &mut caveats);
    let few = binned.len() <= SERIES_WITH_HEAT;
    let heat = Binned::together(&binned, &bins);
    let causes = Causes::of(run, &sum_of(&totals));
    caveats.extend(causes.caveats.iter().cloned());
    let document = &run.document;
    let peaks = causes::page::peaks(&causes, document.start_monotonic_ns);
    let worst = causes::words::worst_in_words(document, &peaks);
    let series = document.wakeups().zip(binned).zip(points);
    PageRun {
        headline: words::headline_because(document, worst.as_deref()),
        line: words::line(document),
        samples: SampleName::of(document).into(),
        command: words::command(&document.argv),
        series: series
            .map(|((series, binned), points)| page_series(series, &binned, points, edges, few))
            .collect(),
        stages: stages.into_iter().map(|(name, total)| page_stage(name, &total, edges)).collect(),
        time_edges_s: bins.edges,
        heat,
        machine,
        loads,
        interrupts,
        blame: causes::page::blame(&causes),
        peaks,
        record: run.record_with(caveats),
    }
}

/// Stages by name, and what is of wake-ups.
fn parted(
    document: &Document,
    binned: Vec<Binned>,
) -> (Vec<(String, Histogram<u64>)>, Vec<Binned>) {
    let (mut stages, mut wakeups) = (Vec::new(), Vec::new());
    for (series, binned) in document.series.iter().zip(binned) {
        if series.is_stage() {
            stages.push((series.name.clone(), binned.total));
        } else {
            wakeups.push(binned);
        }
    }
    (stages, wakeups)
}

fn sum_of(totals: &[Histogram<u64>]) -> Histogram<u64> {
    let mut sum = hlog::empty();
    for total in totals {
        // Bounds are equal, so that nothing can be lost.
        let _ = sum.add(total);
    }
    sum
}

fn page_stage(name: String, total: &Histogram<u64>, edges: &[u64]) -> PageStage {
    PageStage { name, histogram: histogram(total, edges) }
}

fn page_series(
    series: &SeriesSummary,
    binned: &Binned,
    points: Points,
    edges: &[u64],
    with_heat: bool,
) -> PageSeries {
    PageSeries {
        name: series.name.clone(),
        curve: curve(&binned.total, series.max),
        histogram: histogram(&binned.total, edges),
        heat: with_heat.then(|| binned.heat()),
        points,
    }
}

fn histogram(total: &Histogram<u64>, edges: &[u64]) -> Vec<(u32, u64)> {
    let mut row = vec![0; edges.len()];
    add_row(&mut row, total, edges);
    let filled = row.into_iter().enumerate().filter(|(_, count)| *count > 0);
    filled.map(|(bin, count)| (bin as u32, count)).collect()
}

/// Adds counts to a row of latency bins; bucket middles stand for their values.
fn add_row(row: &mut [u64], counts: &Histogram<u64>, edges: &[u64]) {
    let mut bin = 0;
    for bucket in counts.iter_recorded() {
        let value = counts.median_equivalent(bucket.value_iterated_to());
        // Values come in ascending order, so the bins do.
        while edges.get(bin + 1).is_some_and(|edge| *edge <= value) {
            bin += 1;
        }
        if let Some(cell) = row.get_mut(bin) {
            *cell = cell.saturating_add(bucket.count_since_last_iteration());
        }
    }
}

/// The columns of a run's heat maps.
struct TimeBins {
    /// Where each begins, and where the last one ends.
    edges: Vec<f64>,
    width_s: f64,
}

impl TimeBins {
    /// As many as the log has intervals, or a whole number of intervals each where it has more.
    fn of(document: &Document) -> Self {
        let end_s = document.duration_ns as f64 / 1e9;
        let interval_s = (document.log_interval_ns as f64 / 1e9).max(1e-3);
        let intervals = (end_s / interval_s).ceil().max(1.0);
        let width_s = interval_s * (intervals / TIME_BINS as f64).ceil();
        let bins = (end_s / width_s).ceil().max(1.0) as usize;
        let edge = |bin: usize| (bin as f64 * width_s * 1e3).round() / 1e3;
        let mut edges: Vec<f64> = (0..bins).map(edge).collect();
        edges.push((end_s * 1e3).round() / 1e3);
        Self { edges, width_s }
    }

    fn at(&self, t_s: f64) -> usize {
        ((t_s / self.width_s) as usize).min(self.edges.len().saturating_sub(2))
    }
}

/// The counts of one series: in all, and per time and latency bin.
struct Binned {
    total: Histogram<u64>,
    /// One row of latency bins per column that has samples.
    columns: Vec<Vec<u64>>,
}

impl Binned {
    fn new(bins: &TimeBins) -> Self {
        Self { total: hlog::empty(), columns: vec![Vec::new(); bins.edges.len()] }
    }

    fn add_total(&mut self, counts: &Histogram<u64>) {
        // Bounds are equal, so that nothing can be lost.
        let _ = self.total.add(counts);
    }

    fn add(&mut self, time: usize, counts: &Histogram<u64>, edges: &[u64]) {
        self.add_total(counts);
        if let Some(row) = self.columns.get_mut(time).filter(|_| !counts.is_empty()) {
            row.resize(edges.len(), 0);
            add_row(row, counts, edges);
        }
    }

    fn heat(&self) -> Heat {
        heat_of(&self.columns)
    }

    fn together(all: &[Self], bins: &TimeBins) -> Heat {
        let mut sum: Vec<Vec<u64>> = vec![Vec::new(); bins.edges.len()];
        for columns in all.iter().map(|binned| &binned.columns) {
            for (sum, row) in sum.iter_mut().zip(columns) {
                sum.resize(row.len().max(sum.len()), 0);
                sum.iter_mut().zip(row).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            }
        }
        heat_of(&sum)
    }
}

fn heat_of(columns: &[Vec<u64>]) -> Heat {
    let mut heat = Heat::default();
    for (time, row) in columns.iter().enumerate() {
        for (latency, count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
            heat.time.push(time as u32);
            heat.latency.push(latency as u32);
            heat.count.push(*count);
        }
    }
    heat
}

/// What happened beside the samples. A file that is missing is an empty track; a damaged one too,
/// with a doubt.
fn tracks(
    run: &Run,
    caveats: &mut Vec<CaveatKind>,
) -> (MachineTrack, Vec<LoadTrack>, Vec<InterruptRow>) {
    let machine = rows::<MachineRow>(run, names::MACHINE, caveats);
    let loads = rows::<LoadRow>(run, names::LOADS, caveats);
    let interrupts = interrupts(run, caveats);
    (machine_track(&machine), load_tracks(&run.document, &loads), interrupts)
}

/// The sources of interrupts that moved during a run, busiest first; a damaged file adds to
/// `doubts`.
pub fn interrupts(run: &Run, caveats: &mut Vec<CaveatKind>) -> Vec<InterruptRow> {
    let counts = rows::<InterruptCount>(run, names::INTERRUPTS, caveats);
    interrupt_rows(&counts, run.document.counted_s())
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

fn machine_track(rows: &[MachineRow]) -> MachineTrack {
    let mut track = MachineTrack::default();
    for row in rows {
        if track.t_s.last() != Some(&row.t_s) {
            track.t_s.push(row.t_s);
        }
        match row.what.as_str() {
            "interrupts" => track.interrupts_per_s.push(row.value),
            "softirqs" => track.softirqs_per_s.push(row.value),
            "context_switches" => track.context_switches_per_s.push(row.value),
            what => {
                let Some(cpu) = what.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok()) else {
                    continue;
                };
                push_busy(&mut track.cpu_busy, cpu, track.t_s.len(), row.value);
            }
        }
    }
    // A run that was killed may have written part of its last second.
    let whole = track.t_s.len().min(track.context_switches_per_s.len());
    track.t_s.truncate(whole);
    track.interrupts_per_s.truncate(whole);
    track.softirqs_per_s.truncate(whole);
    track.context_switches_per_s.truncate(whole);
    track.cpu_busy.iter_mut().for_each(|cpu| cpu.busy.resize(whole, 0.0));
    track
}

/// Puts `value` at place `length - 1` of its CPU; a CPU that was away meanwhile was not busy.
fn push_busy(cpus: &mut Vec<CpuBusy>, cpu: u32, length: usize, value: f64) {
    let at = cpus.iter().position(|known| known.cpu == cpu).unwrap_or_else(|| {
        cpus.push(CpuBusy { cpu, busy: Vec::new() });
        cpus.len() - 1
    });
    if let Some(known) = cpus.get_mut(at) {
        known.busy.resize(length.saturating_sub(1), 0.0);
        known.busy.push(value);
    }
}

fn load_tracks(document: &Document, rows: &[LoadRow]) -> Vec<LoadTrack> {
    let track = |(number, load): (usize, &crate::run::LoadRecord)| {
        let own = rows.iter().filter(|row| row.load == number);
        let (t_s, operations_per_s) = own.map(|row| (row.t_s, row.operations_per_s)).unzip();
        let unit = load.proof.as_ref().map(|proof| proof.unit.clone()).unwrap_or_default();
        LoadTrack { name: load.name.clone(), unit, t_s, operations_per_s }
    };
    document.loads.iter().enumerate().map(track).collect()
}

fn interrupt_rows(counts: &[InterruptCount], seconds: f64) -> Vec<InterruptRow> {
    let mut rows: Vec<InterruptRow> = Vec::new();
    for count in counts.iter().filter(|count| count.difference > 0) {
        let same = |row: &&mut InterruptRow| row.kind == count.kind && row.source == count.source;
        let cell = (count.cpu, count.difference);
        let per_s = count.difference as f64 / seconds;
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.per_s += per_s;
                row.per_cpu.push(cell);
            }
            None => rows.push(InterruptRow {
                kind: count.kind.clone(),
                source: count.source.clone(),
                description: count.description.clone(),
                per_s,
                per_cpu: vec![cell],
            }),
        }
    }
    rows.iter_mut().for_each(|row| row.per_s = (row.per_s * 10.0).round() / 10.0);
    rows.sort_by(|a, b| b.per_s.total_cmp(&a.per_s));
    rows
}
