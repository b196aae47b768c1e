//! What the judge makes of delays and wake-ups that are made up.

use super::*;

const OVER_0: ThreadConfig = ThreadConfig { over_ns: 0, real_time: true, alone: false };

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
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 202_500)], OVER_0);
    assert_eq!(outcome.totals(), [1, 1, 1, 1], "{outcome:?}");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "hardirq", 205_000)], OVER_0);
    assert_eq!(outcome.totals(), [1, 1, 1, 0], "2% of 200 us are 4 us");
    let outcome = judge(&log, &[peak(1_000_000, 210_000, "thread", 202_500)], OVER_0);
    assert_eq!(outcome.totals(), [1, 1, 0, 0]);
    let outcome = judge(&log, &[peak(2_000_000, 210_000, "hardirq", 202_500)], OVER_0);
    assert_eq!((outcome.totals(), outcome.clean), ([1, 0, 0, 0], 1));
}

#[test]
fn delays_that_are_short_or_beside_or_two_at_once_are_not_judged() {
    let short = delay("hardirq", 900_000, 140_000, 1_000_000);
    assert_eq!(judge(&[short], &[], OVER_0).totals()[0], 0);
    let beside = delay("hardirq", 1_100_000, 300_000, 1_000_000);
    assert_eq!(judge(&[beside], &[], OVER_0).totals()[0], 0);
    let one = delay("hardirq", 900_000, 300_000, 1_000_000);
    let other = delay("stop", 1_150_000, 300_000, 1_000_000);
    let outcome = judge(&[one, other], &[], OVER_0);
    assert_eq!((outcome.totals()[0], outcome.mixed), (0, 1));
}

#[test]
fn a_clean_late_wakeup_that_is_blamed_on_the_injector_counts_as_false_blame() {
    let mut blamed = peak(5_000_000, 90_000, "thread", 60_000);
    blamed.blame[0].task = Some("inject/cpu0/77".to_owned());
    let clean = peak(7_000_000, 90_000, "thread", 60_000);
    let outcome = judge(&[], &[blamed.clone(), clean.clone()], OVER_0);
    assert_eq!((outcome.clean, outcome.false_blame.len()), (2, 1));
    let (cause, name) = ("host".to_owned(), STEAL.to_owned());
    blamed.blame.push(Part { cause, name, ns: 10_000, ..Part::default() });
    let outcome = judge(&[], &[blamed, clean], OVER_0);
    assert_eq!((outcome.clean, outcome.clean_stolen, outcome.false_blame.len()), (1, 1, 0));
}

#[test]
fn who_runs_for_the_sake_of_another_that_waits_for_its_lock_is_no_false_blame() {
    let mut blamed = peak(5_000_000, 90_000, "thread", 60_000);
    blamed.blame[0].task = Some("inject/cpu0/77".to_owned());
    let walk = delay("page_walk", 4_950_000, 110_000, 5_000_000);
    let outcome = judge(&[walk], &[blamed.clone()], OVER_0);
    assert_eq!((outcome.clean, outcome.false_blame.len(), outcome.rows.len()), (0, 0, 0));
    let before = delay("page_walk", 4_800_000, 110_000, 5_000_000);
    assert_eq!(judge(&[before], &[blamed], OVER_0).false_blame.len(), 1);
}

#[test]
fn a_delay_counts_from_the_threshold_on() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let peaks = [peak(1_000_000, 210_000, "hardirq", 202_500)];
    assert_eq!(
        judge(&log, &peaks, ThreadConfig { over_ns: 190_000, ..OVER_0 }).totals(),
        [1, 1, 1, 1]
    );
    assert_eq!(
        judge(&log, &peaks, ThreadConfig { over_ns: 196_000, ..OVER_0 }).totals(),
        [0; 4],
        "200 us need not be over it"
    );
}

#[test]
fn a_delay_whose_cpu_lost_time_to_the_host_is_not_judged() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let judged = |blamed_ns, stolen_ns| {
        let mut peak = peak(1_000_000, 210_000, "thread", blamed_ns);
        let (cause, name) = ("host".to_owned(), STEAL.to_owned());
        if stolen_ns > 0 {
            peak.blame.push(Part { cause, name, ns: stolen_ns, ..Part::default() });
        }
        let outcome = judge(&log, &[peak], OVER_0);
        (outcome.totals(), outcome.unknowable(), outcome.machines.len())
    };
    assert_eq!(judged(205_000, 0), ([1, 1, 0, 0], [0, 0], 0));
    assert_eq!(judged(200_000, 5_000), ([1, 1, 0, 0], [0, 1], 1));
}

#[test]
fn of_a_delay_within_another_each_has_its_own_share() {
    let outer = delay("softirq", 900_000, 400_000, 1_000_000);
    let inner = delay("hardirq", 1_001_000, 100_000, 1_000_000);
    let mut both = peak(1_000_000, 310_000, "softirq", 199_000);
    let part = Part { cause: "hardirq".to_owned(), ns: 100_000, ..Part::default() };
    both.blame.push(part);
    let log = [outer, inner];
    assert_eq!(judge(&log, &[both.clone()], OVER_0).totals(), [2, 2, 2, 2]);
    (both.blame[0].ns, both.blame[1].ns) = (279_000, 20_000);
    assert_eq!(judge(&log, &[both], OVER_0).totals(), [2, 2, 1, 0]);
}

#[test]
fn a_relative_sleep_is_known_by_the_kernels_expiry() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let own = peak(998_500, 210_000, "hardirq", 200_000);
    assert_eq!(judge(&log, &[own], OVER_0).totals(), [1, 1, 1, 1]);
    let far = peak(940_000, 70_000, "hardirq", 60_000);
    assert_eq!(judge(&log, &[far], OVER_0).totals(), [1, 0, 0, 0]);
}

#[test]
fn a_peak_whose_events_were_lost_is_found_and_counted() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let mut lost = peak(1_000_000, 210_000, "unexplained", 210_000);
    lost.blame[0].name = LOST.to_owned();
    let outcome = judge(&log, &[lost], OVER_0);
    assert_eq!((outcome.totals(), outcome.unknowable()), ([1, 1, 0, 0], [1, 0]));
}

#[test]
fn a_peak_without_its_wake_up_in_the_record_is_found_and_counted_as_lost_where_all_is_nobodys() {
    let log = [delay("hardirq", 900_000, 300_000, 1_000_000)];
    let unrecorded = |cause: &str, ns| {
        let mut peak = peak(1_000_000, 210_000, cause, ns);
        peak.blame[0].name = NOT_RECORDED.to_owned();
        judge(&log, &[peak], OVER_0).unknowable()
    };
    assert_eq!(unrecorded("unexplained", 210_000), [1, 0]);
    assert_eq!(unrecorded("unexplained", 150_000), [0, 0], "a part of it");
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
        let outcome = judge(&log, &[peak], OVER_0);
        (outcome.totals(), outcome.unknowable())
    };
    assert_eq!(judged(30_000), ([1, 1, 0, 0], [0, 1]));
    assert_eq!(judged(200_000), ([1, 1, 0, 0], [0, 0]), "a wrong cause");
}

#[test]
fn another_softirq_over_the_same_wake_up_is_no_part_of_a_delay_in_one() {
    let log = [delay("softirq", 900_000, 300_000, 1_000_000)];
    let mut late = peak(1_000_000, 210_000, "softirq", 0);
    let part = |name: &str, ns| Part {
        cause: "softirq".to_owned(),
        name: name.to_owned(),
        ns,
        ..Part::default()
    };
    late.blame = vec![part("NET_RX: process_backlog", 199_000), part("NET_RX", 1_000)];
    assert_eq!(judge(&log, &[late.clone()], OVER_0).totals(), [1, 1, 1, 1]);
    late.blame.push(part("TIMER", 9_000));
    assert_eq!(judge(&log, &[late], OVER_0).totals(), [1, 1, 1, 1]);
}
