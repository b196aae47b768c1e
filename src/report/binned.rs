//! The counts of a run by time and latency: what histograms, curves and heat maps are made of.

use hdrhistogram::Histogram;

use super::{page::Heat, time_range::TimeRange};
use crate::run::{Document, counts::SeriesCounts, hlog::IntervalSpan};

/// Maximum number of columns of a heat map: about what a narrow screen can show.
const TIME_BINS: usize = 250;

/// With more series than this, only the heat map of all together is kept.
const SERIES_WITH_HEAT: usize = 16;

/// One row of latency bins per column that has samples.
type Columns = Vec<Vec<u64>>;

/// The columns of a run's heat maps.
struct TimeBins {
    /// Where each begins, and where the last one ends.
    edges: Vec<f64>,
    width_s: f64,
    /// How many of this width would come before the first one.
    before: usize,
}

impl TimeBins {
    /// As many as the log has intervals within a stretch of the run, or a whole number of intervals
    /// each where it has more.
    fn of(document: &Document, within: TimeRange) -> Self {
        let end_s = document.duration_ns as f64 / 1e9;
        let (from_s, to_s) = (within.from_s().min(end_s), within.to_s(end_s).min(end_s));
        let interval_s = (document.log_interval_ns as f64 / 1e9).max(1e-3);
        let intervals = ((to_s - from_s) / interval_s).ceil().max(1.0);
        let width_s = interval_s * (intervals / TIME_BINS as f64).ceil();
        let before = (from_s / width_s) as usize;
        let after = ((to_s / width_s).ceil() as usize).max(before + 1);
        let edge = |bin: usize| (bin as f64 * width_s * 1e3).round() / 1e3;
        let mut edges: Vec<f64> = (before..after).map(edge).collect();
        edges.push((end_s.min(after as f64 * width_s) * 1e3).round() / 1e3);
        Self { edges, width_s, before }
    }

    fn at(&self, t_s: f64) -> usize {
        let bin = ((t_s / self.width_s) as usize).saturating_sub(self.before);
        bin.min(self.edges.len().saturating_sub(2))
    }
}

/// The counts of every series of a run: in all, and of whole latencies per time and latency bin.
pub(super) struct Binned<'a> {
    bins: TimeBins,
    edges: &'a [u64],
    totals: SeriesCounts,
    /// Whether a series, by its number, is a stage of another.
    stages: Vec<bool>,
    /// By the number of the series where these are few; one for all where they are many.
    columns: Vec<Columns>,
}

impl<'a> Binned<'a> {
    /// Nothing counted yet, for these edges of latency and a stretch of the run.
    pub(super) fn new(document: &Document, edges: &'a [u64], within: TimeRange) -> Self {
        let series = document.series.len();
        let few = document.wakeups().count() <= SERIES_WITH_HEAT;
        Self {
            bins: TimeBins::of(document, within),
            edges,
            totals: SeriesCounts::new(series),
            stages: document.series.iter().map(|series| series.is_stage()).collect(),
            columns: vec![Vec::new(); if few { series } else { 1 }],
        }
    }

    /// Adds an interval of the series of this number.
    pub(super) fn add(&mut self, number: usize, span: &IntervalSpan, counts: &Histogram<u64>) {
        self.totals.add(number, counts);
        if counts.is_empty() || self.stages.get(number).copied().unwrap_or(true) {
            return;
        }
        let own = if self.has_each() { number } else { 0 };
        let Some(columns) = self.columns.get_mut(own) else { return };
        columns.resize(self.bins.edges.len(), Vec::new());
        if let Some(row) = columns.get_mut(self.bins.at(span.middle_s())) {
            row.resize(self.edges.len(), 0);
            add_row(row, counts, self.edges);
        }
    }

    fn has_each(&self) -> bool {
        self.columns.len() == self.stages.len()
    }

    /// The numbers of the series of whole latencies.
    pub(super) fn wakeups(&self) -> Vec<usize> {
        (0..self.stages.len()).filter(|at| self.stages.get(*at) == Some(&false)).collect()
    }

    /// The numbers of the stages.
    pub(super) fn stages(&self) -> Vec<usize> {
        (0..self.stages.len()).filter(|at| self.stages.get(*at) == Some(&true)).collect()
    }

    /// The histograms of the series.
    pub(super) const fn totals(&self) -> &SeriesCounts {
        &self.totals
    }

    /// Where each column of the heat maps begins, and where the last one ends; s.
    pub(super) fn time_edges_s(&self) -> Vec<f64> {
        self.bins.edges.clone()
    }

    /// The heat map of one series; nothing where there are too many of them.
    pub(super) fn heat(&self, number: usize) -> Option<Heat> {
        let columns = self.columns.get(number).filter(|_| self.has_each())?;
        Some(heat_of(columns))
    }

    /// The heat map of all series together.
    pub(super) fn together(&self) -> Heat {
        let mut sum: Columns = vec![Vec::new(); self.bins.edges.len()];
        for columns in &self.columns {
            for (sum, row) in sum.iter_mut().zip(columns) {
                sum.resize(row.len().max(sum.len()), 0);
                sum.iter_mut().zip(row).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            }
        }
        heat_of(&sum)
    }
}

/// Counts by latency: pairs of a bin that has any and its count.
pub(super) fn histogram(total: &Histogram<u64>, edges: &[u64]) -> Vec<(u32, u64)> {
    let mut row = vec![0; edges.len()];
    add_row(&mut row, total, edges);
    let filled = row.into_iter().enumerate().filter(|(_, count)| *count > 0);
    filled.map(|(bin, count)| (bin as u32, count)).collect()
}

/// Adds counts to a row of latency bins; bucket middles stand for their values.
fn add_row(row: &mut [u64], counts: &Histogram<u64>, edges: &[u64]) {
    if counts.is_empty() {
        return;
    }
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
