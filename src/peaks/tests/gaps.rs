//! Gaps of a thread that never sleeps.

use super::*;
use crate::kernel::out;

/// An ordinary task that spins on CPU 0 and stands still for `length_ns` from `T` on.
fn gap(length_ns: i64, events: Vec<(i64, Event)>) -> Case {
    let mut case = case([length_ns, 0, 0, 0, 0], events).unmatched();
    case.late.latency_ns = length_ns;
    case.me = MeasuredThread { prio: 120, real_time: false, spins: true, ..case.me };
    case
}

fn parts(case: &Case) -> Vec<(Cause, String, u64)> {
    case.peak().blame.into_iter().map(|part| (part.cause, part.name, part.ns)).collect()
}

const LONG_AGO: i64 = -500_000;

#[test]
fn an_interrupt_and_its_softirq_have_their_time_and_the_rest_is_the_way_in_and_out() {
    let case = gap(
        10_000,
        vec![
            (LONG_AGO, switch(ME, 120, "tardy/cpu0")),
            (1_000, vector(TIMER, 0x1000, 0)),
            (4_000, vector_end(TIMER)),
            (4_200, softirq(1)),
            (9_200, softirq_end(1)),
        ],
    );
    let named = [
        (Cause::Softirq, "TIMER".to_owned(), 5_000),
        (Cause::Hardirq, "timer interrupt".to_owned(), 3_000),
        (Cause::Nonpreemptible, "kernel entry and exit".to_owned(), 2_000),
    ];
    assert_eq!(parts(&case), named);
    assert_eq!(case.peak().stages, None);
}

#[test]
fn a_thread_that_ran_meanwhile_has_its_time() {
    let case = gap(
        3_000_000,
        vec![
            (LONG_AGO, switch(ME, 120, "tardy/cpu0")),
            (1_000, vector(TIMER, 0x1000, 0)),
            (2_000, vector_end(TIMER)),
            (2_500, flagged(out::PREEMPTED, switch(88, 120, "hog"))),
            (2_998_500, switch(ME, 120, "tardy/cpu0")),
        ],
    );
    let found = parts(&case);
    assert_eq!(found[0], (Cause::Thread, "hog".to_owned(), 2_996_000));
    assert_eq!(case.main().task.as_deref(), Some("hog/88"));
}

#[test]
fn a_gap_without_an_event_of_the_kernel_is_the_hosts_or_the_hardwares() {
    let quiet = || gap(40_000, vec![(LONG_AGO, switch(ME, 120, "tardy/cpu0"))]);
    let found = quiet().in_virtual_machine().main();
    assert_eq!((found.cause, found.ns, found.basis), (Cause::Host, 40_000, Basis::Inferred));
    let found = quiet().main();
    assert_eq!((found.cause, found.ns), (Cause::Hardware, 40_000));
    assert_eq!(found.name, "firmware or hardware");
}

#[test]
fn a_thread_that_was_switched_in_before_the_record_reaches_back_had_its_cpu() {
    let case = gap(4_000, vec![(1_000, vector(TIMER, 0x1000, 0)), (3_000, vector_end(TIMER))]);
    let named = [
        (Cause::Nonpreemptible, "kernel entry and exit".to_owned(), 2_000),
        (Cause::Hardirq, "timer interrupt".to_owned(), 2_000),
    ];
    let mut found = parts(&case);
    found.sort();
    let mut expected = named.to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn what_is_more_than_the_way_into_the_kernel_beside_an_interrupt_is_below_it() {
    let case = gap(
        50_000,
        vec![
            (LONG_AGO, switch(ME, 120, "tardy/cpu0")),
            (45_000, vector(TIMER, 0x1000, 0)),
            (49_000, vector_end(TIMER)),
        ],
    );
    let found = parts(&case.in_virtual_machine());
    assert_eq!(found[0], (Cause::Host, "hypervisor (not counted)".to_owned(), 43_000));
    assert_eq!(found.last().map(|part| (part.0, part.2)), Some((Cause::Nonpreemptible, 3_000)));
}
