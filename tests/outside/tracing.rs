//! Stages, peaks and their blame, as a run leaves them; and what a user sees where they cannot be
//! had. Tests that trace need the rights to do so.

use std::fs;

use serde_json::Value;
use tardy::run::peaks::{Blame, Peak};

use super::{
    schema::{faults, schema},
    support::{
        SHORT, Store, codes, eventually, finish, is_root, list, piped, signal, skip, whole,
        with_little_time,
    },
};

const RUN: [&str; 4] = ["run", "timer", "--warmup", "200ms"];

/// Whether wake-ups can be traced here; the caller skips where not.
pub(crate) fn can_trace() -> bool {
    tardy::kernel::can_trace().is_ok()
}

fn traced(store: &Store, mode: &str, more: &[&str]) -> Value {
    let said = store.run(&[&RUN[..], &["--trace", mode, "--name", "r"], more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    store.show("r")
}

/// A whole series and those of its stages.
fn with_stages(record: &Value) -> Vec<(&Value, Vec<&Value>)> {
    let all = list(&record["series"]);
    let name = |series: &Value| series["name"].as_str().unwrap().to_owned();
    let whole = all.iter().filter(|series| !name(series).contains('/'));
    let stages = |total: &Value| {
        let prefix = name(total) + "/";
        all.iter().filter(|series| name(series).starts_with(&prefix)).collect::<Vec<_>>()
    };
    whole.map(|total| (total, stages(total))).collect()
}

#[test]
fn stages_are_counted_with_their_wakeups_and_sum_to_them() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    for wake in ["nanosleep", "timerfd", "relative", "epoll", "pselect", "signal", "io-uring"] {
        let store = Store::new();
        let record = traced(&store, "stages", &["--duration", "1s", "--wake", wake]);
        assert_eq!(record["trace"]["found"], "stages", "{record}");
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        let mut unmatched = 0;
        for (total, stages) in with_stages(&record) {
            assert!(stages.len() >= 4, "{wake}: {record}");
            let counts: Vec<i64> = stages.iter().map(|stage| whole(&stage["count"])).collect();
            assert!(counts.iter().all(|count| *count == counts[0]), "{wake}: {counts:?}");
            let missing = whole(&total["count"]) - counts[0];
            unmatched += missing;
            let sum: i64 = stages.iter().map(|stage| whole(&stage["mean"])).sum();
            // Means are rounded, and the total's has wake-ups that the stages' have not.
            let off = 4 + missing * whole(&total["max"]) / counts[0].max(1);
            let mean = whole(&total["mean"]);
            assert!((sum - mean).abs() <= off, "{wake}: {sum} of {mean} +- {off}: {record}");
        }
        assert_eq!(whole(&record["trace"]["unmatched"]), unmatched, "{wake}: {record}");
        assert!(!store.runs().join("r/peaks.jsonl").exists());
        let text = store.run(&["show", "r"]).out;
        assert!(text.contains("by stage") && text.contains("dispatch"), "{text}");
    }
}

#[test]
fn the_parts_of_a_round_trip_sum_to_it_over_every_kind_of_way() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    for transport in ["tcp", "unix-dgram", "futex"] {
        let store = Store::new();
        let run = ["run", "pingpong", "--transport", transport, "--warmup", "50ms"];
        let asked = ["--duration", "300ms", "--trace", "stages", "--name", "r"];
        let said = store.run(&[&run[..], &asked].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        let both = with_stages(&record);
        let [(total, parts)] = both.as_slice() else { panic!("{record}") };
        let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
        let ways = ["there", "back"].into_iter();
        let wanted: Vec<String> = ways
            .flat_map(|way| ["send", "dispatch", "receive"].map(|part| format!("rtt/{way}-{part}")))
            .collect();
        assert_eq!(names, wanted, "{record}");
        let counts: Vec<i64> = parts.iter().map(|part| whole(&part["count"])).collect();
        let missing = whole(&total["count"]) - counts[0];
        assert!(counts[0] > 0 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        assert_eq!(whole(&record["trace"]["unmatched"]), missing, "{record}");
        let sum: i64 = parts.iter().map(|part| whole(&part["mean"])).sum();
        // Means are rounded, and the total's has round trips that the parts' have not.
        let off = 6 + missing * whole(&total["max"]) / counts[0];
        let mean = whole(&total["mean"]);
        assert!((sum - mean).abs() <= off, "{transport}: {sum} of {mean} +- {off}: {record}");
        let text = store.run(&["show", "r"]).out;
        assert!(text.contains("there-dispatch"), "{text}");
    }
}

#[test]
fn messages_are_traced_only_where_that_is_asked_for() {
    let store = Store::new();
    let run = ["run", "pingpong", "--transport", "pipe", "--warmup", "0s", "--duration", "200ms"];
    store.run(&[&run[..], &["--name", "r"]].concat());
    let record = store.show("r");
    assert_eq!(record["trace"]["found"], "off", "{record}");
    assert!(record["trace"]["why_not"].as_str().unwrap().contains("--trace stages"), "{record}");
    let said = store.run(&["why", "r"]);
    assert!(said.code == Some(2) && said.err.contains("round trips of r"), "{said:?}");
    assert!(said.err.contains("--trace peaks"), "{said:?}");
    let other = ["run", "pingpong", "--policy", "other", "--duration", "200ms"];
    let spins = ["--trace", "stages", "--transport", "shm-spin"];
    let said = store.run(&[&other[..], &spins].concat());
    let text = "no wake-ups that can be traced";
    assert!(said.code == Some(2) && said.err.contains(text), "{said:?}");
}

#[test]
fn a_run_with_peaks_leaves_the_worst_whole_and_the_sums_of_all_late_ones() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    // After a warm-up that was worse than a short run, the worst wake-up need not be kept.
    let (store, record, peaks) = with_little_time(|duration| {
        let store = Store::new();
        let load = ["--load", "hackbench:groups=1", "--duration", duration, "--peaks", "20"];
        let record = traced(&store, "peaks", &load);
        let lines = fs::read_to_string(store.runs().join("r/peaks.jsonl")).unwrap();
        let read = |line| serde_json::from_str::<Peak>(line).unwrap();
        let peaks: Vec<Peak> = lines.lines().map(read).collect();
        let worst = peaks.iter().map(|peak| peak.latency_ns).max();
        let largest = with_stages(&record).iter().map(|(total, _)| whole(&total["max"])).max();
        (worst == largest).then_some((store, record, peaks))
    });
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    let trace = &record["trace"];
    assert_eq!(trace["found"], "peaks", "{record}");
    assert!(whole(&trace["blamed"]) > 0 && whole(&trace["threshold_ns"]) > 0, "{record}");
    for peak in &peaks {
        let parts: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(i64::try_from(parts).unwrap(), peak.latency_ns, "{peak:?}");
    }
    let sums = fs::read_to_string(store.runs().join("r/blame.json")).unwrap();
    let blame: Blame = serde_json::from_str(&sums).unwrap();
    assert_eq!(i64::try_from(blame.blamed).unwrap(), whole(&trace["blamed"]));
}

#[test]
fn an_untraced_run_has_neither_stages_nor_peaks() {
    let store = Store::new();
    let directory = store.measure("r", &["--duration", "200ms"]);
    let record = store.show("r");
    assert_eq!(
        (&record["trace"]["asked"], &record["trace"]["found"]),
        (&"off".into(), &"off".into())
    );
    assert!(with_stages(&record).iter().all(|(_, stages)| stages.is_empty()), "{record}");
    for name in ["peaks.jsonl", "blame.json"] {
        assert!(!directory.join(name).exists(), "{name}");
    }
    assert!(!codes(&record).contains(&"untraced"), "nobody wanted it: {record}");
}

#[test]
fn without_rights_auto_goes_on_untraced_and_peaks_is_an_error_with_its_remedy() {
    let store = Store::unprivileged();
    if !is_root() && can_trace() {
        return skip("this user may trace");
    }
    let length = ["--duration", "200ms", "--name", "r"];
    let said = finish(piped(&mut store.tardy(&[&RUN[..], &length].concat())));
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert!(codes(&record).contains(&"untraced"), "{record}");
    assert!(record["trace"]["why_not"].as_str().unwrap().contains("CAP_BPF"), "{record}");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    for mode in ["stages", "peaks"] {
        let said = store.run(&[&RUN[..], &["--trace", mode, "--name", "other"]].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        for word in [&format!("--trace {mode} is not available"), "CAP_BPF", "root"] {
            assert!(said.err.contains(word), "{word}: {said:?}");
        }
        assert!(!store.runs().join("other").exists(), "nothing is left behind");
    }
}

/// The programs in the kernel that a process holds, by number.
fn programs_of(pid: u32) -> Vec<i64> {
    let held = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let number = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    held.filter_map(number).collect()
}

/// All that are in the kernel.
fn all_programs() -> Vec<i64> {
    libbpf_rs::query::ProgInfoIter::default().map(|program| program.id.into()).collect()
}

#[test]
fn kill_9_leaves_no_program_in_the_kernel() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    let store = Store::new();
    let length = ["--duration", "1h", "--trace", "stages", "--name", "r"];
    let child = store.start(&[&RUN[..], &length].concat());
    store.wait_measuring("r");
    let held = programs_of(child.id());
    assert!(!held.is_empty(), "it traces");
    // Programs of others that go meanwhile cut the list short.
    eventually("the kernel lists them", || {
        let all = all_programs();
        held.iter().all(|number| all.contains(number))
    });
    signal(&child, "KILL");
    finish(child);
    eventually("no program", || {
        let all = all_programs();
        !held.iter().any(|number| all.contains(number))
    });
}

#[test]
fn what_tracing_costs_is_measured_before_the_run_and_is_no_part_of_it() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    let store = Store::new();
    let record = traced(&store, "stages", &["--samples", "200", "--cpus", "0", "--calibrate"]);
    let cost = &record["trace"]["cost"];
    assert_eq!(whole(&cost["pairs"]), 4, "{record}");
    assert!(whole(&cost["median_without_ns"]) > 0 && whole(&cost["median_with_ns"]) > 0);
    assert_eq!(whole(&record["series"][0]["count"]), 200, "{record}");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    assert!(store.run(&["show", "r"]).out.contains("tracing: adds"));
    // Later runs of the same kind know it, and say from where.
    let measured = |name: &str, mode: &str| {
        let asked = ["--trace", mode, "--samples", "20", "--cpus", "0", "--name", name];
        let said = store.run(&[&RUN[..], &asked].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        (store.show(name), said.out.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (later, text) = measured("later", "stages");
    let known = &later["trace"]["known_cost"];
    assert_eq!((&known["run"], &known["cost"]), (&record["id"], cost), "{later}");
    assert_eq!(faults(&schema(), &later), [""; 0], "{later}");
    assert!(text.contains("as the run r found here (no load started)"), "{text}");
    let (other, text) = measured("other", "peaks");
    assert_eq!(other["trace"].get("known_cost"), None, "it was of stages: {other}");
    assert!(text.contains("not measured here (use --calibrate)"), "{text}");
}

#[test]
fn a_probe_without_wakeups_is_not_traced_and_nobody_is_blamed_for_that() {
    let store = Store::new();
    store.made_up("1000");
    let record = store.show("r");
    assert_eq!(record["trace"]["found"], "off", "{record}");
    assert!(!codes(&record).contains(&"untraced"), "{record}");
    let said = store.run(&["run", "fake", "--trace", "peaks", "--samples", "10"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(SHORT[4..], ["--trace", "off"], "other tests measure untraced");
}
