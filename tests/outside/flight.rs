//! The flight recorder: `tardy record`, and `tardy run --record`. Tests that trace need the rights.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Child,
    thread::spawn,
};

use serde_json::Value;

use super::{
    export::read_trace,
    foreign_readers::has_modules,
    support::{Store, finish, is_root, list, piped, signal, skip, whole},
    tracing::can_trace,
};

/// A recorder that has said that it records, and has something to record: threads that begin and
/// end.
fn begun(store: &Store, arguments: &[&str]) -> Child {
    let mut recorder = piped(&mut store.tardy(arguments));
    let mut line = String::new();
    BufReader::new(recorder.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("Recording; the last "), "{line}");
    (0..50).for_each(|_| spawn(|| ()).join().unwrap());
    recorder
}

/// What of the time each CPU is known to have run something, ns: all of it, idle or not.
fn running(found: &Value) -> Vec<(String, i64, i64)> {
    let spans = list(&found["spans"]).iter().filter(|span| span["track"] == "running");
    let mut cpus: Vec<(String, i64, i64)> = Vec::new();
    for span in spans {
        let (cpu, from_ns) = (span["parent"].as_str().unwrap(), whole(&span["at"]));
        let ns = whole(&span["ns"]);
        match cpus.iter_mut().find(|(known, ..)| known == cpu) {
            Some((_, sum_ns, first_ns)) => {
                (*sum_ns, *first_ns) = (*sum_ns + ns, from_ns.min(*first_ns));
            }
            None => cpus.push((cpu.to_owned(), ns, from_ns)),
        }
    }
    cpus
}

#[test]
fn the_last_seconds_before_a_trigger_are_kept_and_no_more() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let at = |name: &str| store.path().join(name).to_str().unwrap().to_owned();
    let (file, touched) = (at("x.pftrace"), at("stalled"));
    let asked = ["record", "--last", "300ms", "-o", &file, "--when-touched", &touched];
    let recorder = begun(&store, &asked);
    fs::write(&touched, "").unwrap();
    let said = finish(recorder);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = read_trace(&file);
    let cpus = running(&found);
    assert!(!cpus.is_empty(), "{found}");
    for (cpu, sum_ns, first_ns) in cpus {
        let ends = list(&found["spans"]).iter().filter(|span| span["parent"] == *cpu);
        let until = ends.map(|span| whole(&span["at"]) + whole(&span["ns"])).max().unwrap();
        assert!((1..=300_000_000).contains(&(until - first_ns)), "{cpu}: {first_ns} to {until}");
        assert!(sum_ns <= until - first_ns, "{cpu}: a CPU runs one thing at a time");
    }
    assert_eq!(list(&found["clocks"]).len(), 1);
}

#[test]
fn a_run_that_stops_at_a_latency_keeps_what_led_to_it() {
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    if !has_modules() {
        return;
    }
    let store = Store::new();
    let asked = ["run", "timer", "--warmup", "300ms", "--duration", "20s", "--name", "r"];
    let stop = ["--stop-over", "1us", "--record", "200ms", "--quiet"];
    let said = store.run(&[&asked[..], &stop].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(store.show("r")["status"], "stopped_over");
    let file = store.path().join("r.pftrace").to_str().unwrap().to_owned();
    let said = store.run(&["export", "r", "--to", "perfetto", "-o", &file]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = read_trace(&file);
    let names: Vec<&str> =
        list(&found["spans"]).iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("tardy/cpu")), "{names:?}");
    // It is a file of the run like others: damage is told, and it goes with the run.
    let recording = store.runs().join("r/recording.jsonl.gz");
    let whole_file = fs::read(&recording).unwrap();
    fs::write(&recording, &whole_file[..whole_file.len() / 2]).unwrap();
    let said = store.run(&["export", "r", "--to", "chrome"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("recording.jsonl.gz"), "{said:?}");
    assert_eq!(store.run(&["rm", "r"]).code, Some(0));
    assert!(!store.runs().join("r").exists());
}

#[test]
fn a_signal_ends_the_recorder_with_a_file_and_a_place_that_is_none_before_it_begins() {
    let store = Store::new();
    let refused = store.run(&["record", "-o", "/nonexistent/x.json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("/nonexistent/x.json: cannot be written"), "{refused:?}");
    let refused = store.run(&["record", "-o", store.path().to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("this is a directory"), "{refused:?}");
    if !can_trace() {
        return skip("wake-ups cannot be traced here");
    }
    let file = store.path().join("x.json");
    let recorder = begun(&store, &["record", "-o", file.to_str().unwrap(), "--last", "1s"]);
    signal(&recorder, "USR1");
    let said = finish(recorder);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = fs::read(file).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    assert!(!list(&trace["traceEvents"]).is_empty());
}

#[test]
fn a_trace_that_somebody_else_runs_is_marked_and_stopped() {
    let tracefs = Path::new("/sys/kernel/tracing");
    if !is_root() || !tracefs.join("instances").exists() {
        return skip("no ftrace here, or no right to it");
    }
    let store = Store::new();
    let instance = tracefs.join(format!("instances/tardy-test-{}", std::process::id()));
    fs::create_dir(&instance).unwrap();
    let asked = ["run", "timer", "--warmup", "0s", "--duration", "20s", "--trace", "off"];
    let mark = format!("--mark-trace={}", instance.display());
    let said = store.run(&[&asked[..], &["--stop-over", "1us", &mark, "--name", "r"]].concat());
    let trace = fs::read_to_string(instance.join("trace")).unwrap();
    let is_on = fs::read_to_string(instance.join("tracing_on")).unwrap();
    fs::remove_dir(&instance).unwrap();
    assert_eq!(said.code, Some(1), "{said:?}");
    let marks =
        trace.lines().filter_map(|line| line.split_once("tardy: a latency over --stop-over: "));
    let marks: Vec<&str> = marks.map(|(_, latency)| latency).collect();
    assert!(matches!(marks[..], [latency] if latency.ends_with(" ns")), "in one line: {trace}");
    assert_eq!(trace.matches("tardy: a latency").count(), 1, "{trace}");
    assert_eq!(is_on.trim(), "0");
    let refused =
        store.run(&[&asked[..], &["--stop-over", "1us", "--mark-trace=/nowhere"]].concat());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("/nowhere/trace_marker"), "{refused:?}");
}

#[test]
fn a_recording_that_a_run_cannot_have_is_an_error_before_it_begins() {
    let store = Store::new();
    let said = store.run(&["run", "bandwidth", "--only", "null_call", "--record", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--record: the probe bandwidth"), "{said:?}");
}
