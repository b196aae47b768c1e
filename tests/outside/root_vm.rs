//! In a guest of `cargo xtask vm`: what a run says about another kernel, and what it does on a
//! machine that changes under it. Here the whole machine may be changed.

use std::fs;

use serde_json::Value;

use super::{
    schema::{faults, schema},
    support::{
        LONG, SHORT, Store, codes, eventually, finish, in_guest, list, piped, signal, skip, whole,
    },
};

const CGROUPS: &str = "/sys/fs/cgroup";

/// A file of /proc or /sys that is there in every guest.
fn read(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().to_owned()
}

/// Writes a setting.
fn set(path: &str, value: &str) {
    fs::write(path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// A setting that is as before again when this goes, so that tests do not meet each other's.
struct Changed {
    path: String,
    before: String,
}

impl Changed {
    fn to(path: &str, value: &str) -> Self {
        let before = read(path);
        set(path, value);
        Self { path: path.to_owned(), before }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = fs::write(&self.path, &self.before);
    }
}

/// Whether this is not a guest; says so.
fn is_elsewhere() -> bool {
    if !in_guest() {
        skip("only in a guest of cargo xtask vm");
    }
    !in_guest()
}

/// The record of a run of half a second.
fn measured(store: &Store, more: &[&str]) -> Value {
    store.measure("r", &[&["--interval", "10ms", "--duration", "500ms"], more].concat());
    store.show("r")
}

#[test]
fn facts_are_those_of_the_guest() {
    if is_elsewhere() {
        return;
    }
    let record = measured(&Store::new(), &[]);
    let facts = &record["facts"];
    assert_eq!(facts["kernel"], read("/proc/sys/kernel/osrelease"));
    assert_eq!(facts["kernel_version"], read("/proc/sys/kernel/version"));
    assert_eq!(facts["kernel_cmdline"], read("/proc/cmdline"));
    assert_eq!(facts["hostname"], "guest");
    assert_eq!(facts["cpus_online"], "0-1");
    assert_eq!(facts["boot_id"], read("/proc/sys/kernel/random/boot_id"));
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    assert_eq!(facts["clock_source"], source);
    // Plain emulation sets the bit of a hypervisor, and its firmware names its maker.
    assert_eq!(facts["virtualisation"], "QEMU", "{facts}");
    assert!(codes(&record).contains(&"virtual_machine"), "{record}");
}

#[test]
fn preemption_is_what_the_kernel_was_built_or_booted_with() {
    if is_elsewhere() {
        return;
    }
    let found = measured(&Store::new(), &[])["facts"]["preemption"].clone();
    let cmdline = read("/proc/cmdline");
    let asked = cmdline.split(' ').rev().find_map(|word| word.strip_prefix("preempt="));
    // A kernel with PREEMPT_RT heeds nothing else.
    let is_rt = read("/proc/sys/kernel/version").contains("PREEMPT_RT");
    let expected =
        if is_rt { "rt" } else { asked.expect("a guest has preempt= on its command line") };
    assert_eq!(found["model"], expected, "{found}");
}

#[test]
fn without_debugfs_the_log_or_the_command_line_knows_the_preemption() {
    if is_elsewhere() {
        return;
    }
    let store = Store::new();
    let hidden = "mount -t tmpfs tmpfs /sys/kernel/debug || exit 9; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("unshare");
    let tardy = store.tardy(&["run", "timer", "--trace=off", "--duration", "200ms", "--name", "r"]);
    command.args(["-m", "sh", "-c", hidden]).arg(tardy.get_program()).args(tardy.get_args());
    command.current_dir(store.path()).env("TARDY_STORE", store.runs());
    let said = finish(piped(&mut command));
    assert_eq!(said.code, Some(0), "{said:?}");
    let hidden = store.show("r")["facts"]["preemption"].clone();
    let seen = measured(&Store::new(), &[])["facts"]["preemption"].clone();
    assert_eq!(hidden["model"], seen["model"], "{hidden} {seen}");
    assert_ne!(hidden["source"], "debugfs");
}

#[test]
fn a_loaded_run_is_whole_and_keeps_to_the_schema() {
    if is_elsewhere() {
        return;
    }
    let store = Store::new();
    let record = measured(&store, &["--load", "hackbench:groups=1", "--raw"]);
    assert_eq!(record["status"], "complete", "{record}");
    assert_ne!(record["validity"], "invalid", "{record}");
    assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
    let names: Vec<&Value> = list(&record["series"]).iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["cpu0", "cpu1"]);
    assert!(list(&record["series"]).iter().all(|series| whole(&series["count"]) > 0));
    assert!(whole(&record["loads"][0]["proof"]["operations"]) > 0, "{record}");
    assert_eq!(record["setup"]["found"]["policy"], "fifo 90", "{record}");
    assert_eq!(record["setup"]["found"]["memory_lock"]["locked"], "all", "{record}");
}

#[test]
fn a_cgroup_of_the_unified_hierarchy_says_which_cpus_there_are() {
    if is_elsewhere() {
        return;
    }
    let controllers = read(&format!("{CGROUPS}/cgroup.controllers"));
    assert!(controllers.split(' ').any(|name| name == "cpuset"), "{controllers}");
    set(&format!("{CGROUPS}/cgroup.subtree_control"), "+cpuset");
    let group = format!("{CGROUPS}/tardy-test");
    fs::create_dir(&group).unwrap();
    set(&format!("{group}/cpuset.cpus"), "1");
    let store = Store::new();
    let enter = format!("echo $$ >{group}/cgroup.procs || exit 9");
    let length = ["--interval", "10ms", "--duration", "300ms", "--name", "r"];
    let arguments = [&SHORT[..], &length].concat();
    let said = finish(piped(&mut store.shell(&enter, &arguments)));
    let refused = [&arguments[..], &["--cpus", "0"]].concat();
    let refused = finish(piped(&mut store.shell(&enter, &refused)));
    fs::remove_dir(&group).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    assert_eq!(record["facts"]["cpus_allowed"], "1");
    assert_eq!(list(&record["series"]).len(), 1);
    assert_eq!(record["series"][0]["name"], "cpu1");
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    assert!(refused.err.contains("--cpus 0") && refused.err.contains("allowed are 1"));
}

#[test]
fn a_limit_of_real_time_is_a_fact() {
    if is_elsewhere() {
        return;
    }
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    for (set, expected) in [("600000", Some(60.0)), ("-1", None)] {
        let _changed = Changed::to(limit, set);
        let record = measured(&Store::new(), &[]);
        assert_eq!(record["facts"]["rt_throttling_percent"].as_f64(), expected, "{set}");
    }
}

#[test]
fn governors_are_those_of_the_moment() {
    if is_elsewhere() {
        return;
    }
    let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let _first = Changed::to(&governor(0), "performance");
    let _second = Changed::to(&governor(1), "schedutil");
    let record = measured(&Store::new(), &[]);
    let expected = ["performance: 0", "schedutil: 1"].map(Value::from);
    assert_eq!(list(&record["facts"]["governors"]), expected);
    let _second = Changed::to(&governor(1), "performance");
    let record = measured(&Store::new(), &[]);
    assert_eq!(list(&record["facts"]["governors"]), [Value::from("performance: 0-1")]);
}

/// The record of a run during which `change` holds for some intervals, and tardy's exit code.
fn disturbed(store: &Store, change: impl FnOnce() -> Vec<Changed>) -> (Value, Option<i32>) {
    // Two threads that share a slow CPU leave time for everybody else.
    let length = ["--interval", "20ms", "--duration", LONG, "--name", "r"];
    let child = store.start(&[&SHORT[..], &length].concat());
    store.wait_measuring("r");
    let changed = change();
    let log = store.runs().join("r/series.hlog");
    let intervals = || fs::read_to_string(&log).unwrap().matches("\nTag=cpu0,").count();
    let before = intervals();
    eventually("more of CPU 0", || intervals() > before + 2);
    drop(changed);
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(store.processes(), [0; 0], "{said:?}");
    let record = store.show("r");
    assert_eq!(record["status"], "interrupted", "{said:?}");
    for series in list(&record["series"]) {
        assert!(whole(&series["count"]) > 0, "{series}");
    }
    (record, said.code)
}

#[test]
fn a_cpu_that_goes_offline_ends_no_run_but_makes_it_invalid() {
    if is_elsewhere() {
        return;
    }
    let store = Store::new();
    let (record, code) = disturbed(&store, || {
        let gone = Changed::to("/sys/devices/system/cpu/cpu1/online", "0");
        assert_eq!(read("/sys/devices/system/cpu/online"), "0");
        vec![gone]
    });
    assert_eq!(read("/sys/devices/system/cpu/online"), "0-1");
    assert!(codes(&record).contains(&"measured_cpu_offline"), "{record}");
    assert_eq!((&record["validity"], code), (&"invalid".into(), Some(4)), "{record}");
}

#[test]
fn another_clock_and_another_governor_are_reported_even_when_the_first_come_back() {
    if is_elsewhere() {
        return;
    }
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let governor = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
    let store = Store::new();
    let (record, code) = disturbed(&store, || {
        vec![Changed::to(clock, "hpet"), Changed::to(governor, "performance")]
    });
    for expected in ["clock_source_changed", "governor_changed"] {
        assert!(codes(&record).contains(&expected), "{expected}: {record}");
    }
    assert_eq!((&record["validity"], code), (&"invalid".into(), Some(4)), "{record}");
    assert_eq!((read(clock), read(governor)), ("tsc".into(), "schedutil".into()));
}

/// What a run that lasts some intervals of its log says of late responses, on a CPU that is set to
/// its lowest frequency meanwhile. A guest's frequencies are only numbers: how long the work takes
/// is the same at each.
fn late_at_lowest_frequency(intervals: usize) -> Value {
    let file = |name: &str| format!("/sys/devices/system/cpu/cpu1/cpufreq/{name}");
    let highest = Changed::to(&file("scaling_governor"), "performance");
    let store = Store::new();
    // The way to the work takes longer than what is left beside it.
    let work = ["--cpus", "1", "--interval", "50ms", "--work", "5ms", "--deadline", "5001us"];
    let length = ["--warmup", "200ms", "--duration", LONG, "--peaks", "5", "--name", "r"];
    let child = store.start(&[&["run", "timer", "--trace", "peaks"], &work[..], &length].concat());
    store.wait_measuring("r");
    let lower = Changed::to(&file("scaling_max_freq"), &read(&file("cpuinfo_min_freq")));
    let log = store.runs().join("r/series.hlog");
    let responses = || fs::read_to_string(&log).unwrap().matches("\nTag=cpu1/response,").count();
    let before = responses();
    eventually("more responses", || responses() >= before + intervals);
    drop((lower, highest));
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&store.run(&["why", "r", "--json"]).out).unwrap()
}

#[test]
fn work_on_a_cpu_below_its_highest_frequency_says_so() {
    if is_elsewhere() {
        return;
    }
    // The kernel's own tracer does not record frequencies.
    if tardy::kernel::can_trace().is_err() {
        return skip("it takes tracing by BPF");
    }
    let low = "own work, CPU below its highest frequency";
    let is_low = |part: &Value| part["name"] == low;
    // A busy guest explains only some responses, and those of the first seconds may be all.
    let found = [5, 20, 80, 240].into_iter().any(|intervals| {
        let why = late_at_lowest_frequency(intervals);
        list(&why["responses"]).iter().any(is_low)
    });
    assert!(found, "no response has that part");
}

/// Here a failure locks up a guest, which is ended from outside.
#[test]
fn without_throttling_threads_that_keep_every_cpu_are_ended_all_the_same() {
    if is_elsewhere() {
        return;
    }
    let _off = Changed::to("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    let store = Store::new();
    let run = ["run", "fake", "--unpaced", "--policy", "fifo", "--interval", "1us"];
    // Below the watchdog, and where nothing can be above them.
    for priority in ["98", "99"] {
        let length = ["--duration", "1h", "--warmup", "0s"];
        let said =
            store.run(&[&run[..], &length, &["--priority", priority, "--name", priority]].concat());
        assert_eq!(said.code, Some(0), "{priority}: {said:?}");
        let record = store.show(priority);
        assert_eq!(record["status"], "interrupted", "{priority}");
        assert!(codes(&record).contains(&"watchdog_ended"), "{record}");
        // On the console, should the other one lock it up.
        let ended = format!("<4>tardy-test: priority {priority} was ended");
        let _ = fs::write("/dev/kmsg", ended);
    }
}
