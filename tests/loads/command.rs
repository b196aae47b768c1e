//! Commands as loads: their CPU time proves them, and they end with all that they started.

use std::{fs, path::Path};

use rustix::process::Pid;
use tardy::loads::{LoadEnd, LoadFault, RunningLoad, command};
use tardy_hot::clock::now_ns;

use super::{PATIENCE, TARDY, eventually, group, log_file};

fn start(text: &str) -> RunningLoad {
    let spec = command::spec(text).unwrap();
    let load = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap();
    load.wait_ready(PATIENCE).unwrap();
    load
}

fn measure(load: RunningLoad) -> LoadEnd {
    let before = load.latest().unwrap();
    // It works a little now and then, and on a busy machine not in each report's time.
    eventually("a report of work", || load.latest().unwrap().operations > before.operations);
    let end_ns = load.latest().unwrap().monotonic_ns;
    load.stop(before.monotonic_ns, end_ns)
}

/// Waits until reports show CPU time after now, and returns that moment.
fn wait_for_cpu_time(load: &RunningLoad) -> i64 {
    let begun = now_ns();
    eventually("CPU time", || {
        let now = load.latest().unwrap();
        now.monotonic_ns > begun && now.operations > load.operations_at(begun).unwrap() + 10_000
    });
    begun
}

#[test]
fn the_cpu_time_of_all_processes_proves_a_command() {
    let load = start("for i in 1 2; do sh -c 'while :; do :; done' & done; wait");
    let leader = load.process().unwrap();
    eventually("three processes", || below(leader).len() >= 3);
    let begun = wait_for_cpu_time(&load);
    let end = load.stop(begun, now_ns());
    let proof = end.proof.unwrap();
    assert_eq!((end.ended.as_str(), end.fault), ("stopped", None));
    assert_eq!((proof.unit.as_str(), proof.tasks), ("us of CPU", 3));
    assert!(proof.operations > 0 && proof.cpu_share > 0.0, "{proof:?}");
    assert_eq!(group(leader), []);
}

#[test]
fn short_lived_processes_count_as_well() {
    let load = start("while :; do true & wait; ls /proc >/dev/null; done");
    let begun = wait_for_cpu_time(&load);
    let end = load.stop(begun, now_ns());
    assert_eq!(end.fault, None);
    assert!(end.proof.unwrap().context_switches_per_s > 0.0);
}

#[test]
fn a_command_that_sleeps_did_nothing() {
    let load = start("exec sleep 600");
    // Its start is not part of the measured time, and takes long on a busy machine.
    let mut still = None;
    eventually("two reports of nothing", || {
        let points = load.history();
        still = points
            .windows(2)
            .find(|pair| pair[0].operations == pair[1].operations)
            .map(|pair| (pair[0], pair[1]));
        still.is_some()
    });
    let (from, to) = still.unwrap();
    let end = load.stop(from.monotonic_ns, to.monotonic_ns);
    assert_eq!(end.fault, Some(LoadFault::DidNothing));
    assert_eq!(end.proof.unwrap().operations, 0);
}

#[test]
fn a_command_that_ends_early_has_died_even_in_good_order() {
    let directory = tempfile::tempdir().unwrap();
    for exit in [0, 7] {
        // One that ends by its own time may do so before it counts as started.
        let word = directory.path().join(exit.to_string());
        let load =
            start(&format!("until [ -e {} ]; do sleep 0.01; done; exit {exit}", word.display()));
        fs::write(&word, "").unwrap();
        eventually("its end", || !load.alive());
        let end = load.stop(0, now_ns());
        assert_eq!(end.fault, Some(LoadFault::Died(format!("command: exit {exit}"))));
    }
}

#[test]
fn a_command_that_is_not_there_is_an_error_of_the_start() {
    let spec = command::spec("no-such-program --now").unwrap();
    let load = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap();
    let said = load.wait_ready(PATIENCE).unwrap_err().to_string();
    assert_eq!(said, "load command did not start: command: exit 127");
}

#[test]
fn what_moved_into_a_session_of_its_own_is_ended_with_the_command() {
    let load = start("setsid sh -c 'while :; do sleep 0.01; done' & while :; do sleep 0.01; done");
    let leader = load.process().unwrap();
    let below = || below(leader);
    eventually("both shells", || below().len() >= 2);
    let all = below();
    assert!(all.iter().any(|pid| !group(leader).contains(pid)), "one has left the group");
    let end = measure(load);
    assert_eq!(end.fault, None);
    let lives = |pid: &Pid| Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists();
    assert!(!all.iter().any(lives), "{all:?}");
}

fn below(leader: Pid) -> Vec<Pid> {
    tardy::sys::process::descendants(leader).unwrap()
}
