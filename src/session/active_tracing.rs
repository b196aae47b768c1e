//! Tracing that continues beside the measurement, and what it leaves.

use anyhow::{Context, Result};

use super::{
    blame_recorder::{BlameRecorder, Blamed, unmatched},
    cadence::Cadence,
    ending::Ending,
    evidence::RefusedWrite,
    stage_recorder::{FoundStages, StageInputs, StageRecorder},
    trace_wish::TraceWish,
    traced_by::TracedBy,
};
use crate::{
    probes::TracedThread,
    run::{HelperTime, LostEvents, RunDirectory, TraceRecord, peaks::Blame},
    sys::cpus::Cpus,
};

/// What tracing leaves.
#[derive(Debug, Default)]
pub(super) struct TraceEnd {
    unmatched: u64,
    blame: Option<Blame>,
    /// The kernel hides the addresses of its functions.
    pub symbols_hidden: bool,
    /// What the disk refused of the blame, the first time.
    pub refused: Option<RefusedWrite>,
    /// What the thread took that blames, where there is one.
    pub helper: Option<HelperTime>,
    /// What the kernel's own tracer lost.
    lost_on: Vec<LostEvents>,
}

/// What a recorder must know of the run.
pub(super) struct RecorderContext<'a> {
    pub wish: &'a TraceWish,
    pub stop_over_ns: Option<i64>,
    pub virtual_machine: bool,
    pub directory: &'a RunDirectory,
    pub start_ns: i64,
    pub cadence: Cadence,
    pub measured_priority: u32,
    pub housekeeping: &'a Cpus,
    /// CPUs that are measured.
    pub measured: &'a Cpus,
    /// CPUs that are not, if any.
    pub free: &'a Cpus,
}

/// Tracing that continues.
#[derive(Debug)]
pub(super) enum ActiveTracing {
    /// Threads record their stages; nothing else is needed.
    Stages(TracedBy, Vec<TracedThread>),
    /// A helper finds them.
    FoundStages(StageRecorder),
    /// Late wake-ups are blamed, too.
    Peaks { recorder: BlameRecorder, symbols_hidden: bool },
}

impl ActiveTracing {
    /// Of `source`, which follows these threads; by a helper where they cannot do it themselves.
    ///
    /// # Errors
    /// The helper cannot be made.
    pub(super) fn stages(
        source: TracedBy,
        threads: Vec<TracedThread>,
        run: &RecorderContext<'_>,
    ) -> Result<Self> {
        let matcher = match source {
            TracedBy::Bpf(_) => return Ok(Self::Stages(source, threads)),
            TracedBy::Tracefs(matcher) => matcher,
        };
        let recorder = StageRecorder::start(StageInputs {
            matcher: *matcher,
            threads,
            start_ns: run.start_ns,
            cadence: run.cadence,
            measured_priority: run.measured_priority,
            housekeeping: run.housekeeping.clone(),
        });
        Ok(Self::FoundStages(recorder.context("cannot start the thread that finds stages")?))
    }

    /// Ends it; the measured threads must have ended, at `end_ns`.
    ///
    /// # Errors
    /// The thread that blames died.
    pub(super) fn finish(self, end_ns: i64, ending: &mut Ending<'_>) -> Result<TraceEnd, String> {
        match self {
            Self::Stages(mut source, threads) => {
                source.detach();
                Ok(TraceEnd { unmatched: unmatched(&threads), ..TraceEnd::default() })
            }
            Self::FoundStages(recorder) => {
                let FoundStages { threads, lost_on, helper } = recorder.finish()?;
                let (unmatched, helper) = (unmatched(&threads), Some(helper));
                Ok(TraceEnd { unmatched, helper, lost_on, ..TraceEnd::default() })
            }
            Self::Peaks { recorder, symbols_hidden } => {
                let Blamed { blame, refused, helper, lost_on } = recorder.finish(end_ns, ending)?;
                let (unmatched, blame, helper) = (blame.unmatched, Some(blame), Some(helper));
                Ok(TraceEnd { unmatched, blame, symbols_hidden, refused, helper, lost_on })
            }
        }
    }
}

impl TraceEnd {
    /// What late samples were blamed on; `None` if they were not.
    pub(super) const fn blame(&self) -> Option<&Blame> {
        self.blame.as_ref()
    }

    /// Writes what came of it into the record.
    pub(super) fn record(&self, record: &mut TraceRecord) {
        record.unmatched = self.unmatched;
        record.lost_on.clone_from(&self.lost_on);
        if let Some(blame) = &self.blame {
            record.lost_events = blame.lost_events;
            record.blamed = blame.blamed;
            record.passed_over = blame.passed_over;
            record.peaks_left_out = blame.peaks_left_out;
            record.threshold_ns = blame.threshold_ns;
        }
    }
}
