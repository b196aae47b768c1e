//! The tracing backend: the BPF programs, or the kernel's own tracer.

use std::collections::HashSet;

use anyhow::{Context, Result, bail, ensure};

use super::{stage_matcher::StageMatcher, trace_wish::TraceWish};
use crate::{
    kernel::{Missing, TraceLevel, Tracer, tracefs::TracefsTracer},
    probes::TracedThread,
    run::{LostEvents, TraceMode},
    setup::journal::{Change, Journal, JournalPath},
    sys::root::Root,
};

/// The probe whose wake-ups the kernel's own tracer can tell: those of its timers.
const BY_TRACEFS: &str = "timer";

/// What records.
#[derive(Debug)]
pub(super) enum TracedBy {
    /// Programs in the kernel; the measured threads read what they write.
    Bpf(Tracer),
    /// The tracer; a helper matches what it wrote with the samples.
    Tracefs(Box<StageMatcher>),
}

/// Every thread by its number with its priority, in their order: one whose work is blamed too comes
/// twice among them.
pub(super) fn each_once(threads: &[TracedThread]) -> Vec<(i32, i32)> {
    let mut known = HashSet::new();
    let new = threads.iter().filter(|thread| known.insert(thread.tid));
    new.map(|thread| (thread.tid, thread.priority.0.into())).collect()
}

impl TracedBy {
    /// Lets it run, for these threads.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn follow(&mut self, threads: &[TracedThread]) -> Result<()> {
        match self {
            Self::Bpf(tracer) => {
                let followed = each_once(threads);
                tracer.follow(&followed).context("cannot follow the measured threads")?;
                tracer.attach().context("cannot trace; `--trace off` measures without")
            }
            Self::Tracefs(matcher) => {
                let tids: Vec<u32> = threads.iter().map(|one| one.tid.unsigned_abs()).collect();
                let attached = matcher.tracer.attach(&tids);
                attached.context("cannot trace; `--trace off` measures without")
            }
        }
    }

    /// Records nothing more; what there is can be read.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Bpf(tracer) => tracer.detach(),
            Self::Tracefs(matcher) => matcher.tracer.stop(),
        }
    }

    /// Records nothing more, and lets go of what was recorded.
    pub(super) fn detach(&mut self) {
        match self {
            Self::Bpf(tracer) => tracer.detach(),
            Self::Tracefs(matcher) => matcher.tracer.detach(),
        }
    }

    pub(super) fn missing(&self) -> &[Missing] {
        match self {
            Self::Bpf(tracer) => tracer.missing(),
            Self::Tracefs(matcher) => matcher.tracer.missing(),
        }
    }

    /// What the kernel's tracer lost.
    pub(super) fn lost_on(&self) -> Vec<LostEvents> {
        match self {
            Self::Bpf(_) => Vec::new(),
            Self::Tracefs(matcher) => matcher.lost_on(),
        }
    }
}

/// Whether the kernel's own tracer can do it for this probe and this wish.
///
/// # Errors
/// It cannot.
fn check(wish: &TraceWish, probe: &str) -> Result<()> {
    ensure!(
        probe == BY_TRACEFS,
        "the kernel's own tracer shows the wake-ups of the probe {BY_TRACEFS} alone, not of {probe}"
    );
    if wish.record_ns.is_some() {
        bail!("--record needs BPF: the kernel's own tracer keeps too little");
    }
    Ok(())
}

/// The kernel's own tracer, its instance made, and the journal that knows of it: nothing runs yet.
///
/// # Errors
/// It is not there, or may not be used; then nothing is left behind.
pub(super) fn by_tracefs(
    wish: &TraceWish,
    probe: &str,
    command: &str,
) -> Result<(TracedBy, TraceLevel, Journal)> {
    check(wish, probe)?;
    let level = match wish.mode {
        TraceMode::Stages => TraceLevel::Stages,
        TraceMode::Auto | TraceMode::Peaks | TraceMode::Off => TraceLevel::Peaks,
    };
    let mut tracer = TracefsTracer::new(level)?;
    let mut journal = Journal::claim(&JournalPath::usual(), &Root::default(), command)?;
    journal.note(vec![Change::TraceInstance { path: tracer.path().into() }])?;
    tracer.make()?;
    Ok((TracedBy::Tracefs(Box::new(StageMatcher::new(tracer))), level, journal))
}
