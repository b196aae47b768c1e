//! `run.json` and `--json`: what is in them, and that the counts add up.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::support::{
    LIGHT_LOAD, Store, eventually, is_root, list, read_record, skip, whole, with_time,
};

/// The members that scripts rely on.
const TOP: [&str; 14] = [
    "schema_version",
    "id",
    "name",
    "argv",
    "status",
    "validity",
    "caveats",
    "probe",
    "loads",
    "setup",
    "facts",
    "started_at",
    "ended_at",
    "duration_ns",
];

/// Those that came on top; `docs/run.schema.json` describes them.
const MORE: [&str; 10] = [
    "series",
    "figures",
    "trace",
    "start_monotonic_ns",
    "machine",
    "conditions",
    "messages",
    "provenance",
    "parameters",
    "log_interval_ns",
];

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// `/proc/stat` and `/proc/interrupts` count the same interrupts.
#[test]
#[ignore = "live: twin session::machine::tests::what_came_in_the_warm_up_is_in_no_rate"]
fn interrupts_of_the_warm_up_are_in_no_rate() {
    // A busy machine counts for longer than it measures, but hardly by half of a long warm-up.
    let (store, record, counted_ns) = with_time(|warmup| {
        let store = Store::new();
        let run = ["run", "timer", "--trace", "off", "--name", "r"];
        store.run(&[&run[..], &["--warmup", warmup, "--duration", "500ms"]].concat());
        let record = read_record(&store.runs().join("r"));
        let counted_ns = whole(&record["conditions"]["counted_ns"]);
        let beyond_ns = counted_ns - whole(&record["duration_ns"]);
        let is_short = beyond_ns < whole(&record["parameters"]["warmup_ns"]) / 2;
        is_short.then_some((store, record, counted_ns))
    });
    let table = fs::read_to_string(store.runs().join("r/interrupts.csv")).unwrap();
    let hard = table.lines().filter(|line| line.starts_with("irq,"));
    let came: f64 = hard.map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap()).sum();
    let per_s = came / (counted_ns as f64 / 1e9);
    let known_per_s = record["machine"]["interrupts_per_s"].as_f64().unwrap();
    assert!((0.5..2.0).contains(&(per_s / known_per_s)), "{per_s} and {known_per_s}");
}

#[test]
fn the_json_of_a_loaded_run_has_the_promised_members_and_is_run_json() {
    let store = Store::new();
    let said = store.run(&[
        "run",
        "timer",
        "--duration",
        "1s",
        "--load",
        LIGHT_LOAD,
        "--json",
        "--name",
        "r",
    ]);
    assert!(said.code == Some(0) || said.code == Some(4), "{said:?}");
    let record: Value = serde_json::from_str(&said.out).expect("all of standard output is JSON");
    assert_eq!(keys(&record), TOP.iter().chain(&MORE).copied().collect());
    assert_eq!(keys(&record["probe"]), BTreeSet::from(["name", "parameters"]));
    assert_eq!(keys(&record["setup"]), BTreeSet::from(["asked", "found"]));
    let load = &record["loads"][0];
    assert_eq!(keys(load), BTreeSet::from(["name", "parameters", "proof", "ended"]));
    assert!(whole(&load["proof"]["operations"]) > 0, "{load}");
    assert_eq!((&load["ended"], whole(&load["proof"]["tasks"])), (&"stopped".into(), 1));
    for caveat in list(&record["caveats"]) {
        assert_eq!(keys(caveat), BTreeSet::from(["code", "effect", "text", "remedy", "values"]));
    }
    let is_whole = |series: &&Value| !series["name"].as_str().unwrap().contains('/');
    for series in list(&record["series"]).iter().filter(is_whole) {
        assert_series(series);
    }
    assert!(whole(&record["duration_ns"]) >= 1_000_000_000);
    // The words, not only the values: `show` and the file are the same document.
    let file = fs::read_to_string(store.runs().join("r/run.json")).unwrap();
    assert_eq!((&said.out, &store.run(&["show", "r", "--json"]).out), (&file, &file));
    assert_eq!(store.run(&["show", "r", "--format", "json"]).out, file);
}

fn assert_series(series: &Value) {
    let view = ["count", "mean", "max", "percentiles", "uncertain"];
    let own = ["name", "cpu", "unit", "missed", "early", "above", "min", "stddev", "scheduled"];
    let own = own.iter().chain(&["period_ns", "stage_of", "stage"]);
    assert_eq!(keys(series), view.iter().chain(own).copied().collect());
    assert_eq!(keys(&series["scheduled"]), view.iter().copied().collect());
    let names = BTreeSet::from(["50", "90", "99", "99.9", "99.99", "99.999"]);
    for view in [series, &series["scheduled"]] {
        assert_eq!(keys(&view["percentiles"]), names);
        let values: Vec<i64> = ["50", "90", "99", "99.9", "99.99", "99.999"]
            .iter()
            .map(|name| whole(&view["percentiles"][name]))
            .collect();
        assert!(values.is_sorted() && values[5] <= whole(&view["max"]), "{view}");
    }
    for name in ["count", "missed", "early", "above", "min", "mean", "stddev", "max"] {
        whole(&series[name]);
    }
    assert!(whole(&series["min"]) <= whole(&series["mean"]));
    assert!(whole(&series["mean"]) <= whole(&series["max"]));
    assert_eq!(series["unit"], "ns");
}

#[test]
fn with_a_schedule_every_period_is_a_wakeup_or_missed() {
    let store = Store::new();
    for (wake, interval, interval_ns) in [
        ("nanosleep", "1ms", 1_000_000),
        ("timerfd", "1ms", 1_000_000),
        ("nanosleep", "300us", 300_000),
    ] {
        let name = format!("{wake}-{interval}");
        let run =
            store.measure(&name, &["--duration", "1500ms", "--wake", wake, "--interval", interval]);
        let record = read_record(&run);
        let periods = 1_500_000_000 / interval_ns;
        for series in list(&record["series"]) {
            let sum = whole(&series["count"]) + whole(&series["missed"]);
            // What the last wake-up missed may lie beyond the end.
            let beyond = whole(&series["max"]) / interval_ns + 2;
            assert!((periods..=periods + beyond).contains(&sum), "{name}: {sum}: {series}");
            let scheduled = whole(&series["scheduled"]["count"]);
            assert!((scheduled - sum).abs() <= 2 + sum / 50, "{name}: {series}");
            assert_eq!(series["scheduled"]["max"], series["max"]);
        }
    }
}

#[test]
fn without_a_schedule_nothing_is_missed() {
    let store = Store::new();
    let record = read_record(&store.measure("r", &["--duration", "500ms", "--wake", "relative"]));
    for series in list(&record["series"]) {
        assert!(series["missed"].is_null() && series["scheduled"].is_null(), "{series}");
        assert!((1..=500).contains(&whole(&series["count"])), "{series}");
    }
}

#[test]
fn made_up_samples_are_counted_one_by_one() {
    let store = Store::new();
    store.made_up("100k");
    let latencies: Vec<i64> = (0..100_000).map(|n| tardy::probes::fake::latency_of(0, n)).collect();
    let series = &store.show("r")["series"][0];
    assert_eq!(whole(&series["count"]), 100_000);
    assert_eq!(whole(&series["min"]), *latencies.iter().min().unwrap());
    assert_eq!(whole(&series["max"]), *latencies.iter().max().unwrap());
    let mean = latencies.iter().sum::<i64>() as f64 / 1e5;
    assert_eq!(whole(&series["mean"]), mean.round() as i64);
}

#[test]
fn threads_of_one_cpu_have_names_and_falling_priorities_that_the_kernel_confirms() {
    if !is_root() {
        return skip("real-time priorities need root");
    }
    let store = Store::new();
    let arguments = ["--threads", "3", "--priority-step", "2", "--cpus", "0"];
    let child = store.start_measuring("r", &arguments);
    let seen = threads(child.id());
    let (_, record) = store.interrupt("r", child);
    let names: Vec<_> =
        list(&record["series"]).iter().map(|series| series["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cpu0", "cpu0#1", "cpu0#2"]);
    let found = list(&record["setup"]["found"]["threads"]);
    for (number, priority) in [90, 88, 86].into_iter().enumerate() {
        let (thread, name) = (&found[number], names[number]);
        assert_eq!((&thread["series"], whole(&thread["priority"])), (&name.into(), priority));
        assert_eq!((&thread["policy"], &thread["cpus"]), (&"fifo".into(), &"0".into()));
        // Not tardy's word alone: what the kernel showed to others while it ran.
        let kernel = (format!("tardy/{name}"), whole(&thread["tid"]), priority);
        assert!(seen.contains(&kernel), "{kernel:?} in {seen:?}");
    }
}

/// Name, number and real-time priority of every thread of a process that is SCHED_FIFO.
fn threads(pid: u32) -> Vec<(String, i64, i64)> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let (head, rest) = stat.rsplit_once(')').unwrap();
        let name = head.split_once('(').unwrap().1.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if fields[38] == "1" {
            let tid = entry.file_name().to_str().unwrap().parse().unwrap();
            threads.push((name, tid, fields[37].parse().unwrap()));
        }
    }
    threads
}

#[test]
fn while_it_runs_a_run_is_shown_as_running_with_what_it_has() {
    let store = Store::new();
    let child = store.start_measuring("r", &[]);
    let record = store.show("r");
    assert_eq!((&record["status"], &record["ended_at"]), (&"running".into(), &Value::Null));
    assert!(list(&record["series"]).iter().all(|series| whole(&series["count"]) > 0));
    assert!(store.run(&["show", "r"]).out.contains("still running"));
    assert!(store.run(&["list"]).out.contains(" running "));
    let page = store.page(&["r"]);
    assert_eq!(page["runs"][0]["record"]["status"], "running");
    let before = whole(&record["series"][0]["count"]);
    eventually("more samples", || whole(&store.show("r")["series"][0]["count"]) > before);
    assert_eq!(store.interrupt("r", child).0.code, Some(0));
}
