//! The work of a thread from one expiry of its timer to the next: it has the CPU for that, and may
//! sleep meanwhile for what it needs from others.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Event, EventKind,
    contexts::ns,
    holders::LockSleeps,
    late_wakeup::LateWakeup,
    locks::PI_MUTEX,
    names,
    piece::{NamedCause, Piece},
};
use crate::{
    kernel::out,
    run::peaks::{Cause, EARLIER_WORK},
};

const FAULT_BEFORE: &str =
    "the last that it did before it slept without taking signals was a page fault";

/// The thread works, on a CPU that the kernel had set to less than its highest frequency or not:
/// how much of the time that cost is not known.
#[must_use]
pub(super) fn own_work(is_below_highest: bool) -> NamedCause {
    let name =
        if is_below_highest { "own work, CPU below its highest frequency" } else { "own work" };
    NamedCause::measured(Cause::OwnWork, name)
}

/// Events that explain the sleeps of a thread. They are collected once per cycle, because a thread
/// may sleep hundreds of times in one.
pub(super) struct Sleeps<'a> {
    wakeup: &'a LateWakeup<'a>,
    locks: LockSleeps,
    /// Of all CPUs, by time.
    events: Cow<'a, [Event]>,
    /// The thread's own, by time.
    own: Vec<Event>,
    /// Names of tasks, as they were first switched in.
    tasks: HashMap<u32, [u8; 16]>,
}

impl<'a> Sleeps<'a> {
    /// `own` are those of `events` that are the thread's.
    pub(super) fn new(
        wakeup: &'a LateWakeup<'a>,
        events: Cow<'a, [Event]>,
        own: Vec<Event>,
    ) -> Self {
        let mut tasks = HashMap::new();
        if wakeup.me.works {
            for event in events.iter() {
                if let EventKind::Switch { comm, .. } = event.kind {
                    tasks.entry(event.pid).or_insert(comm);
                }
            }
        }
        let locks = match wakeup.me.works {
            true => LockSleeps::of(wakeup.me.tid, &events),
            false => LockSleeps::default(),
        };
        Self { wakeup, locks, events, own, tasks }
    }

    /// Where the sleep that begins then is to be cut.
    pub(super) fn cuts(&self, from_ns: i64, into: &mut Vec<i64>) {
        self.locks.cuts(self.wakeup, from_ns, into);
    }

    /// Why it sleeps: for a lock, for a page that has to be read, or for whoever wakes it.
    #[must_use]
    pub(super) fn why(&self, piece: &Piece<'_>) -> NamedCause {
        if let Some(lock) = self.locks.why(self.wakeup, piece, &self.tasks) {
            return lock;
        }
        let (from_ns, to_ns) = (piece.span.from_ns, piece.span.to_ns);
        let tid = self.wakeup.me.tid;
        let waking = at(&self.events, to_ns).find_map(|event| match event.kind {
            EventKind::Waking { by, .. } if event.pid == tid => Some((event.cpu, by)),
            _ => None,
        });
        let woken = waking.map(|waking| self.woken_by(waking, to_ns));
        // A page is read by a device, which interrupts. Where a task wakes it, only I/O shows that
        // it slept for the page: after a fault that was over it may sleep for that task, as in
        // vfork.
        let by_task = woken.as_ref().is_some_and(|woken| woken.task.is_some());
        let waits: &[u8] = if by_task { &[out::IO] } else { &[out::WAITING, out::IO] };
        if self.faulted(from_ns, waits) {
            return NamedCause::inferred(Cause::PageFault, "page fault", FAULT_BEFORE);
        }
        let slept_for = slept_for(tid, from_ns, &self.events);
        match (woken, slept_for) {
            (Some(woken), Some((cause, what))) => {
                NamedCause { cause, name: format!("{what}, {}", woken.name), ..woken }
            }
            (Some(woken), None) => woken,
            (None, Some((cause, what))) => {
                let name = format!("{what}, who woke it is not recorded");
                NamedCause::measured(cause, name)
            }
            (None, None) => NamedCause::unexplained("asleep, who woke it is not recorded"),
        }
    }

    /// The thread works for what woke it before its timer expired.
    pub(super) fn earlier_work(&self) -> NamedCause {
        let before = self.own.partition_point(|event| ns(event.at_ns) <= self.wakeup.late.t_ns);
        let waking = self.own[..before].iter().rev().find_map(|event| match event.kind {
            EventKind::Waking { by, .. } => Some((event.cpu, by, ns(event.at_ns))),
            _ => None,
        });
        let Some((cpu, by, at_ns)) = waking else {
            return NamedCause::measured(Cause::OwnWork, EARLIER_WORK);
        };
        let woken = self.woken_by((cpu, by), at_ns);
        let name = format!("{EARLIER_WORK}, {}", woken.name);
        NamedCause { cause: Cause::OwnWork, name, ..woken }
    }

    /// Whether it slept for a page: its last event before that is a fault, and it left its CPU in
    /// one of these ways.
    fn faulted(&self, from_ns: i64, waits: &[u8]) -> bool {
        let before = self.own.partition_point(|event| ns(event.at_ns) <= from_ns);
        let last = before.checked_sub(1).and_then(|last| self.own.get(last));
        let is_fault = last.is_some_and(|event| matches!(event.kind, EventKind::PageFault { .. }));
        let left = |event: &Event| waits.contains(&event.flags) && is_switch(event);
        is_fault && at(&self.events, from_ns).any(left)
    }

    /// What ran on the CPU where it was woken: an interrupt, a softirq or a task.
    fn woken_by(&self, (cpu, by): (u32, u32), at_ns: i64) -> NamedCause {
        let segments = self.wakeup.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.segments);
        let first = segments.partition_point(|one| one.to_ns < at_ns);
        let segment = segments.get(first).filter(|one| one.from_ns <= at_ns);
        let in_interrupt = segment.and_then(|one| match (one.hard, one.softirq) {
            (Some(hard), _) => Some(names::hard(hard, &self.wakeup.wishes.interrupt_names)),
            (None, Some(vector)) => Some(names::softirq(vector)),
            (None, None) => None,
        });
        if let Some(name) = in_interrupt {
            return NamedCause::measured(Cause::Wait, format!("woken by {name}"));
        }
        let name = self.tasks.get(&by).map_or_else(|| format!("task {by}"), names::comm);
        let task = Some(format!("{name}/{by}"));
        NamedCause { task, ..NamedCause::measured(Cause::Wait, format!("woken by {name}")) }
    }
}

/// Those of one moment, of events by time.
fn at(events: &[Event], at_ns: i64) -> impl Iterator<Item = &Event> {
    let first = events.partition_point(|event| ns(event.at_ns) < at_ns);
    events[first..].iter().take_while(move |event| ns(event.at_ns) == at_ns)
}

/// What it slept for, where the kernel said that as it left its CPU. Switches of several CPUs at
/// one time that say different things say nothing.
fn slept_for(tid: u32, from_ns: i64, events: &[Event]) -> Option<(Cause, &'static str)> {
    let is_away = |event: &&Event| event.pid != tid && is_switch(event);
    let mut left = at(events, from_ns).filter(is_away).map(|event| event.flags);
    let first = left.next()?;
    if left.any(|flags| flags != first) {
        return None;
    }
    match first {
        out::IO => Some((Cause::Wait, "I/O")),
        out::FUTEX => Some((Cause::Wait, "futex")),
        out::PI_FUTEX => Some((Cause::Lock, PI_MUTEX)),
        out::LOCK => Some((Cause::Lock, "lock of the kernel")),
        _ => None,
    }
}

const fn is_switch(event: &Event) -> bool {
    matches!(event.kind, EventKind::Switch { .. })
}
