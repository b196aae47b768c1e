//! What is settled before anything is touched.

use std::path::PathBuf;

use super::trace_wish::TraceWish;
use crate::{
    loads::LoadSpec,
    probes::Probe,
    run::{Calibration, OsError, RunDirectory},
    setup::{Requested, arrange::SetupRequest, journal::Recovered},
    sys::{cpus::Cpus, ftrace::ForeignTrace, sched::Policy},
};

/// How long a run is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// A time in ns.
    Time(i64),
    /// A number of samples per series.
    Samples(u64),
    /// Until somebody ends it.
    Unlimited,
}

impl Length {
    /// When a run that begins at `start_ns` ends, ns, and the most samples of a series.
    pub(super) const fn limits(self, start_ns: i64) -> (i64, u64) {
        match self {
            Self::Time(ns) => (start_ns.saturating_add(ns), u64::MAX),
            Self::Samples(samples) => (i64::MAX, samples),
            Self::Unlimited => (i64::MAX, u64::MAX),
        }
    }

    /// How long it takes from now on, ns, where that is known: each series has `done` samples or
    /// more.
    pub(super) fn left_ns(self, elapsed_ns: i64, done: u64) -> Option<i64> {
        match self {
            Self::Time(ns) => Some(ns - elapsed_ns.max(0)),
            Self::Samples(samples) => {
                let left = samples.saturating_sub(done) as f64;
                // At the pace so far, for only some probes have one.
                let each_ns = elapsed_ns as f64 / done as f64;
                (done > 0).then_some((left * each_ns) as i64)
            }
            Self::Unlimited => None,
        }
    }
}

/// Everything that is settled before anything is touched.
pub(crate) struct RunPlan {
    /// What measures.
    pub probe: Box<dyn Probe>,
    /// What disturbs.
    pub loads: Vec<LoadSpec>,
    /// How long.
    pub length: Length,
    /// Time between expiries, ns.
    pub interval_ns: i64,
    /// Time before that is not recorded, ns.
    pub warmup_ns: i64,
    /// A latency above this ends the run; ns.
    pub stop_over_ns: Option<i64>,
    /// That marks and stops this trace, which somebody else runs.
    pub foreign_trace: Option<ForeignTrace>,
    /// What latencies are to keep, ns: changes nothing but what is said of them.
    pub deadline_ns: Option<i64>,
    /// Keep every single sample.
    pub raw: bool,
    /// The CPUs that are measured.
    pub cpus: Cpus,
    /// Policy of the measured threads, as requested and as available.
    pub policy: Requested<Policy>,
    /// Priority of the first of them, as requested and as available.
    pub priority: Requested<u32>,
    /// Timer slack of the measured threads, ns.
    pub slack_ns: u64,
    /// Hold `/dev/cpu_dma_latency`.
    pub hold_dma_latency: bool,
    /// What else is to be set up.
    pub wishes: SetupRequest,
    /// What is to be recorded about late wake-ups.
    pub trace: TraceWish,
    /// How often a second every CPU is sampled; absent for no profile.
    pub profile_hz: Option<u32>,
    /// What the kernel said to the wished policy, where it refused that.
    pub real_time_refused: Option<OsError>,
    /// What other runs found that tracing costs, the last of them first.
    pub calibrations: Vec<Calibration>,
    /// What became of what a killed tardy had left changed.
    pub left: Recovered,
    /// The run directory.
    pub directory: PathBuf,
    /// The same, where whoever started this process has made it.
    pub held: Option<RunDirectory>,
    /// Its name; the id where the user gave none.
    pub name: Option<String>,
    /// Its id.
    pub id: String,
    /// The command line.
    pub argv: Vec<String>,
}

impl RunPlan {
    /// 5 s of samples, if they are kept.
    pub(super) fn ring_size(&self) -> Option<usize> {
        let samples = 5_000_000_000 / self.interval_ns.max(1);
        self.raw.then(|| usize::try_from(samples).unwrap_or(0).clamp(1024, 8 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_an_end_has_no_limit_and_nobody_knows_what_is_left() {
        assert_eq!(Length::Unlimited.limits(7), (i64::MAX, u64::MAX));
        assert_eq!(Length::Unlimited.left_ns(1_000_000_000, 1_000), None);
        assert_eq!(Length::Time(i64::MAX).limits(7), (i64::MAX, u64::MAX));
        assert_eq!(Length::Time(10).limits(7), (17, u64::MAX));
        assert_eq!(Length::Time(10).left_ns(-5, 0), Some(10), "in the warm-up");
        assert_eq!(Length::Samples(30).limits(7), (i64::MAX, 30));
        assert_eq!(Length::Samples(30).left_ns(100, 10), Some(200));
        assert_eq!(Length::Samples(30).left_ns(100, 0), None);
    }
}
