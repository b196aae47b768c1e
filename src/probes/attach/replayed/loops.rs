//! What a run says of an event loop: a thread that waits in one place for its timer and for others.

use std::fmt::Write as _;

use super::*;
use crate::{kernel::replay::FIRST_TID, run::CycleBegin};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// From a message to the CPU, and from the end of the work for it to where expiries are read.
const WAKE_NS: u64 = US;
const READ_NS: u64 = 5 * US;

/// The thread goes back to its wait, a descriptor of epoll, or to another.
fn wait(text: &mut String, at_ns: u64, descriptor: u32) {
    let _ = writeln!(text, "{at_ns} 0 syscall 232 {descriptor}\n{at_ns} 0 switch S 0");
}

fn resume(text: &mut String, at_ns: u64) {
    let _ = writeln!(text, "{at_ns} 0 switch R {FIRST_TID}\n{at_ns} 0 sysret");
}

fn message(text: &mut String, at_ns: u64) {
    let _ = writeln!(text, "{at_ns} 0 call\n{at_ns} 0 waking {FIRST_TID}\n{at_ns} 0 call_end");
    resume(text, at_ns + WAKE_NS);
}

/// A timer of 1 ms, whose work takes 60 us, and a message halfway through each period; `work_ns`
/// says how long the work for that takes. Each expiry finds the thread in the wait, or at work.
fn events(periods: u64, work_ns: impl Fn(u64) -> u64) -> String {
    events_from(1, periods, work_ns)
}

/// It starts a period before the first of them.
fn events_from(first: u64, periods: u64, work_ns: impl Fn(u64) -> u64) -> String {
    let start_ns = (first - 1) * MS;
    let mut text = format!("{} 0 fork {FIRST_TID}\n", start_ns + 500);
    resume(&mut text, start_ns + 1_000);
    let _ = writeln!(text, "{} 0 arm 1 {1} {1} abs", start_ns + 1_500, first * MS);
    wait(&mut text, start_ns + 2_000, 5);
    let mut busy_until_ns = 0;
    for number in first..=periods {
        let (due_ns, next_ns) = (number * MS, (number + 1) * MS);
        let irq_ns = due_ns + US;
        let _ = writeln!(text, "{irq_ns} 0 timer_irq\n{irq_ns} 0 expire #1");
        let is_asleep = busy_until_ns < due_ns;
        if is_asleep {
            let _ = writeln!(text, "{} 0 waking {FIRST_TID}", irq_ns + US);
        }
        let _ = writeln!(text, "{0} 0 expired\n{0} 0 timer_irq_end", irq_ns + US);
        let read_ns = match is_asleep {
            true => {
                resume(&mut text, irq_ns + 2 * US);
                irq_ns + 2 * US + READ_NS
            }
            false => busy_until_ns + READ_NS,
        };
        let _ = writeln!(text, "{read_ns} 0 arm 1 {next_ns} {next_ns} abs");
        wait(&mut text, read_ns + 60 * US, 5);
        message(&mut text, due_ns + 400 * US);
        busy_until_ns = due_ns + 400 * US + WAKE_NS + work_ns(number);
        if busy_until_ns < next_ns {
            wait(&mut text, busy_until_ns, 5);
        }
    }
    text
}

fn measured(text: &str, deadline_ns: u64, periods: u64) -> ReplayedEnd {
    measured_between(text, deadline_ns, [100 * MS, periods * MS])
}

fn measured_between(text: &str, deadline_ns: u64, [start_ns, end_ns]: [u64; 2]) -> ReplayedEnd {
    let asked = ReplayRequest::name("loop", Some(deadline_ns), [start_ns, end_ns]);
    let tasks = format!("task {FIRST_TID} 49 loop {FIRST_TID}\n");
    let mut run = ReplayedRun::start(&asked, &tasks, tempfile::tempdir().unwrap());
    let at = |line: &&str| line.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or(0_u64);
    let lines: Vec<&str> = text.lines().collect();
    let mut from = 0;
    for until_ns in (1..=end_ns / POLL_NS).map(|poll| poll * POLL_NS) {
        let to = lines.partition_point(|line| at(line) < until_ns);
        run.step(&lines[from..to].join("\n"), until_ns);
        from = to;
    }
    run.finish()
}

fn ns(ns: u64) -> Option<i64> {
    i64::try_from(ns).ok()
}

#[test]
fn the_cycle_of_an_event_loop_ends_at_its_first_return_to_its_wait() {
    let end = measured(&events(1_000, |_| 200 * US), 150 * US, 1_000);
    let row = end.row("loop");
    assert_eq!((row.period_ns, row.missed, row.cycle_begin), (ns(MS), Some(0), CycleBegin::Timer));
    // Neither the time in the wait nor the work for messages is in it.
    let took_ns = 3 * US + READ_NS + 60 * US;
    let response = row.response.unwrap();
    assert_eq!((response.max, row.over.unwrap().cycles), (ns(took_ns), 0));
    assert!((899..=901).contains(&response.count), "{row:?}");
    let other = row.other_work.unwrap();
    assert_eq!((other.max, row.kept_waiting), (ns(WAKE_NS + 200 * US), None));
    assert!((899..=901).contains(&other.count), "{row:?}");
}

#[test]
fn the_first_cycles_of_an_event_loop_end_at_its_wait_as_well() {
    // It starts when the measured time has begun.
    let text = events_from(61, 150, |_| 200 * US);
    let end = measured_between(&text, 150 * US, [0, 150 * MS]);
    let row = end.row("loop");
    // The last one is not over.
    assert_eq!((row.response.unwrap().count, row.over.unwrap().cycles), (89, 0), "{row:?}");
    assert_eq!(row.response.unwrap().max, ns(3 * US + READ_NS + 60 * US));
}

#[test]
fn a_handler_that_keeps_a_due_expiry_waiting_makes_that_cycle_late() {
    // In every tenth period the work for a message lasts into the next.
    let work_ns = |number: u64| if number.is_multiple_of(10) { 800 * US } else { 50 * US };
    let end = measured(&events(1_000, work_ns), 150 * US, 1_000);
    let row = end.row("loop");
    assert_eq!((row.period_ns, row.missed), (ns(MS), Some(0)), "{row:?}");
    let kept_ns = 400 * US + WAKE_NS + 800 * US + READ_NS - MS;
    let kept = row.kept_waiting.unwrap();
    assert!((89..=91).contains(&kept.count) && kept.max == ns(kept_ns), "{row:?}");
    let over = row.over.unwrap();
    assert_eq!((over.cycles, row.response.unwrap().max), (kept.count, ns(kept_ns + 60 * US)));
    assert_eq!((over.late_ns, over.unseen_ns), (kept.count * kept_ns, 0));
    assert_eq!(row.other_work.unwrap().max, ns(WAKE_NS + 800 * US + READ_NS));
}

/// Each tenth period the timer is read only `late_ns` after its expiry: with it those since are
/// read. Where the thread is asleep it is woken by the expiry; else it has worked for a message.
fn read_late(periods: u64, late_ns: u64, is_asleep: bool) -> String {
    let mut text = format!("500 0 fork {FIRST_TID}\n");
    resume(&mut text, 1_000);
    let _ = writeln!(text, "1500 0 arm 1 {MS} {MS} abs");
    wait(&mut text, 2_000, 5);
    let mut number = 1;
    while number <= periods {
        let due_ns = number * MS;
        let is_late = number.is_multiple_of(10);
        if is_late && !is_asleep {
            message(&mut text, due_ns - 100 * US);
        }
        let irq_ns = due_ns + US;
        let _ = writeln!(text, "{irq_ns} 0 timer_irq\n{irq_ns} 0 expire #1");
        if !is_late || is_asleep {
            let _ = writeln!(text, "{irq_ns} 0 waking {FIRST_TID}");
        }
        let _ = writeln!(text, "{irq_ns} 0 expired\n{irq_ns} 0 timer_irq_end");
        if !is_late || is_asleep {
            resume(&mut text, irq_ns + US);
        }
        let read_ns = due_ns + if is_late { late_ns } else { READ_NS };
        number = read_ns / MS + 1;
        let _ = writeln!(text, "{read_ns} 0 syscall 0 7");
        let _ = writeln!(text, "{read_ns} 0 arm 1 {0} {0} abs", number * MS);
        wait(&mut text, read_ns + 60 * US, 5);
    }
    text
}

#[test]
fn expiries_that_are_read_together_are_judged_one_by_one() {
    for is_asleep in [true, false] {
        let end = measured(&read_late(1_000, 2_800 * US, is_asleep), MS, 1_000);
        let row = end.row("loop");
        assert_eq!((row.period_ns, row.missed), (ns(MS), Some(0)), "{row:?}");
        let response = row.response.unwrap();
        assert_eq!(response.max, ns(2_860 * US), "{row:?}");
        assert!((898..=901).contains(&response.count), "{row:?}");
        // Three were read together: two of them were late, and the last was in time.
        let over = row.over.unwrap();
        assert!([178, 180].contains(&over.cycles), "{row:?}");
        assert_eq!(over.unseen_ns, 0, "{row:?}");
        let parts_ns = over.late_ns + over.run_ns + over.ready_ns + over.wait_ns;
        assert_eq!(parts_ns, over.cycles / 2 * (2_860 + 1_860) * US, "{row:?}");
    }
}

#[test]
fn hundreds_of_expiries_that_are_read_together_are_judged_one_by_one() {
    let end = measured(&read_late(1_000, 300_500 * US, false), MS, 1_000);
    let row = end.row("loop");
    // Three times 300 were late, and the last one that was read with them was in time.
    assert_eq!((row.period_ns, row.missed), (ns(MS), Some(0)), "{row:?}");
    let (response, over) = (row.response.unwrap(), row.over.unwrap());
    assert_eq!((response.max, over.cycles), (ns(300_560 * US), 3 * 300), "{row:?}");
}

#[test]
fn expiries_that_the_thread_passes_over_are_missed() {
    // The same, but it arms its timer itself.
    let text = read_late(1_000, 2_800 * US, true).replace(" syscall 0 7", " syscall 286 7");
    let row = measured(&text, MS, 1_000).row("loop").clone();
    let over = row.over.unwrap();
    assert!([89, 90].contains(&over.cycles), "{row:?}");
    assert_eq!(row.missed, Some(2 * over.cycles), "{row:?}");
}

#[test]
fn another_wait_in_the_midst_of_the_work_is_part_of_its_cycle() {
    let mut text = format!("500 0 fork {FIRST_TID}\n");
    resume(&mut text, 1_000);
    let _ = writeln!(text, "1500 0 arm 1 {MS} {MS} abs");
    wait(&mut text, 2_000, 5);
    for due_ns in (1..=500).map(|number| number * MS) {
        let irq_ns = due_ns + US;
        let _ = writeln!(text, "{irq_ns} 0 timer_irq\n{irq_ns} 0 expire #1");
        let _ = writeln!(text, "{irq_ns} 0 waking {FIRST_TID}\n{irq_ns} 0 expired");
        let _ = writeln!(text, "{irq_ns} 0 timer_irq_end");
        resume(&mut text, due_ns + 3 * US);
        let next_ns = due_ns + MS;
        let _ = writeln!(text, "{} 0 arm 1 {next_ns} {next_ns} abs", due_ns + 8 * US);
        // It asks another descriptor, and has the answer 100 us later.
        wait(&mut text, due_ns + 20 * US, 9);
        message(&mut text, due_ns + 120 * US);
        wait(&mut text, due_ns + 150 * US, 5);
    }
    let end = measured(&text, 100 * US, 500);
    let row = end.row("loop");
    assert_eq!((row.period_ns, row.response.unwrap().max), (ns(MS), ns(150 * US)));
    let over = row.over.unwrap();
    assert_eq!((over.wait_ns, row.other_work), (over.cycles * 100 * US, None));
}

/// As [`events`], but the message comes with the expiry: the loop finds it as it returns to its
/// wait, and does not sleep there.
fn ready_at_the_wait(periods: u64, work_ns: impl Fn(u64) -> u64) -> String {
    let mut text = format!("500 0 fork {FIRST_TID}\n");
    resume(&mut text, 1_000);
    let _ = writeln!(text, "1500 0 arm 1 {MS} {MS} abs");
    wait(&mut text, 2_000, 5);
    let enter = |text: &mut String, at_ns: u64| {
        let _ = writeln!(text, "{at_ns} 0 syscall 232 5\n{at_ns} 0 enter");
    };
    let mut busy_until_ns = 0;
    for number in 1..=periods {
        let (due_ns, next_ns) = (number * MS, (number + 1) * MS);
        let irq_ns = due_ns + US;
        let _ = writeln!(text, "{irq_ns} 0 timer_irq\n{irq_ns} 0 expire #1");
        let is_asleep = busy_until_ns < due_ns;
        if is_asleep {
            let _ = writeln!(text, "{irq_ns} 0 waking {FIRST_TID}");
        }
        let _ = writeln!(text, "{irq_ns} 0 expired\n{irq_ns} 0 timer_irq_end");
        if is_asleep {
            resume(&mut text, due_ns + 3 * US);
        } else {
            enter(&mut text, busy_until_ns);
            let _ = writeln!(text, "{busy_until_ns} 0 sysret");
        }
        let read_ns = busy_until_ns.max(due_ns + 3 * US) + READ_NS;
        let _ = writeln!(text, "{read_ns} 0 arm 1 {next_ns} {next_ns} abs");
        let back_ns = read_ns + 60 * US;
        enter(&mut text, back_ns);
        let _ = writeln!(text, "{back_ns} 0 sysret");
        busy_until_ns = back_ns + work_ns(number);
        if busy_until_ns < next_ns {
            enter(&mut text, busy_until_ns);
            wait(&mut text, busy_until_ns + US, 5);
        }
    }
    text
}

#[test]
fn a_return_to_the_wait_that_does_not_sleep_ends_the_cycle() {
    let end = measured(&ready_at_the_wait(1_000, |_| 200 * US), 150 * US, 1_000);
    let row = end.row("loop");
    let (response, other) = (row.response.unwrap(), row.other_work.unwrap());
    assert_eq!((response.max, row.over.unwrap().cycles), (ns(3 * US + READ_NS + 60 * US), 0));
    // It does not work in the wait in which it sleeps.
    assert_eq!((other.max, other.mean, row.kept_waiting), (ns(200 * US), ns(200 * US), None));
    assert!((899..=901).contains(&response.count) && (899..=901).contains(&other.count));
    assert_eq!((row.period_ns, row.missed), (ns(MS), Some(0)));
}

#[test]
fn work_found_at_the_wait_keeps_a_due_expiry_waiting() {
    let work_ns = |number: u64| if number.is_multiple_of(10) { 1_200 * US } else { 100 * US };
    let end = measured(&ready_at_the_wait(1_000, work_ns), 150 * US, 1_000);
    let row = end.row("loop");
    let kept_ns = 3 * US + READ_NS + 60 * US + 1_200 * US - MS + READ_NS;
    let (kept, over) = (row.kept_waiting.unwrap(), row.over.unwrap());
    assert!((89..=91).contains(&kept.count) && kept.max == ns(kept_ns), "{row:?}");
    assert_eq!((over.cycles, row.response.unwrap().max), (kept.count, ns(kept_ns + 60 * US)));
    assert_eq!((over.late_ns, over.unseen_ns), (kept.count * kept_ns, 0));
    assert_eq!(row.other_work.unwrap().max, ns(1_200 * US), "{row:?}");
    assert_eq!((row.period_ns, row.missed), (ns(MS), Some(0)), "{row:?}");
}
