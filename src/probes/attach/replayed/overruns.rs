//! What a run says of a thread whose work lasts for longer than its period.

use tardy_hot::stages::Stages;

use super::{
    tests::{MS, ns, of},
    *,
};
use crate::kernel::replay::machine::{
    CALL_NS, LATE_NS, Machine, RETURN_NS, Step, Step::*, TaskPlan,
};

#[test]
fn work_that_takes_longer_than_its_period_is_later_by_the_rest_each_time() {
    // Of 20 cycles only the first begins with a sleep.
    let mut steps = vec![UntilNext(4 * MS, 0), Work(6 * MS)];
    steps.extend([UntilAfterLast(4 * MS), Work(6 * MS)].repeat(19));
    let measured = [100 * MS, 3_100 * MS];
    let end = of(vec![TaskPlan::fair("overrun", &steps)], "overrun", Some(4 * MS), measured);
    let row = end.row("overrun");
    let response = row.response.unwrap();
    // Up to where it arms the timer for the second cycle, and from there for the third.
    let first_ns = LATE_NS + RETURN_NS + 6 * MS + CALL_NS / 2;
    let each_ns = LATE_NS + 6 * MS + CALL_NS / 2;
    // The last one ends with its sleep.
    assert_eq!(response.max, ns(first_ns + 19 * (each_ns - 4 * MS) + CALL_NS / 2), "{row:?}");
    assert_eq!(row.over.unwrap().cycles, response.count);
    assert!(response.count > 400, "{row:?}");
}

#[test]
fn a_cycle_that_begins_behind_the_one_before_was_not_woken() {
    // Each fifth cycle lasts for 6 ms of a period of 4 ms: the next begins as soon as that ends.
    let steps = [UntilNext(20 * MS, 0), Work(6 * MS), UntilAfterLast(4 * MS), Work(3 * MS)];
    let end =
        of(vec![TaskPlan::fair("behind", &steps)], "behind", Some(4 * MS), [100 * MS, 4_100 * MS]);
    let begun_ns = |late: &Late| late.stages.handler_ns;
    let (behind, woken): (Vec<&Late>, Vec<&Late>) =
        end.late_cycles.iter().partition(|late| begun_ns(late) > MS as i64);
    assert!(behind.len() >= 35 && woken.len() >= 35, "{:?}", end.late_cycles);
    for late in behind {
        let Stages { irq_ns, softirq_ns, dispatch_ns, .. } = late.stages;
        assert_eq!((irq_ns, softirq_ns, dispatch_ns), (0, 0, 0), "{late:?}");
    }
}

#[test]
fn periods_that_a_thread_works_through_are_missed() {
    // Every fifth cycle takes the time of two and a half, and it continues with the next that
    // comes.
    let cycle = |work_ns| [UntilNext(20 * MS, 0), Work(work_ns)];
    let steps: Vec<Step> = [50, 1, 1, 1, 1].iter().flat_map(|ms| cycle(ms * MS)).collect();
    let measured = [300 * MS, 3_100 * MS];
    let end = of(vec![TaskPlan::fair("skips", &steps)], "skips", Some(15 * MS), measured);
    let row = end.row("skips");
    assert_eq!((row.period_ns, row.unmatched), (ns(20 * MS), 0));
    assert_eq!((row.missed, row.over.unwrap().cycles), (Some(40), 20));
    // Every period is in one of two counts.
    assert_eq!(row.lateness.unwrap().count + 40, (3_100 - 300) / 20);
}

/// What 7.2 tells of the same: a timer that is over when it is armed never expires.
fn taken_off(happened: Happened) -> Happened {
    let Happened { tasks, lines } = happened;
    let mut is_over = false;
    let lines = lines.into_iter().flat_map(|(at_ns, line)| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let word = words[2].as_str();
        let due_ns = words.get(3).and_then(|due| due.parse::<u64>().ok());
        if word == "start" && due_ns.is_some_and(|due_ns| due_ns <= at_ns) {
            is_over = true;
            return vec![(at_ns, line), (at_ns, format!("{at_ns} 0 start_expired"))];
        }
        let is_gone = is_over && ["timer_irq", "expire", "waking", "expired"].contains(&word);
        if is_over && word == "timer_irq_end" {
            is_over = false;
            return Vec::new();
        }
        if is_gone { Vec::new() } else { vec![(at_ns, line)] }
    });
    Happened { tasks, lines: lines.collect() }
}

#[test]
fn an_overrun_is_one_where_the_timer_never_expires() {
    let mut steps = vec![UntilNext(4 * MS, 0), Work(6 * MS)];
    steps.extend([UntilAfterLast(4 * MS), Work(6 * MS)].repeat(19));
    let happened = || Machine::run(vec![TaskPlan::fair("overrun", &steps)], 3_100 * MS);
    let asked = ReplayRequest::name("overrun", Some(4 * MS), [100 * MS, 3_100 * MS]);
    let of = |happened: Happened| {
        let row = run(&asked, &happened).row("overrun").clone();
        (row.response, row.over.map(|over| over.cycles))
    };
    let expired = of(happened());
    assert_eq!(of(taken_off(happened())), expired);
}
