//! `tardy import` of what perf says of the scheduler: a kept record and new ones, against perf's
//! own sums. In `tests/fixtures/perf` are those lines of perf's four outputs about one record of
//! `cyclictest -t1 -p 95 -i 1000 -l 30` that name cyclictest; other tasks are called `load`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::support::{Store, list, read_record, skip, whole};

/// Events that `perf sched latency` counts wake-ups by.
const EVENTS: [&str; 4] = [
    "sched:sched_switch",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_stat_runtime",
];

/// Records a real-time thread that nobody preempts; nothing where that cannot be done here.
fn recorded(place: &Path) -> Option<PathBuf> {
    let data = place.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-a", "-q", "-c", "1"]).arg("-o").arg(&data);
    perf.args(EVENTS.iter().flat_map(|event| ["-e", *event]));
    perf.args(["--", "cyclictest", "-q", "-t1", "-p", "95", "-i", "1000", "-l", "300"]);
    let ran = perf.output();
    if !ran.is_ok_and(|said| said.status.success()) {
        skip("no perf and cyclictest here that may record what the scheduler does");
        return None;
    }
    Some(data)
}

fn perf(data: &Path, words: &[&str]) -> String {
    let said = Command::new("perf").args(words).arg("-i").arg(data).output().unwrap();
    assert!(said.status.success(), "{words:?}: {said:?}");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// The record of a run of this text.
fn imported(store: &Store, name: &str, text: &str) -> Value {
    let file = store.path().join(format!("{name}.txt"));
    fs::write(&file, text).unwrap();
    let said = store.run(&["import", file.to_str().unwrap(), "--name", name]);
    assert_eq!(said.code, Some(0), "{said:?}");
    read_record(&store.runs().join(name))
}

/// The series of the measuring thread: that of cyclictest with most samples.
fn measuring(record: &Value) -> &Value {
    let tasks = list(&record["series"]).iter().filter(|own| own["thread_of"] == "cyclictest");
    tasks.max_by_key(|own| whole(&own["count"])).unwrap()
}

/// How many rows an imported run left out.
fn left_out(record: &Value) -> i64 {
    let caveats = list(&record["caveats"]).iter();
    let rows = caveats.filter(|own| own["code"] == "rows_left_out");
    rows.map(|own| whole(&own["values"]["rows"])).sum()
}

/// `0.025 ms` as us.
fn us(text: &str) -> i64 {
    text.split_whitespace().find_map(|word| word.replace('.', "").parse().ok()).unwrap()
}

/// A file of the kept record.
fn kept(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/perf");
    fs::read_to_string(place.join(name)).unwrap()
}

/// Holds the measuring thread of `perf sched script` against its row in `perf sched latency -p`.
fn assert_sums(store: &Store, text: &str, sums: &str) {
    let record = imported(store, "events", text);
    let own = measuring(&record);
    let tid = own["name"].as_str().unwrap().strip_prefix("cyclictest/").unwrap();
    let row = sums.lines().find(|line| line.contains(&format!("cyclictest:{tid} "))).unwrap();
    let fields: Vec<&str> = row.split('|').collect();
    // perf counts a wait after a preemption as well, which no wake-up began.
    let who = format!("prev_pid={tid} ");
    let is_preemption = |line: &&str| {
        let left = line.split_once("==>").map(|(left, _)| left.trim_end());
        left.is_some_and(|left| left.contains(&who) && left.ends_with(['R', '+']))
    };
    let preemptions = text.lines().filter(is_preemption).count();
    let stated = fields[2].trim().parse::<i64>().unwrap();
    assert_eq!(whole(&own["count"]) + preemptions as i64, stated, "{row}");
    if preemptions > 0 {
        assert!(whole(&own["max"]) / 1_000 <= us(fields[4]) + 1, "{} {row}", own["max"]);
        return;
    }
    // Both cut the times of events off at a microsecond, and perf also the mean.
    let near = |found: &Value, stated: &str| {
        assert!((whole(found) / 1_000 - us(stated)).abs() <= 1, "{found} {row}");
    };
    near(&own["mean"], fields[3]);
    near(&own["max"], fields[4]);
}

/// Holds the rows of `perf sched timehist` against its summary, and against the events.
fn assert_rows(store: &Store, text: &str, summary: &str, events: &str) {
    let record = imported(store, "rows", text);
    let pooled = list(&record["series"]).iter().filter(|own| own["thread_of"].is_null());
    let samples: i64 = pooled.map(|own| whole(&own["count"])).sum();
    // The summary counts how often each task ran: `a[18/17]  17  201  2.750 ...`
    let rows = summary.lines().filter_map(|line| {
        let numbers = line.rsplit_once(']')?.1;
        numbers.split_whitespace().nth(1)?.parse::<i64>().ok()
    });
    assert_eq!(samples + left_out(&record), rows.sum::<i64>(), "{summary}");
    let events = imported(store, "of-rows", events);
    let (rows, events) = (measuring(&record), measuring(&events));
    assert_eq!(rows["name"], events["name"]);
    // The last run of a thread may have no row: perf writes one when it ends.
    let extra = whole(&events["count"]) - whole(&rows["count"]);
    assert!((0..=2).contains(&extra), "{rows} {events}");
    let sum = |own: &Value| whole(&own["mean"]) * whole(&own["count"]);
    let most = extra * whole(&events["max"]) + whole(&events["count"]) * 2_000;
    assert!((sum(events) - sum(rows)).abs() <= most, "{rows} {events}");
}

#[test]
fn kept_events_make_the_sums_of_perf_sched_latency() {
    let store = Store::new();
    assert_sums(&store, &kept("events.txt"), &kept("latency.txt"));
    let record = read_record(&store.runs().join("events"));
    let own = measuring(&record);
    let found = ["count", "min", "mean", "max"].map(|field| whole(&own[field]));
    assert_eq!(found, [32, 8_000, 27_813, 269_000]);
}

#[test]
fn each_kept_row_of_timehist_is_a_sample_or_left_out() {
    let store = Store::new();
    assert_rows(&store, &kept("timehist.txt"), &kept("summary.txt"), &kept("events.txt"));
    let record = read_record(&store.runs().join("rows"));
    let own = measuring(&record);
    let found = ["count", "min", "mean", "max"].map(|field| whole(&own[field]));
    assert_eq!((left_out(&record), found), (1, [31, 7_000, 27_710, 269_000]));
}

#[test]
#[ignore = "live: twin import_perf::kept_events_make_the_sums_of_perf_sched_latency"]
fn the_events_make_the_sums_of_perf_sched_latency() {
    let store = Store::new();
    let Some(data) = recorded(store.path()) else { return };
    let sums = perf(&data, &["sched", "latency", "-p"]);
    assert_sums(&store, &perf(&data, &["sched", "script"]), &sums);
}

#[test]
#[ignore = "live: twin import_perf::each_kept_row_of_timehist_is_a_sample_or_left_out"]
fn each_row_of_timehist_is_a_sample_or_left_out() {
    let store = Store::new();
    let Some(data) = recorded(store.path()) else { return };
    let text = perf(&data, &["sched", "timehist", "--with-summary", "--state", "--wakeups"]);
    let summary = perf(&data, &["sched", "timehist", "--summary"]);
    assert_rows(&store, &text, &summary, &perf(&data, &["sched", "script"]));
}
