//! The programs that follow threads of others, on kernels with `PREEMPT_RT`.

use std::fmt::Write as _;

use super::replay::{MS, read_on, told};

const RT: &str = "kernel rt\n";

/// A thread with a period of 1 ms, and what happens 10 us after it has the CPU.
fn periods(kernel: &str, what: impl Fn(u64) -> String) -> (u64, u64, [u64; 4], u64) {
    let mut text = String::from("1 in\n2 arm 1000000\n3 out\n");
    for at_ns in (1..=40).map(|number| number * MS) {
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        text += &what(at_ns + 15_000);
        let _ = writeln!(text, "{} arm {}", at_ns + 90_000, at_ns + MS);
        let _ = writeln!(text, "{} out", at_ns + 100_000);
    }
    let (period, counts, late) = told(&read_on(kernel, &text));
    assert_eq!((period.period_ns, period.missed, counts.unmatched), (MS, 0, 0));
    (period.hits, late, counts.woken, counts.preempted)
}

#[test]
fn a_sleep_for_a_lock_of_the_kernel_is_no_wake_up() {
    let lock = |at_ns| format!("{at_ns} out=L\n{} kick\n{} in\n", at_ns + 20_000, at_ns + 30_000);
    assert_eq!(periods(RT, lock), (39, 40, [40, 0, 0, 0], 0));
}

#[test]
fn a_thread_with_a_signal_pending_does_not_go_to_sleep() {
    let stale = |at_ns| format!("{at_ns} out=S~\n{} in\n", at_ns + 20_000);
    assert_eq!(periods("", stale), (39, 40, [40, 0, 0, 0], 40));
    // One that sleeps may be on its run queue all the same.
    let sleeps = |at_ns| format!("{at_ns} out=S-\n{} kick\n{} in\n", at_ns + 5_000, at_ns + 9_000);
    assert_eq!(periods("", sleeps), (39, 40, [40, 0, 40, 0], 0));
}

#[test]
fn timers_that_the_kernel_arms_in_a_softirq_are_none_of_the_thread() {
    let text = "1 in\n2 event softirq 1\n3 event arm 5 900000 900000 abs\n4 event softirq_end 1\n\
                5 out\n900000 event expire #5\n900100 event waking 7\n900100 event expired\n\
                900200 in\n901000 out\n";
    for kernel in ["", RT] {
        let (_, counts, late) = told(&read_on(kernel, text));
        assert_eq!((counts.woken, late), ([1, 0, 0, 0], 0), "{kernel}");
    }
}

#[test]
fn a_thread_that_is_preempted_before_its_sleep_is_late_from_its_expiry_on() {
    let mut text = String::from("1 in\n2 arm 1000000\n3 out\n");
    for at_ns in (1..=40).map(|number| number * MS) {
        let _ = writeln!(text, "{} wake\n{} in", at_ns + 2_000, at_ns + 5_000);
        let _ = writeln!(text, "{} arm {}", at_ns + 90_000, at_ns + MS);
        let away = if at_ns % (4 * MS) == 0 { "out=R+" } else { "out" };
        let _ = writeln!(text, "{} {away}", at_ns + 100_000);
    }
    let (period, counts, late) = told(&read_on("", &text));
    assert_eq!((period.period_ns, period.hits, period.missed, counts.unmatched), (MS, 39, 0, 0));
    assert_eq!((counts.woken, late, counts.preempted), ([40, 0, 0, 0], 40, 10));
}
