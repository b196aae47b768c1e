//! The programs of the recorder, with made-up events of one thread.

use std::sync::atomic::Ordering::Relaxed;

use crate::kernel::{
    EventKind, RunsAhead, out,
    replay::{record, record_all},
    woken,
};

/// The thread sleeps until 1 ms.
const SLEEPS: &str = "1000 0 switch R 7\n1500 0 start 1000000 1000000 abs\n2000 0 switch S 0\n";

/// When the interrupt began, the callback, the wake-up, and whether that was in a softirq.
fn woken(kernel: &str, prio: i32, events: &str) -> [u64; 4] {
    let text = format!("{kernel}task 7 {prio} seven\n{SLEEPS}{events}");
    let (_, records) = record_all(&text, &[(7, prio)]);
    let record = records.get(0).unwrap();
    assert_eq!(record.expires_ns.load(Relaxed), 1_000_000, "{events}");
    let times = [&record.entry_ns, &record.callback_ns, &record.waking_ns];
    let [entry, callback, waking] = times.map(|at_ns| at_ns.load(Relaxed));
    [entry, callback, waking, record.in_softirq.load(Relaxed).into()]
}

#[test]
fn an_interrupt_that_no_event_tells_of_begins_when_its_timers_are_told() {
    let expiry = "1001500 0 expire 7\n1002000 0 waking 7\n1002000 0 expired\n";
    let unseen = format!("1001000 0 !timer_irq\n{expiry}1002500 0 !timer_irq_end\n");
    let earlier = "500000 0 timer_irq\n501000 0 timer_irq_end\n";
    for kernel in ["", "kernel expire_has_time\n"] {
        for before in ["", earlier] {
            let found = woken(kernel, 49, &format!("{before}{unseen}1003000 0 switch R 7\n"));
            assert_eq!(found, [1_001_000, 1_001_500, 1_002_000, 0], "{kernel}{before}");
        }
    }
    let seen = format!("1000800 0 timer_irq\n{expiry}1002500 0 timer_irq_end\n");
    assert_eq!(woken("", 49, &seen), [1_000_800, 1_001_500, 1_002_000, 0]);
    // It became due during an interrupt, which looked again.
    let within = format!("900000 0 timer_irq\n{expiry}1002500 0 timer_irq_end\n");
    assert!(woken("", 49, &within)[0] <= 1_001_500);
}

#[test]
fn the_interrupt_of_a_softirq_that_no_event_tells_of_begins_where_it_was_raised() {
    let raise = "1001000 0 !timer_irq\n1001200 0 raise 8\n1001500 0 !timer_irq_end\n";
    let softirq = "1300000 0 softirq 8\n1300100 0 expire 7\n1300200 0 waking 7\n\
                   1300200 0 expired\n1300300 0 softirq_end 8\n";
    let found = woken("kernel rt\n", 120, &format!("{raise}{softirq}"));
    assert_eq!(found, [1_001_200, 1_300_100, 1_300_200, 1]);
    let seen = raise.replace('!', "");
    let found = woken("kernel rt\n", 120, &format!("{seen}{softirq}"));
    assert_eq!(found, [1_001_000, 1_300_100, 1_300_200, 1]);
    // The softirq waited since before the timer was due, and no interrupt had to come.
    let early = "900000 0 timer_irq\n901200 0 raise 8\n902000 0 timer_irq_end\n";
    let found = woken("kernel rt\n", 120, &format!("{early}{softirq}"));
    assert_eq!(found, [1_000_000, 1_300_100, 1_300_200, 1]);
}

#[test]
fn stages_alone_begin_when_timers_are_told_the_time() {
    let expiry = "1001000 0 !timer_irq\n1001500 0 expire 7\n1002000 0 waking 7\n\
                  1002000 0 expired\n1002500 0 !timer_irq_end\n1003000 0 switch R 7\n";
    for kernel in ["kernel stages\n", "kernel stages\nkernel expire_has_time\n"] {
        assert_eq!(woken(kernel, 49, expiry), [1_001_000, 1_001_000, 1_002_000, 0], "{kernel}");
    }
    let softirq = "1001000 0 !timer_irq\n1001200 0 raise 8\n1001500 0 !timer_irq_end\n\
                   1300000 0 softirq 8\n1300100 0 expire 7\n1300200 0 waking 7\n\
                   1300200 0 expired\n1300300 0 softirq_end 8\n";
    let found = woken("kernel stages\nkernel rt\n", 120, softirq);
    assert_eq!(found, [1_001_200, 1_300_100, 1_300_200, 1]);
}

#[test]
fn a_thread_is_stopped_until_it_is_woken_and_no_later_wake_up_ends_that() {
    let stop = "2000 0 switch T 0\n5000 0 waking 7\n5500 0 switch S 7\n";
    let later = "6000 0 switch S 0\n9000 0 waking 7\n9500 0 switch S 7\n";
    // The freezer of a cgroup lets it sleep as for an event.
    let frozen = stop.replace("switch T 0", "switch SF 0");
    for (kernel, stop) in [("", stop), ("kernel stages\n", stop), ("", &frozen)] {
        let text = format!("{kernel}task 7 49 seven\n1000 0 switch S 7\n{stop}{later}");
        let (_, records) = record_all(&text, &[(7, 49)]);
        let record = records.get(0).unwrap();
        let times = [&record.stopped_from_ns, &record.stopped_until_ns, &record.switch_ns];
        assert_eq!(times.map(|at_ns| at_ns.load(Relaxed)), [2_000, 5_000, 9_500], "{kernel}");
    }
}

/// The switches and wake-ups of CPU 0: the task, its flags, and what lets it run ahead.
fn flags(events: &str) -> Vec<(u32, u8, Option<RunsAhead>)> {
    let text = format!("task 7 49 seven\ntask 8 -1 eight\ntask 9 120 nine\n{events}");
    let reader = record(&text, &[(7, 49), (8, -1)]);
    let mut found = Vec::new();
    assert!(reader.events(0, 0, u64::MAX, &mut found));
    let told = found.iter().filter_map(|event| match event.kind {
        EventKind::Switch { ahead, .. } => Some((event.pid, event.flags, ahead)),
        EventKind::Waking { .. } => Some((event.pid, event.flags, None)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_deadline_thread_whose_budget_is_used_up_does_not_leave_for_others() {
    let budget = |flags: &str| format!("1000 0 switch R 8\n1500 0 budget 8 {flags}\n");
    let out =
        |flags: &str, state: &str| flags_of(&format!("{}2000 0 switch {state} 9\n", budget(flags)));
    assert_eq!(out("1 0", "R"), out::BUDGET);
    assert_eq!(out("0 0", "R+"), out::PREEMPTED);
    assert_eq!(out("1 1", "R"), out::SLEEPING, "it has yielded");
    assert_eq!(out("1 0", "S"), out::SLEEPING);
    let woken = flags_of(&format!("{}2000 0 switch S 9\n3000 0 waking 8\n", budget("1 0")));
    assert_eq!(woken, woken::BUDGET);
}

/// Those of the last event.
fn flags_of(events: &str) -> u8 {
    flags(events).last().unwrap().1
}

#[test]
fn a_task_leaves_for_what_it_waits_for_though_proxy_execution_keeps_it_on_its_queue() {
    let out = |state: &str| flags_of(&format!("1000 0 switch R 7\n2000 0 switch {state} 9\n"));
    assert_eq!(out("D~"), out::WAITING, "the task that has the mutex runs for it");
    assert_eq!(out("S~"), out::PREEMPTED, "with a signal pending");
}

#[test]
fn a_cpu_that_goes_idle_beside_a_ready_task_throttles_nobody() {
    // As with core scheduling or a scheduler of sched_ext.
    let events = "1000 0 switch R 9\n2000 0 waking 7\n3000 0 switch R 0\n4000 0 switch R 7\n";
    let expected = [(9, out::PREEMPTED, None), (7, 0, None), (0, out::PREEMPTED, None)];
    assert_eq!(flags(events)[..3], expected);
}

#[test]
fn real_time_throttling_is_told_of_the_thread_and_of_who_runs_then() {
    let events = "1000 0 switch R 7\n1500 0 throttle 1\n2000 0 switch R 9\n\
                  3000 0 throttle 0\n4000 0 switch R 7\n5000 0 switch R+ 9\n";
    let throttled = Some(RunsAhead::RealTimeThrottled);
    let expected = [
        (7, out::PREEMPTED, None),
        (9, out::THROTTLING, throttled),
        (7, out::PREEMPTED, None),
        (9, out::PREEMPTED, None),
    ];
    assert_eq!(flags(events), expected);
    let woken = "1000 0 switch R 7\n2000 0 switch S 9\n3000 0 throttle 1\n4000 0 waking 7\n";
    assert_eq!(flags_of(woken), woken::THROTTLING);
}

#[test]
fn a_task_that_the_fair_server_runs_is_told_where_it_comes_and_at_each_wake_up() {
    let events = "1000 0 switch R 7\n1500 0 serve 9 1\n2000 0 switch R+ 9\n\
                  2500 0 waking 7\n3000 0 serve 9 0\n3500 0 waking 7\n";
    let served = Some(RunsAhead::FairServer);
    let expected = [
        (7, out::PREEMPTED, None),
        (9, out::PREEMPTED, served),
        (7, woken::SERVED, None),
        (7, 0, None),
    ];
    assert_eq!(flags(events), expected);
    // Another server of the kernel: that of sched_ext.
    assert_eq!(flags("1000 0 switch R 7\n1500 0 serve 9 2\n2000 0 switch R+ 9\n")[1].2, None);
}

#[test]
fn each_handler_of_a_shared_line_has_its_name_and_its_time() {
    let events = "1000 0 irq 16 ehci_hcd:usb1\n1500 0 irq_end 16\n\
                  1500 0 irq 16 a_driver_with_a_long_name\n9000 0 irq_end 16\n";
    let reader = record(&format!("task 7 49 seven\n{events}"), &[(7, 49)]);
    let mut found = Vec::new();
    assert!(reader.events(0, 0, u64::MAX, &mut found));
    let told = found.iter().filter_map(|event| match event.kind {
        EventKind::IrqEntry { line, action } => Some((event.at_ns, line, action)),
        _ => None,
    });
    let expected = [(1_000, 16, *b"ehci_hcd:usb1\0\0\0"), (1_500, 16, *b"a_driver_with_a\0")];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_priority_that_a_running_task_inherits_is_an_event_of_its_cpu() {
    // The task 9 has CPU 0, and 7 waits for its lock on CPU 1.
    let events = "1000 0 switch R 9\n2000 1 switch R 7\n3000 1 pi_wait 9\n4000 1 switch S 0\n\
                  5000 0 pi_done 9\n6000 0 waking 7\n";
    let text = format!("task 7 49 seven\ntask 9 120 nine\n{events}");
    let reader = record(&text, &[(7, 49)]);
    let told = |from_ns, cpu| {
        let mut found = Vec::new();
        assert!(reader.events(cpu, from_ns, u64::MAX, &mut found));
        let of = found.iter().filter(|event| matches!(event.kind, EventKind::Priority { .. }));
        of.map(|event| (event.at_ns, event.pid, event.prio)).collect::<Vec<_>>()
    };
    assert_eq!(told(0, 0), [(3_000, 9, 49), (5_000, 9, 120)]);
    assert_eq!(told(4_500, 0), [(3_000, 9, 49), (5_000, 9, 120)], "it still has the CPU");
    assert!(told(0, 1).is_empty());
}
