//! The `attach` probe: threads of others, which are looked at and not touched.
//!
//! It has no thread. Programs in the kernel (`kernel::AttachPrograms`) count for each
//! thread how long it took from a wake-up to the CPU, and what it did then; this source reads the
//! counts twice a second and adds them up, also by names. No time lies in user space: a latency
//! begins with the wake-up, or the hard expiry of the thread's timer, and ends when the scheduler
//! switches to it. The way back to user space is not in it.

mod awake;
mod command;
mod cycles;
mod figures;
mod followed;
mod late;
mod policies;
mod reading;
#[cfg(test)]
pub(crate) mod replayed;
mod room;
mod schedule;
mod source;
mod sums;
mod target;
mod threads;

use std::sync::{Arc, mpsc::channel};

use tardy_hot::stop::Stop;

use self::source::AttachSource;
pub use self::target::AttachTarget;
use super::{ArmError, Armed, Probe, Tracing, Wants};
use crate::run::{AttachParameters, ProbeRecord, SeriesHead};

/// A planned attach probe.
#[derive(Debug, Clone)]
pub struct Attach {
    /// Whose threads.
    pub target: AttachTarget,
    /// Only threads of this name, of those of a command.
    pub only: Option<String>,
    /// What the command prints is the standard error's: the standard output is for the result.
    pub to_stderr: bool,
    /// What the work of a cycle may take, from the expiry of the thread's timer on, ns.
    pub deadline_ns: Option<i64>,
}

impl Probe for Attach {
    fn name(&self) -> &'static str {
        "attach"
    }

    fn parameters(&self) -> ProbeRecord {
        ProbeRecord::Attach(AttachParameters {
            by: self.target.kind().into(),
            target: self.target.value(),
            only: self.only.clone(),
        })
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        Vec::new()
    }

    fn finds_series(&self) -> bool {
        true
    }

    fn arm(&self, wants: &Wants, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (traced, later) = wants.tracing.as_ref().map(|_| channel()).unzip();
        armed.traced_later = later;
        let source = AttachSource::new(self, Arc::clone(stop), traced)?;
        armed.found_series = Some(source.found());
        armed.add(Vec::new(), Box::new(source));
        Ok(armed)
    }
}
