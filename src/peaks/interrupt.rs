//! Why the timer's interrupt came late: interrupts off, or a CPU that was away.
//!
//! A CPU that had interrupts off is interrupted where it enables them: right after the
//! instruction, after another interrupt, or after a switch. One that is interrupted anywhere else
//! had them on all the time, and so was itself away.

use super::{
    Event, EventKind,
    contexts::{Segment, ns},
    course::Phase,
    functions, names,
    rules::Why,
    scene::Scene,
    stacks::{self, Told},
};
use crate::{
    kernel::{entry, vector},
    run::peaks::Cause,
};

/// An interrupt is delivered within this, from a timer's expiry or from interrupts being enabled.
pub const DELIVERY_NS: i64 = 3_000;

/// An event so shortly before the interrupt ended what kept it off.
const JUST_NS: i64 = 2_000;

/// Name of what is inferred in a virtual machine.
pub const PROBABLY_HOST: &str = "hypervisor, probable";

/// What kept the interrupt of the timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Flags of its entry; absent where that was not recorded.
    flags: Option<u8>,
    /// Where it came.
    cpu: u32,
    /// There is evidence that interrupts were off.
    were_off: bool,
    /// The kernel's side looked for that evidence: it does where the stage was long.
    was_looked_at: bool,
    /// What was interrupted.
    told: Option<Told>,
}

impl Held {
    /// Whether the interrupt found its CPU in user mode.
    #[must_use]
    pub fn was_in_user_mode(&self) -> bool {
        self.flags.is_some_and(|flags| flags & entry::IN_USER != 0)
    }

    /// The same, for what happens on `cpu`.
    #[must_use]
    pub fn was_in_user_mode_on(&self, cpu: u32) -> bool {
        self.cpu == cpu && self.was_in_user_mode()
    }

    /// Why it was late, in this context.
    #[must_use]
    pub fn why(&self, segment: &Segment, scene: &Scene<'_>) -> Why {
        if self.were_off {
            return self.off(segment);
        }
        if scene.smis_came {
            return Why::named(Cause::Hardware, "SMI");
        }
        let in_user = self.was_in_user_mode();
        match scene.wishes.virtual_machine {
            true if in_user || self.was_looked_at => Why::named(Cause::Host, PROBABLY_HOST),
            true => Why::named(Cause::Unexplained, "interrupt late"),
            false if in_user => Why::named(Cause::Unexplained, "interrupt late in user mode"),
            false => self.off(segment),
        }
    }

    fn off(&self, segment: &Segment) -> Why {
        let by_context = match (segment.softirq, segment.task) {
            (Some(vector), _) => names::softirq(vector),
            (None, Some(task)) => names::comm(&task.comm),
            (None, None) => "unknown".to_owned(),
        };
        let name = self.told.as_ref().map_or(by_context, |told| told.name.clone());
        let mut why = Why::named(Cause::IrqsOff, name);
        why.stack = self.told.as_ref().map(|told| told.stack.clone()).unwrap_or_default();
        why.task = match (segment.softirq, segment.task) {
            (Some(vector), _) => Some(names::softirq(vector)),
            (None, task) => task.map(|task| names::task(&task)),
        };
        why
    }
}

/// Looks for evidence around the entry of the timer's interrupt.
#[must_use]
pub fn held(scene: &Scene<'_>) -> Held {
    let stage = scene.course.spans.iter().rfind(|span| span.phase == Phase::Irq);
    let cpu = stage.map_or(scene.late.cpus.0, |span| span.cpu);
    let nothing = Held { flags: None, cpu, were_off: false, was_looked_at: false, told: None };
    let (Some(entry_ns), Some(found)) = (scene.course.entry_ns, scene.cpus.get(&cpu)) else {
        return nothing;
    };
    let Some(late) = entry_near(&found.events, entry_ns) else { return nothing };
    let at_ns = ns(late.at_ns);
    let told = stacks::of_interrupt(scene, cpu, entry_ns);
    let EventKind::VectorEntry { address, .. } = late.kind else { return nothing };
    let in_user = late.flags & entry::IN_USER != 0;
    let enabling = || {
        scene.source.symbol(address).is_some_and(|(name, _)| functions::enables_interrupts(&name))
    };
    let were_off = late.flags & entry::JUST_ENABLED != 0
        || ended_something(&found.events, at_ns)
        || (!in_user && enabling());
    Held { flags: Some(late.flags), cpu, were_off, was_looked_at: told.is_some(), told }
}

/// The entry of the timer's interrupt that the thread's record tells of.
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
