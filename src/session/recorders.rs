//! What records beside the measurement: tracing with its cost, and the profile.

use anyhow::Result;

use super::{
    Session,
    active_tracing::{ActiveTracing, RecorderContext},
    cadence::Cadence,
    calibrate,
    profiling::{ProfileContext, ProfileRecorder},
};
use crate::probes::Schedule;

impl Session {
    /// Measures what tracing costs, where that is requested and tracing is available.
    pub(super) fn calibrate(&mut self, quit: &mut impl FnMut() -> Option<String>) -> Result<()> {
        let Some(traced) = self.traced.as_mut().filter(|_| self.plan.trace.calibrate) else {
            return Ok(());
        };
        traced.pause();
        self.document.trace.cost =
            calibrate::cost(&self.plan, &self.arranged, traced, || quit().is_some())?;
        traced.resume()
    }

    /// Has late wake-ups blamed from now on, where that is wished.
    pub(super) fn watch(
        &mut self,
        schedule: &Schedule,
        cadence: Cadence,
    ) -> Result<Option<ActiveTracing>> {
        let Some(traced) = self.traced.take() else { return Ok(None) };
        let housekeeping = self.housekeeping()?;
        let recording = RecorderContext {
            wish: &self.plan.trace,
            stop_over_ns: self.plan.stop_over_ns,
            virtual_machine: self.document.facts.virtualisation.is_some(),
            directory: &self.directory,
            start_ns: schedule.start_ns,
            cadence,
            measured_priority: self.plan.priority.granted,
            free: &housekeeping.without(&self.plan.cpus),
            measured: &self.plan.cpus,
            housekeeping: &housekeeping,
        };
        let later = self.armed.traced_later.take();
        traced.record(&recording, later).map(Some)
    }

    /// Has every CPU sampled from now on, where that is wished.
    pub(super) fn profile(
        &mut self,
        schedule: &Schedule,
        cadence: Cadence,
    ) -> Result<Option<ProfileRecorder>> {
        // Without a profile nobody listens to these.
        let late_cycles = self.armed.late_cycles.take();
        let Some(profiler) = self.profiler.take() else { return Ok(None) };
        let run = ProfileContext {
            directory: self.directory.clone(),
            start_ns: schedule.start_ns,
            cadence,
            measured_priority: self.plan.priority.granted,
            housekeeping: self.housekeeping()?,
            late_cycles,
        };
        profiler.start(run).map(Some)
    }
}
