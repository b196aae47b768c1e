//! Figures that are not latencies: each with its repeats, what is refused, and what is left of them
//! when the run is killed.

use serde_json::Value;

use super::support::{Store, codes, finish, list, read_record, signal};

fn measured(store: &Store, arguments: &[&str]) -> Value {
    let first = ["run", "bandwidth", "--warmup", "20ms", "--name", "r"];
    let said = store.run(&[&first[..], arguments].concat());
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    store.show("r")
}

fn names(record: &Value) -> Vec<&str> {
    list(&record["figures"]).iter().map(|figure| figure["name"].as_str().unwrap()).collect()
}

#[test]
fn each_figure_that_was_chosen_has_its_repeats_with_mean_and_interval() {
    let store = Store::new();
    let only = ["--only", "pipe,unix,tcp,memory_copy,null_call,fork", "--sizes", "4KiB,64KiB"];
    let record = measured(&store, &[&only[..], &["--samples", "3"]].concat());
    let expected = [
        "pipe/4KiB",
        "pipe/64KiB",
        "unix/4KiB",
        "unix/64KiB",
        "tcp/4KiB",
        "tcp/64KiB",
        "memory_copy/4KiB",
        "memory_copy/64KiB",
        "null_call",
        "fork",
    ];
    assert_eq!(names(&record), expected);
    for figure in list(&record["figures"]) {
        let values: Vec<f64> =
            list(&figure["values"]).iter().map(|value| value.as_f64().unwrap()).collect();
        assert_eq!(values.len(), 3, "{figure}");
        let mean = figure["mean"].as_f64().unwrap();
        let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
        assert!((values.iter().sum::<f64>() / 3.0 - mean).abs() < 1e-6 * mean, "{figure}");
        assert!(values.iter().all(|value| *value > 0.0) && low <= mean && mean <= high);
        let unit = if figure["name"].as_str().unwrap().contains('/') { "MB/s" } else { "us" };
        assert_eq!(figure["unit"], unit, "{figure}");
    }
    assert!(list(&record["series"]).is_empty());
    assert!(!codes(&record).contains(&"no_samples"), "{record}");
    let rows = std::fs::read_to_string(store.runs().join("r/figures.csv")).unwrap();
    assert_eq!((rows.lines().next(), rows.lines().count()), (Some("t_s,name,value"), 31));

    let shown = store.run(&["show", "r"]);
    assert!(shown.out.contains("pipe/64KiB") && shown.out.contains("repeats"), "{shown:?}");
    let page = store.page(&["r"]);
    let figures = &list(&page["runs"])[0]["record"]["figures"];
    assert_eq!(figures, &record["figures"]);
}

#[test]
fn what_needs_latencies_is_refused_with_what_to_do_instead() {
    let store = Store::new();
    let run = |more: &[&str]| {
        let first = ["run", "bandwidth", "--only", "null_call", "--duration", "100ms"];
        let said = store.run(&[&first[..], more].concat());
        assert_eq!(said.code, Some(2), "{more:?}: {said:?}");
        said.err
    };
    assert!(run(&["--raw"]).contains("--raw is not supported with bandwidth"));
    assert!(run(&["--stop-over", "1ms"]).contains("--stop-over is not supported with bandwidth"));
    assert!(run(&["--gate", "p99<=1ms"]).contains("this run has no latencies"));
    assert!(run(&["--gate", "fork<=1s"]).contains("unknown metric \"fork\"; there are"));
    assert!(run(&["--gate", "null_call<=1%"]).contains("null_call is counted in us"));
    assert!(run(&["--sizes", "0"]).contains("--sizes: a size of 0 bytes"));
    let nowhere = ["run", "bandwidth", "--only", "file_read", "--file-dir", "/proc"];
    let said = store.run(&nowhere);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("/proc") && said.err.contains("--file-dir"), "{said:?}");
    assert!(!store.runs().exists() || std::fs::read_dir(store.runs()).unwrap().next().is_none());
    let timer = store.run(&["run", "timer", "--only", "pipe"]);
    assert!(timer.err.contains("--only is not supported with timer"), "{timer:?}");
    let ab = ["ab", "bandwidth", "--a", "", "--b", "--policy=other", "--budget", "10s"];
    let said = store.run(&ab);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("no latencies") && said.err.contains("tardy report"), "{said:?}");
    measured(&store, &["--only", "null_call", "--samples", "2"]);
    let plot = store.run(&["plot", "r", "-o", "r.svg"]);
    assert_eq!(plot.code, Some(2), "{plot:?}");
    assert!(plot.err.contains("tardy report"), "{plot:?}");
    let compared = store.run(&["compare", "r", "r"]);
    assert!(compared.err.contains("figures and no latencies"), "{compared:?}");
}

#[test]
fn a_gate_of_a_figure_is_decided_on_its_interval() {
    let store = Store::new();
    let gated = |limit: &str| {
        let first = ["run", "bandwidth", "--only", "null_call", "--samples", "3", "--warmup"];
        let said = store.run(&[&first[..], &["20ms", "--json", "--gate", limit]].concat());
        let record: Value = serde_json::from_str(&said.out).unwrap();
        (said.code, record["gates"][0]["verdict"].as_str().unwrap().to_owned())
    };
    assert_eq!(gated("null_call<=1s"), (Some(0), "pass".into()));
    assert_eq!(gated("null_call>=1s"), (Some(1), "fail".into()));
    let shown = store.run(&["show", "last", "--gate", "null_call<1s"]);
    assert!(shown.code == Some(0) && shown.out.contains("mean of 3 repeats"), "{shown:?}");
}

#[test]
fn a_run_that_is_ended_early_or_killed_keeps_the_repeats_that_it_has() {
    let store = Store::new();
    let values = |record: &Value| list(&list(&record["figures"])[0]["values"]).len();
    let start = |name: &str| {
        let first = ["run", "bandwidth", "--only", "null_call", "--duration", "inf"];
        let child = store.start(&[&first[..], &["--warmup", "0s", "--name", name]].concat());
        let rows = || std::fs::read_to_string(store.runs().join(name).join("figures.csv"));
        super::support::eventually("a repeat", || {
            rows().is_ok_and(|rows| rows.lines().count() > 3)
        });
        child
    };
    let child = start("ended");
    signal(&child, "INT");
    assert_eq!(finish(child).code, Some(0));
    let record = store.show("ended");
    assert!(values(&record) >= 2 && record["status"] == "complete", "{record}");

    let child = start("killed");
    signal(&child, "KILL");
    finish(child);
    assert_eq!(values(&read_record(&store.runs().join("killed"))), 0, "nobody wrote the record");
    let record = store.show("killed");
    assert!(values(&record) >= 2 && record["status"] == "crashed", "{record}");
}
