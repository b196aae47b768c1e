//! What of tracing can be had: asked for, loaded, switched on and off, and what the record says.

use std::sync::{Arc, atomic::Ordering};

use anyhow::{Context, Result, bail};
use tardy_hot::{
    stages::{Records, ThreadRecord},
    traced::Watched,
};

use crate::{
    kernel::{Lack, Mode, Settings, Stacks, ThreadRecords, Tracer},
    probes::{Probe, TracedThread, Tracing},
    run::{Doubt, MissingTracepoint, TraceDoubt, TraceRecord},
    setup::facts,
    sys::{kernel_config::KernelConfig, root::Root},
};

/// How much shall be found out about wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceMode {
    /// As much as this machine allows.
    Auto,
    /// Nothing.
    Off,
    /// The stages of each.
    Stages,
}

impl TraceMode {
    /// As on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Stages => "stages",
        }
    }
}

/// What the user wants to know about late wake-ups.
#[derive(Debug, Clone, Copy)]
pub struct TraceWish {
    /// How much.
    pub mode: TraceMode,
}

/// The kernel's side, loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    tracer: Tracer,
    mode: Mode,
    tracing: Tracing,
    threads: Vec<TracedThread>,
}

/// What tracing leaves.
#[derive(Debug)]
pub(super) struct TraceEnd {
    unmatched: u64,
}

/// The kernel's records, for the probe.
#[derive(Debug)]
struct Kernel(ThreadRecords);

impl Records for Kernel {
    fn record(&self, n: usize) -> Option<&ThreadRecord> {
        self.0.get(n)
    }
}

/// Loads what can be had of what is wished; no program runs yet.
///
/// # Errors
/// It was asked for by name and cannot be had.
pub(super) fn load(
    wish: &TraceWish,
    probe: &dyn Probe,
    doubts: &mut Vec<Doubt>,
) -> Result<(Option<Loaded>, TraceRecord)> {
    let asked = wish.mode.as_str();
    let mut record = TraceRecord::off(asked);
    let name = probe.name();
    match wish.mode {
        TraceMode::Off => return Ok((None, record)),
        TraceMode::Auto if !probe.can_be_traced() => {
            record.why_not = Some(format!("the probe {name} has no wake-ups that can be traced"));
            return Ok((None, record));
        }
        _ if !probe.can_be_traced() => {
            bail!("--trace {asked}: the probe {name} has no wake-ups that can be traced");
        }
        TraceMode::Auto | TraceMode::Stages => {}
    }
    match Loaded::new(wish) {
        Ok(loaded) => {
            record.found = loaded.found().into();
            record.missing = loaded.missing();
            Ok((Some(loaded), record))
        }
        Err(lack) if wish.mode == TraceMode::Auto => {
            let why = lack.to_string();
            doubts.push(TraceDoubt::Untraced { why: why.clone() }.into());
            record.why_not = Some(why);
            Ok((None, record))
        }
        Err(lack) => Err(lack).with_context(|| format!("--trace {asked} cannot be had")),
    }
}

impl Loaded {
    fn new(_: &TraceWish) -> Result<Self, Lack> {
        let mode = Mode::Stages;
        let slots_per_cpu = Settings::SLOTS_PER_CPU;
        let tracer = Tracer::load(&Settings { mode, stacks: Stacks::Off, slots_per_cpu })?;
        let root = Root::default();
        let is_rt = facts::preemption(&root, &KernelConfig::read(&root)).model == "rt";
        let tracing = Tracing { records: Arc::new(Kernel(tracer.threads())), is_rt };
        Ok(Self { tracer, mode, tracing, threads: Vec::new() })
    }

    /// What a probe must know of it.
    pub(super) fn tracing(&self) -> &Tracing {
        &self.tracing
    }

    const fn found(&self) -> &'static str {
        match self.mode {
            Mode::Stages => "stages",
            Mode::Peaks => "peaks",
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
        let followed: Vec<(i32, i32)> =
            threads.iter().map(|thread| (thread.tid, thread.priority.0.into())).collect();
        self.threads = threads;
        self.tracer.follow(&followed).context("cannot follow the measured threads")?;
        self.tracer.attach().context("cannot trace; `--trace off` measures without")
    }

    /// Ends it; the measured threads must have ended.
    pub(super) fn finish(mut self) -> TraceEnd {
        self.tracer.detach();
        let unmatched = |watched: &Arc<Watched>| watched.unmatched.load(Ordering::Relaxed);
        let unmatched = self.threads.iter().map(|thread| unmatched(&thread.watched)).sum();
        TraceEnd { unmatched }
    }
}

impl TraceEnd {
    /// Writes what came of it into the record.
    pub(super) fn record(&self, record: &mut TraceRecord) {
        record.unmatched = self.unmatched;
    }
}
