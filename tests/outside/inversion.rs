//! The inversion probe: without inheritance a wait has the hog's CPU time in it, with it it has
//! not; and what cannot run is refused.

use std::fs;

use serde_json::Value;

use super::{
    schema::{faults, schema},
    support::{Store, is_counted, list, skip, whole, with_time},
};
use tardy::sys::{cpus::Cpus, sched};

const RUN: [&str; 6] = ["run", "inversion", "--warmup", "100ms", "--name", "r"];

/// Whether a thread of this process may have the priorities of the probe.
fn may_have_priorities() -> bool {
    let set = || sched::set_this_thread(sched::Policy::Fifo, 90).is_ok();
    std::thread::spawn(set).join().unwrap()
}

/// The median of the repeats of a figure, us.
fn median(record: &Value, name: &str) -> f64 {
    let figure = list(&record["figures"]).iter().find(|figure| figure["name"] == name).unwrap();
    let mut values: Vec<f64> =
        list(&figure["values"]).iter().map(|value| value.as_f64().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A run with a hog of 3 ms and a hold of 300 us, until it has waits of both kinds; with the CPU
/// and its record.
fn measured() -> (Store, u32, Value) {
    let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
    with_time(|duration| {
        let store = Store::new();
        let asked = ["--cpus", &cpu.to_string(), "--hold", "300us", "--hog", "3ms"];
        let said = store.run(&[&RUN[..], &asked, &["--duration", duration, "--raw"]].concat());
        assert!(matches!(said.code, Some(0)), "{said:?}");
        let record = store.show("r");
        let has_some = list(&record["series"]).iter().all(|own| whole(&own["count"]) > 0);
        has_some.then_some((store, cpu, record))
    })
}

/// The hog has next to nothing of a wait with inheritance.
fn assert_kept_out(cpu: u32, record: &Value) {
    let hog = median(record, &format!("cpu{cpu}-inherit/hog"));
    assert!(hog < 0.1 * 3_000.0, "the hog had {hog} us");
}

#[test]
fn waits_without_inheritance_have_the_hog_in_them_and_those_with_it_have_not() {
    if !may_have_priorities() {
        return skip("it needs the right to SCHED_FIFO");
    }
    let (store, cpu, record) = measured();
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    for (kind, hog_us) in [("inherit", 0.0), ("none", 3_000.0)] {
        let name = format!("cpu{cpu}-{kind}");
        let series = list(&record["series"]).iter().find(|own| own["name"] == *name).unwrap();
        let of = |share| median(&record, &format!("{name}/{share}"));
        // CPU time that a thread had is time that passed for the one that waited; a thread works
        // until it has had all, and the last turn of its loop comes on top.
        let (low, hog) = (of("low"), of("hog"));
        assert!(low >= 0.9 * 300.0, "{name}: the low thread had {low} us of 300 us");
        assert!(hog >= 0.99 * hog_us, "{name}: the hog had {hog} us of {hog_us} us");
        let p50 = whole(&series["percentiles"]["50"]) as f64;
        assert!(p50 >= (0.9 * 300.0 + 0.99 * hog_us) * 1e3, "{series}");
    }
    if is_counted() {
        assert_kept_out(cpu, &record);
    }
    // What the threads ran as is in the record: priorities in order, on one CPU.
    let threads = list(&record["setup"]["found"]["threads"]);
    let of = |name: String| threads.iter().find(|thread| thread["series"] == *name).unwrap();
    for (name, priority) in [("inherit", 90), ("hog", 89), ("low", 88)] {
        let thread = of(format!("cpu{cpu}-{name}"));
        assert_eq!((&thread["policy"], whole(&thread["priority"])), (&"fifo".into(), priority));
        assert_eq!(thread["cpus"], cpu.to_string(), "{thread}");
    }
    let shown = store.run(&["show", "r"]).out;
    assert!(shown.contains("with priority inheritance, "), "{shown}");
}

#[test]
#[ignore = "live: twin waits_without_inheritance_have_the_hog_in_them_and_those_with_it_have_not"]
fn a_hog_has_next_to_nothing_of_a_wait_with_inheritance() {
    if !may_have_priorities() {
        return skip("it needs the right to SCHED_FIFO");
    }
    let (_, cpu, record) = measured();
    assert_kept_out(cpu, &record);
}

#[test]
fn what_is_no_inversion_or_cannot_run_is_refused_with_a_remedy() {
    let store = Store::new();
    for (arguments, remedy) in [
        (&["inversion", "--policy", "other"][..], "use --policy fifo"),
        (&["inversion", "--priority", "2"], "use 3 or more"),
        (&["inversion", "--hog", "2s"], "from 10us to 100ms"),
        (&["inversion", "--interval", "1ms"], "leave it out, or measure timer"),
        (&["timer", "--hold", "1ms"], "leave it out, or measure inversion"),
        (&["inversion", "--trace", "peaks"], "--trace peaks: the probe inversion waits for"),
    ] {
        let said = store.run(&[&["run"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.err.replace('\n', " ").contains(remedy), "{arguments:?}: {}", said.err);
    }
    let poor = Store::unprivileged();
    let said = poor.run(&["run", "inversion", "--duration", "1s"]);
    if said.code == Some(0) {
        return skip("this user has the right to SCHED_FIFO");
    }
    assert!(said.err.contains("inversion needs three real-time priorities"), "{}", said.err);
    assert!(said.err.contains("CAP_SYS_NICE"), "{}", said.err);
    assert_eq!(fs::read_dir(poor.runs()).map_or(0, Iterator::count), 0);
}
