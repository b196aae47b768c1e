//! A piece of a latency, and what is said of one: what the rules, and the files beside them, are
//! about. It knows no rule.

use super::{
    contexts::{Segment, Task, ns},
    course::{Out, Phase, Span},
    covers::Kind,
    names,
    scene::Scene,
};
use crate::run::peaks::Cause;

/// A piece of the latency in which nothing changes.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// What the thread was in.
    pub span: &'a Span,
    /// What its CPU was in; absent where that was not recorded.
    pub segment: Option<&'a Segment>,
    /// What lay over that.
    pub cover: Option<Kind>,
    /// The record no longer reached back so far.
    pub is_overwritten: bool,
}

impl Piece<'_> {
    /// Its length.
    #[must_use]
    pub fn ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }
}

/// A cause, and which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// What kind.
    pub cause: Cause,
    /// Which.
    pub name: String,
    /// Whose work, as `name/pid`.
    pub task: Option<String>,
    /// Innermost first.
    pub stack: Vec<String>,
}

impl Why {
    /// A cause with a name alone.
    #[must_use]
    pub fn named(cause: Cause, name: impl Into<String>) -> Self {
        Self { cause, name: name.into(), task: None, stack: Vec::new() }
    }

    /// The work of a task.
    #[must_use]
    pub fn of(mut self, task: &Task) -> Self {
        self.task = Some(names::task(task));
        self
    }
}

/// When the thread was stopped and continued for the last time; to the end where it still is.
#[must_use]
pub fn stopped(scene: &Scene<'_>) -> (i64, i64) {
    let (from, until) = scene.late.stopped_ns;
    if from == 0 {
        return (i64::MIN, i64::MIN);
    }
    (ns(from), if until < from { i64::MAX } else { ns(until) })
}

/// Whether a cause needs no events: it holds whatever the CPU did.
#[must_use]
pub fn is_stopped(scene: &Scene<'_>, piece: &Piece<'_>) -> bool {
    let (from_ns, until_ns) = stopped(scene);
    (piece.from_ns >= from_ns && piece.to_ns <= until_ns)
        || piece.span.phase == Phase::Out(Out::Stopped)
}

/// A piece of which nothing was recorded.
#[must_use]
pub fn unknown(piece: &Piece<'_>) -> Why {
    let name = if piece.is_overwritten { "not recorded any more" } else { "not recorded" };
    Why::named(Cause::Unexplained, name)
}

/// A piece that something covers.
#[must_use]
pub fn covered(kind: Kind) -> Why {
    match kind {
        Kind::Steal => Why::named(Cause::Host, "hypervisor (steal)"),
        Kind::Nmi => Why::named(Cause::Hardirq, "NMI"),
        Kind::Walk => Why::named(Cause::Tracing, "stack walk"),
    }
}

/// The wake-up's own way through the kernel.
#[must_use]
pub fn own_path() -> Why {
    Why::named(Cause::Nonpreemptible, names::WAKE_UP_PATH)
}
