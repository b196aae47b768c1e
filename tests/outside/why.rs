//! `tardy why`: what it tells of a traced run that was made up, of a damaged one, and of none.

#[path = "../../xtask/src/synth_why/mod.rs"]
pub(crate) mod synth_why;

use std::{fs, path::Path, path::PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};
use tardy::run::peaks::Blame;

use super::{
    once::made_once,
    schema::faults,
    support::{Said, Store, copy, finish, list, piped, whole},
};

/// The run that was made up, once for all tests here.
pub(crate) fn made_up() -> PathBuf {
    made_once("made-up", |run| synth_why::write(run).unwrap())
}

/// A copy of it, to be damaged.
fn copied() -> (Store, PathBuf) {
    let store = Store::new();
    let run = store.runs().join("r");
    copy(&made_up(), &run);
    (store, run)
}

fn schema() -> Validator {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/why.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// `why --json`, checked against its schema.
pub(crate) fn document(store: &Store) -> Value {
    let said = store.run(&["why", "r", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let why = serde_json::from_str(&said.out).unwrap();
    assert_eq!(faults(&schema(), &why), [""; 0]);
    why
}

fn text(store: &Store, arguments: &[&str]) -> String {
    let said = store.run(&[&["why", "r"], arguments].concat());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    assert!(!said.out.contains(|c: char| c.is_control() && c != '\n'), "{}", said.out);
    said.out
}

fn append(file: &Path, text: &str) {
    let whole = fs::read_to_string(file).unwrap() + text;
    fs::write(file, whole).unwrap();
}

/// The first peak of the run as its own line, changed.
fn changed(run: &Path, change: impl FnOnce(&mut Value)) -> String {
    let lines = fs::read_to_string(run.join("peaks.jsonl")).unwrap();
    let mut peak: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    change(&mut peak);
    format!("{peak}\n")
}

#[test]
fn the_verdict_names_cause_cpu_and_period() {
    let (store, _) = copied();
    let why = document(&store);
    let verdict = "61% of all time above p99.9 was interrupts off in console_unlock, on CPU 1, \
                   every 50 ms.";
    assert_eq!(why["verdict"], verdict);
    let names: Vec<&str> =
        list(&why["bands"]).iter().map(|band| band["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["p99", "p99.9", "p99.99", "worst"]);
    for band in list(&why["bands"]) {
        assert!(band["blamed_share"].as_f64().unwrap() > 0.99, "{band}");
        let shares = list(&band["causes"]).iter().map(|cause| cause["share"].as_f64().unwrap());
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-6, "{band}");
    }
    let beat = &list(&why["periodic"])[0];
    assert!((beat["period_ns"].as_f64().unwrap() / 5e7 - 1.0).abs() < 1e-4, "{beat}");
    assert_eq!(list(&why["periodic"]).len(), 1, "the others come by chance");
    assert_eq!(why["together"]["name"], "__kill_pgrp_info");
    assert_eq!(why["preempted"]["series"], json!(["cpu2"]));
    assert_eq!(list(&why["peaks"]).len(), 100);
    let latencies: Vec<i64> =
        list(&why["peaks"]).iter().map(|peak| whole(&peak["latency_ns"])).collect();
    assert!(latencies.is_sorted_by(|a, b| a >= b), "{latencies:?}");
}

#[test]
fn the_text_has_the_verdict_a_table_and_as_many_timelines_as_were_asked_for() {
    let (store, _) = copied();
    let few = text(&store, &["--peaks", "1"]);
    let words = few.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("interrupts off in console_unlock, on CPU 1, every 50 ms."), "{few}");
    assert!(few.contains("\n1. ") && !few.contains("\n2. "), "{few}");
    assert!(few.contains("and 99 more: "), "{few}");
    let all = text(&store, &["--peaks", "all"]);
    assert!(all.contains("\n100. ") && all.contains("console_unlock+0x1c5"), "{all}");
}

#[test]
fn a_damaged_line_is_named_and_the_rest_is_reported() {
    let (store, run) = copied();
    let all = document(&store);
    let file = run.join("peaks.jsonl");
    let lines = fs::read_to_string(&file).unwrap();
    fs::write(&file, lines.replacen("\"series\"", "\"serious\"", 1)).unwrap();
    let why = document(&store);
    let damage = &list(&why["damaged"])[0];
    assert_eq!((damage["file"].as_str(), whole(&damage["line"])), (Some("peaks.jsonl"), 1));
    assert_eq!(whole(&why["peaks_found"]), whole(&all["peaks_found"]) - 1);
    assert_eq!(why["verdict"], all["verdict"]);
    let out = text(&store, &[]);
    assert!(out.contains("not read: peaks.jsonl: line 1 is damaged: missing field"), "{out}");
    fs::write(run.join("blame.json"), "{\"causes\": 5}").unwrap();
    let why = document(&store);
    assert_eq!(list(&why["damaged"]).len(), 2, "{}", why["damaged"]);
    assert!(text(&store, &[]).contains("not read: blame.json is damaged"), "{why}");
}

#[test]
fn a_run_without_peaks_says_so() {
    let (store, run) = copied();
    fs::write(run.join("peaks.jsonl"), "").unwrap();
    let why = document(&store);
    assert_eq!((whole(&why["peaks_found"]), &why["together"]), (0, &Value::Null));
    text(&store, &[]);
    fs::remove_file(run.join("peaks.jsonl")).unwrap();
    fs::remove_file(run.join("blame.json")).unwrap();
    assert_eq!(document(&store)["damaged"], json!([]), "a run that has only begun has neither");
    text(&store, &[]);
}

#[test]
fn a_run_that_was_not_traced_is_an_error_that_says_how_to_trace() {
    let store = Store::new();
    store.made_up("100");
    let record = store.runs().join("r/run.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let mut refused = |found: &str, why_not: Value| {
        document["trace"]["found"] = json!(found);
        document["trace"]["why_not"] = why_not;
        fs::write(&record, document.to_string()).unwrap();
        let said = store.run(&["why", "r"]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        said.err
    };
    let off = refused("off", Value::Null);
    assert!(off.contains("were not traced") && off.contains("--trace peaks"), "{off}");
    assert!(refused("off", json!("no rights: run it as root")).contains("run it as root"));
    assert!(refused("stages", Value::Null).contains("has the stages"));
}

#[test]
fn a_run_that_was_killed_before_its_first_sums_says_so_and_not_that_nothing_was_blamed() {
    let (store, run) = copied();
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    fs::write(run.join("run.json"), record.replace("\"complete\"", "\"running\"")).unwrap();
    fs::write(run.join("blame.json"), serde_json::to_vec(&Blame::default()).unwrap()).unwrap();
    let why = document(&store);
    assert_eq!((&why["summed_ns"], list(&why["bands"]).len()), (&json!(0), 1), "{why}");
    assert_eq!(why["bands"][0]["name"], "worst");
    assert!(why["verdict"].as_str().unwrap().contains("in the ten worst wake-ups"), "{why}");
    let out = text(&store, &[]);
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("No sums of all late wake-ups yet"), "{out}");
}

#[test]
fn a_crashed_run_is_reported_without_its_unfinished_line() {
    let (store, run) = copied();
    let record = run.join("run.json");
    let text_of = fs::read_to_string(&record).unwrap();
    fs::write(&record, text_of.replace("\"complete\"", "\"running\"")).unwrap();
    append(&run.join("peaks.jsonl"), "{\"at_ns\": 4000, \"series\": \"cpu0\", \"la");
    let why = document(&store);
    assert_eq!(why["damaged"], json!([]));
    assert!(text(&store, &[]).contains("crashed"));
    // Of one that ended in order, it is damage.
    fs::write(&record, text_of).unwrap();
    assert_eq!(list(&document(&store)["damaged"])[0]["what"], "has no end");
}

#[test]
fn absurd_figures_are_reported_and_overflow_nothing() {
    let (store, run) = copied();
    for (at_ns, latency_ns) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (0, -1)] {
        let line = changed(&run, |peak| {
            peak["at_ns"] = json!(at_ns);
            peak["latency_ns"] = json!(latency_ns);
            peak["blame"][0]["ns"] = json!(u64::MAX);
            peak["blame"][1]["ns"] = json!(u64::MAX);
            peak["timeline"][0]["at"] = json!(i64::MAX);
            peak["timeline"][0]["ns"] = json!(u64::MAX);
            peak["left_out"] = json!(u64::MAX);
        });
        append(&run.join("peaks.jsonl"), &line);
    }
    append(&run.join("peaks.jsonl"), &changed(&run, |peak| peak["at_ns"] = json!(1e300)));
    assert_eq!(list(&document(&store)["damaged"]).len(), 1, "1e300 is not a time");
    text(&store, &["--peaks", "all"]);
}

#[test]
fn what_comes_from_a_run_cannot_steer_the_terminal() {
    let (store, run) = copied();
    let evil = "x\u{1b}]0;gone\u{7}\u{9b}2J\r\n\u{202e}y";
    let line = changed(&run, |peak| {
        peak["latency_ns"] = json!(1_000_000_000);
        peak["series"] = json!(evil);
        for key in ["name", "task"] {
            peak["blame"][0][key] = json!(evil);
        }
        peak["blame"][0]["stack"] = json!([evil]);
        for key in ["name", "what", "detail", "priority"] {
            peak["timeline"][0][key] = json!(evil);
        }
    });
    append(&run.join("peaks.jsonl"), &line);
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    let mut document: Value = serde_json::from_str(&record).unwrap();
    document["name"] = json!(evil);
    fs::write(run.join("run.json"), document.to_string()).unwrap();
    // As on a terminal: nothing is taken out of it afterwards.
    let mut command = store.tardy(&["why", "r", "--peaks", "all"]);
    command.env("CLICOLOR_FORCE", "1");
    let said: Said = finish(piped(&mut command));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("\u{1b}[1m"), "there is colour: {}", said.out);
    for bad in ["\u{1b}]", "\u{7}", "\u{9b}", "\r", "\u{202e}"] {
        assert!(!said.out.contains(bad), "{bad:?}");
    }
    text(&store, &["--peaks", "all"]);
}

#[test]
fn files_of_something_else_are_survived_within_bounds() {
    let (store, run) = copied();
    for name in ["peaks.jsonl", "blame.json"] {
        let file = run.join(name);
        let bytes = fs::read(&file).unwrap();
        let survives = |what: &str| {
            let bound = "ulimit -c 0; ulimit -v 1048576";
            let said = finish(piped(&mut store.shell(bound, &["why", "r"])));
            assert_eq!(said.code, Some(0), "{name}: {what}: {said:?}");
            assert!(said.out.contains(&format!("not read: {name}")), "{what}: {said:?}");
        };
        fs::write(&file, [0xff; 5_000]).unwrap();
        survives("no text");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        survives("a directory");
        fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        survives("/dev/zero");
        fs::remove_file(&file).unwrap();
        fs::write(&file, bytes).unwrap();
    }
}

#[test]
fn the_schema_refuses_what_tardy_would_not_say() {
    let (store, _) = copied();
    let (why, schema) = (document(&store), schema());
    for (place, value) in [
        ("/run", json!("")),
        ("/verdict", json!(null)),
        ("/threshold_ns", json!(1.5)),
        ("/blamed", json!(-1)),
        ("/bands/0/name", json!("p50")),
        ("/bands/0/blamed_share", json!(61)),
        ("/bands/0/causes/0/cause", json!("weather")),
        ("/bands/0/causes/0/series/0/ns", json!("5")),
        ("/periodic/0/period_ns", json!(0)),
        ("/together/most_cpus", json!(1)),
        ("/preempted/rows/0/cells", json!(5)),
        ("/peaks/0/stages/irq", json!(null)),
        ("/peaks/0/blame/0/ns", json!(-1)),
        ("/peaks/0/timeline/0/lane", json!("fast")),
        ("/damaged", json!(null)),
    ] {
        let mut changed = why.clone();
        *changed.pointer_mut(place).unwrap() = value;
        assert!(!faults(&schema, &changed).is_empty(), "{place}");
    }
}
