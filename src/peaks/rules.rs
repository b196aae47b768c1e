//! The rules: from a piece of a latency to its cause.

use super::{
    Event, EventKind,
    below_kernel::{missing_cpu, missing_in_gap},
    contexts::{CurrentTask, Segment, ns},
    cycle::Sleeps,
    dispatch, holds,
    idle::{self, IdleExits},
    interrupt::{self, InterruptDelay},
    ksoftirqd,
    late_wakeup::LateWakeup,
    locks::{self, LockWait},
    named_work, names,
    piece::{self, NamedCause, Piece},
    precedence::{goes_first, is_stopper},
    stacks,
    state_history::{OffCpu, StateSpan, ThreadState},
    unseen,
    usual::at_most,
};
use crate::{
    kernel::Hold,
    run::{functions::SymbolConfidence, peaks::Cause},
};

/// The usual time of a switch and its preparation.
const SWITCH_NS: i64 = 2_000;

/// The time of the way into the kernel and back in a gap with an event of the kernel, each time
/// that the thread is switched in.
const ENTRY_NS: u64 = 3_000;

/// Kernel priorities below this are real-time.
const MAX_RT_PRIO: i16 = 100;

/// A lower task that is switched in so soon after the wake-up had been chosen before it.
const CHOSEN_NS: i64 = 20_000;

const SAMPLED_LOCK: &str = "the function on top of its stack waits for a spin lock";
const NOT_RECORDED: &str = "woken twice, its run between is not recorded";
const FAULT_BEGAN: &str = "a page fault began, and its end is not recorded";

/// What is decided once for a whole wake-up.
pub(crate) struct CauseClassifier<'a> {
    wakeup: &'a LateWakeup<'a>,
    held: InterruptDelay,
    /// From the measured thread's first page fault on.
    fault_ns: Option<i64>,
    /// From and until it waited for locks.
    locks: Vec<LockWait>,
    /// Where its own events cut a span.
    marks: Vec<i64>,
    /// When it was woken, by time.
    wakings: Vec<i64>,
    /// The priorities that it inherited, or had again, by time.
    inherited: Vec<(i64, i16)>,
    /// What its sleeps were for.
    pub(super) sleeps: Sleeps<'a>,
    /// When it was woken, and could not run.
    woken_held: Vec<(i64, Hold)>,
    idle_exits: IdleExits,
    /// A thread that never sleeps stood still, and its CPU had no event meanwhile.
    is_empty_gap: bool,
}

impl<'a> CauseClassifier<'a> {
    /// Looks at what bears on all pieces.
    #[must_use]
    pub(crate) fn new(wakeup: &'a LateWakeup<'a>) -> Self {
        let inherits = |event: &Event| matches!(event.kind, EventKind::Priority { .. });
        let mine = |event: &&Event| event.pid == wakeup.me.tid && !inherits(event);
        let all = wakeup.events();
        let events: Vec<Event> = all.iter().filter(mine).copied().collect();
        let from_ns = wakeup.late.t_ns;
        let faults = events.iter().find(|event| {
            matches!(event.kind, EventKind::PageFault { .. }) && ns(event.at_ns) >= from_ns
        });
        let locks = locks::locks(wakeup, &all);
        let marks = events.iter().filter(|event| locks::cuts(event)).map(|event| ns(event.at_ns));
        let marks = marks.chain(locks.iter().map(|wait| wait.from_ns));
        let mut marks: Vec<i64> = marks.collect();
        marks.sort_unstable();
        let wakings = || events.iter().filter(|e| matches!(e.kind, EventKind::Waking { .. }));
        Self {
            wakeup,
            held: interrupt::held(wakeup),
            fault_ns: faults.map(|event| ns(event.at_ns)),
            marks,
            locks,
            wakings: wakings().map(|event| ns(event.at_ns)).collect(),
            inherited: all
                .iter()
                .filter(|event| inherits(event) && event.pid == wakeup.me.tid)
                .map(|event| (ns(event.at_ns), event.prio))
                .collect(),
            woken_held: wakings()
                .filter_map(|event| Some((ns(event.at_ns), Hold::of_waking(event.flags)?)))
                .collect(),
            idle_exits: IdleExits::of(wakeup),
            is_empty_gap: unseen::is_empty_gap(wakeup),
            sleeps: Sleeps::new(wakeup, all, events),
        }
    }

    /// Where else a span is to be cut: at faults, locks, the end of the way out of idle states, and
    /// where the usual begins.
    pub(crate) fn cuts(&self, span: &StateSpan, into: &mut Vec<i64>) {
        match span.state {
            ThreadState::AwaitingIrq => into.extend(interrupt::cuts(self.wakeup, span)),
            _ => into.push(span.to_ns.saturating_sub(SWITCH_NS)),
        }
        if span.state == ThreadState::OffCpu(OffCpu::Asleep) {
            self.sleeps.cuts(span.from_ns, into);
        }
        into.extend(self.idle_exits.cuts(span.cpu));
        into.extend(self.wakeup.route.and_then(|route| route.interrupt_ns));
        into.extend(self.inherited.iter().map(|(at_ns, _)| *at_ns));
        into.extend([self.wakeup.earlier.until_ns, self.wakeup.begun_ns()]);
        let first = self.marks.partition_point(|at| *at < span.from_ns);
        into.extend(self.marks[first..].iter().take_while(|at| **at <= span.to_ns));
        into.extend(ksoftirqd::waited(self.wakeup, span).map(|(from_ns, _)| from_ns));
    }

    /// Why this piece passed.
    #[must_use]
    pub(crate) fn why(&self, piece: &Piece<'_>) -> NamedCause {
        if piece::is_stopped(self.wakeup, piece) {
            return NamedCause::measured(Cause::Stopped, "stopped");
        }
        if piece.span.state == ThreadState::NotDue {
            return NamedCause::unexplained("timer programmed late");
        }
        if let Some(hold) = holds::of_piece(piece, &self.woken_held) {
            return holds::held(hold);
        }
        if unseen::ran(&self.wakings, piece) {
            return NamedCause::unexplained(NOT_RECORDED);
        }
        if let Some(kind) = piece.overlay {
            return piece::covered(kind);
        }
        let is_known = |s: &&Segment| !s.is_unknown() || self.is_at_its_loop(piece);
        let Some(segment) = piece.segment.filter(is_known).filter(|_| !piece.is_overwritten) else {
            return piece::unknown(piece);
        };
        if let Some(hard) = segment.hard {
            return named_work::hard(self.wakeup, piece, segment, hard);
        }
        match piece.span.state {
            ThreadState::AwaitingIrq | ThreadState::NotDue => self.late_interrupt(piece, segment),
            ThreadState::AwaitingSoftirq | ThreadState::Handler | ThreadState::Dispatch => {
                self.waiting(piece, segment)
            }
            ThreadState::Running => self.running(piece, segment),
            ThreadState::OffCpu(out) => self.off(piece, segment, out),
            ThreadState::InTransit => self.carried(piece, segment),
        }
    }

    /// Whether a task may run before the thread, by the priority that this one has then.
    fn goes_first(&self, piece: &Piece<'_>, task: &CurrentTask) -> bool {
        let me = self.wakeup.me;
        let next = self.inherited.partition_point(|(at_ns, _)| *at_ns <= piece.from_ns);
        match next.checked_sub(1).and_then(|last| self.inherited.get(last)) {
            Some((_, prio)) => goes_first(*prio < MAX_RT_PRIO, *prio, task),
            None => goes_first(me.real_time, me.prio, task),
        }
    }

    /// The timer's interrupt has not come.
    fn late_interrupt(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if let Some(exit) = self.idle_exits.why(piece, segment) {
            return exit;
        }
        if self.held.is_usual(piece, self.wakeup) {
            return piece::own_path(self.wakeup);
        }
        match segment.idle_state {
            Some(_) if segment.softirq.is_none() => idle::overslept(self.wakeup, piece),
            _ => self.held.why(piece, segment, self.wakeup),
        }
    }

    /// Others go before, or keep the CPU.
    fn waiting(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if let Some(vector) = segment.softirq {
            return named_work::softirq(self.wakeup, piece, segment, vector);
        }
        let Some(task) = segment.task else { return piece::unknown(piece) };
        let me = self.wakeup.me;
        if task.pid == me.tid {
            return piece::own_path(self.wakeup);
        }
        if dispatch::is_usual(self.wakeup, piece, &task) {
            return piece::own_path(self.wakeup);
        }
        if self.goes_first(piece, &task) && task.pid != 0 {
            return self.going_first(piece, segment, &task);
        }
        if let Some(served) = holds::served(me, &task) {
            return served;
        }
        if task.since_ns > piece.span.ready_ns.saturating_add(CHOSEN_NS)
            && !dispatch::may_be_queued_later(self.wakeup, task.since_ns)
        {
            return self.held_back(piece, &task);
        }
        if piece.span.state == ThreadState::OffCpu(OffCpu::Ready) {
            // The record does not show whether that task was there before.
            return NamedCause::unexplained("ready since before its record");
        }
        if let Some(exit) = self.idle_exits.why(piece, segment) {
            return exit;
        }
        self.kept(piece, segment, &task)
    }

    /// A task that should have been preempted was not, or the CPU did not leave its idle state.
    fn kept(&self, piece: &Piece<'_>, segment: &Segment, task: &CurrentTask) -> NamedCause {
        let is_usual = piece.from_ns >= piece.span.to_ns - SWITCH_NS || piece.ns() < SWITCH_NS;
        // Out of user mode and out of idle the way leads straight to the switch.
        let is_straight = task.pid == 0 || self.held.was_in_user_mode_on(piece.span.cpu);
        if is_usual || (is_straight && piece.ns() <= at_most(self.wakeup.usual.dispatch_ns)) {
            return piece::own_path(self.wakeup);
        }
        if segment.idle_state.is_some() {
            return idle::overslept(self.wakeup, piece);
        }
        if let Some(late) = dispatch::late_interrupt(self.wakeup, piece, task) {
            return late;
        }
        if is_straight && task.pid != 0 {
            // It could be preempted all the time.
            return NamedCause::unexplained("task in user mode not preempted");
        }
        let (cpu, from, to) = (piece.span.cpu, piece.span.ready_ns, piece.span.to_ns);
        let work = named_work::work(self.wakeup, piece, segment);
        let Some(found) = stacks::of_task(self.wakeup, cpu, task, from, to) else {
            let name = work.unwrap_or_else(|| names::comm(&task.comm));
            return NamedCause::measured(Cause::Nonpreemptible, name).of(task);
        };
        let why = match (found.lock.clone(), work) {
            (Some(taker), _) => NamedCause::inferred(Cause::Lock, taker, SAMPLED_LOCK),
            // All of the work is measured, and the stack is one look at it.
            (None, Some(work)) if found.worth < SymbolConfidence::Landmark => {
                NamedCause::measured(Cause::Nonpreemptible, work)
            }
            (None, _) => {
                let name = found.name_or(&names::comm(&task.comm));
                NamedCause::measured(Cause::Nonpreemptible, name)
            }
        };
        NamedCause { stack: found.stack, ..why.of(task) }
    }

    /// Whether the thread itself has the CPU, and nothing is recorded that holds it up.
    #[must_use]
    pub(crate) fn runs_by_itself(&self, piece: &Piece<'_>) -> bool {
        let is_bare = |s: &&Segment| s.hard.is_none() && s.softirq.is_none();
        let own = |s: &Segment| match s.task {
            Some(task) => task.pid == self.wakeup.me.tid,
            None => self.is_at_its_loop(piece),
        };
        piece.span.state == ThreadState::Running
            && piece.overlay.is_none()
            && !piece.is_overwritten
            && !piece::is_stopped(self.wakeup, piece)
            && piece.segment.filter(is_bare).is_some_and(own)
            && self.held_up(piece).is_none()
    }

    /// The wake-up's own way in that time, each time that the thread is switched in.
    #[must_use]
    pub(crate) fn own_path_ns(&self) -> u64 {
        match self.wakeup.me.spins {
            true if self.is_empty_gap => 0,
            true => ENTRY_NS,
            false => at_most(self.wakeup.usual.user_ns).unsigned_abs(),
        }
    }

    /// A thread that never sleeps has its CPU: the event of its last switch may be too old to be
    /// left.
    fn is_at_its_loop(&self, piece: &Piece<'_>) -> bool {
        self.wakeup.me.spins && piece.span.state == ThreadState::Running
    }

    /// The thread is on the CPU, on its way to its clock read; longer than usual where nothing
    /// holds it up.
    fn running(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if segment.task.is_some_and(|task| task.pid != self.wakeup.me.tid) {
            return self.waiting(piece, segment);
        }
        if let Some(vector) = segment.softirq {
            return named_work::softirq(self.wakeup, piece, segment, vector);
        }
        self.held_up(piece).unwrap_or_else(|| match self.wakeup.me.spins {
            true => missing_in_gap(self.wakeup, piece),
            false => missing_cpu(self.wakeup, piece, "on the CPU, nothing recorded"),
        })
    }

    /// A page fault or its own lock.
    fn held_up(&self, piece: &Piece<'_>) -> Option<NamedCause> {
        let waits = |w: &&LockWait| piece.from_ns >= w.from_ns && piece.to_ns <= w.until_ns;
        if let Some(wait) = self.locks.iter().find(waits) {
            let lock = NamedCause::measured(Cause::Lock, wait.name.clone());
            return Some(NamedCause { task: wait.owner.clone(), ..lock });
        }
        // Not one before the thread slept until its timer came.
        let has_slept = |at: i64| {
            let mut spans = self.wakeup.history.spans.iter();
            spans.any(|s| {
                s.state == ThreadState::AwaitingIrq && (at..piece.from_ns).contains(&s.from_ns)
            })
        };
        // A thread that works continues after a fault.
        let fault_ns = self.fault_ns.filter(|_| !self.wakeup.me.works);
        let faulted = fault_ns.is_some_and(|at| piece.from_ns >= at && !has_slept(at));
        faulted.then(|| NamedCause::inferred(Cause::PageFault, "page fault", FAULT_BEGAN))
    }

    /// Neither end has the message: of what carries it, softirqs are seen, and who keeps them
    /// waiting.
    fn carried(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if let Some(vector) = segment.softirq {
            return named_work::softirq(self.wakeup, piece, segment, vector);
        }
        ksoftirqd::kept_waiting_by(self.wakeup, piece, segment)
            .or_else(|| self.held_up(piece))
            .unwrap_or_else(|| NamedCause::unexplained("in transit"))
    }

    /// Off the CPU again.
    fn off(&self, piece: &Piece<'_>, segment: &Segment, out: OffCpu) -> NamedCause {
        match out {
            OffCpu::Moving { from, to } => self.moving(piece, segment, from, to),
            OffCpu::Asleep => self.held_up(piece).unwrap_or_else(|| match self.wakeup.me.works {
                true => self.sleeps.why(piece),
                false => NamedCause::unexplained("asleep again"),
            }),
            OffCpu::Stopped => NamedCause::measured(Cause::Stopped, "stopped"),
            OffCpu::Held(hold) => holds::held(hold),
            OffCpu::Woken | OffCpu::Ready => self.waiting(piece, segment),
            OffCpu::Preempted => self.preempted(piece, segment),
            // Whoever had the CPU then may have nothing to do with it.
            OffCpu::Unseen => NamedCause::unexplained("wake-up not recorded"),
        }
    }

    /// On its way to another CPU, where a task may run first.
    fn moving(&self, piece: &Piece<'_>, segment: &Segment, from: u32, to: u32) -> NamedCause {
        let me = self.wakeup.me;
        let is_other = |task: &CurrentTask| ![0, me.tid].contains(&task.pid);
        match segment.task.filter(|task| is_other(task) && self.goes_first(piece, task)) {
            Some(task) => self.going_first(piece, segment, &task),
            None => NamedCause::measured(Cause::Migration, format!("CPU {from} to CPU {to}")),
        }
    }

    /// Switched out while runnable: the running task precedes it, or it is held back.
    fn preempted(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        let me = self.wakeup.me;
        match segment.task {
            Some(task) if task.pid == me.tid => self.running(piece, segment),
            Some(task) if segment.softirq.is_none() => {
                let first = task.pid != 0 && self.goes_first(piece, &task);
                match first {
                    true => self.going_first(piece, segment, &task),
                    false => self.held_back(piece, &task),
                }
            }
            _ => self.waiting(piece, segment),
        }
    }

    /// Ready while a task runs that should wait for it.
    fn held_back(&self, piece: &Piece<'_>, task: &CurrentTask) -> NamedCause {
        let me = self.wakeup.me;
        if let Some(served) = holds::served(me, task) {
            return served;
        }
        if me.real_time && unseen::other_real_time_ran(self.wakeup, piece) {
            return holds::nobody(task);
        }
        holds::behind(me, self.wakeup.wishes, task)
    }

    fn going_first(&self, piece: &Piece<'_>, segment: &Segment, task: &CurrentTask) -> NamedCause {
        let cause = if is_stopper(task) { Cause::Migration } else { Cause::Thread };
        let name = match named_work::work(self.wakeup, piece, segment) {
            Some(work) => names::worker_for(task, &work),
            None => names::comm(&task.comm),
        };
        NamedCause::measured(cause, name).of(task)
    }
}
