//! Stages and causes out of the kernel's own trace: the same as BPF's, and nothing left behind.
//! Needs root and tracefs, which is mounted for the program alone if it is not.

mod hwlat;
mod same_wakeups;
mod short_of_memory;

use std::{
    fs,
    path::Path,
    process::{Child, Command},
};

use serde_json::Value;

use super::{
    greedy::{Greedy, NAME},
    support::{
        LONG, Said, Store, codes, eventually, finish, is_root, list, piped, signal, skip, whole,
    },
    tracing::can_trace,
};

const TRACING: &str = "/sys/kernel/tracing";
const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// Gives the program tracefs where this machine has not mounted it.
const MOUNT: &str = "test -d /sys/kernel/tracing/instances \
                     || mount -t tracefs nodev /sys/kernel/tracing || exit 77";

struct Machine {
    store: Store,
}

impl Machine {
    fn new() -> Option<Self> {
        let is_there =
            fs::read_to_string("/proc/filesystems").is_ok_and(|text| text.contains("tracefs"));
        if !is_root() || !is_there || !Path::new(TRACING).exists() {
            skip("needs root and a kernel with tracefs");
            return None;
        }
        let machine = Self { store: Store::new() };
        let said = finish(piped(&mut machine.command("true", &["--version"])));
        if said.code != Some(0) {
            skip("tracefs cannot be mounted here");
            return None;
        }
        Some(machine)
    }

    /// In its own mounts, after `script`.
    fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let inner = self.store.shell(&format!("{MOUNT}\n{script}"), arguments);
        let mut outer = Command::new("unshare");
        outer.arg("--mount").arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        outer.current_dir(self.store.path());
        outer.env("TARDY_JOURNAL", self.store.path().join("state/journal"));
        outer
    }

    fn start(&self, arguments: &[&str]) -> Child {
        piped(&mut self.command("", arguments))
    }

    /// Runs to the end, and leaves no instance of the kernel's tracer.
    fn shell(&self, script: &str, arguments: &[&str]) -> Said {
        let child = piped(&mut self.command(script, arguments));
        let pid = child.id();
        let said = finish(child);
        assert!(!has_instance(pid), "{said:?}");
        said
    }

    /// The record of a run of CPU 0 in this way.
    fn traced(&self, name: &str, more: &[&str]) -> Value {
        let run = ["run", "timer", "--cpus", "0", "--warmup", "200ms", "--name", name];
        let said = self.shell("", &[&run[..], more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        self.store.show(name)
    }
}

/// Whoever reads an instance keeps it from being removed.
#[test]
fn an_instance_that_stays_is_said_however_quiet_and_is_an_error() {
    let Some(machine) = Machine::new() else { return };
    if !Path::new(INSTANCES).exists() {
        return skip("needs tracefs mounted for all, to hold an instance");
    }
    let run = ["run", "timer", "--cpus=0", "--warmup=0s", "--trace=stages", "--trace-by=tracefs"];
    let child =
        machine.start(&[&run[..], &["--quiet", "--duration", LONG, "--name", "r"]].concat());
    machine.store.wait_measuring("r");
    let instance = format!("{INSTANCES}/tardy-{}", child.id());
    let held = fs::File::open(format!("{instance}/trace_pipe")).unwrap();
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(2), "{said:?}");
    let is_line = |line: &str| line.contains("not restored") && line.contains(&instance);
    assert!(said.err.lines().any(is_line), "{said:?}");
    drop(held);
    let said = finish(machine.start(&["restore"]));
    assert_eq!((said.code, said.out.contains(&instance)), (Some(0), true), "{said:?}");
}

/// Whether the kernel's tracer has the instance of the tardy with this number.
fn has_instance(pid: u32) -> bool {
    let script = format!("{MOUNT}; ls {INSTANCES}");
    let listed = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let own = format!("tardy-{pid}");
    String::from_utf8(listed.stdout).unwrap().lines().any(|name| name == own)
}

fn median(record: &Value, series: &str) -> f64 {
    let all = list(&record["series"]);
    let named = all.iter().find(|one| one["name"] == series);
    let series = named.unwrap_or_else(|| panic!("no {series}: {record}"));
    whole(&series["percentiles"]["50"]) as f64
}

const STAGES: [&str; 4] = ["irq", "handler", "dispatch", "user"];

/// Every wake-up has all its stages or none, and is counted so. Whether one has them.
fn counts_add_up(record: &Value) -> bool {
    let count = |name: &str| {
        let named = list(&record["series"]).iter().find(|one| one["name"] == name);
        whole(&named.unwrap_or_else(|| panic!("no {name}: {record}"))["count"])
    };
    let (total, unmatched) = (count("cpu0"), whole(&record["trace"]["unmatched"]));
    for stage in STAGES {
        assert_eq!(count(&format!("cpu0/{stage}")), total - unmatched, "{record}");
    }
    unmatched < total
}

/// An idle CPU's own switches are missing from the trace of some kernels: this one is busy.
const STAGED: [&str; 8] =
    ["--interval", "5ms", "--samples", "300", "--load", "burn", "--trace", "stages"];

#[test]
fn every_wake_up_has_all_its_stages_or_none() {
    let Some(machine) = Machine::new() else { return };
    let mut turns = 0;
    eventually("a wake-up with stages", || {
        turns += 1;
        let by = ["--trace-by", "tracefs"];
        let record = machine.traced(&format!("r{turns}"), &[&STAGED[..], &by].concat());
        let trace = &record["trace"];
        assert_eq!((&trace["by"], &trace["found"]), (&"tracefs".into(), &"stages".into()));
        assert!(codes(&record).contains(&"traced_by_tracefs"), "{record}");
        counts_add_up(&record)
    });
}

#[test]
#[ignore = "live: twin root_tracefs::same_wakeups::in_counted_time_stages_are_those_of_the_text"]
fn stages_are_those_of_bpf() {
    let Some(machine) = Machine::new() else { return };
    if !can_trace() {
        return skip("BPF cannot be had here, to be compared with");
    }
    let by = |by: &str, turn: usize| {
        machine.traced(&format!("{by}{turn}"), &[&STAGED[..], &["--trace-by", by]].concat())
    };
    let mut ratios = Vec::new();
    // A wrong rule makes a stage nothing, or the whole: tens of times as much in every turn.
    let agrees = |ratios: &[[f64; 4]], stage: usize| {
        ratios.iter().any(|of| of[stage].ln().abs() < 5_f64.ln())
    };
    for turn in 0..8 {
        let (own, bpf) = (by("tracefs", turn), by("bpf", turn));
        assert_eq!((&own["trace"]["by"], &bpf["trace"]["by"]), (&"tracefs".into(), &"bpf".into()));
        ratios.push(STAGES.map(|stage| {
            let stage = format!("cpu0/{stage}");
            median(&own, &stage).max(1.0) / median(&bpf, &stage).max(1.0)
        }));
        if turn > 0 && (0..4).all(|stage| agrees(&ratios, stage)) {
            break;
        }
    }
    assert!((0..4).all(|stage| agrees(&ratios, stage)), "{STAGES:?}: {ratios:?}");
}

#[test]
fn where_bpf_is_refused_the_kernels_own_tracer_does_it_and_the_record_says_why() {
    let Some(machine) = Machine::new() else { return };
    let refused = "exec setpriv --bounding-set=-bpf,-perfmon,-sys_admin \"$0\" \"$@\"";
    if machine.shell(refused, &["--version"]).code != Some(0) {
        return skip("setpriv cannot take the rights for BPF away here");
    }
    let run = ["run", "timer", "--cpus", "0", "--warmup", "200ms", "--duration", "1s"];
    let said = machine.shell(refused, &[&run[..], &["--name", "r"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = machine.store.show("r");
    let trace = &record["trace"];
    assert_eq!((&trace["by"], &trace["found"]), (&"tracefs".into(), &"peaks".into()), "{record}");
    assert!(trace["why_not_bpf"].as_str().unwrap().contains("no right to trace"), "{record}");
    assert!(codes(&record).contains(&"traced_by_tracefs"), "{record}");
    let said =
        machine.shell(refused, &[&run[..], &["--trace-by", "bpf", "--trace", "stages"]].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("no right to trace"), "{said:?}");
}

#[test]
fn a_task_that_kept_the_cpu_is_named() {
    let Some(machine) = Machine::new() else { return };
    let Some(_greedy) = Greedy::on(0) else { return skip("no real-time threads here") };
    let mut turns = 0;
    // A busy machine has later wake-ups than that makes.
    eventually("the greedy thread is named", || {
        turns += 1;
        let name = format!("hog{turns}");
        let asked = ["--policy", "other", "--duration", "3s", "--trace-by", "tracefs"];
        let record = machine.traced(&name, &asked);
        assert_eq!(record["trace"]["found"], "peaks", "{record}");
        let said = machine.store.run(&["why", &name, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.out.contains(&format!("\"{NAME}\""))
    });
}

#[test]
fn kill_9_leaves_what_restore_removes() {
    let Some(machine) = Machine::new() else { return };
    let run = ["run", "timer", "--warmup", "0s", "--duration", LONG, "--trace-by", "tracefs"];
    let child = machine.start(&[&run[..], &["--trace", "stages", "--name", "killed"]].concat());
    machine.store.wait_measuring("killed");
    let pid = child.id();
    assert!(has_instance(pid));
    signal(&child, "KILL");
    finish(child);
    eventually("every process is gone", || machine.store.processes().is_empty());
    assert!(has_instance(pid), "it is the kernel's by now");
    let said = machine.shell("", &["restore"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(&format!("/instances/tardy-{pid}")), "{said:?}");
    assert!(!has_instance(pid));
    assert!(!machine.store.path().join("state/journal").exists());
}

#[test]
fn what_it_cannot_do_is_an_error_before_it_begins() {
    let Some(machine) = Machine::new() else { return };
    for (asked, words) in [
        (&["run", "pingpong", "--trace", "stages", "--trace-by", "tracefs"][..], "timer alone"),
        (&["run", "timer", "--trace-by", "tracefs", "--stacks", "always"], "--stacks needs BPF"),
        (&["run", "timer", "--trace", "off", "--trace-by", "bpf"], "--trace-by is not supported"),
    ] {
        let said = machine.shell("", asked);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
}
