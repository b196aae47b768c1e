//! What a CPU was in at each instant: from its events to disjoint segments.
//!
//! A hard interrupt lies over a softirq, that over a task. An entry whose exit was lost ends with
//! the next event of a context further out: a softirq's begin or end, or a switch.

use std::collections::HashMap;

use super::{Event, EventKind};
use crate::kernel::{RunsAhead, woken};

/// Nested deeper than this, entries are not followed.
const DEEPEST: usize = 8;

/// A task on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurrentTask {
    /// Its number; 0 is the idle task.
    pub pid: u32,
    /// The kernel's priority by then, with what it inherits.
    pub prio: i16,
    /// Its name, padded with zeros.
    pub comm: [u8; 16],
    /// When it was switched in; `CLOCK_MONOTONIC` ns.
    pub since_ns: i64,
    /// What lets it run before real-time tasks, if something does.
    pub ahead: Option<RunsAhead>,
}

/// A hard interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HardirqSource {
    /// Of a line, with the name of the handler that runs, as in [`EventKind::IrqEntry`].
    Irq { line: u32, action: [u8; 16] },
    /// Of the local controller.
    Vector(u32),
}

/// A span of time in which a CPU was in one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// The task, on top of which all else runs; absent before the first that is known.
    pub task: Option<CurrentTask>,
    /// The softirq over it.
    pub softirq: Option<u32>,
    /// The hard interrupt over both.
    pub hard: Option<HardirqSource>,
    /// The idle state that the CPU is in.
    pub idle_state: Option<u32>,
}

impl Segment {
    /// Whether nothing is known of it.
    #[must_use]
    pub(crate) fn is_unknown(&self) -> bool {
        self.task.is_none() && self.softirq.is_none() && self.hard.is_none()
    }
}

/// What one CPU is in, followed from event to event.
#[derive(Debug, Default)]
struct State {
    task: Option<CurrentTask>,
    softirq: Option<u32>,
    hard: Vec<HardirqSource>,
    idle_state: Option<u32>,
    /// Softirqs of tasks that were preempted in them: PREEMPT_RT runs them as tasks.
    left: HashMap<u32, u32>,
}

impl State {
    /// Follows an event; whether it is one that changes the context.
    fn follow(&mut self, event: &Event) -> bool {
        match event.kind {
            EventKind::Switch { comm, ahead } => self.switch(event, comm, ahead),
            EventKind::Waking { by, .. } => return self.found_at_waking(event, by),
            EventKind::Priority { .. } => return self.inherits(event),
            EventKind::IrqEntry { line, action } => {
                self.enter(HardirqSource::Irq { line, action });
            }
            EventKind::IrqExit { line: ended } => {
                self.exit(|it| matches!(it, HardirqSource::Irq { line, .. } if *line == ended));
            }
            EventKind::VectorEntry { vector, .. } => self.enter(HardirqSource::Vector(vector)),
            EventKind::VectorExit { vector } => {
                self.exit(|it| *it == HardirqSource::Vector(vector));
            }
            EventKind::SoftirqEntry { vector } => {
                self.hard.clear();
                self.softirq = Some(vector);
            }
            EventKind::SoftirqExit { .. } => {
                self.hard.clear();
                self.softirq = None;
            }
            EventKind::Idle { state } => self.idle(event, state),
            _ => return false,
        }
        true
    }

    fn switch(&mut self, event: &Event, comm: [u8; 16], ahead: Option<RunsAhead>) {
        self.hard.clear();
        if let (Some(vector), Some(task)) = (self.softirq.take(), self.task) {
            self.left.insert(task.pid, vector);
        }
        self.softirq = self.left.remove(&event.pid);
        self.idle_state = None;
        let since_ns = ns(event.at_ns);
        self.task = Some(CurrentTask { pid: event.pid, prio: event.prio, comm, since_ns, ahead });
    }

    /// The fair server picks the task that runs, and lets it go, without a switch; whether it did.
    fn found_at_waking(&mut self, event: &Event, by: u32) -> bool {
        let Some(task) = self.task.as_mut().filter(|task| task.pid == by) else { return false };
        let was_served = task.ahead == Some(RunsAhead::FairServer);
        let is_served = event.flags & woken::SERVED != 0;
        if was_served != is_served {
            task.ahead = is_served.then_some(RunsAhead::FairServer);
        }
        was_served != is_served
    }

    /// The task that runs gets another priority; whether it is that one.
    fn inherits(&mut self, event: &Event) -> bool {
        let Some(task) = self.task.as_mut().filter(|task| task.pid == event.pid) else {
            return false;
        };
        std::mem::replace(&mut task.prio, event.prio) != event.prio
    }

    fn enter(&mut self, hard: HardirqSource) {
        if self.hard.len() < DEEPEST {
            self.hard.push(hard);
        }
    }

    /// Closes the innermost such interrupt and what is open within it.
    fn exit(&mut self, is_it: impl Fn(&HardirqSource) -> bool) {
        if let Some(at) = self.hard.iter().rposition(is_it) {
            self.hard.truncate(at);
        }
    }

    fn idle(&mut self, event: &Event, state: u32) {
        self.idle_state = (state != Event::NOT_IDLE).then_some(state);
        if self.task.is_none() {
            self.task = Some(CurrentTask {
                pid: 0,
                prio: 120,
                comm: *b"swapper\0\0\0\0\0\0\0\0\0",
                since_ns: ns(event.at_ns),
                ahead: None,
            });
        }
    }

    fn segment(&self, from_ns: i64, to_ns: i64) -> Segment {
        let hard = self.hard.last().copied();
        let (task, softirq, idle_state) = (self.task, self.softirq, self.idle_state);
        Segment { from_ns, to_ns, task, softirq, hard, idle_state }
    }
}

/// Kernel times fit; anything else is as late as can be.
#[must_use]
pub(crate) fn ns(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// The contexts of one CPU from `from_ns` to `to_ns`, by time, without gaps; `events` are those of
/// that CPU, by time, preceded by what shows the context at `from_ns`.
#[must_use]
pub(crate) fn segments(events: &[Event], from_ns: i64, to_ns: i64) -> Vec<Segment> {
    let (mut state, mut segments, mut at) = (State::default(), Vec::new(), from_ns);
    for event in events {
        let then = ns(event.at_ns).clamp(at, to_ns.max(at));
        let before = state.segment(at, then);
        if state.follow(event) && then > at {
            segments.push(before);
            at = then;
        }
    }
    if to_ns > at {
        segments.push(state.segment(at, to_ns));
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peaks::test_events::{
        at, irq, irq_end, priority, softirq, softirq_end, switch, vector,
    };

    /// From, up to, the task, the softirq, and whether a hard interrupt lies over both.
    type Shape = (i64, i64, Option<u32>, Option<u32>, bool);

    fn shapes(segments: &[Segment]) -> Vec<Shape> {
        let shape = |s: &Segment| {
            (s.from_ns, s.to_ns, s.task.map(|task| task.pid), s.softirq, s.hard.is_some())
        };
        segments.iter().map(shape).collect()
    }

    #[test]
    fn the_innermost_context_is_known_at_each_instant() {
        let events = [
            at(5, switch(7, 120, "a")),
            at(20, softirq(3)),
            at(30, irq(9)),
            at(40, irq_end(9)),
            at(50, softirq_end(3)),
            at(60, switch(8, 120, "b")),
        ];
        assert_eq!(
            shapes(&segments(&events, 10, 100)),
            [
                (10, 20, Some(7), None, false),
                (20, 30, Some(7), Some(3), false),
                (30, 40, Some(7), Some(3), true),
                (40, 50, Some(7), Some(3), false),
                (50, 60, Some(7), None, false),
                (60, 100, Some(8), None, false),
            ]
        );
    }

    #[test]
    fn an_entry_whose_exit_was_lost_ends_with_the_next_outer_event() {
        let events =
            [at(5, switch(7, 120, "a")), at(20, vector(1, 0, 0)), at(30, switch(8, 120, "b"))];
        let named = shapes(&segments(&events, 10, 40));
        assert_eq!(named[1], (20, 30, Some(7), None, true));
        assert_eq!(named[2], (30, 40, Some(8), None, false));
    }

    #[test]
    fn a_softirq_that_runs_as_a_task_goes_on_when_the_task_comes_back() {
        let events = [
            at(5, switch(7, 120, "ksoftirqd/0")),
            at(6, softirq(3)),
            at(20, switch(8, 50, "b")),
            at(30, switch(7, 120, "ksoftirqd/0")),
        ];
        let named = shapes(&segments(&events, 10, 40));
        assert_eq!(named[1], (20, 30, Some(8), None, false));
        assert_eq!(named[2], (30, 40, Some(7), Some(3), false));
    }

    #[test]
    fn a_task_has_the_priority_that_it_inherits_until_it_has_its_own_again() {
        let events = [
            at(5, switch(7, 120, "a")),
            at(20, priority(7, 49)),
            at(25, priority(8, 9)),
            at(30, priority(7, 120)),
        ];
        let named = segments(&events, 10, 40);
        let prios: Vec<_> = named.iter().map(|s| (s.from_ns, s.task.map(|t| t.prio))).collect();
        assert_eq!(prios, [(10, Some(120)), (20, Some(49)), (30, Some(120))]);
    }

    #[test]
    fn before_the_first_event_nothing_is_known() {
        let named = segments(&[at(20, switch(7, 120, "a"))], 10, 30);
        assert!(named[0].is_unknown());
        assert_eq!((named[0].from_ns, named[0].to_ns), (10, 20));
    }
}
