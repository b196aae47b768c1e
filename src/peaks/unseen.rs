//! What the events of a wait tell that it did not see: not all that a kernel does is recorded.

use super::{
    Event, EventKind,
    contexts::ns,
    late_wakeup::LateWakeup,
    piece::Piece,
    state_history::{OffCpu, ThreadState},
};

/// Kernel priorities of tasks of SCHED_FIFO and SCHED_RR; 0 is also that of the stopper of a CPU,
/// which no throttling holds back.
const REAL_TIME: std::ops::Range<i16> = 1..99;

/// Whether the thread was woken again before the end of this wait: impossible if it has not run
/// since, so that it had a CPU meanwhile, and its switches are not recorded. `wakings_ns` are all
/// its wake-ups, by time.
#[must_use]
pub(super) fn ran(wakings_ns: &[i64], piece: &Piece<'_>) -> bool {
    let span = piece.span;
    let waits = matches!(
        span.state,
        ThreadState::Dispatch | ThreadState::OffCpu(OffCpu::Woken | OffCpu::Moving { .. })
    );
    let since_ns = span.ready_ns.max(piece.from_ns);
    let next = wakings_ns.partition_point(|at_ns| *at_ns <= since_ns);
    waits && wakings_ns.get(next).is_some_and(|at_ns| *at_ns <= span.to_ns)
}

/// Whether another real-time task was given the CPU between the thread's becoming ready and its
/// being switched in: real-time throttling would have held that one back as well.
#[must_use]
pub(super) fn other_real_time_ran(wakeup: &LateWakeup<'_>, piece: &Piece<'_>) -> bool {
    let mut later = wakeup.history.spans.iter().filter(|span| span.from_ns >= piece.to_ns);
    let runs = later.find(|span| span.state == ThreadState::Running);
    let until_ns = runs.map_or_else(|| wakeup.end_ns(), |span| span.from_ns);
    let wait_ns = piece.span.ready_ns..until_ns;
    let events = wakeup.cpus.get(&piece.span.cpu).map_or(&[][..], |cpu| &cpu.events);
    events.iter().any(|event| {
        matches!(event.kind, EventKind::Switch { .. })
            && REAL_TIME.contains(&event.prio)
            && event.pid != wakeup.me.tid
            && wait_ns.contains(&ns(event.at_ns))
    })
}

/// Whether a thread that never sleeps stood still without an event on its CPU.
#[must_use]
pub(super) fn is_empty_gap(wakeup: &LateWakeup<'_>) -> bool {
    let gap_ns = wakeup.late.t_ns..=wakeup.end_ns();
    let own = wakeup.cpus.get(&wakeup.me.cpu);
    let mut events = own.into_iter().flat_map(|cpu| &cpu.events);
    // Another CPU may have recorded what it inherits.
    let is_own = |event: &Event| !matches!(event.kind, EventKind::Priority { .. });
    wakeup.me.spins && !events.any(|event| is_own(event) && gap_ns.contains(&ns(event.at_ns)))
}
