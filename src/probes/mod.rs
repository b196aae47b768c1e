//! Probes produce latency samples: planned, armed, then series. No printing, no files.
//!
//! A probe is one directory here, one loop in `tardy-hot`, its block in the table of `run::probes`,
//! and its row in that of `options`. Its `flags.rs` has its options and makes it of them.

mod armed;
pub mod audio;
pub mod attach;
pub mod bandwidth;
mod evidence;
pub mod fake;
pub mod far_end;
pub mod found_series;
pub mod interactive;
pub mod inversion;
pub mod irq;
pub mod jobs;
mod measured_thread;
mod message_ends;
pub mod noise;
pub mod options;
pub mod pingpong;
pub mod receive;
pub mod request;
pub mod simulated_time;
pub mod stream;
pub mod timer;
mod traced_thread;
mod work_speed;

use std::{io, sync::Arc};

use serde::{Deserialize, Serialize};
use tardy_hot::{
    clock,
    ring::{Reader, Sample},
    stages::Records,
    stop::Stop,
    wakeup::{Ended, Series},
};
use thiserror::Error;

pub use self::traced_thread::{AttachedUsual, LateCycle, TracedSamples, TracedThread};
pub use self::{
    armed::{Armed, ExpiryGrid, SeriesSource},
    evidence::{
        ClockEvidence, FarLoss, FinishedAttach, MessageEvidence, OneThread, ReceiveEvidence,
        ServerLoss,
    },
};
use crate::{
    run::{
        Deviation, FigureHead, MessageRecord, ProbeRecord, SeriesHead,
        probes::{ProbeInfo, Traceable},
    },
    sys::faults::ThreadUsage,
};

/// When to measure. All times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Schedule {
    /// The first expiry of the warm-up, which is not recorded.
    pub warmup_ns: i64,
    /// The first recorded expiry.
    pub start_ns: i64,
    /// No expiry at or after this is waited for; `i64::MAX` for no end.
    pub end_ns: i64,
    /// The maximum number of samples per series; `u64::MAX` for no limit.
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

/// [`Ended`] for JSON: the measuring crate knows nothing of it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Ended")]
enum EndedInJson {
    Done,
    Stopped,
    Failed(i32),
}

/// The report of a measuring thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its series.
    pub series: String,
    /// Why its loop ended.
    #[serde(with = "EndedInJson")]
    pub ended: Ended,
    /// When, `CLOCK_MONOTONIC` ns.
    pub ended_ns: i64,
    /// What it used between the first and the last turn.
    pub usage: ThreadUsage,
    /// Times it was moved to another CPU meanwhile; `None` if the kernel does not report it.
    pub migrations: Option<u64>,
    /// In what it did not run as planned, at the start or at the end.
    pub broken: Option<Deviation>,
    /// Turns of its measured loop, where that never sleeps.
    #[serde(default)]
    pub turns: Option<u64>,
}

impl ThreadReport {
    /// Of a loop that has just ended.
    fn of(series: &str, ended: Ended) -> Self {
        Self {
            series: series.into(),
            ended,
            ended_ns: clock::now_ns(),
            usage: ThreadUsage::default(),
            migrations: None,
            broken: None,
            turns: None,
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
        /// The system's error.
        source: io::Error,
    },
    /// A thread could not be set up.
    #[error("cannot set up the thread of {series}: {source}")]
    ThreadConfig {
        /// Its series.
        series: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A remote endpoint could not be started, or cannot have what it needs.
    #[error("cannot start the remote endpoint {name}: {why}")]
    Far {
        /// `far`, `far2`, ...
        name: String,
        /// What it said, or the program that was to start it.
        why: String,
    },
    /// The way to wait is not available.
    #[error("--wake {wake} is not available: {why}")]
    Wait {
        /// As on the command line.
        wake: &'static str,
        /// What refuses it, and the remedy.
        why: String,
    },
    /// The transport is not available.
    #[error("{0}")]
    Transport(String),
}

/// What must be looked after while a probe measures, beside its threads: remote endpoints, and
/// answers that do not come.
pub trait ProbeSupervisor: std::fmt::Debug {
    /// The schedule is known; the threads begin after this.
    fn start(&mut self, schedule: Schedule);

    /// Looks after it, about every 50 ms. Sets `stop` where continuing is useless.
    fn poll(&mut self, stop: &Stop);

    /// Whether what measuring threads opened is closed before [`ProbeSupervisor::finish`] and not
    /// after it: where a remote endpoint waits for them in a way that nothing else can end.
    fn closes_first(&self) -> bool {
        false
    }

    /// Ends it: the measuring threads have ended, and these are their reports. Those of remote
    /// endpoints are added.
    fn finish(self: Box<Self>, reports: &mut Vec<ThreadReport>) -> SupervisorRecord;
}

/// One repeat of one figure, as it leaves a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureValue {
    /// Its place among [`Probe::figures`].
    pub figure: usize,
    /// When it ended, `CLOCK_MONOTONIC` ns.
    pub end_ns: i64,
    /// In the unit of the figure.
    pub value: f64,
}

/// The result of a supervisor.
#[derive(Debug, Default)]
pub struct SupervisorRecord {
    /// The result of the messages.
    pub messages: Option<MessageRecord>,
    /// What is known of them beside.
    pub evidence: MessageEvidence,
}

/// The result of a probe.
#[derive(Debug)]
pub struct FinishedProbe {
    /// Of measuring threads and other sources in the order of the series, then of remote endpoints.
    pub reports: Vec<ThreadReport>,
    /// How many of the reports are of what measured.
    pub measured: usize,
    /// Figures that could not be measured, by their place among [`Probe::figures`], and why.
    pub figure_refusals: Vec<(usize, String)>,
    /// What its supervisor left.
    pub kept: SupervisorRecord,
    /// What is known of threads of others.
    pub attached: Option<FinishedAttach>,
}

/// A probe that is planned but has touched nothing yet.
pub trait Probe {
    /// Its name in `run.json` and on the command line.
    fn name(&self) -> &'static str;

    /// Itself with every parameter it will run with.
    fn parameters(&self) -> ProbeRecord;

    /// Whether its wake-ups have stages that can be traced.
    fn can_be_traced(&self) -> bool {
        ProbeInfo::find(self.name()).is_some_and(|probe| probe.traceable != Traceable::No)
    }

    /// What is said of one that cannot be.
    fn why_untraceable(&self) -> &'static str {
        "has no wake-ups that can be traced"
    }

    /// Whether it is traced only where that is asked for.
    fn is_traced_on_request(&self) -> bool {
        let asked = [Traceable::OnRequest, Traceable::Causes];
        ProbeInfo::find(self.name()).is_some_and(|probe| asked.contains(&probe.traceable))
    }

    /// Whether its samples have stages.
    fn has_stages(&self) -> bool {
        ProbeInfo::find(self.name()).is_none_or(|probe| probe.traceable != Traceable::Causes)
    }

    /// The series it will produce: each thread's own, with those of its stages after it where it
    /// is traced.
    fn heads(&self, tracing: Option<&Tracing>) -> Vec<SeriesHead>;

    /// The figures it will measure that are not latencies; their values come through
    /// [`Armed::figures`].
    fn figures(&self) -> Vec<FigureHead> {
        Vec::new()
    }

    /// Whether it finds series while it measures, in [`Armed::found_series`]: then
    /// [`Probe::heads`] has none of them.
    fn finds_series(&self) -> bool {
        false
    }

    /// Makes its threads and touches all memory they will use; they wait for [`Armed::start`].
    ///
    /// # Errors
    /// A thread could not be made or set up.
    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError>;
}

/// What to do with a probe's samples, beside counting them.
#[derive(Debug, Clone, Default)]
pub struct ArmOptions {
    /// Single samples are kept, in rings of this size.
    pub ring_samples: Option<usize>,
    /// Stages are recorded.
    pub tracing: Option<Tracing>,
}

/// What a probe must know of the BPF side.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// What it writes; the n-th thread reads the n-th record.
    pub records: Arc<dyn Records>,
    /// Real-time kernels let the timers of ordinary tasks expire in a softirq.
    pub is_rt: bool,
}

/// Enough for the loops, which need less than a page; small because it is locked into memory.
const STACK_BYTES: usize = 256 * 1024;
