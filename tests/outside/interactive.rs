//! Simulated tasks: their series and figures, the columns of interbench, what other commands make
//! of them, and what is refused.

use std::fs;

use super::{
    schema::{faults, schema},
    support::{Store, list, whole},
};

const RUN: [&str; 6] = ["run", "interactive", "--warmup", "100ms", "--name", "r"];
const TASKS: [&str; 6] = ["--task", "custom,audio,game", "--interval", "10ms", "--work", "500us"];

#[test]
fn each_task_has_its_latencies_and_its_figures_and_the_text_has_interbenchs_columns() {
    let store = Store::new();
    let said = store.run(&[&RUN[..], &TASKS, &["--duration", "1200ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    for heading in ["latency (ms)", "+/- SD", "% desired CPU", "% deadlines met"] {
        assert!(said.out.contains(heading), "{heading}: {}", said.out);
    }
    let record = store.show("r");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    let is_whole = |series: &&serde_json::Value| series["stage_of"].is_null();
    let series: Vec<_> = list(&record["series"]).iter().filter(is_whole).collect();
    let names: Vec<_> = series.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["custom", "audio", "game"]);
    // No more than their periods, or the frames that fit into their time.
    for (one, most) in series.iter().zip([40, 8, 4]) {
        assert!(whole(&one["count"]) <= most, "{one}");
    }
    let of = |figure: &serde_json::Value| {
        let (name, unit) = (figure["name"].as_str().unwrap(), figure["unit"].as_str().unwrap());
        (name.to_owned(), unit.to_owned())
    };
    let figures: Vec<_> = list(&record["figures"]).iter().map(of).collect();
    let expected = [
        ("work", "loops/ms"),
        ("custom/cpu", "percent"),
        ("custom/deadlines", "percent"),
        ("custom/overrun", "us"),
        ("audio/cpu", "percent"),
        ("audio/deadlines", "percent"),
        ("audio/overrun", "us"),
        ("game/cpu", "percent"),
    ];
    assert_eq!(figures, expected.map(|(name, unit)| (name.to_owned(), unit.to_owned())));
    assert_eq!(list(&record["figures"][0]["values"]).len(), 10, "five before, five after");
    let tasks = list(&record["probe"]["parameters"]["tasks"]);
    assert_eq!((whole(&tasks[0]["period_ns"]), whole(&tasks[0]["work_ns"])), (10_000_000, 500_000));
    assert!(tasks[2]["period_ns"].is_null(), "{}", tasks[2]);
    let rows = fs::read_to_string(store.runs().join("r/figures.csv")).unwrap();
    assert!(rows.contains("custom/deadlines") && rows.contains("work"), "{rows}");

    let page = store.page(&["r"]);
    assert_eq!(list(&page["runs"])[0]["record"]["figures"], record["figures"]);
    let plot = store.run(&["plot", "r", "-o", "r.svg"]);
    assert_eq!(plot.code, Some(0), "{plot:?}");
    let gated = store.run(&["show", "r", "--gate", "custom:max<1h"]);
    assert_eq!(gated.code, Some(0), "{gated:?}");
}

#[test]
fn what_a_task_cannot_do_is_refused_with_the_remedy() {
    let store = Store::new();
    let refused = |more: &[&str], why: &str| {
        let said = store.run(&[&RUN[..], more].concat());
        assert_eq!(said.code, Some(2), "{more:?}: {said:?}");
        assert!(said.err.contains(why), "{more:?}: {said:?}");
    };
    let custom = ["--task", "custom", "--interval", "10ms"];
    refused(&[&custom[..], &["--work", "11ms"]].concat(), "use a longer --interval or less --work");
    refused(&custom, "--interval 20ms --work 2ms");
    refused(&["--interval", "10ms"], "add --task custom");
    refused(&["--task", "radio"], "radio");
    refused(&["--task", "x,x"], "x is named twice");
    refused(&["--samples", "10"], "name one --task");
    refused(&["--duration", "inf"], "name one --task");
    refused(&["--duration", "100ms"], "needs at least 200 ms");
    refused(&["--wake", "timerfd"], "--wake is not supported with interactive");
    refused(&["--policy", "deadline"], "--policy deadline is not supported with interactive");
    refused(&["--calibrate"], "--calibrate is not supported with interactive");
    refused(&["--gap-over", "2us"], "--gap-over is not supported with interactive");
    assert!(!store.runs().exists() || fs::read_dir(store.runs()).unwrap().next().is_none());
    for flag in [["--task", "audio"], ["--work", "1ms"], ["--loops-per-ms", "1000"]] {
        let said = store.run(&[&["run", "noise"][..], &flag].concat());
        assert!(said.err.contains("is not supported with noise"), "{said:?}");
    }
}
