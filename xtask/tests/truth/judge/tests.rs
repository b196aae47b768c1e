//! What the judge makes of delays and wake-ups that are made up.

use super::*;

fn delay(kind: &str, at_ns: i64, ns: i64, expires_ns: i64) -> Injected {
    Injected { kind: kind.to_owned(), cpu: 0, at_ns, ns, expires_ns, pid: 0 }
}

fn peak(at_ns: i64, latency_ns: i64, cause: &str, ns: i64) -> Peak {
    let part = Part { cause: cause.to_owned(), ns, ..Part::default() };
    Peak { at_ns, latency_ns, series: "cpu0".to_owned(), blame: vec![part] }
}

#[test]
fn a_delay_is_found_where_its_expiry_is_late_and_its_cause_and_size_come_back() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 202_500)], 0);
    assert_eq!(outcome.totals(), [1, 1, 1, 1], "{outcome:?}");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 205_000)], 0);
    assert_eq!(outcome.totals(), [1, 1, 1, 0], "2 % of 200 us are 4 us");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "thread", 202_500)], 0);
    assert_eq!(outcome.totals(), [1, 1, 0, 0]);
    let outcome = judge(&log, &[peak(2_000_000, 210_000, "hardirq", 202_500)], 0);
    assert_eq!((outcome.totals(), outcome.clean), ([1, 0, 0, 0], 1));
}

#[test]
fn delays_that_are_short_or_beside_or_two_at_once_are_not_judged() {
    let short = delay("hardirq", 900_000, 140_000, 1_000_000);
    assert_eq!(judge(&[short], &[], 0).totals()[0], 0);
    let beside = delay("hardirq", 1_100_000, 300_000, 1_000_000);
    assert_eq!(judge(&[beside], &[], 0).totals()[0], 0);
    let one = delay("hardirq", 900_000, 300_000, 1_000_000);
    let other = delay("stop", 1_150_000, 300_000, 1_000_000);
    let outcome = judge(&[one, other], &[], 0);
    assert_eq!((outcome.totals()[0], outcome.mixed), (0, 1));
}

#[test]
fn a_clean_late_wakeup_that_is_blamed_on_the_injector_counts_as_false_blame() {
    let mut blamed = peak(5_000_000, 90_000, "thread", 60_000);
    blamed.blame[0].task = Some("inject/cpu0/77".to_owned());
    let clean = peak(7_000_000, 90_000, "thread", 60_000);
    let outcome = judge(&[], &[blamed, clean], 0);
    assert_eq!((outcome.clean, outcome.false_blame.len()), (2, 1));
}

#[test]
fn a_delay_counts_from_the_threshold_on() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let peaks = [peak(1_000_000, 210_000, "hardirq", 202_500)];
    assert_eq!(judge(&log, &peaks, 190_000).totals(), [1, 1, 1, 1]);
    assert_eq!(judge(&log, &peaks, 196_000).totals(), [0; 4], "200 us need not be over it");
}

#[test]
fn what_the_hypervisor_took_may_be_missing_and_no_more_than_that() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let judged = |blamed_ns, stolen_ns| {
        let mut peak = peak(1_000_000, 210_000, "hardirq", blamed_ns);
        let (cause, name) = ("host".to_owned(), STEAL.to_owned());
        peak.blame.push(Part { cause, name, ns: stolen_ns, ..Part::default() });
        let outcome = judge(&log, &[peak], 0);
        (outcome.totals(), outcome.unknowable())
    };
    assert_eq!(judged(120_000, 80_000), ([1, 1, 1, 1], [0, 0]));
    assert_eq!(judged(110_000, 80_000), ([1, 1, 1, 0], [0, 0]), "10 us are missing");
    assert_eq!(judged(50_000, 80_000), ([1, 1, 0, 0], [0, 0]));
    assert_eq!(judged(10_000, 190_000), ([1, 1, 0, 0], [0, 1]));
    assert_eq!(judged(205_000, 80_000).0, [1, 1, 1, 0], "that is too much all the same");
}

#[test]
fn a_peak_whose_events_were_lost_is_found_and_counted() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let mut lost = peak(1_000_000, 210_000, "unexplained", 210_000);
    lost.blame[0].name = LOST.to_owned();
    let outcome = judge(&log, &[lost], 0);
    assert_eq!((outcome.totals(), outcome.unknowable()), ([1, 1, 0, 0], [1, 0]));
}

#[test]
fn a_thread_that_nobody_injected_disturbs_a_delay_unless_it_takes_the_place_of_it() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let judged = |stranger_ns| {
        let mut peak = peak(1_000_000, 240_000, "hardirq", 20_000);
        let task = Some("tardy/cpu0/7".to_owned());
        peak.blame.push(Part {
            cause: "thread".to_owned(),
            task,
            ns: stranger_ns,
            ..Part::default()
        });
        let outcome = judge(&log, &[peak], 0);
        (outcome.totals(), outcome.unknowable())
    };
    assert_eq!(judged(30_000), ([1, 1, 0, 0], [0, 1]));
    assert_eq!(judged(200_000), ([1, 1, 0, 0], [0, 0]), "a wrong cause");
}
