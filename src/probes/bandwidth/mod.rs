//! The `bandwidth` probe: bytes per second through pipes, sockets, files and memory, and times of
//! system calls, signals, faults, waits, context switches and processes. As lmbench defines each,
//! where `docs/reference/probes/classics.md` does not say otherwise.
//!
//! All is measured by its own process, `tardy __far`, which is small and whose memory is not
//! locked: how long fork and page faults take depends on both. It makes further processes, which
//! the kernel kills with it.

pub(super) mod flags;
mod figure;
mod make;
mod rounds;
mod work;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
};

use tardy_hot::{stop::Stop, wakeup::Ended};

pub use self::figure::PlannedFigure;
use self::work::{Order, taken};
use super::{
    ArmError, ArmOptions, Armed, FigureValue, Probe, Schedule, SeriesSource, ThreadReport, Tracing,
    far_end::{FarEndSpec, Launched, RunningFarEnd},
};
use crate::{
    run::{BandwidthParameters, Deviation, FigureHead, ProbeRecord, SeriesHead},
    setup::threads::ThreadConfig,
};
pub(crate) use work::BandwidthWork;

/// The name of the job of its process, and of that process in reports.
pub(super) const JOB: &str = "bandwidth";

/// A planned `bandwidth` probe.
#[derive(Debug, Clone)]
pub struct Bandwidth {
    /// What is measured, in this order.
    pub figures: Vec<PlannedFigure>,
    /// What the process that measures runs as; senders and rings take it over, the processes of
    /// `fork`, `exec` and `shell` are ordinary tasks.
    pub near: ThreadConfig,
    /// Where the senders of pipes and sockets run.
    pub far_cpu: u32,
    /// Where the file of the file figures is made.
    pub directory: PathBuf,
}

impl Probe for Bandwidth {
    fn name(&self) -> &'static str {
        "bandwidth"
    }

    fn parameters(&self) -> ProbeRecord {
        let has_file = self.figures.iter().any(PlannedFigure::has_file);
        ProbeRecord::Bandwidth(BandwidthParameters {
            figures: self.figures.iter().map(PlannedFigure::name).collect(),
            cpu: self.near.cpu,
            far_cpu: self.far_cpu,
            directory: has_file.then(|| self.directory.display().to_string()),
        })
    }

    fn why_untraceable(&self) -> &'static str {
        "measures no latencies that can be traced"
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        Vec::new()
    }

    fn figures(&self) -> Vec<FigureHead> {
        self.figures.iter().map(PlannedFigure::head).collect()
    }

    fn arm(&self, _: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let order = Order {
            figures: self.figures.clone(),
            near_cpu: self.near.cpu,
            far_cpu: self.far_cpu,
            directory: self.directory.clone(),
        };
        let spec = FarEndSpec::new(JOB.into(), JOB, &order, self.near.clone())?.unlocked();
        let process = Launched::process(spec, Vec::new())?.ready()?;
        let (values, figures) = channel();
        let mut armed = Armed::new(stop);
        armed.figures = Some(figures);
        armed.found.push(process.found());
        let measuring = Measuring {
            process: Some(process),
            values,
            bytes: Vec::new(),
            refusals: Vec::new(),
            is_stopping: false,
        };
        armed.add(Vec::new(), Box::new(measuring));
        Ok(armed)
    }
}

/// The process that measures, as the session sees it.
#[derive(Debug)]
struct Measuring {
    /// Until it is finished.
    process: Option<RunningFarEnd>,
    values: Sender<FigureValue>,
    /// Of a value that has not come whole.
    bytes: Vec<u8>,
    refusals: Vec<(usize, String)>,
    is_stopping: bool,
}

impl Measuring {
    fn pass_on(&mut self) {
        for value in taken(&mut self.bytes) {
            // Who collects them is there until the end.
            let _ = self.values.send(value);
        }
    }
}

impl SeriesSource for Measuring {
    fn start(&mut self, schedule: Schedule) {
        self.process.iter_mut().for_each(|process| process.go(schedule));
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self) {
        self.process.iter_mut().for_each(|process| process.fresh(&mut self.bytes));
        self.pass_on();
    }

    fn is_done(&mut self) -> bool {
        self.is_stopping || self.process.as_mut().is_none_or(|process| process.poll().is_some())
    }

    fn stop(&mut self) {
        self.is_stopping = true;
    }

    fn finish(&mut self) -> Vec<ThreadReport> {
        let Some(process) = self.process.take() else { return Vec::new() };
        let end = process.finish();
        self.bytes.extend(end.fresh);
        self.pass_on();
        self.refusals = serde_json::from_value(end.value).unwrap_or_default();
        let died = || ThreadReport {
            broken: Some(Deviation::Died),
            ..ThreadReport::of(JOB, Ended::Failed(0))
        };
        let mut report = end.report.unwrap_or_else(died);
        // Faults are among what it measures, and a copy of a page is in every fork.
        (report.usage.minor_faults, report.usage.major_faults) = (0, 0);
        vec![report]
    }

    fn refusals(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.refusals)
    }
}
