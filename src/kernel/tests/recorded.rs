//! The programs of the recorder, with made-up events of one thread.

use std::sync::atomic::Ordering::Relaxed;

use crate::kernel::replay::record_all;

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
