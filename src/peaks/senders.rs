//! Who sent an interrupt from one CPU to another.

use std::ops::RangeInclusive;

use super::{
    Event, EventKind,
    contexts::{ns, segments},
    late_wakeup::LateWakeup,
    names,
};
use crate::kernel::vector::{CALL_FUNCTION, CALL_FUNCTION_SINGLE, RESCHEDULE};

/// The number of a task, and its name where that is known.
type Sender = (u32, Option<[u8; 16]>);

/// An interrupt that was sent longer ago has already arrived, however long interrupts were off.
const MOST_NS: i64 = 1_000_000;

/// Who sent the interrupt `vector` that has `cpu` at `at_ns`. `None` if CPUs do not send each other
/// this interrupt, if no sender was traced, or if several sent it since it came the last time. Also
/// `None` if an interrupt or a softirq sent it: the task that it interrupted is not to blame.
#[must_use]
pub(super) fn sender(wakeup: &LateWakeup<'_>, cpu: u32, vector: u32, at_ns: i64) -> Option<String> {
    let asks_for_call = match vector {
        RESCHEDULE => false,
        CALL_FUNCTION | CALL_FUNCTION_SINGLE => true,
        _ => return None,
    };
    let (_, entry_ns) = entries(&wakeup.cpus.get(&cpu)?.events, asks_for_call, at_ns)?;
    let first_ns = entry_ns.saturating_sub(MOST_NS).max(0);
    // What goes far before the wake-up is not among its events.
    let mut own = Vec::new();
    let [from_ns, to_ns] = [first_ns, entry_ns].map(i64::unsigned_abs);
    if !wakeup.source.events(cpu, from_ns, to_ns, &mut own) {
        return None;
    }
    let (before_ns, _) = entries(&own, asks_for_call, at_ns)?;
    let since_ns = before_ns.saturating_add(1).max(first_ns);
    let mut found: Option<(u32, Sender)> = None;
    for other in (0..wakeup.source.cpus()).filter(|other| *other != cpu) {
        for sender in senders(wakeup, other, (cpu, asks_for_call), since_ns..=entry_ns)? {
            match found {
                Some((known, (pid, _))) if (known, pid) != (other, sender.0) => return None,
                _ => found = Some((other, sender)),
            }
        }
    }
    found.map(|(cpu, (pid, comm))| names::sender(comm, pid, cpu))
}

/// Those on one CPU that sent such an interrupt to another one, `to`, in this time; `None` if the
/// record does not reach back so far, or no task sent one.
fn senders(
    wakeup: &LateWakeup<'_>,
    cpu: u32,
    (to, asks_for_call): (u32, bool),
    times: RangeInclusive<i64>,
) -> Option<Vec<Sender>> {
    if wakeup.source.recorded(cpu).is_empty() {
        // It is offline.
        return Some(Vec::new());
    }
    let [from_ns, to_ns] = [*times.start(), *times.end()].map(i64::unsigned_abs);
    let mut events = Vec::new();
    if !wakeup.source.events(cpu, from_ns, to_ns, &mut events) {
        return None;
    }
    let contexts = segments(&events, *times.start(), times.end().saturating_add(1));
    let is_interrupted = |at_ns: i64| {
        let mut around = contexts.iter().filter(|it| (it.from_ns..it.to_ns).contains(&at_ns));
        around.any(|segment| segment.hard.is_some() || segment.softirq.is_some())
    };
    let (mut current, mut found) = (None, Vec::new());
    for event in events {
        if let EventKind::Switch { comm, .. } = event.kind {
            current = Some((event.pid, comm));
        }
        let callback = event.sends_to(to).filter(|_| times.contains(&ns(event.at_ns)));
        if callback.is_some_and(|callback| (callback != 0) == asks_for_call) {
            if is_interrupted(ns(event.at_ns)) {
                return None;
            }
            let is_it = |task: &(u32, [u8; 16])| task.0 == event.pid;
            found.push((event.pid, current.filter(is_it).map(|(_, comm)| comm)));
        }
    }
    Some(found)
}

/// When such an interrupt came the last time before `at_ns`, and when the one before that.
fn entries(events: &[Event], asks_for_call: bool, at_ns: i64) -> Option<(i64, i64)> {
    let is_it = |event: &&Event| match event.kind {
        EventKind::VectorEntry { vector: CALL_FUNCTION | CALL_FUNCTION_SINGLE, .. } => {
            asks_for_call
        }
        EventKind::VectorEntry { vector: RESCHEDULE, .. } => !asks_for_call,
        _ => false,
    };
    let times = events.iter().filter(is_it).map(|event| ns(event.at_ns));
    let mut times = times.filter(|entry_ns| *entry_ns <= at_ns).rev();
    let entry_ns = times.next()?;
    Some((times.next().unwrap_or(i64::MIN), entry_ns))
}
