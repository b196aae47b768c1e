//! Whether the work of attached threads is measured, and what it is to keep.

use super::{Attach, target::FoundTask};
use crate::{
    kernel::{AttachPrograms, AttachedCycles, WatchedWait},
    run::{AttachedWaitCall, Deadlines},
    sys::{root::Root, sched::budget_of},
};

/// Whether cycles are measured: where there is a deadline to judge them by.
pub(super) fn cycles(plan: &Attach, root: &Root) -> AttachedCycles {
    if !plan.deadlines.is_empty() {
        return measured(plan.deadlines.all_ns);
    }
    match plan.target.scan(root).iter().any(|task: &FoundTask| has_own(task.tid)) {
        true => AttachedCycles::Measured(None),
        false => AttachedCycles::Unmeasured,
    }
}

/// The same of one thread of this name, where `cycles` is that of all. Where only some names have a
/// deadline, the work of others is in no series.
pub(super) fn of_thread(
    asked: &Deadlines,
    cycles: AttachedCycles,
    (name, tid): (&str, u32),
) -> AttachedCycles {
    match asked.of(name) {
        Some(deadline_ns) => measured(Some(deadline_ns)),
        None if asked.is_empty() => cycles,
        None if has_own(tid) => AttachedCycles::Measured(None),
        None => AttachedCycles::Unmeasured,
    }
}

fn measured(deadline_ns: Option<i64>) -> AttachedCycles {
    AttachedCycles::Measured(deadline_ns.and_then(|ns| u64::try_from(ns).ok()))
}

/// Whether it is of `SCHED_DEADLINE`.
fn has_own(tid: u32) -> bool {
    budget_of(tid.cast_signed()).is_some()
}

/// The calls in which event loops were seen to wait.
pub(super) fn wait_calls(programs: &AttachPrograms) -> Vec<AttachedWaitCall> {
    let record = |watched: &WatchedWait| {
        let (call, failed) = match watched {
            WatchedWait::Watched(call) => (call, None),
            WatchedWait::Failed(call, why) => (call, Some(why.clone())),
        };
        AttachedWaitCall { call: (*call).to_owned(), failed }
    };
    programs.watched_waits().iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        kernel::replay::{
            FIRST_TID,
            machine::{Machine, Step, Step::*, TaskPlan},
        },
        probes::attach::{
            AttachTarget,
            replayed::{ReplayRequest, run},
        },
        run::ThreadDeadline,
    };

    const MS: u64 = 1_000_000;

    #[test]
    fn each_thread_is_judged_by_the_deadline_of_its_name_and_others_by_none() {
        let plan = |name: &'static str, steps: &[Step], cpu| TaskPlan::fair(name, steps).on(cpu);
        let happened = Machine::run(
            vec![
                plan("ctl", &[UntilNext(20 * MS, 0), Work(3 * MS)], 0),
                plan("act", &[UntilNext(20 * MS, 0), Work(3 * MS)], 1),
                plan("log", &[UntilNext(20 * MS, 0), Work(3 * MS)], 2),
            ],
            2_100 * MS,
        );
        let own =
            |name: &str, ms: i64| ThreadDeadline { name: name.into(), deadline_ns: ms * 1_000_000 };
        let asked = ReplayRequest {
            target: AttachTarget::Process(FIRST_TID),
            of_threads: vec![own("ctl", 2), own("act", 5)],
            ..ReplayRequest::name("", None, [100 * MS, 2_100 * MS])
        };
        let end = run(&asked, &happened);
        for (name, deadline_ms, late) in [("ctl", 2, 100), ("act", 5, 0)] {
            let row = end.row(name);
            let over = row.over.unwrap();
            assert_eq!((over.deadline_ns, over.cycles), (deadline_ms * MS, late), "{row:?}");
            assert_eq!(row.response.map(|own| own.count), Some(100));
        }
        assert_eq!((end.row("log").response, end.row("log").over), (None, None));
        assert!(end.series.iter().all(|own| own.name != "log/response"), "{:?}", end.series);
    }
}
