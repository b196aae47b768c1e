//! A stall of known length, made by stopping tardy itself: it must come back in full size.

use std::{fs, thread::sleep, time::Duration};

use super::support::{SHORT, Store, eventually, finish, list, signal, whole};

const STALL_MS: i64 = 20;
const MS: i64 = 1_000_000;

/// Whether every thread of the process stands still.
fn is_stopped(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    })
}

#[test]
fn a_stall_of_twenty_periods_is_one_late_sample_and_twenty_missed_periods_on_every_cpu() {
    for wake in ["nanosleep", "timerfd"] {
        let store = Store::new();
        let arguments =
            ["--duration", "1500ms", "--interval", "1ms", "--wake", wake, "--name", "r"];
        let child = store.start(&[&SHORT[..], &arguments].concat());
        store.wait_measuring("r");
        signal(&child, "STOP");
        eventually("it stands still", || is_stopped(child.id()));
        sleep(Duration::from_millis(STALL_MS.unsigned_abs()));
        signal(&child, "CONT");
        assert_eq!(finish(child).code, Some(0));
        let record = store.show("r");
        assert_eq!(record["status"], "complete", "a stop is no end");
        for series in list(&record["series"]) {
            assert_stall(series);
        }
    }
}

/// The machine may stall by itself as well, so that most bounds are from below.
fn assert_stall(series: &serde_json::Value) {
    let of = |name: &str| whole(&series[name]);
    // It began at most one period before the first expiry in it.
    assert!(of("max") >= (STALL_MS - 1) * MS, "{series}");
    assert!(of("missed") >= STALL_MS - 2, "{series}");
    // A period can only be missed by a wake-up that was late by it.
    assert!(of("missed") * MS <= of("mean") * of("count") + of("count"), "{series}");
    let sum = of("count") + of("missed");
    assert!((1_500..=1_502 + of("max") / MS).contains(&sum), "{series}");
    let scheduled = &series["scheduled"];
    let more = whole(&scheduled["count"]) - of("count");
    assert!(more >= STALL_MS - 2, "the view per period counts the stall's periods: {series}");
    assert!((more - of("missed")).abs() <= 2 + of("missed") / 10, "{series}");
    assert_eq!(scheduled["max"], series["max"]);
    assert!(whole(&scheduled["mean"]) > of("mean"), "{series}");
}
