//! Why the timer's interrupt came late: interrupts off, or a CPU that was away.
//!
//! A CPU that had interrupts off is interrupted where it enables them: right after the
//! instruction, after another interrupt, or after a switch. One that is interrupted anywhere else
//! had them on all the time, and so was itself away.

use super::{
    Event, EventKind,
    below_kernel::{missing_cpu, missing_in_user_mode},
    contexts::{Segment, ns},
    late_wakeup::LateWakeup,
    named_work, names,
    piece::{NamedCause, Piece},
    stacks::{self, StackFinding},
    state_history::{StateSpan, ThreadState},
};
use crate::{
    kernel::{entry, vector},
    run::{functions, peaks::Cause},
};

/// A timer's interrupt may take this much longer than usual.
pub(crate) const DELIVERY_NS: i64 = 3_000;

/// One that was held off is there at once when they are enabled.
const PENDING_NS: i64 = 1_000;

/// The usual time is never taken for more than this.
const MOST_USUAL_NS: i64 = 20_000;

/// An event so shortly before the interrupt ended what kept it off.
const JUST_NS: i64 = 2_000;

pub(super) const ENDED_BEFORE: &str =
    "the interrupt came right after another one, a softirq or a switch ended";

/// The instruction takes effect one instruction later (Intel SDM, volume 2, STI), so that its byte
/// is looked for before the address, and operands may have it too.
const LOOKS_ENABLED: &str =
    "the bytes before the interrupted instruction look like one that enables interrupts";

pub(super) const ALSO_ON: &str =
    "the interrupt came in a function that enables interrupts, and also runs with them on";

/// What shows that interrupts were off until the timer's came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Off {
    /// It came right where they are enabled.
    Proven,
    /// The bytes before where it came look like `sti`; others may have the same.
    Alike,
    /// It came in a function that enables them, and also runs with them on.
    Near,
    /// Another interrupt, a softirq or a switch had just ended.
    Likely,
    /// Nothing does.
    NoSign,
}

/// What kept the interrupt of the timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterruptDelay {
    /// It found its CPU in user mode, or came with one that did.
    in_user: bool,
    /// Where it came.
    cpu: u32,
    /// The evidence that interrupts were off.
    off: Off,
    /// Interrupts were on at some time before this, as what came then shows.
    since_ns: i64,
    /// What was interrupted.
    named: Option<StackFinding>,
}

impl InterruptDelay {
    /// Whether a piece before the interrupt passes anyway: the whole, where it is about as long as
    /// usual; else the end, after interrupts were enabled, or the beginning, when the timer was
    /// not expected to have reached the CPU.
    #[must_use]
    pub(crate) fn is_usual(&self, piece: &Piece<'_>, wakeup: &LateWakeup<'_>) -> bool {
        let span = piece.span;
        if span.to_ns - span.from_ns <= usual_ns(wakeup) + DELIVERY_NS {
            return true;
        }
        match self.off {
            Off::Proven | Off::Alike | Off::Near | Off::Likely => {
                piece.from_ns >= span.to_ns - PENDING_NS
            }
            Off::NoSign => piece.to_ns <= span.from_ns + usual_ns(wakeup),
        }
    }

    /// Whether the interrupt found its CPU in user mode.
    #[must_use]
    pub(crate) fn was_in_user_mode(&self) -> bool {
        self.in_user
    }

    /// The same, for what happens on `cpu`.
    #[must_use]
    pub(crate) fn was_in_user_mode_on(&self, cpu: u32) -> bool {
        self.cpu == cpu && self.was_in_user_mode()
    }

    /// Why it was late, in this context.
    #[must_use]
    pub(crate) fn why(
        &self,
        piece: &Piece<'_>,
        segment: &Segment,
        wakeup: &LateWakeup<'_>,
    ) -> NamedCause {
        // What is seen at the end says nothing of the time before interrupts were on again.
        let off = if piece.from_ns < self.since_ns { Off::NoSign } else { self.off };
        // The stack is that of the task that was interrupted.
        let named = self.named.as_ref().filter(|_| segment.to_ns >= piece.span.to_ns);
        match off {
            Off::Proven => kept_off(wakeup, piece, segment, named),
            Off::Alike => kept_off(wakeup, piece, segment, named).inferred_from(LOOKS_ENABLED),
            Off::Near => kept_off(wakeup, piece, segment, named).inferred_from(ALSO_ON),
            Off::Likely => kept_off(wakeup, piece, segment, named).inferred_from(ENDED_BEFORE),
            Off::NoSign => self.without_a_sign(wakeup, piece),
        }
    }

    fn without_a_sign(&self, wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> NamedCause {
        match self.in_user {
            true => missing_in_user_mode(wakeup, piece, "interrupt late in user mode"),
            false => missing_cpu(wakeup, piece, "interrupt late"),
        }
    }
}

/// Interrupts were off in this context, `named` by its stack.
fn kept_off(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    segment: &Segment,
    named: Option<&StackFinding>,
) -> NamedCause {
    let by_context = match (segment.softirq, segment.task) {
        (Some(vector), _) => named_work::softirq_name(wakeup, piece, segment, vector),
        (None, Some(task)) => names::comm(&task.comm),
        (None, None) => "unknown".to_owned(),
    };
    let name = match named {
        Some(named) => named.name_or(&by_context),
        None => by_context,
    };
    let mut why = NamedCause::measured(Cause::IrqsOff, name);
    why.stack = named.map(|named| named.stack.clone()).unwrap_or_default();
    why.task = match (segment.softirq, segment.task) {
        (Some(vector), _) => Some(names::softirq(vector)),
        (None, task) => task.map(|task| names::task(&task)),
    };
    why
}

/// How long the interrupt usually takes to come: the median of that stage.
fn usual_ns(wakeup: &LateWakeup<'_>) -> i64 {
    wakeup.usual.irq_ns.min(MOST_USUAL_NS)
}

/// The last time before the entry at which something came that does not come, or does not stay,
/// with interrupts off: another interrupt, a softirq, an idle state, or a switch, after which the
/// task enables them. What came right before may be what the interrupt waited for.
pub(super) fn were_on_until(events: &[Event], entry_ns: i64) -> i64 {
    let shows = |event: &&Event| {
        matches!(
            event.kind,
            EventKind::Switch { .. }
                | EventKind::IrqEntry { .. }
                | EventKind::VectorEntry { .. }
                | EventKind::SoftirqEntry { .. }
                | EventKind::Idle { .. }
        )
    };
    let before = events.iter().filter(shows).map(|event| ns(event.at_ns));
    before.filter(|at_ns| *at_ns < entry_ns - JUST_NS).max().unwrap_or(i64::MIN)
}

/// Where the usual ends, or begins.
#[must_use]
pub(crate) fn cuts(wakeup: &LateWakeup<'_>, span: &StateSpan) -> [i64; 2] {
    [span.to_ns.saturating_sub(PENDING_NS), span.from_ns.saturating_add(usual_ns(wakeup))]
}

/// Looks for evidence around the entry of the timer's interrupt.
#[must_use]
pub(crate) fn held(wakeup: &LateWakeup<'_>) -> InterruptDelay {
    let stage = wakeup.history.spans.iter().rfind(|span| span.state == ThreadState::AwaitingIrq);
    let cpu = stage.map_or(wakeup.late.cpus.0, |span| span.cpu);
    let nothing =
        InterruptDelay { in_user: false, cpu, off: Off::NoSign, since_ns: i64::MIN, named: None };
    let (Some(marks), Some(found)) = (wakeup.history.marks, wakeup.cpus.get(&cpu)) else {
        return nothing;
    };
    let entry_ns = marks.entry_ns;
    let Some(late) = entry_near(&found.events, entry_ns) else { return nothing };
    let named = stacks::of_interrupt(wakeup, cpu, entry_ns);
    // Another interrupt came first, in user mode, and this one at its end: the first was late too.
    let first_in_user =
        named.as_ref().is_some_and(|named| named.is_of_user_mode() && !named.is_in_switch());
    let off =
        if first_in_user { Off::NoSign } else { off(wakeup, &found.events, late, named.as_ref()) };
    let in_user = first_in_user || late.flags & entry::IN_USER != 0;
    let since_ns = were_on_until(&found.events, ns(late.at_ns));
    InterruptDelay { in_user, cpu, off, since_ns, named }
}

/// The evidence that interrupts were off until `late` came.
fn off(
    wakeup: &LateWakeup<'_>,
    events: &[Event],
    late: &Event,
    named: Option<&StackFinding>,
) -> Off {
    let EventKind::VectorEntry { address, .. } = late.kind else { return Off::NoSign };
    let in_user = late.flags & entry::IN_USER != 0;
    let function = wakeup.source.symbol(address).filter(|_| !in_user).map(|(name, _)| name);
    let function = function.as_deref();
    let is_enabling = function.is_some_and(functions::enables_interrupts);
    let looks_enabled = late.flags & entry::JUST_ENABLED != 0;
    let came_on_enabling = || named.is_some_and(StackFinding::begins_where_interrupts_are_enabled);
    if function.is_some_and(functions::only_enables_interrupts)
        || (looks_enabled && (is_enabling || came_on_enabling()))
    {
        Off::Proven
    } else if looks_enabled {
        Off::Alike
    } else if is_enabling {
        Off::Near
    } else if ended_something(events, ns(late.at_ns)) {
        Off::Likely
    } else {
        Off::NoSign
    }
}

/// What the flags of an interrupt's entry into this function say of interrupts, for display.
pub(super) fn enabled_words(flags: u8, function: Option<&str>) -> &'static str {
    match flags & entry::JUST_ENABLED != 0 {
        true if function.is_some_and(functions::enables_interrupts) => ", interrupts just enabled",
        true => ", perhaps interrupts just enabled (inferred: the bytes before look like it)",
        false => "",
    }
}

/// The entry of the timer's interrupt that the thread's record refers to.
fn entry_near(events: &[Event], entry_ns: i64) -> Option<&Event> {
    let is_timer = |event: &&Event| {
        matches!(event.kind, EventKind::VectorEntry { vector: vector::LOCAL_TIMER, .. })
    };
    let nearest = events.iter().filter(is_timer).min_by_key(|e| ns(e.at_ns).abs_diff(entry_ns));
    nearest.filter(|event| ns(event.at_ns).abs_diff(entry_ns) < JUST_NS.unsigned_abs())
}

/// Whether an interrupt, a softirq or a switch ended right before `at_ns`.
pub(super) fn ended_something(events: &[Event], at_ns: i64) -> bool {
    events.iter().any(|event| {
        let is_end = matches!(
            event.kind,
            EventKind::Switch { .. }
                | EventKind::IrqExit { .. }
                | EventKind::VectorExit { .. }
                | EventKind::SoftirqExit { .. }
        );
        is_end && (at_ns - JUST_NS..at_ns).contains(&ns(event.at_ns))
    })
}
