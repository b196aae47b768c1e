//! Threads of others of which every cycle is late: explaining that must not make it worse, and must
//! come to an end.

use serde_json::Value;

use super::{
    attach::{Workers, attach, can_attach, row, work},
    attach_response::sleep_until_next,
    support::{LONG, Store, eventually, list, skip, whole},
};

const US: i64 = 1_000;

/// One period of a millisecond with work in it.
fn cycle() {
    sleep_until_next(1000 * US, 0);
    work(40 * US);
}

fn why(store: &Store) -> Value {
    serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap()
}

#[test]
#[ignore = "live: twin replayed::each_cycle_that_is_late_is_explained_or_counted_as_passed_over"]
fn a_program_all_of_whose_cycles_are_late_is_not_slowed_by_explaining_them() {
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    let _workers = Workers::start("late-always", 1, cycle);
    let store = Store::new();
    let asked = ["--comm", "late-always", "--duration", "3s", "--warmup", "0s"];
    let explained = ["--deadline", "20us", "--peak-over", "1us"];
    let (_, record) = attach(&store, &[&asked[..], &explained].concat());
    let over = whole(&row(&record, "late-always")["over"]["cycles"]);
    assert!(over > 0, "{record}");
    // What was not explained is counted beside what was.
    let why = why(&store);
    let [analysed, passed_over] =
        ["responses_analysed", "responses_passed_over"].map(|name| whole(&why[name]));
    assert!(analysed > 0, "{why}");
    assert!(analysed + passed_over <= over + 2, "{analysed} + {passed_over} of {over}");
    assert!(analysed + passed_over >= over / 10 * 9, "{analysed} + {passed_over} of {over}");
    // A tenth of a CPU for blaming, and what looking and writing take besides; all that there was
    // before there was a bound.
    let helpers = list(&record["caveats"]).iter().filter(|one| one["code"] == "helpers_beside");
    for helper in helpers.flat_map(|one| list(&one["values"]["helpers"])) {
        let ns = whole(&helper["cpu_ns"]);
        assert!(ns < whole(&record["duration_ns"]) / 3, "{helper}: {record}");
    }
}

#[test]
fn a_signal_ends_a_run_that_has_too_much_to_explain_and_keeps_what_is_explained() {
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    let workers = Workers::start("late-many", 4, cycle);
    let store = Store::new();
    let asked = ["--comm", "late-many", "--deadline", "20us"];
    // A few of them whole: what is to be read back must not take minutes on a busy machine.
    let length = ["run", "attach", "--name", "r", "--duration", LONG, "--warmup", "0s"];
    let length = [&length[..], &["--peaks", "5"]].concat();
    let child = store.start(&[&length[..], &asked].concat());
    // On a busy machine it takes a while until the first one is explained.
    let sums = store.runs().join("r/blame.json");
    eventually("one that is explained", || {
        std::fs::read_to_string(&sums).is_ok_and(|text| text.contains("\"responses\""))
    });
    let (said, record) = store.interrupt("r", child);
    assert_eq!(record["status"], "interrupted", "{said:?}");
    drop(workers);
    let why = why(&store);
    assert!(whole(&why["responses_analysed"]) > 0, "{why}");
    assert!(whole(&why["responses_passed_over"]) > 0, "{why}");
    let text = store.run(&["why", "r"]).out;
    assert!(text.contains("were analyzed, the latest"), "{text}");
}
