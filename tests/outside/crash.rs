//! kill -9 at any moment: the run reads as crashed, with all but the last second, and no load is
//! left behind.

use std::{process::Child, time::Duration};

use serde_json::Value;

use super::{
    killed::{Killed, Killing, killed_at_random},
    support::{LIGHT_LOAD, LONG, Store, codes, eventually, finish, list, signal, whole},
};

/// What may be missing, and as much again; a machine that stands still may add to it.
const MISSING_NS: i64 = 2_000_000_000;

fn start(store: &Store, duration: &str) -> Child {
    store.start(&[
        "run",
        "timer",
        "--warmup",
        "0s",
        "--duration",
        duration,
        "--raw",
        "--load",
        LIGHT_LOAD,
        "--name",
        "r",
    ])
}

#[test]
fn a_run_that_is_killed_at_a_random_moment_reads_as_crashed() {
    kill_runs("kill -9 of a run", |_, _, _| {});
}

#[test]
#[ignore = "live: twin crash::what_a_run_had_shown_is_there_after_it_was_killed"]
fn a_run_that_is_killed_at_a_random_moment_has_all_but_its_last_second() {
    kill_runs("kill -9 of a run, with what is missing", assert_all_but_the_last_second);
}

#[test]
fn what_a_run_had_shown_is_there_after_it_was_killed() {
    // A short interval of the log, and one that lives in live.hlog for seconds.
    for (duration, name) in [(LONG, "series.hlog"), ("2h", "live.hlog")] {
        let store = Store::new();
        let child = start(&store, duration);
        let log = store.runs().join("r").join(name);
        let intervals = || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().filter(|line| line.starts_with("Tag=")).count()
        };
        eventually("intervals in the log", || intervals() > 0 && store.count("r") > 1_000);
        let shown = store.show("r");
        signal(&child, "KILL");
        finish(child);
        let left = store.show("r");
        assert_eq!(left["status"], "crashed", "{left}");
        assert!(whole(&left["duration_ns"]) >= whole(&shown["duration_ns"]), "{shown} {left}");
        for before in list(&shown["series"]) {
            let mut after = list(&left["series"]).iter();
            let after = after.find(|own| own["name"] == before["name"]).unwrap();
            // A stage has no periods that it could miss.
            for field in ["count", "missed"] {
                let (before, after) = (before[field].as_i64(), after[field].as_i64());
                assert!(after >= before && after.is_some() == before.is_some(), "{shown} {left}");
            }
        }
    }
}

/// Kills runs under a load at random moments, and judges what is left of each: record, page, and
/// what is known of the kill.
fn kill_runs(name: &'static str, judge: impl Fn(&Value, &Value, &Killed)) {
    let within = Duration::from_secs(4);
    killed_at_random(
        &Killing { name, times: (5, 50), within },
        |number| {
            let store = Store::new();
            // A short interval of the log, and one that lives in live.hlog for seconds.
            let child = start(&store, if number.is_multiple_of(2) { "60s" } else { "2h" });
            (store, child)
        },
        |_, store, killed| left_of_a_run(&store, killed, &judge),
    );
}

/// What is left of a run under a load that was killed.
fn left_of_a_run(
    store: &Store,
    killed: &Killed,
    judge: &impl Fn(&Value, &Value, &Killed),
) -> String {
    eventually("the load is gone", || store.processes().is_empty());
    if !store.runs().join("r/run.json").exists() {
        // It had not begun: then no run exists, and tardy says so.
        assert_eq!(store.run(&["show", "r"]).code, Some(2), "{:?}", killed.after);
        return "no run yet".into();
    }
    let record = store.show("r");
    let moment = format!("killed after {:?}: {record}", killed.after);
    assert_eq!(record["status"], "crashed", "{moment}");
    assert!(codes(&record).contains(&"crashed"), "{moment}");
    let text = store.run(&["show", "r"]);
    assert!(text.code == Some(0) && text.out.contains("crashed"), "{text:?}");
    let page = store.page(&["r"]);
    if whole(&record["start_monotonic_ns"]) == 0 {
        return "a run that did not measure yet".into();
    }
    judge(&record, &page, killed);
    let lost_ns = lost_ns(&record, killed);
    let up_to_ms = [250, 500, 1_000, 2_000].into_iter().find(|ms| lost_ns <= ms * 1_000_000);
    let up_to = up_to_ms.map_or("longer".to_owned(), |ms| format!("at most {ms} ms"));
    format!("a run without its last {up_to}")
}

/// From the end of what is left to the kill, ns.
fn lost_ns(record: &Value, killed: &Killed) -> i64 {
    killed.at_ns - whole(&record["start_monotonic_ns"]) - whole(&record["duration_ns"])
}

fn assert_all_but_the_last_second(record: &Value, page: &Value, killed: &Killed) {
    // Who recorded may have stood still as long as who waited here.
    let missing_ns = MISSING_NS + 2 * killed.stood_still_ns;
    let moment = format!("killed after {:?}: {record}", killed.after);
    let lost_ns = lost_ns(record, killed);
    assert!(lost_ns <= missing_ns && -lost_ns <= missing_ns, "{lost_ns} ns: {moment}");
    if killed.at_ns - whole(&record["start_monotonic_ns"]) > missing_ns {
        assert_samples(record, page, missing_ns, &moment);
    }
}

/// No period is missing in what was recorded, and hardly a single sample.
fn assert_samples(record: &Value, page: &Value, missing_ns: i64, moment: &str) {
    // The stages of a traced wake-up lack their own schedule, and the page no points.
    let is_whole = |series: &&Value| !series["name"].as_str().unwrap().contains('/');
    for (number, series) in list(&record["series"]).iter().filter(is_whole).enumerate() {
        let periods = whole(&series["count"]) + whole(&series["missed"]);
        let expected = whole(&record["duration_ns"]) / 1_000_000;
        // Counters are read one series after another, by a thread that may have to wait in between.
        let apart = (periods - expected).abs();
        let most = 2 + expected / 50 + whole(&series["max"]) / 1_000_000;
        assert!(apart <= most, "{apart} periods: {moment}");
        let samples = whole(&page["runs"][0]["series"][number]["points"]["of"]);
        let apart = (samples - whole(&series["count"])).abs();
        assert!(apart <= missing_ns / 1_000_000, "{samples} single samples: {moment}");
    }
}

#[test]
fn a_run_is_running_until_its_maker_is_killed_and_crashed_from_then_on() {
    let store = Store::new();
    let child = start(&store, LONG);
    store.wait_measuring("r");
    assert_eq!(store.show("r")["status"], "running");
    // Readers come and go; the lock stays the maker's.
    store.page(&["r"]);
    assert_eq!(store.show("r")["status"], "running");
    signal(&child, "KILL");
    finish(child);
    let before = super::support::contents(&store.runs());
    assert_eq!(store.show("r")["status"], "crashed");
    store.page(&["r"]);
    let list = store.run(&["list"]);
    assert!(list.out.contains("crashed"), "{list:?}");
    assert_eq!(super::support::contents(&store.runs()), before, "readers never write");
}

#[test]
fn samples_that_a_kill_left_open_are_closed_on_request_and_those_of_no_other_run() {
    let store = Store::new();
    let child = store.start_measuring("r", &["--raw"]);
    let samples = store.runs().join("r/samples");
    eventually("single samples", || samples.join("000001.spool").exists());
    let said = store.run(&["repair", "r"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("is still being measured"), "{said:?}");
    signal(&child, "KILL");
    finish(child);
    let record = std::fs::read(store.runs().join("r/run.json")).unwrap();
    let ended = store.measure("ended", &["--raw", "--duration", "200ms"]);
    let before = super::support::contents(&ended);
    let said = store.run(&["repair", "r", "ended"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.starts_with("r: samples/0000"), "{said:?}");
    assert!(said.out.contains(".parquet has the "), "{said:?}");
    assert!(said.out.contains("ended: nothing to repair: it ended in order\n"), "{said:?}");
    assert_eq!(super::support::contents(&ended), before);
    let left = super::support::contents(&samples);
    assert!(left.keys().all(|file| file.extension().is_some_and(|kind| kind == "parquet")));
    assert_eq!(std::fs::read(store.runs().join("r/run.json")).unwrap(), record);
    assert_eq!(store.show("r")["status"], "crashed", "a repair changes no verdict");
    let said = store.run(&["repair", "r", "none", "--json"]);
    assert_eq!(said.code, Some(2), "one of them is there: {said:?}");
    assert!(said.err.contains("no run \"none\""), "{said:?}");
    let again: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(list(&again[0]["repair"]["spools"]), [] as [Value; 0], "{again}");
}

#[test]
fn a_run_that_nobody_holds_a_lock_on_reads_as_crashed() {
    let store = Store::new();
    let run = store.measure("r", &["--duration", "200ms"]);
    let text = std::fs::read_to_string(run.join("run.json")).unwrap();
    let text = text.replace("\"status\": \"complete\"", "\"status\": \"running\"");
    std::fs::write(run.join("run.json"), text).unwrap();
    assert_eq!(store.show("r")["status"], "crashed", "as after a reboot, or on another machine");
}

#[test]
fn a_stopped_reader_does_not_hold_up_the_maker() {
    let store = Store::new();
    let child = start(&store, LONG);
    store.wait_measuring("r");
    let reader = store.start(&["report", "r", "-o", "x.html"]);
    signal(&reader, "STOP");
    signal(&child, "INT");
    assert_eq!(finish(child).code, Some(0));
    signal(&reader, "CONT");
    assert_eq!(finish(reader).code, Some(0));
}
