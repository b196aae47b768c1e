//! Many machines: what `deploy/` holds, against what tardy writes.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use super::{
    foreign_readers::{has_modules, python},
    support::{Store, finish, piped, skip},
};

fn deploy(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    fs::read_to_string(path).unwrap()
}

/// Runs of two series, by the names of their machines.
fn measured(store: &Store, machines: &[(&str, &str)]) {
    for (run, machine) in machines {
        let words = ["run", "fake", "--unpaced", "--samples", "2k", "--warmup", "0s"];
        let said = store.run(&[&words[..], &["--cpus", "0", "--quiet", "--name", run]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let file = store.runs().join(run).join("run.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        record["facts"]["hostname"] = (*machine).into();
        // Verdicts are kept apart, and on a busy machine one of them could be weakened.
        (record["validity"], record["caveats"]) = ("valid".into(), Value::Array(Vec::new()));
        fs::write(&file, record.to_string()).unwrap();
    }
}

fn exported(store: &Store, runs: &[&str], to: &str) -> String {
    let file = store.path().join(to).to_str().unwrap().to_owned();
    let said = store.run(&[&["export"][..], runs, &["--to", to, "-o", &file]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    file
}

#[test]
fn sql_merges_a_fleet_to_the_same_counts_and_counts_who_is_silent() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    measured(&store, &[("r", "a"), ("s", "b"), ("t", "a")]);
    let files =
        ["histogram-parquet", "merged-csv"].map(|to| exported(&store, &["r", "s", "t"], to));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/merge_fleet.py");
    let mut command = python();
    command.arg(script).arg("duckdb").args(&files).args(["a", "b", "off"]);
    let said = finish(piped(&mut command));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&found["rows"], &found["reported"]), (&3.into(), &2.into()), "{found}");
    assert_eq!((&found["machines"], &found["silent"]), (&3.into(), &1.into()), "{found}");
    // The machine of the last run, and all together.
    assert_eq!(found["overlapping"], 2, "{found}");
    let twice = store.run(&["export", "r", "s", "r", "--to", "merged-csv"]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.err.contains("the same run; name it once"), "{twice:?}");
}

/// Whether Python has the readers that `tests/python/check_fleet.py` asks.
fn has_readers() -> bool {
    let words = ["-c", "import grafana_foundation_sdk, kubernetes_validate, prometheus_client"];
    let there = python().args(words).output().is_ok_and(|output| output.status.success());
    if !there {
        skip("no Python with the modules of tests/python/requirements.txt (TARDY_TEST_PYTHON)");
    }
    there
}

#[test]
fn the_readers_of_prometheus_kubernetes_and_grafana_refuse_nothing() {
    if !has_readers() {
        return;
    }
    let store = Store::new();
    measured(&store, &[("r", "a"), ("s", "b")]);
    let files = ["prometheus", "openmetrics"].map(|to| exported(&store, &["r", "s"], to));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/check_fleet.py");
    let said = finish(piped(python().arg(script).args(&files)));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&found["manifests"], &found["panels"]), (&11.into(), &8.into()), "{found}");
    assert!(found["samples"].as_u64().unwrap() > 20, "{found}");
}

/// Names of metrics, as they stand in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("tardy_")).collect()
}

#[test]
fn the_dashboard_and_the_rules_ask_for_metrics_that_are_written() {
    let store = Store::new();
    measured(&store, &[("r", "a")]);
    let written = fs::read_to_string(exported(&store, &["r"], "openmetrics")).unwrap();
    let there = metrics(&written);
    let dashboard: Value = serde_json::from_str(&deploy("grafana/tardy-fleet.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let asked: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let asked = asked.join(" ");
    assert!(metrics(&asked).len() > 4, "{asked}");
    for name in metrics(&asked).union(&metrics(&deploy("prometheus/tardy.rules.yml"))) {
        assert!(there.contains(name), "{name} is not among {there:?}");
    }
}
