//! What a power cut may take: nothing of a run that has ended. That the disk is asked to hold it is
//! seen in the system calls, and that it is not asked while something is measured.

use super::{
    strace::{can_trace, traced},
    support::{SHORT, Store},
};

/// System calls of a run into `r`, in order, each with the paths of its descriptors.
fn calls_of_a_run(store: &Store) -> Vec<String> {
    let calls = "trace=fsync,fdatasync,clock_nanosleep,rename,renameat,renameat2";
    let run = [&SHORT[..], &["--duration", "300ms", "-o", "r", "--raw"]].concat();
    let traced = traced(store, &["-e", calls], &run);
    assert!(matches!(traced.said.code, Some(0 | 4)), "{:?}", traced.said);
    traced.calls
}

#[test]
fn the_disk_holds_a_run_when_it_says_complete_and_is_not_asked_before_the_end() {
    if !can_trace() {
        return;
    }
    let store = Store::new();
    let calls = calls_of_a_run(&store);
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
