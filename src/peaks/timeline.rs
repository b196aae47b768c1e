//! Timeline of events around a late wake-up, for display.

use std::collections::HashMap;

use super::{
    Event, EventKind,
    contexts::{CurrentTask, HardirqSource, Segment, ns},
    interrupt,
    late_wakeup::{Cpu, LateWakeup},
    long_functions::{Place, WorkSource},
    named_work, names,
    overlays::OverlayKind,
    piece,
    siblings::siblings,
    way::WayKind,
};
use crate::{
    kernel::entry,
    run::peaks::{Lane, Moment},
};

/// Most entries of one timeline.
const MOST: usize = 300;

/// A timeline begins at most this long before the expiry.
const BEFORE_NS: i64 = 50_000;

/// Priority of an entry when there are too many: first points of the measured thread, then spans by
/// length, then other points.
type Weight = (u8, u64);

/// Collects the entries of one peak.
struct Drawing<'a> {
    wakeup: &'a LateWakeup<'a>,
    from_ns: i64,
    end_ns: i64,
    /// Names of the tasks that ran, by number.
    tasks: HashMap<u32, [u8; 16]>,
    entries: Vec<(Weight, Moment)>,
}

/// The timeline by time, and how many entries were left out of it.
#[must_use]
pub(crate) fn timeline(wakeup: &LateWakeup<'_>) -> (Vec<Moment>, u64) {
    let before_ns = (wakeup.late.latency_ns / 4).min(BEFORE_NS);
    let mut drawing = Drawing::new(wakeup, wakeup.late.t_ns.saturating_sub(before_ns));
    for (number, cpu) in &wakeup.cpus {
        drawing.cpu(*number, cpu);
    }
    drawing.siblings();
    match wakeup.ways.is_empty() {
        true => drawing.own(),
        false => drawing.ends(),
    }
    let left_out = drawing.entries.len().saturating_sub(MOST);
    drawing.entries.sort_by_key(|entry| std::cmp::Reverse(entry.0));
    drawing.entries.truncate(MOST);
    (drawing.by_time(), left_out as u64)
}

/// Activity of one CPU, in time order.
#[must_use]
pub(super) fn of_cpu(wakeup: &LateWakeup<'_>, number: u32) -> Vec<Moment> {
    let mut drawing = Drawing::new(wakeup, wakeup.late.t_ns);
    if let Some(cpu) = wakeup.cpus.get(&number) {
        drawing.cpu(number, cpu);
    }
    drawing.by_time()
}

fn moment(cpu: u32, lane: Lane, what: &str, name: String) -> Moment {
    Moment {
        at: 0,
        ns: None,
        cpu,
        lane,
        what: what.into(),
        name,
        pid: None,
        priority: None,
        detail: None,
        stack: Vec::new(),
    }
}

impl<'a> Drawing<'a> {
    fn new(wakeup: &'a LateWakeup<'a>, from_ns: i64) -> Self {
        let (tasks, entries) = (tasks(wakeup), Vec::new());
        Self { wakeup, from_ns, end_ns: wakeup.end_ns(), tasks, entries }
    }

    fn by_time(self) -> Vec<Moment> {
        let mut moments: Vec<Moment> = self.entries.into_iter().map(|(_, moment)| moment).collect();
        moments.sort_by_key(|moment| (moment.at, moment.cpu, moment.lane));
        moments
    }
}

impl Drawing<'_> {
    fn cpu(&mut self, number: u32, cpu: &Cpu) {
        self.contexts(number, cpu);
        self.functions(number, cpu);
        self.overlays(number, cpu);
        self.frequencies(number, cpu);
        for event in &cpu.events {
            if self.shows(event) {
                self.point(event);
            }
        }
    }

    /// A span, cut to what is drawn; nothing where it lies outside.
    fn span(&mut self, from_ns: i64, to_ns: i64, mut moment: Moment) {
        let (from_ns, to_ns) = (from_ns.max(self.from_ns), to_ns.min(self.end_ns));
        if from_ns < to_ns {
            let length = (to_ns - from_ns).unsigned_abs();
            moment.at = from_ns - self.wakeup.late.t_ns;
            moment.ns = Some(length);
            self.entries.push(((1, length), moment));
        }
    }

    fn dot(&mut self, at_ns: i64, is_mine: bool, mut moment: Moment) {
        if (self.from_ns..=self.end_ns).contains(&at_ns) {
            moment.at = at_ns - self.wakeup.late.t_ns;
            self.entries.push(((if is_mine { 2 } else { 0 }, 0), moment));
        }
    }

    /// Tasks, softirqs and hard interrupts: each as one span, though others lie over it.
    fn contexts(&mut self, number: u32, cpu: &Cpu) {
        let same_task = |s: &Segment| s.task.map(|task| (task.pid, task.since_ns));
        for (from, to, segment) in runs(&cpu.segments, same_task) {
            if let Some(task) = segment.task {
                let mut drawn = self.task(number, &task, segment);
                let left = left(cpu, to).filter(|_| task.pid != 0);
                let ahead = task.ahead.map(names::ahead);
                let details: Vec<&str> = ahead.into_iter().chain(left).collect();
                drawn.detail = (!details.is_empty()).then(|| details.join(", "));
                self.span(from, to, drawn);
            }
        }
        let same_softirq = |s: &Segment| s.softirq.zip(s.task.map(|task| task.since_ns));
        for (from, to, segment) in runs(&cpu.segments, same_softirq) {
            let name = segment.softirq.map(names::softirq).unwrap_or_default();
            self.span(from, to, moment(number, Lane::Softirq, "softirq", name));
        }
        for (from, to, segment) in runs(&cpu.segments, |s| s.hard) {
            if let Some(hard) = segment.hard {
                let name = names::hard(hard, &self.wakeup.wishes.interrupt_names);
                let what = if matches!(hard, HardirqSource::Irq { .. }) { "irq" } else { "vector" };
                let mut drawn = moment(number, Lane::Hardirq, what, name);
                drawn.detail = self.interrupted(cpu, from);
                self.span(from, to, drawn);
            }
        }
    }

    /// Functions that took long, and polls, over what they ran in.
    fn functions(&mut self, number: u32, cpu: &Cpu) {
        for one in &cpu.functions {
            let lane = match one.place {
                Place::TimerInterrupt | Place::Call => Lane::Hardirq,
                Place::Softirq(_) | Place::Tasklet => Lane::Softirq,
                Place::Work(_) => Lane::Others,
            };
            let name = named_work::work_name(self.wakeup, one.work);
            let mut drawn = moment(number, lane, "function", name.unwrap_or_default());
            if let WorkSource::Device { packets, budget, .. } = one.work {
                drawn.what = "poll".into();
                drawn.detail = Some(format!("{packets} packets, at most {budget}"));
            }
            self.span(one.from_ns, one.to_ns, drawn);
        }
    }

    fn task(&self, number: u32, task: &CurrentTask, segment: &Segment) -> Moment {
        if task.pid == 0 {
            return moment(number, Lane::Idle, "idle", names::idle(segment.idle_state));
        }
        let is_mine = self.wakeup.is_measured(task.pid);
        let lane = if is_mine { Lane::Thread } else { Lane::Others };
        let mut drawn = moment(number, lane, "task", names::comm(&task.comm));
        drawn.pid = Some(task.pid);
        drawn.priority = Some(names::priority(task.prio));
        drawn
    }

    /// What a vector that came at `at_ns` interrupted, where that was recorded.
    fn interrupted(&self, cpu: &Cpu, at_ns: i64) -> Option<String> {
        let entry = events_at(cpu, at_ns).find_map(|event| match event.kind {
            EventKind::VectorEntry { address, .. } if address != 0 => Some((event.flags, address)),
            _ => None,
        });
        let (flags, address) = entry?;
        if flags & entry::IN_USER != 0 {
            return Some("interrupted user mode".into());
        }
        let function = self.wakeup.source.symbol(address).map(|(name, _)| name);
        let enabled = interrupt::enabled_words(flags, function.as_deref());
        Some(format!("interrupted {}{enabled}", self.wakeup.function(address)))
    }

    fn overlays(&mut self, number: u32, cpu: &Cpu) {
        for overlay in &cpu.overlays {
            let what = match overlay.kind {
                OverlayKind::Steal => "steal",
                OverlayKind::Nmi => "nmi",
                OverlayKind::Walk => continue,
            };
            let name = piece::covered(overlay.kind).name;
            self.span(overlay.from_ns, overlay.to_ns, moment(number, Lane::Host, what, name));
        }
    }

    /// To which frequencies it was set.
    fn frequencies(&mut self, number: u32, cpu: &Cpu) {
        for set in cpu.frequencies.changes() {
            let name = format!("set to {} MHz", set.khz / 1_000);
            let mut drawn = moment(number, Lane::Others, "frequency", name);
            let highest = cpu.frequencies.highest_khz();
            drawn.detail = highest.map(|khz| format!("at most {} MHz", khz / 1_000));
            self.dot(ns(set.at_ns), false, drawn);
        }
    }

    /// Whether an event may be part of what is drawn: what began before may reach into it.
    fn shows(&self, event: &Event) -> bool {
        let is_span = matches!(event.kind, EventKind::Stack { .. });
        is_span || (self.from_ns..=self.end_ns).contains(&ns(event.at_ns))
    }

    /// What happened at one instant.
    fn point(&mut self, event: &Event) {
        let is_mine = self.wakeup.is_measured(event.pid);
        let lane = if is_mine { Lane::Thread } else { Lane::Others };
        let point = |what: &str, name: String| moment(event.cpu, lane, what, name);
        let pid = (event.pid != 0).then_some(event.pid);
        let at_ns = ns(event.at_ns);
        let mut drawn = match event.kind {
            EventKind::Waking { by, cpu } => {
                let mut drawn = point("waking", self.name_of(event.pid));
                let waker = if by == 0 { "idle task".into() } else { self.name_of(by) };
                drawn.detail = Some(format!("woken by {waker}, last ran on CPU {cpu}"));
                drawn
            }
            EventKind::Migrate { from, to } => {
                let mut drawn = point("migration", self.name_of(event.pid));
                drawn.detail = Some(format!("CPU {from} to CPU {to}"));
                drawn
            }
            EventKind::Ipi { to, .. } => point("ipi", format!("to CPU {to}")),
            EventKind::IpiMask { .. } => {
                let to: Vec<String> = event.recipients().map(|cpu| cpu.to_string()).collect();
                point("ipi", format!("to CPUs {}", to.join(", ")))
            }
            EventKind::PageFault { address, instruction } => {
                let mut drawn = point("page_fault", "page fault".into());
                drawn.detail = Some(format!("at {address:#x}, by {instruction:#x}"));
                drawn
            }
            EventKind::LockBegin { lock, .. } => point("lock", self.wakeup.function(lock)),
            EventKind::LockOwner { comm } => {
                let owner = format!("{}/{}", names::comm(&comm), event.pid);
                let mut drawn = moment(event.cpu, Lane::Thread, "lock_owner", owner);
                drawn.detail = Some("has the lock, and gets the priority of the waiter".into());
                drawn
            }
            EventKind::Priority { by } => {
                let mut drawn = point("priority", self.name_of(event.pid));
                let now = names::priority(event.prio);
                drawn.detail = Some(format!("now {now}, set by {}", self.name_of(by)));
                drawn
            }
            EventKind::Timer { callback, .. } => {
                moment(event.cpu, Lane::Hardirq, "timer", self.wakeup.function(callback))
            }
            EventKind::Stack { number, took_ns } => {
                let stack = self.wakeup.functions(number);
                let name = stack.first().cloned().unwrap_or_else(|| "stack".into());
                let mut drawn = point("stack", name);
                drawn.stack = stack;
                drawn.pid = pid;
                self.span(at_ns, at_ns.saturating_add(ns(took_ns)), drawn);
                return;
            }
            _ => return,
        };
        if !matches!(event.kind, EventKind::Timer { .. }) {
            drawn.pid = pid;
        }
        self.dot(at_ns, is_mine, drawn);
    }

    /// The name of a task, where one of the CPUs ran it.
    fn name_of(&self, pid: u32) -> String {
        match self.tasks.get(&pid) {
            Some(comm) => format!("{}/{pid}", names::comm(comm)),
            None => format!("task {pid}"),
        }
    }

    /// What shares a core with the CPUs of the wake-up.
    fn siblings(&mut self) {
        for sibling in siblings(self.wakeup) {
            if let Some(cpu) = &sibling.seen {
                self.contexts(sibling.cpu, cpu);
            }
            let name = format!("sibling of CPU {}", sibling.of);
            let mut drawn = moment(sibling.cpu, Lane::Others, "sibling", name);
            drawn.detail = Some(sibling.busy);
            self.dot(self.wakeup.late.t_ns, true, drawn);
        }
    }

    /// What the ends of a message have noted, and how long its receivers were stopped.
    fn ends(&mut self) {
        for way in self.wakeup.ways {
            let cpu = |end: usize| self.wakeup.followed.get(end).map_or(0, |end| end.cpu);
            let (sender, receiver) = (cpu(way.sender.unwrap_or(way.receiver)), cpu(way.receiver));
            let what = if way.kind == WayKind::Pacing { "expiry" } else { "sent" };
            self.dot(way.from_ns, true, moment(sender, Lane::Thread, what, way.begins.into()));
            let (from_ns, until_ns) = piece::stopped_between(way.seen.stopped_ns);
            self.span(
                from_ns,
                until_ns,
                moment(receiver, Lane::Thread, "stopped", "stopped".into()),
            );
        }
        let last = self.wakeup.history.spans.last().map_or(self.wakeup.me.cpu, |span| span.cpu);
        self.dot(self.end_ns, true, moment(last, Lane::Thread, "received", "received".into()));
    }

    /// The measured thread's own: the expiry, the wake-up, and how long it was stopped.
    fn own(&mut self) {
        let late = self.wakeup.late;
        let first = self.wakeup.history.spans.first().map_or(self.wakeup.me.cpu, |span| span.cpu);
        let last = self.wakeup.history.spans.last().map_or(self.wakeup.me.cpu, |span| span.cpu);
        let is_woken = self.wakeup.wishes.roams && late.expires_ns == 0;
        let (begins, ends) = match (self.wakeup.me.spins, self.wakeup.wishes.roams) {
            _ if self.wakeup.me.works && is_woken => ("made runnable", "waits again"),
            _ if self.wakeup.me.works => ("timer expires", "work is done"),
            (true, _) => ("gap begins", "gap ends"),
            (false, true) if is_woken => ("made runnable", "has the CPU"),
            (false, true) => ("timer expires", "has the CPU"),
            (false, false) => ("timer expires", "woke up"),
        };
        self.dot(late.t_ns, true, moment(first, Lane::Thread, "expiry", begins.into()));
        self.dot(self.end_ns, true, moment(last, Lane::Thread, "woke", ends.into()));
        let (from_ns, until_ns) = piece::stopped(self.wakeup);
        self.span(from_ns, until_ns, moment(last, Lane::Thread, "stopped", "stopped".into()));
    }
}

/// Names of the tasks that were switched in, each as it was first.
fn tasks(wakeup: &LateWakeup<'_>) -> HashMap<u32, [u8; 16]> {
    let mut tasks = HashMap::new();
    for event in wakeup.cpus.values().flat_map(|cpu| &cpu.events) {
        if let EventKind::Switch { comm, .. } = event.kind {
            tasks.entry(event.pid).or_insert(comm);
        }
    }
    tasks
}

fn events_at(cpu: &Cpu, at_ns: i64) -> impl Iterator<Item = &Event> {
    let first = cpu.events.partition_point(|event| ns(event.at_ns) < at_ns);
    cpu.events[first..].iter().take_while(move |event| ns(event.at_ns) == at_ns)
}

/// How the task went that left the CPU at `at_ns`.
fn left(cpu: &Cpu, at_ns: i64) -> Option<&'static str> {
    let is_switch = |event: &&Event| matches!(event.kind, EventKind::Switch { .. });
    names::left(events_at(cpu, at_ns).find(is_switch)?.flags)
}

/// Neighbouring segments of one kind, as `key` says, each with its first segment; those
/// without a kind are left out.
fn runs<K: PartialEq>(
    segments: &[Segment],
    key: impl Fn(&Segment) -> Option<K>,
) -> Vec<(i64, i64, &Segment)> {
    let mut found: Vec<(i64, i64, &Segment)> = Vec::new();
    let mut open: Option<K> = None;
    for segment in segments {
        let this = key(segment);
        match found.last_mut() {
            Some(last) if this.is_some() && this == open => last.1 = segment.to_ns,
            _ if this.is_some() => found.push((segment.from_ns, segment.to_ns, segment)),
            _ => {}
        }
        open = this;
    }
    found
}
