//! How the receiver of a message comes to run on its CPU, where that differs from what a timer's
//! thread goes through: its waker may be on another CPU, or may be the sender, which has to sleep
//! first.

use super::{
    Event, EventKind,
    below_kernel::missing_in_user_mode,
    contexts::{CurrentTask, ns},
    interrupt::were_on_until,
    late_wakeup::{Cpu, LateWakeup},
    names,
    piece::{NamedCause, Piece},
    stacks,
    state_history::ThreadState,
    usual::at_most,
};
use crate::{kernel::vector, run::peaks::Cause};

const LATE: &str = "interrupt late";
const LATE_IN_USER: &str = "interrupt late in user mode";

/// When a CPU was interrupted so that it switches to the receiver, or left its idle state for that;
/// `None` if nothing of the kind came between its wake-up and the switch.
#[must_use]
pub(super) fn interrupted_ns(cpu: &Cpu, waking_ns: i64, switch_ns: i64) -> Option<i64> {
    let first = cpu.events.partition_point(|event| ns(event.at_ns) <= waking_ns);
    let is_it = |event: &&Event| match event.kind {
        EventKind::VectorEntry { vector, .. } => {
            [vector::RESCHEDULE, vector::CALL_FUNCTION, vector::CALL_FUNCTION_SINGLE]
                .contains(&vector)
        }
        EventKind::Idle { state } => state == Event::NOT_IDLE,
        _ => false,
    };
    let found = cpu.events.get(first..)?.iter().find(is_it)?;
    Some(ns(found.at_ns)).filter(|at_ns| *at_ns <= switch_ns)
}

/// Whether the sender has the receiver's CPU, and for no longer than usual.
#[must_use]
pub(super) fn is_usual(wakeup: &LateWakeup<'_>, piece: &Piece<'_>, task: &CurrentTask) -> bool {
    let span = piece.span;
    span.state == ThreadState::Dispatch
        && wakeup.route.is_some_and(|route| route.sender == Some(task.pid))
        && span.to_ns - span.from_ns <= at_most(wakeup.usual.dispatch_ns)
}

/// Why a task of lower priority kept the CPU before the interrupt came that the waker sent to it;
/// absent from then on, and if none had to come.
#[must_use]
pub(super) fn late_interrupt(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    task: &CurrentTask,
) -> Option<NamedCause> {
    let span = piece.span;
    let route = wakeup.route.filter(|route| route.is_remote)?;
    let has_come = route.interrupt_ns.is_some_and(|at_ns| piece.from_ns >= at_ns);
    if has_come || task.pid == 0 || span.state != ThreadState::Dispatch {
        return None;
    }
    let found = stacks::of_task(wakeup, span.cpu, task, span.ready_ns, span.to_ns);
    let (Some(found), Some(came_ns)) = (found, route.interrupt_ns) else {
        return Some(NamedCause::unexplained(LATE));
    };
    if found.is_of_user_mode() {
        return Some(missing_in_user_mode(wakeup, piece, LATE_IN_USER));
    }
    let events = wakeup.cpus.get(&span.cpu).map_or(&[][..], |cpu| &cpu.events);
    let was_off = piece.from_ns >= were_on_until(events, came_ns);
    let Some(outside) = found.enabled_interrupts().filter(|_| was_off) else {
        return Some(NamedCause::unexplained(LATE));
    };
    let name = outside.name_or(&names::comm(&task.comm));
    let why = NamedCause::measured(Cause::IrqsOff, name).of(task);
    Some(NamedCause { stack: outside.stack, ..why })
}
