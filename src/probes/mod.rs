//! Probes produce latency samples: planned, armed, then series. No printing, no files.
//!
//! A probe is one file here, one line in the table of `cli::run`, and one loop in `tardy-hot`.

pub mod fake;
pub mod timer;

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use serde_json::{Map, Value};
use tardy_hot::{
    clock,
    ring::{Reader, Sample},
    stages::{Late, Records},
    stop::Stop,
    traced::Watched,
    wakeup::{Ended, Series},
};
use thiserror::Error;

use crate::{
    run::SeriesHead,
    setup::threads::Found,
    sys::{faults::Usage, signals},
};

/// When to measure. All times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// The first expiry of the warm-up, which is not recorded.
    pub warmup_ns: i64,
    /// The first recorded expiry.
    pub start_ns: i64,
    /// No expiry at or after this is waited for; `i64::MAX` for no end.
    pub end_ns: i64,
    /// At most so many samples per series; `u64::MAX` for no limit.
    pub samples: u64,
    /// The first latency above this ends the run; `i64::MAX` for none.
    pub stop_over_ns: i64,
}

/// A series to be: what it is, and where it will be written.
#[derive(Debug)]
pub struct Recorded {
    /// Name, CPU, period.
    pub head: SeriesHead,
    /// Counts and totals, written by the measuring thread.
    pub series: Arc<Series>,
    /// Single samples, where they are kept.
    pub samples: Option<Reader<Sample>>,
}

/// How a measuring thread fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its series.
    pub series: String,
    /// Why its loop ended.
    pub ended: Ended,
    /// When, `CLOCK_MONOTONIC` ns.
    pub ended_ns: i64,
    /// What it used between the first and the last turn.
    pub usage: Usage,
    /// Times it was moved to another CPU meanwhile; absent where the kernel does not tell.
    pub migrations: Option<u64>,
    /// In what it did not run as planned, at the start or at the end.
    pub broken: Option<String>,
}

impl Report {
    /// Of a loop that has just ended.
    fn of(series: &str, ended: Ended) -> Self {
        Self {
            series: series.into(),
            ended,
            ended_ns: clock::now_ns(),
            usage: Usage::default(),
            migrations: None,
            broken: None,
        }
    }
}

/// Why a probe could not be armed.
#[derive(Debug, Error)]
pub enum ArmError {
    /// A thread could not be made.
    #[error("cannot start the thread of {series}: {source}")]
    Thread {
        /// Its series.
        series: String,
        /// What the system said.
        source: io::Error,
    },
    /// A thread could not be set up.
    #[error("cannot set up the thread of {series}: {source}")]
    Terms {
        /// Its series.
        series: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A probe that is planned but has touched nothing yet.
pub trait Probe {
    /// Its name in `run.json` and on the command line.
    fn name(&self) -> &'static str;

    /// Every parameter it will run with, times in ns.
    fn parameters(&self) -> Map<String, Value>;

    /// Whether its wake-ups have stages that can be traced.
    fn can_be_traced(&self) -> bool {
        false
    }

    /// The series it will produce: each thread's own, with those of its stages after it where it
    /// is traced.
    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead>;

    /// Makes its threads and touches all memory they will use; they wait for [`Armed::start`].
    ///
    /// # Errors
    /// A thread could not be made or set up.
    fn arm(&self, wants: &Wants, stop: &Arc<Stop>) -> Result<Armed, ArmError>;
}

/// What shall come of a probe's samples, beside counts.
#[derive(Debug, Clone, Default)]
pub struct Wants {
    /// Single samples are kept, in rings of this size.
    pub ring_samples: Option<usize>,
    /// Stages are recorded.
    pub tracing: Option<Tracing>,
}

/// What a probe must know of the kernel's side.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// What it writes; the n-th thread reads the n-th record.
    pub records: Arc<dyn Records>,
    /// Real-time kernels let the timers of ordinary tasks expire in a softirq.
    pub is_rt: bool,
}

/// A measuring thread whose stages are recorded, as others see it.
#[derive(Debug)]
pub struct TracedThread {
    /// Its series of whole latencies.
    pub name: String,
    /// The CPU it is measured on.
    pub cpu: u32,
    /// The kernel's number of it.
    pub tid: i32,
    /// Its priority as the kernel counts, and whether that is a real-time one.
    pub priority: (i16, bool),
    /// What the warm-up measures.
    pub warmup: Arc<Series>,
    /// What it measures.
    pub total: Arc<Series>,
    /// Its threshold, and its unmatched wake-ups.
    pub watched: Arc<Watched>,
    /// Its late wake-ups.
    pub late: Reader<Late>,
}

/// A probe whose threads wait for the start.
#[derive(Debug)]
pub struct Armed {
    /// Its series, in the order of [`Probe::heads`].
    pub recorded: Vec<Recorded>,
    /// What its threads run as, per series.
    pub found: Vec<(String, Found)>,
    /// Those whose stages are recorded: all or none, in the order of [`Armed::tids`].
    pub traced: Vec<TracedThread>,
    threads: Vec<Thread>,
    stop: Arc<Stop>,
}

#[derive(Debug)]
struct Thread {
    series: String,
    tid: i32,
    go: Sender<Schedule>,
    handle: JoinHandle<Report>,
}

impl Armed {
    fn new(stop: &Arc<Stop>) -> Self {
        Self {
            recorded: Vec::new(),
            found: Vec::new(),
            traced: Vec::new(),
            threads: Vec::new(),
            stop: Arc::clone(stop),
        }
    }

    /// Starts a measuring thread. `set_up` runs in it at once and says what it runs as; `measure`
    /// runs when the schedule is known.
    fn spawn(
        &mut self,
        recorded: Recorded,
        set_up: impl FnOnce() -> io::Result<Found> + Send + 'static,
        measure: impl FnOnce(Schedule, &Found) -> Report + Send + 'static,
    ) -> Result<(), ArmError> {
        let series = recorded.head.name.clone();
        let (go, gate): (Sender<Schedule>, Receiver<Schedule>) = channel();
        let (tell, told) = channel();
        let name = series.clone();
        let body = move || {
            let found = set_up();
            let known = found.as_ref().ok().cloned();
            let _ = tell.send(found);
            match (known, gate.recv()) {
                (Some(found), Ok(schedule)) => measure(schedule, &found),
                _ => Report::of(&name, Ended::Stopped),
            }
        };
        let handle = std::thread::Builder::new()
            .name(format!("tardy/{series}"))
            .stack_size(STACK_BYTES)
            .spawn(body)
            .map_err(|source| ArmError::Thread { series: series.clone(), source })?;
        let found = told
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("it ended at once")))
            .map_err(|source| ArmError::Terms { series: series.clone(), source })?;
        self.threads.push(Thread { series: series.clone(), tid: found.tid, go, handle });
        self.found.push((series, found));
        self.recorded.push(recorded);
        Ok(())
    }

    /// The kernel's numbers of its threads.
    #[must_use]
    pub fn tids(&self) -> Vec<i32> {
        self.threads.iter().map(|thread| thread.tid).collect()
    }

    /// Lets the threads go.
    pub fn start(&self, schedule: Schedule) {
        for thread in &self.threads {
            // A thread that is gone shows when it is joined.
            let _ = thread.go.send(schedule);
        }
    }

    /// Whether every thread has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.is_finished())
    }

    /// Ends the loops, also those that sleep. To be repeated until [`Armed::is_done`]: a nudge
    /// between two turns has no effect.
    pub fn stop(&self) {
        self.stop.set();
        for thread in self.threads.iter().filter(|thread| !thread.handle.is_finished()) {
            signals::nudge(thread.tid);
        }
    }

    /// Waits for the threads and returns their reports, in the order of the series.
    #[must_use]
    pub fn finish(self) -> Vec<Report> {
        let joined = self.threads.into_iter().map(|thread| {
            // Threads that never got a schedule end when their gate closes.
            drop(thread.go);
            let series = thread.series;
            thread.handle.join().unwrap_or_else(|_| Report {
                broken: Some("the thread died".into()),
                ..Report::of(&series, Ended::Failed(0))
            })
        });
        joined.collect()
    }
}

/// Enough for the loops, which need less than a page; small because it is locked into memory.
const STACK_BYTES: usize = 256 * 1024;
