//! The rules: from a piece of a latency to its cause.

use super::{
    Event, EventKind,
    contexts::{CurrentTask, Segment, ns},
    interrupt::{self, InterruptDelay},
    late_wakeup::LateWakeup,
    locks, names,
    piece::{self, NamedCause, Piece},
    stacks,
    state_history::{Out, StateSpan, ThreadState},
};
use crate::run::peaks::Cause;

/// A switch and what leads to it take so long anyway.
const SWITCH_NS: i64 = 2_000;

/// A task in user mode is switched out within this; longer, it had work to do on its way out.
const WAY_OUT_NS: i64 = 50_000;

/// A lower task that is switched in so soon after the wake-up had been chosen before it.
const CHOSEN_NS: i64 = 20_000;

/// The thread's own way out of the kernel takes no longer, even where it sends interrupts to other
/// CPUs in a virtual machine.
const OWN_WAY_NS: i64 = 50_000;

/// What is decided once for a whole wake-up.
pub(crate) struct CauseClassifier<'a> {
    wakeup: &'a LateWakeup<'a>,
    held: InterruptDelay,
    /// From the measured thread's first page fault on.
    fault_ns: Option<i64>,
    /// From and until it waited for locks.
    locks: Vec<(i64, i64, String)>,
    /// Where its own events cut a span.
    marks: Vec<i64>,
}

impl<'a> CauseClassifier<'a> {
    /// Looks at what bears on all pieces.
    #[must_use]
    pub(crate) fn new(wakeup: &'a LateWakeup<'a>) -> Self {
        let mine = |event: &&Event| event.pid == wakeup.me.tid;
        let events: Vec<Event> = wakeup.events().iter().filter(mine).copied().collect();
        let from_ns = wakeup.late.t_ns;
        let faults = events.iter().find(|event| {
            matches!(event.kind, EventKind::PageFault { .. }) && ns(event.at_ns) >= from_ns
        });
        Self {
            wakeup,
            held: interrupt::held(wakeup),
            fault_ns: faults.map(|event| ns(event.at_ns)),
            locks: locks::locks(wakeup, &events),
            marks: events.iter().filter(|e| locks::cuts(e)).map(|e| ns(e.at_ns)).collect(),
        }
    }

    /// Where else a span is to be cut: at faults, locks, and where the usual begins.
    pub(crate) fn cuts(&self, span: &StateSpan, into: &mut Vec<i64>) {
        match span.phase {
            ThreadState::Irq => into.extend(interrupt::cuts(self.wakeup, span)),
            _ => into.push(span.to_ns.saturating_sub(SWITCH_NS)),
        }
        into.extend(&self.marks);
    }

    /// Why this piece passed.
    #[must_use]
    pub(crate) fn why(&self, piece: &Piece<'_>) -> NamedCause {
        if piece::is_stopped(self.wakeup, piece) {
            return NamedCause::named(Cause::Stopped, "stopped");
        }
        if let Some(kind) = piece.overlay {
            return piece::covered(kind);
        }
        let Some(segment) = piece.segment.filter(|s| !s.is_unknown() && !piece.is_overwritten)
        else {
            return piece::unknown(piece);
        };
        if let Some(hard) = segment.hard {
            let name = names::hard(hard, &self.wakeup.wishes.interrupt_names);
            return NamedCause::named(Cause::Hardirq, name);
        }
        match piece.span.phase {
            ThreadState::Irq => self.late_interrupt(piece, segment),
            ThreadState::Softirq | ThreadState::Handler | ThreadState::Dispatch => {
                self.waiting(piece, segment)
            }
            ThreadState::User => self.running(piece, segment),
            ThreadState::Out(out) => self.off(piece, segment, out),
        }
    }

    /// The timer's interrupt has not come.
    fn late_interrupt(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        let is_usual = self.held.is_usual(piece, self.wakeup);
        match (segment.softirq, segment.task) {
            (None, Some(task)) if task.pid == 0 => {
                NamedCause::named(Cause::IdleExit, names::idle(segment.idle_state))
            }
            _ if is_usual => piece::own_path(),
            _ => self.held.why(segment, self.wakeup),
        }
    }

    /// Others go before, or keep the CPU.
    fn waiting(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if let Some(vector) = segment.softirq {
            return NamedCause::named(Cause::Softirq, names::softirq(vector));
        }
        let Some(task) = segment.task else { return piece::unknown(piece) };
        let me = self.wakeup.me;
        if task.pid == me.tid {
            return piece::own_path();
        }
        let came_later = task.since_ns > piece.span.ready_ns.saturating_add(CHOSEN_NS);
        if task.pid == 0 {
            return match came_later {
                true => throttled(me.real_time, &task),
                false => NamedCause::named(Cause::IdleExit, names::idle(segment.idle_state)),
            };
        }
        if goes_first(me.real_time, me.prio, &task) {
            return going_first(&task);
        }
        if came_later { throttled(me.real_time, &task) } else { self.kept(piece, &task) }
    }

    /// A task that should have been preempted was not.
    fn kept(&self, piece: &Piece<'_>, task: &CurrentTask) -> NamedCause {
        let is_usual = piece.from_ns >= piece.span.to_ns - SWITCH_NS || piece.ns() < SWITCH_NS;
        let was_out = self.held.was_in_user_mode_on(piece.span.cpu) && piece.ns() < WAY_OUT_NS;
        if is_usual || was_out {
            return piece::own_path();
        }
        let (cpu, from, to) = (piece.span.cpu, piece.span.ready_ns, piece.span.to_ns);
        let Some(named) = stacks::of_task(self.wakeup, cpu, task, from, to) else {
            return NamedCause::named(Cause::Nonpreemptible, names::comm(&task.comm)).of(task);
        };
        let (cause, name) = match named.lock.clone() {
            Some(taker) => (Cause::Lock, taker),
            None => (Cause::Nonpreemptible, named.name_or(&names::comm(&task.comm))),
        };
        NamedCause { stack: named.stack, ..NamedCause::named(cause, name).of(task) }
    }

    /// The thread is on the CPU, on its way to its clock read.
    fn running(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        if segment.task.is_some_and(|task| task.pid != self.wakeup.me.tid) {
            return self.waiting(piece, segment);
        }
        if let Some(vector) = segment.softirq {
            return NamedCause::named(Cause::Softirq, names::softirq(vector));
        }
        if let Some(why) = self.held_up(piece) {
            return why;
        }
        if piece.ns() <= OWN_WAY_NS { piece::own_path() } else { self.own_gap() }
    }

    /// A page fault or a lock of its own.
    fn held_up(&self, piece: &Piece<'_>) -> Option<NamedCause> {
        let lock = self
            .locks
            .iter()
            .find(|(from, until, _)| piece.from_ns >= *from && piece.to_ns <= *until);
        if let Some((.., name)) = lock {
            return Some(NamedCause::named(Cause::Lock, name.clone()));
        }
        let faulted = self.fault_ns.is_some_and(|at| piece.from_ns >= at);
        faulted.then(|| NamedCause::named(Cause::PageFault, "page fault"))
    }

    /// Long on its own way, with nothing recorded.
    fn own_gap(&self) -> NamedCause {
        let wakeup = self.wakeup;
        if wakeup.smis_came {
            return NamedCause::named(Cause::Hardware, "SMI");
        }
        if wakeup.wishes.virtual_machine && !wakeup.steal_is_counted {
            return NamedCause::named(Cause::Host, interrupt::PROBABLY_HOST);
        }
        piece::own_path()
    }

    /// Off the CPU again.
    fn off(&self, piece: &Piece<'_>, segment: &Segment, out: Out) -> NamedCause {
        match out {
            Out::Moving { from, to } => {
                NamedCause::named(Cause::Migration, format!("CPU {from} to CPU {to}"))
            }
            Out::Asleep => self
                .held_up(piece)
                .unwrap_or_else(|| NamedCause::named(Cause::Unexplained, "asleep again")),
            Out::Stopped => NamedCause::named(Cause::Stopped, "stopped"),
            Out::Woken => self.waiting(piece, segment),
            Out::Preempted => self.preempted(piece, segment),
            Out::Unseen => self.unseen(segment),
        }
    }

    /// How the thread came back was not recorded: of what was, only a task that had the CPU before
    /// the expiry already, and kept it, says something.
    fn unseen(&self, segment: &Segment) -> NamedCause {
        let (me, expired_ns) = (self.wakeup.me, self.wakeup.late.t_ns);
        match (segment.softirq, segment.task) {
            (Some(vector), _) => NamedCause::named(Cause::Softirq, names::softirq(vector)),
            (None, Some(task)) if task.pid != 0 && goes_first(me.real_time, me.prio, &task) => {
                going_first(&task)
            }
            (None, Some(task)) if task.pid != 0 && task.since_ns <= expired_ns => {
                NamedCause::named(Cause::Nonpreemptible, names::comm(&task.comm)).of(&task)
            }
            _ => NamedCause::named(Cause::Unexplained, "wake-up not recorded"),
        }
    }

    /// Switched out while runnable: the running task precedes it, or it is held back.
    fn preempted(&self, piece: &Piece<'_>, segment: &Segment) -> NamedCause {
        let me = self.wakeup.me;
        match segment.task {
            Some(task) if task.pid == me.tid => self.running(piece, segment),
            Some(task) if segment.softirq.is_none() => {
                let first = task.pid != 0 && goes_first(me.real_time, me.prio, &task);
                if first { going_first(&task) } else { throttled(me.real_time, &task) }
            }
            _ => self.waiting(piece, segment),
        }
    }
}

/// Whether a task may run before the measured thread.
fn goes_first(real_time: bool, prio: i16, task: &CurrentTask) -> bool {
    !real_time || task.prio <= prio
}

fn going_first(task: &CurrentTask) -> NamedCause {
    let name = names::comm(&task.comm);
    let cause = if name.starts_with("migration/") { Cause::Migration } else { Cause::Thread };
    NamedCause::named(cause, name).of(task)
}

/// A runnable thread is off its CPU while a task runs that should wait for it.
fn throttled(real_time: bool, task: &CurrentTask) -> NamedCause {
    let name = if real_time { "real-time throttling" } else { "group throttling" };
    let why = NamedCause::named(Cause::Throttled, name);
    if task.pid == 0 { why } else { why.of(task) }
}
