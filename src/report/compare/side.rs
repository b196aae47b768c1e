//! The runs of one side, with their counts; and which can be compared.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;

use super::{CompareError, CompareOptions, delays};
use crate::{
    analysis::ab::{figure::ComparedFigure, measured::MeasuredBlock},
    report::intervals::{RunIntervals, RunLog},
    run::{Document, LatencyView, Run, SeriesSummary, probes::SampleName},
};

/// Lengths that differ by more than this share are not equal.
const EQUAL_LENGTHS: f64 = 0.05;

/// A run with what its log holds.
#[derive(Debug)]
pub struct LoggedRun {
    run: Run,
    log: RunLog,
    intervals: Option<RunIntervals>,
}

impl LoggedRun {
    /// Reads the log of a run in this view, and its own intervals where it is to be described.
    ///
    /// # Errors
    /// A log that cannot be read to its end, and a run without a sample.
    pub fn read(mut run: Run, view: LatencyView, describes: bool) -> Result<Self, CompareError> {
        let name = run.document.name.clone();
        if run.document.wakeups().all(|series| series.percentiles.is_empty()) {
            return Err(match run.document.figures.is_empty() {
                true => CompareError::Empty(name),
                false => CompareError::FiguresOnly(name),
            });
        }
        let log = match RunLog::read_as(&run, view, describes && is_pooled(&run.document)) {
            Ok(log) => log,
            Err(what) => return Err(CompareError::Damaged { name, what }),
        };
        delays::rename(&mut run.document);
        let intervals = describes.then(|| intervals(&run, &log));
        Ok(Self { run, log, intervals })
    }

    /// Its record.
    #[must_use]
    pub const fn document(&self) -> &Document {
        &self.run.document
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.run.document.name
    }

    /// Its percentiles with intervals, where they were asked for.
    #[must_use]
    pub const fn intervals(&self) -> Option<&RunIntervals> {
        self.intervals.as_ref()
    }

    fn series(&self, name: &str) -> Option<(usize, &SeriesSummary)> {
        let series = self.run.document.series.iter().enumerate();
        series.filter(|(_, series)| !series.is_stage()).find(|(_, series)| series.name == name)
    }

    /// These series as one block; nothing of one that is not there.
    pub(super) fn block(&self, names: &[&str]) -> MeasuredBlock {
        let series: Vec<(usize, &SeriesSummary)> =
            names.iter().filter_map(|name| self.series(name)).collect();
        let periods = series.iter().map(|(_, series)| {
            let missed = series.missed.unwrap_or(0);
            self.run
                .document
                .judged(series)
                .unwrap_or((series.count.saturating_add(missed), missed))
        });
        let (periods, missed): (Vec<u64>, Vec<u64>) = periods.unzip();
        let sum = |all: &[u64]| all.iter().copied().fold(0, u64::saturating_add);
        MeasuredBlock {
            counts: self.counts(&series),
            max_ns: series.iter().filter_map(|(_, series)| series.max).max().unwrap_or(0),
            periods: sum(&periods),
            missed: sum(&missed),
        }
    }

    fn counts(&self, series: &[(usize, &SeriesSummary)]) -> Histogram<u64> {
        self.log.counts().sum(series.iter().map(|(number, _)| *number))
    }

    /// Whether all of these series follow a schedule.
    pub(super) fn has_schedule(&self, names: &[&str]) -> bool {
        let document = &self.run.document;
        let has = |own: &SeriesSummary| own.missed.is_some() || document.judged(own).is_some();
        names.iter().all(|name| self.series(name).is_some_and(|(_, own)| has(own)))
    }
}

/// The runs of a side, without what their logs hold.
pub(super) fn runs<'a>(side: &[&'a LoggedRun]) -> Vec<&'a Run> {
    side.iter().map(|run| run.run()).collect()
}

/// The intervals of each series, and of all together where they can be pooled.
fn intervals(run: &Run, log: &RunLog) -> RunIntervals {
    let mut intervals = RunIntervals::of_log(run, log);
    if is_pooled(&run.document) {
        intervals.pooled = log.pooled(run);
    }
    intervals
}

/// Whether the series of a run are the same thing in several places, so that their samples may be
/// put together: wake-ups of CPUs are, the two ways of a stream are not.
pub(super) fn is_pooled(document: &Document) -> bool {
    SampleName::of(document) == SampleName::WakeUp && document.wakeups().count() > 1
}

/// Refuses what cannot be compared.
pub(super) fn check(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
    options: &CompareOptions,
) -> Result<(), CompareError> {
    let all: Vec<&LoggedRun> = a.iter().chain(b).copied().collect();
    let mut paths = BTreeSet::new();
    if let Some(twice) = all.iter().find(|run| !paths.insert(&run.document().id)) {
        return Err(CompareError::Twice(twice.name().to_owned()));
    }
    let Some(first) = all.first() else { return Ok(()) };
    let probe = |run: &LoggedRun| run.document().probe.measured_as().to_owned();
    let other = all.iter().find(|run| probe(run) != probe(first));
    let are_alike = delays::are_of_several_programs(all.iter().map(|run| run.document()));
    if let Some(other) = other.filter(|_| !are_alike) {
        return Err(CompareError::Probes {
            a: first.name().to_owned(),
            probe_a: probe(first),
            b: other.name().to_owned(),
            probe_b: probe(other),
        });
    }
    if options.judged.contains(&ComparedFigure::Max) {
        check_lengths(&all)?;
    }
    Ok(())
}

/// The largest sample of a longer run is larger: only of equal runs it can be judged.
fn check_lengths(all: &[&LoggedRun]) -> Result<(), CompareError> {
    let lengths = || all.iter().map(|run| run.document().duration_ns as f64);
    let (shortest, longest) =
        lengths().fold((f64::INFINITY, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    if longest <= shortest * (1.0 + EQUAL_LENGTHS) {
        return Ok(());
    }
    let [shortest, longest] = [shortest, longest].map(|ns| crate::units::span(ns / 1e9));
    Err(CompareError::Figure {
        figure: ComparedFigure::Max.name(),
        why: format!(
            "the runs lasted from {shortest} to {longest}, and a longer one has a larger maximum; \
             leave max out"
        ),
    })
}

/// The series of whole latencies that all runs have, in the order of the first.
pub(super) fn common_series(
    a: &[&LoggedRun],
    b: &[&LoggedRun],
) -> Result<Vec<String>, CompareError> {
    let all: Vec<&LoggedRun> = a.iter().chain(b).copied().collect();
    let Some(first) = all.first() else { return Ok(Vec::new()) };
    let own = |run: &LoggedRun| -> Vec<String> {
        let filled = run.document().wakeups().filter(|series| !series.percentiles.is_empty());
        filled.map(|series| series.name.clone()).collect()
    };
    let mut common = own(first);
    for run in &all {
        let there = own(run);
        let before = common.clone();
        common.retain(|name| there.contains(name));
        if common.is_empty() {
            return Err(CompareError::Series {
                a: first.name().to_owned(),
                series_a: before.join(", "),
                b: run.name().to_owned(),
                series_b: there.join(", "),
            });
        }
    }
    Ok(common)
}
