//! The work of a thread from one expiry of its timer to the next.

use super::*;
use crate::kernel::out;

/// It has its CPU from 5 us on, and its work is done 95 us later.
fn cycle(events: Vec<(i64, Event)>) -> Case {
    let mut all = wake_up(hack(), 1, 1_500, 2_500, 5_000);
    all.extend(events);
    let case = case([1_500, 0, 1_000, 2_500, 95_000], all);
    let me = MeasuredThread { works: true, ..case.me.clone() };
    Case { me, ..case }
}

fn of(peak: &Peak, cause: Cause) -> Vec<(&str, u64)> {
    let parts = peak.blame.iter().filter(|part| part.cause == cause);
    parts.map(|part| (part.name.as_str(), part.ns)).collect()
}

#[test]
fn what_a_thread_does_with_its_cpu_is_its_own_work_and_an_interrupt_meanwhile_is_none() {
    let peak = cycle(vec![(20_000, irq(9)), (30_000, irq_end(9))]).peak();
    assert_eq!(of(&peak, Cause::OwnWork), [("own work", 85_000)]);
    assert_eq!(of(&peak, Cause::Hardirq)[0], ("irq 9", 10_000));
    assert!(peak.stages.is_none(), "{peak:?}");
}

#[test]
fn what_a_cpu_was_set_to_cuts_the_work_and_unknown_is_no_frequency() {
    let mut case = cycle(Vec::new());
    let set = |at_ns: i64, khz| SetFrequency { at_ns: T.saturating_add_signed(at_ns), khz };
    // Known from 20 us on, the highest for 10 us.
    let sets = [set(20_000, 800_000), set(60_000, 3_600_000), set(70_000, 3_500_000)];
    case.fake.frequencies = sets.to_vec();
    let of_work = |case: &Case| {
        let peak = case.clone().peak();
        let parts = of(&peak, Cause::OwnWork).into_iter();
        (parts.map(|(name, ns)| (name.to_owned(), ns)).collect::<Vec<_>>(), peak)
    };
    assert_eq!(of_work(&case).0, [("own work".into(), 95_000)], "what is highest is not known");
    case.wishes.highest_khz = HashMap::from([(0, 3_600_000)]);
    let (parts, peak) = of_work(&case);
    let low = "own work, CPU below its highest frequency";
    assert_eq!(parts, [(low.into(), 70_000), ("own work".into(), 25_000)]);
    assert_eq!(peak.blame.iter().map(|part| part.ns).sum::<u64>(), 100_000);
    let shown = peak.timeline.iter().filter(|moment| moment.what == "frequency");
    let shown: Vec<_> =
        shown.map(|one| (one.at, one.name.as_str(), one.detail.as_deref())).collect();
    let most = Some("at most 3600 MHz");
    let expected = [
        (20_000, "set to 800 MHz", most),
        (60_000, "set to 3600 MHz", most),
        (70_000, "set to 3500 MHz", most),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn who_preempts_a_thread_in_its_work_is_named_as_everywhere() {
    let away = flagged(out::PREEMPTED, switch(600, 4, "hog"));
    let peak = cycle(vec![(20_000, away), (60_000, switch(ME, 9, "timer"))]).peak();
    assert_eq!(of(&peak, Cause::Thread), [("hog", 40_000)]);
    assert_eq!(of(&peak, Cause::OwnWork), [("own work", 55_000)]);
}

/// It sleeps from 20 us on, and is woken by 600 at 60 us.
fn sleeps(how: u8, before: Option<Event>) -> Vec<(i64, Event)> {
    let mut events = vec![
        (20_000, flagged(how, switch(600, 120, "helper"))),
        (60_000, waking(ME, 600)),
        (61_000, switch(ME, 9, "timer")),
    ];
    events.extend(before.map(|event| (18_000, event)));
    events
}

#[test]
fn a_thread_that_sleeps_in_its_work_waits_for_who_wakes_it() {
    let peak = cycle(sleeps(out::SLEEPING, None)).peak();
    assert_eq!(of(&peak, Cause::Wait), [("woken by helper", 40_000)]);
    let part = peak.blame.iter().find(|part| part.cause == Cause::Wait).unwrap();
    assert_eq!(part.task.as_deref(), Some("helper/600"));
    let mut by_irq = sleeps(out::WAITING, None);
    by_irq.extend([(59_000, irq(9)), (60_500, irq_end(9))]);
    assert_eq!(of(&cycle(by_irq).peak(), Cause::Wait)[0].0, "woken by irq 9");
}

#[test]
fn a_thread_that_faults_and_sleeps_without_signals_waits_for_the_page() {
    let mut by_irq = sleeps(out::WAITING, Some(fault(ME)));
    by_irq.extend([(59_000, irq(9)), (60_500, irq_end(9))]);
    assert_eq!(of(&cycle(by_irq).peak(), Cause::PageFault)[0].0, "page fault");
    // A task that wakes it, as the child of vfork does, may be what it waited for.
    let peak = cycle(sleeps(out::WAITING, Some(fault(ME)))).peak();
    assert!(of(&peak, Cause::PageFault).is_empty(), "{peak:?}");
    assert_eq!(of(&peak, Cause::Wait), [("woken by helper", 40_000)]);
    // One that did not sleep is its own work, and it continues after that.
    let peak = cycle(sleeps(out::SLEEPING, Some(fault(ME)))).peak();
    assert!(of(&peak, Cause::PageFault).is_empty(), "{peak:?}");
    assert_eq!(of(&peak, Cause::Wait), [("woken by helper", 40_000)]);
}

#[test]
fn a_thread_that_sleeps_and_whose_wake_up_is_not_recorded_waits_for_nobody_known() {
    let mut events = sleeps(out::SLEEPING, None);
    events.remove(1);
    let peak = cycle(events).peak();
    assert!(of(&peak, Cause::Wait).is_empty(), "{peak:?}");
    let unexplained = of(&peak, Cause::Unexplained);
    assert!(unexplained.contains(&("asleep, who woke it is not recorded", 41_000)), "{peak:?}");
}

#[test]
fn a_mutex_that_a_thread_waits_for_in_its_work_names_its_owner() {
    let mut events = sleeps(out::SLEEPING, None);
    events.push((19_000, lock_owner(600, "helper")));
    let peak = cycle(events).peak();
    let part = peak.blame.iter().find(|part| part.cause == Cause::Lock).unwrap();
    assert_eq!((part.name.as_str(), part.task.as_deref()), ("PI mutex", Some("helper/600")));
    // From where the owner's priority was raised until the thread had the CPU.
    assert!(part.ns >= 41_000, "{peak:?}");
}

#[test]
fn a_cycle_behind_one_that_slept_waits_for_what_that_one_waited_for() {
    // It sleeps since 3 ms before the expiry. Woken, it works for 19 us, and arms its timer, which
    // is over by then: it sleeps for 10 us until that wakes it.
    let mut events = wake_up(hack(), 1, 66_000, 67_500, 70_000);
    events.extend([(-3_005_000, switch(ME, 9, "timer"))]);
    events.extend([(-3_000_000, flagged(out::FUTEX, switch(600, 120, "owner")))]);
    events.extend([(40_000, waking(ME, 600)), (41_000, switch(ME, 9, "timer"))]);
    events.extend([(60_000, flagged(out::SLEEPING, hack()))]);
    let late = case([66_000, 0, 1_500, 2_500, 30_000], events);
    let me = MeasuredThread { works: true, ..late.me.clone() };
    let peak = Case { me, ..late }.peak();
    assert_eq!(of(&peak, Cause::Wait)[0], ("woken by owner", 40_000), "{peak:?}");
    assert!(!of(&peak, Cause::Unexplained).iter().any(|(_, ns)| *ns > 1_000), "{peak:?}");
}

#[test]
fn a_sleep_is_named_by_what_the_kernel_says_that_it_is_for() {
    let named = |how, cause| {
        let peak = cycle(sleeps(how, None)).peak();
        let parts = of(&peak, cause);
        parts.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect::<Vec<_>>()
    };
    let is = |name: &str| vec![(name.to_owned(), 40_000)];
    assert_eq!(named(out::IO, Cause::Wait), is("I/O, woken by helper"));
    assert_eq!(named(out::FUTEX, Cause::Wait), is("futex, woken by helper"));
    assert_eq!(named(out::PI_FUTEX, Cause::Lock), is("PI mutex, woken by helper"));
    assert_eq!(named(out::LOCK, Cause::Lock), is("lock of the kernel, woken by helper"));
    let page = cycle(sleeps(out::IO, Some(fault(ME)))).peak();
    assert_eq!(of(&page, Cause::PageFault), [("page fault", 40_000)]);
    let mut events = sleeps(out::FUTEX, None);
    events.remove(1);
    let peak = cycle(events).peak();
    assert_eq!(of(&peak, Cause::Wait), [("futex, who woke it is not recorded", 41_000)]);
}

#[test]
fn what_a_long_cycle_takes_to_explain_does_not_grow_with_the_square_of_its_events() {
    let of = |sleeps: u64| {
        let each = |n: u64| {
            let at_ns = 20_000 + n * 10_000;
            [
                (at_ns, flagged(out::SLEEPING, switch(600, 120, "helper"))),
                (at_ns + 1_000, fault(7)),
                (at_ns + 5_000, waking(ME, 600)),
                (at_ns + 6_000, switch(ME, 9, "timer")),
            ]
        };
        let events = (0..sleeps).flat_map(each);
        let events = events.map(|(at_ns, event)| (i64::try_from(at_ns).unwrap(), event));
        let mut case = cycle(events.collect());
        let work_ns = i64::try_from(sleeps * 10_000).unwrap();
        case.late.latency_ns += work_ns;
        case.late.stages.user_ns += work_ns;
        assert_eq!(of(&case.peak(), Cause::Wait), [("woken by helper", sleeps * 5_000)]);
        crate::testing::cpu_ns(|| case.peak())
    };
    let is_fast = || of(8_000) < 80 * of(500);
    assert!(crate::testing::eventually(is_fast), "8000 sleeps take 80 times as long as 500");
}
