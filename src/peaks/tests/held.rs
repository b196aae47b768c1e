//! The thread is ready, and the scheduler does not let it run.

use super::*;
use crate::kernel::out;

#[test]
fn preempted_by_a_lower_task_it_was_throttled() {
    // The thread that others hold back: what the record says of it as it leaves its CPU.
    let named = |flags: u8, prio: i16, evidence: HoldEvidence| {
        let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
        events.extend([(6_000, flagged(flags, hack())), (90_000, switch(ME, prio, "timer"))]);
        let mut case = case([1_500, 0, 1_000, 2_500, 90_000], events);
        (case.me.prio, case.wishes.holds) = (prio, evidence);
        case.named()
    };
    let recorded = HoldEvidence::Recorded;
    let throttling = is(Cause::Throttled, "real-time throttling", 84_000);
    assert_eq!(named(out::THROTTLING, 9, recorded), throttling);
    assert_eq!(named(out::PREEMPTED, 9, HoldEvidence::OnlyThrottling), throttling);
    let budget = is(Cause::Throttled, "deadline budget used up", 84_000);
    assert_eq!(named(out::BUDGET, -1, recorded), budget);
    let server = is(Cause::Throttled, "fair server", 84_000);
    assert_eq!(named(out::PREEMPTED, 9, HoldEvidence::OnlyFairServer), server);
    // The record would have it, or what it lacks may be either.
    let nobody = is(Cause::Unexplained, "ready, but another task ran", 84_000);
    assert_eq!(named(out::PREEMPTED, 9, recorded), nobody);
    assert_eq!(named(out::PREEMPTED, 9, HoldEvidence::Missing), nobody);
    // Neither is for deadline threads.
    for evidence in [recorded, HoldEvidence::OnlyThrottling, HoldEvidence::OnlyFairServer] {
        assert_eq!(named(out::PREEMPTED, -1, evidence), nobody);
    }
}

#[test]
fn a_ready_thread_whose_cpu_goes_idle_was_not_kept_by_the_fair_server() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, switch(0, 120, "swapper/0")), (90_000, switch(ME, 9, "timer"))]);
    let mut case = case([1_500, 0, 1_000, 2_500, 90_000], events);
    case.wishes.holds = HoldEvidence::OnlyFairServer;
    assert_eq!(case.named(), is(Cause::Unexplained, "ready, but the CPU went idle", 84_000));
    case.wishes.holds = HoldEvidence::OnlyThrottling;
    assert_eq!(case.named(), is(Cause::Throttled, "real-time throttling", 84_000));
}

#[test]
fn no_throttling_is_named_where_core_scheduling_or_sched_ext_may_leave_the_cpu_idle() {
    let idle = is(Cause::Unexplained, "ready, but the CPU went idle", 84_000);
    for (real_time, prio) in [(true, 9), (true, -1), (false, 120)] {
        let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
        events.extend([(6_000, switch(0, 120, "swapper/0")), (90_000, switch(ME, prio, "timer"))]);
        let mut case = case([1_500, 0, 1_000, 2_500, 90_000], events);
        (case.me.prio, case.me.real_time, case.wishes.idles_beside_ready) = (prio, real_time, true);
        let (throttling, server) = (HoldEvidence::OnlyThrottling, HoldEvidence::OnlyFairServer);
        for evidence in [HoldEvidence::Recorded, throttling, server, HoldEvidence::Missing] {
            case.wishes.holds = evidence;
            assert_eq!(case.named(), idle, "{prio} {evidence:?}");
        }
    }
}
