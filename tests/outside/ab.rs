//! `tardy ab`: blocks, their order and their record, the user's own commands, and every end. What
//! is equal here is made up, so that no verdict depends on this machine.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::support::{Store, eventually, finish, list, page_data, signal};

/// Made-up samples, the same in every block.
const MADE_UP: [&str; 10] = [
    "ab",
    "fake",
    "--unpaced",
    "--cpus",
    "0",
    "--interval",
    "10us",
    "--warmup",
    "20ms",
    "--name=x",
];

/// Made-up samples in real time, so that there is something to end.
const PACED: [&str; 9] =
    ["ab", "fake", "--cpus", "0", "--warmup", "20ms", "--name=x", "--budget", "10m"];

const EQUAL: [&str; 4] = ["--a", "", "--b", ""];

fn record(store: &Store) -> Value {
    let text = fs::read_to_string(place(store).join("ab.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn place(store: &Store) -> PathBuf {
    store.runs().join("x")
}

fn blocks(record: &Value) -> Vec<&Value> {
    record["blocks"].as_array().unwrap().iter().collect()
}

/// Commands that write down what they are asked to do.
fn noting() -> [&'static str; 6] {
    ["--prepare-a", "echo a >>said", "--prepare-b", "echo b >>said", "--undo", "echo u >>said"]
}

/// What they wrote, in a word: `abba`.
fn said(store: &Store) -> String {
    fs::read_to_string(store.path().join("said")).unwrap_or_default().replace('\n', "")
}

/// Waits until `count` blocks of a comparison are in its record.
fn wait_for_blocks(store: &Store, count: usize) {
    let file = place(store).join("ab.json");
    eventually("blocks in ab.json", || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        record["blocks"].as_array().is_some_and(|blocks| blocks.len() >= count)
    });
}

#[test]
fn equal_blocks_are_the_same_and_each_is_a_run_in_the_drawn_order() {
    let store = Store::new();
    let rest = ["--budget", "2m", "--seed", "1234567", "--json", "--quiet"];
    let done = store.run(&[&MADE_UP[..], &EQUAL, &rest, &noting()].concat());
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{done:?}");
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(found, record(&store));
    assert_eq!((&found["verdict"], &found["status"]), (&"same".into(), &"complete".into()));
    assert_eq!((&found["seed"], &found["causes"]), (&1_234_567.into(), &Value::Null));
    for figure in found["figures"].as_array().unwrap() {
        assert_eq!((&figure["verdict"], &figure["unit"]), (&"same".into(), &"ns".into()));
        assert_eq!((&figure["ratio"], &figure["series"]), (&1.0.into(), &Value::Null));
        assert!(figure["low"].as_f64() < Some(1.0) && figure["high"].as_f64() > Some(1.0));
    }
    // The first of each side, then ABBA, ABBA, BAAB and so on, until it is decided.
    let sides: String =
        blocks(&found).iter().map(|block| block["side"].as_str().unwrap()).collect();
    assert!(sides.starts_with("ababbaabba") && sides.len() % 4 == 2, "{sides}");
    let look = &found["looks"][0];
    assert_eq!(
        (&look["verdict"], sides.len() as u64 - 2),
        (&"same".into(), look["pairs"].as_u64().unwrap() * 2)
    );
    assert_eq!(said(&store), format!("{sides}u"));
    for block in blocks(&found) {
        let path = place(&store).join(block["path"].as_str().unwrap());
        let run = store.show(path.to_str().unwrap());
        assert_eq!(run["status"], "complete");
        assert_eq!(run["series"][0]["scheduled"]["count"], block["samples"]);
    }
    let exported = store.run(&["export", "last", "--to", "influx"]);
    assert_eq!(exported.out.lines().count(), sides.len(), "{exported:?}");
    assert_page(&store, &found);
}

/// The page says what the record does, and leads to the pages of the first two blocks.
fn assert_page(store: &Store, record: &Value) {
    let file = store.path().join("x.html");
    let done = store.run(&["report", "x", "-o", file.to_str().unwrap(), "--pages=2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let page = page_data(&fs::read_to_string(file).unwrap());
    let (one, matrix) = (&page["comparisons"][0], &page["matrix"]);
    for field in ["verdict", "figures"] {
        assert_eq!(one[field], record[field], "{field}");
    }
    assert!(one["sentence"].as_str().unwrap().starts_with("same: p50 (within"), "{one}");
    assert!(list(&one["shift"]).iter().all(|point| point["ratio"] == 1.0), "{one}");
    assert!(!list(&one["shift"]).is_empty());
    assert_eq!(
        (&page["ab"]["looks"], &page["ab"]["status"]),
        (&record["looks"], &"complete".into())
    );
    let compared = |block: &&Value| block["compared"] == true;
    let samples = |side: &str| -> u64 {
        let own = list(&record["blocks"]).iter().filter(compared);
        let own = own.filter(|block| block["side"] == side);
        own.map(|block| block["samples"].as_u64().unwrap()).sum()
    };
    for (cell, side) in list(&matrix["loads"][0]["cells"]).iter().zip(["a", "b"]) {
        let curve = list(&cell["curve"]);
        assert!(
            cell["samples"].as_u64() > Some(0) && cell["samples"].as_u64() <= Some(samples(side))
        );
        assert_eq!(curve.last().unwrap()[0], 100.0);
    }
    let runs = list(&matrix["runs"]);
    let paths: Vec<&Value> = runs.iter().map(|run| &run["path"]).collect();
    let of_blocks: Vec<&Value> = list(&record["blocks"]).iter().map(|own| &own["path"]).collect();
    assert_eq!(paths, of_blocks);
    for (number, run) in runs.iter().enumerate() {
        assert_eq!(run["page"].is_string(), number < 2, "{run}");
        assert_eq!(run["row"] == "compared", record["blocks"][number]["compared"] == true);
    }
    let own = fs::read_to_string(store.path().join(runs[1]["page"].as_str().unwrap())).unwrap();
    assert_eq!(list(&page_data(&own)["runs"]).len(), 1);
}

#[test]
fn the_text_ends_with_the_answer_and_begins_with_what_can_be_found() {
    let store = Store::new();
    let done = store.run(&[&MADE_UP[..], &EQUAL, &["--budget", "2m"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("A and B are alike"), "{}", done.err);
    assert!(done.err.contains("a difference of") && done.err.contains("After "), "{}", done.err);
    assert!(done.out.starts_with("x: B against A same\n"), "{}", done.out);
    let last = done.out.trim_end().lines().last().unwrap();
    assert!(last.starts_with("same: p50 (within 5.0%), p99 (within"), "{last}");
    // It is listed as what it is, and its blocks are not.
    let listed: Value = serde_json::from_str(&store.run(&["list", "--json"]).out).unwrap();
    let kinds: Vec<&Value> = list(&listed).iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["comparison"], "{listed}");
}

#[test]
fn what_a_block_cannot_have_is_refused_before_anything_is_measured() {
    let store = Store::new();
    for (a, b, wanted) in [
        ("", "--no-such 1", "--b \"--no-such 1\": unexpected argument '--no-such'"),
        ("--duration 1s", "", "--a: --duration is not supported"),
        ("--interval 1ms", "", "--interval"),
        ("--policy 'fifo", "", "a quote is not closed"),
    ] {
        let said = store.run(&[&MADE_UP[..], &["--a", a, "--b", b]].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(wanted), "{}", said.err);
    }
    let half = ["--prepare-b", "true"];
    let said = store.run(&[&MADE_UP[..], &EQUAL, &half].concat());
    assert!(said.code == Some(2) && said.err.contains("--prepare-a"), "{said:?}");
    assert!(!store.runs().exists());
}

#[test]
fn a_budget_that_is_too_small_says_how_much_it_takes_and_puts_back() {
    let store = Store::new();
    let done = store.run(&[&MADE_UP[..], &EQUAL, &["--budget", "100ms"], &noting()].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("six pairs of blocks take at least"), "{}", done.err);
    assert_eq!(said(&store), "abu");
    assert_eq!(record(&store)["status"], "failed");
}

#[test]
fn a_prepare_command_that_fails_ends_it_with_its_output_and_everything_put_back() {
    let store = Store::new();
    // The third time.
    let fails = "echo b >>said; test $(grep -c b said) -lt 3 || { echo broken; exit 7; }";
    let prepared = ["--prepare-a", "true", "--prepare-b", fails, "--undo", "echo u >>said"];
    let done = store.run(&[&MADE_UP[..], &EQUAL, &["--seed", "1234567"], &prepared].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    let wanted = "failed (exit code 7); broken";
    assert!(done.err.contains("--prepare-b") && done.err.contains(wanted), "{}", done.err);
    assert_eq!(said(&store), "bbbu");
    let record = record(&store);
    assert_eq!((&record["status"], &record["verdict"]), (&"failed".into(), &"inconclusive".into()));
    assert!(record["error"].as_str().unwrap().contains("broken"));
    let commands = record["commands"].as_array().unwrap();
    let [.., failed, undone] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!((&failed["what"], &failed["exit_code"]), (&"prepare-b".into(), &7.into()));
    assert_eq!((&undone["what"], &undone["exit_code"]), (&"undo".into(), &0.into()));
}

#[test]
fn an_undo_that_fails_is_an_error_whatever_was_found() {
    let store = Store::new();
    let prepared = ["--prepare-a", "true", "--prepare-b", "true", "--undo", "echo stuck; exit 1"];
    let done = store.run(&[&MADE_UP[..], &EQUAL, &["--budget", "2m"], &prepared].concat());
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("as the last prepare command left it"), "{}", done.err);
    assert!(done.err.contains("stuck"), "{}", done.err);
    assert_eq!(record(&store)["verdict"], "same");
}

#[test]
fn ctrl_c_and_sigterm_end_it_with_what_was_measured_and_put_back() {
    for name in ["INT", "TERM"] {
        let store = Store::new();
        let child = store.start(&[&PACED[..], &EQUAL, &noting()].concat());
        wait_for_blocks(&store, 3);
        signal(&child, name);
        let done = finish(child);
        assert_eq!(done.code, Some(3), "{name}: {done:?}");
        assert!(done.out.starts_with("x: B against A inconclusive, interrupted\n"), "{done:?}");
        let record = record(&store);
        assert_eq!((&record["status"], &record["error"]), (&"interrupted".into(), &Value::Null));
        assert!(said(&store).ends_with('u') && said(&store).matches('u').count() == 1);
        assert!(store.processes().is_empty());
    }
}

#[test]
fn ctrl_c_ends_a_prepare_command_that_hangs() {
    let store = Store::new();
    let hangs = "echo b >>said; sleep 600";
    let prepared = ["--prepare-a", "true", "--prepare-b", hangs, "--undo", "echo u >>said"];
    let child = store.start(&[&PACED[..], &EQUAL, &prepared].concat());
    eventually("the prepare command", || said(&store) == "b");
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert_eq!(said(&store), "bu");
    eventually("its processes end", || store.processes().is_empty());
}

#[test]
fn kill_9_leaves_a_record_of_the_blocks_so_far_and_no_process() {
    let store = Store::new();
    let child = store.start(&[&PACED[..], &EQUAL, &noting()].concat());
    wait_for_blocks(&store, 3);
    signal(&child, "KILL");
    finish(child);
    eventually("the block in progress ends too", || store.processes().is_empty());
    let record = record(&store);
    assert_eq!(
        (&record["status"], &record["verdict"]),
        (&"running".into(), &"inconclusive".into())
    );
    for block in blocks(&record) {
        let path = place(&store).join(block["path"].as_str().unwrap());
        assert_eq!(store.show(path.to_str().unwrap())["status"], "complete");
    }
    assert!(!said(&store).contains('u'), "nobody was left to restore it");
}
