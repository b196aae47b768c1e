//! `tardy trend`: a change among many nights is found, said, and an alarm where it is new. The runs
//! are written here, so that their truth is known.

use std::fs;

use serde_json::{Value, json};

use super::support::{Store, eventually, list, page_data};

/// `count` nights; from `change` on slower by half, under another kernel.
fn write(store: &Store, count: i64, change: i64) {
    let start: jiff::Timestamp = "2024-01-01T03:00:00Z".parse().unwrap();
    for night in 0..count {
        let is_later = night >= change;
        let p99 = (1_000 + night * 37 % 11) * if is_later { 75 } else { 50 };
        let id = format!("night-{night:03}");
        let blame = json!({
            "threshold_ns": 1, "lowest_threshold_ns": 1, "blamed": 1, "passed_over": 0,
            "unmatched": 0, "lost_events": 0,
            "causes": [{"series": "cpu0", "cause": "softirq", "name": "NET_RX"},
                       {"series": "cpu0", "cause": "thread", "name": "dd"}],
            "buckets": [{"low_ns": 1, "wakeups": 1, "ns": 100,
                         "parts": [[0, 1, if is_later { 80 } else { 20 }],
                                   [1, 1, if is_later { 20 } else { 80 }]]}],
        });
        let log = (0..20).map(|n| format!("Tag=cpu0,{n}.000,1.000,{}.000000,H\n", night % 7 + 1));
        let record = json!({
            "schema_version": 2, "id": id, "name": id, "status": "complete",
            "validity": if night == 2 { "invalid" } else { "valid" },
            "probe": {"name": "timer", "parameters": {}}, "loads": [],
            "parameters": {"duration_ns": 20_000_000_000_i64, "samples": null, "warmup_ns": 0,
                "stop_over_ns": null, "raw": false, "peaks": null, "peak_over_ns": null},
            "setup": {"asked": null, "found": {"policy": "fifo 90", "cpus": "0"}},
            "facts": {"hostname": "vm", "kernel": if is_later { "6.13" } else { "6.12" }},
            "started_at": (start + jiff::SignedDuration::from_hours(24 * night)).to_string(),
            "duration_ns": 20_000_000_000_i64, "log_interval_ns": 1_000_000_000,
            "series": [{"name": "cpu0", "count": 20_000, "max": 2 * p99, "percentiles": {"99": p99},
                        "uncertain": []}],
        });
        let place = store.runs().join(&id);
        fs::create_dir_all(&place).unwrap();
        for (name, text) in [
            ("run.json", record.to_string()),
            ("blame.json", blame.to_string()),
            ("series.hlog", log.collect::<String>()),
        ] {
            fs::write(place.join(name), text).unwrap();
        }
    }
}

/// Gives a member of the record of some nights another value.
fn rewrite(store: &Store, nights: impl IntoIterator<Item = i64>, member: &str, value: &Value) {
    for night in nights {
        let file = store.runs().join(format!("night-{night:03}")).join("run.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        *record.pointer_mut(member).unwrap() = value.clone();
        fs::write(file, record.to_string()).unwrap();
    }
}

fn asked(store: &Store, arguments: &[&str]) -> (Option<i32>, Value) {
    let said = store.run(&[&["trend", "--json"], arguments].concat());
    (said.code, serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}")))
}

#[test]
fn a_change_is_found_said_and_an_alarm_while_it_is_new() {
    let store = Store::new();
    write(&store, 120, 100);
    let (code, found) = asked(&store, &[]);
    assert_eq!(code, Some(0));
    let rows = list(&found["rows"]);
    assert_eq!((rows.len(), &rows[0]["runs"]), (1, &json!(119)), "{found}");
    assert_eq!(found["left_out"]["invalid"], 1);
    let p99 = &rows[0]["figures"][0];
    let change = &p99["changes"][0];
    assert_eq!((list(&p99["changes"]).len(), &change["day"]), (1, &json!("2024-04-10")));
    let kernel = json!({"is": "changed", "day": "2024-04-10", "before": "6.12", "after": "6.13"});
    assert_eq!(change["kernel"], kernel);
    let maxima = list(&rows[0]["maxima"]);
    assert_eq!((maxima.len(), &maxima[118]["day"]), (119, &json!("2024-04-29")), "{maxima:?}");
    assert_eq!((&maxima[118]["ns"], &rows[0]["max_ns"]), (&json!(150_450), &json!(151_500)));
    assert_eq!(change["causes"][0]["name"], "NET_RX");
    let shares = ["before", "after"].map(|side| change["causes"][0][side].as_f64().unwrap());
    assert!((shares[0] - 0.2).abs() < 1e-9 && (shares[1] - 0.8).abs() < 1e-9, "{change}");
    let usual_max = &rows[0]["figures"][1];
    assert_eq!(usual_max["changes"], json!([]), "its level stays the same");
    assert_eq!(usual_max["median_ns"], 4_000_000);

    let text = store.run(&["trend"]);
    let heading = "2024-04-10: worse, vm, timer, no load started, 20 s, fifo 90\n    cpu0: p99 \
         50.2 us -> 75.4 us";
    assert!(text.out.contains(heading), "{text:?}");
    assert!(text.out.contains("the kernel changed there: 6.12 -> 6.13"), "{text:?}");
    assert!(text.out.contains("softirq NET_RX 20% -> 80%"), "{text:?}");
    assert!(text.err.contains("left out: 1 invalid run"), "{text:?}");
    assert!(asked(&store, &["--all-runs"]).1["rows"][0]["runs"] == 120);

    // What has just changed could change once more without being noticed: it is read again. Then
    // nothing is, and the answer is the same.
    eventually("nothing is read again", || {
        let (_, again) = asked(&store, &[]);
        assert_eq!(again["rows"], found["rows"]);
        again["files_read"] == 0
    });
    // It was seen within some nights of the twenty.
    assert_eq!(asked(&store, &["--alarm"]).0, Some(0), "not tonight");
    let (code, seen) = asked(&store, &["--alarm=20"]);
    let alarms = list(&seen["rows"][0]["figures"][0]["alarms"]);
    assert_eq!((code, alarms.len()), (Some(1), 1), "{alarms:?}");
    assert_eq!((&alarms[0]["since"], &alarms[0]["is_worse"]), (&json!("2024-04-10"), &json!(true)));
    // An improvement is not an alarm.
    let earlier = asked(&store, &["--alarm=20", "--where", "kernel=6.12"]);
    assert_eq!(earlier.0, Some(0), "{earlier:?}");
}

#[test]
fn what_trend_cannot_say_it_does_not() {
    let store = Store::new();
    let said = store.run(&["trend"]);
    assert!(said.code == Some(0) && said.err.contains("No such runs with latencies"), "{said:?}");
    write(&store, 12, 6);
    let said = store.run(&["trend"]);
    assert!(said.out.contains("too few") && said.out.contains("from 20 days on"), "{said:?}");
    for (arguments, word) in [
        (&["trend", "--where", "kernl=6"][..], "did you mean kernel?"),
        (&["trend", "--alarm=0"], "0 days hold no night"),
        (&["trend", "--days=0"], "0 days have no figures"),
        (&["trend", "--days=-1"], "write a whole number of days, 1 or more"),
        (&["trend", "--run-length=100"], "--alarm"),
        (&["trend", "--run-length=100", "--json"], "--output"),
        (&["trend", "--alarm", "--run-length=1"], "write 2 or more"),
        (&["list", "--where", "p99>100"], "has no unit"),
    ] {
        let said = store.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(said.err.contains(word), "{arguments:?}: {said:?}");
    }
}

#[test]
fn the_page_has_what_changed_and_every_day() {
    let store = Store::new();
    write(&store, 120, 100);
    let file = store.runs().join("trend.html");
    let place = file.to_str().unwrap();
    let refused = store.run(&["trend", "-o", "trend.txt"]);
    assert!(refused.code == Some(2) && refused.err.contains("ends in .html"), "{refused:?}");
    let said = store.run(&["trend", "--where", "kernel=6.1*", "-o", place]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let html = fs::read_to_string(&file).unwrap();
    assert!(html.contains("<title>Trends of kernel=6.1*</title>"));
    let trend = &page_data(&html)["trend"];
    let [event] = list(&trend["events"]) else { panic!("{trend}") };
    assert_eq!((&event["day"], &event["is_worse"]), (&json!("2024-04-10"), &json!(true)));
    assert!(trend["headline"].as_str().unwrap().contains("1 change, 1 for the worse"), "{trend}");
    assert_eq!(trend["remarks"], json!(["left out: 1 invalid run"]));
    let row = &trend["rows"][0];
    let days = ["day", "kernel", "runs", "p99_ns", "usual_max_ns", "max_ns"];
    days.iter().for_each(|name| assert_eq!(list(&row["days"][name]).len(), 119, "{name}"));
    let change = &row["p99"]["changes"][0];
    let at = list(&row["days"]["day"]).iter().position(|day| *day == change["day"]);
    assert_eq!((at, &row["days"]["kernel"][99]), (Some(99), &json!(1)));
    assert_eq!(list(&row["p99"]["alarms"]).len(), 1, "as nightly looks would have seen it");
    let said = store.run(&["trend", "--run-length", "365", "-o", place]);
    assert_eq!(said.code, Some(0), "the page shows alarms: {said:?}");
    let html = fs::read_to_string(&file).unwrap();
    let meanings = page_data(&html)["trend"]["meanings"].to_string();
    assert!(meanings.contains("one in 365 nights"), "{meanings}");
    let none = store.run(&["trend", "--where", "kernel=5*", "-o", place]);
    assert!(none.code == Some(2) && none.err.contains("nothing to show"), "{none:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), html, "the older one stays");
}

#[test]
fn rows_that_differ_only_in_tracing_or_the_cpu_are_told_apart() {
    let store = Store::new();
    write(&store, 24, 99);
    rewrite(&store, 0..24, "/facts", &json!({"hostname": "vm", "kernel": "6", "cpu_model": "A"}));
    rewrite(&store, 6..12, "/facts/cpu_model", &json!("B"));
    rewrite(&store, 12..18, "/setup/found/cpus", &json!("1"));
    let (_, found) = asked(&store, &[]);
    let told: Vec<&Value> = list(&found["rows"]).iter().map(|row| &row["apart"]).collect();
    assert_eq!(
        told,
        [&json!(["A", "CPUs 0"]), &json!(["A", "CPUs 1"]), &json!(["B", "CPUs 0"])],
        "{found}"
    );
    let text = store.run(&["trend", "--days=1"]).out;
    for own in ["A, CPUs 0", "B, CPUs 0", "A, CPUs 1"] {
        let lines = text.lines().filter(|line| line.contains(own));
        assert_eq!(lines.count(), 2, "in the table, and above its days: {text}");
    }
}

#[test]
fn a_clock_that_was_not_set_and_a_damaged_record_disturb_no_other_night() {
    let store = Store::new();
    write(&store, 120, 100);
    let before = asked(&store, &[]).1;
    write(&store, 124, 100);
    rewrite(&store, [120, 121], "/started_at", &json!("1970-01-01T00:00:07Z"));
    rewrite(&store, [122], "/started_at", &json!("2999-01-01T00:00:00Z"));
    fs::write(store.runs().join("night-123/run.json"), "{\"schema_version\": 2, \"id\"").unwrap();
    let (code, found) = asked(&store, &[]);
    assert_eq!((code, &found["rows"]), (Some(0), &before["rows"]));
    assert_eq!(found["left_out"]["misdated"], 3);
    let said = store.run(&["trend"]);
    assert!(said.err.contains("night-123"), "{said:?}");
    assert!(said.err.contains("3 misdated runs (before 2001, or in the future)"), "{said:?}");
    // The index is not needed: without it, and with a damaged one, the answer is the same.
    // It keeps nothing of records that changed within the last tick of the clock.
    let index = store.runs().join(".tardy-index");
    eventually("index of the store", || {
        asked(&store, &[]);
        index.exists()
    });
    let text = fs::read_to_string(&index).unwrap();
    for odd in [None, Some(&text[..text.len() / 2]), Some("{}")] {
        match odd {
            Some(odd) => fs::write(&index, odd).unwrap(),
            None => fs::remove_file(&index).unwrap(),
        }
        assert_eq!(asked(&store, &[]).1["rows"], found["rows"]);
    }
}
