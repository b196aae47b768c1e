//! Programs that log their own truth (`tests/programs`), and what `attach` says of them: both have
//! to agree within 2 % or 3 cycles. Cycles within 10 us of the deadline count for neither side.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{
    attach::{attach, can_attach, row},
    support::{Store, is_root, list, skip, whole},
};

const DEADLINE_NS: i64 = 1_000_000;
const NEAR_NS: i64 = 10_000;

/// How long the cycles took by the program's log, ns.
struct Truth(Vec<i64>);

/// What the columns of a log are: when an item was due, and when the thread went back to its wait.
#[derive(Clone, Copy)]
struct Columns {
    due: usize,
    back: usize,
}

impl Truth {
    fn rows(log: &Path, columns: Columns) -> Vec<[i64; 2]> {
        let text = fs::read_to_string(log).unwrap();
        let row = |line: &str| {
            let words: Vec<i64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            [words[columns.due], words[columns.back]]
        };
        text.lines().map(row).collect()
    }

    /// Each item is a cycle.
    fn of_items(log: &Path, columns: Columns) -> Self {
        Self(Self::rows(log, columns).iter().map(|[due, back]| back - due).collect())
    }

    /// A stage that finds the next item at its wait continues with it: its cycle lasts from the
    /// item that woke it to the last of these.
    fn of_stage(log: &Path, columns: Columns) -> Self {
        let mut cycles: Vec<[i64; 2]> = Vec::new();
        for [due, back] in Self::rows(log, columns) {
            match cycles.last_mut() {
                Some([_, last]) if due <= *last => *last = back,
                _ => cycles.push([due, back]),
            }
        }
        Self(cycles.iter().map(|[due, back]| back - due).collect())
    }

    /// Items over this, at least and at most.
    fn over(&self, deadline_ns: i64) -> (i64, i64) {
        let over = |ns: i64| self.0.iter().filter(|took| **took > ns).count() as i64;
        (over(deadline_ns + NEAR_NS), over(deadline_ns - NEAR_NS))
    }
}

/// A program, in what mode, with which deadline, and what its log says.
struct Asked {
    name: &'static str,
    mode: &'static str,
    deadline: &'static str,
    truth: fn(&Path, Columns) -> Truth,
    columns: Columns,
}

/// A run of a program: its log, the record, and what `why` says of it.
fn run(asked: &Asked) -> (Truth, Value, Value) {
    run_with(asked, &[])
}

/// The same with more flags.
fn run_with(asked: &Asked, more: &[&str]) -> (Truth, Value, Value) {
    let Asked { name, mode, deadline, .. } = asked;
    let directory = tempfile::tempdir().unwrap();
    let [program, log] = [*name, "log"].map(|file| directory.path().join(file));
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    assert!(compiler.status().unwrap().success());
    let store = Store::new();
    let [program, path] = [&program, &log].map(|path| path.to_str().unwrap());
    let arguments = ["--deadline", deadline, "--", program, mode, "5", path];
    let (said, record) = attach(&store, &[more, &arguments].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let why = serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap();
    ((asked.truth)(Path::new(path), asked.columns), record, why)
}

/// Late cycles of a thread.
fn late(record: &Value, name: &str) -> i64 {
    whole(&row(record, name)["over"]["cycles"])
}

fn agree(said: i64, (least, most): (i64, i64), record: &Value) {
    let off = (most / 50).max(3);
    assert!((least - off..=most + off).contains(&said), "{said}: {least} to {most}: {record}");
}

/// Causes that a machine has whatever the program does: one that others use has them at any time.
const OF_THE_MACHINE: [&str; 8] = [
    "nonpreemptible",
    "irqs_off",
    "hardirq",
    "softirq",
    "host",
    "idle_exit",
    "tracing",
    "unexplained",
];

/// The name of the largest cause of late cycles, but for those.
fn first_cause(why: &Value) -> String {
    let bands = list(&why["bands"]);
    let late = bands.iter().find(|band| band["name"] == "late").unwrap_or_else(|| panic!("{why}"));
    let is_of_program = |cause: &&Value| {
        cause["cause"].as_str().is_some_and(|cause| !OF_THE_MACHINE.contains(&cause))
    };
    let first = list(&late["causes"]).iter().find(is_of_program);
    first.unwrap_or_else(|| panic!("{late}"))["name"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "live: twin samples_in_late_cycles_are_rows_of_their_own_besides"]
fn page_faults_of_late_cycles_are_sampled_by_function() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    let columns = Columns { due: 1, back: 2 };
    let deadline = "300us";
    let asked =
        Asked { name: "control", mode: "malloc", deadline, truth: Truth::of_items, columns };
    let (.., why) = run_with(&asked, &["--profile=997"]);
    let of_name = list(&why["own_time"]).iter().find(|own| own["series"] == "control");
    let places = of_name.map_or(&[][..], |own| list(&own["places"]));
    let first = places.first().and_then(|place| place["name"].as_str()).unwrap_or_default();
    assert_eq!(first, "page faults of control", "{why}");
}

#[test]
#[ignore = "live: twin a_holder_that_a_lower_task_keeps_from_the_cpu_is_a_priority_inversion"]
fn a_control_loop_and_tardy_agree_on_late_cycles_and_on_an_inversion() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    for (mode, leading) in [
        ("none", None),
        ("lock", Some("lock 0x")),
        ("inversion", Some("priority inversion: lock 0x")),
        ("pi", None),
        ("malloc", None),
        ("hog", Some("vision")),
        ("printf", None),
        ("file", None),
        ("sync", None),
    ] {
        let (truth, record, why) = run(&Asked {
            name: "control",
            mode,
            deadline: "control=1ms",
            truth: Truth::of_items,
            columns: Columns { due: 1, back: 2 },
        });
        agree(late(&record, "control"), truth.over(DEADLINE_NS), &record);
        if let Some(leading) = leading {
            let cause = first_cause(&why);
            assert!(cause.starts_with(leading), "{mode}: {cause}");
        }
        let verdict = why["verdict"].as_str().unwrap();
        assert!(mode != "malloc" || verdict.contains("page faults"), "{verdict}");
    }
}

#[test]
#[ignore = "live: twin a_stage_is_judged_from_its_wake_up_to_its_next_wait"]
fn a_pipeline_and_tardy_agree_on_the_stage_that_is_slow() {
    if !can_attach() {
        return;
    }
    for mode in ["none", "slow", "lock"] {
        let (truth, record, _) = run(&Asked {
            name: "pipeline",
            mode,
            deadline: "5ms",
            truth: Truth::of_stage,
            columns: Columns { due: 3, back: 7 },
        });
        agree(late(&record, "plan"), truth.over(5 * DEADLINE_NS), &record);
        assert_eq!(row(&record, "plan")["cycle_begin"], "wake_up", "{record}");
    }
}

#[test]
#[ignore = "live: twin a_handler_that_keeps_a_due_expiry_waiting_makes_that_cycle_late"]
fn an_event_loop_and_tardy_agree_on_late_ticks() {
    if !can_attach() {
        return;
    }
    for mode in ["none", "handler"] {
        let (truth, record, _) = run(&Asked {
            name: "loop",
            mode,
            deadline: "1ms",
            truth: Truth::of_items,
            columns: Columns { due: 1, back: 2 },
        });
        agree(late(&record, "loop"), truth.over(DEADLINE_NS), &record);
    }
}
