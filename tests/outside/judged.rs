//! A deadline for attached threads, in each output: responses lead, and wake-ups come after them.
//! The run is made up: `ctl` wakes up in time, and works too long in 228 of 2,970 cycles, mostly
//! for a lock; `log` is woken by tasks.
//!
//! | output | what leads |
//! | --- | --- |
//! | `show`, result of `run`, page, JUnit | headline: late cycles, worst response |
//! | `list`, `list --where`, `trend` | percentiles and maximum of responses |
//! | `why`, `why --fix`, bands on the page | the band of late cycles |
//! | `compare`, `ab` | `NAME/response`; `missed` is the share of missed deadlines |
//! | gates without a series | responses; `missed` is missed deadlines too |
//! | `--stop-over` | the largest response |
//! | Prometheus, InfluxDB | series `NAME/response`, gauges of deadlines |

use std::{fs, path::Path, path::PathBuf};

use serde_json::{Value, json};
use tardy::run::{
    SeriesHead,
    hlog::{self, IntervalSpan},
    peaks::{Basis, Blame, Cause, CauseOf, LatencyBucket},
    summary::summarize,
};
use tardy_hot::tally::Totals;

use super::{
    once::made_once,
    support::{Store, copy, list, read_record},
};

const MS: u64 = 1_000_000;
const INTERVALS: u64 = 30;

/// The latencies of one interval of a series.
fn latencies(series: &str, interval: u64) -> Vec<u64> {
    match series {
        "log" => vec![20_000; 10],
        "ctl" | "ctl/77" => {
            let mut all = vec![40_000; 99];
            all.iter_mut().take(usize::from(interval == 9)).for_each(|own| *own = 5_490_000);
            all
        }
        _ => {
            let late = 7 + usize::from(interval < 18);
            let mut all = vec![300_000; 99];
            all.iter_mut().take(late).for_each(|own| *own = 2 * MS);
            all.iter_mut().take(usize::from(interval == 9)).for_each(|own| *own = 271 * MS);
            all
        }
    }
}

/// Writes `record` and its log into the directory of a run.
fn write(run: &Path) {
    let store = Store::new();
    store.made_up("10");
    let made = store.runs().join("r");
    fs::remove_dir_all(made.join("samples")).unwrap();
    copy(&made, run);
    let mut record = read_record(run);
    let log = fs::read_to_string(run.join("series.hlog")).unwrap();
    let mut log: String = log
        .lines()
        .take_while(|line| !line.starts_with("Tag="))
        .map(|line| format!("{line}\n"))
        .collect();
    let names = ["ctl", "ctl/response", "ctl/77", "ctl/77/response", "log"];
    let mut sums = names.map(|_| (hlog::empty(), Totals::NONE));
    for interval in 0..INTERVALS {
        for (name, (all, totals)) in names.iter().zip(&mut sums) {
            let mut counts = hlog::empty();
            for latency in latencies(name, interval) {
                counts.record(latency).unwrap();
                let ns = i64::try_from(latency).unwrap();
                totals.count += 1;
                totals.sum_ns += ns;
                (totals.min_ns, totals.max_ns) = (totals.min_ns.min(ns), totals.max_ns.max(ns));
            }
            totals.missed = if name.starts_with("ctl") { 24 } else { 0 };
            all.add(&counts).unwrap();
            let span =
                IntervalSpan { tag: (*name).into(), start_s: interval as f64 * 0.1, length_s: 0.1 };
            hlog::append(&mut log, &span, &counts, totals);
        }
    }
    fs::write(run.join("series.hlog"), log).unwrap();
    let summary = |(name, (counts, totals)): (&&str, &(_, Totals))| {
        let has_period = ["ctl", "ctl/77"].contains(name);
        let period_ns = has_period.then_some(1_000_000);
        let head = SeriesHead { name: (**name).into(), cpu: None, period_ns };
        serde_json::to_value(summarize(&head, counts, totals)).unwrap()
    };
    record["series"] = names.iter().zip(&sums).map(summary).collect();
    record["probe"] = json!({"name": "attach", "parameters": {"by": "comm", "target": "ctl"}});
    record["parameters"]["deadline_ns"] = json!(MS);
    record["duration_ns"] = json!(3_000 * MS);
    record["trace"]["found"] = json!("peaks");
    record["attached"] = json!({
        "threads": 2, "pooled_only": 0, "no_room": 0, "ended_ns": null, "command": null,
        "rows": [row("ctl", None), row("ctl", Some(77)), row("log", None)],
    });
    fs::write(run.join("run.json"), record.to_string()).unwrap();
    fs::write(run.join("blame.json"), serde_json::to_vec(&blame()).unwrap()).unwrap();
}

fn row(name: &str, tid: Option<u32>) -> Value {
    let times = |count: u64, ns: u64, max: u64| {
        let [mean, p50, p99] = [ns; 3];
        json!({"count": count, "mean": mean, "p50": p50, "p99": p99, "max": max})
    };
    let is_ctl = name == "ctl";
    let wakeups = if is_ctl { 2_970 } else { 300 };
    let by_timer = if is_ctl { wakeups } else { 0 };
    let mut row = json!({
        "series": tid.map_or_else(|| name.to_owned(), |tid| format!("{name}/{tid}")),
        "tid": tid, "pid": tid.map(|_| 70), "threads": tid.is_none().then_some(1),
        "policy": "fifo 80", "latency": if is_ctl { "lateness" } else { "dispatch" },
        "wakeups": wakeups, "by_timer": by_timer, "by_interrupt": 0, "by_ipi": 0,
        "by_task": wakeups - by_timer, "by_own_timer": by_timer, "in_slack": 0, "slack_ns": null,
        "period_ns": null, "preempted": 0, "unmatched": 0,
        "run": times(wakeups, 9_000, 20_000), "ready": times(0, 0, 0),
        "blocked": times(wakeups, 900_000, 10 * MS),
    });
    if is_ctl {
        row["period_ns"] = json!(MS);
        (row["missed"], row["unsure_periods"], row["unmatched"]) =
            (24.into(), 19.into(), 19.into());
        row["lateness"] = times(2_970, 40_000, 5_490_000);
        row["response"] = times(2_970, 300_000, 271 * MS);
        row["over"] = json!({
            "deadline_ns": MS, "cycles": 228, "late_ns": 9 * MS, "run_ns": 216 * MS, "ready_ns": 0,
            "wait_ns": 500 * MS, "unseen_ns": 0,
            "waits": {"futex_ns": 500 * MS, "pi_mutex_ns": 0, "io_ns": 0, "other_ns": 0},
        });
    }
    row
}

/// Late cycles waited for a lock; the one late wake-up was another matter.
fn blame() -> Blame {
    let cause = |series: &str, cause, name: &str| CauseOf {
        series: series.into(),
        cause,
        name: name.into(),
        basis: Basis::Measured,
    };
    let late = LatencyBucket {
        low_ns: 1_966_080,
        wakeups: 228,
        ns: 725 * MS,
        parts: vec![(0, 200, 500 * MS), (1, 228, 225 * MS)],
    };
    let wakeup = LatencyBucket {
        low_ns: 5_242_880,
        wakeups: 1,
        ns: 5_490_000,
        parts: vec![(2, 1, 5_490_000)],
    };
    Blame {
        threshold_ns: 50_000,
        lowest_threshold_ns: 50_000,
        blamed: 1,
        causes: vec![
            cause("ctl/response", Cause::Wait, "futex, woken by worker"),
            cause("ctl/response", Cause::OwnWork, "own work"),
            cause("ctl", Cause::Thread, "hog"),
        ],
        buckets: vec![wakeup],
        responses: vec![late],
        ..Blame::default()
    }
}

fn made() -> PathBuf {
    made_once("judged", write)
}

fn store(names: &[&str]) -> Store {
    let store = Store::new();
    for name in names {
        let run = store.runs().join(name);
        copy(&made(), &run);
        let mut record = read_record(&run);
        (record["id"], record["name"]) = (json!(name), json!(name));
        fs::write(run.join("run.json"), record.to_string()).unwrap();
    }
    store
}

fn said(store: &Store, arguments: &[&str]) -> String {
    let said = store.run(arguments);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}: {said:?}");
    said.out
}

/// Words in one line, however a terminal folds them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const HEADLINE: &str = "232 of 2,974 cycles of ctl missed the deadline of 1ms (7.8%); the worst \
                        response took 271 ms";

#[test]
fn show_begins_with_responses_and_ends_with_the_cycles_over_the_deadline() {
    let text = said(&store(&["r"]), &["show", "r"]);
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("response us") < place("p99.9"), "{text}");
    assert!(words(&text).contains(HEADLINE), "{text}");
    assert!(words(&text).contains("Its wake-ups were at most 5.49 ms late."), "{text}");
}

#[test]
fn lists_and_their_questions_take_the_responses() {
    let store = store(&["r"]);
    let listed = said(&store, &["list"]);
    assert!(listed.contains("271 ms") && !listed.contains("5.49 ms"), "{listed}");
    let json: Value = serde_json::from_str(&said(&store, &["list", "--json"])).unwrap();
    assert_eq!(json[0]["max"], 271 * MS, "{json}");
    let found = |question: &str| {
        let said = store.run(&["list", "--json", "--where", question]);
        list(&serde_json::from_str(&said.out).unwrap()).len()
    };
    assert_eq!((found("max>200ms"), found("series=ctl/response"), found("max<6ms")), (1, 1, 0));
}

#[test]
fn why_speaks_of_late_cycles_first_and_so_do_its_bands_and_remedies() {
    let store = store(&["r"]);
    let why: Value = serde_json::from_str(&said(&store, &["why", "r", "--json"])).unwrap();
    let verdict = why["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with(
            "232 of 2,974 cycles of ctl missed the deadline of 1ms (7.8%). 69% of all time of \
             cycles over the deadline was "
        ),
        "{verdict}"
    );
    assert!(verdict.contains("futex, woken by worker"), "{verdict}");
    let band = &why["bands"][0];
    assert_eq!((&band["name"], &band["wakeups"]), (&"late".into(), &228.into()), "{why}");
    let text = said(&store, &["why", "r"]);
    assert!(text.contains("late cycles"), "{text}");
    let fix = store.run(&["why", "r", "--fix"]);
    assert!(fix.out.starts_with("1. ") && fix.out.contains("futex, woken by worker"), "{fix:?}");
    assert!(!fix.out.contains("hog"), "{fix:?}");
}

#[test]
fn the_page_shows_responses_in_place_of_wake_ups() {
    let page = store(&["r"]).page(&["r"]);
    let run = &page["runs"][0];
    assert!(run["headline"].as_str().unwrap().starts_with(HEADLINE), "{}", run["headline"]);
    let names: Vec<&str> =
        list(&run["series"]).iter().map(|own| own["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ctl/response", "log"]);
    assert_eq!(run["blame"]["bands"][0]["name"], "late");
    // Bands of wake-ups are of these alone.
    let p99 = list(&run["blame"]["bands"]).iter().find(|band| band["name"] == "p99");
    assert!(p99.is_none_or(|band| band["to"].as_i64() < Some(6_000_000)), "{}", run["blame"]);
}

#[test]
fn compare_has_rows_of_responses_and_of_missed_deadlines() {
    let store = store(&["a1", "a2", "a3", "b1", "b2", "b3"]);
    let sides = ["compare", "a1", "a2", "a3", "--vs", "b1", "b2", "b3"];
    let asked = [&sides[..], &["--figures", "p50,p99,missed", "--json"]].concat();
    let compared: Value = serde_json::from_str(&said(&store, &asked)).unwrap();
    let figures = list(&compared["comparisons"][0]["figures"]);
    let of = |figure: &str| {
        let is_it = |row: &&Value| row["figure"] == figure && row["series"] == "ctl/response";
        figures.iter().find(is_it).unwrap_or_else(|| panic!("{figure}: {compared}"))
    };
    let p99 = of("p99")["a"].as_f64().unwrap();
    assert!((1.99e6..2.01e6).contains(&p99), "{p99}");
    let missed = of("missed")["a"].as_f64().unwrap();
    assert!((missed - 232.0 / 2_974.0).abs() < 0.002, "{missed}");
    let bands = list(&compared["comparisons"][0]["causes"]);
    assert_eq!(bands.len(), 1, "{compared}");
    assert_eq!(bands[0]["band"], "late");
    let text = said(&store, &sides);
    assert!(text.contains("ctl/response") && text.contains("cycles over the deadline"), "{text}");
}

#[test]
fn gates_without_a_series_decide_on_responses() {
    let store = store(&["r"]);
    let gate = |gate: &str| {
        let said = store.run(&["show", "r", "--json", "--gate", gate]);
        let shown: Value = serde_json::from_str(&said.out).unwrap();
        let of = |own: &Value| {
            [&own["series"], &own["verdict"], &own["reason"]]
                .map(|own| own.as_str().unwrap().to_owned())
        };
        list(&shown["gates"]).iter().map(of).collect::<Vec<_>>()
    };
    let max = gate("max<=6ms");
    let verdicts: Vec<&str> = max.iter().map(|own| own[1].as_str()).collect();
    assert_eq!(verdicts, ["fail", "pass"], "{max:?}");
    assert_eq!((&*max[0][0], &*max[1][0]), ("ctl/response", "log"));
    let missed = gate("ctl/response:missed<=240");
    assert_eq!(missed[0][1], "inconclusive");
    assert_eq!(
        missed[0][2],
        "232 of 2,974 cycles took over 1ms, and of 19 more it was not seen: a run that sees all of \
         them decides it, and missed<=251 passes here"
    );
    assert_eq!(gate("ctl/response:missed<=231")[0][1], "fail");
    assert_eq!(gate("ctl/response:missed<=251")[0][1], "pass");
}

#[test]
fn metrics_have_responses_and_the_deadline() {
    let store = store(&["r"]);
    let text = said(&store, &["export", "r", "--to", "prometheus", "--all-metrics"]);
    let has = |start: &str, end: &str| {
        text.lines().any(|line| {
            line.starts_with(start)
                && line.contains("series=\"ctl/response\"")
                && line.ends_with(end)
        })
    };
    assert!(has("tardy_latency_max_seconds{", " 0.271"), "{text}");
    assert!(has("tardy_deadline_seconds{", " 0.001"), "{text}");
    assert!(has("tardy_cycles{", " 2974") && has("tardy_missed_deadlines{", " 232"), "{text}");
    let influx = said(&store, &["export", "r", "--to", "influx"]);
    assert!(influx.contains("series=ctl/response") && influx.contains("max_ns=271000000i"));
}

#[test]
fn trends_follow_responses() {
    let store = store(&["n1", "n2", "n3"]);
    let said = store.run(&["trend", "--json"]);
    let trend = &said.out;
    assert!(trend.contains("ctl/response") || trend.contains("271"), "{said:?}");
}

#[test]
fn checks_for_ci_begin_with_the_cycles_over_the_deadline() {
    let store = store(&["r"]);
    let junit = said(&store, &["export", "r", "--to", "junit"]);
    assert!(junit.contains("cycles of ctl missed the deadline of 1ms"), "{junit}");
}
