//! Runs of this probe over a kernel of text ([`crate::kernel::replay`]): all that a run does with
//! what the programs count, by its own clock.

mod kernels;
mod loops;
mod overruns;
mod tests;

use std::{
    cell::Cell,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
};

use tardy_hot::{stages::Late, stop::Stop};
use tempfile::TempDir;

use super::{Attach, AttachTarget, source::AttachSource};
use crate::{
    kernel::{
        AttachedCycles,
        replay::{AttachReplay, machine::Happened},
    },
    probes::{
        FinishedAttach, Schedule, SeriesSource as _, TracedSamples, TracedThread,
        found_series::FoundSeriesList,
    },
    run::{AttachRecord, AttachedRow, Deadlines, FigureRecord, SeriesSummary, ThreadDeadline},
    sys::root::Root,
};

/// A source is polled so often.
pub(crate) const POLL_NS: u64 = 50_000_000;

thread_local! {
    static NOW_NS: Cell<i64> = const { Cell::new(0) };
}

fn clock() -> i64 {
    NOW_NS.with(Cell::get)
}

/// What is asked of a run.
#[derive(Debug, Clone)]
pub(crate) struct ReplayRequest {
    pub target: AttachTarget,
    /// Only threads of this name.
    pub only: Option<String>,
    /// Ends the run, ns.
    pub stop_over_ns: Option<i64>,
    pub deadline_ns: Option<u64>,
    /// Of threads of a name.
    pub of_threads: Vec<ThreadDeadline>,
    /// The measured time.
    pub start_ns: u64,
    pub end_ns: u64,
}

impl ReplayRequest {
    /// All threads of that name.
    pub(crate) fn name(name: &str, deadline_ns: Option<u64>, [start_ns, end_ns]: [u64; 2]) -> Self {
        Self {
            target: AttachTarget::Name(name.into()),
            only: None,
            stop_over_ns: None,
            deadline_ns,
            of_threads: Vec::new(),
            start_ns,
            end_ns,
        }
    }
}

/// A run in progress.
#[derive(Debug)]
pub(crate) struct ReplayedRun {
    source: AttachSource,
    replay: AttachReplay,
    found: FoundSeriesList,
    /// Threads whose late wake-ups are to be explained.
    pub(crate) traced: Receiver<TracedThread>,
    stopped: Arc<Stop>,
    _machine: TempDir,
}

/// What is left of a run.
#[derive(Debug)]
pub(crate) struct ReplayedEnd {
    pub record: AttachRecord,
    pub figures: Vec<FigureRecord>,
    pub series: Vec<SeriesSummary>,
    /// Cycles over the deadline, as they are handed over to be explained.
    pub late_cycles: Vec<Late>,
}

impl ReplayedEnd {
    pub(crate) fn row(&self, series: &str) -> &AttachedRow {
        let row = self.record.rows.iter().find(|row| row.series == series);
        row.unwrap_or_else(|| panic!("no row {series}: {:?}", self.record))
    }

    pub(crate) fn series(&self, name: &str) -> &SeriesSummary {
        let series = self.series.iter().find(|series| series.name == name);
        series.unwrap_or_else(|| panic!("no series {name}: {:?}", self.series))
    }
}

impl ReplayedRun {
    /// Begins at 0. Threads come by events alone, but for those below `/proc` of `machine`.
    pub(crate) fn start(asked: &ReplayRequest, tasks: &str, machine: TempDir) -> Self {
        let to = asked.target.attached_to();
        let cycles = match asked.deadline_ns {
            None if asked.of_threads.is_empty() => AttachedCycles::Unmeasured,
            some => AttachedCycles::Measured(some),
        };
        let (mut replay, mut programs) = AttachReplay::start(&to, cycles);
        programs.attach().unwrap();
        replay.feed(tasks);
        let signed = |ns: u64| i64::try_from(ns).unwrap();
        let of_threads = asked.of_threads.clone();
        let deadlines = Deadlines { all_ns: asked.deadline_ns.map(signed), of_threads };
        let target = asked.target.clone();
        let only = asked.only.clone();
        let plan = Attach { target, only, to_stderr: false, deadlines };
        NOW_NS.with(|now| now.set(0));
        let (traced, later) = channel();
        let root = Root::at(machine.path());
        let stop = Arc::new(Stop::default());
        let stopped = Arc::clone(&stop);
        let mut source = AttachSource::over(&plan, programs, stop, Some(traced), (root, clock));
        source.start(Schedule {
            warmup_ns: 0,
            start_ns: signed(asked.start_ns),
            end_ns: signed(asked.end_ns),
            samples: u64::MAX,
            stop_over_ns: asked.stop_over_ns.unwrap_or(i64::MAX),
        });
        let found = source.found();
        Self { source, replay, found, traced: later, stopped, _machine: machine }
    }

    /// These events happen, and at the end of them the source is polled.
    pub(crate) fn step(&mut self, events: &str, until_ns: u64) {
        self.replay.feed(events);
        NOW_NS.with(|now| now.set(i64::try_from(until_ns).unwrap()));
        self.source.poll();
    }

    /// Its end.
    pub(crate) fn finish(mut self) -> ReplayedEnd {
        self.source.finish();
        let finished = self.source.attached().unwrap();
        let series = self.found.all().iter().map(|series| series.summary()).collect();
        let mut late_cycles = Vec::new();
        for thread in self.traced.try_iter() {
            if let TracedSamples::Cycles { mut late, .. } = thread.samples {
                late.drain(|one| late_cycles.push(one));
            }
        }
        let FinishedAttach { record, figures, .. } = finished;
        ReplayedEnd { record, figures, series, late_cycles }
    }
}

/// The whole of a run.
pub(crate) fn run(asked: &ReplayRequest, happened: &Happened) -> ReplayedEnd {
    let mut run = ReplayedRun::start(asked, &happened.tasks, tempfile::tempdir().unwrap());
    let mut from_ns = 0;
    while from_ns < asked.end_ns {
        let to_ns = (from_ns + POLL_NS).min(asked.end_ns);
        run.step(&happened.between(from_ns, to_ns), to_ns);
        from_ns = to_ns;
    }
    run.finish()
}
