//! How much tracing is available: requested, loaded, attached and detached, and recorded.

use std::{
    os::fd::BorrowedFd,
    sync::{Arc, mpsc::Receiver},
};

use anyhow::{Context, Result, anyhow, bail};
use tardy_hot::stages::{Records, ThreadRecord};

use super::{
    active_tracing::{ActiveTracing, RecorderContext},
    blame_recorder::{self, BlameRecorder},
    evidence::TraceEvidence,
    late_samples,
    plan::RunPlan,
    source::{ThisMachine, TracedEvents, wishes},
    trace_wish::TraceWish,
    traced_by::{TracedBy, by_tracefs},
};

use crate::{
    kernel::{
        KernelNames, Settings, Stacks, ThreadRecords, TraceLevel, Tracer, TracingUnavailable,
        WokenBy,
    },
    peaks::{BlameOptions, Blamer},
    probes::{TracedThread, Tracing},
    run::{
        BlameFiles, MissingTracepoint, PeakRoom, TraceBy, TraceMode, TraceRecord,
        probes::{LatencyFrom, MeasuredThreads, ProbeInfo},
    },
    setup::{facts, journal::Journal},
    sys::{cpus::Cpus, kernel_config::ConfigOptions, root::Root},
};

/// What traces, ready.
#[derive(Debug)]
pub(super) struct Loaded {
    // Before the journal, which removes what it holds.
    source: TracedBy,
    mode: TraceLevel,
    tracing: Tracing,
    threads: Vec<TracedThread>,
    /// Read before the measured threads have a schedule to keep: there are very many. Only where
    /// somebody needs them.
    names: Option<KernelNames>,
    /// Knows of the instance of the kernel's tracer, where there is one.
    journal: Option<Journal>,
}

/// The kernel's records, for the probe.
#[derive(Debug)]
struct Kernel(ThreadRecords);

impl Records for Kernel {
    fn record(&self, n: usize) -> Option<&ThreadRecord> {
        self.0.get(n)
    }

    fn place(&self, n: usize) -> Option<(BorrowedFd<'_>, usize)> {
        self.0.place(n)
    }
}

/// None: what the kernel's tracer writes is read by a helper.
#[derive(Debug)]
struct Later;

impl Records for Later {
    fn record(&self, _: usize) -> Option<&ThreadRecord> {
        None
    }

    fn are_found_later(&self) -> bool {
        true
    }
}

/// Loads what is available of what is requested, and records what that is; no program runs yet.
///
/// # Errors
/// It was requested explicitly and is not available.
pub(super) fn load(plan: &RunPlan, evidence: &mut TraceEvidence) -> Result<Option<Loaded>> {
    let (wish, probe) = (&plan.trace, plan.probe.as_ref());
    let asked = wish.asked();
    evidence.record = TraceRecord::off(wish.mode);
    let record = &mut evidence.record;
    let name = probe.name();
    match wish.mode {
        TraceMode::Off => return Ok(None),
        TraceMode::Auto if !probe.can_be_traced() => {
            record.why_not = Some(format!("the probe {name} {}", probe.why_untraceable()));
            return Ok(None);
        }
        _ if !probe.can_be_traced() => {
            bail!("{asked}: the probe {name} {}", probe.why_untraceable());
        }
        TraceMode::Stages if !probe.has_stages() => {
            bail!(
                "--trace stages: what {name} finds has no stages; --trace peaks names the causes"
            );
        }
        TraceMode::Auto if !probe.has_stages() => {
            record.why_not = Some(format!(
                "{name} is traced only with --trace peaks, as that adds to each of its {}",
                ProbeInfo::find(name).map_or("samples", |probe| probe.sample.many())
            ));
            return Ok(None);
        }
        TraceMode::Auto if probe.is_traced_on_request() => {
            record.why_not = Some(format!(
                "{name} is traced only with --trace stages or --trace peaks, as that adds to \
                 each of its wake-ups"
            ));
            return Ok(None);
        }
        TraceMode::Auto | TraceMode::Stages | TraceMode::Peaks => {}
    }
    match Loaded::new(wish, name, &plan.argv.join(" "), record) {
        Ok((loaded, lack)) => {
            record.found = loaded.found();
            record.missing = loaded.missing();
            record.why_not = lack.map(|lack| lack.to_string());
            Ok(Some(loaded))
        }
        Err(lack) if wish.mode == TraceMode::Auto && wish.by.is_none() => {
            let why = format!("{lack:#}");
            record.why_not = Some(why.clone());
            evidence.lack = Some(why);
            Ok(None)
        }
        Err(lack) => Err(lack).with_context(|| format!("{asked} is not available")),
    }
}

/// What wakes the threads of the probe called `name`.
fn woken_by(name: &str) -> WokenBy {
    match ProbeInfo::find(name).map(|probe| (probe.threads, probe.latency_from)) {
        // It sends on a schedule.
        Some(
            (MeasuredThreads::WaitForMessages, LatencyFrom::Schedule)
            | (MeasuredThreads::Foreign, _),
        ) => WokenBy::Both,
        Some((MeasuredThreads::WaitForMessages | MeasuredThreads::WaitForServer, _)) => {
            WokenBy::Messages
        }
        Some((
            MeasuredThreads::WaitForTime | MeasuredThreads::NeverWait | MeasuredThreads::Work,
            _,
        ))
        | None => WokenBy::Timers,
    }
}

impl Loaded {
    /// What is available of what is wished for the probe called `name`, by whom it can be had; and
    /// why that is not all, if so.
    fn new(
        wish: &TraceWish,
        name: &str,
        command: &str,
        record: &mut TraceRecord,
    ) -> Result<(Self, Option<TracingUnavailable>)> {
        let lack = match wish.by {
            Some(TraceBy::Tracefs) => None,
            None | Some(TraceBy::Bpf) => match Self::by_bpf(wish, name) {
                Ok(found) => {
                    record.by = Some(TraceBy::Bpf);
                    return Ok(found);
                }
                Err(lack) if wish.by.is_some() => return Err(lack.into()),
                Err(lack) => Some(lack),
            },
        };
        match by_tracefs(wish, name, command) {
            Ok((source, mode, journal)) => {
                record.by = Some(TraceBy::Tracefs);
                record.why_not_bpf = lack.map(|lack| lack.to_string());
                Ok((Self::of(source, mode, Arc::new(Later), Some(journal)), None))
            }
            // Both, the usual way first: what it lacks is what is to be done.
            Err(other) => match lack {
                Some(lack) if name == "timer" => {
                    Err(anyhow!("{lack}; nor can the kernel's own tracer do it: {other:#}"))
                }
                Some(lack) => Err(lack.into()),
                None => Err(other.context("--trace-by tracefs")),
            },
        }
    }

    fn of(
        source: TracedBy,
        mode: TraceLevel,
        records: Arc<dyn Records>,
        journal: Option<Journal>,
    ) -> Self {
        let root = Root::default();
        let is_rt = facts::preemption(&root, &ConfigOptions::read(&root)).model == "rt";
        let names = (mode == TraceLevel::Peaks).then(KernelNames::of_kernel);
        Self {
            source,
            mode,
            tracing: Tracing { records, is_rt },
            threads: Vec::new(),
            names,
            journal,
        }
    }

    fn by_bpf(
        wish: &TraceWish,
        name: &str,
    ) -> Result<(Self, Option<TracingUnavailable>), TracingUnavailable> {
        let tracer = |mode, stacks| {
            let slots_per_cpu = match wish.record_ns {
                Some(_) => Settings::SLOTS_TO_RECORD,
                None => Settings::SLOTS_PER_CPU,
            };
            let woken_by = woken_by(name);
            // Only attached threads may sleep for one in the middle of their work.
            let futexes = ProbeInfo::find(name).is_some_and(ProbeInfo::is_attached);
            Tracer::load(&Settings { mode, stacks, woken_by, futexes, slots_per_cpu })
        };
        let stages = || tracer(TraceLevel::Stages, Stacks::Off);
        let (mode, tracer, lack) = match wish.mode {
            TraceMode::Stages => (TraceLevel::Stages, stages()?, None),
            TraceMode::Peaks => (TraceLevel::Peaks, tracer(TraceLevel::Peaks, wish.stacks)?, None),
            TraceMode::Auto | TraceMode::Off => match tracer(TraceLevel::Peaks, wish.stacks) {
                Ok(tracer) => (TraceLevel::Peaks, tracer, None),
                // Where rights or types are missing, the smaller wish says so too.
                Err(lack) => (TraceLevel::Stages, stages()?, Some(lack)),
            },
        };
        let records = Arc::new(Kernel(tracer.threads()));
        Ok((Self::of(TracedBy::Bpf(tracer), mode, records, None), lack))
    }

    /// The claim on the machine, where one was needed.
    pub(super) fn claim(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// What a probe must know of it.
    pub(super) fn tracing(&self) -> &Tracing {
        &self.tracing
    }

    const fn found(&self) -> TraceMode {
        match self.mode {
            TraceLevel::Stages => TraceMode::Stages,
            TraceLevel::Peaks => TraceMode::Peaks,
        }
    }

    fn missing(&self) -> Vec<MissingTracepoint> {
        let missing = self.source.missing().iter().map(|missing| MissingTracepoint {
            tracepoint: missing.what.clone(),
            switches_off: missing.switches_off.clone(),
            why: missing.why.clone(),
        });
        missing.collect()
    }

    /// Lets the programs run and follow these threads.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn begin(&mut self, threads: Vec<TracedThread>) -> Result<()> {
        self.follow(&threads)?;
        self.threads = threads;
        Ok(())
    }

    /// Lets none of the programs run, until [`Loaded::resume`].
    pub(super) fn pause(&mut self) {
        self.source.detach();
    }

    /// Continues with the threads of [`Loaded::begin`].
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn resume(&mut self) -> Result<()> {
        let threads = std::mem::take(&mut self.threads);
        self.begin(threads)
    }

    /// Lets the programs run and follow these threads instead of others.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn follow(&mut self, threads: &[TracedThread]) -> Result<()> {
        self.source.follow(threads)
    }

    /// Hands the BPF side to a thread that has late wake-ups blamed; gives it back if none shall
    /// be.
    ///
    /// # Errors
    /// The files of the blame cannot be made, or the thread.
    pub(super) fn record(
        self,
        run: &RecorderContext<'_>,
        later: Option<Receiver<TracedThread>>,
    ) -> Result<ActiveTracing> {
        let Self { source, threads, names, .. } = self;
        let Some(names) = names else { return ActiveTracing::stages(source, threads, run) };
        let symbols_hidden = names.are_hidden();
        // Threads of others run where they like.
        let measured: Cpus = match &later {
            None => threads.iter().map(|thread| thread.cpu).collect(),
            Some(_) => run.measured.clone(),
        };
        let events = TracedEvents::of(&source);
        let holds = events.holds(&Root::default());
        let machine = Box::new(ThisMachine::new(events, names, run.free, &measured));
        let kept = (run.wish.keep, run.wish.peak_over_ns);
        let asked = wishes(&measured, kept, run.virtual_machine, later.is_some());
        let asked = BlameOptions { holds, stop_over_ns: run.stop_over_ns, ..asked };
        let room = PeakRoom::new(run.wish.peak_room);
        let files = BlameFiles::create(run.directory, room);
        let files = files.context("cannot write the run directory")?;
        let recorder = BlameRecorder::start(blame_recorder::BlameInputs {
            tracer: source,
            blamer: Blamer::new(late_samples::followed(&threads), asked, machine),
            threads,
            later,
            files,
            start_ns: run.start_ns,
            cadence: run.cadence,
            measured_priority: run.measured_priority,
            housekeeping: run.housekeeping.clone(),
            record_ns: run.wish.record_ns,
        });
        let recorder = recorder.context("cannot start the thread that blames")?;
        Ok(ActiveTracing::Peaks { recorder, symbols_hidden })
    }
}
