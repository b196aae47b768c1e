//! The thread was switched in, or nobody saw how.

use super::*;
use crate::kernel::out;

#[test]
fn a_page_fault_of_its_own() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.push((6_000, fault(ME)));
    let named = case([1_500, 0, 1_000, 2_500, 90_000], events).named();
    assert_eq!(named, is(Cause::PageFault, "page fault", 89_000));
}

#[test]
fn an_interrupt_on_its_way_to_user_mode() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, irq(9)), (80_000, irq_end(9))]);
    let named = case([1_500, 0, 1_000, 2_500, 80_000], events).named();
    assert_eq!(named, is(Cause::Hardirq, "irq 9", 74_000));
}

#[test]
fn preempted_again_before_it_read_the_clock() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, switch(600, 4, "hog")), (90_000, switch(ME, 9, "timer"))]);
    let named = case([1_500, 0, 1_000, 2_500, 90_000], events).named();
    assert_eq!(named, is(Cause::Thread, "hog", 84_000));
}

#[test]
fn it_was_not_throttled_where_another_real_time_task_got_the_cpu() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    let other = [(50_000, switch(601, 39, "other")), (51_000, hack())];
    events.extend([(6_000, hack())].into_iter().chain(other));
    events.push((90_000, switch(ME, 9, "timer")));
    let case = case([1_500, 0, 1_000, 2_500, 90_000], events);
    assert_eq!(case.named(), is(Cause::Unexplained, "ready, but another task ran", 84_000));
}

#[test]
fn a_thread_whose_group_has_used_up_its_cpu_quota() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, flagged(out::THROTTLED, hack())),
        (40_000, irq(5)),
        (50_000, irq_end(5)),
        (90_000, switch(ME, 120, "timer")),
    ]);
    let mut case = case([1_500, 0, 1_000, 2_500, 90_000], events);
    (case.me.real_time, case.me.prio) = (false, 120);
    assert_eq!(case.named(), is(Cause::Throttled, "CPU quota of its group", 84_000));
    assert_eq!(case.main().basis, Basis::Inferred, "hackbench may have gone first after it");
}

#[test]
fn a_thread_whose_group_had_used_up_its_cpu_quota_at_its_expiry() {
    let events = vec![
        (-40_000, switch(ME, 120, "timer")),
        (-20_000, flagged(out::THROTTLED, hack())),
        (85_000, switch(ME, 120, "timer")),
    ];
    let mut case = case([0, 0, 0, 0, 90_000], events).unmatched();
    (case.me.real_time, case.me.prio) = (false, 120);
    assert_eq!(case.named(), is(Cause::Throttled, "CPU quota of its group", 85_000));
}

#[test]
fn moved_to_another_cpu() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, switch(15, 0, "migration/0")),
        (10_000, migrate(ME, 0, 1)),
        (-9_000, on(1, switch(0, 120, "swapper/1"))),
        (70_000, on(1, switch(ME, 9, "timer"))),
    ]);
    let case = case([1_500, 0, 1_000, 2_500, 90_000], events);
    assert_eq!(case.named(), is(Cause::Migration, "CPU 0 to CPU 1", 60_000));
    let parts = case.peak().blame;
    let stopper = parts.iter().find(|part| part.name == "migration/0").unwrap();
    assert_eq!((stopper.cause, stopper.ns), (Cause::Migration, 4_000));
    assert_eq!(case.peak().cpu, 1);
}

#[test]
fn woken_on_one_cpu_and_run_on_another() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.pop();
    events.extend([
        (3_000, migrate(ME, 0, 1)),
        (-9_000, on(1, switch(600, 4, "hog"))),
        (80_000, on(1, switch(ME, 9, "timer"))),
    ]);
    let mut case = case([1_500, 0, 1_000, 77_500, 2_000], events);
    case.late.cpus = (0, 1);
    assert_eq!(case.named(), is(Cause::Thread, "hog", 77_500));
}

#[test]
fn waiting_for_a_lock_on_its_way() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, lock(ME)), (80_000, lock_end(ME))]);
    let named = case([1_500, 0, 1_000, 2_500, 90_000], events).named();
    assert_eq!(named, is(Cause::Lock, "a lock", 74_000));
}

#[test]
fn sleeping_for_a_lock_on_its_way() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, lock(ME)),
        (7_000, flagged(2, hack())),
        (80_000, switch(ME, 9, "timer")),
        (80_500, lock_end(ME)),
    ]);
    let named = case([1_500, 0, 1_000, 2_500, 90_000], events).named();
    assert_eq!(named, is(Cause::Lock, "a lock", 74_500));
}

#[test]
fn the_owner_of_a_lock_that_gets_the_threads_priority() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        // Somebody else waits for a lock, on another CPU and before.
        (5_500, on(1, lock_owner(700, "other"))),
        (5_600, lock_owner(701, "before")),
        (6_000, lock(ME)),
        (6_100, on(1, lock_owner(702, "other"))),
        (6_200, lock_owner(600, "owner")),
        (7_000, flagged(2, switch(600, 9, "owner"))),
        (80_000, switch(ME, 9, "timer")),
        (80_500, lock_end(ME)),
    ]);
    let main = case([1_500, 0, 1_000, 2_500, 90_000], events).main();
    assert_eq!((main.cause, main.basis), (Cause::Lock, Basis::Measured));
    assert_eq!(main.task.as_deref(), Some("owner/600"));
}

#[test]
fn a_lock_after_its_wake_up_is_not_its_timers_handler() {
    // The kernel's record is of the last wake-up: by the lock's owner, whose priority it raised.
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([
        (6_000, lock(ME)),
        (7_000, flagged(2, switch(600, 9, "owner"))),
        (82_500, waking(ME, 600)),
        (87_000, switch(ME, 9, "timer")),
        (87_500, lock_end(ME)),
    ]);
    let case = case([1_500, 0, 81_000, 4_500, 2_000], events);
    assert_eq!(case.named(), is(Cause::Lock, "a lock", 77_000));
    // Another timer expired meanwhile, so that the record matches no more.
    let unmatched = case.with(vec![(2_000, timer(T))]).unmatched();
    assert_eq!(unmatched.named(), is(Cause::Lock, "a lock", 77_000));
}

#[test]
fn stopped_while_its_timer_expired() {
    let events =
        vec![(-500_000, hack()), (800_000, waking(ME, 500)), (805_000, switch(ME, 9, "timer"))];
    let mut case = case([0, 0, 0, 0, 810_000], events).unmatched();
    case.late.stopped_ns = (T - 100_000, T + 800_000);
    assert_eq!(case.named(), is(Cause::Stopped, "stopped", 800_000));
}

#[test]
fn stopped_over_its_expiry_it_meets_a_lock_before_it_sleeps_again() {
    // When it was stopped is not in the window; its timer expires as soon as it sleeps.
    let mut events = vec![(-30_000, hack()), (400, waking(ME, 500))];
    events.extend([(6_000, switch(ME, 9, "timer")), (10_000, lock(ME))]);
    events.extend([(16_000, flagged(2, hack())), (55_000, waking(ME, 600))]);
    events.extend([(74_000, switch(ME, 9, "timer")), (74_500, lock_end(ME))]);
    events.extend([(87_000, flagged(2, hack())), (90_000, vector(TIMER, 0x1000, 0))]);
    events.extend([(91_000, timer(T)), (92_000, waking(ME, 500)), (93_000, vector_end(TIMER))]);
    events.push((96_000, switch(ME, 9, "timer")));
    let mut case = case([90_000, 0, 2_000, 4_000, 4_000], events);
    case.late.stopped_ns = (T - 30_000, T + 400);
    let named = |name: &str| case.peak().blame.iter().find(|part| part.name == name).map(|p| p.ns);
    assert_eq!(named("stopped"), Some(400));
    assert_eq!(case.named(), is(Cause::Lock, "a lock", 45_500), "{:?}", case.peak().blame);
}

#[test]
fn stopped_on_its_way_to_user_mode() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    events.extend([(6_000, flagged(3, hack())), (90_000, switch(ME, 9, "timer"))]);
    let named = case([1_500, 0, 1_000, 2_500, 90_000], events).named();
    assert_eq!(named, is(Cause::Stopped, "stopped", 84_000));
}

#[test]
fn time_that_the_hypervisor_took() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 400_000);
    let case = case([1_500, 0, 1_000, 397_500, 2_000], events)
        .with(vec![(403_000, steal(300_000, T - 1_000_000))]);
    assert_eq!(case.named(), is(Cause::Host, "hypervisor (steal)", 300_000));
}

#[test]
fn tardys_own_stack_walk() {
    let mut events = wake_up(hack(), 0, 1_500, 2_500, 30_000);
    events.push((30_100, stack(500, 2, 9, 20_000)));
    let named = case([1_500, 0, 1_000, 27_500, 22_000], events).named();
    assert_eq!(named, is(Cause::Nonpreemptible, "hackbench", 25_000));
    let events = wake_up(hack(), 0, 1_500, 2_500, 5_000);
    let case = case([1_500, 0, 1_000, 2_500, 22_000], events);
    let named = case.with(vec![(5_100, stack(500, 2, 9, 20_000))]).named();
    assert_eq!(named, is(Cause::Tracing, "stack walk", 20_000));
}

#[test]
fn a_non_maskable_interrupt() {
    let mut events = wake_up(hack(), 1, 1_500, 2_500, 60_000);
    events.push((55_000, nmi(50_000)));
    let named = case([1_500, 0, 1_000, 57_500, 2_000], events).named();
    assert_eq!(named, is(Cause::Hardirq, "NMI", 50_000));
}

#[test]
fn what_was_overwritten_is_unexplained() {
    let mut case = case([2_000, 0, 1_000, 297_000, 2_000], vec![(250_000, hack())]);
    case.fake.forgets = true;
    assert_eq!(case.named(), is(Cause::Unexplained, "not recorded any more", 250_000));
}

#[test]
fn a_long_way_of_its_own_with_nothing_recorded() {
    const NAME: &str = "on the CPU, nothing recorded";
    let events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    let case = case([1_500, 0, 1_000, 2_500, 300_000], events);
    // Twice the usual 3 us and 3 us are the wake-up path.
    assert_eq!(case.named(), is(Cause::Unexplained, NAME, 291_000));
    let guest = case.clone().in_virtual_machine();
    assert_eq!(guest.named(), is(Cause::Unexplained, NAME, 291_000), "or its own work");
    let mut managed = case;
    managed.fake.smis_step = 1;
    assert_eq!(managed.named(), is(Cause::Hardware, "SMI", 291_000));
}

#[test]
fn its_own_way_takes_about_as_long_as_its_median() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    let case = case([1_500, 0, 1_000, 2_500, 30_000], events);
    let mut source = case.fake.clone();
    source.events.sort_by_key(|event| event.at_ns);
    let mut blamer = Blamer::new(vec![case.me.clone()], case.wishes.clone(), Box::new(source));
    blamer.begin(0, 0, 0);
    let usual = UsualStages { user_ns: 10_000, ..UsualStages::default() };
    blamer.set_usual(0, usual);
    let peak = blame(&mut blamer, &case.late, BlameScope::All).unwrap();
    let rest = peak.blame.iter().find(|part| part.cause == Cause::Unexplained).unwrap();
    assert_eq!(rest.ns, 30_000 - 23_000, "{:?}", peak.blame);
}

#[test]
fn the_timer_was_programmed_after_its_expiry() {
    // On the CPU since before it; an interrupt kept the thread from its timer.
    let sleeps = (52_000, flagged(1, switch(0, 120, "swapper/0")));
    let mut events = wake_up(hack(), 0, 53_000, 54_000, 56_000);
    events.extend([(-30_000, switch(ME, 9, "timer")), (-1_000, irq(9)), (50_000, irq_end(9))]);
    events.push(sleeps);
    let interrupted = case([53_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(interrupted.named(), is(Cause::Hardirq, "irq 9", 50_000));
    let mut events = wake_up(hack(), 0, 53_000, 54_000, 56_000);
    events.extend([(-30_000, switch(ME, 9, "timer")), (-1_000, switch(600, 4, "hog"))]);
    events.extend([(50_000, switch(ME, 9, "timer")), sleeps]);
    let preempted = case([53_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(preempted.named(), is(Cause::Thread, "hog", 50_000));
    // Preempted for so long that the record does not show how it began.
    let mut events = wake_up(switch(600, 4, "hog"), 0, 53_000, 54_000, 56_000);
    events.extend([(50_000, switch(ME, 9, "timer")), sleeps]);
    let long_ago = case([53_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(long_ago.named(), is(Cause::Thread, "hog", 50_000));
    // Woken before its expiry, and kept from the CPU since.
    let mut events = wake_up(switch(600, 4, "hog"), 0, 53_000, 54_000, 56_000);
    events.extend([(-40_000, waking(ME, 600)), (50_000, switch(ME, 9, "timer")), sleeps]);
    let woken = case([53_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(woken.named(), is(Cause::Thread, "hog", 50_000));
    // A fault before it slept has nothing to do with its way after that.
    let mut events = wake_up(hack(), 0, 13_000, 14_000, 16_000);
    events.extend([(-30_000, switch(ME, 9, "timer")), (5_000, fault(ME))]);
    events.push((8_000, flagged(1, switch(0, 120, "swapper/0"))));
    let parts = case([13_000, 0, 1_000, 2_000, 90_000], events).peak().blame;
    let fault = parts.iter().find(|part| part.cause == Cause::PageFault).unwrap();
    assert_eq!(fault.ns, 3_000, "{parts:?}");
}

#[test]
fn a_relative_timer_was_programmed_for_later() {
    let mut case =
        case([42_000, 0, 1_000, 2_500, 2_000], wake_up(hack(), 1, 42_000, 43_000, 45_500));
    case.late.expires_ns += 40_000;
    assert_eq!(case.named(), is(Cause::Unexplained, "timer programmed late", 40_000));
}

#[test]
fn a_stop_that_woke_it_before_its_expiry_is_no_throttling() {
    // A signal for the whole process wakes the thread while the sender has its lock.
    let mut events = wake_up(hack(), 0, 453_000, 454_000, 456_000);
    events.extend([(-12_000, switch(600, 97, "sender")), (-7_000, waking(ME, 600))]);
    events.extend([(14_000, switch(ME, 9, "timer")), (20_000, flagged(3, hack()))]);
    events.extend([(440_000, waking(ME, 500)), (445_000, switch(ME, 9, "timer"))]);
    events.push((450_000, flagged(1, hack())));
    let parts = case([453_000, 0, 1_000, 2_000, 2_000], events).peak().blame;
    assert!(parts.iter().all(|part| part.cause != Cause::Throttled), "{parts:?}");
    let sender = parts.iter().find(|part| part.task.as_deref() == Some("sender/600")).unwrap();
    assert_eq!((sender.cause, sender.ns), (Cause::Nonpreemptible, 12_000));
}

#[test]
fn a_relative_timer_was_programmed_for_so_much_later_that_no_record_matched() {
    let mut events = wake_up(hack(), 1, 1_100_500, 1_101_500, 1_104_000);
    events.push((1_101_000, timer(T + 1_100_000)));
    events.extend([(-30_000, switch(ME, 9, "timer")), (100_000, flagged(1, hack()))]);
    let case = case([0, 0, 0, 0, 1_106_000], events).unmatched();
    assert_eq!(case.named(), is(Cause::Unexplained, "timer programmed late", 1_000_000));
}

#[test]
fn a_lock_or_a_stop_that_it_waited_for_at_its_expiry() {
    let mut events = wake_up(hack(), 2, 67_000, 68_000, 70_000);
    events.extend([(-18_000, switch(ME, 9, "timer")), (-14_000, lock(ME))]);
    events.extend([(-8_000, flagged(1, switch(600, 9, "owner"))), (50_000, waking(ME, 600))]);
    events.extend([(52_000, switch(ME, 9, "timer")), (56_000, lock_end(ME))]);
    events.push((65_000, flagged(1, hack())));
    let locked = case([67_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(locked.named(), is(Cause::Lock, "a lock", 54_000));
    let mut events = wake_up(hack(), 2, 67_000, 68_000, 70_000);
    events.extend([(-18_000, switch(ME, 9, "timer")), (-8_000, flagged(3, hack()))]);
    events.extend([(50_000, waking(ME, 600)), (52_000, switch(ME, 9, "timer"))]);
    events.push((65_000, flagged(1, hack())));
    let stopped = case([67_000, 0, 1_000, 2_000, 2_000], events);
    assert_eq!(stopped.named(), is(Cause::Stopped, "stopped", 50_000));
}

#[test]
fn a_mutex_of_a_lower_task_that_it_waited_for_at_its_expiry() {
    let mut events = wake_up(hack(), 2, 67_000, 68_000, 70_000);
    events.extend([(-18_000, switch(ME, 9, "timer")), (-14_000, lock_owner(600, "owner"))]);
    events.extend([(-8_000, flagged(1, switch(600, 9, "owner"))), (50_000, waking(ME, 600))]);
    events.extend([(52_000, switch(ME, 9, "timer")), (65_000, flagged(1, hack()))]);
    let case = case([67_000, 0, 1_000, 2_000, 2_000], events);
    let main = case.main();
    assert_eq!((main.cause, main.basis, main.ns), (Cause::Lock, Basis::Measured, 50_000));
    assert_eq!((main.name.as_str(), main.task.as_deref()), ("PI mutex", Some("owner/600")));
}

#[test]
fn a_mutex_that_it_began_to_wait_for_long_before_its_expiry() {
    let mut events = wake_up(hack(), 2, 67_000, 68_000, 70_000);
    events.extend([(-918_000, switch(ME, 9, "timer")), (-914_000, lock_owner(600, "owner"))]);
    events.extend([(-908_000, flagged(1, switch(600, 9, "owner")))]);
    events.extend([(-900_000, flagged(1, switch(0, 120, "swapper/0"))), (-899_000, idle(1))]);
    events.extend([(40_000, switch(600, 9, "owner")), (50_000, waking(ME, 600))]);
    events.extend([(52_000, switch(ME, 9, "timer")), (65_000, flagged(1, hack()))]);
    let main = case([67_000, 0, 1_000, 2_000, 2_000], events).main();
    assert_eq!(
        (main.cause, main.ns, main.task.as_deref()),
        (Cause::Lock, 50_000, Some("owner/600"))
    );
}

#[test]
fn an_unmatched_wake_up_is_followed_by_its_events() {
    let events = wake_up(switch(600, 4, "hog"), 1, 2_000, 3_000, 300_000);
    let case = case([2_000, 0, 1_000, 297_000, 2_000], events).unmatched();
    assert_eq!(case.named(), is(Cause::Thread, "hog", 296_500));
    assert_eq!(case.peak().stages, None);
}

#[test]
fn a_wake_up_that_nobody_recorded() {
    let unseen = || is(Cause::Unexplained, "wake-up not recorded", 90_000);
    let kept = case([0, 0, 0, 0, 90_000], vec![(-500_000, hack())]).unmatched();
    assert_eq!(kept.named(), unseen(), "hackbench may have nothing to do with it");
    assert_eq!(kept.main().basis, Basis::None);
    let later = kept.with(vec![(10_000, switch(501, 4, "other"))]);
    assert_eq!(later.named(), unseen());
    let idle = case([0, 0, 0, 0, 90_000], vec![(-500_000, switch(0, 120, "swapper/0"))]);
    assert_eq!(idle.unmatched().named(), unseen());
    let woken = case([0, 0, 0, 0, 90_000], vec![(-500_000, hack()), (10_000, waking(ME, 500))]);
    assert_eq!(woken.unmatched().named(), unseen(), "it was never seen to get the CPU");
}
