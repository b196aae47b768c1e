//! `tardy plan`: cells, their order and their record, what prepares them, gates, and every end.
//! Samples are made up, so that nothing depends on this machine.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::support::{Store, eventually, finish, list, page_data, signal};

/// Two combinations, twice; each cell takes 40 ms.
const TINY: &str = r#"
name = "tiny"
repeat = 2
seed = 7
probe = "fake"
[run]
cpus = "0"
interval = "10us"
unpaced = true
samples = 2000
warmup = "0s"
[[load]]
name = "a"
use = []
[[load]]
name = "b"
use = []
run.samples = 3000
"#;

/// The same in real time, so that there is something to kill: the second cell does not end by
/// itself for as long as a test waits.
const SLOW: &str = r#"
name = "slow"
order = "listed"
probe = "fake"
[run]
cpus = "0"
interval = "1ms"
warmup = "0s"
[[load]]
name = "short"
use = []
run.duration = "100ms"
[[load]]
name = "long"
use = []
run.duration = "10m"
"#;

fn write(store: &Store, text: &str) -> String {
    let file = store.path().join("plan.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn place(store: &Store) -> PathBuf {
    store.runs().join("x")
}

fn record(store: &Store) -> Value {
    let text = fs::read_to_string(place(store).join("plan.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn of<'a>(record: &'a Value, field: &str) -> Vec<&'a Value> {
    list(&record["cells"]).iter().map(|cell| &cell[field]).collect()
}

#[test]
fn each_cell_is_a_run_and_every_row_is_measured_before_any_is_measured_again() {
    let store = Store::new();
    let file = write(&store, TINY);
    let done = store.run(&["plan", &file, "--name=x", "--json", "--quiet"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{done:?}");
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(found, record(&store));
    assert_eq!((&found["status"], &found["seed"]), (&"complete".into(), &7.into()));
    assert_eq!(of(&found, "repeat"), [1, 1, 2, 2]);
    for round in list(&found["cells"]).chunks(2) {
        let mut rows: Vec<&str> = round.iter().map(|cell| cell["row"].as_str().unwrap()).collect();
        rows.sort_unstable();
        assert_eq!(rows, ["a", "b"]);
    }
    for cell in list(&found["cells"]) {
        let path = place(&store).join(cell["path"].as_str().unwrap());
        let run = store.show(path.to_str().unwrap());
        let samples = if cell["row"] == "a" { 2000 } else { 3000 };
        assert_eq!(
            (&run["status"], &run["series"][0]["count"]),
            (&"complete".into(), &samples.into())
        );
        assert_eq!((&cell["status"], &cell["validity"]), (&"measured".into(), &run["validity"]));
    }
    // The directory of a plan is not a damaged run: it is listed as what it is.
    let listed = store.run(&["list", "--json"]);
    assert_eq!(listed.err, "");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(list(&listed).len(), 1, "{listed}");
    let what = (listed[0]["kind"].as_str().unwrap(), listed[0]["what"].as_str().unwrap());
    assert_eq!(what, ("plan", "plan of 4 cells, 4 measured"));
    let text = store.run(&["list"]).out;
    assert!(text.contains("complete  -        plan of 4 cells, 4 measured"), "{text}");
    // Its runs are those that are asked for.
    let named = place(&store).file_name().unwrap().to_str().unwrap().to_owned();
    let cells = store.run(&["list", "--json", "--where", &format!("plan={named} cell=*b*")]);
    let cells: Value = serde_json::from_str(&cells.out).unwrap();
    assert_eq!(list(&cells).len(), 2, "{cells}");
    // And nothing is measured over it.
    let again = store.run(&["plan", &file, "-o", place(&store).to_str().unwrap()]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("continue with `tardy plan --resume"), "{}", again.err);
    // It goes as a whole, or not at all.
    fs::write(place(&store).join("cells/notes.txt"), "x").unwrap();
    let kept = store.run(&["rm", "x"]);
    assert_eq!((kept.code, kept.out.as_str()), (Some(2), ""));
    assert!(kept.err.contains("\"cells/notes.txt\", which tardy did not write"), "{kept:?}");
    assert_eq!(record(&store), found);
    fs::remove_file(place(&store).join("cells/notes.txt")).unwrap();
    let removed = store.run(&["rm", "x"]);
    assert_eq!((removed.code, removed.err.as_str()), (Some(0), ""));
    assert!(removed.out.ends_with("runs/x\n") && !place(&store).exists(), "{removed:?}");
}

#[test]
fn check_says_what_would_be_done_and_does_nothing() {
    let store = Store::new();
    let file = write(&store, &TINY.replace("seed = 7", "budget = \"1ms\""));
    let said = store.run(&["plan", &file, "--check", "--name=x"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("error: budget: about 0 of 2 cells fit into 1 ms"), "{said:?}");
    for wanted in
        ["a, repeat 1", "b, repeat 2", "--samples=3000", "4 cells, about", "0 of them fit"]
    {
        assert!(said.out.contains(wanted), "{wanted}: {}", said.out);
    }
    assert!(!place(&store).exists());
    let measured = store.run(&["plan", &file, "--name=x", "--quiet"]);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let found = record(&store);
    assert_eq!(
        (&found["status"], &found["cells"][0]["path"]),
        (&"over_budget".into(), &Value::Null)
    );
    let rest = ["plan", "--resume", "x", "--budget", "1h", "--quiet"];
    assert_eq!(store.run(&rest).code, Some(0));
    assert_eq!(of(&record(&store), "status"), ["measured"; 4]);
}

#[test]
fn what_was_killed_goes_on_and_no_cell_is_measured_twice() {
    let store = Store::new();
    let file = write(&store, SLOW);
    let child = store.start(&["plan", &file, "--name=x", "--quiet"]);
    eventually("the second cell", || {
        let begun = place(&store).join("cells/0002/run.json").exists();
        begun && of(&record(&store), "status").first().is_some_and(|status| **status == "measured")
    });
    signal(&child, "KILL");
    finish(child);
    let first = fs::read(place(&store).join("cells/0001/run.json")).unwrap();
    assert_eq!(record(&store)["status"], "running");
    // The second cell is to be short now; its words are those of the record.
    let file = place(&store).join("plan.json");
    let text = fs::read_to_string(&file).unwrap().replace("--duration=10m", "--duration=100ms");
    fs::write(&file, text).unwrap();
    let done = store.run(&["plan", "--resume", "x", "--quiet", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let found = record(&store);
    assert_eq!((&found["status"], &found["sittings"]), (&"complete".into(), &2.into()));
    assert_eq!(of(&found, "status"), ["measured"; 2]);
    // The part that was measured stays; the whole cell lies beside it.
    assert_eq!(of(&found, "path"), ["cells/0001", "cells/0002-2"]);
    assert_eq!(fs::read(place(&store).join("cells/0001/run.json")).unwrap(), first);
    // All is done: nothing is measured any more.
    assert_eq!(store.run(&["plan", "--resume", "x", "--quiet"]).code, Some(0));
    assert_eq!(of(&record(&store), "path"), ["cells/0001", "cells/0002-2"]);
    assert_eq!(fs::read_dir(place(&store).join("cells")).unwrap().count(), 3);
}

#[test]
fn a_cell_that_ended_after_its_plan_was_killed_is_not_measured_again() {
    let store = Store::new();
    let file = write(&store, TINY);
    assert_eq!(store.run(&["plan", &file, "--name=x", "--quiet"]).code, Some(0));
    // As it is where the kill comes between the end of the run and the record.
    let file = place(&store).join("plan.json");
    let mut found = record(&store);
    found["status"] = "running".into();
    found["cells"][3]["status"] = "pending".into();
    fs::write(&file, found.to_string()).unwrap();
    assert_eq!(store.run(&["plan", "--resume", "x", "--quiet"]).code, Some(0));
    assert_eq!(of(&record(&store), "status"), ["measured"; 4]);
    assert_eq!(fs::read_dir(place(&store).join("cells")).unwrap().count(), 4);
}

#[test]
fn a_run_that_is_damaged_or_gone_is_measured_again_beside_what_is_left() {
    let store = Store::new();
    let file = write(&store, TINY);
    assert_eq!(store.run(&["plan", &file, "--name=x", "--quiet"]).code, Some(0));
    let run = |cell: &str| place(&store).join("cells").join(cell).join("run.json");
    let text = fs::read_to_string(run("0001")).unwrap();
    fs::write(run("0001"), &text[..text.len() / 2]).unwrap();
    fs::remove_file(run("0002")).unwrap();
    fs::remove_dir_all(place(&store).join("cells/0003")).unwrap();
    let check = store.run(&["plan", "--resume", "runs/x/", "--check"]);
    assert!(check.code == Some(0) && check.out.contains("3 cells, about"), "{check:?}");
    let told = "runs/x/cells/0001: run.json is damaged: EOF";
    assert!(check.err.contains(told) && !check.err.contains("/proc/"), "{check:?}");
    assert_eq!(check.err.matches(": the run is missing; the cell is").count(), 2, "{check:?}");
    assert_eq!(of(&record(&store), "status"), ["measured"; 4], "nothing is changed by --check");
    let done = store.run(&["plan", "--resume", "x", "--quiet"]);
    assert_eq!((done.code, done.err.matches("is to be measured again").count()), (Some(0), 3));
    assert_eq!(of(&record(&store), "status"), ["measured"; 4]);
    let paths = ["cells/0001-2", "cells/0002-2", "cells/0003", "cells/0004"];
    assert_eq!(of(&record(&store), "path"), paths);
    assert_eq!(fs::read_to_string(run("0001")).unwrap(), text[..text.len() / 2]);
    // A whole run of another cell is not thrown away.
    fs::copy(run("0003"), run("0004")).unwrap();
    for more in [&["--check"][..], &[]] {
        let said = store.run(&[&["plan", "--resume", "runs/x"], more].concat());
        let told = "--resume runs/x: cells/0004: it holds another run";
        assert!(said.code == Some(2) && said.err.contains(told), "{said:?}");
        assert!(said.err.contains("move it away"), "{said:?}");
    }
}

#[test]
fn prepare_commands_run_before_their_cells_and_are_put_back_however_it_ends() {
    let store = Store::new();
    let said = store.path().join("said");
    let note = |word: &str| format!("echo {word} >>{}", said.display());
    let setups = format!(
        "[[setup]]\nname = \"on\"\nprepare = \"{}\"\n[[setup]]\nname = \"off\"\nprepare = \"{}\"\n",
        note("on"),
        note("off")
    );
    let text =
        TINY.replace("seed = 7", &format!("order = \"listed\"\nundo = \"{}\"", note("undo")));
    let file = write(&store, &(text.replace("repeat = 2\n", "") + &setups));
    let words = || fs::read_to_string(&said).unwrap_or_default().replace('\n', " ");
    assert_eq!(store.run(&["plan", &file, "--name=x", "--quiet"]).code, Some(0));
    assert_eq!(words(), "on off on off undo ");
    assert_eq!(record(&store)["is_prepared"], false);
    // One that fails ends all, with what it printed.
    fs::remove_file(&said).unwrap();
    let failing = fs::read_to_string(&file).unwrap().replace(&note("off"), "echo no; exit 3");
    let file = write(&store, &failing);
    let done = store.run(&["plan", &file, "--name=y", "--quiet"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.err.contains("prepare \"echo no; exit 3\" failed (exit code 3); no"),
        "{}",
        done.err
    );
    assert_eq!(words(), "on undo ");
}

#[test]
fn gates_hold_for_every_cell_and_decide_the_exit_code() {
    let store = Store::new();
    let file = write(&store, TINY);
    let of = |name: &str, gate: &str| {
        let done = store.run(&["plan", &file, "--name", name, "--json", "--quiet", "--gate", gate]);
        let found: Value = serde_json::from_str(&done.out).unwrap_or_default();
        (done.code, list(&found["gates"]).len())
    };
    assert_eq!(of("kept", "max<1h"), (Some(0), 4));
    assert_eq!(of("broken", "max<1ns"), (Some(1), 4));
    for (name, code, result) in [("kept", 0, "pass"), ("broken", 1, "fail")] {
        let said = store.run(&["export", name, "--to", "lava"]);
        assert_eq!(said.code, Some(code), "{said:?}");
        let gates = said.out.lines().filter(|line| line.contains("max_lt_"));
        let mut cells: Vec<&str> = gates
            .filter(|line| line.ends_with(&format!(" --result {result}")))
            .filter_map(|line| line.split([' ', '.']).nth(2))
            .collect();
        cells.sort_unstable();
        assert_eq!(cells, ["a", "a", "b", "b"], "{said:?}");
    }
    let with = |gates: &str| {
        let file = write(&store, &TINY.replace("seed = 7", &format!("seed = 7\ngates = {gates}")));
        store.run(&["plan", &file, "--name=own", "--json", "--quiet", "--gate", "max<1h"])
    };
    let own = with("[\"max<1ns\"]");
    let found: Value = serde_json::from_str(&own.out).unwrap_or_default();
    assert_eq!((own.code, list(&found["gates"]).len()), (Some(1), 8), "{own:?}");
    assert_eq!(store.run(&["plan", "--resume", "own", "--quiet"]).code, Some(1), "they stay");
    let said = store.run(&["export", "own", "--to", "tap"]);
    assert_eq!(said.out.matches("\nnot ok ").count(), 4, "{said:?}");
    let refused = with("[\"max<1h\",\n\"p95<=1us\"]");
    assert!(refused.err.contains("line 6: gates: \"p95<=1us\": unknown metric"), "{refused:?}");
    let file = write(&store, TINY);
    let refused = store.run(&["plan", &file, "--gate", "cpu7:max<1h"]);
    assert!(refused.err.contains("unknown series cpu7"), "{}", refused.err);
}

#[test]
fn what_a_cell_cannot_be_is_refused_by_its_line_before_anything_is_measured() {
    let store = Store::new();
    for (line, other, wanted) in [
        ("seed = 7", "sead = 7", "line 4: unknown key \"sead\": did you mean \"seed\"?"),
        ("name = \"a\"\nuse = []", "name = \"a\"\nuse = [\"hackbnech\"]", "did you mean hackbench"),
        ("use = []\n[[load]]", "[[load]]", "line 13: use: load \"a\" has none"),
        ("interval =", "intervall =", "line 12: \"a\": unexpected argument '--intervall'"),
        ("samples = 2000", "duration = \"inf\"", "--duration inf: a cell of a plan has to end"),
        ("repeat = 2", "boxes = 2", "it wants two boxes, and this machine is one"),
        (
            "repeat = 2",
            "repeat = 2\ngates = [\"missd=0\"]",
            "line 4: gates: \"missd=0\": unknown metric",
        ),
    ] {
        let file = write(&store, &TINY.replace(line, other));
        let said = store.run(&["plan", &file, "--name=x"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(wanted), "{other}: {}", said.err);
        assert!(!place(&store).exists(), "{other}");
    }
    let none = store.run(&["plan", "--resume", "nothing"]);
    assert!(none.err.contains("no plan was measured there"), "{}", none.err);
}

#[test]
fn a_cell_that_cannot_be_measured_is_told_and_tried_again_by_the_next_sitting() {
    let store = Store::new();
    let file = write(&store, TINY);
    let done = store.run(&["plan", &file, "--name=x", "--quiet"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // A cell of another plan, whose words no run takes.
    let json = place(&store).join("plan.json");
    let mut found = record(&store);
    found["cells"][0]["status"] = "pending".into();
    found["cells"][0]["path"] = Value::Null;
    found["cells"][0]["words"] = serde_json::json!(["fake", "--no-such"]);
    fs::write(&json, found.to_string()).unwrap();
    let done = store.run(&["plan", "--resume", "x", "--quiet"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.out.contains("FAILED") && done.out.contains("--no-such"), "{}", done.out);
    let mut found = record(&store);
    assert_eq!(
        (&found["status"], &found["cells"][0]["status"]),
        (&"complete".into(), &"failed".into())
    );
    found["cells"][0]["words"] = found["cells"][1]["words"].clone();
    fs::write(&json, found.to_string()).unwrap();
    assert_eq!(store.run(&["plan", "--resume", "x", "--quiet"]).code, Some(0));
    assert_eq!(of(&record(&store), "status"), ["measured"; 4]);
}

/// The data of the page of the plan, which lies in `x.html` beside the pages of its runs.
fn plan_page(store: &Store, more: &[&str]) -> Value {
    let file = store.path().join("x.html");
    let words = ["report", "x", "-o", file.to_str().unwrap()];
    let done = store.run(&[&words, more].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    page_data(&fs::read_to_string(file).unwrap())
}

#[test]
fn the_page_of_a_plan_has_a_cell_for_each_combination_and_leads_to_the_pages_of_its_runs() {
    let store = Store::new();
    let file = write(&store, TINY);
    let gates = ["--gate=max<1s", "--gate=max<1ns"];
    let done = store.run(&[&["plan", &file, "--name=x", "--quiet"][..], &gates].concat());
    assert_eq!(done.code, Some(1), "{done:?}");
    let page = plan_page(&store, &["--pages=3"]);
    let matrix = &page["matrix"];
    assert_eq!((&matrix["kind"], &matrix["headline"]), (&"plan".into(), &"x".into()));
    assert_eq!(matrix["state"], "complete, 4 of 4 cells measured");
    let of_b = &matrix["loads"][1]["cells"][0];
    assert_eq!((&matrix["loads"][1]["name"], &of_b["phases"]), (&"b".into(), &2.into()));
    assert_eq!(of_b["samples"], 6000);
    let runs = list(&matrix["runs"]);
    for (number, run) in runs.iter().enumerate() {
        let record =
            store.show(place(&store).join(run["path"].as_str().unwrap()).to_str().unwrap());
        let (series, figures) = (&record["series"][0], list(&run["figures"]));
        assert_eq!(figures[0]["value_ns"], series["percentiles"]["50"]);
        assert_eq!(figures[3]["value_ns"], series["max"]);
        let [low, value, high] =
            ["low_ns", "value_ns", "high_ns"].map(|end| figures[0][end].as_u64());
        assert!(low <= value && (high.is_none() || high >= value), "{run}");
        assert_eq!(high.is_none(), figures[0]["uncertain"], "{run}");
        // Of 2000 samples, two lie beyond.
        assert_eq!(figures[2]["uncertain"], true, "{run}");
        let verdicts: Vec<&Value> =
            list(&run["gates"]).iter().map(|gate| &gate["verdict"]).collect();
        assert_eq!(verdicts, ["pass", "fail"]);
        let Some(link) = run["page"].as_str() else {
            assert_eq!(number, 3, "three pages were allowed");
            continue;
        };
        let own = page_data(&fs::read_to_string(store.path().join(link)).unwrap());
        assert_eq!(own["runs"][0]["record"]["id"], record["id"]);
    }
    one_viewer_for_all(&store.path().join("x.pages"), 3);
    assert!(matrix["remarks"][0].as_str().unwrap().starts_with("1 run without a page"));
    let only_plans = store.run(&["report", "x", "--vs", "x", "-o", "y.html"]);
    assert!(only_plans.err.contains("--vs takes runs"), "{only_plans:?}");
}

/// The pages in a directory, this many, and the viewer that each of them names.
fn one_viewer_for_all(directory: &Path, pages: usize) {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    let (viewers, others): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.starts_with("tardy-viewer-"));
    assert_eq!((viewers.len(), others.len()), (1, pages), "{names:?}");
    for page in others {
        let text = fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(&format!("src=\"{}\"", viewers[0])), "{page}");
        assert!(text.len() < 150_000, "{page}: {}", text.len());
    }
}

#[test]
fn the_page_of_a_plan_says_what_is_not_measured_and_what_cannot_be_read() {
    let store = Store::new();
    let file = write(&store, TINY);
    let done = store.run(&["plan", &file, "--name=x", "--quiet"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut record = record(&store);
    record["status"] = "interrupted".into();
    let cells = record["cells"].as_array_mut().unwrap();
    fs::remove_file(place(&store).join(cells[0]["path"].as_str().unwrap()).join("run.json"))
        .unwrap();
    for (number, status) in [(2, "pending"), (3, "failed")] {
        cells[number]["status"] = status.into();
        cells[number]["path"] = Value::Null;
        cells[number]["validity"] = Value::Null;
    }
    cells[3]["error"] = "no rights".into();
    fs::write(place(&store).join("plan.json"), record.to_string()).unwrap();
    let page = plan_page(&store, &["--pages=0"]);
    let matrix = &page["matrix"];
    assert_eq!(matrix["state"], "ended early, 2 of 4 cells measured");
    assert_eq!(matrix["undone"], 1);
    let runs = list(&matrix["runs"]);
    let states: Vec<&Value> = runs.iter().map(|run| &run["status"]).collect();
    assert_eq!(states, ["measured", "measured", "pending", "failed"]);
    assert!(runs[0]["error"].as_str().unwrap().contains("is not a run directory"), "{}", runs[0]);
    assert_eq!(runs[3]["error"], "no rights");
    let why: Vec<&Value> = list(&matrix["failed"]).iter().map(|cell| &cell["why"]).collect();
    assert_eq!(why, [&runs[0]["error"], &runs[3]["error"]]);
    let measured = list(&matrix["loads"]).iter().filter(|row| row["cells"][0].is_object());
    assert_eq!(measured.count(), 1);
    assert!(!store.path().join("x.pages").exists());
    fs::write(place(&store).join("plan.json"), "{").unwrap();
    let done = store.run(&["report", "x", "-o", "y.html"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("plan.json is damaged"), "{done:?}");
}

const PARTS: &str = r#"
name = "parts"
repeat = 3
[run]
duration = "100ms"
warmup = "0s"
[[part]]
name = "made up"
probe = "fake"
run.duration = "500ms"
[[part.load]]
name = "a"
use = []
[[part.load]]
name = "b"
use = ["burn:threads=1,share=10"]
[[part]]
name = "bandwidth"
probe = "bandwidth"
run.only = "null_call"
"#;

#[test]
fn two_plans_of_parts_stand_beside_each_other_on_a_page_part_by_part() {
    let store = Store::new();
    let file = write(&store, PARTS);
    for name in ["x", "y"] {
        let done = store.run(&["plan", &file, &format!("--name={name}"), "--quiet"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    // Gates are for the cells with latencies.
    let gated = store.run(&["plan", &file, "--name=z", "--quiet", "--gate=max<1s", "--check"]);
    assert_eq!(gated.code, Some(0), "{gated:?}");
    let gates = ["plan", "--resume=y", "--quiet", "--gate=max<1s", "--json"];
    let gated = store.run(&gates);
    assert_eq!(gated.code, Some(0), "{gated:?}");
    let gated: Value = serde_json::from_str(&gated.out).unwrap();
    let cells: BTreeSet<&str> =
        list(&gated["gates"]).iter().filter_map(|gate| gate["cell"].as_str()).collect();
    assert_eq!(cells.len(), 6, "{cells:?}");
    let other = store.run(&["suite", "--resume=y"]);
    assert!(other.err.contains("it is the plan \"parts\", not a suite"), "{other:?}");

    let one = plan_page(&store, &["--pages=0"]);
    let suite = &one["matrix"]["suite"];
    let parts: Vec<&Value> = list(&suite["parts"]).iter().map(|part| &part["name"]).collect();
    assert_eq!(parts, ["made up", "bandwidth"]);
    let figure = &suite["parts"][1]["figures"][0];
    assert_eq!((&figure["name"], &figure["change"]), (&"null_call".into(), &Value::Null));
    let range = &figure["cells"][0];
    assert_eq!(list(&range["values"]).len(), 3);
    let [low, median, high] = ["low", "median", "high"].map(|end| range[end].as_f64().unwrap());
    assert!(0.0 < low && low <= median && median <= high, "{range}");

    let file = store.path().join("both.html");
    let done = store.run(&["report", "x", "y", "-o", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let both = page_data(&fs::read_to_string(&file).unwrap());
    let matrix = &both["matrix"];
    assert_eq!(matrix["headline"], "x and y");
    // The probe makes the same samples up each time, so that no verdict depends on the machine.
    let said = matrix["loads"][0]["verdicts"][0].as_str().unwrap();
    assert!(said.starts_with("the same within the margin: p50"), "{said}");
    let change = &matrix["suite"]["parts"][1]["figures"][0]["change"];
    assert!(change["low"].as_f64() < change["high"].as_f64(), "{change}");
    let pages: Vec<_> = list(&matrix["runs"]).iter().map(|run| run["page"].as_str()).collect();
    assert!(pages.contains(&Some("both.pages/1-0001.html")), "{pages:?}");
    assert!(pages.contains(&Some("both.pages/2-0001.html")), "{pages:?}");
    let run = store.run(&["run", "fake", "--duration=100ms", "--quiet", "--name=r"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mixed = store.run(&["report", "x", "r", "-o", file.to_str().unwrap()]);
    assert!(mixed.err.contains("x is a plan, and the other is not"), "{mixed:?}");
}

#[test]
fn a_suite_says_what_it_would_do_and_keeps_gates_and_resuming_of_plans() {
    let store = Store::new();
    for (words, name) in [(&["--check"][..], "suite-quick"), (&["--full", "--check"], "suite-full")]
    {
        let done = store.run(&[&["suite", "--json"][..], words].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        let record: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(record["plan"], name);
        assert!(list(&record["cells"]).iter().all(|cell| cell["part"].is_string()), "{record}");
    }
    let both = store.run(&["suite", "--quick", "--full"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(fs::read_dir(store.path()).unwrap().next().is_none(), "nothing was measured");
    let file = write(&store, &TINY.replace("\"tiny\"", "\"suite-tiny\""));
    assert_eq!(store.run(&["plan", &file, "--name=x", "--quiet"]).code, Some(0));
    let done = store.run(&["suite", "--resume", "x", "--pages", "0", "--quiet"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        place(&store).join("index.html").is_file() && !place(&store).join("index.pages").exists()
    );
}

#[test]
fn plans_are_held_against_the_first_row_by_row() {
    let store = Store::new();
    let measure = |name: &str, distribution: &str| {
        let text = format!(
            "name = \"p\"\nrepeat = 3\nprobe = \"fake\"\n[run]\ncpus = \"0\"\nwarmup = \"0s\"\n\
             interval = \"1ms\"\nduration = \"20s\"\ndistribution = \"{distribution}\"\n\
             [[load]]\nname = \"a\"\nuse = []\n"
        );
        let done =
            store.run(&["plan", &write(&store, &text), &format!("--name={name}"), "--quiet"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    measure("thin", "exponential");
    measure("again", "exponential:seed=2");
    measure("fat", "two-kinds:one-in=10");
    let worse = store.run(&["compare", "thin", "fat", "--json"]);
    let found: Value = serde_json::from_str(&worse.out).unwrap();
    assert_eq!((worse.code, &found["verdict"]), (Some(1), &"worse".into()), "{found}");
    assert_eq!(list(&found["rows"]).len(), 1);
    assert_eq!((&found["rows"][0]["row"], &found["rows"][0]["plan"]), (&"a".into(), &"fat".into()));
    let better = store.run(&["compare", "fat", "thin"]);
    assert!(better.out.ends_with("All together: better.\n"), "{better:?}");
    assert!(better.out.contains("one after the other"), "{better:?}");
    assert_ne!(store.run(&["compare", "thin", "again"]).code, Some(1));
    let refused = store.run(&["compare", "thin", "fat", "--margin", "3%"]);
    assert!(refused.code == Some(2) && refused.err.contains("leave out --figures"), "{refused:?}");
    let mixed = store.run(&["compare", "thin", "thin/cells/0001"]);
    assert!(mixed.code == Some(2) && mixed.err.contains("is a plan"), "{mixed:?}");
}
