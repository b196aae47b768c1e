//! The conductor: a plan becomes a run. Planned -> Armed -> Finished.
//!
//! Changes on the machine, all undone at the end or by the kernel when the process goes: locked
//! memory, a request on `/dev/cpu_dma_latency`, policy and affinity of its threads, and what
//! the loads do. What `setup::arrange` changes is undone at the end, or from its journal.

mod active_tracing;
pub(crate) mod alone;
mod cadence;
mod calibrate;
mod collect;
mod conditions_monitor;
mod caveats;
mod drain;
mod ending;
mod evidence;
pub(crate) mod flight;
mod figure_collector;
mod foreign_use;
mod helper_use;
pub(crate) mod hwlat;
mod progress;
mod quantiles;
mod loads;
mod lost_parts;
mod machine;
mod blame_pace;
mod blame_recorder;
mod blame_time;
mod plan;
mod profile_late;
mod profile_sums;
mod profiling;
mod record;
#[cfg(test)]
mod replayed;
mod recorders;
mod run_progress;
mod source;
mod stage_matcher;
mod stage_recorder;
mod ticks;
mod trace_wish;
mod traced_by;
mod tracing;
mod interval_reader;
mod late_samples;
mod watchdog;

use std::sync::Arc;

use anyhow::{Context, Result};
use tardy_hot::{clock::now_ns, stop::Stop, wakeup::Series};

use crate::{
    loads::{LoadEnd, RunningLoad},
    probes::{ArmOptions, Armed, FinishedProbe, Recorded, Schedule},
    run::{
        Document, MakeError, RunDirectory, RunWriter, Status, tracks::to_csv, work_before_and_after,
    },
    setup::{
        arrange::Arranged, machine::labels, memory::Locked, power::DmaLatency,
        threads::become_helper,
    },
    sys::{
        cpus::Cpus, ftrace::ForeignTrace, memory, notifier::Notifier, root::Root, sched::Policy,
        signals,
    },
};
use active_tracing::{ActiveTracing, TraceEnd};
use cadence::{BEFORE_NS, Cadence, PollSchedule};
pub(crate) use calibrate::LENGTH_NS as CALIBRATION_NS;
pub(crate) use caveats::{left_changed, shield_gaps};
use conditions_monitor::ConditionsMonitor;
use drain::{Begun, Drain, DrainInputs};
use ending::Ending;
use evidence::Evidence;
use figure_collector::FigureCollector;
use interval_reader::IntervalReader;
use machine::{Counted, MeasuredCounts};
pub(crate) use plan::{Length, RunPlan};
use profiling::{LoadedProfiler, ProfileRecorder};
pub(crate) use progress::{LoadProgress, RunProgress, ShowPace};
use ticks::in_pause;
pub(crate) use trace_wish::TraceWish;
use tracing::Loaded;
use watchdog::{WakeTimes, Watchdog};

/// A plan whose threads wait and whose loads run.
pub(crate) struct Session {
    plan: RunPlan,
    armed: Armed,
    stop: Arc<Stop>,
    /// Ends a pause of the conductor.
    bell: Notifier,
    locked: Locked,
    dma_latency: Option<DmaLatency>,
    /// What traces, where wake-ups are traced. Goes before what it was arranged for is undone.
    traced: Option<Loaded>,
    arranged: Arranged,
    loads: Vec<Arc<RunningLoad>>,
    directory: RunDirectory,
    /// Until the drain has it.
    maker: Option<RunWriter>,
    document: Document,
    evidence: Evidence,
    /// What samples every CPU, where that is wished.
    profiler: Option<LoadedProfiler>,
}

impl Session {
    /// Arranges the machine, arms the probe and starts the loads.
    ///
    /// # Errors
    /// Something that was requested is not available; then nothing is left behind.
    pub(crate) fn arm(mut plan: RunPlan) -> Result<Self> {
        memory::keep_heap();
        signals::accept_nudges().context("cannot set a signal handler")?;
        let labels = labels()?;
        let mut evidence = Evidence { setup: collect::planned(&mut plan), ..Evidence::default() };
        // Before loads: in a slow guest, loading while they run takes a minute.
        let traced = tracing::load(&plan, &mut evidence.trace)?;
        let profiler = profiling::load(plan.profile_hz)?;
        let trace = evidence.trace.record.clone();
        let mut document = record::planned(&plan, traced.as_ref().map(Loaded::tracing), trace);
        document.facts.labels = labels;
        let maker = RunWriter::within(plan.held.take(), &plan.directory, &document, plan.raw)?;
        let directory = maker.directory().clone();
        Self::arm_within(plan, maker, document, evidence, traced)
            .map(|armed| Self { profiler, ..armed })
            // Nothing was measured: an empty run would only be in the way.
            .inspect_err(|_| directory.discard())
    }

    fn arm_within(
        plan: RunPlan,
        maker: RunWriter,
        document: Document,
        mut evidence: Evidence,
        mut traced: Option<Loaded>,
    ) -> Result<Self> {
        let claimed = traced.as_mut().and_then(Loaded::claim);
        let arranged =
            Arranged::make_with(claimed, &plan.wishes, &plan.cpus, &plan.argv.join(" "))?;
        // Loads first: their processes must not inherit locked memory or wait for ours.
        let directory = maker.directory().clone();
        let loads = loads::start_logged(&plan.loads, &directory)?;
        let mut locked = Locked::before_arming();
        let bell = Notifier::new().context("cannot make an eventfd")?;
        let alarm = plan.foreign_trace.as_ref().map(ForeignTrace::alarm);
        let stop = Arc::new(alarm.map_or_else(Stop::new, Stop::with_alarm));
        let tracing = traced.as_ref().map(|traced| traced.tracing().clone());
        let wants = ArmOptions { ring_samples: plan.ring_size(), tracing };
        if let Some(traced) = traced.as_mut().filter(|_| plan.probe.finds_series()) {
            // What records events comes before what hands late wake-ups over, also at one
            // tracepoint: their events are there then.
            traced.begin(Vec::new())?;
        }
        let mut armed = arranged.within(|| plan.probe.arm(&wants, &stop))??;
        armed.rings(&bell);
        locked.after_arming();
        evidence.setup.memory_refused = locked.refused().cloned();
        evidence.setup.shield = arranged.shield_gaps().cloned();
        let dma_latency = collect::dma_latency(&plan, &mut evidence.setup)?;
        if let Some(traced) = &mut traced {
            traced.begin(std::mem::take(&mut armed.traced))?;
        }
        let maker = Some(maker);
        Ok(Self {
            plan,
            armed,
            stop,
            bell,
            locked,
            dma_latency,
            traced,
            arranged,
            loads,
            directory,
            maker,
            document,
            evidence,
            profiler: None,
        })
    }

    /// Whether it measures first what tracing costs.
    #[must_use]
    pub(crate) fn calibrates(&self) -> bool {
        self.traced.is_some() && self.plan.trace.calibrate
    }

    /// What a signal must ring so that `quit` of [`Session::run`] is asked at once.
    pub(crate) const fn bell(&self) -> &Notifier {
        &self.bell
    }

    /// The run directory, held open: what is measured is read through it, whatever comes into its
    /// place.
    pub(crate) fn directory(&self) -> RunDirectory {
        self.directory.clone()
    }

    /// Measures until the plan's end, a latency over the limit, or `quit` says so, which is asked
    /// about once a second; `show` is called at its pace, with the time since the start, ns, and
    /// with what makes the rest.
    ///
    /// # Errors
    /// The record cannot be written. What was appended by then is readable.
    pub(crate) fn run(
        mut self,
        mut quit: impl FnMut() -> Option<String>,
        mut show: Option<(ShowPace, impl FnMut(i64, &dyn Fn() -> RunProgress))>,
    ) -> Result<Document> {
        // A load must neither let the start come late, which would look like a latency of the
        // first sample, nor keep Ctrl-C waiting. The drain reports where this is refused.
        let _ = become_helper(self.plan.priority.granted, &self.housekeeping()?);
        let directory = self.directory.clone();
        // As in `arm`: nothing was measured.
        let discard = |_: &anyhow::Error| directory.discard();
        self.calibrate(&mut quit).inspect_err(discard)?;
        // Before the schedule is made: it takes a while, and a run without warm-up begins at once.
        let monitor = self.monitor();
        let is_shared = self.free_cpus()?.is_empty();
        let schedule = self.schedule(is_shared);
        record::begin(&mut self.document, &self.plan, &self.armed, &schedule);
        let (plan, held) = (&self.plan, self.dma_latency.as_ref());
        record::setup(&mut self.document, plan, &self.locked, held, &self.arranged);
        let cadence = Cadence::new(schedule.start_ns, self.armed.grid.as_ref(), is_shared);
        let waits = self.plan.policy.granted == Policy::Other || cadence.has_breaks();
        self.evidence.setup.helpers_beside = is_shared && waits;
        let first_counts_ns = cadence.first_counts_ns(schedule.start_ns);
        let mut counts = MeasuredCounts::new(Root::default(), first_counts_ns);
        let (series, pausing) = (self.tallies(), self.pausing(cadence));
        let drain = self.drain(&schedule, cadence, monitor).inspect_err(discard)?;
        // On guard before there is anything to guard against: a conductor that goes before loads
        // has no share of a CPU that measured threads keep.
        let watchdog = self.watchdog(cadence)?;
        self.evidence.setup.nothing_above = watchdog.as_ref().and_then(Watchdog::nothing_above);
        let is_shown = matches!(show, Some((ShowPace::Live, _)));
        let (start_ns, is_guarded) = (schedule.start_ns, watchdog.is_some());
        let looks =
            PollSchedule::new(cadence, start_ns, self.armed.is_polled(), is_shown, is_guarded);
        let looks = if self.armed.hurries { looks.hurried() } else { looks };
        let traced = self.watch(&schedule, cadence)?;
        let profile = self.profile(&schedule, cadence)?;
        self.armed.start(schedule);
        let mut ended_by = None;
        while !self.armed.is_done() {
            let (now, is_ending) = (now_ns(), ended_by.is_some() || self.stop.is_set());
            self.bell.wait(counts.next_in_ns(looks.next_in_ns(now, is_ending), now));
            if counts.is_due(now_ns()) {
                in_pause(pausing.as_deref(), |_| counts.poll(now_ns()));
            }
            watchdog.iter().for_each(Watchdog::beat);
            self.armed.poll();
            if ended_by.is_none() {
                ended_by = quit();
            }
            if ended_by.is_some() || self.stop.is_set() {
                self.armed.stop();
            }
            if let Some((_, show)) = &mut show {
                show(now_ns() - start_ns, &|| self.progress(&schedule, &series));
            }
        }
        let counted = counts.end(now_ns());
        self.evidence.setup.watchdog = watchdog.and_then(Watchdog::finish);
        let is_awaited = ended_by.is_some();
        // Without another end, this is the one that was asked for.
        self.evidence.ended_by = ended_by.filter(|_| self.plan.length != Length::Unlimited);
        let is_hurried = &mut || !is_awaited && quit().is_some();
        let ending = Ending { is_awaited, is_hurried };
        self.finish(schedule, drain, (traced, profile), &counted, ending)
    }

    /// Only where measured threads could keep every CPU from this one.
    fn watchdog(&self, cadence: Cadence) -> Result<Option<Watchdog>> {
        if !self.plan.policy.granted.is_real_time() || !self.free_cpus()?.is_empty() {
            return Ok(None);
        }
        let wakes = WakeTimes { cadence, bell: self.bell.clone() };
        let watchdog =
            Watchdog::start(self.plan.priority.granted, &self.stop, self.armed.tids(), wakes);
        Ok(Some(watchdog.context("cannot start the watchdog")?))
    }

    /// The CPUs that are not measured; may be none.
    fn housekeeping(&self) -> Result<Cpus> {
        let housekeeping = self.arranged.housekeeping(&self.plan.cpus);
        housekeeping.context("cannot ask which CPUs this process may use")
    }

    /// Those of them that helpers have for themselves.
    fn free_cpus(&self) -> Result<Cpus> {
        Ok(self.housekeeping()?.without(&self.plan.cpus))
    }

    fn tallies(&self) -> Vec<(String, Arc<Series>)> {
        let tally =
            |recorded: &Recorded| (recorded.head.name.clone(), Arc::clone(&recorded.series));
        let is_whole = |recorded: &&Recorded| !recorded.head.is_stage();
        self.armed.recorded.iter().filter(is_whole).map(tally).collect()
    }

    /// The warm-up begins a little later, so that every thread is there in time; where helpers
    /// share a CPU that is measured, after what they read first.
    fn schedule(&self, is_shared: bool) -> Schedule {
        let warmup_ns = now_ns() + if is_shared { 3 * BEFORE_NS } else { BEFORE_NS };
        let start_ns = warmup_ns.saturating_add(self.plan.warmup_ns);
        let (end_ns, samples) = self.plan.length.limits(start_ns);
        let stop_over_ns = self.plan.stop_over_ns.unwrap_or(i64::MAX);
        Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns }
    }

    /// What pauses the measuring loop for helpers that share its CPU, where it has no schedule.
    fn pausing(&self, cadence: Cadence) -> Option<Arc<Stop>> {
        (self.armed.pauses && cadence.has_breaks()).then(|| Arc::clone(&self.stop))
    }

    /// What watches over the conditions of the run, which it has read.
    fn monitor(&self) -> ConditionsMonitor {
        let (cpus, found) = (self.plan.cpus.clone(), &self.armed.found);
        let mut monitor = ConditionsMonitor::new(Root::default(), cpus, found)
            .guard(self.arranged.shield_watch());
        monitor.begin();
        monitor
    }

    /// Starts the drain, which owns the series and the directory from now on.
    fn drain(
        &mut self,
        schedule: &Schedule,
        cadence: Cadence,
        monitor: ConditionsMonitor,
    ) -> Result<Drain> {
        let mut maker = self.maker.take().context("a session runs once")?;
        let refused = |source| MakeError::Unwritable { path: self.plan.directory.clone(), source };
        maker.begin(&self.document).map_err(refused)?;
        let watch = |recorded: Recorded| {
            (IntervalReader::new(&recorded.head.name, recorded.series), recorded.samples)
        };
        let work = DrainInputs {
            maker,
            series: self.armed.recorded.drain(..).map(watch).collect(),
            found: self.armed.found_series.clone().unwrap_or_default(),
            figures: FigureCollector::new(self.plan.probe.figures(), self.armed.figures.take()),
            loads: self.loads.clone(),
            begun: Begun::of(&self.plan, &self.document, &self.evidence),
            start_ns: schedule.start_ns,
            cadence,
            pausing: self.pausing(cadence),
            interval_ns: self.document.log_interval_ns,
            measured_priority: self.plan.priority.granted,
            housekeeping: self.housekeeping()?,
            monitor,
            simulated: self.armed.simulated.clone(),
        };
        Drain::start(work).context("cannot start the thread that records")
    }

    /// Joins everything and writes the last record.
    fn finish(
        self,
        schedule: Schedule,
        drain: Drain,
        (traced, profile): (Option<ActiveTracing>, Option<ProfileRecorder>),
        counted: &Counted,
        mut ending: Ending<'_>,
    ) -> Result<Document> {
        let Self { plan, armed, loads, arranged, mut document, mut evidence, .. } = self;
        drain.measured_until(now_ns());
        let (start_ns, simulated) = (schedule.start_ns, armed.simulated.clone());
        let found = armed.found_series.clone().unwrap_or_default();
        let FinishedProbe { reports, measured, figure_refusals, kept, attached } = armed.finish();
        let found = found.all();
        let measured = reports.get(..measured).unwrap_or_default();
        let end_ns = collect::end_of(measured, &schedule, simulated.as_ref(), attached.as_ref());
        let traced = traced.map(|traced| traced.finish(end_ns, &mut ending));
        let traced = traced.transpose().map_err(anyhow::Error::msg)?;
        let profile =
            profile.map(ProfileRecorder::finish).transpose().map_err(anyhow::Error::msg)?;
        let mut drained = drain.finish().map_err(anyhow::Error::msg)?;
        // The drain has ended, so that nothing else holds the loads any more.
        let loads = loads.into_iter().filter_map(Arc::into_inner);
        let ends: Vec<LoadEnd> = loads.map(|load| load.stop(start_ns, end_ns)).collect();
        evidence.setup.setting_loss = arranged.setting_loss();
        evidence.setup.not_put_back = arranged.finish();
        collect::shield(&mut evidence.setup, &drained);
        // Last: neither a shield nor a load waits for the disk.
        let refused = drained.settle(&to_csv(&counted.interrupts, true));

        record::end(&mut document, &schedule, end_ns, &drained.series, &found);
        document.figures = drained.figures.records();
        record::attached(&mut document, attached);
        record::ended_loads(&mut document.loads, &ends);
        record::conditions(&mut document, &drained, &reports, counted);
        let lost = lost_parts::figures(&document, traced.as_ref().and_then(TraceEnd::blame));
        document.figures.extend(lost);
        if let Some(end) = &traced {
            end.record(&mut document.trace);
            evidence.trace.symbols_hidden = end.symbols_hidden;
        }
        document.messages = kept.messages;

        evidence.threads = collect::threads(&plan, reports, &drained);
        evidence.machine = collect::machine(&plan, &document, &drained, counted);
        evidence.loads = plan.loads.iter().map(|load| load.name.clone()).zip(ends).collect();
        evidence.recording = collect::recording(&drained, refused, traced, end_ns - start_ns);
        collect::profile(&mut evidence, profile);
        evidence.trace.record.clone_from(&document.trace);
        evidence.series = document.wakeups().cloned().collect();
        evidence.work = work_before_and_after(&document.figures);
        evidence.has_estimated_grid = document.probe.has_estimated_grid();
        collect::figures(&mut evidence, &document, &drained.figures, &figure_refusals);
        evidence.messages.clone_from(&document.messages);
        evidence.asked = Some(document.probe.clone());
        evidence.attached.clone_from(&document.attached);
        evidence.probe = kept.evidence;
        document.status = match plan.stop_over_ns {
            _ if evidence.is_interrupted() => Status::Interrupted,
            Some(limit) if record::worst(&document) > Some(limit) => Status::StoppedOver,
            _ => Status::Complete,
        };
        let document = record::judged(document, &evidence, drained.maker.directory());
        drained.maker.finish(&document).with_context(|| {
            let place = plan.directory.display();
            format!("cannot write the last record of {place}; what was appended is readable")
        })?;
        Ok(document)
    }
}
