//! Which conditions tell runs apart, and that their hash stays what it is.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::run::fixture;

/// A record of a timer with two loads of one name, changed by `change`.
fn record(change: impl Fn(&mut Value)) -> Value {
    let mut record = json!({
        "schema_version": 2, "id": "i", "name": "n", "status": "complete", "validity": "valid",
        "probe": {"name": "timer", "parameters": {"wake": "nanosleep", "interval_ns": 1_000_000,
            "distance_ns": 0, "cpus": "0-9", "threads_per_cpu": 1, "priority_step": 0}},
        "loads": [
            {"name": "hackbench", "parameters": {"groups": 10}, "proof": null, "ended": null},
            {"name": "hackbench", "parameters": {"groups": 20}, "proof": null, "ended": null},
        ],
        "parameters": {"duration_ns": 60_000_000_000_i64, "samples": null, "warmup_ns": 0,
            "stop_over_ns": null, "profile_hz": null, "raw": false, "peaks": null,
            "peak_over_ns": null},
        "setup": {
            "asked": {"policy": "fifo", "policy_explicit": false, "priority": 90,
                "priority_explicit": false, "cpus": "0-1", "timer_slack_ns": 1,
                "memory_lock": true, "dma_latency_us": null, "shield": false, "governor": null,
                "max_idle_latency_us": null, "no_smt_sibling": false, "housekeeping": null},
            "found": {"policy": "fifo 90", "cpus": "0-1", "settings": []},
        },
        "trace": {"asked": "peaks", "found": "peaks"},
        "facts": {"hostname": "vm", "kernel": "6.12", "architecture": "x86_64",
            "cpu_model": "EPYC"},
        "started_at": "2026-01-01T00:00:00Z", "duration_ns": 60_000_000_000_i64, "series": [],
    });
    change(&mut record);
    record
}

fn conditions(change: impl Fn(&mut Value)) -> RunConditions {
    RunConditions::of_entry(&serde_json::from_value(record(change)).unwrap())
}

fn with(place: &str, value: &Value) -> RunConditions {
    conditions(|record| {
        let (object, name) = place.rsplit_once('/').unwrap();
        record.pointer_mut(object).unwrap()[name] = value.clone();
    })
}

#[test]
fn every_condition_has_a_key_of_its_own() {
    let mut keys = BTreeSet::from([conditions(|_| ()).key()]);
    let changes = [
        ("/trace/found", json!("off")),
        ("/trace/found", json!("stages")),
        ("/facts/architecture", json!("aarch64")),
        ("/setup/found/cpus", json!("0")),
        ("/setup/found/policy", json!("fifo 80")),
        ("/setup/found/policy", json!("rr 90")),
        ("/setup/found/policy", json!("other")),
        ("/setup/found/dma_latency_us", json!(0)),
        ("/setup/found/governor", json!("performance")),
        ("/setup/found/siblings_offline", json!("1")),
        ("/setup/found/shield", json!({"cpus": "0"})),
        ("/setup/found/settings", json!([{"name": "thp", "found": "never"}])),
        ("/setup/asked/timer_slack_ns", json!(50_000)),
        ("/setup/asked/housekeeping", json!("0")),
        ("/parameters/profile_hz", json!(99)),
        ("/parameters/stop_over_ns", json!(7)),
        ("/parameters/duration_ns", json!(60_020_000_000_i64)),
        ("/parameters/samples", json!(1_000)),
        ("/probe/name", json!("other-timer")),
        ("/probe/parameters/interval_ns", json!(2_000_000)),
        ("/probe/parameters/distance_ns", json!(5)),
        ("/probe/parameters/wake", json!("timerfd")),
        ("/loads/0/parameters/groups", json!(30)),
        ("/loads/1/name", json!("memory")),
        ("/loads", json!([])),
    ];
    for (place, value) in &changes {
        assert!(keys.insert(with(place, value).key()), "{place}: {value}");
    }
    assert_eq!(keys.len(), changes.len() + 1);
}

#[test]
fn what_is_compared_is_not_a_condition_and_neither_is_the_order_of_loads() {
    let all = conditions(|_| ());
    for (place, value) in [
        ("/facts/hostname", json!("other")),
        ("/facts/kernel", json!("6.13")),
        ("/facts/cpu_model", json!("Xeon")),
        ("/id", json!("j")),
        ("/started_at", json!("2026-02-01T00:00:00Z")),
        ("/validity", json!("invalid")),
        // As many threads as CPUs are what there is if nobody asks.
        ("/probe/parameters/total_threads", json!(10)),
    ] {
        assert_eq!(with(place, &value), all, "{place}");
    }
    let turned = conditions(|record| record["loads"].as_array_mut().unwrap().reverse());
    assert_eq!((turned.key(), turned.load.as_str()), (all.key(), "hackbench+hackbench"));
}

#[test]
fn no_load_and_the_load_that_does_nothing_are_one_condition() {
    let idle = json!([{"name": "idle", "parameters": {}, "proof": null, "ended": null}]);
    let [none, idle] = [json!([]), idle].map(|loads| with("/loads", &loads));
    assert_eq!((none.load.as_str(), &none), (IDLE, &idle));
    assert_eq!(none.key(), idle.key());
}

#[test]
fn conditions_are_named_and_have_units() {
    let all = conditions(|_| ());
    let expected = "CPUs=0-1; architecture=x86_64; distance=0 s; hackbench (2) groups=20; \
                    hackbench groups=10; planned length=60 s; priority step=0; \
                    threads per cpu=1; tracing=traced; wake=nanosleep";
    assert_eq!(all.text(), expected);
    assert_eq!((all.policy.as_str(), all.priority), ("fifo", 90));
    assert_eq!((all.policy_words(), all.interval_ns), ("fifo 90".into(), 1_000_000));
    let other = with("/setup/found/policy", &json!("other"));
    assert_eq!((other.policy_words(), other.priority), ("other".into(), 0));
}

/// Rows of two versions are merged by it. If this fails, rows of older versions do not merge with
/// those of this one any more: say so in the changelog.
#[test]
fn the_key_is_the_same_in_every_version() {
    assert_eq!(conditions(|_| ()).key(), "26fcf7475f754cfe");
}

#[test]
fn a_record_and_its_entry_have_the_same_conditions() {
    let mut whole: Value = serde_json::to_value(fixture::of("pingpong", &["rtt"])).unwrap();
    for (name, value) in record(|_| ()).as_object().unwrap() {
        if !["series", "facts", "trace"].contains(&name.as_str()) {
            whole[name] = value.clone();
        }
    }
    let document: Document = serde_json::from_value(whole.clone()).unwrap();
    let entry: RunEntry = serde_json::from_value(whole).unwrap();
    assert_eq!(RunConditions::of_document(&document), RunConditions::of_entry(&entry));
    assert_eq!(RunConditions::of_document(&document).others["transport"], "tcp");
}

#[test]
fn names_of_files_are_no_part_of_a_command() {
    assert_eq!(without_outputs("oslat --json -c 1"), "oslat -c 1");
    assert_eq!(without_outputs("cyclictest -p 90 -D 60 > 4.txt 2>4.err"), "cyclictest -p 90 -D 60");
}
