//! What a power cut may take: nothing of a run that has ended. That the disk is asked to hold it is
//! seen in the system calls, and that it is not asked while something is measured.

use std::{fs, process::Command};

use super::support::{SHORT, Store, finish, piped, skip};

/// System calls of a run into `r`, in order, each with the paths of its descriptors.
fn calls_of_a_run(store: &Store) -> Option<Vec<String>> {
    let traced = ["fsync", "fdatasync", "clock_nanosleep", "rename", "renameat", "renameat2"];
    let tardy = store.tardy(&[&SHORT[..], &["--duration", "300ms", "-o", "r", "--raw"]].concat());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "256", "-o", "calls", "-e"]);
    strace.arg(format!("trace={}", traced.join(",")));
    strace.arg(tardy.get_program()).args(tardy.get_args()).current_dir(store.path());
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|s| s.success())
    {
        skip("needs strace, and leave to trace");
        return None;
    }
    let said = finish(piped(&mut strace));
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    let calls = fs::read_to_string(store.path().join("calls")).unwrap();
    Some(calls.lines().map(str::to_owned).collect())
}

#[test]
fn the_disk_holds_a_run_when_it_says_complete_and_is_not_asked_before_the_end() {
    let store = Store::new();
    let Some(calls) = calls_of_a_run(&store) else { return };
    let last = |what: &str| calls.iter().rposition(|call| call.contains(what));
    let is_sync = |call: &&String| call.contains("fsync(") || call.contains("fdatasync(");
    let synced: Vec<&String> = calls.iter().filter(is_sync).collect();
    let run = store.path().join("r");
    let of = |name: &str| format!("{}>", run.join(name).display());
    for name in ["series.hlog", "machine.csv", "interrupts.csv", "load.log", "000001.parquet"] {
        let path = if name.ends_with("parquet") { format!("samples/{name}") } else { name.into() };
        let found = synced.iter().any(|call| call.contains(&of(&path)));
        assert!(found, "{path} is not synced: {synced:#?}");
    }
    let first = calls.iter().position(|call| is_sync(&call)).unwrap();
    let measured = last("clock_nanosleep(").unwrap();
    assert!(first > measured, "synced while it measured: {}", calls[first]);
    // The record takes its place when the disk holds it and all before, and then its name.
    let placed = last("\"run.json\"").unwrap();
    let is_record = |call: &String| is_sync(&call) && call.contains(".run.json.");
    let record = calls.iter().rposition(is_record).unwrap();
    let names = calls.iter().rposition(|call| is_sync(&call)).unwrap();
    assert!(record < placed && placed < names, "{:#?}", &calls[first..]);
}
