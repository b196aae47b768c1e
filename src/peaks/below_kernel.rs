//! Time in which a CPU did nothing that was recorded although it should have: what the firmware or
//! the hypervisor may have taken, and what shows that.

use super::{
    Event, EventKind,
    contexts::{ns, segments},
    late_wakeup::LateWakeup,
    names,
    piece::{NamedCause, Piece},
    smis::SmiEvidence,
};
use crate::run::peaks::Cause;

/// Name of what is inferred in a virtual machine.
const HOST_NOT_COUNTED: &str = "hypervisor (not counted)";
const LATE_IN_USER_MODE: &str =
    "the interrupt came late to a CPU in user mode, where the kernel cannot have kept it";

/// Name of what is inferred on hardware.
const NO_KERNEL_EVENT: &str = "firmware or hardware";
const STOOD_STILL: &str =
    "a loop in user mode stood still, and the kernel had no event there meanwhile";

const SMI_CAME: &str = "the counter of system management interrupts rose around that time";
const ALL_SILENT: &str =
    "no CPU had an event meanwhile, not even a busy one that had them all the time before";

/// Shorter silences of several CPUs are everyday.
const LEAST_SILENCE_NS: i64 = 50_000;

/// The divisor of the part of a silence that does not count at each end: CPUs do not come back at
/// the very same time.
const EDGE: i64 = 10;

/// A busy CPU had events all the time where, in this multiple of that time before, it had no
/// silence half as long.
const BEFORE: i64 = 10;

/// An interrupt of the firmware may have had the CPU, where some came; or something below the
/// kernel had several CPUs at once. In a virtual machine it may else have been the hypervisor, or
/// the kernel with interrupts off: nothing tells them apart. `name` is what remains; where nothing
/// counts the firmware's interrupts, it says so: those cannot be told apart either.
#[must_use]
pub(super) fn missing_cpu(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    name: &'static str,
) -> NamedCause {
    if wakeup.smis == SmiEvidence::Came {
        return NamedCause::inferred(Cause::Hardware, "SMI", SMI_CAME);
    }
    let cause = if wakeup.wishes.virtual_machine { Cause::Host } else { Cause::Hardware };
    match silent_cpus(wakeup, piece) {
        Some(cpus) => NamedCause::inferred(cause, names::silent(cpus), ALL_SILENT),
        None if wakeup.smis == SmiEvidence::NotCounted => {
            NamedCause::unexplained(names::without_smi_count(name))
        }
        None => NamedCause::unexplained(name),
    }
}

/// The same in user mode, where interrupts are on: what keeps one there is below the kernel, in a
/// virtual machine the hypervisor.
#[must_use]
pub(super) fn missing_in_user_mode(
    wakeup: &LateWakeup<'_>,
    piece: &Piece<'_>,
    name: &'static str,
) -> NamedCause {
    match wakeup.wishes.virtual_machine && wakeup.smis != SmiEvidence::Came {
        true => NamedCause::inferred(Cause::Host, HOST_NOT_COUNTED, LATE_IN_USER_MODE),
        false => missing_cpu(wakeup, piece, name),
    }
}

/// The same in a gap of a thread that never sleeps: it was in user mode, and what takes the CPU
/// there without an event of the kernel is below the kernel.
#[must_use]
pub(super) fn missing_in_gap(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> NamedCause {
    let known = missing_cpu(wakeup, piece, "");
    match (known.cause, wakeup.wishes.virtual_machine) {
        (Cause::Unexplained, true) => {
            NamedCause::inferred(Cause::Host, HOST_NOT_COUNTED, STOOD_STILL)
        }
        (Cause::Unexplained, false) => {
            NamedCause::inferred(Cause::Hardware, NO_KERNEL_EVENT, STOOD_STILL)
        }
        _ => known,
    }
}

/// A silence of one CPU, ns.
#[derive(Debug, Clone, Copy)]
struct Silence {
    from_ns: i64,
    to_ns: i64,
}

impl Silence {
    fn length_ns(self) -> i64 {
        self.to_ns - self.from_ns
    }

    /// Without its ends.
    fn inner(self) -> Self {
        let edge_ns = self.length_ns() / EDGE;
        Self { from_ns: self.from_ns + edge_ns, to_ns: self.to_ns - edge_ns }
    }

    fn has(self, event: &Event) -> bool {
        (self.from_ns..self.to_ns).contains(&ns(event.at_ns))
    }
}

/// What another CPU was at meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It had an event, or that is not known.
    NotSilent,
    /// It is silent anyway.
    Idle,
    /// It ran something, of which there may be no events.
    Busy,
    /// The same, and it had events all the time before.
    BusySilenced,
}

/// How many CPUs were silent at once around this piece, idle ones left out; `None` if one of all
/// that are recorded was not, or where for no other one that is out of the ordinary.
fn silent_cpus(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> Option<usize> {
    let own = silence(wakeup, piece)?;
    let mut silent = vec![Other::BusySilenced];
    for cpu in (0..wakeup.source.cpus()).filter(|cpu| *cpu != piece.span.cpu) {
        if wakeup.source.recorded(cpu).is_empty() {
            // It is offline.
            continue;
        }
        match other(wakeup, cpu, piece.span.cpu, own) {
            Other::NotSilent => return None,
            Other::Idle => {}
            busy => silent.push(busy),
        }
    }
    silent[1..].contains(&Other::BusySilenced).then_some(silent.len())
}

/// From the last event of the piece's CPU before it, within what the thread was in, to the next one
/// after it; `None` if that is not long.
fn silence(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> Option<Silence> {
    let events = &wakeup.cpus.get(&piece.span.cpu)?.events;
    let after = events.partition_point(|event| ns(event.at_ns) <= piece.from_ns);
    let before_ns = after.checked_sub(1).map_or(i64::MIN, |last| ns(events[last].at_ns));
    let next_ns = events.get(after).map_or(i64::MAX, |event| ns(event.at_ns));
    let from_ns = before_ns.max(piece.span.from_ns);
    let to_ns = next_ns.min(piece.span.to_ns);
    let silence = Silence { from_ns, to_ns };
    (to_ns >= piece.to_ns && silence.length_ns() >= LEAST_SILENCE_NS).then_some(silence)
}

fn other(wakeup: &LateWakeup<'_>, cpu: u32, own_cpu: u32, own: Silence) -> Other {
    let inner = own.inner();
    let since_ns = own.from_ns.saturating_sub(BEFORE * own.length_ns()).max(0);
    let mut events = Vec::new();
    let [from_ns, to_ns] = [since_ns, inner.to_ns].map(i64::unsigned_abs);
    let is_known = wakeup.source.events(cpu, from_ns, to_ns, &mut events);
    // Another CPU may have recorded them.
    events.retain(|event| !matches!(event.kind, EventKind::Priority { .. }));
    if !is_known || events.iter().any(|event| inner.has(event)) {
        return Other::NotSilent;
    }
    let context = segments(&events, inner.from_ns, inner.to_ns).into_iter().next();
    let Some(context) = context.filter(|segment| !segment.is_unknown()) else {
        return Other::NotSilent;
    };
    let is_idle = context.task.is_some_and(|task| task.pid == 0);
    if is_idle && context.softirq.is_none() && context.hard.is_none() {
        return Other::Idle;
    }
    // It may wait for the answer of the CPU that is silent.
    let last = events.iter().rfind(|event| ns(event.at_ns) < inner.from_ns);
    if last.is_some_and(|event| event.sends_to(own_cpu).is_some()) {
        return Other::Busy;
    }
    let mut times = vec![since_ns];
    times.extend(events.iter().map(|event| ns(event.at_ns)).filter(|at_ns| *at_ns > since_ns));
    times.push(inner.from_ns);
    match times.windows(2).all(|pair| pair[1] - pair[0] < own.length_ns() / 2) {
        true => Other::BusySilenced,
        false => Other::Busy,
    }
}
