//! The `attach` probe: threads of others, which are looked at and not touched.
//!
//! It has no thread. Programs in the kernel (`kernel::AttachPrograms`) count for each
//! thread how long it took from a wake-up to the CPU, and what it did then; this source reads the
//! counts twice a second and adds them up, also by names. No time lies in user space: a latency
//! begins with the wake-up, or the hard expiry of the thread's timer, and ends when the scheduler
//! switches to it. The way back to user space is not in it.

pub(super) mod flags;
mod awake;
mod command;
mod cycles;
mod figures;
mod followed;
mod hand_over;
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
use super::{ArmError, ArmOptions, Armed, Probe, Tracing};
use crate::{
    run::{AttachParameters, Deadlines, ProbeRecord, SeriesHead, series_name::name_of_task},
    sys::root::Root,
};

/// The name of the series of threads of this name, of which the kernel keeps a part.
#[must_use]
pub fn series_of_name(name: &str) -> String {
    name_of_task(target::cut_name(name.as_bytes()))
}

/// A planned attach probe.
#[derive(Debug, Clone)]
pub struct Attach {
    /// Whose threads.
    pub target: AttachTarget,
    /// Only threads of this name, of those of a command.
    pub only: Option<String>,
    /// What the command prints is the standard error's: the standard output is for the result.
    pub to_stderr: bool,
    /// What the work of a cycle may take, from the expiry of the thread's timer on.
    pub deadlines: Deadlines,
}

impl Attach {
    /// Whether there are such threads now, also of each name that has a deadline.
    ///
    /// # Errors
    /// The flag, what is wrong, and the remedy.
    pub fn check(&self, root: &Root) -> Result<(), String> {
        self.target.check(root)?;
        let of_threads = &self.deadlines.of_threads;
        if of_threads.is_empty() || matches!(self.target, AttachTarget::Command(_)) {
            // Which threads a command has shows at its end.
            return Ok(());
        }
        let found = self.target.scan(root);
        let mut names: Vec<String> = found.iter().map(|task| name_of_task(&task.comm)).collect();
        names.sort();
        names.dedup();
        let unknown = of_threads.iter().find(|own| !names.contains(&own.name));
        unknown.map_or(Ok(()), |own| Err(target::no_such_deadline(own, &names)))
    }

    /// Whether there is a thread of the target now; a command is started later.
    #[must_use]
    pub fn has_threads(&self, root: &Root) -> bool {
        matches!(self.target, AttachTarget::Command(_)) || !self.target.scan(root).is_empty()
    }
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
            deadlines: self.deadlines.of_threads.clone(),
        })
    }

    fn heads(&self, _: Option<&Tracing>) -> Vec<SeriesHead> {
        Vec::new()
    }

    fn finds_series(&self) -> bool {
        true
    }

    fn arm(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let mut armed = Armed::new(stop);
        let (traced, later) = wants.tracing.as_ref().map(|_| channel()).unzip();
        armed.traced_later = later;
        let mut source = AttachSource::new(self, Arc::clone(stop), traced)?;
        let (ends, late_cycles) = channel();
        (source.late_cycles, armed.late_cycles) = (Some(ends), Some(late_cycles));
        armed.found_series = Some(source.found());
        armed.add(Vec::new(), Box::new(source));
        Ok(armed)
    }
}
