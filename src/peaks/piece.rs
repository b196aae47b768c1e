//! A piece of a latency, and what is said of one: what the rules, and the files beside them, are
//! about. It knows no rule.

use super::{
    contexts::{CurrentTask, Segment, ns},
    late_wakeup::LateWakeup,
    names,
    overlays::OverlayKind,
    state_history::{Out, StateSpan, ThreadState},
};
use crate::run::peaks::Cause;

/// A piece of the latency in which nothing changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// What the thread was in.
    pub span: &'a StateSpan,
    /// What its CPU was in; absent where that was not recorded.
    pub segment: Option<&'a Segment>,
    /// What lay over that.
    pub overlay: Option<OverlayKind>,
    /// The record no longer reached back so far.
    pub is_overwritten: bool,
}

impl Piece<'_> {
    /// Its length.
    #[must_use]
    pub(crate) fn ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }
}

/// A cause, and which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCause {
    /// What kind.
    pub cause: Cause,
    /// Which.
    pub name: String,
    /// Whose work, as `name/pid`.
    pub task: Option<String>,
    /// Innermost first.
    pub stack: Vec<String>,
}

impl NamedCause {
    /// A cause with a name alone.
    #[must_use]
    pub(crate) fn named(cause: Cause, name: impl Into<String>) -> Self {
        Self { cause, name: name.into(), task: None, stack: Vec::new() }
    }

    /// The work of a task.
    #[must_use]
    pub(crate) fn of(mut self, task: &CurrentTask) -> Self {
        self.task = Some(names::task(task));
        self
    }
}

/// When the thread was stopped and continued for the last time; to the end where it still is.
#[must_use]
pub(crate) fn stopped(wakeup: &LateWakeup<'_>) -> (i64, i64) {
    let (from, until) = wakeup.late.stopped_ns;
    if from == 0 {
        return (i64::MIN, i64::MIN);
    }
    (ns(from), if until < from { i64::MAX } else { ns(until) })
}

/// Whether a cause needs no events: it holds whatever the CPU did.
#[must_use]
pub(crate) fn is_stopped(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> bool {
    let (from_ns, until_ns) = stopped(wakeup);
    (piece.from_ns >= from_ns && piece.to_ns <= until_ns)
        || piece.span.phase == ThreadState::Out(Out::Stopped)
}

/// A piece of which nothing was recorded.
#[must_use]
pub(crate) fn unknown(piece: &Piece<'_>) -> NamedCause {
    let name = if piece.is_overwritten { "not recorded any more" } else { "not recorded" };
    NamedCause::named(Cause::Unexplained, name)
}

/// A piece that something overlays.
#[must_use]
pub(crate) fn covered(kind: OverlayKind) -> NamedCause {
    match kind {
        OverlayKind::Steal => NamedCause::named(Cause::Host, "hypervisor (steal)"),
        OverlayKind::Nmi => NamedCause::named(Cause::Hardirq, "NMI"),
        OverlayKind::Walk => NamedCause::named(Cause::Tracing, "stack walk"),
    }
}

/// The wake-up's own way through the kernel.
#[must_use]
pub(crate) fn own_path() -> NamedCause {
    NamedCause::named(Cause::Nonpreemptible, names::WAKE_UP_PATH)
}
