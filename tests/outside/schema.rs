//! `docs/run.schema.json`: it takes what tardy writes, and refuses what tardy would not.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::support::{LIGHT_LOAD, Store, finish, read_record, signal};

/// The schema, itself checked against draft 2020-12.
pub(crate) fn schema() -> Validator {
    // A guest that runs these tests does not have the file.
    validator(include_str!("../../docs/run.schema.json"))
}

/// That of this text.
pub(crate) fn validator(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

pub(crate) fn faults(schema: &Validator, record: &Value) -> Vec<String> {
    let fault =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    schema.iter_errors(record).map(fault).collect()
}

#[test]
fn every_kind_of_run_keeps_to_the_schema() {
    let (store, schema) = (Store::new(), schema());
    for (name, arguments) in [
        ("loaded", &["--duration", "1s", "--load", LIGHT_LOAD, "--load", "idle"][..]),
        ("raw", &["--samples", "100", "--raw", "--threads", "2"]),
        ("relative", &["--duration", "200ms", "--wake", "relative", "--no-dma-latency"]),
        ("timerfd", &["--duration", "200ms", "--wake", "timerfd", "--policy", "other"]),
        ("limited", &["--duration", "200ms", "--stop-over", "1h", "--cpus", "0"]),
    ] {
        let record = read_record(&store.measure(name, arguments));
        assert_eq!(faults(&schema, &record), [""; 0], "{name}: {record}");
    }
    let fake = ["run", "fake", "--warmup", "0s", "--duration", "1h", "--stop-over", "1us"];
    store.run(&[&fake[..], &["--name", "fake"]].concat());
    let record = store.show("fake");
    assert_eq!(faults(&schema, &record), [""; 0], "{record}");
}

#[test]
fn a_run_that_goes_on_or_was_killed_keeps_to_the_schema() {
    let (store, schema) = (Store::new(), schema());
    let child = store.start(&["run", "timer", "--warmup", "0s", "--duration", "1h", "--name", "r"]);
    store.wait_measuring("r");
    let on_disk = read_record(&store.runs().join("r"));
    assert_eq!(on_disk["status"], "running");
    assert_eq!(faults(&schema, &on_disk), [""; 0], "{on_disk}");
    assert_eq!(faults(&schema, &store.show("r")), [""; 0]);
    signal(&child, "KILL");
    finish(child);
    let crashed = store.show("r");
    assert_eq!(crashed["status"], "crashed");
    assert_eq!(faults(&schema, &crashed), [""; 0], "{crashed}");
}

/// Changes that no tardy makes: where, and what stands there then.
fn mutations() -> Vec<(&'static str, Value)> {
    vec![
        ("/schema_version", json!(1)),
        ("/id", json!("last")),
        ("/name", json!("")),
        ("/argv", json!([])),
        ("/status", json!("done")),
        ("/validity", json!("fine")),
        ("/validity", json!("invalid")),
        ("/caveats", json!([{"code": "x", "effect": "informs", "text": "t"}])),
        ("/caveats", json!([{"code": "x", "effect": "scares", "text": "t", "remedy": "r"}])),
        (
            "/caveats",
            json!([{"code": "load_died", "effect": "invalidates", "text": "t", "remedy": "r"}]),
        ),
        ("/probe/name", json!(7)),
        ("/probe/parameters/interval_ns", json!("1ms")),
        ("/probe/parameters/interval_ns", json!(0)),
        ("/probe/parameters/wake", json!("alarm")),
        ("/probe/name", json!("fake")),
        ("/parameters/samples", json!(5)),
        ("/parameters/duration_ns", json!(null)),
        ("/parameters/raw", json!(0)),
        ("/provenance/origin", json!("guessed")),
        ("/log_interval_ns", json!(0)),
        ("/loads/0/proof/operations", json!(1.5)),
        ("/loads/0/proof/tasks", json!(0)),
        ("/loads/0/ended", json!(0)),
        ("/setup/asked/policy", json!("batch")),
        ("/setup/found/threads/0/tid", json!("1")),
        ("/trace", json!(null)),
        ("/trace/asked", json!("all")),
        ("/trace/found", json!("auto")),
        ("/facts/kernel", json!(null)),
        ("/facts/preemption/model", json!("")),
        ("/started_at", json!("yesterday")),
        ("/ended_at", json!(null)),
        ("/duration_ns", json!(-1)),
        ("/duration_ns", json!(0.5)),
        ("/start_monotonic_ns", json!(0)),
        ("/machine/interrupts_per_s", json!(null)),
        ("/machine/cpus/0/busy", json!(1.5)),
        ("/conditions/looks", json!(-1)),
        ("/conditions/threads/0/migrations", json!("none")),
        ("/conditions/cpus/0/frequency_khz", json!([1])),
        ("/series", json!([])),
        ("/series/0/unit", json!("us")),
        ("/series/0/period_ns", json!(0)),
        ("/series/0/stage_of", json!(0)),
        ("/series/0/count", json!(-1)),
        ("/series/0/count", json!(0)),
        ("/series/0/missed", json!(null)),
        ("/series/0/max", json!(12.5)),
        ("/series/0/max", json!(null)),
        ("/series/0/percentiles", json!({"50": 1})),
        ("/series/0/percentiles/50", json!(1.5)),
        ("/series/0/percentiles/50", json!(-1)),
        ("/series/0/uncertain", json!(["98"])),
        ("/series/0/scheduled", json!(null)),
        ("/series/0/scheduled/percentiles", json!({"100": 1})),
    ]
}

/// Every place of a member in `value`, as JSON pointers.
fn members(value: &Value, at: &str, places: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                places.push((at.to_owned(), key.clone()));
                members(
                    value,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    places,
                );
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                members(value, &format!("{at}/{number}"), places);
            }
        }
        _ => {}
    }
}

fn loaded() -> Value {
    let store = Store::new();
    // Long enough for the load to be seen at work on a busy machine.
    let arguments = ["--duration", "1s", "--cpus", "0", "--load", LIGHT_LOAD];
    let mut record = read_record(&store.measure("r", &arguments));
    // What the machine at hand adds is not what is mutated here.
    record["caveats"] = json!([]);
    record["validity"] = json!("valid");
    // Nor is what it missed: only a series that has missed some may have no view per period.
    record["series"][0]["missed"] = json!(0);
    record
}

#[test]
fn a_record_that_was_tampered_with_is_refused() {
    let (schema, record) = (schema(), loaded());
    assert_eq!(faults(&schema, &record), [""; 0]);
    for (place, value) in mutations() {
        let mut record = record.clone();
        *record.pointer_mut(place).unwrap() = value.clone();
        assert!(!schema.is_valid(&record), "{place} = {value} was taken");
    }
}

#[test]
fn a_record_without_one_of_its_members_is_refused() {
    /// Parts of these: named by load; or what the machine did not let be read back.
    const PARTS_MAY_BE_ABSENT: [&str; 2] = ["/loads/0/parameters", "/setup/found"];
    /// If the kernel does not tell what others used; if the machine has no id.
    const MAY_BE_ABSENT: [&str; 2] = ["/conditions/foreign", "/facts/machine_id"];
    let (schema, record) = (schema(), loaded());
    let mut places = Vec::new();
    members(&record, "", &mut places);
    assert!(places.len() > 100, "a record has many members: {}", places.len());
    places.retain(|(at, key)| {
        let place = format!("{at}/{key}");
        !PARTS_MAY_BE_ABSENT.contains(&at.as_str()) && !MAY_BE_ABSENT.contains(&place.as_str())
    });
    for (at, key) in &places {
        let mut record = record.clone();
        record.pointer_mut(at).unwrap().as_object_mut().unwrap().remove(key);
        assert!(!schema.is_valid(&record), "without {at}/{key} it was taken");
    }
}

/// A stream there and back with a remote endpoint on another machine.
fn of_messages() -> Value {
    let mut record = loaded();
    let end = |name: &str, place: &str| {
        json!({
            "name": name, "place": place, "address": null, "cpu": 0, "policy": "fifo 90",
            "wait": "sleep", "receive_buffer_bytes": 212_992, "send_buffer_bytes": null,
            "version": null,
        })
    };
    let flow = |series: &str| {
        json!({
            "series": series, "sent": 10, "received": 9, "lost": 1, "late": 2,
            "late_over_ns": 1_000_000, "duplicated": 0, "reordered": 0, "foreign": 0,
            "wanted_per_s": 1000.0, "achieved_per_s": 999.5,
        })
    };
    record["messages"] = json!({
        "transport": "udp", "size": 64, "ends": [end("near", "process"), end("far", "machine")],
        "flows": [flow("there"), flow("back")],
        "clock": {
            "offset_ns": -5, "uncertainty_ns": 9_000, "drift_ppb": -1.5, "exchanges": 64,
            "shortest_round_trip_ns": 18_000,
        },
    });
    record["probe"] = json!({"name": "stream", "parameters": {
        "transport": "udp", "size": 64, "rate_per_s": 1000.0, "both_ways": true, "wait": "sleep",
        "far_wait": null, "late_over_ns": 1_000_000, "cpu": 0, "far_cpu": null,
        "far_priority": null, "to": "10.0.0.2:5555", "group": null, "receivers": null,
    }});
    record
}

#[test]
fn what_is_said_of_messages_is_whole_and_in_its_units() {
    let (schema, record) = (schema(), of_messages());
    assert_eq!(faults(&schema, &record), [""; 0]);
    for (place, value) in [
        ("/messages/transport", json!("")),
        ("/messages/size", json!(-1)),
        ("/messages/ends", json!([])),
        ("/messages/ends/0/name", json!("there")),
        ("/messages/ends/1/place", json!("elsewhere")),
        ("/messages/flows/0/lost", json!(null)),
        ("/messages/flows/0/late_over_ns", json!(null)),
        ("/messages/flows/1/achieved_per_s", json!("1kpps")),
        ("/messages/clock/uncertainty_ns", json!(-1)),
        ("/messages/clock/exchanges", json!(0)),
        ("/probe/name", json!("timer")),
    ] {
        let mut record = record.clone();
        *record.pointer_mut(place).unwrap() = value.clone();
        assert!(!schema.is_valid(&record), "{place} = {value} was taken");
    }
    let mut places = Vec::new();
    members(&record["messages"], "/messages", &mut places);
    assert!(places.len() > 40, "{}", places.len());
    for (at, key) in &places {
        let mut record = record.clone();
        record.pointer_mut(at).unwrap().as_object_mut().unwrap().remove(key);
        assert!(!schema.is_valid(&record), "without {at}/{key} it was taken");
    }
}

#[test]
fn what_a_later_tardy_adds_is_passed_over() {
    let (store, schema) = (Store::new(), schema());
    let mut record = loaded();
    for place in ["", "/series/0", "/facts", "/setup/found", "/probe/parameters", "/loads/0"] {
        record.pointer_mut(place).unwrap()["from_the_future"] = json!({"any": ["thing"]});
    }
    assert_eq!(faults(&schema, &record), [""; 0]);
    let run = store.runs().join("r");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("run.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    assert_eq!(store.show("r")["id"], record["id"], "and tardy reads it, too");
}
