//! `tardy lab run` and `compare` without a guest: this machine as the kernel, and made-up runs.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};

use super::{
    killed::{Killing, killed_at_random},
    support::{
        Said, Store, contents, eventually, finish, list, page_data, read_record, signal, whole,
    },
};

const PLAN: &str = "name = \"mine\"\nprobe = \"fake\"\n[run]\nsamples = 1000\nunpaced = true\n\
    cpus = \"0\"\nwarmup = \"0s\"\n[[load]]\nname = \"first (of two)\"\nuse = []\n[[load]]\n\
    name = \"second\"\nuse = []\n";

/// Runs `tardy lab run` of this plan.
fn lab(store: &Store, plan: &str, arguments: &[&str]) -> Said {
    let file = store.path().join("plan.toml");
    fs::write(&file, plan).unwrap();
    store.run(&[&["lab", "run", file.to_str().unwrap()], arguments].concat())
}

const HERE: [&str; 4] = ["--kernels", "host", "--mode", "real"];

#[test]
fn this_machine_runs_a_plan_and_every_cell_is_a_run_like_any_other() {
    let store = Store::new();
    let said = lab(&store, PLAN, &[&HERE[..], &["--seeds", "2", "-o", "out"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    for wanted in ["mine: 1 kernel, 2 loads, 4 runs", "Times are those of the machine itself"] {
        assert!(said.out.contains(wanted), "{said:?}");
    }
    assert!(said.err.contains("4/4 second under host, phase 1: measured in"), "{said:?}");
    let cell = "out/first-of-two/host/1";
    assert_eq!(store.show(cell)["facts"]["lab"]["load"], "first (of two)");
    let compared = store.run(&["lab", "compare", "./out", "--json"]);
    let compared: Value = serde_json::from_str(&compared.out).unwrap();
    let rows = list(&compared["matrix"]["loads"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(whole(&rows[0]["cells"][0]["samples"]), 2_000);
    let again = lab(&store, PLAN, &[&HERE[..], &["-o", "out"]].concat());
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("out exists and is not an empty directory"), "{again:?}");
}

#[test]
fn a_cell_that_fails_is_reported_at_the_end_and_the_others_are_there() {
    let store = Store::new();
    // What clap takes and the measured machine has not.
    let plan = PLAN.replace("name = \"second\"\n", "name = \"second\"\nrun.cpus = \"999\"\n");
    let page = store.path().join("page.html");
    let arguments = ["-o", "out", "--quiet", "--report", page.to_str().unwrap()];
    let said = lab(&store, &plan, &[&HERE[..], &arguments].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.out.contains("failed\nsecond under host, phase 0:\n"), "{said:?}");
    assert!(said.out.contains("--cpus 999"), "in the words of tardy run: {said:?}");
    let row = said.out.lines().find(|line| line.starts_with("first (of two)"));
    assert!(row.is_some(), "{said:?}");
    let data = page_data(&fs::read_to_string(page).unwrap());
    assert_eq!(data["matrix"]["failed"][0]["load"], "second");
    assert_eq!(list(&data["matrix"]["loads"]).len(), 2, "what failed keeps its row");
}

#[test]
fn an_interrupt_ends_what_runs_and_keeps_what_is_done() {
    let store = Store::new();
    let plan = PLAN.replace(
        "name = \"second\"",
        "name = \"second\"\nrun.unpaced = false\nrun.interval = \"1s\"\nrun.samples = 3000",
    );
    fs::write(store.path().join("plan.toml"), plan).unwrap();
    let run = ["lab", "run", "plan.toml", "-o", "out"];
    let child = store.start(&[&run[..], &HERE].concat());
    let begun = store.path().join("out/second/host/0/run.json");
    eventually("the second cell", || begun.exists());
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("Ended early: 1 of the plan's runs"), "{said:?}");
    assert!(!begun.exists(), "half a cell does not count");
    assert_eq!(read_record(&store.path().join("out/first-of-two/host/0"))["status"], "complete");
    assert!(store.processes().is_empty());
}

/// Three cells, so long that most moments are within one.
const CELLS: &str = "name = \"mine\"\nprobe = \"fake\"\n[run]\nduration = \"200ms\"\n\
    cpus = \"0\"\nwarmup = \"0s\"\n[[load]]\nname = \"a\"\nuse = []\n[[load]]\n\
    name = \"b\"\nuse = []\n\
    [[load]]\nname = \"c\"\nuse = []\n";

#[test]
fn a_lab_that_is_killed_at_a_random_moment_keeps_what_is_done_and_leaves_no_run_behind() {
    let within = Duration::from_secs(2);
    killed_at_random(
        &Killing { name: "kill -9 of a lab", times: (3, 50), within },
        |_| {
            let store = Store::new();
            fs::write(store.path().join("plan.toml"), CELLS).unwrap();
            let run = ["lab", "run", "plan.toml", "-o", "out"];
            let child = store.start(&[&run[..], &HERE].concat());
            (store, child)
        },
        |_, store, _| {
            let kind = left_of_a_lab(&store);
            let again = lab(&store, CELLS, &[&HERE[..], &["-o", "again"]].concat());
            assert_eq!(again.code, Some(0), "{again:?}");
            kind
        },
    );
}

/// What is left of a lab of three cells: each is a whole run, or none and said to be none.
fn left_of_a_lab(store: &Store) -> String {
    // In order, as it may have changed settings of the machine.
    eventually("the run of its cell has ended, too", || store.processes().is_empty());
    if !store.path().join("out/lab.json").exists() {
        return "not begun".into();
    }
    let place = store.path().join("out");
    let runs = contents(&place).into_keys().filter(|path| path.ends_with("run.json"));
    let shown: Vec<Value> =
        runs.map(|path| store.show(path.parent().unwrap().to_str().unwrap())).collect();
    let kept = shown.iter().filter(|record| record["facts"]["lab"].is_object()).count();
    let compared = store.run(&["lab", "compare", "./out", "--json"]);
    if kept == 0 {
        assert_eq!(compared.code, Some(2), "{compared:?}");
        assert!(compared.err.contains("no run to compare"), "{compared:?}");
        return "no cell".into();
    }
    assert_eq!(compared.code, Some(0), "{compared:?}");
    let compared: Value = serde_json::from_str(&compared.out).unwrap();
    let loads = list(&compared["matrix"]["loads"]);
    let cells = loads.iter().flat_map(|load| list(&load["cells"]));
    let filled = cells.filter(|cell| cell["samples"].as_i64().is_some_and(|count| count > 0));
    assert_eq!(filled.count(), kept, "{compared}");
    // What was done when the lab was killed may not have been counted yet.
    let made = 3 - whole(&compared["undone"]);
    let kept = i64::try_from(kept).unwrap();
    assert!(made == kept || made + 1 == kept, "{made} of {kept}: {compared}");
    format!("{kept} of 3 cells")
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_fetched() {
    let store = Store::new();
    let refused = |plan: &str, arguments: &[&str], wanted: &str| {
        let said = lab(&store, plan, arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(wanted), "{wanted}: {said:?}");
    };
    let interval = PLAN.replace("samples", "interval = \"200\"\nsamples");
    refused(&interval, &[], "line 9: load \"first (of two)\": invalid value '200'");
    refused(&PLAN.replace("samples", "sample"), &[], "a similar argument exists: '--samples'");
    refused(&PLAN.replace("probe", "probes"), &[], "line 2: unknown key \"probes\"");
    refused(PLAN, &["--kernels", "host"], "host cannot be measured in --mode deterministic");
    refused(PLAN, &["--kernels", "nosuch"], "nosuch");
    refused(PLAN, &["--mode", "real", "--jobs", "2"], "--jobs 2: in --mode real");
    refused(PLAN, &["--report", "page.pdf"], "--report page.pdf: a report is an HTML page");
    let said = store.run(&["lab", "run", "nowhere.toml"]);
    assert!(said.code == Some(2) && said.err.contains("nowhere.toml"), "{said:?}");
}

/// Makes a run that looks as if a guest had made it, its latencies `times` as long.
fn made_up(store: &Store, kernel: &str, seed: u32, times: i64) {
    let place = store.path().join(format!("cells/{kernel}-{seed}"));
    if seed == 0 && !store.runs().join("r").exists() {
        store.made_up("2k");
    }
    super::support::copy(&store.runs().join("r"), &place);
    let mut record = read_record(&place);
    record["facts"]["lab"] = json!({
        "mode": "deterministic", "qemu": "7.2.0", "cpu_model": "qemu64", "shift": 1, "seed": seed,
        "wait_ns": i64::from(seed) * 1_000,
        "kernel": kernel, "kernel_hash": kernel, "initramfs_hash": "", "sample_hash": null,
        "load": "idle",
    });
    record["facts"]["cpus_online"] = "0".into();
    record["caveats"] = json!([]);
    record["validity"] = "valid".into();
    let series = &mut record["series"][0];
    for name in ["50", "99", "99.9"] {
        series["percentiles"][name] = (whole(&series["percentiles"][name]) * times).into();
    }
    series["max"] = (whole(&series["max"]) * times).into();
    fs::write(place.join("run.json"), record.to_string()).unwrap();
}

#[test]
fn a_cell_whose_lab_was_killed_meanwhile_is_left_out_and_a_run_of_somebody_else_is_not() {
    let store = Store::new();
    made_up(&store, "rt", 0, 1);
    super::support::copy(&store.runs().join("r"), &store.path().join("cells/rt-1"));
    let compare = || store.run(&["lab", "compare", "./cells", "--json"]);
    let said = compare();
    assert!(said.code == Some(2) && said.err.contains("not measured by the lab"), "{said:?}");
    let record = json!({
        "lab_version": 1, "plan": "mine", "kernels": [], "loads": [], "failed": [], "undone": 1,
    });
    fs::write(store.path().join("cells/lab.json"), record.to_string()).unwrap();
    let said = compare();
    assert_eq!(said.code, Some(0), "{said:?}");
    let compared: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((whole(&compared["undone"]), &compared["title"]), (1, &"mine".into()));
    assert_eq!(whole(&compared["matrix"]["loads"][0]["cells"][0]["samples"]), 2_000);
    let report = store.run(&["export", "./cells", "--to", "tap", "--gate", "max<1us"]);
    assert_eq!(report.code, Some(4), "a cell is missing: {report:?}");
    let points: Vec<&str> = report.out.lines().filter(|line| line.contains("ok ")).collect();
    let expected = [
        "ok 1 - mine.idle.rt: the run is valid",
        "not ok 2 - mine.idle.rt.cpu0: max<1us",
        "not ok 3 - mine: the run is valid",
    ];
    assert_eq!(points, expected);
    assert!(report.out.contains("no run: 1 cell not measured: the lab ended early"), "{report:?}");
}

#[test]
fn five_phases_make_a_verdict_and_four_do_not() {
    let store = Store::new();
    for seed in 0..4 {
        made_up(&store, "rt", seed, 1);
        made_up(&store, "standard", seed, 20);
    }
    let compare = |more: &[&str]| store.run(&[&["lab", "compare", "./cells"], more].concat());
    assert!(compare(&[]).out.contains("standard against rt: not judged: 4 of the 5 phase offsets"));
    made_up(&store, "rt", 4, 1);
    made_up(&store, "standard", 4, 20);
    let said = compare(&["-o", "page.html"]);
    assert!(said.out.contains("standard against rt: p50 at least 20.0 times higher"), "{said:?}");
    assert!(said.out.contains("Times are executed instructions"), "{said:?}");
    let page = page_data(&fs::read_to_string(store.path().join("page.html")).unwrap());
    let cell = &page["matrix"]["loads"][0]["cells"][0];
    assert_eq!(whole(&cell["samples"]), 10_000);
    assert_eq!(list(&cell["curve"]).last().unwrap()[0], 100.0);
    assert_eq!(page["runs"], json!([]));
}

#[test]
fn compare_refuses_what_is_no_matrix_and_changes_nothing() {
    let store = Store::new();
    made_up(&store, "rt", 0, 1);
    let before = contents(store.path());
    let refused = |place: &str, wanted: &str| {
        let said = store.run(&["lab", "compare", place]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(wanted), "{wanted}: {said:?}");
    };
    refused("r", "was not measured by the lab");
    refused("nothing", "nothing");
    fs::create_dir(store.path().join("empty")).unwrap();
    refused("./empty", "no runs in ./empty; `tardy lab run` makes them");
    assert_eq!(contents(store.path()), before);
    fs::write(store.path().join("cells/lab.json"), "{").unwrap();
    refused("./cells", "lab.json is damaged");
    fs::remove_file(store.path().join("cells/lab.json")).unwrap();
    fs::write(store.path().join(Path::new("cells/rt-0/run.json")), "{").unwrap();
    refused("./cells", "run.json is damaged");
}

#[test]
fn a_search_among_kernels_refuses_what_it_could_not_decide_before_anything_boots() {
    let store = Store::new();
    let file = store.path().join("plan.toml");
    fs::write(&file, PLAN).unwrap();
    let images = store.path().join("images");
    fs::create_dir(&images).unwrap();
    fs::write(images.join("config-6.1"), "").unwrap();
    let plan = file.to_str().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--good", "host", "--bad", "rt"], "--good host: only a virtual machine's"),
        (&["--good", "rt", "--bad", "rt"], "--good and --bad are the same kernel"),
        (&["--good", "standard", "--bad", "rt", "--load", "no"], "it has \"first (of two)\""),
        (&["--good", "standard", "--bad", "rt", "--seeds", "2"], "with fewer than"),
        (&["--good", "standard", "--bad", "rt", "--figure", "p98"], "known are p50, p99"),
        (&["--good", "standard", "--bad", "rt", "--between", "images"], "no kernel there"),
    ];
    for (arguments, wanted) in cases {
        let said = store.run(&[&["lab", "bisect", plan, "-o", "out"], arguments].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(wanted), "{wanted}: {said:?}");
        assert!(!store.path().join("out").exists(), "{arguments:?}");
    }
}
