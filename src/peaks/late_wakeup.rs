//! One late wake-up with all that was recorded around it, ready to be classified.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    mem,
};

use tardy_hot::stages::Late;

use super::{
    BlameOptions, Event, EventKind, MeasuredThread, UsualStages,
    contexts::{Segment, ns, segments},
    frequencies::Frequencies,
    long_functions::{LongFunction, long_functions},
    marks::is_begun_awake,
    overlays::{Overlay, overlays},
    smis::SmiEvidence,
    source::EventSource,
    state_history::{self, StateHistory},
    waiting,
    way::{Earlier, MessageWay, Route},
};

/// Events are fetched from this long before the expiry: earlier events are part of the story.
const BEFORE_NS: i64 = 60_000;

/// Events are fetched from this long before if the thread was not seen to leave its CPU.
const WAITED_NS: i64 = 10_000_000;

/// Events are fetched until this long after the wake-up: time that the hypervisor took is noticed
/// at the next event.
const AFTER_NS: i64 = 200_000;

/// A thread that was woken before a message is followed from there, where that is no longer before.
const LOOK_BACK_NS: i64 = 100_000_000;

/// Time stolen is looked for no further back than this before the expiry.
const STEAL_NS: i64 = 50_000_000;

/// One CPU around the wake-up.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Its events, by time.
    pub events: Vec<Event>,
    /// What it was in, without gaps.
    pub segments: Vec<Segment>,
    /// What lies over that, by beginning.
    pub overlays: Vec<Overlay>,
    /// Functions that took long, by beginning.
    pub functions: Vec<LongFunction>,
    /// What it was set to, where the thread worked on it.
    pub frequencies: Frequencies,
    /// The record reaches back to here; `CLOCK_MONOTONIC` ns.
    pub known_from_ns: i64,
}

/// Everything about one late wake-up.
pub(crate) struct LateWakeup<'a> {
    /// Whose.
    pub me: &'a MeasuredThread,
    /// Which.
    pub late: &'a Late,
    /// What was asked for, and the machine.
    pub wishes: &'a BlameOptions,
    /// For stacks and names.
    pub source: &'a dyn EventSource,
    /// Whether system management interrupts came since the last late wake-up.
    pub(super) smis: SmiEvidence,
    /// The medians of this thread's stages.
    pub usual: UsualStages,
    /// By number.
    pub cpus: BTreeMap<u32, Cpu>,
    /// Where the thread was.
    pub history: StateHistory,
    /// Of a message: its ways, and all threads, which they name by number.
    pub ways: &'a [MessageWay],
    pub followed: &'a [MeasuredThread],
    /// How the thread was woken, or the receiver of a leg of a message.
    pub route: Option<Route>,
    /// Of a leg of a message: what its thread may have taken for earlier ones.
    pub earlier: Earlier,
}

impl LateWakeup<'_> {
    /// The end: the moment of the wake-up.
    #[must_use]
    pub(crate) fn end_ns(&self) -> i64 {
        self.late.t_ns.saturating_add(self.late.latency_ns)
    }

    /// When the work of a cycle began that the thread was not woken for; `i64::MIN` for others.
    #[must_use]
    pub(super) fn begun_ns(&self) -> i64 {
        let begun_ns = self.end_ns().saturating_sub(self.late.stages.user_ns);
        if self.me.works && is_begun_awake(self.late) { begun_ns } else { i64::MIN }
    }

    /// From here on threads are followed: the beginning, or where a message found them before.
    #[must_use]
    pub(super) fn begin_ns(&self) -> i64 {
        let times = self.ways.iter().flat_map(|way| [way.seen.waking_ns, way.since_ns]);
        let first_ns = times.filter(|at_ns| *at_ns != 0).fold(self.late.t_ns, i64::min);
        first_ns.max(self.late.t_ns.saturating_sub(LOOK_BACK_NS))
    }

    /// Fetches the events of the CPUs that matter and follows the thread through them; `all` are
    /// the CPUs to ask where the thread is lost from sight.
    pub(crate) fn gather(&mut self, all: impl Iterator<Item = u32>) {
        if self.me.works {
            // It may have been anywhere meanwhile.
            self.fetch(all);
            self.history = self.follow();
            self.look_back();
            self.fetch_frequencies();
            return;
        }
        self.fetch([self.me.cpu]);
        if self.late.matched {
            self.fetch([self.late.cpus.0, self.late.cpus.1]);
        }
        let events = self.cpus.values().flat_map(|cpu| &cpu.events);
        let moved_to: Vec<u32> = events.filter_map(|e| self.destination(e)).collect();
        self.fetch(moved_to);
        self.history = self.follow();
        let is_lost = self
            .history
            .spans
            .last()
            .is_some_and(|span| matches!(span.state, state_history::ThreadState::OffCpu(_)));
        if is_lost {
            self.fetch(all);
            self.history = self.follow();
        }
        self.look_back();
    }

    /// A thread that nobody saw leave its CPU may have waited for something since long before its
    /// expiry.
    fn look_back(&mut self) {
        let is_unseen = |history: &StateHistory| {
            let unseen = state_history::ThreadState::OffCpu(state_history::OffCpu::Unseen);
            history.spans.iter().any(|span| span.state == unseen)
        };
        // Work may have waited for longer than a wake-up.
        let longest_ns = if self.me.works { LOOK_BACK_NS } else { WAITED_NS };
        for back_ns in [WAITED_NS, longest_ns] {
            if !is_unseen(&self.history) {
                return;
            }
            let since_ns = self.begin_ns().saturating_sub(back_ns);
            let longer = |cpu: &u32| (*cpu, self.read_since(*cpu, since_ns));
            let longer = self.cpus.keys().map(longer).collect();
            let before = mem::replace(&mut self.cpus, longer);
            let history = self.follow();
            if is_unseen(&history) {
                self.cpus = before;
            } else {
                self.history = history;
            }
        }
    }

    fn follow(&self) -> StateHistory {
        match self.me.spins {
            true => state_history::follow_spinning(self.late, self.me, &self.events()),
            false => state_history::follow(self.late, self.me, &self.events()),
        }
    }

    /// The CPU to which an event moves the measured thread.
    fn destination(&self, event: &Event) -> Option<u32> {
        match event.kind {
            EventKind::Migrate { to, .. } if event.pid == self.me.tid => Some(to),
            _ => None,
        }
    }

    pub(super) fn fetch(&mut self, cpus: impl IntoIterator<Item = u32>) {
        for cpu in cpus {
            if !self.cpus.contains_key(&cpu) {
                let found = self.read(cpu);
                self.cpus.insert(cpu, found);
            }
        }
    }

    /// Whether events of it were overwritten because this came too late.
    #[must_use]
    pub(crate) fn is_lost(&self) -> bool {
        self.history.spans.iter().any(|span| {
            let misses = self.cpus.get(&span.cpu).is_some_and(|it| it.known_from_ns > span.from_ns);
            misses && waiting::is_lost(&self.source.recorded(span.cpu), self.late)
        })
    }

    pub(super) fn read(&self, cpu: u32) -> Cpu {
        // What had woken it before, for work that was not over.
        let is_kept = self.begun_ns() > self.late.t_ns;
        let before_ns = if is_kept { WAITED_NS } else { BEFORE_NS };
        self.read_since(cpu, self.begin_ns().saturating_sub(before_ns))
    }

    fn read_since(&self, cpu: u32, wanted_from_ns: i64) -> Cpu {
        let (begin_ns, wanted_from_ns) = (self.begin_ns(), wanted_from_ns.max(0));
        let (mut from_ns, to_ns) = (wanted_from_ns, self.end_ns().saturating_add(AFTER_NS));
        let (mut events, mut reaches) = self.ask(cpu, from_ns, to_ns);
        if let Some(since_ns) = stolen_since(&events).filter(|since| *since < from_ns) {
            from_ns = since_ns.max(begin_ns.saturating_sub(STEAL_NS)).max(0);
            (events, reaches) = self.ask(cpu, from_ns, to_ns);
        }
        let first_ns = events.first().map_or(to_ns, |event| ns(event.at_ns));
        let known_from_ns = if reaches { i64::MIN } else { first_ns };
        let segments = segments(&events, wanted_from_ns, self.end_ns().max(wanted_from_ns));
        let (overlays, functions) = (overlays(&events), long_functions(&events));
        let frequencies = Frequencies::default();
        Cpu { events, segments, overlays, functions, frequencies, known_from_ns }
    }

    /// Of the CPUs that it worked on: of others they do not matter.
    fn fetch_frequencies(&mut self) {
        let (from_ns, to_ns) = (unsigned(self.begin_ns()), unsigned(self.end_ns()));
        for number in self.history.spans.iter().map(|span| span.cpu).collect::<BTreeSet<u32>>() {
            if let Some(cpu) = self.cpus.get_mut(&number) {
                let set = self.source.frequencies(number, from_ns, to_ns);
                let highest_khz = self.wishes.highest_khz.get(&number).copied();
                cpu.frequencies = Frequencies::new(set, highest_khz);
            }
        }
    }

    fn ask(&self, cpu: u32, from_ns: i64, to_ns: i64) -> (Vec<Event>, bool) {
        let mut events = Vec::new();
        let reaches = self.source.events(cpu, unsigned(from_ns), unsigned(to_ns), &mut events);
        events.sort_by_key(|event| event.at_ns);
        (events, reaches)
    }

    /// Whether this is an end of the message, or the thread that was woken.
    #[must_use]
    pub(crate) fn is_measured(&self, tid: u32) -> bool {
        let ends = self.ways.iter().flat_map(|way| way.sender.into_iter().chain([way.receiver]));
        let mut others = ends.filter_map(|end| self.followed.get(end));
        tid == self.me.tid || others.any(|end| end.tid == tid)
    }

    /// The events of all CPUs, by time.
    #[must_use]
    pub(crate) fn events(&self) -> Cow<'_, [Event]> {
        // A bound thread has one.
        let mut cpus = self.cpus.values();
        if let (Some(only), None) = (cpus.next(), cpus.next()) {
            return Cow::Borrowed(&only.events);
        }
        let mut events: Vec<Event> =
            self.cpus.values().flat_map(|cpu| cpu.events.iter().copied()).collect();
        events.sort_by_key(|event| event.at_ns);
        Cow::Owned(events)
    }

    /// The functions of a stack, innermost first, as `function+0x12`.
    #[must_use]
    pub(crate) fn functions(&self, stack: u64) -> Vec<String> {
        let addresses = self.source.stack(stack).unwrap_or_default();
        addresses.into_iter().map(|address| self.function(address)).collect()
    }

    /// The function at an address, or the address where names are hidden.
    #[must_use]
    pub(crate) fn function(&self, address: u64) -> String {
        match self.source.symbol(address) {
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => format!("{address:#x}"),
        }
    }
}

/// A time as sources have it.
fn unsigned(at_ns: i64) -> u64 {
    u64::try_from(at_ns).unwrap_or(0)
}

fn stolen_since(events: &[Event]) -> Option<i64> {
    let since = |event: &Event| match event.kind {
        EventKind::Steal { since_ns, .. } => Some(ns(since_ns)),
        _ => None,
    };
    events.iter().filter_map(since).min()
}
