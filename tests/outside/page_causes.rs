//! The page of a traced run: its causes, its worst wake-ups, its stages.

use std::{collections::BTreeMap, fs};

use serde_json::Value;

use super::{
    support::{Store, copy, in_histogram, list, read_record, whole},
    why::made_up,
};

/// A page with 100 peaks stays so small.
const MOST_BYTES: u64 = 3 << 20;

#[test]
fn a_traced_run_has_its_stages_bands_and_100_worst_wake_ups_on_its_page() {
    let store = Store::new();
    let run = store.runs().join("traced");
    copy(&made_up(), &run);
    let (page, record) = (store.page(&["traced"]), read_record(&run));
    let part = &page["runs"][0];
    assert_stages(part, &record);
    let bands = list(&part["blame"]["bands"]);
    let names: Vec<&str> = bands.iter().map(|band| band["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["p99", "p99.9", "p99.99", "worst"]);
    for band in bands {
        let blamed = whole(&band["ns"]) as f64 * band["blamed_share"].as_f64().unwrap();
        let sum: i64 = list(&band["causes"]).iter().map(|cause| whole(&cause["ns"])).sum();
        assert!((sum as f64 / blamed - 1.0).abs() < 0.01, "{sum} of {blamed}: {band}");
    }
    let peaks = list(&part["peaks"]["peaks"]);
    assert_eq!(peaks.len(), 100);
    let late = |peak: &Value| whole(&peak["latency_ns"]);
    assert!(peaks.windows(2).all(|pair| late(&pair[0]) >= late(&pair[1])), "worst first");
    for peak in peaks {
        assert_peak(peak, &part["peaks"], &record);
    }
    let headline = part["headline"].as_str().unwrap();
    assert!(headline.contains("late, on CPU ") && headline.contains("while "), "{headline}");
    let written = fs::metadata(store.path().join("page.html")).map(|file| file.len());
    assert!(written.unwrap_or(0) < MOST_BYTES);
}

fn assert_stages(part: &Value, record: &Value) {
    let of_stage = |own: &&Value| own["name"].as_str().unwrap().contains('/');
    let known: Vec<&Value> = list(&record["series"]).iter().filter(of_stage).collect();
    assert!(!known.is_empty());
    assert_eq!(list(&part["stages"]).len(), known.len());
    for (stage, known) in list(&part["stages"]).iter().zip(known) {
        assert_eq!(stage["name"], known["name"]);
        let counted: i64 = list(&stage["histogram"]).iter().map(|bin| whole(&bin[1])).sum();
        assert_eq!(counted, in_histogram(known), "{known}");
    }
    let names = list(&part["series"]).iter().map(|own| own["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["cpu0", "cpu1", "cpu2", "cpu3"]);
}

/// Parts and stages sum to the latency, columns are of one length, places are those of a table.
fn assert_peak(peak: &Value, peaks: &Value, record: &Value) {
    let latency = whole(&peak["latency_ns"]);
    let blamed: i64 = list(&peak["blame"]).iter().map(|part| whole(&part[1])).sum();
    assert_eq!(blamed, latency, "{peak}");
    let known = list(&peaks["parts"]).len() as i64;
    assert!(list(&peak["blame"]).iter().all(|part| whole(&part[0]) < known), "{peak}");
    if let Some(stages) = peak["stages"].as_object() {
        assert_eq!(stages.values().map(whole).sum::<i64>(), latency, "{peak}");
    }
    let start_ns = whole(&record["start_monotonic_ns"]);
    let t_s = (whole(&peak["at_ns"]) - start_ns) as f64 / 1e9;
    assert!((peak["t_s"].as_f64().unwrap() - t_s).abs() < 2e-6, "{peak}");
    let line = peak["timeline"].as_object().unwrap();
    let entries = list(&line["at"]).len();
    assert!(entries > 0 && line.values().all(|column| list(column).len() == entries), "{peak}");
    assert!(list(&line["at"]).iter().map(whole).is_sorted(), "{peak}");
    let places = [("strings", &["what", "name", "priority", "detail"][..]), ("stacks", &["stack"])];
    for (table, columns) in places {
        let table = list(&peaks[table]).len() as i64;
        for column in columns {
            assert!(list(&line[*column]).iter().all(|place| whole(place) < table), "{peak}");
        }
    }
}

/// Causes of a band that the page has room for.
const MOST_CAUSES: usize = 40;

#[test]
fn the_page_and_why_tell_the_same_of_a_run() {
    let store = Store::new();
    copy(&made_up(), &store.runs().join("traced"));
    let said = store.run(&["why", "traced", "--json"]);
    let why: Value = serde_json::from_str(&said.out).unwrap();
    let page = store.page(&["traced"]);
    let (blame, peaks) = (&page["runs"][0]["blame"], &page["runs"][0]["peaks"]);
    for sum in ["threshold_ns", "blamed", "passed_over", "unmatched", "lost_events"] {
        assert_eq!(blame[sum], why[sum], "{sum}");
    }
    let bands = list(&why["bands"]);
    assert_eq!(list(&blame["bands"]).len(), bands.len());
    for (drawn, expected) in list(&blame["bands"]).iter().zip(bands) {
        for field in ["name", "from", "to", "wakeups", "ns", "blamed_share"] {
            assert_eq!(drawn[field], expected[field], "{field} of {expected}");
        }
        let room = list(&expected["causes"]).len().min(MOST_CAUSES);
        assert_eq!(list(&drawn["causes"]).len(), room);
        for (drawn, expected) in list(&drawn["causes"]).iter().zip(list(&expected["causes"])) {
            for field in ["cause", "name", "ns", "share"] {
                assert_eq!(drawn[field], expected[field], "{field} of {expected}");
            }
        }
    }
    assert_eq!(list(&peaks["peaks"]).len(), list(&why["peaks"]).len().min(100));
    for (drawn, expected) in list(&peaks["peaks"]).iter().zip(list(&why["peaks"])) {
        for field in ["at_ns", "series", "latency_ns", "stages"] {
            assert_eq!(drawn[field], expected[field], "{field} of {expected}");
        }
        // The page puts the tasks of one name together.
        let parts = |peak: &Value| {
            let mut sums = BTreeMap::<(String, String), u64>::new();
            for part in list(&peak["blame"]) {
                let (what, ns) = match part.as_array() {
                    Some(pair) => (&peaks["parts"][pair[0].as_u64().unwrap() as usize], &pair[1]),
                    None => (part, &part["ns"]),
                };
                let (cause, name) = (what["cause"].to_string(), what["name"].to_string());
                *sums.entry((cause, name)).or_default() += ns.as_u64().unwrap();
            }
            sums
        };
        assert_eq!(parts(drawn), parts(expected));
    }
}

#[test]
fn a_damaged_line_of_peaks_is_named_and_the_rest_is_on_the_page() {
    let store = Store::new();
    let run = store.runs().join("damaged");
    copy(&made_up(), &run);
    let file = run.join("peaks.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let half = first.get(..first.len() / 2).unwrap();
    fs::write(&file, format!("{half}\n{rest}")).unwrap();
    fs::write(run.join("blame.json"), "{").unwrap();
    let page = store.page(&["damaged"]);
    let peaks = &page["runs"][0]["peaks"];
    let damaged: Vec<&str> = list(&peaks["damaged"]).iter().filter_map(Value::as_str).collect();
    assert!(damaged.iter().any(|what| what.contains("peaks.jsonl: line 1 ")), "{damaged:?}");
    assert!(damaged.iter().any(|what| what.contains("blame.json")), "{damaged:?}");
    assert!(list(&peaks["peaks"]).len() >= 99);
    assert!(page["runs"][0]["blame"].is_null());
}
