//! `tardy trend`: a change among many nights is found, said, and an alarm where it is new. The runs
//! are written here, so that their truth is known.

use std::{fs, thread::sleep, time::Duration};

use serde_json::{Value, json};

use super::support::{Store, list};

/// So many nights; from `change` on slower by half, under another kernel.
fn write(store: &Store, count: i64, change: i64) {
    let start: jiff::Timestamp = "2026-01-01T03:00:00Z".parse().unwrap();
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
    // What has just changed could change once more without being noticed: it is read again.
    sleep(Duration::from_millis(300));
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
    assert_eq!((list(&p99["changes"]).len(), &change["day"]), (1, &json!("2026-04-11")));
    assert_eq!(change["kernels"], json!(["6.12", "6.13"]));
    assert_eq!(change["causes"][0]["name"], "NET_RX");
    let shares = ["before", "after"].map(|side| change["causes"][0][side].as_f64().unwrap());
    assert!((shares[0] - 0.2).abs() < 1e-9 && (shares[1] - 0.8).abs() < 1e-9, "{change}");
    let usual_max = &rows[0]["figures"][1];
    assert_eq!(usual_max["changes"], json!([]), "its level stays the same");
    assert_eq!(usual_max["median_ns"], 4_000_000);

    let text = store.run(&["trend"]);
    assert!(text.out.contains("2026-04-11: p99 worse, 50.2 us -> 75.4 us (x 1.50)"), "{text:?}");
    assert!(text.out.contains("the kernel changed there: 6.12 -> 6.13"), "{text:?}");
    assert!(text.out.contains("softirq NET_RX 20 % -> 80 %"), "{text:?}");
    assert!(text.err.contains("left out: 1 invalid run"), "{text:?}");
    assert!(asked(&store, &["--all-runs"]).1["rows"][0]["runs"] == 120);

    // Nothing is read again, and the answer is the same.
    let (_, again) = asked(&store, &[]);
    assert_eq!((&again["files_read"], &again["rows"]), (&json!(0), &found["rows"]));
    // It was seen within some nights of the twenty.
    assert_eq!(asked(&store, &["--alarm"]).0, Some(0), "not tonight");
    let (code, seen) = asked(&store, &["--alarm=20"]);
    let alarms = list(&seen["rows"][0]["figures"][0]["alarms"]);
    assert_eq!((code, alarms.len()), (Some(1), 1), "{alarms:?}");
    assert_eq!((&alarms[0]["since"], &alarms[0]["is_worse"]), (&json!("2026-04-11"), &json!(true)));
    // Better is no alarm.
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
        (&["trend", "--run-length=100"], "--alarm"),
        (&["trend", "--alarm", "--run-length=1"], "write 2 or more"),
        (&["list", "--where", "p99>100"], "has no unit"),
    ] {
        let said = store.run(arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(said.err.contains(word), "{arguments:?}: {said:?}");
    }
}
