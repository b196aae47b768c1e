//! Why the timer's interrupt came late: interrupts off, or a CPU that was away.
//!
//! A CPU that had interrupts off is interrupted where it enables them: right after the
//! instruction, after another interrupt, or after a switch. One that is interrupted anywhere else
//! had them on all the time, and so was itself away.

use super::{
    Event, EventKind,
    contexts::{Segment, ns},
    functions,
    late_wakeup::LateWakeup,
    names,
    piece::{NamedCause, Piece},
    stacks::{self, StackFinding},
    state_history::{StateSpan, ThreadState},
};
use crate::{
    kernel::{entry, vector},
    run::peaks::Cause,
};

/// A timer's interrupt may take this much longer than usual.
pub(crate) const DELIVERY_NS: i64 = 3_000;

/// One that was held off is there at once when they are enabled.
const PENDING_NS: i64 = 1_000;

/// An event so shortly before the interrupt ended what kept it off.
const JUST_NS: i64 = 2_000;

/// Name of what is inferred in a virtual machine.
pub(crate) const PROBABLY_HOST: &str = "hypervisor, probable";

/// How long the interrupt usually takes to come is never taken for more than this.
const MOST_USUAL_NS: i64 = 20_000;

/// How long a thread's timer interrupt usually takes to come: about the lower quartile among its
/// late wake-ups, most of which are late for another reason. Begins with [`DELIVERY_NS`].
///
/// A frugal estimate of a quantile, after <https://arxiv.org/abs/1407.1121>: a sample above moves
/// it up by one step, one below moves it down by three.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usual(i64);

impl Default for Usual {
    fn default() -> Self {
        Self(DELIVERY_NS)
    }
}

impl Usual {
    /// One more late wake-up.
    pub(crate) fn learn(&mut self, irq_ns: i64) {
        let step = (self.0 / 100).max(10);
        let moved = if irq_ns > self.0 { self.0 + step } else { self.0 - 3 * step };
        self.0 = moved.clamp(1_000, MOST_USUAL_NS);
    }

    /// The estimate, ns.
    #[must_use]
    pub(crate) fn ns(self) -> i64 {
        self.0
    }
}

/// What kept the interrupt of the timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterruptDelay {
    /// It found its CPU in user mode, or came with one that did.
    in_user: bool,
    /// Where it came.
    cpu: u32,
    /// There is evidence that interrupts were off.
    were_off: bool,
    /// The BPF programs searched for that evidence, as they do where the stage was long.
    was_looked_at: bool,
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
        if span.to_ns - span.from_ns <= wakeup.usual_irq_ns + DELIVERY_NS {
            return true;
        }
        match self.were_off {
            true => piece.from_ns >= span.to_ns - PENDING_NS,
            false => piece.to_ns <= span.from_ns + wakeup.usual_irq_ns,
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
    pub(crate) fn why(&self, segment: &Segment, wakeup: &LateWakeup<'_>) -> NamedCause {
        if self.were_off {
            return self.off(segment);
        }
        if wakeup.smis_came {
            return NamedCause::named(Cause::Hardware, "SMI");
        }
        let in_user = self.was_in_user_mode();
        match wakeup.wishes.virtual_machine {
            true if in_user || self.was_looked_at => NamedCause::named(Cause::Host, PROBABLY_HOST),
            true => NamedCause::named(Cause::Unexplained, "interrupt late"),
            false if in_user => {
                NamedCause::named(Cause::Unexplained, "interrupt late in user mode")
            }
            false => self.off(segment),
        }
    }

    fn off(&self, segment: &Segment) -> NamedCause {
        let by_context = match (segment.softirq, segment.task) {
            (Some(vector), _) => names::softirq(vector),
            (None, Some(task)) => names::comm(&task.comm),
            (None, None) => "unknown".to_owned(),
        };
        let name = match &self.named {
            Some(named) => named.name_or(&by_context),
            None => by_context,
        };
        let mut why = NamedCause::named(Cause::IrqsOff, name);
        why.stack = self.named.as_ref().map(|named| named.stack.clone()).unwrap_or_default();
        why.task = match (segment.softirq, segment.task) {
            (Some(vector), _) => Some(names::softirq(vector)),
            (None, task) => task.map(|task| names::task(&task)),
        };
        why
    }
}

/// Where the usual ends, or begins.
#[must_use]
pub(crate) fn cuts(wakeup: &LateWakeup<'_>, span: &StateSpan) -> [i64; 2] {
    [span.to_ns.saturating_sub(PENDING_NS), span.from_ns.saturating_add(wakeup.usual_irq_ns)]
}

/// Looks for evidence around the entry of the timer's interrupt.
#[must_use]
pub(crate) fn held(wakeup: &LateWakeup<'_>) -> InterruptDelay {
    let stage = wakeup.history.spans.iter().rfind(|span| span.phase == ThreadState::Irq);
    let cpu = stage.map_or(wakeup.late.cpus.0, |span| span.cpu);
    let nothing =
        InterruptDelay { in_user: false, cpu, were_off: false, was_looked_at: false, named: None };
    let (Some(entry_ns), Some(found)) = (wakeup.history.entry_ns, wakeup.cpus.get(&cpu)) else {
        return nothing;
    };
    let Some(late) = entry_near(&found.events, entry_ns) else { return nothing };
    let named = stacks::of_interrupt(wakeup, cpu, entry_ns);
    // Another interrupt came first, in user mode, and this one at its end: the first was late too.
    let first_in_user = named.as_ref().is_some_and(StackFinding::is_of_user_mode);
    let were_off = !first_in_user && were_off(wakeup, &found.events, late);
    let in_user = first_in_user || late.flags & entry::IN_USER != 0;
    InterruptDelay { in_user, cpu, were_off, was_looked_at: named.is_some(), named }
}

/// Whether there is evidence that interrupts were off until `late` came.
fn were_off(wakeup: &LateWakeup<'_>, events: &[Event], late: &Event) -> bool {
    let EventKind::VectorEntry { address, .. } = late.kind else { return false };
    let in_user = late.flags & entry::IN_USER != 0;
    let enabling = || {
        wakeup.source.symbol(address).is_some_and(|(name, _)| functions::enables_interrupts(name))
    };
    late.flags & entry::JUST_ENABLED != 0
        || ended_something(events, ns(late.at_ns))
        || (!in_user && enabling())
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
fn ended_something(events: &[Event], at_ns: i64) -> bool {
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
