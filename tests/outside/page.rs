//! The page of `tardy report`: its data hold what the run holds, and nothing in a run gets out of
//! the block they are in.

use std::fs;

use serde_json::Value;

use super::support::{LIGHT_LOAD, SHORT, Store, in_histogram, list, page_data, read_record, whole};

fn sum(values: &Value) -> i64 {
    list(values).iter().map(whole).sum()
}

fn largest(values: &Value) -> Option<i64> {
    list(values).iter().map(whole).max()
}

fn columns_agree(table: &Value, names: &[&str]) -> usize {
    let lengths: Vec<usize> = names.iter().map(|name| list(&table[name]).len()).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{names:?}: {lengths:?}");
    lengths[0]
}

/// The series without stages: these are parts of wake-ups, and stay out of what is drawn of them.
fn wakeups(record: &Value) -> Vec<&Value> {
    let whole = |own: &&Value| !own["name"].as_str().unwrap().contains('/');
    list(&record["series"]).iter().filter(whole).collect()
}

/// Everything that every run's part of a page must satisfy.
fn assert_run(part: &Value, edges: &[Value], record: &Value) {
    assert_eq!(&part["record"], record, "the record is run.json");
    let series = wakeups(record);
    assert_eq!(list(&part["series"]).len(), series.len());
    let stages = list(&record["series"]).len() - series.len();
    assert_eq!(list(&part["stages"]).len(), stages);
    let times = list(&part["time_edges_s"]);
    assert!(times.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64()), "{times:?}");
    let end_s = whole(&record["duration_ns"]) as f64 / 1e9;
    assert!((times.last().unwrap().as_f64().unwrap() - end_s).abs() < 0.01, "{times:?}");
    let heat = |heat: &Value, wanted: i64| {
        columns_agree(heat, &["time", "latency", "count"]);
        assert_eq!(sum(&heat["count"]), wanted, "every sample is in a cell");
        assert!(largest(&heat["time"]) < Some(times.len() as i64 - 1));
        assert!(largest(&heat["latency"]) < Some(edges.len() as i64 - 1));
    };
    for (drawn, series) in list(&part["series"]).iter().zip(series.iter().copied()) {
        assert_eq!(drawn["name"], series["name"]);
        let bins = list(&drawn["histogram"]);
        let in_bins: i64 = bins.iter().map(|bin| whole(&bin[1])).sum();
        assert_eq!(in_bins, in_histogram(series), "every sample is in a bin");
        heat(&drawn["heat"], in_histogram(series));
        assert_bins(bins, edges, series);
        assert_curve(list(&drawn["curve"]), series);
        columns_agree(&drawn["points"], &["t_s", "latency_ns"]);
        assert_eq!(largest(&drawn["points"]["latency_ns"]), series["max"].as_i64());
        let last = list(&drawn["points"]["t_s"]).iter().filter_map(Value::as_f64);
        // The log has times in ms.
        assert!(last.fold(0.0, f64::max) <= end_s + 0.001);
    }
    heat(&part["heat"], series.iter().copied().map(in_histogram).sum());
    assert_tracks(part);
}

/// The smallest and the largest latency lie in the first and the last bin that is filled.
fn assert_bins(bins: &[Value], edges: &[Value], series: &Value) {
    let edge =
        |bin: &Value, next: usize| whole(&edges[usize::try_from(whole(&bin[0])).unwrap() + next]);
    let (first, last) = (&bins[0], bins.last().unwrap());
    let (min, max) = (whole(&series["min"]), whole(&series["max"]));
    // Middles of buckets stand for values: 0.1% beside an edge either bin is right.
    let slack = |ns: i64| ns / 1_000 + 1;
    assert!(edge(first, 0) <= min + slack(min) && min < edge(first, 1) + slack(min), "{series}");
    assert!(edge(last, 0) <= max + slack(max) && max < edge(last, 1) + slack(max), "{series}");
}

fn assert_curve(curve: &[Value], series: &Value) {
    let last = curve.last().unwrap();
    assert_eq!((last[0].as_f64(), &last[1]), (Some(100.0), &series["max"]));
    for pair in curve.windows(2) {
        assert!(pair[0][0].as_f64() < pair[1][0].as_f64(), "{pair:?}");
        assert!(whole(&pair[0][1]) <= whole(&pair[1][1]), "{pair:?}");
    }
    for name in ["90", "99", "99.9"] {
        let wanted: f64 = name.parse().unwrap();
        let point = curve.iter().find(|point| (point[0].as_f64().unwrap() - wanted).abs() < 1e-6);
        if let Some(point) = point {
            assert_eq!(point[1], series["percentiles"][name], "{name}% of the curve: {series}");
        }
    }
}

fn assert_tracks(part: &Value) {
    let machine = &part["machine"];
    let rows = columns_agree(
        machine,
        &["t_s", "interrupts_per_s", "softirqs_per_s", "context_switches_per_s"],
    );
    assert!(rows > 0, "the machine did something");
    for cpu in list(&machine["cpu_busy"]) {
        assert_eq!(list(&cpu["busy"]).len(), rows);
        let shares = list(&cpu["busy"]).iter().filter_map(Value::as_f64);
        assert!(shares.clone().all(|share| (0.0..=1.0).contains(&share)), "{cpu}");
    }
    assert!(!list(&machine["cpu_busy"]).is_empty());
    assert_eq!(list(&part["loads"]).len(), list(&part["record"]["loads"]).len());
    for load in list(&part["loads"]) {
        columns_agree(load, &["t_s", "operations_per_s"]);
    }
    let interrupts = list(&part["interrupts"]);
    assert!(!interrupts.is_empty(), "a timer cannot fire without an interrupt");
    for row in interrupts {
        let counts = list(&row["per_cpu"]);
        assert!(!counts.is_empty() && counts.iter().all(|cell| whole(&cell[1]) > 0), "{row}");
    }
}

fn edges(page: &Value) -> &[Value] {
    let edges = list(&page["latency_edges_ns"]);
    assert!(edges.windows(2).all(|pair| whole(&pair[0]) < whole(&pair[1])), "{edges:?}");
    edges
}

#[test]
fn every_chart_of_a_loaded_run_holds_what_the_run_holds() {
    let store = Store::new();
    let run = store.measure("r", &["--duration", "2500ms", "--load", LIGHT_LOAD]);
    let (page, record) = (store.page(&["r"]), read_record(&run));
    assert_eq!((whole(&page["page_version"]), list(&page["runs"]).len()), (3, 1));
    let part = &page["runs"][0];
    assert_run(part, edges(&page), &record);
    for drawn in list(&part["series"]) {
        let points = &drawn["points"];
        assert_eq!((&points["kind"], &points["thinned"]), (&"interval_max".into(), &"".into()));
        // An interval is 100 ms at least; a busy machine makes some of them longer.
        let intervals = whole(&points["of"]);
        assert_eq!(list(&points["t_s"]).len() as i64, intervals, "nothing was thinned");
        assert!((1..=26).contains(&intervals), "{intervals}");
    }
    let load = &part["loads"][0];
    assert_eq!((&load["name"], &load["unit"]), (&"burn".into(), &"ms of CPU".into()));
    assert!(!list(&load["t_s"]).is_empty(), "the load has a track");
    let rows = list(&part["interrupts"]);
    let rates: Vec<f64> = rows.iter().map(|row| row["per_s"].as_f64().unwrap()).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b), "busiest first: {rates:?}");
}

#[test]
fn with_single_samples_the_points_are_those_and_their_number_is_the_count() {
    let store = Store::new();
    let run = store.measure("r", &["--duration", "1500ms", "--raw", "--interval", "500us"]);
    let (page, record) = (store.page(&["r"]), read_record(&run));
    assert_run(&page["runs"][0], edges(&page), &record);
    for (drawn, series) in list(&page["runs"][0]["series"]).iter().zip(wakeups(&record)) {
        let points = &drawn["points"];
        assert_eq!((&points["kind"], &points["of"]), (&"sample".into(), &series["count"]));
        assert_eq!(
            list(&points["t_s"]).len() as i64,
            whole(&points["of"]),
            "{}",
            points["thinned"]
        );
        let (mean, exact) =
            (whole(&series["mean"]), sum(&points["latency_ns"]) / whole(&series["count"]));
        assert!((exact - mean).abs() <= 1, "{exact} {mean}");
    }
}

#[test]
fn a_crowd_of_samples_is_thinned_and_every_late_one_stays() {
    let store = Store::new();
    store.made_up("200k");
    let page = store.page(&["r"]);
    let points = &page["runs"][0]["series"][0]["points"];
    assert_eq!(whole(&points["of"]), 200_000);
    let drawn = list(&points["latency_ns"]);
    assert!(drawn.len() < 30_000, "a browser draws {} points", drawn.len());
    assert!(points["thinned"].as_str().unwrap().contains("one in"), "{}", points["thinned"]);
    let late = |ns: i64| ns > 20_000;
    let were = (0..200_000).map(|n| tardy::probes::fake::latency_of(0, n)).filter(|ns| late(*ns));
    let are = drawn.iter().map(whole).filter(|ns| late(*ns));
    assert_eq!(are.count(), were.count(), "none of the late ones is missing");
}

#[test]
fn two_runs_share_their_edges_and_keep_their_order() {
    let store = Store::new();
    let idle = store.measure("idle", &["--duration", "1500ms", "--cpus", "0"]);
    let loaded = store.measure("loaded", &["--duration", "1200ms", "--load", LIGHT_LOAD]);
    let page = store.page(&["loaded", "idle"]);
    assert_eq!(list(&page["runs"]).len(), 2);
    let edges = edges(&page);
    assert_run(&page["runs"][0], edges, &read_record(&loaded));
    assert_run(&page["runs"][1], edges, &read_record(&idle));
    assert_eq!(page["runs"][0]["record"]["name"], "loaded");
}

#[test]
fn a_hostile_name_stays_inside_its_block() {
    let hostile = [
        "<script>alert(1)<!--",
        "a<b>&amp;\"'`${x}\u{2028}",
        "<!--TARDY-DATA-->",
        "<!--TARDY-TITLE-->",
        "]]>--!>",
    ];
    let store = Store::new();
    for name in hostile {
        let said = store
            .run(&[&SHORT[..], &["--duration", "100ms", "--cpus", "0", "--name", name]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    // A name is not a path, but nobody keeps others from writing one with a slash into a record.
    let record = store.runs().join("]]>--!>/run.json");
    let text = fs::read_to_string(&record).unwrap();
    let evil = "</title></script><script>alert(1)</script><!--\u{202e}\u{9b}";
    fs::write(&record, text.replace("\"name\": \"]]>--!>\"", &format!("\"name\": \"{evil}\"")))
        .unwrap();
    let plain = page_html(&store, &[]);
    for name in hostile {
        let html = page_html(&store, &[name]);
        let data = page_data(&html);
        let wanted = if name == "]]>--!>" { evil } else { name };
        assert_eq!(data["runs"][0]["record"]["name"], wanted);
        let raw = ['\u{2028}', '\u{202e}', '\u{9b}'].map(|c| html.matches(c).count());
        assert_eq!(raw, [0; 3], "{name}");
        assert_eq!(title_of(&html), as_title(wanted));
        for tag in ["<script", "</script", "<!--"] {
            assert_eq!(html.matches(tag).count(), plain.matches(tag).count(), "{tag} by {name}");
        }
    }
}

/// The first title of a page, as a browser reads it: up to the first end tag.
fn title_of(html: &str) -> &str {
    let (_, behind) = html.split_once("<title>").unwrap();
    behind.split_once("</title>").unwrap().0
}

/// A name in a title: nothing begins a tag or a reference, and what is invisible is a number.
fn as_title(name: &str) -> String {
    let is_odd = |c| matches!(c, '\u{2028}' | '\u{202e}' | '\u{9b}');
    let shown = name.chars().map(|c| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        c if is_odd(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    });
    shown.collect()
}

/// The page of one run; without a name, of one that is harmless.
fn page_html(store: &Store, names: &[&str]) -> String {
    let harmless = "harmless";
    if names.is_empty() {
        store.measure(harmless, &["--duration", "100ms", "--cpus", "0"]);
    }
    let name = names.first().unwrap_or(&harmless);
    let file = store.path().join("page.html");
    let said = store.run(&["report", name, "-o", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    fs::read_to_string(file).unwrap()
}
