//! Collects the events of a span of time, and those that define the context at its beginning.

use super::event::{Event, EventKind};

/// How many events before a window are searched for its context.
const CONTEXT: u64 = 4096;

/// The kind of softirqs among what nests.
const SOFTIRQ: u8 = 1;

/// What is collected while events are read from the newest to the oldest.
pub(crate) struct Window {
    from_ns: u64,
    to_ns: u64,
    inside: Vec<(u64, Event)>,
    before: Vec<(u64, Event)>,
    /// Events before the window that were seen.
    older: u64,
    switch: bool,
    idle: bool,
    /// Exits whose entries are still to come, for each kind and number.
    closed: Vec<(u8, u32)>,
    softirqs: TaskSoftirqs,
    /// Switches before the one that defines the context.
    earlier: Vec<(u64, Event)>,
}

/// Softirqs that are open across switches: `PREEMPT_RT` runs them in tasks, which can be preempted
/// (`__local_bh_disable_ip` and `handle_softirqs`, kernel/softirq.c). As events come from the
/// newest to the oldest, the end of one comes first, and its begin in an earlier run of its task.
#[derive(Default)]
struct TaskSoftirqs {
    /// Of the run that is being read: one ended, whose begin has not come yet.
    ended: bool,
    /// One was open when the task was switched out; `None` if that is not known yet.
    was_open: Option<bool>,
    /// Tasks in which one ended that had begun in an earlier run.
    wanted: Vec<u32>,
}

impl TaskSoftirqs {
    /// Whether this is the switch to a task that was switched out in a softirq and ended it later.
    fn take(&mut self, event: &Event) -> bool {
        match event.kind {
            EventKind::SoftirqExit { .. } => {
                self.was_open.get_or_insert(false);
                self.ended = true;
            }
            EventKind::SoftirqEntry { .. } => {
                self.was_open.get_or_insert(true);
                self.ended = false;
            }
            EventKind::Switch { .. } => {
                let was_open = self.was_open.take();
                let wanted = self.wanted.iter().position(|pid| *pid == event.pid);
                // Else its begin is lost.
                let found = wanted.filter(|_| was_open.is_some());
                found.map(|at| self.wanted.swap_remove(at));
                if std::mem::take(&mut self.ended) && !self.wanted.contains(&event.pid) {
                    self.wanted.push(event.pid);
                }
                return found.is_some() && was_open == Some(true);
            }
            _ => {}
        }
        false
    }
}

impl Window {
    pub(crate) fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns,
            inside: Vec::new(),
            before: Vec::new(),
            older: 0,
            switch: false,
            idle: false,
            closed: Vec::new(),
            softirqs: TaskSoftirqs::default(),
            earlier: Vec::new(),
        }
    }

    /// Nothing more is needed: what happened before the last switch of tasks has no bearing on the
    /// context after it, as interrupts and idle states end before one; but for softirqs in tasks.
    pub(crate) fn is_complete(&self) -> bool {
        (self.switch && self.softirqs.wanted.is_empty()) || self.older > CONTEXT
    }

    pub(crate) fn take(&mut self, index: u64, event: Event) {
        if event.at_ns > self.to_ns {
            return;
        }
        let was_in_softirq = self.softirqs.take(&event);
        if event.at_ns >= self.from_ns {
            self.inside.push((index, event));
            return;
        }
        self.older += 1;
        if self.switch {
            self.take_earlier(index, event, was_in_softirq);
            return;
        }
        if self.defines_context(&event) {
            self.before.push((index, event));
        }
    }

    /// Of an event before the last switch: all switches and softirqs from the run on in which one
    /// was left open.
    fn take_earlier(&mut self, index: u64, event: Event, was_in_softirq: bool) {
        if matches!(nesting(event.kind), Some((_, (SOFTIRQ, _))))
            || matches!(event.kind, EventKind::Switch { .. })
        {
            self.earlier.push((index, event));
        }
        if was_in_softirq {
            self.before.append(&mut self.earlier);
        }
    }

    fn defines_context(&mut self, event: &Event) -> bool {
        // An idle state from before that is over.
        let was_idle = self.idle;
        self.idle |= ends_idle(event.kind);
        match (event.kind, nesting(event.kind)) {
            (EventKind::Switch { .. }, _) => !std::mem::replace(&mut self.switch, true),
            // Of the task that has the CPU, or of one with a separate event of a switch.
            (EventKind::Priority { .. }, _) => true,
            (EventKind::Idle { .. }, _) => {
                self.idle = true;
                !was_idle
            }
            (_, Some((false, what))) => {
                self.closed.push(what);
                false
            }
            (_, Some((true, what))) => match self.closed.iter().rposition(|it| *it == what) {
                Some(at) => {
                    self.closed.remove(at);
                    false
                }
                None => true,
            },
            _ => false,
        }
    }

    /// Whether there was an event from before the window.
    pub(crate) fn reaches_back(&self) -> bool {
        self.older > 0
    }

    /// How many of the window were dropped.
    pub(crate) fn drop_before(&mut self, torn: u64) -> u64 {
        let before = self.inside.len();
        self.inside.retain(|(index, _)| *index >= torn);
        self.before.retain(|(index, _)| *index >= torn);
        (before - self.inside.len()) as u64
    }

    /// Appends the events by time, with the exits from idle states, which no program records.
    pub(crate) fn into_order(self, into: &mut Vec<Event>) {
        let before = self.before.into_iter().rev();
        let inside = self.inside.into_iter().rev();
        let mut events: Vec<Event> = before.chain(inside).map(|(_, event)| event).collect();
        events.sort_by_key(|event| event.at_ns);
        let mut idle = false;
        for event in events {
            if idle && ends_idle(event.kind) {
                into.push(event.idle_exit());
                idle = false;
            }
            if let EventKind::Idle { state } = event.kind {
                idle = state != Event::NOT_IDLE;
            }
            into.push(event);
        }
    }
}

/// Whether a CPU that does this has left its idle state.
fn ends_idle(kind: EventKind) -> bool {
    let begins = nesting(kind).is_some_and(|(is_entry, _)| is_entry);
    begins || matches!(kind, EventKind::Switch { .. })
}

/// Whether an event is an entry, and of what; `None` if it is neither entry nor exit.
fn nesting(kind: EventKind) -> Option<(bool, (u8, u32))> {
    Some(match kind {
        EventKind::IrqEntry { line, .. } => (true, (0, line)),
        EventKind::IrqExit { line } => (false, (0, line)),
        EventKind::SoftirqEntry { vector } => (true, (SOFTIRQ, vector)),
        EventKind::SoftirqExit { vector } => (false, (SOFTIRQ, vector)),
        EventKind::VectorEntry { vector, .. } => (true, (2, vector)),
        EventKind::VectorExit { vector } => (false, (2, vector)),
        _ => return None,
    })
}
