//! One run as a picture speaks of it: its name, what it counted, and its largest latency.

use super::{frame::SMALL, text};
use crate::{
    report::{
        page::{Page, PageRun},
        sample_name::{self, SampleName},
        words,
    },
    run::{Status, Validity},
    units::{Nanos, count},
};

/// The largest latency of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Largest {
    /// How late.
    pub latency_ns: i64,
    /// In which series.
    pub series: String,
    /// When, in seconds since the start.
    pub t_s: Option<f64>,
}

impl Largest {
    /// `max 8.33 ms, cpu1`.
    #[must_use]
    pub(super) fn words(&self) -> String {
        format!("max {}, {}", Nanos(self.latency_ns), sample_name::series(&self.series))
    }
}

/// A run in words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunLabel {
    /// Its name, and what the reader must know before any number of it.
    pub name: String,
    /// Machine, kernel, loads, length.
    pub line: String,
    /// What one sample is.
    pub sample_name: SampleName,
    /// How many there are.
    pub samples: u64,
    /// Whether these are scheduled periods rather than samples.
    pub per_period: bool,
    /// Samples before their time.
    pub early: u64,
    /// Latencies over an hour; of an imported run those without their own value.
    pub above: u64,
    /// Whether another program measured it.
    pub is_imported: bool,
    /// `None` if no latency can be drawn.
    pub largest: Option<Largest>,
}

impl RunLabel {
    /// What there is to say of a run.
    #[must_use]
    pub(super) fn of(run: &PageRun, per_period: bool) -> Self {
        let record = &run.record;
        let sum = |of: fn(&crate::run::SeriesSummary) -> u64| {
            record.wakeups().map(of).fold(0, u64::saturating_add)
        };
        Self {
            name: name(run),
            line: run.line.clone(),
            sample_name: SampleName::drawn(record),
            samples: sum(|series| series.count),
            per_period: per_period && record.wakeups().any(|series| series.scheduled.is_some()),
            early: sum(|series| series.early),
            above: sum(|series| series.above),
            is_imported: record.status == Status::Imported,
            largest: largest(run),
        }
    }

    /// Its name before a word about it; nothing where it is `alone`.
    #[must_use]
    pub(super) fn before(&self, alone: bool) -> String {
        const ROOM: f64 = 120.0;
        if alone { String::new() } else { format!("{}: ", text::cut(&self.name, SMALL, ROOM)) }
    }

    /// `19,919 samples`.
    #[must_use]
    pub(super) fn count(&self) -> String {
        let one = if self.per_period { "scheduled period" } else { "sample" };
        match self.samples {
            1 => format!("1 {one}"),
            samples => format!("{} {one}s", count(samples)),
        }
    }
}

/// The run's name; with the verdict if it is not the best, and how it ended where not in order.
fn name(run: &PageRun) -> String {
    let record = &run.record;
    let mut caveats = Vec::new();
    if record.validity != Validity::Valid {
        caveats.push(record.validity.displayed());
    }
    if record.status != Status::Complete {
        caveats.push(words::status(record.status));
    }
    let name = &record.name;
    if caveats.is_empty() { name.clone() } else { format!("{name} ({})", caveats.join(", ")) }
}

/// The largest latency of a run, by its record.
#[must_use]
pub(super) fn largest(run: &PageRun) -> Option<Largest> {
    let maxima = run.record.wakeups().enumerate();
    let maxima = maxima.filter_map(|(number, series)| Some((number, series.max?)));
    let (number, latency_ns) =
        maxima.max_by_key(|(number, max)| (*max, std::cmp::Reverse(*number)))?;
    if latency_ns < 0 {
        return None;
    }
    let series = run.series.get(number)?;
    let points = series.points.latency_ns.iter().zip(&series.points.t_s);
    let late = points.rev().max_by_key(|(latency, _)| **latency);
    Some(Largest { latency_ns, series: series.name.clone(), t_s: late.map(|(_, t_s)| *t_s) })
}

/// What the picture counts: `samples`, as the caller calls them, or scheduled periods.
#[must_use]
pub(super) fn counted(subjects: &[RunLabel], samples: &'static str) -> &'static str {
    if subjects.iter().any(|subject| subject.per_period) { "scheduled periods" } else { samples }
}

/// The smallest latency on the picture, in ns, at least 1.
#[must_use]
pub(super) fn lowest(page: &Page) -> f64 {
    let bins = page.runs.iter().flat_map(|run| &run.series);
    let bins = bins.filter_map(|series| series.histogram.first()).map(|(bin, _)| *bin as usize);
    let edge = bins.min().and_then(|bin| page.latency_edges_ns.get(bin)).copied();
    edge.unwrap_or(u64::MAX).min(highest(page) as u64).max(1) as f64
}

/// The largest latency on the picture, in ns, at least 1.
#[must_use]
pub(super) fn highest(page: &Page) -> f64 {
    let all = page.runs.iter().flat_map(|run| run.record.wakeups());
    all.filter_map(|series| series.max).max().unwrap_or(1).max(1) as f64
}

/// The sentence about what a log axis has no place for; empty where all has one.
#[must_use]
pub(super) fn not_drawn(subject: &RunLabel) -> String {
    let sample_name = subject.sample_name;
    match subject.early {
        0 => String::new(),
        1 => format!("1 early {} is not drawn: a log axis has no place for it.", sample_name.one()),
        early => format!(
            "{} early {} are not drawn: a log axis has no place for them.",
            count(early),
            sample_name.many()
        ),
    }
}

/// The sentence about latencies over an hour; empty without any.
#[must_use]
pub(super) fn above(subject: &RunLabel) -> String {
    match subject.above {
        0 => String::new(),
        above if subject.is_imported => {
            format!("{} without a value: not drawn.", count(above))
        }
        above => format!("{} above 1 h: in the maximum only.", count(above)),
    }
}
