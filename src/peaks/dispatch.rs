//! How a woken thread comes to run on its CPU, where that differs from a wake-up on that CPU: its
//! waker may be on another one, from which an interrupt has to come, or may be the sender of a
//! message, which has to sleep first.
//!
//! The waker asks by an interrupt (`resched_curr` and `ttwu_queue_wakelist`, kernel/sched/core.c),
//! but for an idle CPU that polls: there it sets a flag (`set_nr_if_polling`, the tracepoint
//! `sched_wake_idle_without_ipi`).

use super::{
    Event, EventKind,
    below_kernel::missing_in_user_mode,
    contexts::{CurrentTask, ns},
    interrupt::{ALSO_ON, ENDED_BEFORE, ended_something, were_on_until},
    late_wakeup::{Cpu, LateWakeup},
    marks::Marks,
    names,
    piece::{NamedCause, Piece},
    stacks,
    state_history::{Queued, ThreadState, moves},
    usual::at_most,
    way::Route,
};
use crate::{kernel::vector, run::peaks::Cause};

const LATE: &str = "interrupt late";
const LATE_IN_USER: &str = "interrupt late in user mode";

/// The kernel has the tracepoint `ipi_send_cpu` (include/trace/events/ipi.h) from 6.4 on alone.
const SENDER_UNSEEN: &str = "the interrupt for the switch came where interrupts are enabled, \
                             but when it was sent is not recorded";

/// A timer may expire on another CPU than the thread's, and others may wake it.
pub(super) fn find_route(wakeup: &mut LateWakeup<'_>) {
    let Some(marks) = wakeup.history.marks else { return };
    let queued = Queued::of(&marks, &moves(wakeup.me.tid, &wakeup.events()));
    wakeup.fetch([queued.cpu]);
    wakeup.route = Some(route(wakeup, &marks, queued));
}

/// How a thread was woken that was then queued there.
#[must_use]
pub(super) fn route(wakeup: &LateWakeup<'_>, marks: &Marks, queued: Queued) -> Route {
    let is_remote = marks.woken_on != queued.cpu;
    let knows = |cpu: &&Cpu| marks.waking_ns >= wakeup.begin_ns().max(cpu.known_from_ns);
    let cpu = wakeup.cpus.get(&queued.cpu).filter(|_| is_remote).filter(knows);
    let waits_ns = (marks.waking_ns, queued.until_ns);
    let first = |is_it: fn(&Event) -> bool| cpu.and_then(|cpu| first_ns(cpu, waits_ns, is_it));
    let came_ns = first(asks_for_switch);
    let left_ns = first(leaves_idle);
    let was_sent = wakeup.cpus.get(&marks.woken_on).is_some_and(|waker| {
        let times = waits_ns.0..came_ns.unwrap_or(waits_ns.1).saturating_add(1);
        let mut sent = waker.events.iter().filter(|event| times.contains(&ns(event.at_ns)));
        is_remote && sent.any(|event| event.sends_to(queued.cpu).is_some())
    });
    let interrupt_ns = came_ns.into_iter().chain(left_ns).min();
    Route { sender: None, is_remote, interrupt_ns, was_sent }
}

/// The first such event between a wake-up and the switch.
fn first_ns(
    cpu: &Cpu,
    (waking_ns, until_ns): (i64, i64),
    is_it: fn(&Event) -> bool,
) -> Option<i64> {
    let first = cpu.events.partition_point(|event| ns(event.at_ns) <= waking_ns);
    let found = cpu.events.get(first..)?.iter().find(|event| is_it(event))?;
    Some(ns(found.at_ns)).filter(|at_ns| *at_ns <= until_ns)
}

fn asks_for_switch(event: &Event) -> bool {
    let asking = [vector::RESCHEDULE, vector::CALL_FUNCTION, vector::CALL_FUNCTION_SINGLE];
    matches!(event.kind, EventKind::VectorEntry { vector, .. } if asking.contains(&vector))
}

fn leaves_idle(event: &Event) -> bool {
    event.kind == EventKind::Idle { state: Event::NOT_IDLE }
}

/// Whether the thread may not have been in the queue of its CPU yet at that time. Another CPU may
/// leave that to the thread's own one, which does it when the interrupt for it comes (`TTWU_QUEUE`,
/// `ttwu_queue_wakelist`): a task chosen before that does not run instead of it.
#[must_use]
pub(super) fn may_be_queued_later(wakeup: &LateWakeup<'_>, at_ns: i64) -> bool {
    let route = wakeup.route.filter(|route| route.is_remote);
    route.is_some_and(|route| route.interrupt_ns.is_none_or(|came_ns| at_ns < came_ns))
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
    let Some(came_ns) = route.interrupt_ns else { return Some(NamedCause::unexplained(LATE)) };
    let found = stacks::of_task(wakeup, span.cpu, task, span.ready_ns, span.to_ns);
    if found.as_ref().is_some_and(stacks::StackFinding::is_of_user_mode) {
        return Some(missing_in_user_mode(wakeup, piece, LATE_IN_USER));
    }
    let events = wakeup.cpus.get(&span.cpu).map_or(&[][..], |cpu| &cpu.events);
    if piece.from_ns < were_on_until(events, came_ns) {
        return Some(NamedCause::unexplained(LATE));
    }
    let kept_off = |name: String| NamedCause::measured(Cause::IrqsOff, name).of(task);
    let own_name = names::comm(&task.comm);
    Some(match found.and_then(|found| found.enabled_interrupts()) {
        Some(outside) => {
            let why = kept_off(outside.name_or(&own_name));
            let is_sure = outside.begins_where_interrupts_are_only_enabled();
            let why = NamedCause { stack: outside.stack, ..why };
            match (route.was_sent, is_sure) {
                (true, true) => why,
                (true, false) => why.inferred_from(ALSO_ON),
                (false, _) => why.inferred_from(SENDER_UNSEEN),
            }
        }
        None if ended_something(events, came_ns) => kept_off(own_name).inferred_from(ENDED_BEFORE),
        None => NamedCause::unexplained(LATE),
    })
}
