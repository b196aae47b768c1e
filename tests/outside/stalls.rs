//! A stall of known length, made by stopping tardy itself: it must come back in full size.

use std::time::Duration;

use tardy_hot::clock::now_ns;

use super::support::{
    SHORT, Store, eventually, finish, is_stopped, list, pause, signal, whole, with_time,
};

const STALL_MS: i64 = 20;
const MS: i64 = 1_000_000;

/// The record of a run of that length with a stall in it; `None` if the run was over before.
fn stalled(wake: &str, duration: &str) -> Option<serde_json::Value> {
    let store = Store::new();
    let arguments = ["--duration", duration, "--interval", "1ms", "--wake", wake, "--name", "r"];
    let mut child = store.start(&[&SHORT[..], &arguments].concat());
    store.wait_measuring("r");
    signal(&child, "STOP");
    eventually("it stands still", || is_stopped(child.id()) || child.try_wait().unwrap().is_some());
    pause(Duration::from_millis(STALL_MS.unsigned_abs()));
    let end_ns = now_ns();
    signal(&child, "CONT");
    assert_eq!(finish(child).code, Some(0));
    let record = store.show("r");
    assert_eq!(record["status"], "complete", "a stop does not end it");
    (end_ns < whole(&record["start_monotonic_ns"]) + asked_ns(&record)).then_some(record)
}

fn asked_ns(record: &serde_json::Value) -> i64 {
    whole(&record["parameters"]["duration_ns"])
}

#[test]
fn a_stall_of_twenty_periods_is_one_late_sample_and_twenty_missed_periods_on_every_cpu() {
    for wake in ["nanosleep", "timerfd", "signal", "ppoll", "io-uring"] {
        let record = with_time(|duration| stalled(wake, duration));
        for series in list(&record["series"]) {
            assert_stall(series, asked_ns(&record) / MS);
        }
    }
}

/// The machine may stall by itself as well, so that most bounds are from below.
fn assert_stall(series: &serde_json::Value, periods: i64) {
    let of = |name: &str| whole(&series[name]);
    // It began at most one period before the first expiry in it.
    assert!(of("max") >= (STALL_MS - 1) * MS, "{series}");
    assert!(of("missed") >= STALL_MS - 2, "{series}");
    // A period can only be missed by a wake-up that was late by it.
    assert!(of("missed") * MS <= of("mean") * of("count") + of("count"), "{series}");
    let sum = of("count") + of("missed");
    assert!((periods..=periods + 2 + of("max") / MS).contains(&sum), "{series}");
    let scheduled = &series["scheduled"];
    let more = whole(&scheduled["count"]) - of("count");
    assert!(more >= STALL_MS - 2, "the view per period counts the stall's periods: {series}");
    assert!((more - of("missed")).abs() <= 2 + of("missed") / 10, "{series}");
    assert_eq!(scheduled["max"], series["max"]);
}
