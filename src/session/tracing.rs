//! How much tracing is available: requested, loaded, attached and detached, and recorded.

use std::{
    os::fd::BorrowedFd,
    sync::{Arc, mpsc::Receiver},
};

use anyhow::{Context, Result, bail};
use tardy_hot::stages::{Records, ThreadRecord};

use super::{
    blame_recorder::{self, BlameRecorder, Blamed, unmatched},
    cadence::Cadence,
    evidence::{RefusedWrite, TraceEvidence},
    source::{ThisMachine, wishes},
};

use crate::{
    kernel::{
        Settings, Stacks, Symbols, ThreadRecords, TraceLevel, Tracer, TracingUnavailable, WokenBy,
    },
    peaks::Blamer,
    probes::{Probe, TracedThread, Tracing},
    run::{
        BlameFiles, HelperTime, MissingTracepoint, RunDirectory, TraceMode, TraceRecord,
        peaks::Blame,
        probes::{LatencyFrom, ProbeInfo, Rhythm},
    },
    setup::facts,
    sys::{cpus::Cpus, kernel_config::ConfigOptions, root::Root},
};

/// What the user wants to know about late wake-ups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceWish {
    /// How much.
    pub mode: TraceMode,
    /// When the kernel's stack is walked.
    pub stacks: Stacks,
    /// So many of the worst wake-ups are kept whole.
    pub keep: usize,
    /// Instead all later than this, ns.
    pub peak_over_ns: Option<i64>,
    /// All that the CPUs did in the last so many ns is kept.
    pub record_ns: Option<i64>,
    /// What it costs is measured before the run.
    pub calibrate: bool,
}

impl TraceWish {
    /// What the user gave that asks for it.
    fn asked(&self) -> String {
        match self.record_ns {
            Some(_) => "--record".into(),
            None => format!("--trace {}", self.mode.as_str()),
        }
    }
}

/// The BPF side, loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    tracer: Tracer,
    mode: TraceLevel,
    tracing: Tracing,
    threads: Vec<TracedThread>,
    /// Read before the measured threads have a schedule to keep: there are very many. Only where
    /// somebody needs them.
    symbols: Option<Symbols>,
}

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

/// Loads what is available of what is requested, and records what that is; no program runs yet.
///
/// # Errors
/// It was requested explicitly and is not available.
pub(super) fn load(
    wish: &TraceWish,
    probe: &dyn Probe,
    evidence: &mut TraceEvidence,
) -> Result<Option<Loaded>> {
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
    match Loaded::new(wish, woken_by(name)) {
        Ok((loaded, lack)) => {
            record.found = loaded.found();
            record.missing = loaded.missing();
            record.why_not = lack.map(|lack| lack.to_string());
            Ok(Some(loaded))
        }
        Err(lack) if wish.mode == TraceMode::Auto => {
            let why = lack.to_string();
            record.why_not = Some(why.clone());
            evidence.lack = Some(why);
            Ok(None)
        }
        Err(lack) => Err(lack).with_context(|| format!("{asked} is not available")),
    }
}

/// What wakes the threads of the probe called `name`.
fn woken_by(name: &str) -> WokenBy {
    match ProbeInfo::find(name).map(|probe| (probe.rhythm, probe.latency_from)) {
        // It sends on a schedule.
        Some((Rhythm::Messages, LatencyFrom::Schedule) | (Rhythm::Attached, _)) => WokenBy::Both,
        Some((Rhythm::Messages | Rhythm::Cycles, _)) => WokenBy::Messages,
        Some((
            Rhythm::Interval
            | Rhythm::Spin
            | Rhythm::Rounds
            | Rhythm::Tasks
            | Rhythm::Contest
            | Rhythm::Interrupts,
            _,
        ))
        | None => WokenBy::Timers,
    }
}

impl Loaded {
    /// What is available, and why that is not all, if so.
    fn new(
        wish: &TraceWish,
        woken_by: WokenBy,
    ) -> Result<(Self, Option<TracingUnavailable>), TracingUnavailable> {
        let tracer = |mode, stacks| {
            let slots_per_cpu = match wish.record_ns {
                Some(_) => Settings::SLOTS_TO_RECORD,
                None => Settings::SLOTS_PER_CPU,
            };
            Tracer::load(&Settings { mode, stacks, woken_by, slots_per_cpu })
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
        let root = Root::default();
        let is_rt = facts::preemption(&root, &ConfigOptions::read(&root)).model == "rt";
        let tracing = Tracing { records: Arc::new(Kernel(tracer.threads())), is_rt };
        let symbols = (mode == TraceLevel::Peaks).then(Symbols::read);
        Ok((Self { tracer, mode, tracing, threads: Vec::new(), symbols }, lack))
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
        let missing = self.tracer.missing().iter().map(|missing| MissingTracepoint {
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
        self.tracer.detach();
    }

    /// Goes on with the threads of [`Loaded::begin`].
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
        let mut followed: Vec<(i32, i32)> = Vec::with_capacity(threads.len());
        for thread in threads {
            // One whose work is blamed too comes twice, after those of the wake-ups.
            if followed.iter().all(|(tid, _)| *tid != thread.tid) {
                followed.push((thread.tid, thread.priority.0.into()));
            }
        }
        self.tracer.follow(&followed).context("cannot follow the measured threads")?;
        self.tracer.attach().context("cannot trace; `--trace off` measures without")
    }

    /// Hands the BPF side to a thread that has late wake-ups blamed; gives it back where none
    /// shall be.
    ///
    /// # Errors
    /// The files of the blame cannot be made, or the thread.
    pub(super) fn record(
        self,
        run: &RecorderContext<'_>,
        later: Option<Receiver<TracedThread>>,
    ) -> Result<ActiveTracing> {
        let Self { tracer, threads, symbols: Some(symbols), .. } = self else {
            return Ok(ActiveTracing::Stages(self));
        };
        let symbols_hidden = symbols.are_hidden();
        // Threads of others run where they like.
        let measured: Cpus = match &later {
            None => threads.iter().map(|thread| thread.cpu).collect(),
            Some(_) => run.measured.clone(),
        };
        let source = Box::new(ThisMachine::new(tracer.recorder(), symbols, run.free, &measured));
        let kept = (run.wish.keep, run.wish.peak_over_ns);
        let asked = wishes(&measured, kept, run.virtual_machine, later.is_some());
        let files = BlameFiles::create(run.directory).context("cannot write the run directory")?;
        let recorder = BlameRecorder::start(blame_recorder::BlameInputs {
            tracer,
            blamer: Blamer::new(blame_recorder::followed(&threads), asked, source),
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

/// What a recorder must know of the run.
pub(super) struct RecorderContext<'a> {
    pub wish: &'a TraceWish,
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

/// Tracing that goes on.
#[derive(Debug)]
pub(super) enum ActiveTracing {
    /// Threads record their stages; nothing else is needed.
    Stages(Loaded),
    /// Late wake-ups are blamed, too.
    Peaks { recorder: BlameRecorder, symbols_hidden: bool },
}

impl ActiveTracing {
    /// Ends it; the measured threads must have ended, at `end_ns`.
    ///
    /// # Errors
    /// The thread that blames died.
    pub(super) fn finish(self, end_ns: i64) -> Result<TraceEnd, String> {
        match self {
            Self::Stages(mut loaded) => {
                loaded.tracer.detach();
                Ok(TraceEnd { unmatched: unmatched(&loaded.threads), ..TraceEnd::default() })
            }
            Self::Peaks { recorder, symbols_hidden } => {
                let Blamed { blame, refused, helper } = recorder.finish(end_ns)?;
                let (unmatched, blame, helper) = (blame.unmatched, Some(blame), Some(helper));
                Ok(TraceEnd { unmatched, blame, symbols_hidden, refused, helper })
            }
        }
    }
}

impl TraceEnd {
    /// What late samples were blamed on; absent where they were not.
    pub(super) const fn blame(&self) -> Option<&Blame> {
        self.blame.as_ref()
    }

    /// Writes what came of it into the record.
    pub(super) fn record(&self, record: &mut TraceRecord) {
        record.unmatched = self.unmatched;
        if let Some(blame) = &self.blame {
            record.lost_events = blame.lost_events;
            record.blamed = blame.blamed;
            record.passed_over = blame.passed_over;
            record.threshold_ns = blame.threshold_ns;
        }
    }
}
