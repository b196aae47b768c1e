//! Each load with tiny parameters: it works, says so, and leaves nothing, also when it is killed.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use tardy::loads::{LOADS, LoadSpec, RunningLoad};
use tardy_hot::clock::now_ns;

use super::{TARDY, eventually, group, log_file, start, start_stand_in, stat_fields, workers};

/// What a test of a load needs to know: parameters, `DIR` for a directory; its own tasks; and
/// how many entries it has in that directory.
struct Tiny {
    text: &'static str,
    tasks: u64,
    files: usize,
}

/// Loads that are killed: one for each way to keep workers and files (tasks of a process and
/// threads, files without and with names, a compiler's processes, a device). The supervisor that
/// clears up after them is the same for all.
const KILLED: [&str; 6] = ["hackbench", "burn", "disk-write", "files", "compile", "ext4"];

const fn tiny(text: &'static str, tasks: u64, files: usize) -> Tiny {
    Tiny { text, tasks, files }
}

const TINY: &[Tiny] = &[
    tiny("hackbench:groups=1,fds=2", 4, 0),
    tiny("burn:threads=2,share=50,period=1ms,nice=5", 2, 0),
    tiny("background:tasks=10,forks=1", 11, 0),
    tiny("disk-write:dir=DIR,size=1MiB", 1, 0),
    tiny("disk-write:dir=DIR,size=64KiB,block=4096,access=direct", 1, 0),
    tiny("disk-read:dir=DIR,size=1MiB,tasks=2", 2, 0),
    tiny("disk-copy:dir=DIR,size=1MiB", 1, 0),
    tiny("files:dir=DIR,files=20,dirs=3", 2, 1),
    tiny("procfs:interval=1ms", 1, 0),
    tiny("memory:size=1MiB", 1, 0),
    tiny("memory:size=1MiB,mode=munmap,pages=any", 1, 0),
    tiny("memory:size=1MiB,mode=fork", 1, 0),
    tiny("memory:size=1MiB,mode=exit,tasks=2", 2, 0),
    tiny("compile:dir=DIR,jobs=1,functions=1", 1, 1),
    tiny("netflood:pairs=2", 4, 0),
    tiny("timers:threads=10,interval=1ms", 10, 0),
    tiny("futex:waiters=10,interval=1ms", 11, 0),
    tiny("ipi:threads=2", 2, 0),
    tiny("multicast:sockets=10,interval=1ms", 11, 0),
    tiny("signals:processes=10,interval=1ms", 11, 0),
    tiny("signals:processes=10,interval=1ms,deliver=no", 11, 0),
    tiny("rt:tasks=3,utilisation=10", 3, 0),
    tiny("sound:players=2,frames=64", 2, 0),
    tiny("video:players=2", 2, 0),
    tiny("x11", 1, 0),
    tiny("ext4:size=16MiB,file=1MiB,tasks=2", 2, 0),
];

fn with_dir(text: &str, dir: &Path) -> String {
    text.replace("DIR", dir.to_str().unwrap())
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

/// The tiny loads that this machine can run, each with its own directory.
fn each(mut check: impl FnMut(&Tiny, &str, &Path)) {
    let has_compiler = Command::new("cc").arg("--version").output().is_ok();
    let has_aplay = Command::new("aplay").arg("--version").output().is_ok();
    for tiny in TINY {
        let dir = tempfile::tempdir().unwrap();
        let text = with_dir(tiny.text, dir.path());
        if text.starts_with("ext4") && !has_ram_disk() {
            skip(&text, "this needs root, loop devices and ext4");
        } else if text.starts_with("rt") && !rustix::process::geteuid().is_root() {
            skip(&text, "this needs SCHED_FIFO");
        } else if text.starts_with("sound") && !has_aplay {
            skip(&text, "no aplay");
        } else if text.starts_with("compile") && !has_compiler {
            skip(&text, "no cc");
        } else if text.contains("direct") && !has_direct_access(dir.path()) {
            skip(&text, "the file system has no direct access");
        } else {
            check(tiny, &text, dir.path());
        }
    }
}

fn has_ram_disk() -> bool {
    let knows = fs::read_to_string("/proc/filesystems").unwrap().contains("\text4\n");
    knows && rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists()
}

/// Loop devices over the memory of a load `ext4` with that supervisor: `loop7`.
fn ram_disks(leader: Pid) -> Vec<String> {
    let name = format!("tardy-ext4-{} ", leader.as_raw_nonzero());
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_ours = |device: &fs::DirEntry| {
        fs::read_to_string(device.path().join("loop/backing_file"))
            .is_ok_and(|file| file.contains(&name))
    };
    devices.filter(is_ours).map(|device| device.file_name().into_string().unwrap()).collect()
}

fn is_mounted(device: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.starts_with(&format!("/dev/{device} ")))
}

/// Those of them that are killed.
fn each_killed(mut check: impl FnMut(&str, &Path)) {
    let mut seen = BTreeSet::new();
    each(|_, text, dir| {
        let name = text.split(':').next().unwrap().to_owned();
        // Not the same load with other parameters.
        if KILLED.contains(&name.as_str()) && seen.insert(name) {
            check(text, dir);
        }
    });
}

/// Past the harness, which hides what passing tests print.
fn skip(text: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text} skipped: {why}");
}

fn has_direct_access(dir: &Path) -> bool {
    let path = dir.join("direct");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).custom_flags(libc::O_DIRECT);
    let opened = options.open(&path).is_ok();
    let _ = fs::remove_file(path);
    opened
}

/// Starts it, and waits until it has done something.
fn start_working(text: &str) -> RunningLoad {
    let load = start(text);
    eventually(text, || load.latest().is_some_and(|now| now.operations > 0));
    load
}

#[test]
fn there_is_a_test_for_every_load() {
    // Those two have their own tests.
    let tested = TINY.iter().map(|tiny| tiny.text.split(':').next().unwrap());
    let tested: BTreeSet<&str> = tested.chain(["idle", "printk"]).collect();
    let all: BTreeSet<&str> = LOADS.iter().map(|load| load.name).collect();
    assert_eq!(tested, all);
}

#[test]
fn each_load_works_says_so_and_leaves_nothing() {
    each(|tiny, text, dir| {
        let start_ns = now_ns();
        let load = start_working(text);
        let leader = load.process().unwrap();
        assert!(!workers(leader).is_empty() && load.alive(), "{text}");
        assert_eq!(entries(dir), tiny.files, "{text}: files that have a name");
        let end = load.stop(start_ns, now_ns());
        let proof = end.proof.unwrap();
        assert_eq!((end.ended.as_str(), end.fault), ("stopped", None), "{text}");
        assert!(proof.operations > 0 && proof.operations_per_s > 0.0, "{text}: {proof:?}");
        assert_eq!(proof.tasks, tiny.tasks, "{text}: {proof:?}");
        assert!(proof.cpu_share > 0.0, "{text}: {proof:?}");
        assert!(!proof.unit.is_empty(), "{text}");
        assert_eq!(group(leader), [], "{text}: no process is left");
        assert_eq!(entries(dir), 0, "{text}: no file is left");
    });
}

#[test]
fn a_killed_supervisor_leaves_neither_process_nor_file() {
    each_killed(|text, dir| {
        let load = start_working(text);
        let leader = load.process().unwrap();
        kill_process(leader, Signal::KILL).unwrap();
        eventually("the end is noticed", || !load.alive());
        let end = load.stop(0, now_ns());
        assert_eq!(end.ended, "supervisor: signal 9", "{text}");
        eventually("nothing is left", || group(leader).is_empty());
        assert_eq!(entries(dir), 0, "{text}: no file is left");
    });
}

#[test]
fn a_killed_worker_is_the_end_of_each_load() {
    each_killed(|text, dir| {
        let load = start_working(text);
        let leader = load.process().unwrap();
        let parent = leader.as_raw_nonzero().to_string();
        let is_worker = |pid: &Pid| stat_fields(*pid)[1] == parent;
        let worker = workers(leader).into_iter().find(is_worker).unwrap();
        kill_process(worker, Signal::KILL).unwrap();
        eventually("the end is reported", || !load.alive());
        let end = load.stop(0, now_ns());
        assert!(end.ended.starts_with("worker "), "{text}: {}", end.ended);
        assert!(end.fault.is_some(), "{text}");
        assert_eq!((group(leader), entries(dir)), (vec![], 0), "{text}");
    });
}

#[test]
fn what_is_left_when_everybody_was_killed_is_removed_by_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let text = with_dir("files:dir=DIR,files=1000", dir.path());
    let (mut tardy, leader) = start_stand_in(&text);
    eventually("files", || entries(dir.path()) == 1);
    let left = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    tardy.kill().unwrap();
    // It may have noticed already, and be clearing up; then it is gone in good order.
    let _ = kill_process(leader, Signal::KILL);
    tardy.wait().unwrap();
    eventually("nobody lives", || group(leader).is_empty());
    let load = start_working(&text);
    assert!(!left.exists(), "what was left is gone");
    assert_eq!(entries(dir.path()), 1, "and the new load has its own");
    drop(load);
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn a_ram_disk_goes_with_its_load_however_that_ends() {
    if !has_ram_disk() {
        return skip("ext4", "this needs root, loop devices and ext4");
    }
    for ends_by_itself in [true, false] {
        let load = start_working("ext4:size=16MiB,file=1MiB");
        let leader = load.process().unwrap();
        let disks = ram_disks(leader);
        assert_eq!(disks.len(), 1, "{disks:?}");
        assert!(!is_mounted(&disks[0]), "it is mounted nowhere");
        if ends_by_itself {
            drop(load);
        } else {
            for pid in group(leader) {
                let _ = kill_process(pid, Signal::KILL);
            }
            eventually("the end is noticed", || !load.alive());
        }
        eventually("the disk is gone", || ram_disks(leader).is_empty());
    }
}

#[test]
fn bad_parameters_are_refused_before_anything_starts() {
    for (text, wanted) in [
        ("burn:share=0", "from 1 to 100"),
        ("burn:period=10", "from 100us to 10s (units: ns, us, ms, s, m, h, d): write for example"),
        ("burn:period=1h", "a time with a unit"),
        ("burn:nice=20", "from 0 to 19"),
        ("background:tasks=0", "from 1 to 20000"),
        ("disk-write:access=fast", "one of cached, direct"),
        ("disk-write:dir=", "is not a text"),
        ("disk-read:size=1", "from 4096 to"),
        ("files:files=0", "from 1 to 1000000"),
        ("procfs:interval=-1ms", "a time with a unit"),
        ("memory:mode=eat", "one of touch, munmap, fork, exit"),
        ("compile:jobs=9999", "from 0 to 512"),
        ("ext4:size=1GiB", "from 16777216 to 134217728 bytes"),
        ("multicast:sockets=0", "from 1 to 20000"),
        ("signals:deliver=maybe", "one of yes, no"),
        ("netflood:via=wire", "one of loopback, veth"),
        ("netflood:size=9000", "from 1 to 1472"),
        ("timers:interval=0us", "from 50us to 1m (units"),
        ("printk:rate=5000", "from 1 to 1000"),
        ("printk:level=0", "from 1 to 7"),
    ] {
        let said = LoadSpec::parse(text).unwrap_err().to_string();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

#[test]
fn what_the_machine_has_not_is_refused_before_anything_starts() {
    for (text, wanted) in [
        ("disk-write:size=1024GiB,tasks=64", "bytes of free disk space"),
        ("disk-read:dir=/no/such/place", "name a directory that exists with dir="),
        ("disk-copy:access=direct,block=512", "a multiple of 4096"),
        ("compile:compiler=no-such-cc", "apt install gcc"),
        ("memory:size=16384GiB", "bytes of memory"),
        ("rt:tasks=10,utilisation=10", "is not from 20 to "),
    ] {
        let spec = LoadSpec::parse(text).unwrap();
        let said = RunningLoad::start(&spec, log_file(), Path::new(TARDY)).unwrap_err();
        assert!(said.to_string().contains(wanted), "{text}: {said}");
    }
}
