//! A late message: each of its ways is cut into two legs, in which one thread has it or waits for
//! it, and each leg is judged by the rules of a wake-up.
//!
//! The first goes from the sender's clock read to the moment the receiver was made runnable. The
//! sender has the CPU, or is kept from it; from where it sleeps on, neither end has the message.
//! The second continues to the receiver's clock read: it waits for its CPU, and then has it. A
//! receiver that had not gone to sleep is followed all the way: nothing shows when the message
//! came.
//!
//! A packet with a schedule has a leg before these, up to its sending: its sender wakes up by its
//! own timer, or is behind.

use tardy_hot::{stages::Late, trips::LateLeg};

use super::{
    Event, MeasuredThread, TypicalLeg, UsualStages, blame, dispatch,
    late_wakeup::{Cpu, LateWakeup},
    marks::Marks,
    piece::stopped_between,
    state_history::{
        self, OffCpu, Queued, StateHistory, StateSpan, ThreadState, Walk, awake, moves,
    },
    way::{Earlier, MessageWay, Route, WayKind},
};
use crate::run::peaks::{MessageStages, Part, WayOf};

/// A part of a way, of one thread.
struct Leg<'a> {
    me: &'a MeasuredThread,
    late: Late,
    history: StateHistory,
    usual: UsualStages,
    route: Option<Route>,
    earlier: Earlier,
    /// It is a wake-up by the thread's own timer.
    is_wake_up: bool,
}

/// A late message, ready to be classified.
pub(super) struct LateMessage<'a> {
    legs: Vec<Leg<'a>>,
    /// For people to read.
    pub ways: Vec<WayOf>,
}

/// Fetches what was recorded around a message and follows both ends through it. `usual` has the
/// medians of its ways, in their order.
#[must_use]
pub(super) fn gather<'a>(wakeup: &mut LateWakeup<'a>, usual: &[TypicalLeg]) -> LateMessage<'a> {
    let (ways, followed) = (wakeup.ways, wakeup.followed);
    for way in ways {
        let ends = way.sender.into_iter().chain([way.receiver]);
        wakeup.fetch(ends.filter_map(|end| followed.get(end)).map(|end| end.cpu));
        if way.seen.waking_ns != 0 {
            wakeup.fetch([way.seen.cpus.0, way.seen.cpus.1]);
        }
    }
    let events = wakeup.events().into_owned();
    let is_paced = ways.iter().any(|way| way.kind == WayKind::Pacing);
    let mut message = LateMessage { legs: Vec::new(), ways: Vec::new() };
    for (number, way) in ways.iter().enumerate() {
        let usual = usual.get(number).copied().unwrap_or_default();
        if let Some(receiver) = followed.get(way.receiver) {
            let sender = way.sender.and_then(|sender| followed.get(sender));
            let following = Following { way, sender, receiver, usual, events: &events, is_paced };
            message.add(&following, wakeup);
        }
    }
    let spans = message.legs.iter().flat_map(|leg| leg.history.spans.iter().copied()).collect();
    wakeup.history = StateHistory { spans, marks: None };
    message
}

/// One way, and what is needed to follow it.
struct Following<'a, 'e> {
    way: &'a MessageWay,
    sender: Option<&'a MeasuredThread>,
    receiver: &'a MeasuredThread,
    usual: TypicalLeg,
    events: &'e [Event],
    /// Its sender has a schedule.
    is_paced: bool,
}

impl<'a> Following<'a, '_> {
    /// When the receiver was woken and ran; `None` if it was not woken on this way.
    fn marks(&self) -> Option<Marks> {
        let (from_ns, to_ns) = (self.way.from_ns, self.way.to_ns);
        if self.way.seen.waking_ns == 0 {
            // What was never switched in had not gone to sleep.
            return Marks::found(self.receiver.tid, from_ns, to_ns, self.events)
                .filter(|marks| marks.switch_ns < to_ns)
                .map(|marks| Marks { entry_ns: marks.waking_ns, due_ns: marks.waking_ns, ..marks })
                .map(|marks| Marks { softirq_ns: marks.waking_ns, ..marks });
        }
        (self.way.seen.waking_ns >= from_ns).then(|| self.marks_after(from_ns))
    }

    /// When it had been woken before this way, and ran, where that is known.
    fn marks_before(&self) -> Option<Marks> {
        let waking_ns = self.way.seen.waking_ns;
        (waking_ns != 0 && waking_ns < self.way.from_ns).then(|| self.marks_after(waking_ns))
    }

    /// By the kernel's record of a wake-up not before `from_ns`.
    fn marks_after(&self, from_ns: i64) -> Marks {
        let LateLeg { waking_ns, switch_ns, cpus: (woken_on, switched_on), .. } = self.way.seen;
        let to_ns = self.way.to_ns;
        let waking_ns = waking_ns.clamp(from_ns, to_ns.max(from_ns));
        let switch_ns = switch_ns.clamp(waking_ns, to_ns.max(waking_ns));
        Marks {
            due_ns: waking_ns,
            entry_ns: waking_ns,
            softirq_ns: waking_ns,
            waking_ns,
            switch_ns,
            woken_on,
            switched_on,
        }
    }

    /// Up to the sending: the sender sleeps until its timer wakes it, or has others to send first;
    /// so it is followed from where it slept.
    fn pacing(&self) -> Leg<'a> {
        let (me, from_ns, to_ns) = (self.receiver, self.way.from_ns, self.way.to_ns);
        let (since_ns, stopped_ns) = (self.way.since_ns.min(from_ns), self.way.seen.stopped_ns);
        let history = state_history::follow(&late(since_ns, to_ns, stopped_ns), me, self.events);
        let history = StateHistory { spans: after(history.spans, from_ns), ..history };
        let earlier = Earlier::of(self.way.backlog, self.usual.send_ns);
        let (late, usual) = (late(from_ns, to_ns, stopped_ns), UsualStages::default());
        Leg { me, late, history, usual, route: None, earlier, is_wake_up: true }
    }

    /// Up to the receiver's wake-up.
    fn sending(&self, marks: &Marks) -> Leg<'a> {
        let (from_ns, to_ns) = (self.way.from_ns, marks.waking_ns);
        let me = self.sender.unwrap_or(self.receiver);
        let spans = match self.sender {
            Some(sender) => {
                let found = awake(sender.tid, from_ns, from_ns, self.events);
                let cpu = found.map_or(sender.cpu, |found| found.cpu);
                let mut walk = Walk::new(from_ns, to_ns, ThreadState::Running, cpu);
                walk.through(self.events, sender.tid, from_ns..to_ns);
                walk.until(to_ns);
                if self.is_paced { of_one_packet(walk.spans) } else { walk.spans }
            }
            None => {
                let mut walk = Walk::new(from_ns, to_ns, ThreadState::InTransit, marks.woken_on);
                walk.until(to_ns);
                walk.spans
            }
        };
        let spans = carried(spans, marks.woken_on, self.way.seen.stopped_ns);
        let (user_ns, dispatch_ns) = (self.usual.send_ns, self.usual.dispatch_ns);
        let usual = UsualStages { irq_ns: 0, dispatch_ns, user_ns };
        let history = StateHistory { spans, marks: None };
        let (late, earlier) = (late(from_ns, to_ns, (0, 0)), Earlier::default());
        Leg { me, late, history, usual, route: None, earlier, is_wake_up: false }
    }

    /// From its wake-up on.
    fn receiving(&self, marks: &Marks, route: Route) -> Leg<'a> {
        let (user_ns, dispatch_ns) = (self.usual.receive_ns, self.usual.dispatch_ns);
        let usual = UsualStages { irq_ns: 0, dispatch_ns, user_ns };
        self.leg(self.woken(marks), usual, Some(route))
    }

    /// All of it, by a receiver that had not gone to sleep: from where it was woken before, or from
    /// what the events have of it.
    fn unsplit(&self, before: Option<(Marks, Route)>) -> Leg<'a> {
        let TypicalLeg { send_ns, dispatch_ns, receive_ns } = self.usual;
        let user_ns = send_ns.saturating_add(receive_ns);
        let usual = UsualStages { irq_ns: 0, dispatch_ns, user_ns };
        if let Some((marks, route)) = before {
            return self.leg(self.woken(&marks), usual, Some(route));
        }
        let (from_ns, to_ns, tid) = (self.way.from_ns, self.way.to_ns, self.receiver.tid);
        let found = awake(tid, from_ns, to_ns, self.events);
        let state = match found.map(|found| found.out) {
            Some(None) => ThreadState::Running,
            Some(Some(out)) => ThreadState::OffCpu(out),
            None => ThreadState::OffCpu(OffCpu::Unseen),
        };
        let cpu = found.map_or(self.receiver.cpu, |found| found.cpu);
        let mut walk = Walk::new(from_ns, to_ns, state, cpu);
        walk.through(self.events, tid, from_ns..i64::MAX);
        self.leg(walk, usual, None)
    }

    /// From a wake-up of the receiver on.
    fn woken(&self, marks: &Marks) -> Walk {
        let tid = self.receiver.tid;
        let (from_ns, to_ns) = (marks.waking_ns, self.way.to_ns);
        let mut walk = Walk::new(from_ns, to_ns, ThreadState::Dispatch, marks.switched_on);
        walk.stages(marks, &moves(tid, self.events));
        walk.through(self.events, tid, marks.switch_ns..i64::MAX);
        walk
    }

    /// How a wake-up of the receiver came about.
    fn route(&self, marks: &Marks, wakeup: &LateWakeup<'_>) -> Route {
        let queued = Queued::of(marks, &moves(self.receiver.tid, self.events));
        let sender = self.sender.map(|sender| sender.tid);
        Route { sender, ..dispatch::route(wakeup, marks, queued) }
    }

    fn leg(&self, walk: Walk, usual: UsualStages, route: Option<Route>) -> Leg<'a> {
        let spans = after(walk.ended(), self.way.from_ns);
        let from_ns = spans.first().map_or(self.way.to_ns, |span| span.from_ns);
        let late = late(from_ns, self.way.to_ns, self.way.seen.stopped_ns);
        let history = StateHistory { spans, marks: None };
        let earlier = Earlier::of(self.way.backlog, self.usual.receive_ns);
        Leg { me: self.receiver, late, history, usual, route, earlier, is_wake_up: false }
    }
}

impl<'a> LateMessage<'a> {
    fn add(&mut self, following: &Following<'a, '_>, wakeup: &LateWakeup<'_>) {
        let way = following.way;
        let name = way.name.to_owned();
        let ns = way.to_ns.saturating_sub(way.from_ns);
        if way.kind == WayKind::Pacing {
            self.legs.push(following.pacing());
            self.ways.push(WayOf { way: name, ns, stages: None });
            return;
        }
        let Some(marks) = following.marks() else {
            let before = following.marks_before();
            let before = before.map(|marks| (marks, following.route(&marks, wakeup)));
            self.legs.push(following.unsplit(before));
            self.ways.push(WayOf { way: name, ns, stages: None });
            return;
        };
        let route = following.route(&marks, wakeup);
        let sending = following.sending(&marks);
        let stack = stack_ns(&sending.history.spans, wakeup);
        let wake_up = route.interrupt_ns.map_or(0, |at_ns| at_ns - marks.waking_ns);
        let stages = MessageStages {
            send: marks.waking_ns - way.from_ns - stack,
            stack,
            wake_up,
            dispatch: marks.switch_ns - marks.waking_ns - wake_up,
            receive: way.to_ns - marks.switch_ns,
        };
        self.ways.push(WayOf { way: name, ns, stages: Some(stages) });
        self.legs.push(sending);
        self.legs.push(following.receiving(&marks, route));
    }

    /// What the message is blamed on, largest part first; the parts sum to its latency.
    #[must_use]
    pub(super) fn parts(&self, wakeup: &mut LateWakeup<'_>) -> Vec<Part> {
        let mut parts = Vec::new();
        for leg in &self.legs {
            let view = LateWakeup {
                me: leg.me,
                late: &leg.late,
                wishes: wakeup.wishes,
                source: wakeup.source,
                smis: wakeup.smis,
                usual: leg.usual,
                cpus: std::mem::take(&mut wakeup.cpus),
                history: leg.history.clone(),
                ways: if leg.is_wake_up { &[] } else { wakeup.ways },
                followed: wakeup.followed,
                route: leg.route,
                earlier: leg.earlier,
            };
            blame::parts(&view).into_iter().for_each(|part| blame::join(&mut parts, part));
            wakeup.cpus = view.cpus;
        }
        blame::sort(&mut parts);
        parts
    }
}

/// A leg as the rules know a wake-up.
fn late(from_ns: i64, to_ns: i64, stopped_ns: (u64, u64)) -> Late {
    let latency_ns = to_ns.saturating_sub(from_ns);
    Late { t_ns: from_ns, latency_ns, stopped_ns, ..Late::default() }
}

/// What of this lies after `from_ns`.
fn after(spans: Vec<StateSpan>, from_ns: i64) -> Vec<StateSpan> {
    let later = spans.into_iter().filter(|span| span.to_ns > from_ns);
    later.map(|span| StateSpan { from_ns: span.from_ns.max(from_ns), ..span }).collect()
}

/// Of a sender with a schedule: where it first sleeps it has sent, and what it does when it is
/// awake again is about other packets.
fn of_one_packet(mut spans: Vec<StateSpan>) -> Vec<StateSpan> {
    let asleep = spans.iter().position(|span| span.state == ThreadState::OffCpu(OffCpu::Asleep));
    if let (Some(at), Some(end_ns)) = (asleep, spans.last().map(|span| span.to_ns)) {
        spans.truncate(at + 1);
        spans[at].to_ns = end_ns;
    }
    spans
}

/// While the sender sleeps, the message is on its way to the CPU that wakes the receiver; or waits
/// for one that is stopped.
fn carried(spans: Vec<StateSpan>, cpu: u32, stopped_ns: (u64, u64)) -> Vec<StateSpan> {
    let (from_ns, until_ns) = stopped_between(stopped_ns);
    let mut found = Vec::with_capacity(spans.len());
    for span in spans {
        if !matches!(span.state, ThreadState::OffCpu(OffCpu::Asleep) | ThreadState::InTransit) {
            found.push(span);
            continue;
        }
        let within = |at_ns: i64| at_ns.clamp(span.from_ns, span.to_ns);
        let cuts = [span.from_ns, within(from_ns), within(until_ns), span.to_ns];
        let phases =
            [ThreadState::InTransit, ThreadState::OffCpu(OffCpu::Stopped), ThreadState::InTransit];
        let parts = cuts.windows(2).zip(phases).map(|(cut, state)| StateSpan {
            from_ns: cut[0],
            to_ns: cut[1],
            state,
            cpu,
            ready_ns: span.ready_ns,
        });
        found.extend(parts.filter(|part| part.from_ns < part.to_ns));
    }
    found
}

/// How long the CPUs of these spans were in softirqs, and neither end had the message.
fn stack_ns(spans: &[StateSpan], wakeup: &LateWakeup<'_>) -> i64 {
    let of_span = |span: &StateSpan| {
        if matches!(span.state, ThreadState::InTransit | ThreadState::OffCpu(OffCpu::Stopped)) {
            return span.to_ns - span.from_ns;
        }
        wakeup.cpus.get(&span.cpu).map_or(0, |cpu| softirqs_ns(cpu, span))
    };
    spans.iter().map(of_span).sum()
}

fn softirqs_ns(cpu: &Cpu, span: &StateSpan) -> i64 {
    let softirqs = cpu.segments.iter().filter(|segment| segment.softirq.is_some());
    let overlaps = softirqs.map(|s| s.to_ns.min(span.to_ns) - s.from_ns.max(span.from_ns));
    overlaps.filter(|ns| *ns > 0).sum()
}
