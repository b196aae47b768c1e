//! The cause behind an interrupt, a softirq or a kworker: the function that took long, or the
//! network device that was polled; and the sender of the interrupt. If nothing sent it, or its name
//! is hidden, its context is named alone.

use super::{
    contexts::{HardirqSource, Segment},
    late_wakeup::LateWakeup,
    long_functions::{WorkSource, spanning},
    names,
    piece::{NamedCause, Piece},
    senders,
};
use crate::{
    kernel::function::LONG_NS,
    run::{functions, peaks::Cause},
};

/// The name of a function or of a device; `None` if the kernel hides it.
#[must_use]
pub(super) fn work_name(wakeup: &LateWakeup<'_>, work: WorkSource) -> Option<String> {
    match work {
        WorkSource::Function(address) => {
            wakeup.source.symbol(address).map(|(name, _)| functions::plain(&name).to_owned())
        }
        WorkSource::Device { name, .. } => Some(names::comm(&name)),
    }
}

/// Innermost context (task, softirq, hard interrupt) that covers the whole piece.
#[must_use]
pub(super) fn work(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
) -> Option<String> {
    let functions = &wakeup.cpus.get(&piece.span.cpu)?.functions;
    let spanning = spanning(functions, (piece.from_ns, piece.to_ns), segment)?;
    work_name(wakeup, spanning.work)
}

/// A softirq has the CPU.
#[must_use]
pub(super) fn softirq(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
    vector: u32,
) -> NamedCause {
    NamedCause::measured(Cause::Softirq, softirq_name(wakeup, piece, segment, vector))
}

/// Its name, with what it did for so long.
#[must_use]
pub(super) fn softirq_name(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
    vector: u32,
) -> String {
    match work(wakeup, piece, segment) {
        Some(work) => names::softirq_for(vector, &work),
        None => names::softirq(vector),
    }
}

/// A hard interrupt has the CPU: one that another CPU sent, and that took long, with who sent it.
#[must_use]
pub(super) fn hard(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
    hard: HardirqSource,
) -> NamedCause {
    let lines = &wakeup.wishes.interrupt_names;
    let name = match work(wakeup, piece, segment) {
        Some(function) => names::hard_for(hard, lines, &function),
        None => names::hard(hard, lines),
    };
    let sender = match hard {
        HardirqSource::Vector(vector) if piece.ns() >= LONG_NS => {
            senders::sender(wakeup, piece.span.cpu, vector, piece.from_ns)
        }
        _ => None,
    };
    NamedCause { task: sender, ..NamedCause::measured(Cause::Hardirq, name) }
}
