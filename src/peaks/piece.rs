//! A piece of a latency, and what is said of one: what the rules, and the files beside them, are
//! about. It knows no rule.

use super::{
    contexts::{CurrentTask, Segment, ns},
    late_wakeup::LateWakeup,
    names,
    overlays::OverlayKind,
    state_history::{OffCpu, StateSpan, ThreadState},
};
use crate::run::{
    measured_steal::MEASURED_STEAL,
    peaks::{Basis, Cause},
};

/// Of stolen time the amount is measured, and its place is not.
const STEAL_COUNTED: &str = "the steal counter rose by that much between two events around it";

/// A piece of the latency in which nothing changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// What the thread was in.
    pub span: &'a StateSpan,
    /// What its CPU was in; `None` if that was not recorded.
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
    /// What the name rests on.
    pub basis: Basis,
    /// Of an inference: what it was concluded from.
    pub evidence: Option<&'static str>,
    /// Innermost first.
    pub stack: Vec<String>,
}

impl NamedCause {
    /// A cause that events of the run show.
    #[must_use]
    pub(crate) fn measured(cause: Cause, name: impl Into<String>) -> Self {
        let (basis, evidence) = (Basis::Measured, None);
        Self { cause, name: name.into(), task: None, basis, evidence, stack: Vec::new() }
    }

    /// A cause that a rule concludes from this evidence.
    #[must_use]
    pub(crate) fn inferred(cause: Cause, name: impl Into<String>, evidence: &'static str) -> Self {
        Self::measured(cause, name).inferred_from(evidence)
    }

    /// Nobody's: the name says what is missing.
    #[must_use]
    pub(crate) fn unexplained(name: impl Into<String>) -> Self {
        Self { basis: Basis::None, ..Self::measured(Cause::Unexplained, name) }
    }

    /// The same as an inference.
    #[must_use]
    pub(crate) fn inferred_from(mut self, evidence: &'static str) -> Self {
        (self.basis, self.evidence) = (Basis::Inferred, Some(evidence));
        self
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
    stopped_between(wakeup.late.stopped_ns)
}

/// The same of any thread; an empty span where it never was.
#[must_use]
pub(super) fn stopped_between((from, until): (u64, u64)) -> (i64, i64) {
    match from {
        0 => (i64::MIN, i64::MIN),
        _ if until < from => (ns(from), i64::MAX),
        _ => (ns(from), ns(until)),
    }
}

/// Whether a cause needs no events: it holds whatever the CPU did.
#[must_use]
pub(crate) fn is_stopped(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> bool {
    let (from_ns, until_ns) = stopped(wakeup);
    (piece.from_ns >= from_ns && piece.to_ns <= until_ns)
        || piece.span.state == ThreadState::OffCpu(OffCpu::Stopped)
}

/// A piece of which nothing was recorded.
#[must_use]
pub(crate) fn unknown(piece: &Piece<'_>) -> NamedCause {
    let name = if piece.is_overwritten { "not recorded any more" } else { "not recorded" };
    NamedCause::unexplained(name)
}

/// A piece that something overlays.
#[must_use]
pub(crate) fn covered(kind: OverlayKind) -> NamedCause {
    match kind {
        OverlayKind::Steal => NamedCause::inferred(Cause::Host, MEASURED_STEAL, STEAL_COUNTED),
        OverlayKind::Nmi => NamedCause::measured(Cause::Hardirq, "NMI"),
        OverlayKind::Walk => NamedCause::measured(Cause::Tracing, "stack walk"),
    }
}

/// The wake-up's own way through the kernel, or the message's; of a gap the way into the kernel and
/// back.
#[must_use]
pub(crate) fn own_path(wakeup: &LateWakeup<'_>) -> NamedCause {
    let name = match (wakeup.me.spins, wakeup.ways.is_empty()) {
        (true, _) => names::KERNEL_ENTRY,
        (false, true) => names::WAKE_UP_PATH,
        (false, false) => names::MESSAGE_PATH,
    };
    NamedCause::measured(Cause::Nonpreemptible, name)
}

/// The thread had others to send, or to receive, before this packet.
#[must_use]
pub(crate) fn earlier_packets() -> NamedCause {
    NamedCause::measured(Cause::Nonpreemptible, names::EARLIER_PACKETS)
}
