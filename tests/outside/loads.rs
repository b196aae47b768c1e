//! Loads as a user meets them: several at once, alone, foreign, refused, killed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

use serde_json::Value;

use super::{
    endings::children,
    meddling::changed_in_the_warm_up,
    support::{
        SHORT, Said, Store, codes, contents, eventually, finish, is_root, list, piped, signal,
        skip, whole,
    },
};

#[test]
fn several_loads_at_once_prove_themselves_and_leave_nothing() {
    let store = Store::new();
    let disk = store.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let write = format!("disk-write:dir={},size=1MiB", disk.display());
    let files = format!("files:dir={},files=100", disk.display());
    let loads = ["--load", "background:tasks=50", "--load", &write, "--load", "netflood"];
    let before = state_of_the_machine();
    let child = store.start_measuring("r", &[&loads[..], &["--load", &files]].concat());
    // Its place among the loads stands behind the time, its rate at the end.
    let csv = || fs::read_to_string(store.runs().join("r/loads.csv")).unwrap_or_default();
    let works = |load: usize| {
        csv().lines().any(|row| {
            let cells: Vec<&str> = row.split(',').collect();
            cells[1] == load.to_string() && cells[2] != "0.0"
        })
    };
    for load in 0..4 {
        eventually("each load works", || works(load));
    }
    let (said, record) = store.interrupt("r", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (load, tasks) in list(&record["loads"]).iter().zip([52, 1, 2, 2]) {
        let proof = &load["proof"];
        assert!(whole(&proof["operations"]) > 0, "{load}");
        assert_eq!((&load["ended"], whole(&proof["tasks"])), (&"stopped".into(), tasks), "{load}");
    }
    assert!(said.out.contains("under background + disk-write + netflood + files"), "{said:?}");
    assert_eq!(store.processes(), [0; 0]);
    assert_eq!(fs::read_dir(&disk).unwrap().count(), 0);
    assert_eq!(state_of_the_machine(), before);
}

/// What a load might change: network devices, and settings of the kernel's log.
fn state_of_the_machine() -> String {
    let script = "ls /sys/class/net; cat /proc/sys/kernel/printk /proc/sys/kernel/printk_devkmsg";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn loads_alone_end_with_a_table_or_json() {
    let store = Store::new();
    let said = store.run(&["load", "burn:threads=1", "idle", "--duration", "500ms"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("load ") && lines[0].contains("per second"), "{said:?}");
    assert!(lines[1].starts_with("burn  ms of CPU  "), "{said:?}");
    assert!(lines[2].starts_with("idle"), "{said:?}");

    let said = store.run(&["load", "burn:threads=1", "--duration", "500ms", "--json"]);
    let end: Value = serde_json::from_str(&said.out).unwrap();
    assert!(whole(&end["duration_ns"]) >= 500_000_000, "{end}");
    let load = &end["loads"][0];
    assert_eq!((&load["name"], &load["fault"]), (&"burn".into(), &Value::Null));
    assert_eq!(whole(&load["proof"]["tasks"]), 1);
    assert!(contents(store.path()).is_empty(), "loads alone make no run");
}

/// How often the threads of a process slept so far.
fn sleeps(pid: i32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let count = |text: String| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line?.trim().parse().ok()
    };
    status.filter_map(count).sum()
}

#[test]
fn loads_alone_go_on_until_ctrl_c_which_is_a_good_end() {
    let store = Store::new();
    for name in ["INT", "TERM"] {
        let child = store.start(&["load", "timers:threads=5"]);
        // One that is ended before its first operation did nothing, which is reported: its threads
        // must have slept and woken up a few times.
        let worked = |pid: &i32| sleeps(*pid) > 100;
        eventually("a load works", || {
            store.processes().iter().filter(|pid| worked(pid)).count() > 0
        });
        signal(&child, name);
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(store.processes(), [0; 0]);
    }
}

#[test]
fn ctrl_c_does_not_wait_until_a_load_is_ready() {
    let store = Store::new();
    // A compiler that takes its time is tried before the load is ready.
    let compiler = store.path().join("slow");
    fs::write(&compiler, "#!/bin/sh\nsleep 600\n").unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let path = store.path().display();
    let child = store.start(&["load", &format!("compile:jobs=1,compiler={path}/slow,dir={path}")]);
    eventually("the compiler", || store.processes().len() >= 4);
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.err.contains("stopped before it had started"), "{said:?}");
    assert_eq!(store.processes(), [0; 0]);
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 1, "the compiler and nothing else");
}

#[test]
fn a_load_alone_that_dies_is_reported_with_exit_code_4() {
    let store = Store::new();
    let said = store.run(&["load", "--load-command", "sleep 1; echo gone >&2; exit 3", "--json"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.err.contains("gone\n"), "what it printed: {said:?}");
    assert!(said.err.contains("died") && said.err.contains("command: exit 3"), "{said:?}");
    let end: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(end["loads"][0]["ended"], "command: exit 3");
}

#[test]
fn all_loads_are_listed_with_their_parameters() {
    let store = Store::new();
    let text = store.run(&["load", "--list"]).out;
    let help = store.run(&["load", "--help"]).out;
    let json: Value = serde_json::from_str(&store.run(&["load", "--list", "--json"]).out).unwrap();
    assert!(list(&json).len() >= 17, "{json}");
    for load in list(&json) {
        let name = load["name"].as_str().unwrap();
        assert!(text.contains(&format!("  {name}: ")), "{name}");
        assert!(help.contains(&format!("  {name}: ")), "{name}");
        for parameter in list(&load["parameters"]) {
            let (key, default) = (&parameter["key"], &parameter["default"]);
            let pair = format!("{}={}: ", key.as_str().unwrap(), default.as_str().unwrap());
            assert!(text.contains(&pair), "{name}: {pair}");
        }
    }
}

#[test]
fn a_command_is_a_load_with_a_proof_and_a_log() {
    let store = Store::new();
    let command = "echo begun, truly; while :; do :; done";
    let arguments = ["--duration", "1s", "--name", "r", "--load-command", command];
    let said = store.run(&[&SHORT[..], &arguments].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(&format!("under `{command}`")), "{said:?}");
    let load = &store.show("r")["loads"][0];
    assert_eq!((&load["name"], &load["ended"]), (&"command".into(), &"stopped".into()));
    assert_eq!(load["parameters"]["command"], command);
    assert_eq!(load["proof"]["unit"], "us of CPU");
    assert!(whole(&load["proof"]["operations"]) > 0, "{load}");
    let log = fs::read_to_string(store.runs().join("r/load.log")).unwrap();
    assert!(log.contains("begun, truly"), "{log}");
}

#[test]
fn a_command_that_does_nothing_or_ends_makes_the_run_invalid() {
    let asleep = |store: &Store, _| {
        let sleeps = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains("(sleep) S")
        };
        eventually("it sleeps", || store.processes().iter().any(sleeps));
    };
    let command = ["--load-command", "exec sleep 600"];
    let (_, said, record) = changed_in_the_warm_up(&command, asleep);
    assert_eq!((said.code, codes(&record)[0]), (Some(4), "load_did_nothing"), "{said:?}");

    let store = Store::new();
    let command = "until [ -e enough ]; do :; done";
    let child = store.start_measuring("r", &["--load-command", command]);
    let own = i32::try_from(child.id()).unwrap();
    assert_eq!(children(&store, own).len(), 1, "its supervisor");
    fs::write(store.path().join("enough"), "").unwrap();
    eventually("its supervisor has noticed", || children(&store, own).is_empty());
    let (said, record) = store.interrupt("r", child);
    assert_eq!((said.code, codes(&record)[0]), (Some(4), "load_died"), "{said:?}");
}

#[test]
fn what_a_load_said_is_in_the_error_where_no_run_is_left() {
    let store = Store::new();
    let said = store.run(&["run", "timer", "--load-command", "no-such-program --now"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for word in ["command: exit 127", "no-such-program", "not found"] {
        assert!(said.err.contains(word), "{word}: {said:?}");
    }
    assert!(contents(store.path()).is_empty());
}

#[test]
fn a_missing_compiler_is_an_error_with_its_package_before_the_run_begins() {
    let store = Store::new();
    let mut tardy = store.tardy(&[&SHORT[..], &["--load", "compile"]].concat());
    tardy.env("PATH", "/nonexistent");
    let said = finish(piped(&mut tardy));
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for word in ["compile", "`cc`", "apt install gcc", "compiler="] {
        assert!(said.err.contains(word), "{word}: {said:?}");
    }
    assert!(contents(store.path()).is_empty());
    // One that is there and does not compile is found out at the start as well.
    let dir = format!("compile:compiler=false,dir={}", store.path().display());
    let said = store.run(&["run", "timer", "--load", &dir]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("did not start") && said.err.contains("false"), "{said:?}");
    assert!(contents(store.path()).is_empty());
}

#[test]
fn what_needs_root_says_so() {
    let store = Store::unprivileged();
    for (load, wanted) in [("netflood:via=veth", "root for via=veth"), ("printk", "/dev/kmsg")] {
        if load == "printk" && !is_root() {
            continue;
        }
        let said = store.run(&["load", load, "--duration", "1s"]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(wanted) && said.err.contains("as root"), "{said:?}");
    }
    let said = store.run(&["load", "netflood", "--duration", "2s"]);
    assert_eq!(said.code, Some(0), "loopback needs no rights: {said:?}");
}

#[test]
fn packets_cross_a_pair_of_devices_that_goes_with_them() {
    let has_ip = Command::new("ip").arg("-V").output().is_ok_and(|said| said.status.success());
    if !is_root() || !has_ip {
        return skip("needs root and the program ip");
    }
    let before = state_of_the_machine();
    let store = Store::new();
    let said = store.run(&["load", "netflood:via=veth,pairs=2", "--duration", "5s", "--json"]);
    if said.err.contains("veth") && said.code == Some(2) {
        return skip("this kernel has no veth");
    }
    let end = done(&said);
    assert!(whole(&end["loads"][0]["proof"]["operations"]) > 0, "{end}");
    assert_eq!((state_of_the_machine(), store.processes()), (before, vec![]));
}

#[test]
fn messages_that_reached_the_kernels_log_are_counted() {
    if !is_root() || fs::OpenOptions::new().write(true).open("/dev/kmsg").is_err() {
        return skip("needs root and /dev/kmsg");
    }
    let store = Store::new();
    let end = done(&store.run(&["load", "printk:level=7", "--duration", "2s", "--json"]));
    let messages = whole(&end["loads"][0]["proof"]["operations"]);
    let most = 1 + whole(&end["duration_ns"]) / 500_000_000;
    assert!((1..=most).contains(&messages), "two a second, and no more: {end}");
}

fn done(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

/// The child of a tardy that is a supervisor.
fn supervisor_of(child: &Child) -> i32 {
    let parent = format!("PPid:\t{}\n", child.id());
    let mut found = None;
    eventually("a supervisor", || {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        found = pids.find(|pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.contains(&parent)
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn what_left_the_group_of_a_killed_supervisor_is_found_and_ended() {
    // One that is killed before tardy knows that it works is an error of the start.
    let pauses = [700, 3_000, 12_000, 48_000].into_iter().map(Duration::from_millis);
    let said = pauses.map(left_by_a_killed_supervisor).find(|said| said.code != Some(2));
    let said = said.expect("a load that works");
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.err.contains("supervisor: signal 9"), "{said:?}");
}

/// Kills the supervisor of a load, whose one process has left its group, after so long; all must
/// be gone then.
fn left_by_a_killed_supervisor(pause: Duration) -> Said {
    let store = Store::new();
    let secret = store.path().join("alive");
    // Without the environment that tests know their processes by; so it is known by its work.
    let script = format!(
        "env -i setsid sh -c 'echo $$ >{0}; exec sleep 1000' & while :; do sleep 0.05; done",
        secret.display()
    );
    let child = store.start(&["load", "--load-command", &script]);
    let read = || fs::read_to_string(&secret).ok()?.trim().parse::<i32>().ok();
    eventually("the one that left", || read().is_some());
    let stray = format!("/proc/{}", read().unwrap());
    let supervisor = supervisor_of(&child);
    sleep(pause);
    assert!(Path::new(&stray).exists());
    let killed = Command::new("kill").args(["-KILL", &supervisor.to_string()]).status().unwrap();
    assert!(killed.success());
    let said = finish(child);
    assert!(!Path::new(&stray).exists(), "{stray} lives");
    assert_eq!(store.processes(), [0; 0]);
    said
}

#[test]
#[ignore = "long: the average takes four minutes to rise"]
fn a_load_average_above_3000_is_reached_while_a_run_stays_valid() {
    if !is_root() {
        return skip("needs root for real-time threads");
    }
    let store = Store::new();
    let arguments = ["--duration", "4m", "--load", "background:tasks=3200", "--name", "r"];
    let mut child = store.start(&[&SHORT[..], &arguments].concat());
    let mut highest = 0.0_f64;
    // It has 4 minutes to measure, which is more than `finish` waits.
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string("/proc/loadavg").unwrap();
        highest = highest.max(text.split(' ').next().unwrap().parse().unwrap());
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(highest > 3000.0, "{highest}");
    let proof = &store.show("r")["loads"][0]["proof"];
    assert_eq!((whole(&proof["tasks"]), whole(&proof["tasks_idle"])), (3202, 0), "{proof}");
}
