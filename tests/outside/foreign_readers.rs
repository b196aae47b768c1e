//! What other people's programs read from a run: Python's hdrhistogram, pandas and DuckDB.
//!
//! The Python to use is `TARDY_TEST_PYTHON` (default `python3`); its modules are listed in
//! `tests/python/requirements.txt`.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::support::{
    LIGHT_LOAD, Store, eventually, finish, in_histogram, list, piped, read_record, signal, skip,
    whole,
};

pub(crate) fn python() -> Command {
    let python = std::env::var_os("TARDY_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    Command::new(python)
}

pub(crate) fn has_modules() -> bool {
    // Whether they are there; importing all takes a second of CPU.
    let names = "hdrh pandas perfetto pyarrow duckdb junitparser tap";
    let script = "import importlib.util, sys\n\
                  sys.exit(not all(map(importlib.util.find_spec, sys.argv[1].split())))";
    let asked = python().args(["-c", script, names]).output();
    let there = asked.is_ok_and(|output| output.status.success());
    if !there {
        skip("no Python with the modules of tests/python/requirements.txt (TARDY_TEST_PYTHON)");
    }
    there
}

/// What `tests/python/read_run.py` finds.
fn read(run: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_run.py");
    let said = finish(piped(python().arg(script).arg(run)));
    assert_eq!(said.code, Some(0), "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// Equal within 0.1%, the width of a histogram's bucket, and 1 ns.
fn is_close(found: i64, ours: i64) -> bool {
    (found - ours).abs() as f64 <= ours as f64 * 0.001 + 1.0
}

fn assert_log(found: &Value, record: &Value) {
    for series in list(&record["series"]) {
        let tag = series["name"].as_str().unwrap();
        let log = &found["log"][tag];
        assert_eq!(whole(&log["count"]), in_histogram(series), "{tag}: {found}");
        assert!(is_close(whole(&log["max"]), whole(&series["max"])), "{tag}: {log} {series}");
    }
}

fn assert_samples(found: &Value, record: &Value) {
    for series in list(&record["series"]) {
        let name = series["name"].as_str().unwrap();
        for reader in ["pandas", "duckdb"] {
            let rows = &found[reader][name];
            assert_eq!(rows["count"], series["count"], "{reader}: {found}");
            assert_eq!(rows["max"], series["max"], "{reader}: {found}");
        }
        for (percentile, ours) in series["percentiles"].as_object().unwrap() {
            let theirs = whole(&found["pandas"][name]["percentiles"][percentile]);
            assert!(is_close(theirs, whole(ours)), "{name} {percentile}%: {theirs} {ours}");
        }
        let distance = whole(&found["pandas"][name]["distance_ns"]);
        let interval = whole(&record["probe"]["parameters"]["interval_ns"]);
        assert_eq!(distance, interval, "expiries are one interval apart");
    }
}

#[test]
fn python_reads_what_a_run_measured_and_agrees() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let run = store.measure(
        "timer",
        &["--duration", "1s", "--raw", "--interval", "500us", "--load", LIGHT_LOAD],
    );
    let (found, record) = (read(&run), read_record(&run));
    assert_log(&found, &record);
    assert_samples(&found, &record);
}

#[test]
fn pandas_reads_the_samples_of_a_killed_run_once_it_is_repaired() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let child = store.start_measuring("r", &["--raw"]);
    let samples = store.runs().join("r/samples");
    eventually("single samples", || samples.join("000001.spool").exists());
    signal(&child, "KILL");
    finish(child);
    let rows = || {
        let script = "import pandas, sys; print(len(pandas.read_parquet(sys.argv[1])))";
        finish(piped(python().args(["-c", script]).arg(&samples)))
    };
    assert_ne!(rows().code, Some(0), "a spool is nothing for pandas");
    let said = store.run(&["repair", "r", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let repaired: Value = serde_json::from_str(&said.out).unwrap();
    let (rows, ours) = (rows(), whole(&repaired[0]["repair"]["samples"]));
    assert!(ours > 0 && rows.out.trim() == ours.to_string(), "{rows:?} {repaired}");
}

#[test]
fn python_agrees_on_a_hundred_thousand_known_samples() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    store.made_up("100k");
    let run = store.runs().join("r");
    let (found, record) = (read(&run), read_record(&run));
    assert_log(&found, &record);
    assert_samples(&found, &record);
}

#[test]
fn python_reads_the_closed_files_of_a_run_that_was_killed() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let child = store.start(&[
        "run",
        "timer",
        "--trace",
        "off",
        "--warmup",
        "0s",
        "--duration",
        "1h",
        "--raw",
        "--name",
        "r",
    ]);
    let run = store.runs().join("r");
    let samples = |kind: &str| -> Vec<std::path::PathBuf> {
        let files = fs::read_dir(run.join("samples")).into_iter().flatten().flatten();
        let files = files.map(|file| file.path());
        files.filter(|file| file.extension().is_some_and(|own| own == kind)).collect()
    };
    // Files are closed every 10 s; what comes after is in a spool.
    eventually("a file is closed", || !samples("parquet").is_empty());
    let spool =
        || samples("spool").into_iter().find(|file| !file.with_extension("parquet").exists());
    eventually("a spool after it", || {
        let length = spool().and_then(|file| fs::metadata(file).ok()).map(|file| file.len());
        length > Some(1_000)
    });
    signal(&child, "KILL");
    finish(child);
    let (found, record) = (read(&run), store.show("r"));
    assert_eq!(record["status"], "crashed");
    let closed = samples("parquet").len();
    assert_eq!(whole(&found["files"]), i64::try_from(closed).unwrap(), "{found}");
    let page = store.page(&["r"]);
    for (number, series) in list(&record["series"]).iter().enumerate() {
        let name = series["name"].as_str().unwrap();
        // The interval in progress is in live.hlog, which is its own log.
        let logged = whole(&found["log"][name]["count"]);
        assert!(0 < logged && logged <= in_histogram(series), "{found} {series}");
        let closed = whole(&found["pandas"][name]["count"]);
        assert_eq!(found["duckdb"][name]["count"], found["pandas"][name]["count"]);
        let all = whole(&page["runs"][0]["series"][number]["points"]["of"]);
        assert!(0 < closed && closed < all, "the spool holds the rest: {closed} of {all}");
    }
}

#[test]
fn a_build_server_reads_the_gates_of_several_runs() {
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--unpaced", "--samples", "2000"];
    for name in ["good", "a<b> # SKIP & \"c\""] {
        let said = store.run(&[&run[..], &["--interval", "10us", "--name", name]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let written = |format: &str| {
        let file = store.path().join(format);
        let gates = ["--gate", "max<1s", "--gate", "p99.9<=1s", "--gate", "max<1us"];
        let submitted = ["--origin", "lab", "--build-id", "maestro:1"];
        let to = if format == "kcidb" { &submitted[..] } else { &[] };
        let said = store.run(
            &[
                &["export", "last~1", "last", "--to", format, "-o", file.to_str().unwrap()],
                &gates[..],
                to,
            ]
            .concat(),
        );
        assert_eq!(said.code, Some(1), "one gate fails: {said:?}");
        file
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_report.py");
    let said = finish(piped(python().arg(script).args(["junit", "tap", "kcidb"].map(written))));
    assert_eq!(said.code, Some(0), "{}", said.err);
    // Before it tap.py says that it can read no YAML, which it lacks.
    let found: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    let suites = list(&found["suites"]);
    assert_eq!(suites.len(), 2, "{found}");
    let outcomes = |cases: &Value| {
        let outcomes = list(cases).iter().map(|case| case[1].as_str().unwrap().to_owned());
        outcomes.collect::<Vec<_>>()
    };
    // Of 2,000 samples 2 lie beyond p99.9.
    let expected = ["passed", "passed", "skipped", "failure"];
    for suite in suites {
        assert_eq!(outcomes(&suite["cases"]), expected, "{suite}");
        let counts = ["tests", "failures", "errors", "skipped"].map(|name| whole(&suite[name]));
        assert_eq!(counts, [4, 1, 0, 1], "{suite}");
    }
    let names = suites.iter().map(|suite| suite["name"].as_str().unwrap());
    assert!(names.eq(["fake.idle", "fake.idle.2"]), "of what was measured: {found}");
    assert_eq!(suites[1]["run"], "a<b> # SKIP & \"c\"");
    let checks = outcomes(&found["submitted"]);
    let checks: Vec<&str> =
        checks.iter().map(String::as_str).filter(|own| *own != "DONE").collect();
    assert_eq!(checks, ["PASS", "PASS", "FAIL"].repeat(2), "{found}");
    let expected = ["passed", "passed", "skipped", "failed"];
    assert_eq!(outcomes(&found["points"]), [expected, expected].concat(), "{found}");
}
