//! The thread is runnable, and something else has the CPU.

use super::*;
use crate::kernel::{out, woken};

#[test]
fn a_softirq_before_the_switch() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    events.extend([(4_000, softirq(3)), (58_000, softirq_end(3))]);
    let named = case([2_000, 0, 1_000, 57_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Softirq, "NET_RX", 54_000));
}

#[test]
fn a_softirq_whose_task_had_been_preempted_in_it_before_the_record_begins() {
    let ksoftirqd = |at_ns| (at_ns, switch(14, 120, "ksoftirqd/0"));
    let preempted = |at_ns| (at_ns, flagged(out::PREEMPTED, switch(600, 4, "hog")));
    let ends = |mut events: Vec<(i64, Event)>| {
        events.push((40_000, softirq_end(3)));
        case([2_000, 0, 1_000, 57_000, 2_000], events)
    };
    // It continues before the record begins.
    let mut events = wake_up(ksoftirqd(0).1, 0, 2_000, 3_000, 60_000);
    events.extend([ksoftirqd(-900_000), (-800_000, softirq(3)), preempted(-700_000)]);
    assert_eq!(ends(events).named(), is(Cause::Softirq, "NET_RX", 36_500));
    // And while the thread is runnable.
    let mut events = wake_up(preempted(0).1, 0, 2_000, 3_000, 60_000);
    events.extend([ksoftirqd(-900_000), (-800_000, softirq(3)), ksoftirqd(4_000)]);
    events.extend([(-600_000, switch(501, 120, "other"))]);
    assert_eq!(ends(events).named(), is(Cause::Softirq, "NET_RX", 36_000));
}

#[test]
fn a_softirq_in_which_the_timer_expires() {
    let events = vec![
        (-500_000, hack()),
        (2_000, vector(TIMER, 0, 1)),
        (3_000, vector_end(TIMER)),
        (4_000, softirq(8)),
        (50_000, waking(ME, 500)),
        (51_000, softirq_end(8)),
        (54_000, switch(ME, 9, "timer")),
    ];
    let named = case([2_000, 3_000, 45_000, 4_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Softirq, "HRTIMER", 47_000));
}

#[test]
fn a_thread_of_higher_priority() {
    let events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 300_000);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events);
    assert_eq!(case.named(), is(Cause::Thread, "hog", 296_500));
    assert_eq!(case.main().task.as_deref(), Some("hog/600"));
}

#[test]
fn a_thread_of_equal_priority_goes_first_too() {
    let events = wake_up(switch(600, 9, "equal"), 1, 2_000, 3_000, 300_000);
    let named = case([2_000, 0, 1_000, 297_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Thread, "equal", 296_500));
}

#[test]
fn without_real_time_any_task_goes_first() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 300_000);
    events.push((100_000, switch(501, 139, "nice")));
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], events);
    (case.me.prio, case.me.real_time) = (120, false);
    assert_eq!(case.named(), is(Cause::Thread, "nice", 200_000));
}

/// Lazy preemption (`PREEMPT_LAZY`, the default of 7.2) lets a fair task run on up to the next
/// tick. That is the task which runs first, and no part of the kernel that cannot be preempted: its
/// stack names nothing.
#[test]
fn a_fair_thread_that_waits_for_the_tick_waits_for_the_task_that_runs_until_then() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.push((299_500, stack(500, 2, 9, 300)));
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["__schedule", "preempt_schedule_irq", "exit_mmap"]);
    (case.me.prio, case.me.real_time) = (120, false);
    let main = case.main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Thread, "hackbench"));
    assert_eq!(main.basis, Basis::Measured);
}

#[test]
fn a_thread_that_is_woken_when_its_group_has_used_up_its_cpu_quota() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 300_000);
    events[2].1.flags = woken::QUOTA;
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], events);
    (case.me.prio, case.me.real_time) = (120, false);
    assert_eq!(case.named(), is(Cause::Throttled, "CPU quota of its group", 297_000));
    assert_eq!(case.main().basis, Basis::Inferred);
}

#[test]
fn a_lower_task_in_the_kernel_that_cannot_be_preempted() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.push((299_500, stack(500, 2, 9, 300)));
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["__schedule", "preempt_schedule", "unmap_page_range", "exit_mmap", "do_exit"]);
    let main = case.main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "exit_mmap"));
    assert_eq!(main.task.as_deref(), Some("hackbench/500"));
    assert!((293_000..=295_000).contains(&main.ns), "{}", main.ns);
}

#[test]
fn the_stack_of_the_wake_up_names_it_where_that_of_the_switch_shows_only_the_way_out() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.extend([(3_200, stack(500, 3, 8, 100)), (299_500, stack(500, 2, 9, 300))]);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["__schedule", "schedule", "exit_to_user_mode_loop", "do_syscall_64"])
        .stack(8, &["hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "kill_something_info"]);
    let named = case.main();
    assert_eq!((named.cause, named.name.as_str()), (Cause::Nonpreemptible, "kill_something_info"));
}

#[test]
fn a_lower_task_without_a_stack_is_named_by_itself() {
    let events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    let main = case([2_000, 0, 1_000, 297_000, 2_000], events).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "hackbench"));
}

#[test]
fn a_spin_lock_on_top_of_the_stack() {
    let mut events = wake_up(hack(), 0, 2_000, 3_000, 300_000);
    events.push((299_500, stack(500, 3, 9, 300)));
    let named = case([2_000, 0, 1_000, 297_000, 2_000], events)
        .stack(9, &["native_queued_spin_lock_slowpath", "_raw_spin_lock", "do_anonymous_page"])
        .main();
    assert_eq!((named.cause, named.name.as_str()), (Cause::Lock, "do_anonymous_page"));
    assert_eq!(named.basis, Basis::Inferred, "one look at its stack");
}

#[test]
fn a_task_in_user_mode_keeps_nobody_off_the_cpu() {
    let events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    let named = case([2_000, 0, 1_000, 57_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Unexplained, "task in user mode not preempted", 54_500));
}

#[test]
fn a_short_way_through_the_scheduler() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 12_000);
    let named = case([1_500, 0, 1_000, 9_500, 2_000], events).named();
    assert_eq!(named, is(Cause::Nonpreemptible, "wake-up path", 12_500));
}

#[test]
fn an_idle_cpu_that_is_slow_to_switch() {
    let events = wake_up(switch(0, 120, "swapper/0"), 0, 2_000, 3_000, 60_000);
    let named = case([2_000, 0, 1_000, 57_000, 2_000], events).named();
    assert_eq!(named, is(Cause::Nonpreemptible, "swapper/0", 54_500));
    // An interrupt ends an idle state, so that none has come yet: the thread was woken elsewhere.
    let mut events = wake_up(switch(0, 120, "swapper/0"), 0, 2_000, 3_000, 60_000);
    events.retain(|(_, event)| matches!(event.kind, EventKind::Switch { .. }));
    events.push((-100_000, idle(1)));
    let mut case = case([2_000, 0, 1_000, 57_000, 2_000], events);
    case.wishes.idle_exit_ns.insert((0, 1), 20_000);
    let parts = case.peak().blame;
    let ns = |cause| parts.iter().filter(|p| p.cause == cause).map(|p| p.ns).sum::<u64>();
    assert!(ns(Cause::IdleExit) <= 20_000 && ns(Cause::Unexplained) > 30_000, "{parts:?}");
}

#[test]
fn the_stopper_goes_before_a_deadline_thread() {
    let events = wake_up(switch(15, 0, "migration/0"), 1, 2_000, 3_000, 60_000);
    let mut case = case([2_000, 0, 1_000, 57_000, 2_000], events);
    (case.me.prio, case.me.real_time) = (-1, true);
    assert_eq!(case.named(), is(Cause::Migration, "migration/0", 56_500));
    let events = wake_up(switch(600, 0, "fifo"), 0, 2_000, 3_000, 60_000);
    let mut lower = self::case([2_000, 0, 1_000, 57_000, 2_000], events);
    (lower.me.prio, lower.me.real_time) = (-1, true);
    assert_eq!(lower.main().cause, Cause::Nonpreemptible);
}

#[test]
fn a_lower_task_that_is_switched_in_while_the_thread_is_runnable() {
    let mut events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 5_000_000);
    events.extend([(100_000, hack()), (2_000_000, switch(0, 120, "swapper/0"))]);
    let mut case = case([2_000, 0, 1_000, 4_997_000, 2_000], events);
    case.wishes.holds = HoldEvidence::OnlyThrottling;
    let peak = case.peak();
    let throttled: u64 =
        peak.blame.iter().filter(|p| p.cause == Cause::Throttled).map(|p| p.ns).sum();
    assert_eq!(throttled, 4_900_000);
    let is_inferred = |part: &Part| part.cause != Cause::Throttled || part.basis == Basis::Inferred;
    assert!(peak.blame.iter().all(is_inferred));
}

#[test]
fn who_is_woken_twice_has_run_in_between_and_nobody_saw_it() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 90_000);
    events.push((80_000, waking(ME, 700)));
    let named = case([1_500, 0, 1_000, 87_500, 91_000], events).named();
    let why = "woken twice, its run between is not recorded";
    assert_eq!(named, is(Cause::Unexplained, why, 85_500));
}

#[test]
fn who_was_runnable_before_the_record_begins_was_not_throttled() {
    // The cycle before took longer than the period, and its wake-up is in no record any more.
    let sleeps = (52_000, flagged(1, switch(0, 120, "swapper/0")));
    let mut events = wake_up(hack(), 0, 53_000, 54_000, 56_000);
    events.extend([(50_000, switch(ME, 9, "timer")), sleeps]);
    let kept = case([53_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(kept.named(), is(Cause::Unexplained, "ready since before its record", 50_000));
}

#[test]
fn who_is_woken_by_its_timer_was_not_preempted_since_the_time_before() {
    // It was moved and ran on an idle CPU, of whose switches none was recorded.
    let mut events = wake_up(hack(), 1, 19_000, 20_000, 22_000);
    events.extend([(-40_000, switch(ME, 9, "timer")), (-30_000, hack())]);
    let parts = case([19_000, 0, 1_000, 2_000, 30_000], events).peak().blame;
    assert!(parts.iter().all(|part| part.cause != Cause::Throttled), "{parts:?}");
}

#[test]
fn a_task_that_the_fair_server_runs_goes_before_a_real_time_thread() {
    let served = |task: Event| match task.kind {
        EventKind::Switch { comm, .. } => {
            let ahead = Some(RunsAhead::FairServer);
            Event { kind: EventKind::Switch { comm, ahead }, ..task }
        }
        _ => task,
    };
    let by = |flags: u8, task: Event| {
        let mut events = wake_up(task, 1, 2_000, 3_000, 60_000);
        events[2].1.flags = flags;
        case([2_000, 0, 1_000, 57_000, 2_000], events)
    };
    // It was there before the wake-up, and the scheduler let it be.
    let long = by(woken::SERVED, served(hack()));
    assert_eq!(long.named(), is(Cause::Throttled, "fair server", 56_500));
    assert_eq!(long.main().basis, Basis::Measured);
    assert_eq!(long.main().task.as_deref(), Some("hackbench/500"));
    // The server takes a task that runs, and leaves it, without a switch.
    let taken = by(woken::SERVED, hack());
    assert_eq!(taken.named(), is(Cause::Throttled, "fair server", 56_500));
    let left = by(0, served(hack()));
    assert_eq!(left.named().0, Cause::Unexplained);
    // It comes after the wake-up.
    let mut events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 5_000_000);
    events.push((100_000, served(hack())));
    let later = case([2_000, 0, 1_000, 4_997_000, 2_000], events);
    assert_eq!(later.named(), is(Cause::Throttled, "fair server", 4_900_000));
}

#[test]
fn a_lower_task_that_is_switched_in_as_real_time_tasks_are_throttled() {
    let mut events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 5_000_000);
    let EventKind::Switch { comm, .. } = hack().kind else { unreachable!() };
    let ahead = Some(RunsAhead::RealTimeThrottled);
    events.push((100_000, Event { kind: EventKind::Switch { comm, ahead }, ..hack() }));
    let mut case = case([2_000, 0, 1_000, 4_997_000, 2_000], events);
    assert_eq!(case.named(), is(Cause::Throttled, "real-time throttling", 4_900_000));
    case.me.prio = -1;
    assert_eq!(case.named(), is(Cause::Unexplained, "ready, but another task ran", 4_900_000));
}

#[test]
fn a_thread_that_is_woken_when_it_may_not_run() {
    let named = |flags: u8| {
        let mut events = wake_up(hack(), 1, 2_000, 3_000, 300_000);
        events[2].1.flags = flags;
        case([2_000, 0, 1_000, 297_000, 2_000], events).named()
    };
    let throttled = |name| is(Cause::Throttled, name, 297_000);
    assert_eq!(named(woken::BUDGET), throttled("deadline budget used up"));
    assert_eq!(named(woken::THROTTLING), throttled("real-time throttling"));
    assert_eq!(named(woken::QUOTA), throttled("CPU quota of its group"));
}

#[test]
fn a_task_that_inherits_a_priority_while_it_runs_goes_first_from_then_on() {
    let boosted = |prio: i16| {
        let mut events = wake_up(hack(), 0, 2_000, 3_000, 60_000);
        events.extend([(2_500, priority(500, prio)), (40_000, priority(500, 120))]);
        case([2_000, 0, 1_000, 57_000, 2_000], events).peak().blame
    };
    let first = |parts: &[Part]| {
        parts.iter().filter(|part| part.cause == Cause::Thread).map(|part| part.ns).sum::<u64>()
    };
    assert_eq!(first(&boosted(4)), 36_500, "until it has let the lock go");
    assert_eq!(first(&boosted(49)), 0, "it is lower all the same");
}

#[test]
fn a_thread_that_inherits_a_priority_is_above_those_below_it() {
    let by = |inherited: &[(i64, Event)]| {
        let mut events = wake_up(switch(600, 4, "hog"), 0, 2_000, 3_000, 60_000);
        events.extend(inherited.iter().copied());
        case([2_000, 0, 1_000, 57_000, 2_000], events).main().cause
    };
    assert_eq!(by(&[]), Cause::Thread);
    assert_eq!(by(&[(2_500, priority(ME, 2))]), Cause::Nonpreemptible);
    assert_eq!(by(&[(1_000, priority(ME, 2)), (2_500, priority(ME, 9))]), Cause::Thread);
}
