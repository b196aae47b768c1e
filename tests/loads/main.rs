//! Loads as processes: that they work, prove it, and leave nothing behind, however they end.
//!
//! Every process of a load is in the process group that its supervisor leads, so a test finds its
//! own and no other. Some tests need a tardy to kill: the test binary plays it (`a_stand_in...`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tardy::loads::{LoadEnd, LoadFault, LoadSpec, RunningLoad};
use tardy_hot::clock::now_ns;

mod command;
mod each;
mod support;

use support::eventually;

const TARDY: &str = env!("CARGO_BIN_EXE_tardy");

/// Long enough for any machine that is busy; nothing waits that long when all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// Set for a test binary that stands in for tardy: the load to start.
const STAND_IN: &str = "TARDY_TEST_STAND_IN_LOAD";

fn log_file() -> File {
    tempfile::tempfile().unwrap()
}

fn start(text: &str) -> RunningLoad {
    let spec = LoadSpec::parse(text).unwrap();
    let load = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap();
    load.wait_ready(PATIENCE).unwrap();
    load
}

/// Living processes of that group; a zombie does nothing and holds nothing.
fn group(leader: Pid) -> Vec<Pid> {
    let leader = leader.as_raw_nonzero().to_string();
    let mut members = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields = split_stat(&stat);
        if fields[2] == leader && fields[0] != "Z" {
            members.push(Pid::from_raw(pid).unwrap());
        }
    }
    members
}

/// What stands in `/proc/PID/stat` behind the name: the state, the parent, the group, ...
fn split_stat(stat: &str) -> Vec<String> {
    stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect()
}

fn stat_fields(pid: Pid) -> Vec<String> {
    split_stat(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap())
}

/// How often a process has left its CPU; `None` if it is gone.
fn switches(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
    counts.map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

fn workers(leader: Pid) -> Vec<Pid> {
    group(leader).into_iter().filter(|&pid| pid != leader).collect()
}

/// Measures from now until the load has done something, and ends it.
fn measure(load: RunningLoad) -> LoadEnd {
    let start_ns = now_ns();
    // A report that was under way at the start shows nothing of what happened after it.
    eventually("operations", || {
        let now = load.latest().unwrap();
        let before = load.operations_at(start_ns).unwrap();
        now.monotonic_ns > start_ns && now.operations > before + 1000
    });
    let end_ns = load.latest().unwrap().monotonic_ns;
    load.stop(start_ns, end_ns)
}

fn assert_works(text: &str, tasks: u64, processes: usize) {
    let load = start(text);
    let leader = load.process().unwrap();
    assert_eq!(workers(leader).len(), processes, "{text}");
    assert!(load.alive() && load.died().is_none());
    let end = measure(load);
    let proof = end.proof.unwrap();
    assert_eq!((end.ended.as_str(), end.fault), ("stopped", None), "{text}");
    assert_eq!((proof.unit.as_str(), proof.tasks), ("messages", tasks), "{text}");
    assert!(proof.operations > 0 && proof.operations_per_s > 0.0, "{text}: {proof:?}");
    assert!(proof.context_switches_per_s > 0.0 && proof.cpu_share > 0.0, "{text}: {proof:?}");
    assert_eq!(group(leader), [], "{text}: nothing is left");
}

#[test]
fn hackbench_proves_itself_over_both_transports_with_both_kinds_of_workers() {
    for transport in ["socket", "pipe"] {
        assert_works(&format!("hackbench:groups=2,fds=5,transport={transport}"), 20, 20);
        let threads = format!("hackbench:groups=2,fds=5,workers=thread,transport={transport}");
        assert_works(&threads, 20, 1);
    }
}

#[test]
fn hackbench_carries_messages_of_one_byte_and_of_many_pages() {
    for transport in ["socket", "pipe"] {
        for size in ["1", "4KiB", "65536"] {
            assert_works(
                &format!("hackbench:groups=1,fds=2,size={size},transport={transport}"),
                4,
                4,
            );
        }
    }
}

#[test]
fn the_default_has_160_tasks() {
    assert_works("hackbench", 160, 160);
}

#[test]
fn the_count_of_a_window_is_what_was_done_in_it() {
    let load = start("hackbench:groups=1,fds=2");
    eventually("five reports", || load.history().len() >= 6);
    let points = load.history();
    assert_eq!(points[0].operations, 0);
    let (from, to) = (points[1], points[4]);
    let end = load.stop(from.monotonic_ns, to.monotonic_ns);
    assert_eq!(end.proof.unwrap().operations, to.operations - from.operations);
}

#[test]
fn a_load_that_did_nothing_in_the_window_is_at_fault() {
    let load = start("hackbench:groups=1,fds=2");
    let end = load.stop(0, 1000);
    assert_eq!(end.fault, Some(LoadFault::DidNothing));
    assert_eq!((end.ended.as_str(), end.proof.unwrap().operations), ("stopped", 0));
}

#[test]
fn idle_is_a_load_without_a_process_and_without_fault() {
    let load = start("idle");
    assert_eq!((load.process(), load.latest(), load.alive()), (None, None, true));
    let end = load.stop(0, 1);
    assert_eq!((end.proof, end.ended.as_str(), end.fault), (None, "idle", None));
}

#[test]
fn a_load_that_is_dropped_leaves_nothing() {
    let load = start("hackbench:groups=1,fds=5");
    let leader = load.process().unwrap();
    drop(load);
    assert_eq!(group(leader), []);
}

#[test]
fn a_load_can_be_stopped_while_it_starts() {
    let spec = LoadSpec::parse("hackbench:groups=10").unwrap();
    let load = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap();
    let leader = load.process().unwrap();
    let end = load.stop(0, 1);
    assert!(end.fault.is_some());
    assert_eq!(group(leader), []);
}

#[test]
fn a_killed_worker_is_reported_and_ends_the_load() {
    for kind in ["process", "thread"] {
        let load = start(&format!("hackbench:groups=1,fds=5,workers={kind}"));
        let leader = load.process().unwrap();
        kill_process(workers(leader)[0], Signal::KILL).unwrap();
        eventually("the end is reported", || !load.alive());
        let who = load.died().unwrap();
        assert!(who.starts_with("worker ") && who.ends_with(": signal 9"), "{who}");
        let end = load.stop(0, now_ns());
        assert_eq!(
            (end.ended.as_str(), end.fault),
            (who.as_str(), Some(LoadFault::Died(who.clone())))
        );
        assert!(end.proof.is_some_and(|proof| proof.tasks == 10));
        assert_eq!(group(leader), []);
    }
}

#[test]
fn a_killed_supervisor_takes_its_workers_along_and_is_reported() {
    for kind in ["process", "thread"] {
        let load = start(&format!("hackbench:groups=1,fds=5,workers={kind}"));
        let leader = load.process().unwrap();
        kill_process(leader, Signal::KILL).unwrap();
        eventually("the workers are gone", || group(leader).is_empty());
        eventually("the end is noticed", || !load.alive());
        let end = load.stop(0, now_ns());
        assert_eq!(end.ended, "supervisor: signal 9");
        assert_eq!(end.fault, Some(LoadFault::Died(end.ended.clone())));
        assert_eq!(end.proof, None);
    }
}

/// Not a test by itself: the tardy that other tests kill. Starts a load, and lives as long as who
/// started it.
#[test]
fn a_stand_in_for_tardy() {
    let Ok(text) = std::env::var(STAND_IN) else { return };
    let load = start(&text);
    let leader = load.process().unwrap().as_raw_nonzero();
    // Not `println`, which the harness would catch.
    writeln!(std::io::stdout(), "\nleader {leader}").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A stand-in in its own process group, and the leader of its load.
fn start_stand_in(text: &str) -> (Child, Pid) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_stand_in_for_tardy", "--nocapture"])
        .env(STAND_IN, text)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let leader = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("leader ")?.parse().ok())
        .and_then(Pid::from_raw)
        .unwrap();
    (child, leader)
}

#[test]
fn a_killed_tardy_leaves_nothing() {
    for kind in ["process", "thread"] {
        let (mut child, leader) =
            start_stand_in(&format!("hackbench:groups=2,fds=5,workers={kind}"));
        assert!(!workers(leader).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("nothing is left", || group(leader).is_empty());
    }
}

#[test]
fn an_interrupt_from_the_terminal_does_not_reach_the_load() {
    let (mut child, leader) = start_stand_in("hackbench:groups=1,fds=5");
    let before = workers(leader);
    // What a terminal does on Ctrl-C. A stopped stand-in does not die of it, and so does not end
    // the load by its own end.
    let stand_in = Pid::from_child(&child);
    kill_process(stand_in, Signal::STOP).unwrap();
    eventually("the stand-in stands still", || stat_fields(stand_in)[0] == "T");
    kill_process_group(stand_in, Signal::INT).unwrap();
    // Whoever runs afterwards has had it.
    let turns: Vec<u64> = before.iter().map(|pid| switches(*pid).unwrap()).collect();
    for (pid, turns) in before.iter().zip(turns) {
        eventually("each works on", || switches(*pid).is_some_and(|now| now > turns + 1));
    }
    assert_eq!(workers(leader), before);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || group(leader).is_empty());
}

#[test]
fn workers_run_as_ordinary_tasks_and_hold_only_what_they_need() {
    let load = start("hackbench:groups=1,fds=3");
    let leader = load.process().unwrap();
    // What the shell or the build tool gave to this process, and so to all below it.
    let inherited = inheritable_files();
    let mut open: Vec<_> = open_files(leader).into_iter().map(|(number, _)| number).collect();
    open.retain(|number| !inherited.contains(number));
    open.sort_unstable();
    assert_eq!(open, [0, 1, 2]);
    for pid in workers(leader) {
        let fields = stat_fields(pid);
        assert_eq!((&*fields[16], &*fields[38]), ("0", "0"), "nice and policy: {fields:?}");
        let mut files = open_files(pid);
        files.retain(|(number, _)| !inherited.contains(number));
        assert_eq!(files.len(), 3 + 2 * 3, "{files:?}");
        assert!(files.contains(&(0, "/dev/null".to_owned())), "{files:?}");
    }
}

#[test]
fn a_supervisor_that_runs_away_is_bounded_and_its_workers_are_not() {
    let load = start("hackbench:groups=1,fds=2");
    let leader = load.process().unwrap();
    let limit = |pid: Pid| {
        let text = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
        line.unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let own = limit(rustix::process::getpid());
    let bound = if own == "unlimited" { "3000000" } else { own.as_str() };
    assert_eq!(limit(leader), bound);
    assert!(workers(leader).into_iter().all(|worker| limit(worker) == own));
}

/// Files above standard error that this process passes on over exec.
fn inheritable_files() -> Vec<i32> {
    let passes_on = |number: &i32| {
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        *number > 2 && flags.is_some_and(|flags| flags & libc::O_CLOEXEC == 0)
    };
    (0..1024).filter(passes_on).collect()
}

fn open_files(pid: Pid) -> Vec<(i32, String)> {
    let directory = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let target = fs::read_link(entry.path()).unwrap().to_string_lossy().into_owned();
            (entry.file_name().to_str().unwrap().parse().unwrap(), target)
        })
        .collect()
}

#[test]
fn a_load_beyond_the_machine_is_refused_before_it_starts() {
    let spec = LoadSpec::parse("hackbench:groups=1000,fds=200").unwrap();
    let refused = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap_err().to_string();
    assert!(refused.starts_with("load hackbench needs 400000 processes or threads"), "{refused}");
    assert!(refused.contains("kernel.pid_max"), "{refused}");
}

#[test]
fn a_soft_limit_of_open_files_is_no_limit() {
    let spec = LoadSpec::parse("hackbench:groups=4,workers=thread").unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -Sn 50; exec \"$0\" __load \"$1\"", TARDY])
        .arg(spec.to_json().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("{\"ready\""), "{first}");
    drop(child.stdin.take());
    let last = lines.map_while(Result::ok).last().unwrap();
    assert!(last.starts_with("{\"ended\"") && last.contains("\"tasks\":160"), "{last}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_hard_limit_of_open_files_is_an_error() {
    let spec = LoadSpec::parse("hackbench:groups=1,fds=200").unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" __load \"$1\"", TARDY])
        .arg(spec.to_json().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("needs 400 open files in one process, only 84 are available"), "{said}");
    assert!(said.contains("ulimit -Hn"), "{said}");
}

#[test]
fn a_program_that_is_no_tardy_is_an_error() {
    let spec = LoadSpec::parse("hackbench").unwrap();
    let missing = Path::new("/nonexistent/tardy");
    let refused = RunningLoad::start(&spec, log_file(), missing).unwrap_err().to_string();
    assert!(refused.contains("cannot start its supervisor /nonexistent/tardy"), "{refused}");
    let load = RunningLoad::start(&spec, log_file(), Path::new("/bin/true")).unwrap();
    let refused = load.wait_ready(PATIENCE).unwrap_err().to_string();
    assert_eq!(refused, "load hackbench did not start: the supervisor is gone");
    assert_eq!(load.stop(0, 1).ended, "supervisor: exit 0");
}
