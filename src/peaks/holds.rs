//! What keeps a thread from its CPU that is ready, though no task of higher priority runs: a quota,
//! the budget of its deadline policy, real-time throttling, the fair server.

use super::{
    BlameOptions, MeasuredThread,
    contexts::CurrentTask,
    piece::{NamedCause, Piece},
    state_history::{OffCpu, ThreadState},
};
use crate::{
    kernel::{Hold, RunsAhead},
    run::peaks::{Cause, FAIR_SERVER, OUT_OF_BUDGET, REAL_TIME_THROTTLING},
};

const QUOTA_USED_UP: &str =
    "its control group had used up its CPU quota; when it could run again is not recorded";
const BUDGET_USED_UP: &str = "it had used up the runtime that its deadline policy gives it in a \
                              period; when it could run again is not recorded";
const TIME_USED_UP: &str = "the real-time tasks of this CPU or of its control group had used up \
                            their time; when they could run again is not recorded";
const SWITCHED_IN: &str = "a task that should have waited was switched in meanwhile";
const ONLY_THROTTLING: &str = "a task that should have waited was switched in meanwhile, and this \
                               kernel has real-time throttling, but no fair server";
const ONLY_SERVER: &str = "a task that should have waited was switched in meanwhile, and this \
                           kernel has the fair server, but no real-time throttling";

/// How the record tells what holds real-time threads back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HoldEvidence {
    /// It has each of them.
    #[default]
    Recorded,
    /// It has none of them, and this kernel has only real-time throttling.
    OnlyThrottling,
    /// It has none of them, and this kernel has only the fair server.
    OnlyFairServer,
    /// It has none of them, and this kernel may have both.
    Missing,
}

/// Why the thread of a piece could not run, whatever its CPU did meanwhile; `woken` are its
/// wake-ups while it could not.
pub(super) fn of_piece(piece: &Piece<'_>, woken: &[(i64, Hold)]) -> Option<Hold> {
    match piece.span.state {
        ThreadState::OffCpu(OffCpu::Held(hold)) => Some(hold),
        ThreadState::Dispatch | ThreadState::OffCpu(OffCpu::Woken) => {
            let mut found = woken.iter().filter(|(at_ns, _)| *at_ns == piece.span.ready_ns);
            found.next().map(|(_, hold)| *hold)
        }
        _ => None,
    }
}

pub(super) fn held(hold: Hold) -> NamedCause {
    let (name, evidence) = match hold {
        Hold::Quota => ("CPU quota of its group", QUOTA_USED_UP),
        Hold::Budget => (OUT_OF_BUDGET, BUDGET_USED_UP),
        Hold::Throttling => (REAL_TIME_THROTTLING, TIME_USED_UP),
    };
    NamedCause::inferred(Cause::Throttled, name, evidence)
}

/// The fair server runs this task before the thread.
pub(super) fn served(me: &MeasuredThread, task: &CurrentTask) -> Option<NamedCause> {
    let is_served = me.real_time && task.ahead == Some(RunsAhead::FairServer);
    is_served.then(|| NamedCause::measured(Cause::Throttled, FAIR_SERVER).of(task))
}

/// The thread is ready, and this task was switched in that should wait for it. Neither real-time
/// throttling (kernel/sched/rt.c) nor the fair server concerns deadline threads. An idle CPU shows
/// throttling only where the kernel has no other reason to be idle then.
pub(super) fn behind(
    me: &MeasuredThread,
    options: &BlameOptions,
    task: &CurrentTask,
) -> NamedCause {
    let evidence = options.holds;
    let is_fifo = me.real_time && me.prio >= 0;
    let inferred = |name, why| {
        let named = NamedCause::inferred(Cause::Throttled, name, why);
        if task.pid == 0 { named } else { named.of(task) }
    };
    match evidence {
        _ if is_fifo && task.ahead == Some(RunsAhead::RealTimeThrottled) => {
            inferred(REAL_TIME_THROTTLING, TIME_USED_UP)
        }
        _ if task.pid == 0 && options.idles_beside_ready => nobody(task),
        HoldEvidence::OnlyThrottling if is_fifo => inferred(REAL_TIME_THROTTLING, ONLY_THROTTLING),
        HoldEvidence::OnlyFairServer if is_fifo && task.pid != 0 => {
            inferred(FAIR_SERVER, ONLY_SERVER)
        }
        HoldEvidence::Recorded => nobody(task),
        _ if me.real_time => nobody(task),
        _ => inferred("group throttling", SWITCHED_IN),
    }
}

/// Nothing shows why the thread did not run.
pub(super) fn nobody(task: &CurrentTask) -> NamedCause {
    NamedCause::unexplained(match task.pid {
        0 => "ready, but the CPU went idle",
        _ => "ready, but another task ran",
    })
}
