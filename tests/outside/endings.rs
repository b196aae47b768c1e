//! How a run ends, and which exit code and status that gives.

use std::{fs, time::Duration};

use serde_json::Value;

use super::support::{
    LIGHT_LOAD, LONG, SHORT, Said, Store, codes, eventually, finish, ignores, is_stopped, list,
    pause, piped, signal, whole,
};

fn ended(store: &Store, arguments: &[&str]) -> (Said, Value) {
    let said = store.run(&[&SHORT[..], arguments, &["--name", "r"]].concat());
    (said, store.show("r"))
}

#[test]
fn a_latency_over_the_limit_ends_the_run_with_exit_code_1() {
    for probe in ["timer", "fake"] {
        let store = Store::new();
        let arguments = ["run", probe, "--warmup", "0s", "--duration", "1h", "--stop-over", "1us"];
        let said = store.run(&[&arguments[..], &["--name", "r"]].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        let record = store.show("r");
        assert_eq!(record["status"], "stopped_over");
        let worst =
            list(&record["series"]).iter().filter_map(|series| series["max"].as_i64()).max();
        assert!(worst > Some(1_000), "the sample that ended the run is in it: {record}");
        assert!(said.out.contains("stopped by --stop-over"), "{said:?}");
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let store = Store::new();
    let (said, record) = ended(&store, &["--duration", "200ms", "--stop-over", "1h"]);
    assert_eq!((said.code, &record["status"]), (Some(0), &"complete".into()));
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let store = Store::new();
    // As `nohup` starts a program, and a shell without job control those in its background.
    let run = [&SHORT[..], &["--duration", LONG, "--name", "r"]].concat();
    let child = piped(&mut store.shell("trap '' HUP INT", &run));
    store.wait_measuring("r");
    for (name, number) in [("HUP", libc::SIGHUP), ("INT", libc::SIGINT)] {
        assert!(ignores(child.id(), number), "{name} is not ignored any more");
        signal(&child, name);
    }
    let before = store.count("r");
    eventually("the run continues", || store.count("r") > before);
    signal(&child, "TERM");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let interrupted = list(&record["caveats"]).iter().find(|found| found["code"] == "interrupted");
    assert_eq!(interrupted.unwrap()["values"]["by"], "SIGTERM", "{record}");
}

#[test]
fn so_many_samples_are_taken_as_were_asked_for() {
    let store = Store::new();
    let (said, record) = ended(&store, &["--samples", "321", "--interval", "500us"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for series in list(&record["series"]) {
        assert_eq!(whole(&series["count"]), 321);
    }
}

#[test]
fn signals_end_a_run_early_and_keep_it_whole() {
    for (name, word) in [("INT", "Ctrl-C"), ("TERM", "SIGTERM"), ("HUP", "SIGHUP")] {
        let store = Store::new();
        let child = store.start(&[&SHORT[..], &["--duration", "1h", "--name", "r"]].concat());
        eventually("the run", || fs::read_to_string(store.runs().join("r/machine.csv")).is_ok());
        signal(&child, name);
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert_eq!(record["status"], "interrupted");
        assert!(codes(&record).contains(&"interrupted"));
        assert!(record["caveats"].to_string().contains(word), "{}", record["caveats"]);
        assert!(list(&record["series"]).iter().all(|series| whole(&series["count"]) > 0));
        assert!(!store.runs().join("r/live.hlog").exists(), "it ended in order");
    }
}

#[test]
fn a_run_without_an_end_is_complete_when_somebody_ends_it() {
    for name in ["INT", "TERM"] {
        let store = Store::new();
        let child = store.start(&[&SHORT[..], &["--duration", "inf", "--name", "r"]].concat());
        eventually("the run", || fs::read_to_string(store.runs().join("r/machine.csv")).is_ok());
        let running = store.show("r");
        assert_eq!(running["status"], "running");
        for asked in ["duration_ns", "samples"] {
            assert!(running["parameters"][asked].is_null(), "{}", running["parameters"]);
        }
        signal(&child, name);
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert_eq!(record["status"], "complete", "{said:?}");
        assert!(!codes(&record).contains(&"interrupted"), "{said:?}");
        assert_eq!(whole(&record["log_interval_ns"]), 1_000_000_000);
        assert!(list(&record["series"]).iter().all(|series| whole(&series["count"]) > 0));
        assert!(!store.runs().join("r/live.hlog").exists(), "it ended in order");
    }
}

/// The name of the store's first run, once it has its place.
fn only_run(store: &Store) -> Option<String> {
    let entry = std::fs::read_dir(store.runs())
        .ok()?
        .flatten()
        .find(|entry| entry.path().join("run.json").exists())?;
    entry.file_name().into_string().ok()
}

#[test]
fn a_bare_run_starts_no_load_and_says_first_how_to_add_one() {
    let store = Store::new();
    let child = store.start(&["run"]);
    eventually("a run", || only_run(&store).is_some());
    store.wait_measuring(&only_run(&store).unwrap());
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let first = said.err.lines().next().unwrap();
    assert!(first.contains("No load") && first.contains("--load hackbench"), "{first}");
    let record = store.show("last");
    assert_eq!(record["loads"], serde_json::json!([]));
    assert_eq!(whole(&record["parameters"]["duration_ns"]), 60_000_000_000);
}

#[test]
fn a_load_that_dies_makes_the_run_invalid_with_exit_code_4() {
    let store = Store::new();
    let child = store.start_measuring("r", &["--load", LIGHT_LOAD]);
    let own = i32::try_from(child.id()).unwrap();
    let supervisor = children(&store, own)[0];
    let worker = children(&store, supervisor)[0];
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(worker).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually("the load is gone", || children(&store, own).is_empty());
    let before = store.count("r");
    eventually("the run continues", || store.count("r") > before);
    let (said, record) = store.interrupt("r", child);
    assert_eq!((said.code, &record["validity"]), (Some(4), &"invalid".into()), "{said:?}");
    assert_eq!(codes(&record)[0], "load_died", "the worst comes first");
    assert!(said.out.contains("r: invalid"), "{said:?}");
    assert!(record["loads"][0]["ended"].as_str().unwrap().contains("signal 9"), "{record}");
}

/// The children of `parent` among the processes of this store.
pub(crate) fn children(store: &Store, parent: i32) -> Vec<i32> {
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent_of = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent_of == Some(parent.to_string().as_str())
    };
    store.processes().into_iter().filter(is_child).collect()
}

#[test]
fn the_worse_code_wins_where_two_apply() {
    let store = Store::new();
    // Only the stall below passes this limit.
    let child = store.start(&[
        "run",
        "timer",
        "--warmup",
        "0s",
        "--duration",
        LONG,
        "--interval",
        "10ms",
        "--stop-over",
        "2500ms",
        "--load",
        LIGHT_LOAD,
        "--name",
        "r",
    ]);
    store.wait_measuring("r");
    let supervisor = children(&store, i32::try_from(child.id()).unwrap())[0];
    let pid = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // A stall ends the run over its limit after the load has died.
    signal(&child, "STOP");
    eventually("it stands still", || is_stopped(child.id()));
    pause(Duration::from_millis(2_600));
    signal(&child, "CONT");
    let said = finish(child);
    let record = store.show("r");
    assert_eq!(record["status"], "stopped_over", "{said:?}");
    assert_eq!((said.code, &record["validity"]), (Some(4), &"invalid".into()), "4 is over 1");
}
