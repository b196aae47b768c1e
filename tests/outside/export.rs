//! `tardy export`: what other programs read of runs, and that imported again it is the same.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    foreign_readers::{has_modules, python},
    support::{Store, copy, finish, in_histogram, list, piped, whole},
    why::made_up,
};

/// A run with samples of two series.
fn measured(store: &Store) -> Value {
    let words = ["run", "fake", "--unpaced", "--samples", "3k", "--warmup", "0s", "--cpus", "0"];
    let words = [&words[..], &["--raw", "--quiet", "--name", "r"]].concat();
    assert_eq!(store.run(&words).code, Some(0));
    store.show("r")
}

fn exported(store: &Store, to: &str) -> String {
    let file = store.path().join(format!("r.{to}"));
    let file = file.to_str().unwrap().to_owned();
    let all: &[&str] = if to == "prometheus" { &["--all-metrics"] } else { &[] };
    let said = store.run(&[&["export", "r", "--to", to, "-o", &file], all].concat());
    assert_eq!(said.code, Some(0), "{to}: {said:?}");
    file
}

#[test]
fn what_is_exported_and_imported_again_has_the_same_counts() {
    let store = Store::new();
    let record = measured(&store);
    let series = &list(&record["series"])[0];
    let kinds = ["cyclictest", "cyclictest-histogram", "cyclictest-json", "hgrm", "hlog"];
    for (number, to) in kinds.into_iter().enumerate() {
        let (file, name) = (exported(&store, to), format!("again{number}"));
        let said = store.run(&["import", &file, "--name", &name]);
        assert_eq!(said.code, Some(0), "{to}: {said:?}");
        let again = store.show(&name);
        let again = &list(&again["series"])[0];
        let (count, max) = (whole(&again["count"]), whole(&again["max"]));
        assert!(
            count == in_histogram(series) || again["count"] == series["count"],
            "{to}: {again}"
        );
        let ours = whole(&series["max"]);
        assert!((ours - max).abs() <= 1_000 + ours / 1_000, "{to}: {ours} {max}");
    }
    let columns = ["--latency-column", "latency_ns", "--series-column", "series", "--unit", "ns"];
    let file = exported(&store, "csv");
    let said = store.run(&[&["import", &file, "--name", "samples"][..], &columns].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    for key in ["count", "min", "mean", "max", "percentiles"] {
        assert_eq!(list(&store.show("samples")["series"])[0][key], series[key], "{key}");
    }
}

#[test]
fn the_drop_in_for_cyclictest_prints_what_readers_of_it_take() {
    let store = Store::new();
    let words = ["-t1", "-i", "300", "-l", "200", "-q", "--policy", "other"];
    let with = |more: &[&str]| {
        let said = store.run(&[&["cyclictest"][..], &words, more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        said.out
    };
    let again = |text: &str, name: &str| {
        let file = store.path().join(name);
        fs::write(&file, text).unwrap();
        let said = store.run(&["import", file.to_str().unwrap(), "--name", name]);
        assert_eq!(said.code, Some(0), "{text}: {said:?}");
        store.show(name)
    };
    let count = |record: &Value| whole(&list(&record["series"])[0]["count"]);
    let json = store.path().join("out.json");
    let text = with(&["-H", "400", "--json", json.to_str().unwrap()]);
    assert!(text.contains("# Histogram\n000000 000000\n"), "{text}");
    assert_eq!(count(&again(&text, "histogram")), 200);
    let record = again(&fs::read_to_string(&json).unwrap(), "json");
    assert_eq!((count(&record), &record["probe"]["name"]), (200, &"cyclictest".into()));
    assert_eq!(count(&again(&with(&[]), "lines")), 200);
    assert_eq!(count(&again(&with(&["-v", "-N"]), "stream")), 200);
    let listed = store.run(&["list", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let kept = list(&listed).iter().filter(|run| run["probe"] == "timer").count();
    assert_eq!(kept, 3, "every one is a run, too: {listed}");
    let refused = store.run(&["cyclictest", "--smi"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("not covered here: `tardy run noise`"), "{refused:?}");
}

#[test]
fn threads_of_the_drop_in_have_the_intervals_of_those_of_cyclictest() {
    let store = Store::new();
    let words = ["-a", "0", "-t3", "-l", "50", "-q", "--policy", "other", "--run-name", "r"];
    let spikes = ["--spike", "0", "--spike-nodes", "2", "-R"];
    let said = store.run(&[&["cyclictest"][..], &words, &spikes].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let threads: Vec<&str> = said.out.lines().filter(|line| line.contains(" C: ")).collect();
    for (line, interval) in threads.iter().zip(["I:1000", "I:1500", "I:2000"]) {
        assert!(line.contains(&format!("{interval} C:     50 ")), "{line}");
    }
    assert_eq!(threads.len(), 3, "{said:?}");
    let spikes = said.out.lines().filter(|line| line.contains(" Spike:")).count();
    assert_eq!(spikes, 2, "{said:?}");
    let record = store.show("r");
    let periods: Vec<i64> =
        list(&record["series"]).iter().map(|own| whole(&own["period_ns"])).collect();
    assert_eq!(periods, [1_000_000, 1_500_000, 2_000_000]);
    assert!(store.run(&["show", "r"]).out.contains("every 1 ms + 500 us per thread"));
}

#[test]
fn the_drop_in_for_oslat_prints_what_readers_of_it_take() {
    let store = Store::new();
    let cpu = tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string();
    let json = store.path().join("out.json");
    let words = ["--duration", "1s", "--cpu-list", &cpu, "-b", "64", "--run-name", "r"];
    let said = store.run(&[&["oslat"][..], &words, &["--json", json.to_str().unwrap()]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let series = &list(&record["series"])[0];
    // Row 1 has the turns without an interruption: the table has all turns.
    let json: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let rows = json["thread"]["0"]["histogram"].as_object().unwrap();
    let turns = whole(&list(&record["conditions"]["threads"])[0]["turns"]);
    assert_eq!(rows.values().map(whole).sum::<i64>(), turns, "{json}");
    // OpenShift's test and crucible's post-processing look for this line.
    let line = said.out.lines().find(|line| line.trim_start().starts_with("Maximum:")).unwrap();
    let value =
        line.trim_start().strip_prefix("Maximum:\t ").unwrap().strip_suffix(" (us)").unwrap();
    assert_eq!(value.parse::<i64>().unwrap(), whole(&series["max"]) / 1_000 + 1, "{record}");
    for (name, text) in [("text", &said.out), ("json", &json.to_string())] {
        let file = store.path().join(name);
        fs::write(&file, text).unwrap();
        let read = store.run(&["import", file.to_str().unwrap(), "--name", name]);
        assert_eq!(read.code, Some(0), "{read:?}");
        let again = store.show(name);
        assert_eq!(list(&again["series"])[0]["count"], series["count"], "{text}");
        assert_eq!(again["probe"]["name"], "oslat");
    }
}

#[test]
fn the_drop_in_for_rtla_prints_what_readers_of_it_take() {
    let store = Store::new();
    let cpu = tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string();
    let run = |name: &str, words: &[&str]| {
        let ours = ["-c", &cpu, "-d", "1", "--run-name", name];
        store.run(&[&["rtla"][..], words, &ours].concat())
    };
    for (name, words) in [
        ("hist", ["timerlat", "hist"]),
        ("noise", ["osnoise", "hist"]),
        ("top", ["timerlat", "top"]),
    ] {
        let said = run(name, &words);
        assert_eq!(said.code, Some(0), "{said:?}");
        let file = store.path().join(name);
        fs::write(&file, &said.out).unwrap();
        let read =
            store.run(&["import", file.to_str().unwrap(), "--name", &format!("{name}-read")]);
        assert_eq!(read.code, Some(0), "{read:?}");
        let (own, again) = (store.show(name), store.show(&format!("{name}-read")));
        let whole_of = |record: &Value| {
            let mut all = list(&record["series"]).iter();
            all.rfind(|series| series["stage_of"].is_null()).cloned().unwrap_or_default()
        };
        let us = |value: &Value| whole(value) / 1_000;
        assert_eq!(whole_of(&again)["count"], whole_of(&own)["count"], "{}", said.out);
        assert_eq!(us(&whole_of(&again)["max"]), us(&whole_of(&own)["max"]), "{}", said.out);
    }
    // Every wake-up takes longer than this.
    let stopped = run("late", &["timerlat", "-T", "1", "--no-aa"]);
    assert_eq!(stopped.code, Some(2), "{stopped:?}");
    assert!(stopped.out.contains("rtla timerlat hit stop tracing\n## CPU "), "{stopped:?}");
    let refused = store.run(&["rtla", "timerlat", "-p", "0"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
    let refused = store.run(&["rtla", "timerlat", "hist", "-u"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("tardy's threads are in user space"), "{refused:?}");
}

#[test]
fn sql_engines_and_python_find_every_count() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let record = measured(&store);
    let kinds = ["histogram-parquet", "parquet", "histogram-csv", "hgrm", "prometheus"];
    let files = kinds.map(|to| exported(&store, to));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_export.py");
    let said = finish(piped(python().arg(script).args(&files)));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let all: i64 = list(&record["series"]).iter().map(in_histogram).sum();
    assert_eq!(whole(&found["hgrm"]), all);
    for series in list(&record["series"]) {
        let name = series["name"].as_str().unwrap();
        assert_eq!(found["duckdb"][name][0], in_histogram(series));
        assert_eq!(found["csv"][name], in_histogram(series));
        assert_eq!(found["pandas"][name], series["count"]);
        assert_eq!(found["prometheus"][name].as_f64(), series["count"].as_f64());
    }
}

#[test]
fn what_a_format_cannot_have_is_refused_with_what_can() {
    let store = Store::new();
    measured(&store);
    let refused = |arguments: &[&str]| {
        let said = store.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        said.err
    };
    let said = refused(&["export", "r", "--to", "parquet"]);
    assert!(said.contains("--to parquet is binary: name a file for it"), "{said}");
    let said = refused(&["export", "r", "--to", "hgrm", "--series", "cpu9"]);
    assert!(said.contains("no such series; there are cpu0"), "{said}");
    let said = refused(&["export", "r", "--to", "json", "--series", "cpu0"]);
    assert!(said.contains("--series is of --to hgrm"), "{said}");
    let said = refused(&["export", "r", "--to", "influx", "--all-metrics"]);
    assert!(said.contains("--all-metrics is of --to prometheus and openmetrics"), "{said}");
    let said = refused(&["export", "r", "r", "--to", "cyclictest"]);
    assert!(said.contains("takes one run"), "{said}");
    let said = refused(&["export", "r", "--to", "influx", "--gate", "max<1s"]);
    assert!(said.contains("--gate is not supported"), "{said}");
    let words = ["run", "fake", "--unpaced", "--samples", "9", "--warmup", "0s", "--name", "few"];
    store.run(&words);
    let file = store.path().join("x.parquet");
    let said = refused(&["export", "few", "--to", "parquet", "-o", file.to_str().unwrap()]);
    assert!(said.contains("--raw") && said.contains("--to histogram-parquet"), "{said}");
    assert!(fs::metadata(file).is_err(), "nothing half-written stays");
}

/// What Perfetto's own schema finds in a file.
pub(crate) fn read_trace(file: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_trace.py");
    let said = finish(piped(python().arg(script).arg(file)));
    assert_eq!(said.code, Some(0), "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn viewers_of_traces_find_every_late_sample_and_every_span_of_its_timeline() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    copy(&made_up(), &store.runs().join("r"));
    let found = read_trace(&exported(&store, "perfetto"));
    assert_eq!(found["clocks"], serde_json::json!([3]), "CLOCK_MONOTONIC");
    let why: Value = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    let spans = list(&found["spans"]);
    let covers = |group: &str, at_ns: i64, ns: i64, name: &str| {
        spans.iter().any(|span| {
            let (from_ns, length_ns) = (whole(&span["at"]), whole(&span["ns"]));
            span["name"] == name
                && span["parent"].as_str().unwrap().ends_with(group)
                && from_ns <= at_ns
                && at_ns + ns <= from_ns + length_ns
        })
    };
    let mut looked_at = 0;
    for peak in list(&why["peaks"]) {
        let (at_ns, latency_ns) = (whole(&peak["at_ns"]), whole(&peak["latency_ns"]));
        let late = spans.iter().filter(|span| whole(&span["at"]) == at_ns);
        let mut late = late.filter(|span| span["name"].as_str().unwrap().ends_with(" late"));
        assert!(late.any(|span| whole(&span["ns"]) == latency_ns), "{peak}");
        for moment in list(&peak["timeline"]).iter().filter(|moment| !moment["ns"].is_null()) {
            let (name, group) =
                (moment["name"].as_str().unwrap(), format!("CPU {}", moment["cpu"]));
            let from_ns = at_ns + whole(&moment["at"]);
            assert!(covers(&group, from_ns, whole(&moment["ns"]), name), "{moment}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 300, "{looked_at}");
    let chrome = fs::read(exported(&store, "chrome")).unwrap();
    let chrome: Value = serde_json::from_slice(&chrome).unwrap();
    let events = list(&chrome["traceEvents"]).iter();
    assert_eq!(events.filter(|event| event["ph"] == "X").count(), spans.len());
}

#[test]
fn a_run_without_late_samples_has_no_timeline_to_export() {
    let store = Store::new();
    measured(&store);
    let said = store.run(&["export", "r", "--to", "chrome"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("--trace peaks"), "{said:?}");
}
