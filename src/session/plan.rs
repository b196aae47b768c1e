//! What is settled before anything is touched.

use std::path::PathBuf;

use super::tracing::TraceWish;
use crate::{
    loads::LoadSpec,
    probes::Probe,
    run::{Calibration, OsError},
    setup::{Wish, arrange::SetupRequest, journal::Recovered},
    sys::{cpus::Cpus, sched::Policy},
};

/// How long a run is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// So many ns.
    Time(i64),
    /// So many samples per series.
    Samples(u64),
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
    /// Keep every single sample.
    pub raw: bool,
    /// The CPUs that are measured.
    pub cpus: Cpus,
    /// Policy of the measured threads, as requested and as available.
    pub policy: (Wish<Policy>, Policy),
    /// Priority of the first of them, as requested and as available.
    pub priority: (Wish<u32>, u32),
    /// Timer slack of the measured threads, ns.
    pub slack_ns: u64,
    /// Hold `/dev/cpu_dma_latency`.
    pub hold_dma_latency: bool,
    /// What else is to be set up.
    pub wishes: SetupRequest,
    /// What is to be recorded about late wake-ups.
    pub trace: TraceWish,
    /// What the kernel said to the wished policy, where it refused that.
    pub real_time_refused: Option<OsError>,
    /// What other runs found that tracing costs, the last of them first.
    pub calibrations: Vec<Calibration>,
    /// What became of what a killed tardy had left changed.
    pub left: Recovered,
    /// The run directory.
    pub directory: PathBuf,
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
