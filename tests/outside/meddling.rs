//! Somebody meddles with a run while it goes on: with its threads, its loads, its recorder. Each
//! must be told, also when everything is put back before the end.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;

use super::{
    endings::children,
    support::{SHORT, Store, codes, eventually, finish, is_root, list, piped, signal, skip, whole},
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

fn cpus() -> Vec<u32> {
    tardy::sys::cpus::Cpus::allowed().unwrap().iter().collect()
}

#[test]
fn a_measured_thread_whose_priority_is_changed_and_put_back_makes_the_run_invalid() {
    if !is_root() {
        return skip("changing a real-time priority needs root");
    }
    let (store, cpu) = (Store::new(), cpus()[0].to_string());
    let child =
        store.start(&[&SHORT[..], &["--duration", "4s", "--cpus", &cpu, "--name", "r"]].concat());
    store.wait_measuring("r");
    let tid = thread_of(&child, &format!("tardy/cpu{cpu}"));
    must("chrt", &["-f", "-p", "7", &tid]);
    sleep(Duration::from_millis(2_200));
    must("chrt", &["-f", "-p", "90", &tid]);
    let said = finish(child);
    let record = store.show("r");
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
    let child =
        store.start(&[&SHORT[..], &["--duration", "2s", "--cpus", &cpu, "--name", "r"]].concat());
    store.wait_measuring("r");
    let tid = thread_of(&child, &format!("tardy/cpu{cpu}"));
    must("taskset", &["-p", "-c", &other, &tid]);
    must("taskset", &["-p", "-c", &cpu, &tid]);
    let said = finish(child);
    let record = store.show("r");
    if record["conditions"]["threads"][0]["migrations"].is_null() {
        return skip("this kernel does not count migrations");
    }
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(text_of(&record, "thread_migrated").contains(&format!("cpu{cpu}: ")), "{record}");
}

#[test]
fn a_recorder_that_stands_still_is_told() {
    let store = Store::new();
    let child = store.start(&[&SHORT[..], &["--duration", "3s", "--name", "r"]].concat());
    store.wait_measuring("r");
    signal(&child, "STOP");
    sleep(Duration::from_millis(1_200));
    signal(&child, "CONT");
    assert_eq!(finish(child).code, Some(0));
    let record = store.show("r");
    for code in ["drain_late", "periods_missed"] {
        assert!(codes(&record).contains(&code), "{code}: {}", record["caveats"]);
    }
}

#[test]
fn a_load_whose_tasks_stand_still_makes_the_run_invalid() {
    let store = Store::new();
    let load = ["--warmup", "4s", "--load", "hackbench:groups=1", "--name", "r"];
    let child = store.start(&[&["run", "timer", "--duration", "1s"], &load[..]].concat());
    let own = i32::try_from(child.id()).unwrap();
    eventually("the load's tasks", || {
        children(&store, own).first().is_some_and(|load| children(&store, *load).len() >= 40)
            && store.runs().join("r/run.json").exists()
    });
    let supervisor = children(&store, own)[0];
    sleep(Duration::from_millis(500));
    for task in children(&store, supervisor) {
        let pid = rustix::process::Pid::from_raw(task).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    let said = finish(child);
    let record = store.show("r");
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(text_of(&record, "load_did_nothing").contains("hackbench"), "{record}");
    assert_eq!(store.processes(), [0; 0], "tasks that stand still are ended too");
}

/// A cgroup from which memory can be taken, removed at the end.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let name = format!("tardy-test-{}", std::process::id());
        let tries = [("memory", "memory.force_empty"), ("", "memory.reclaim")];
        tries.into_iter().find_map(|(controller, file)| {
            let group = Path::new("/sys/fs/cgroup").join(controller).join(&name);
            fs::create_dir(&group).ok()?;
            let group = Self(group);
            group.0.join(file).exists().then_some(group)
        })
    }

    /// Takes from its processes what is not locked and has a file behind it.
    fn take(&self) {
        let (old, new) = (self.0.join("memory.force_empty"), self.0.join("memory.reclaim"));
        // What is in use at the moment may be refused; it is tried again.
        let _ = if old.exists() { fs::write(old, "0") } else { fs::write(new, "64M") };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn pages_that_are_taken_from_measured_threads_are_told() {
    let Some(group) = is_root().then(Group::new).flatten() else {
        return skip("it takes root and a memory controller of cgroups");
    };
    let store = Store::unprivileged();
    // The program's pages belong to the group that brings them into memory: a copy of its own.
    let script = "ulimit -l 64
        until grep -q tardy-test- /proc/self/cgroup; do sleep 0.01; done
        cp \"$0\" copy && exec ./copy \"$@\"";
    let length = ["--duration", "4s", "--name", "r"];
    let mut child = piped(&mut store.shell(script, &[&SHORT[..], &length].concat()));
    fs::write(group.0.join("cgroup.procs"), child.id().to_string()).unwrap();
    store.wait_measuring("r");
    while child.try_wait().unwrap().is_none() {
        group.take();
        sleep(Duration::from_millis(100));
    }
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert!(text_of(&record, "page_faults").contains(" major"), "{record}");
    let faults = |thread: &Value| whole(&thread["major_faults"]) + whole(&thread["minor_faults"]);
    assert!(list(&record["conditions"]["threads"]).iter().any(|thread| faults(thread) > 0));
}
