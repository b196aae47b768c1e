//! The cause behind a softirq, an interrupt or a kworker.

use super::*;
use crate::kernel::function;

/// The address of the first function that a case knows.
const FIRST: u64 = 0x1000;
/// What another CPU asks for.
const CALL: u32 = 4;

/// A softirq before the switch, in which this happens.
fn in_softirq(number: u32, events: &[(i64, Event)]) -> Case {
    let mut found = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    found.extend([(4_000, softirq(number)), (58_000, softirq_end(number))]);
    found.extend(events);
    case([2_000, 0, 1_000, 57_000, 2_000], found).stack(1, &["foo_fn.isra.0"])
}

fn ns_of(case: &Case, name: &str) -> u64 {
    case.peak().blame.iter().filter(|part| part.name == name).map(|part| part.ns).sum()
}

#[test]
fn a_softirq_that_runs_a_long_timer_function() {
    let case = in_softirq(1, &[(55_000, function_end(function::TIMER, 500, 45_000, FIRST))]);
    assert_eq!(case.named(), is(Cause::Softirq, "TIMER: foo_fn", 45_000));
    assert_eq!(case.main().basis, Basis::Measured);
    assert_eq!(ns_of(&case, "TIMER"), 9_000, "what other timers took");
    let shown = case.peak().timeline;
    let function = shown.iter().find(|moment| moment.what == "function").unwrap();
    assert_eq!(
        (function.name.as_str(), function.at, function.ns),
        ("foo_fn", 10_000, Some(45_000))
    );
}

#[test]
fn a_tasklet_or_work_in_a_softirq() {
    let events = [(55_000, function_end(function::TASKLET, 500, 45_000, FIRST))];
    assert_eq!(in_softirq(6, &events).named(), is(Cause::Softirq, "TASKLET: foo_fn", 45_000));
    let events = [(55_000, function_end(function::WORK, 500, 45_000, FIRST))];
    assert_eq!(in_softirq(0, &events).named(), is(Cause::Softirq, "HI: foo_fn", 45_000));
    assert_eq!(in_softirq(1, &events).named(), is(Cause::Softirq, "TIMER", 54_000), "not there");
}

#[test]
fn a_softirq_that_polls_a_device() {
    let case =
        in_softirq(3, &[(30_000, poll_end("eth0", 26_000)), (57_000, poll_end("eth1", 27_000))]);
    assert_eq!(case.named(), is(Cause::Softirq, "NET_RX: eth1", 27_000));
    assert_eq!((ns_of(&case, "NET_RX: eth0"), ns_of(&case, "NET_RX")), (26_000, 1_000));
    let shown = case.peak().timeline;
    let poll = shown.iter().find(|moment| moment.what == "poll").unwrap();
    assert_eq!(poll.detail.as_deref(), Some("63 packets, at most 64"));
    let backlog = [(55_000, function_end(function::POLL, 500, 45_000, FIRST))];
    assert_eq!(in_softirq(3, &backlog).named(), is(Cause::Softirq, "NET_RX: foo_fn", 45_000));
}

#[test]
fn a_function_whose_name_is_hidden() {
    let case = in_softirq(1, &[(55_000, function_end(function::TIMER, 500, 45_000, 7))]);
    assert_eq!(case.named(), is(Cause::Softirq, "TIMER", 54_000));
}

#[test]
fn an_interrupt_within_a_long_function_is_not_the_functions() {
    let case = in_softirq(1, &[(55_000, function_end(function::TIMER, 500, 45_000, FIRST))]);
    let case = case.with(vec![(20_000, irq(9)), (50_000, irq_end(9))]);
    assert_eq!(case.named(), is(Cause::Hardirq, "irq 9", 30_000));
    assert_eq!(ns_of(&case, "TIMER: foo_fn"), 15_000);
}

#[test]
fn a_softirq_that_kept_interrupts_off_while_it_polled() {
    let mut events = wake_up(hack(), 2, 60_000, 61_000, 65_000);
    events.extend([(-2_000, softirq(3)), (63_000, softirq_end(3))]);
    events.push((62_900, poll_end("eth0", 64_000)));
    let main = case([60_000, 0, 1_000, 4_000, 2_000], events).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "NET_RX: eth0"));
}

#[test]
fn a_timer_interrupt_whose_function_takes_long() {
    let mut events = wake_up(hack(), 1, 2_000, 52_000, 56_000);
    events.push((2_500, callback(FIRST)));
    let case = case([2_000, 0, 50_000, 4_000, 2_000], events).stack(1, &["foo_timer"]);
    assert_eq!(case.named(), is(Cause::Hardirq, "timer: foo_timer", 50_000));
    assert_eq!(ns_of(&case, "timer interrupt"), 500, "before the function began");
}

#[test]
fn a_timers_function_in_the_softirq_of_timers() {
    let case = in_softirq(8, &[(5_000, callback(FIRST))]);
    assert_eq!(case.named(), is(Cause::Softirq, "HRTIMER: foo_fn", 53_000));
}

#[test]
fn a_call_that_another_cpu_asked_for() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    events.extend([(4_000, vector(CALL, 0, 0)), (58_000, vector_end(CALL))]);
    events.push((57_000, function_end(function::CALL, 500, 50_000, FIRST)));
    let case = case([2_000, 0, 1_000, 57_000, 2_000], events).stack(1, &["do_flush_tlb_all"]);
    assert_eq!(case.named(), is(Cause::Hardirq, "IPI: do_flush_tlb_all", 50_000));
    assert_eq!(ns_of(&case, "function call interrupt (single)"), 4_000);
}

/// A kworker of this priority keeps the CPU, and does one work for nearly all of that time.
fn kworker(prio: i16) -> Case {
    let mut events = wake_up(switch(600, prio, "kworker/0:1"), 0, 2_000, 3_000, 300_000);
    events.push((299_900, function_end(function::WORK, 600, 296_000, FIRST)));
    case([2_000, 0, 1_000, 297_000, 2_000], events).stack(1, &["foo_work"])
}

#[test]
fn the_work_of_a_kworker() {
    let case = kworker(120);
    // The last 2 us are the switch's.
    assert_eq!(case.named(), is(Cause::Nonpreemptible, "foo_work", 294_100));
    assert_eq!(case.main().task.as_deref(), Some("kworker/0:1/600"));
    let first = kworker(4);
    assert_eq!(first.named(), is(Cause::Thread, "kworker/0:1: foo_work", 296_000));
    let mut other = case;
    let ends = |event: &&mut Event| matches!(event.kind, EventKind::Function { .. });
    other.fake.events.iter_mut().find(ends).unwrap().pid = 601;
    assert_eq!(other.main().name, "kworker/0:1", "another kworker's work");
}

#[test]
fn a_tasklet_that_interrupts_a_kworker_is_not_the_kworkers_work() {
    let case = kworker(4).with(vec![(100_000, softirq(6)), (200_000, softirq_end(6))]);
    assert_eq!(ns_of(&case, "TASKLET"), 100_000);
    assert_eq!(ns_of(&case, "kworker/0:1: foo_work"), 196_000);
}

#[test]
fn a_work_that_a_tasklet_runs_is_named() {
    // Kernels since 6.9 have workqueues that run in softirqs.
    let case = in_softirq(6, &[(55_000, function_end(function::WORK, 500, 45_000, FIRST))]);
    assert_eq!(ns_of(&case, "TASKLET: foo_fn"), 45_000);
}

#[test]
fn a_stack_of_a_kworker_names_more_than_its_work_where_it_shows_what_is_done() {
    let seen = |functions: &[&'static str]| {
        let case = kworker(120).with(vec![(299_950, stack(600, 2, 9, 10))]);
        case.stack(9, functions).main()
    };
    let shown = seen(&["__schedule", "bar_step", "process_one_work", "worker_thread"]);
    assert_eq!((shown.name.as_str(), shown.stack.len()), ("foo_work", 4));
    let landmark = seen(&["__schedule", "ext4_writepages", "process_one_work", "worker_thread"]);
    assert_eq!(landmark.name, "ext4_writepages");
}

/// The interrupt of a call that takes long, and these events on CPU 1 before it.
fn called(events: &[(i64, Event)]) -> Case {
    let mut found = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    found.extend([(4_000, vector(CALL, 0, 0)), (58_000, vector_end(CALL))]);
    found.extend([(-900_000, on(1, switch(700, 120, "munmap"))), (-800_000, vector(CALL, 0, 0))]);
    found.push((-799_000, vector_end(CALL)));
    found.extend(events.iter().map(|(at_ns, event)| (*at_ns, on(1, *event))));
    let mut case = case([2_000, 0, 1_000, 57_000, 2_000], found);
    case.fake.cpus = 2;
    case
}

#[test]
fn who_sent_an_interrupt_from_another_cpu() {
    let sender = |events: &[(i64, Event)]| called(events).main().task;
    assert_eq!(sender(&[(3_900, ipi(700, 0, 7))]).as_deref(), Some("munmap/700 on CPU 1"));
    assert_eq!(sender(&[(3_900, ipi_mask(700, 0b1, 7))]).as_deref(), Some("munmap/700 on CPU 1"));
    assert_eq!(sender(&[(3_900, ipi(701, 0, 7))]).as_deref(), Some("task 701 on CPU 1"));
    assert_eq!(sender(&[(3_900, ipi(0, 0, 7))]).as_deref(), Some("idle task on CPU 1"));
    assert_eq!(sender(&[(3_900, ipi(700, 0, 0))]), None, "that asked for a switch of tasks");
    assert_eq!(sender(&[(3_900, ipi(700, 1, 7)), (3_900, ipi_mask(700, 0b10, 7))]), None);
    assert_eq!(sender(&[(4_100, ipi(700, 0, 7))]), None, "it had come by then");
    assert_eq!(sender(&[(-850_000, ipi(700, 0, 7))]), None, "that was the one before");
    let interrupted = [(3_000, irq(9)), (3_900, ipi(700, 0, 7)), (6_000, irq_end(9))];
    assert_eq!(sender(&interrupted), None, "an interrupt sent it, and no task");
    let in_softirq = [(3_000, softirq(3)), (3_900, ipi(700, 0, 7)), (6_000, softirq_end(3))];
    assert_eq!(sender(&in_softirq), None, "a softirq sent it, and no task");
    let two = [(3_800, ipi(700, 0, 7)), (3_900, ipi(701, 0, 7))];
    assert_eq!(sender(&two), None, "it may be of either");
}

#[test]
fn who_sent_a_short_interrupt_is_not_asked() {
    let mut short = called(&[(3_900, ipi(700, 0, 7))]);
    let end = short.fake.events.iter_mut().find(|event| event.at_ns == T + 58_000).unwrap();
    end.at_ns = T + 8_000;
    let parts = short.peak().blame;
    let call = parts.iter().find(|part| part.name.starts_with("function call")).unwrap();
    assert_eq!((call.ns, call.task.as_deref()), (4_000, None));
}
