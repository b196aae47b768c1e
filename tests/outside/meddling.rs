//! Somebody meddles with a run while it is in progress: with its threads, its loads, its recorder.
//! Each must be reported, also when everything is restored before the end.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

use serde_json::Value;
use tardy_hot::clock::now_ns;

use super::{
    control_group::ControlGroup,
    endings::children,
    support::{
        LIGHT_LOAD, LONG, SHORT, Said, Store, codes, eventually, finish, is_root, is_stopped, list,
        pause, piped, signal, skip, whole, with_time,
    },
};

/// The kernel's number of the thread of that name.
fn thread_of(child: &Child, name: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let found = tasks.into_iter().find(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    });
    found.unwrap().file_name().into_string().unwrap()
}

fn must(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

fn text_of<'a>(record: &'a Value, code: &str) -> &'a str {
    let found = list(&record["caveats"]).iter().find(|caveat| caveat["code"] == code);
    found.unwrap_or_else(|| panic!("no {code}: {}", record["caveats"]))["text"].as_str().unwrap()
}

/// Waits until the run has looked at its threads and its machine once more: a row of the machine is
/// written just before, so that the second one says that the first look is over.
pub(crate) fn wait_for_a_look(store: &Store, name: &str) {
    let rows = || {
        let csv = fs::read_to_string(store.runs().join(name).join("machine.csv"));
        csv.unwrap_or_default().matches(",page_faults,").count()
    };
    let before = rows();
    eventually("a look", || rows() >= before + 2);
}

/// The CPU that a thread ran on last.
fn last_cpu(child: &Child, tid: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/task/{tid}/stat", child.id())).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(36).unwrap().to_owned()
}

fn cpus() -> Vec<u32> {
    tardy::sys::cpus::Cpus::allowed().unwrap().iter().collect()
}

#[test]
fn a_measured_thread_whose_priority_is_changed_and_put_back_makes_the_run_invalid() {
    if !is_root() {
        return skip("changing a real-time priority needs root");
    }
    let (store, cpu) = (Store::new(), cpus()[0].to_string());
    let child = store.start_measuring("r", &["--cpus", &cpu]);
    let tid = thread_of(&child, &format!("tardy/cpu{cpu}"));
    must("chrt", &["-f", "-p", "7", &tid]);
    wait_for_a_look(&store, "r");
    must("chrt", &["-f", "-p", "90", &tid]);
    let (said, record) = store.interrupt("r", child);
    assert_eq!((said.code, &record["validity"]), (Some(4), &"invalid".into()), "{said:?}");
    let text = text_of(&record, "thread_not_as_asked");
    assert!(text.contains("fifo 7") && text.contains("instead of fifo 90"), "{text}");
    assert!(said.out.lines().next().unwrap().contains("invalid"), "the verdict comes first");
    assert!(whole(&record["conditions"]["looks"]) >= 1, "{record}");
}

#[test]
fn a_measured_thread_that_is_moved_for_a_moment_makes_the_run_invalid() {
    let [cpu, other, ..] = cpus()[..] else { return skip("it takes two CPUs") };
    let store = Store::new();
    let (cpu, other) = (cpu.to_string(), other.to_string());
    let child = store.start_measuring("r", &["--cpus", &cpu]);
    let tid = thread_of(&child, &format!("tardy/cpu{cpu}"));
    for there in [&other, &cpu] {
        must("taskset", &["-p", "-c", there, &tid]);
        eventually("it has moved", || last_cpu(&child, &tid) == *there);
    }
    let (said, record) = store.interrupt("r", child);
    if record["conditions"]["threads"][0]["migrations"].is_null() {
        return skip("this kernel does not count migrations");
    }
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(text_of(&record, "thread_migrated").contains(&format!("cpu{cpu}: ")), "{record}");
}

#[test]
fn a_recorder_that_stands_still_is_reported() {
    let store = Store::new();
    let child = store.start_measuring("r", &[]);
    signal(&child, "STOP");
    eventually("it stands still", || is_stopped(child.id()));
    // A second later than its latest turn, at whatever moment between two turns that was.
    pause(Duration::from_millis(2_500));
    signal(&child, "CONT");
    // It finds out when it records next.
    wait_for_a_look(&store, "r");
    let (said, record) = store.interrupt("r", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    for code in ["drain_late", "periods_missed"] {
        assert!(codes(&record).contains(&code), "{code}: {}", record["caveats"]);
    }
}

/// A run of a second, under a load that `change` does something to; it returns when that is done.
/// Only a run is returned whose warm-up was not over by then, nor a second later.
pub(crate) fn changed_in_the_warm_up(
    load: &[&str],
    change: impl Fn(&Store, i32),
) -> (Store, Said, Value) {
    with_time(|warmup| {
        let store = Store::new();
        let run = ["run", "timer", "--duration", "1s", "--name", "r", "--warmup", warmup];
        let child = store.start(&[&run[..], load].concat());
        eventually("the warm-up", || store.runs().join("r/series.hlog").exists());
        change(&store, i32::try_from(child.id()).unwrap());
        let changed_ns = now_ns();
        let said = finish(child);
        let record = store.show("r");
        let start_ns = whole(&record["start_monotonic_ns"]);
        (start_ns > changed_ns + 1_000_000_000).then_some((store, said, record))
    })
}

#[test]
fn a_load_whose_tasks_stand_still_makes_the_run_invalid() {
    let load = ["--load", "hackbench:groups=1"];
    let (store, said, record) = changed_in_the_warm_up(&load, |store, own| {
        let supervisor = children(store, own)[0];
        let tasks = children(store, supervisor);
        assert!(tasks.len() >= 40, "{tasks:?}");
        for task in tasks {
            let pid = rustix::process::Pid::from_raw(task).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        }
    });
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(text_of(&record, "load_did_nothing").contains("hackbench"), "{record}");
    assert_eq!(store.processes(), [0; 0], "tasks that stand still are ended too");
}

#[test]
fn a_supervisor_of_a_load_that_stands_still_holds_up_neither_the_run_nor_its_end() {
    for goes_on in [true, false] {
        let store = Store::new();
        let child = store.start_measuring("r", &["--load", LIGHT_LOAD]);
        let supervisor = children(&store, i32::try_from(child.id()).unwrap())[0];
        let send = |signal| {
            let pid = rustix::process::Pid::from_raw(supervisor).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        send(rustix::process::Signal::STOP);
        eventually("it stands still", || is_stopped(supervisor.unsigned_abs()));
        let before = store.count("r");
        eventually("the run continues", || store.count("r") > before);
        if goes_on {
            send(rustix::process::Signal::CONT);
        }
        let (said, record) = store.interrupt("r", child);
        assert_eq!(store.processes(), [0; 0], "nothing is left: {said:?}");
        if goes_on {
            assert_eq!(said.code, Some(0), "{said:?}");
        } else {
            // It could not say what its load had done.
            assert_eq!((said.code, codes(&record)[0]), (Some(4), "load_died"), "{said:?}");
            assert!(text_of(&record, "load_died").contains("signal 9"), "{record}");
        }
    }
}

/// Free for a load beside what tardy itself takes, and less than the load wants.
const ROOM: u64 = 64 << 20;

#[test]
fn a_load_that_the_kernel_kills_for_its_memory_makes_the_run_invalid() {
    let Some(group) = ControlGroup::of_memory("killed") else {
        return skip("it takes root and a memory controller of cgroups");
    };
    let store = Store::new();
    let script = format!("{}\nexec \"$0\" \"$@\"", ControlGroup::WAIT_INSIDE);
    // Between two rounds it has no memory, so that the limit can be set at all.
    let load = ["--load", "memory:mode=munmap,size=256MiB"];
    let length = ["--duration", LONG, "--name", "r"];
    let child = piped(&mut store.shell(&script, &[&SHORT[..], &length, &load].concat()));
    group.take_in(&child);
    store.wait_measuring("r");
    let own = i32::try_from(child.id()).unwrap();
    let mut least = group.usage();
    eventually("the load is killed", || {
        least = least.min(group.usage());
        // Refused while more is in use.
        let _ = group.limit(least + ROOM);
        children(&store, own).is_empty()
    });
    let (said, record) = store.interrupt("r", child);
    assert_eq!((said.code, &record["validity"]), (Some(4), &"invalid".into()), "{said:?}");
    let text = text_of(&record, "load_died");
    assert!(text.contains("memory") && text.contains("signal 9"), "{text}");
    assert!(group.was_short(), "the kernel has killed in this group");
    assert_eq!(store.processes(), [0; 0]);
}

/// Major page faults of the measured threads so far.
fn major_faults(child: &Child) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let measured = stats.filter(|stat| stat.contains("(tardy/cpu"));
    let faults = |stat: String| {
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        fields.nth(9)?.parse::<u64>().ok()
    };
    measured.filter_map(faults).sum()
}

#[test]
fn pages_that_are_taken_from_measured_threads_are_reported() {
    let Some(group) = ControlGroup::of_memory("taken").filter(ControlGroup::can_take) else {
        return skip("it takes root and a memory controller of cgroups");
    };
    let store = Store::unprivileged();
    // The program's pages belong to the group that brings them into memory: its own copy.
    let script = format!(
        "ulimit -l 64\n{}\ncp \"$0\" copy && exec ./copy \"$@\"",
        ControlGroup::WAIT_INSIDE
    );
    let length = ["--duration", LONG, "--name", "r"];
    let child = piped(&mut store.shell(&script, &[&SHORT[..], &length].concat()));
    group.take_in(&child);
    store.wait_measuring("r");
    let before = major_faults(&child);
    eventually("pages are taken", || {
        group.take();
        major_faults(&child) > before
    });
    let (said, record) = store.interrupt("r", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(text_of(&record, "page_faults").contains(" major"), "{record}");
    let faults = |thread: &Value| whole(&thread["major_faults"]) + whole(&thread["minor_faults"]);
    assert!(list(&record["conditions"]["threads"]).iter().any(|thread| faults(thread) > 0));
}
