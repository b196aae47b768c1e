//! Runs that earlier versions of tardy wrote stay readable, with the same figures. Those of
//! `tests/fixtures/v1` have schema version 1, which left periods, stages and the interval of the
//! log to its readers.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    schema::{faults, schema},
    support::{Store, copy, list, whole},
};

/// A run of version 1, in its own store.
fn kept(name: &str) -> Store {
    let store = Store::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    copy(&fixtures.join(name), &store.runs().join("r"));
    store
}

#[test]
fn every_run_of_version_1_is_read_as_one_of_today() {
    for (name, log_interval_ns) in [
        ("timer", 100_000_000),
        ("pingpong", 100_000_000),
        ("stream", 100_000_000),
        ("receive", 100_000_000),
        ("interrupted", 1_000_000_000),
    ] {
        let store = kept(name);
        let record = store.show("r");
        assert_eq!(faults(&schema(), &record), [""; 0], "{name}");
        assert_eq!(record["log_interval_ns"], json!(log_interval_ns), "{name}");
        let measured = json!({"origin": "measured", "program": "tardy", "version": "0.1.0"});
        assert_eq!(record["provenance"], measured, "{name}");
        assert_eq!(record["parameters"]["warmup_ns"], json!(10_000_000), "{name}");
        let shown = store.run(&["show", "r"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
    }
}

#[test]
fn periods_and_stages_of_version_1_are_those_it_was_measured_with() {
    let record = kept("timer").show("r");
    let of = |name: &str| {
        let series = list(&record["series"]).iter().find(|series| series["name"] == name).unwrap();
        ["period_ns", "stage_of", "stage"].map(|member| series[member].clone())
    };
    assert_eq!(of("cpu0"), [json!(500_000), Value::Null, Value::Null]);
    assert_eq!(of("cpu1/irq"), [Value::Null, json!("cpu1"), json!("irq")]);
    assert_eq!(record["parameters"]["samples"], 400);
    assert_eq!(record["parameters"]["peaks"], 3);
    assert_eq!(record["probe"]["parameters"]["interval_ns"], 500_000);
    let record = kept("stream").show("r");
    assert_eq!(record["series"][1]["stage_of"], "there");
    assert_eq!(record["series"][1]["stage"], "pacing");
    assert_eq!(record["probe"]["parameters"]["to"], Value::Null);
}

#[test]
fn causes_of_version_1_are_still_explained() {
    let store = kept("timer");
    let said = store.run(&["why", "r", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let why: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(whole(&why["blamed"]), 30);
    assert_eq!(list(&why["peaks"]).len(), 3, "as many as were asked for");
    let stages = list(&store.page(&["r"])["runs"][0]["stages"]).len();
    assert_eq!(stages, 8, "four of each series");
}

/// It was to be of a million samples, one every ms, and its log has an interval a second.
#[test]
fn a_heat_map_has_a_column_for_each_interval_of_the_log() {
    let page = kept("interrupted").page(&["r"]);
    let run = &page["runs"][0];
    assert_eq!(run["time_edges_s"], json!([0.0, 1.0, 2.0, 3.0, 4.0, 4.941]));
    let mut filled: Vec<i64> = list(&run["heat"]["time"]).iter().map(whole).collect();
    filled.dedup();
    assert_eq!(filled, [0, 1, 2, 3, 4], "none of them is empty");
}

#[test]
fn without_its_host_an_old_run_is_refused_with_what_to_do_about_it() {
    let store = kept("timer");
    for verb in ["show", "why"] {
        let refused = store.run(&[verb, "r", "--without", "host"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let remedy = "measure again with this one and --trace peaks";
        assert!(refused.err.contains(remedy), "{refused:?}");
    }
    let gated = store.run(&["show", "r", "--without", "host", "--gate", "p99<1s"]);
    assert!(gated.err.contains("leave out --without host, or --gate"), "{gated:?}");
}
