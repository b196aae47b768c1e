//! Messages that ksoftirqd delivers. A busy softirq continues in that thread (`kernel/softirq.c`),
//! which is an ordinary task. Tasks that run before it delay the message while neither endpoint
//! has it.

use super::{
    Event, EventKind,
    contexts::{CurrentTask, Segment, ns},
    late_wakeup::LateWakeup,
    marks::is_switch,
    names,
    piece::{NamedCause, Piece},
    state_history::{StateSpan, ThreadState},
};
use crate::{kernel::out, run::peaks::Cause};

const CARRIER_WAITED: &str =
    "ksoftirqd, in which the receiver was then woken, was ready and waited for this CPU";

/// When the ksoftirqd in which the receiver was woken, at the end of a span in transit, was ready
/// and was not running: from and until. `None` if it was woken elsewhere, or nothing shows since
/// when that thread was ready.
#[must_use]
pub(super) fn waited(wakeup: &LateWakeup<'_>, span: &StateSpan) -> Option<(i64, i64)> {
    if span.state != ThreadState::InTransit {
        return None;
    }
    let cpu = wakeup.cpus.get(&span.cpu)?;
    let is_last = |s: &&Segment| s.from_ns < span.to_ns && span.to_ns <= s.to_ns;
    let carrier = cpu.segments.iter().find(is_last)?.task.filter(is_ksoftirqd)?;
    let ready_ns = ready_ns(&cpu.events, &carrier)?;
    Some((ready_ns.max(span.from_ns), carrier.since_ns)).filter(|(from, until)| from < until)
}

fn is_ksoftirqd(task: &CurrentTask) -> bool {
    names::comm(&task.comm).starts_with("ksoftirqd/")
}

/// Since when a task was ready that was then switched in: it had been preempted, or was woken.
fn ready_ns(events: &[Event], task: &CurrentTask) -> Option<i64> {
    let (mut has_cpu, mut ready_ns) = (false, None);
    for event in events.iter().take_while(|event| ns(event.at_ns) < task.since_ns) {
        match event.kind {
            _ if is_switch(event) => {
                let (had_cpu, has) = (has_cpu, event.pid == task.pid);
                has_cpu = has;
                match (had_cpu, has) {
                    (true, false) => {
                        let preempted = event.flags == out::PREEMPTED;
                        ready_ns = preempted.then(|| ns(event.at_ns));
                    }
                    (_, true) => ready_ns = None,
                    (false, false) => {}
                }
            }
            EventKind::Waking { .. } if event.pid == task.pid && !has_cpu => {
                ready_ns = ready_ns.or(Some(ns(event.at_ns)));
            }
            _ => {}
        }
    }
    ready_ns
}

/// Task that had the CPU while ksoftirqd was ready; `None` outside that time.
#[must_use]
pub(super) fn kept_waiting_by(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
) -> Option<NamedCause> {
    let (from_ns, until_ns) = waited(wakeup, piece.span)?;
    let task = segment.task.filter(|task| task.pid != 0)?;
    let is_within = piece.from_ns >= from_ns && piece.to_ns <= until_ns;
    let name = names::comm(&task.comm);
    is_within.then(|| NamedCause::inferred(Cause::Thread, name, CARRIER_WAITED).of(&task))
}
