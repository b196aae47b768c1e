//! Many machines: what `deploy/` holds, against what tardy writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::{
    foreign_readers::{has_modules, python},
    support::{Store, copy, finish, piped, read_record, skip, whole},
};

fn deploy(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    fs::read_to_string(path).unwrap()
}

/// Runs of one series, by the names of their machines.
fn measured(store: &Store, machines: &[(&str, &str)]) {
    let of = |(run, machine): &(&str, &str)| measured_with(store, run, machine, &["--unpaced"]);
    machines.iter().for_each(of);
}

fn measured_with(store: &Store, run: &str, machine: &str, more: &[&str]) {
    let words = ["run", "fake", "--samples", "2k", "--warmup", "0s", "--cpus", "0", "--quiet"];
    let said = store.run(&[&words[..], more, &["--name", run]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut record = read_record(&store.runs().join(run));
    record["facts"]["hostname"] = machine.into();
    // Verdicts are kept apart, and on a busy machine one of them could be weakened.
    (record["validity"], record["caveats"]) = ("valid".into(), Value::Array(Vec::new()));
    fs::write(store.runs().join(run).join("run.json"), record.to_string()).unwrap();
}

fn exported(store: &Store, runs: &[&str], to: &str) -> String {
    exported_with(store, runs, to, &[])
}

fn exported_with(store: &Store, runs: &[&str], to: &str, more: &[&str]) -> String {
    let file = store.path().join(format!("{to}-{}", runs.concat()));
    let file = file.to_str().unwrap().to_owned();
    let said = store.run(&[&["export"][..], runs, &["--to", to, "-o", &file], more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    file
}

/// A machine of a made-up fleet.
struct Machine {
    host: &'static str,
    /// Absent in runs of older versions.
    id: Option<&'static str>,
    /// Its record of a run without loads.
    idle: &'static str,
}

const FLEET: [Machine; 3] = [
    Machine { host: "a", id: Some("0a"), idle: "[]" },
    // Another machine of this name.
    Machine { host: "a", id: Some("0b"), idle: IDLE },
    Machine { host: "b", id: None, idle: IDLE },
];

const IDLE: &str = r#"[{"name": "idle", "parameters": {}, "proof": null, "ended": null}]"#;
const HACKBENCH: &str = r#"[{"name": "hackbench", "parameters": {"groups": 4}, "proof": null,
    "ended": null}]"#;

/// The runs that examples/fifo-other.toml leaves on each machine, by name: its policies, its loads,
/// its repeats. Samples under OTHER are larger.
fn plan_on_each_machine(store: &Store) -> Vec<String> {
    let plan = include_str!("../../examples/fifo-other.toml");
    for line in ["policies = [\"fifo:90\", \"other\"]", "repeat = 3", "use = [\"hackbench\"]"] {
        assert!(plan.contains(line), "{plan}");
    }
    measured(store, &[("fifo", "a")]);
    measured_with(store, "other", "a", &["--distribution", "exponential"]);
    let probe = read_record(&store.runs().join("fifo"))["probe"].take();
    let mut names = Vec::new();
    for (number, Machine { host, id, idle }) in FLEET.iter().enumerate() {
        for (policy, from) in [("fifo 90", "fifo"), ("other", "other")] {
            for loads in [idle, HACKBENCH] {
                for repeat in 1..=3 {
                    let name = format!("r{number}-{}", names.len());
                    let at = store.runs().join(&name);
                    copy(&store.runs().join(from), &at);
                    let mut record = read_record(&at);
                    (record["id"], record["name"]) = (name.as_str().into(), name.as_str().into());
                    record["started_at"] = format!("2026-01-0{repeat}T00:00:00Z").into();
                    record["facts"]["hostname"] = (*host).into();
                    record["facts"]["machine_id"] = (*id).into();
                    record["facts"]["labels"] = json!({"rack": format!("r{number}")});
                    record["setup"]["found"]["policy"] = policy.into();
                    record["probe"] = probe.clone();
                    record["loads"] = serde_json::from_str(loads).unwrap();
                    fs::write(at.join("run.json"), record.to_string()).unwrap();
                    names.push(name);
                }
            }
        }
    }
    names
}

/// Rows of a table by the names of its columns.
fn table(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let head: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

#[test]
fn a_plan_merges_into_as_many_rows_as_it_has_conditions() {
    let store = Store::new();
    let names = plan_on_each_machine(&store);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let files = ["histogram-parquet", "merged-csv"].map(|to| exported(&store, &names, to));
    let rows = table(&fs::read_to_string(&files[1]).unwrap());
    let (fleet, hosts): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["scope"] == "fleet");
    let conditions = |rows: &[&BTreeMap<String, String>]| -> BTreeSet<[String; 4]> {
        let own = ["policy", "priority", "load", "conditions_key"];
        rows.iter().map(|row| own.map(|name| row[name].clone())).collect()
    };
    assert_eq!((fleet.len(), conditions(&fleet).len()), (4, 4), "{fleet:?}");
    assert_eq!((hosts.len(), conditions(&hosts)), (12, conditions(&fleet)), "{hosts:?}");
    for row in &fleet {
        assert_eq!((&*row["machines"], &*row["runs"]), ("3", "9"), "{row:?}");
        let alone = read_record(&store.runs().join(&row["policy"]));
        assert_eq!(row["max_ns"], alone["series"][0]["max"].to_string(), "{row:?}");
        assert_eq!(row["samples"], (9 * whole(&alone["series"][0]["count"])).to_string());
    }
    let machines: BTreeSet<_> = hosts.iter().map(|row| (&row["host"], &row["machine"])).collect();
    assert_eq!(machines.len(), 3, "{machines:?}");
    let racks: BTreeSet<_> = hosts.iter().map(|row| &*row["labels"]).collect();
    assert_eq!(racks, ["rack=r0", "rack=r1", "rack=r2"].into());
    if !has_modules() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/merge_fleet.py");
    let mut command = python();
    command.arg(script).arg("duckdb").args(&files).args(["a", "b", "off"]);
    let said = finish(piped(&mut command));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&found["rows"], &found["reported"]), (&16.into(), &2.into()), "{found}");
    assert_eq!((&found["machines"], &found["silent"]), (&3.into(), &1.into()), "{found}");
    // The machine of the last run, and all together.
    assert_eq!(found["overlapping"], 2, "{found}");
}

#[test]
fn a_run_is_merged_once_alone() {
    let store = Store::new();
    measured(&store, &[("r", "a"), ("s", "b")]);
    let twice = store.run(&["export", "r", "s", "r", "--to", "merged-csv"]);
    assert_eq!(twice.code, Some(0));
    assert!(twice.err.contains("1 run named more than once; each is taken once"), "{twice:?}");
    assert_eq!(twice.out, store.run(&["export", "r", "s", "--to", "merged-csv"]).out);
}

#[test]
fn labels_of_the_machine_are_in_its_runs_and_an_odd_one_is_an_error() {
    let store = Store::new();
    let file = store.path().join("labels");
    let run = |text: &str| {
        fs::write(&file, text).unwrap();
        let words = ["run", "fake", "--unpaced", "--samples", "9", "--quiet", "--name", "r"];
        finish(piped(store.tardy(&words).env("TARDY_LABELS", &file)))
    };
    let odd = run("rack r12\n");
    assert_eq!(odd.code, Some(2), "{odd:?}");
    assert!(odd.err.contains("labels: line 1: not a label; write name=value"), "{odd:?}");
    let said = run("# where it stands\nrack=r12\nrole=db\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    let facts = &read_record(&store.runs().join("r"))["facts"];
    assert_eq!(facts["labels"], json!({"rack": "r12", "role": "db"}));
    let rows = store.run(&["export", "r", "--to", "histogram-csv"]).out;
    assert!(rows.contains("\"rack=r12,role=db\""), "{rows}");
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
    let files = ["prometheus", "openmetrics"]
        .map(|to| exported_with(&store, &["r", "s"], to, &["--all-metrics"]));
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

#[test]
#[ignore = "long: DuckDB merges 8 million rows in 128 MB"]
fn a_fleet_is_merged_night_by_night_in_bounded_memory() {
    if !has_modules() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/scale_fleet.py");
    let mut command = python();
    command.arg(script).arg(place.path()).args(["100", "4", "20", "1000", "128"]);
    let said = finish(piped(&mut command));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let queries = found["queries"].as_object().unwrap();
    assert_eq!(queries.len(), 6, "{found}");
    // Beside what it limits, DuckDB has its program and its threads.
    for (name, own) in queries {
        assert!(whole(&own["rss_mb"]) < 2 * 128 + 150, "{name}: {found}");
    }
    println!("{found}");
}

/// Where tools/prometheus put Prometheus's programs.
fn prometheus() -> Option<PathBuf> {
    let place = env::var_os("TARDY_TEST_PROMETHEUS").map(PathBuf::from);
    if place.is_none() {
        skip(
            "no programs of Prometheus; make long-prometheus fetches them (TARDY_TEST_PROMETHEUS)",
        );
    }
    place.map(|place| place.join("usr/bin"))
}

#[test]
#[ignore = "long: it needs Prometheus's programs, which make long-prometheus fetches"]
fn promtool_passes_the_rules_and_their_tests() {
    let Some(programs) = prometheus() else { return };
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus");
    for words in [
        &["check", "rules", "tardy.rules.yml", "expected.rules.yml"][..],
        &["test", "rules", "tardy.test.yml"],
    ] {
        let mut promtool = Command::new(programs.join("promtool"));
        let said = finish(piped(promtool.args(words).current_dir(&rules)));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

#[test]
#[ignore = "long: it needs Prometheus's programs, which make long-prometheus fetches"]
fn prometheus_scrapes_one_set_of_series_however_many_nights_there_are() {
    let Some(programs) = prometheus() else { return };
    let store = Store::new();
    let nights = [&["r", "s"], &["t", "u"]].map(|[a, b]| {
        measured(&store, &[(a, "a"), (b, "b")]);
        exported(&store, &[a, b], "prometheus")
    });
    // No machine has only valid runs.
    for night in &nights {
        let invalid = fs::read_to_string(night).unwrap();
        let lines = invalid.lines().map(|line| match line.strip_suffix(" 1") {
            Some(labels) if line.starts_with("tardy_run_valid{") => format!("{labels} 0\n"),
            _ => format!("{line}\n"),
        });
        fs::write(night, lines.collect::<String>()).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/scrape_fleet.py");
    let said = finish(piped(python().arg(script).arg(programs).args(&nights)));
    assert_eq!(said.code, Some(0), "{said:?}");
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["hosts"], json!(["a", "b"]), "{found}");
    // The label of the target is there, and took nothing from tardy's.
    assert_eq!((&found["target"], &found["renamed"]), (&json!(["of-the-target"]), &json!([])));
    // Of each machine: p99.9, maximum, missed; validity, start, conditions.
    assert_eq!((&found["new_series"], &found["series"]), (&json!(0), &json!(12)), "{found}");
    assert_eq!((&found["empty"], &found["valid_machines"]), (&json!([]), &json!("0")), "{found}");
    let alerts = found["alerts"].to_string();
    assert!(alerts.contains("TardyNeverReported") && alerts.contains("TardyRunNotValid"));
    assert!(alerts.contains("TardyMachineMissing"), "web1 and web2 never reported: {alerts}");
}
