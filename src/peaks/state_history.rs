//! States of the measured thread while it was late (waiting for its interrupt, runnable, running,
//! switched out again), each with the CPU whose events explain it.

use std::{collections::HashMap, ops::Range};

use tardy_hot::stages::Late;

use super::{
    Event, EventKind, MeasuredThread,
    contexts::ns,
    marks::{Marks, is_begun_awake, is_switch},
    mutexes::mutexes,
};
use crate::kernel::{Hold, out as out_flags};

/// A migration this soon after the wake-up is part of CPU selection, not a separate migration.
const PLACED_NS: i64 = 10_000;

/// Why the thread was off the CPU after it had been switched in, or before with no wake-up seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffCpu {
    /// It was runnable, and others ran.
    Preempted,
    /// It returned, as its wake-up shows, but no event of the return was recorded.
    Unseen,
    /// It was woken again, and is runnable since then.
    Woken,
    /// It was runnable since before the record begins.
    Ready,
    /// It slept or waited.
    Asleep,
    /// It was stopped.
    Stopped,
    /// It was runnable, and could not run.
    Held(Hold),
    /// It is on its way from one CPU to another.
    Moving {
        /// From.
        from: u32,
        /// To.
        to: u32,
    },
}

/// What the thread was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// The timer was programmed for later than it should expire.
    NotDue,
    /// Its timer's interrupt has not come yet.
    AwaitingIrq,
    /// It came; the softirq with the callback did not.
    AwaitingSoftirq,
    /// The callback, up to the wake-up.
    Handler,
    /// Runnable, not switched in.
    Dispatch,
    /// Switched in, also on its way back to user space.
    Running,
    /// Off the CPU again.
    OffCpu(OffCpu),
    /// The sender of a message sleeps, and the receiver was not woken yet.
    InTransit,
}

/// A span of the thread's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateSpan {
    /// From; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// Up to.
    pub to_ns: i64,
    /// What it was in.
    pub state: ThreadState,
    /// The CPU that decides when it continues.
    pub cpu: u32,
    /// Since when the thread was runnable, where it is.
    pub ready_ns: i64,
}

/// The whole history, from the programmed expiry to the wake-up, without gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StateHistory {
    /// By time.
    pub spans: Vec<StateSpan>,
    /// Of its wake-up, where that is known.
    pub marks: Option<Marks>,
}

/// Appends spans one after the other.
pub(super) struct Walk {
    pub spans: Vec<StateSpan>,
    at_ns: i64,
    end_ns: i64,
    state: ThreadState,
    cpu: u32,
    ready_ns: i64,
}

impl Walk {
    /// In this state from `from_ns` on; nothing is after `end_ns`.
    pub(super) fn new(from_ns: i64, end_ns: i64, state: ThreadState, cpu: u32) -> Self {
        Self { spans: Vec::new(), at_ns: from_ns, end_ns, state, cpu, ready_ns: from_ns }
    }

    /// Ends the present span.
    pub(super) fn until(&mut self, to_ns: i64) {
        let to_ns = to_ns.clamp(self.at_ns, self.end_ns);
        if to_ns > self.at_ns {
            self.spans.push(StateSpan {
                from_ns: self.at_ns,
                to_ns,
                state: self.state,
                cpu: self.cpu,
                ready_ns: self.ready_ns,
            });
            self.at_ns = to_ns;
        }
    }

    fn go(&mut self, at_ns: i64, state: ThreadState, cpu: u32) {
        self.until(at_ns);
        (self.state, self.cpu) = (state, cpu);
    }

    /// The stages up to the switch, from the moment on at which the thread sleeps.
    pub(super) fn stages(&mut self, marks: &Marks, moves: &[(i64, u32, u32)]) {
        self.go(self.at_ns, ThreadState::NotDue, marks.woken_on);
        self.go(marks.due_ns, ThreadState::AwaitingIrq, marks.woken_on);
        self.go(marks.entry_ns, ThreadState::AwaitingSoftirq, marks.woken_on);
        self.go(marks.softirq_ns, ThreadState::Handler, marks.woken_on);
        self.go(marks.waking_ns, ThreadState::Dispatch, marks.switched_on);
        self.ready_ns = marks.waking_ns;
        for (at_ns, from, to) in later_moves(marks, moves) {
            self.cpu = from;
            self.go(at_ns, ThreadState::OffCpu(OffCpu::Moving { from, to }), to);
        }
        self.go(marks.switch_ns, ThreadState::Running, marks.switched_on);
    }

    /// The events after the beginning of a time in which the thread was awake, and before its end.
    pub(super) fn through(&mut self, events: &[Event], tid: u32, within_ns: Range<i64>) {
        let is_within =
            |event: &&Event| ns(event.at_ns) > within_ns.start && ns(event.at_ns) < within_ns.end;
        for event in events.iter().filter(is_within) {
            self.follow(event, tid);
        }
    }

    /// The spans up to the end, where the thread is known to have had the CPU.
    pub(super) fn ended(mut self) -> Vec<StateSpan> {
        self.until(self.end_ns);
        // It did wake up, so it was switched in.
        if let Some(StateSpan { state: ThreadState::OffCpu(out), .. }) = self.spans.last_mut()
            && !matches!(out, OffCpu::Stopped)
        {
            *out = OffCpu::Unseen;
        }
        self.spans
    }

    /// The spans up to the end of work, where the thread goes to sleep: the clock of that end is
    /// read a little later than the one of the switch.
    fn worked(mut self) -> Vec<StateSpan> {
        self.until(self.end_ns);
        if let [.., before, last] = &mut self.spans[..]
            && before.state == ThreadState::Running
            && last.state == ThreadState::OffCpu(OffCpu::Asleep)
        {
            before.to_ns = last.to_ns;
            self.spans.pop();
        }
        self.ended()
    }

    /// An event of such a time.
    fn follow(&mut self, event: &Event, tid: u32) {
        let at_ns = ns(event.at_ns);
        let is_out = matches!(self.state, ThreadState::OffCpu(_));
        match event.kind {
            EventKind::Switch { .. } if event.pid == tid => {
                self.go(at_ns, ThreadState::Running, event.cpu);
            }
            EventKind::Switch { .. } if event.cpu == self.cpu && !is_out => {
                self.go(at_ns, ThreadState::OffCpu(out(event.flags)), event.cpu);
                self.ready_ns = at_ns;
            }
            EventKind::Migrate { from, to } if event.pid == tid && is_out => {
                self.go(at_ns, ThreadState::OffCpu(OffCpu::Moving { from, to }), to);
            }
            EventKind::Waking { .. } if event.pid == tid && is_out => {
                self.go(at_ns, ThreadState::OffCpu(OffCpu::Woken), self.cpu);
                self.ready_ns = at_ns;
            }
            _ => {}
        }
    }
}

/// How a task went that was switched out, by `flags` of the switch.
fn out(flags: u8) -> OffCpu {
    match flags {
        out_flags::PREEMPTED => OffCpu::Preempted,
        out_flags::STOPPED => OffCpu::Stopped,
        _ => Hold::of_switch(flags).map_or(OffCpu::Asleep, OffCpu::Held),
    }
}

/// What the thread did around its expiry, where it did not sleep then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Awake {
    /// On this CPU, or waiting for it.
    pub cpu: u32,
    /// Why it was off the CPU, where it was.
    pub out: Option<OffCpu>,
    /// When it was woken, where it was and had not had the CPU since.
    pub woken_ns: Option<i64>,
    /// When it went to sleep at last; `None` if the timer found it awake.
    asleep_ns: Option<i64>,
}

/// Whether the thread was awake at its expiry, `from_ns`, as one is that programs its timer too
/// late; `until_ns` is when the timer woke it, or the end.
pub(super) fn awake(tid: u32, from_ns: i64, until_ns: i64, events: &[Event]) -> Option<Awake> {
    let mut current: HashMap<u32, u32> = HashMap::new();
    let (mut awake, mut was_woken): (Option<Awake>, bool) = (None, false);
    let mut went_to_sleep = false;
    let (mut woken_ns, mut locks, mut came_back): (Option<i64>, u32, bool) = (None, 0, false);
    let mutexes = mutexes(tid, events);
    let waits = |at: u64| mutexes.iter().any(|wait| wait.is_at(ns(at)));
    for event in events.iter().take_while(|event| ns(event.at_ns) <= until_ns) {
        let (is_before, is_mine) = (ns(event.at_ns) <= from_ns, event.pid == tid);
        match event.kind {
            EventKind::Waking { .. } if is_mine => {
                if is_before {
                    woken_ns = Some(ns(event.at_ns));
                } else {
                    was_woken = true;
                }
                // A task that is woken has slept: it had the CPU in between, and that was not seen.
                awake = awake.filter(|known| came_back || known.out != Some(OffCpu::Preempted));
            }
            EventKind::LockBegin { .. } if is_mine => locks += 1,
            EventKind::LockEnd { .. } if is_mine => locks = locks.saturating_sub(1),
            EventKind::Migrate { to, .. } if is_mine => {
                awake.iter_mut().for_each(|known| known.cpu = to);
            }
            _ => {}
        }
        if !is_switch(event) {
            continue;
        }
        let left = current.insert(event.cpu, event.pid) == Some(tid) && !is_mine;
        if let Some(known) = awake.as_mut().filter(|_| is_mine) {
            // It slept for something else.
            known.asleep_ns = None;
            came_back = true;
        }
        let on = |out, woken_ns| Some(Awake { cpu: event.cpu, out, woken_ns, asleep_ns: None });
        if is_mine && is_before {
            (woken_ns, went_to_sleep) = (None, false);
            awake = on(None, None);
        } else if is_mine && awake.is_none() {
            // It comes back before its timer woke it: woken by somebody else since, as one is that
            // was stopped, woken before the expiry, or without having been woken in the record.
            let out = match (was_woken, woken_ns) {
                (true, _) if went_to_sleep => OffCpu::Asleep,
                (true, _) => OffCpu::Unseen,
                (false, Some(_)) => OffCpu::Woken,
                (false, None) => OffCpu::Ready,
            };
            awake = on(Some(out), woken_ns);
        } else if left && is_before {
            went_to_sleep = out(event.flags) == OffCpu::Asleep;
            // A task that waits for a lock does not sleep until its timer comes.
            awake = match out(event.flags) {
                OffCpu::Asleep if locks == 0 && !waits(event.at_ns) => None,
                why => on(Some(why), None),
            };
        } else if let Some(known) = awake.as_mut().filter(|_| left)
            && !matches!(out(event.flags), OffCpu::Preempted | OffCpu::Held(_))
        {
            known.asleep_ns = Some(ns(event.at_ns));
        }
        was_woken &= !is_mine || is_before;
    }
    awake
}

/// Follows the thread through `events`, those of all CPUs that matter, by time.
#[must_use]
pub(crate) fn follow(late: &Late, me: &MeasuredThread, events: &[Event]) -> StateHistory {
    if me.works && is_begun_awake(late) {
        return follow_working(late, me, events);
    }
    let end_ns = late.t_ns.saturating_add(late.latency_ns);
    let mut walk = Walk::new(late.t_ns, end_ns, ThreadState::OffCpu(OffCpu::Unseen), me.cpu);
    let mut marks = match late.matched {
        true => Some(Marks::of(me.tid, late, events)),
        // What did not see the thread come back cannot say who kept it.
        false => {
            Marks::found(me.tid, late.t_ns, end_ns, events).filter(|marks| marks.switch_ns < end_ns)
        }
    };
    // Without a wake-up in the record, what comes later shows nothing of the expiry.
    let woken_ns = marks.map_or(late.t_ns, |marks| marks.waking_ns);
    let mut walk_from_ns = late.t_ns;
    if let Some(awake) = awake(me.tid, late.t_ns, woken_ns, events) {
        walk.cpu = awake.cpu;
        walk.state = awake.out.map_or(ThreadState::Running, ThreadState::OffCpu);
        walk.ready_ns = awake.woken_ns.unwrap_or(walk.ready_ns);
        match awake.asleep_ns {
            Some(asleep_ns) => walk.through(events, me.tid, late.t_ns..asleep_ns),
            None => marks = None,
        }
        walk.until(awake.asleep_ns.unwrap_or(late.t_ns));
    }
    if let Some(marks) = &marks {
        walk.stages(marks, &moves(me.tid, events));
        walk_from_ns = marks.switch_ns;
    }
    walk.through(events, me.tid, walk_from_ns..i64::MAX);
    let spans = if me.works { walk.worked() } else { walk.ended() };
    StateHistory { spans, marks }
}

/// The same for work that the thread was not woken for: what it did at the expiry follows from what
/// came before.
fn follow_working(late: &Late, me: &MeasuredThread, events: &[Event]) -> StateHistory {
    let end_ns = late.t_ns.saturating_add(late.latency_ns);
    let first_ns = events.first().map_or(late.t_ns, |event| ns(event.at_ns)).min(late.t_ns);
    let mut walk = Walk::new(first_ns, end_ns, ThreadState::OffCpu(OffCpu::Unseen), me.cpu);
    walk.through(events, me.tid, i64::MIN..end_ns);
    let mut spans = walk.worked();
    spans.retain(|span| span.to_ns > late.t_ns);
    if let Some(first) = spans.first_mut() {
        first.from_ns = first.from_ns.max(late.t_ns);
    }
    StateHistory { spans, marks: None }
}

/// The same for a gap of a thread that never sleeps: it had the CPU at both ends.
#[must_use]
pub(crate) fn follow_spinning(late: &Late, me: &MeasuredThread, events: &[Event]) -> StateHistory {
    let end_ns = late.t_ns.saturating_add(late.latency_ns);
    let mut walk = Walk::new(late.t_ns, end_ns, ThreadState::Running, me.cpu);
    walk.through(events, me.tid, late.t_ns..end_ns);
    StateHistory { spans: walk.ended(), marks: None }
}

/// The moves of a woken thread that waits for a CPU: one right after its wake-up is the choice of
/// that CPU.
fn later_moves(marks: &Marks, moves: &[(i64, u32, u32)]) -> impl Iterator<Item = (i64, u32, u32)> {
    let waits = marks.waking_ns.saturating_add(PLACED_NS + 1)..marks.switch_ns;
    moves.iter().copied().filter(move |(at_ns, ..)| waits.contains(at_ns))
}

/// Where a woken thread was queued, and until when it waited there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queued {
    pub cpu: u32,
    pub until_ns: i64,
}

impl Queued {
    pub(super) fn of(marks: &Marks, moves: &[(i64, u32, u32)]) -> Self {
        let moved = later_moves(marks, moves).next();
        let stayed = Self { cpu: marks.switched_on, until_ns: marks.switch_ns };
        moved.map_or(stayed, |(until_ns, cpu, _)| Self { cpu, until_ns })
    }
}

/// When the thread was moved, from where and where to.
pub(super) fn moves(tid: u32, events: &[Event]) -> Vec<(i64, u32, u32)> {
    let named_stop = |event: &Event| match event.kind {
        EventKind::Migrate { from, to } if event.pid == tid => Some((ns(event.at_ns), from, to)),
        _ => None,
    };
    events.iter().filter_map(named_stop).collect()
}
