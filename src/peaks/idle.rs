//! An idle CPU that comes late: the way out of an idle state takes no longer than the kernel's
//! table says; what is beyond that is not the state's.

use std::collections::BTreeMap;

use super::{
    below_kernel::missing_cpu,
    contexts::Segment,
    late_wakeup::LateWakeup,
    names,
    piece::{NamedCause, Piece},
    state_history::{StateSpan, ThreadState},
};
use crate::run::peaks::Cause;

const TABLE: &str = "the exit latency that the kernel's table has for this idle state";

/// From and until when each CPU may be on its way out of the idle state in which the thread found
/// it. A CPU that was not idle is missing. Without a table of the kernel, the range is empty.
pub(super) struct IdleExits(BTreeMap<u32, (i64, i64)>);

impl IdleExits {
    /// Each CPU leaves such a state once for a wake-up.
    pub(super) fn of(wakeup: &LateWakeup<'_>) -> Self {
        let mut exits = BTreeMap::new();
        let waits = |span: &&StateSpan| {
            matches!(span.state, ThreadState::AwaitingIrq | ThreadState::Dispatch)
        };
        for span in wakeup.history.spans.iter().filter(waits) {
            let segments = wakeup.cpus.get(&span.cpu).map_or(&[][..], |cpu| &cpu.segments);
            let first = segments.partition_point(|s| s.to_ns <= span.from_ns);
            let within = segments[first..].iter().take_while(|s| s.from_ns < span.to_ns);
            let mut states = within.filter_map(|s| Some((s.idle_state?, s.from_ns)));
            let Some((state, from_ns)) = states.next() else { continue };
            let exit_ns = wakeup.wishes.idle_exit_ns.get(&(span.cpu, state)).copied();
            let begin_ns = from_ns.max(span.from_ns);
            let until_ns = begin_ns.saturating_add(exit_ns.unwrap_or(0));
            exits.entry(span.cpu).or_insert((begin_ns, until_ns));
        }
        Self(exits)
    }

    /// Where the way out ends on a CPU.
    pub(super) fn cuts(&self, cpu: u32) -> Option<i64> {
        self.0.get(&cpu).map(|(_, until_ns)| *until_ns)
    }

    /// The way out, where this piece is part of it.
    pub(super) fn why(&self, piece: &Piece<'_>, segment: &Segment) -> Option<NamedCause> {
        let is_idle = segment.idle_state.is_some() && segment.softirq.is_none();
        let (begin_ns, until_ns) = *self.0.get(&piece.span.cpu)?;
        let is_exit = is_idle && piece.from_ns >= begin_ns && piece.to_ns <= until_ns;
        let name = names::idle(segment.idle_state);
        is_exit.then(|| NamedCause::inferred(Cause::IdleExit, name, TABLE))
    }
}

/// A CPU that stayed in an idle state for longer than it takes to leave it.
#[must_use]
pub(super) fn overslept(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> NamedCause {
    missing_cpu(wakeup, piece, "idle CPU woke up late")
}
