//! The work of a thread from one expiry of its timer to the next: it has the CPU for that, and may
//! sleep meanwhile for what it needs from others.

use super::{
    Event, EventKind,
    contexts::ns,
    late_wakeup::LateWakeup,
    names,
    piece::{NamedCause, Piece},
};
use crate::{kernel::out, run::peaks::Cause};

const FAULT_BEFORE: &str =
    "the last that it did before it slept without taking signals was a page fault";

/// The thread works.
#[must_use]
pub(super) fn own_work() -> NamedCause {
    NamedCause::measured(Cause::OwnWork, "own work")
}

/// Why it sleeps: for a page that has to be read, or for whoever wakes it.
#[must_use]
pub(super) fn asleep(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> NamedCause {
    let (from_ns, to_ns) = (piece.span.from_ns, piece.span.to_ns);
    let events = wakeup.events();
    if faulted(wakeup.me.tid, from_ns, &events) {
        return NamedCause::inferred(Cause::PageFault, "page fault", FAULT_BEFORE);
    }
    let woke = |event: &&Event| event.pid == wakeup.me.tid && ns(event.at_ns) == to_ns;
    let waking = events.iter().filter(woke).find_map(|event| match event.kind {
        EventKind::Waking { by, .. } => Some((event.cpu, by)),
        _ => None,
    });
    match waking {
        Some((cpu, by)) => woken_by(wakeup, (cpu, by), to_ns, &events),
        None => NamedCause::unexplained("asleep, who woke it is not recorded"),
    }
}

/// Whether it slept for a page: its last event before that is a fault, and no signal may wake it.
fn faulted(tid: u32, from_ns: i64, events: &[Event]) -> bool {
    let before = events.iter().filter(|event| event.pid == tid && ns(event.at_ns) <= from_ns);
    let is_fault = before
        .max_by_key(|event| event.at_ns)
        .is_some_and(|event| matches!(event.kind, EventKind::PageFault { .. }));
    let mut left = events.iter().filter(|event| ns(event.at_ns) == from_ns);
    is_fault && left.any(|event| event.flags == out::WAITING && is_switch(event))
}

const fn is_switch(event: &Event) -> bool {
    matches!(event.kind, EventKind::Switch { .. })
}

/// What ran on the CPU where it was woken: an interrupt, a softirq or a task.
fn woken_by(
    wakeup: &LateWakeup<'_>,
    (cpu, by): (u32, u32),
    at_ns: i64,
    events: &[Event],
) -> NamedCause {
    let segments = wakeup.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.segments);
    let segment = segments.iter().find(|one| one.from_ns <= at_ns && at_ns <= one.to_ns);
    let in_interrupt = segment.and_then(|one| match (one.hard, one.softirq) {
        (Some(hard), _) => Some(names::hard(hard, &wakeup.wishes.interrupt_names)),
        (None, Some(vector)) => Some(names::softirq(vector)),
        (None, None) => None,
    });
    if let Some(name) = in_interrupt {
        return NamedCause::measured(Cause::Wait, format!("woken by {name}"));
    }
    let comm = events.iter().find_map(|event| match event.kind {
        EventKind::Switch { comm } if event.pid == by => Some(names::comm(&comm)),
        _ => None,
    });
    let name = comm.unwrap_or_else(|| format!("task {by}"));
    let task = Some(format!("{name}/{by}"));
    NamedCause { task, ..NamedCause::measured(Cause::Wait, format!("woken by {name}")) }
}
