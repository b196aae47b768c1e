//! A machine whose files are in a directory is read, changed and read again: each change must be
//! reported.

use std::{fs, path::Path};

use tardy_hot::tally::Totals;

use super::*;
use crate::{
    run::{Caveat, SeriesHead, hlog, summary::summarize},
    session::{
        caveats,
        evidence::{Evidence, MachineEvidence},
    },
};

/// Writes files below `root`, by their paths on the machine.
fn plant(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const CPU: &str = "/sys/devices/system/cpu";

/// All that the kernel said since boot.
const QUIET_LOG: &str = "6,0,5,-;Linux version\n";

/// Two CPUs, a clock, a governor, locked memory, a quiet log.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    plant(
        root.path(),
        &[
            (&format!("{CPU}/online"), "0-1\n"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            (&format!("{CPU}/cpu0/cpufreq/scaling_governor"), "performance\n"),
            (&format!("{CPU}/cpu0/cpufreq/scaling_cur_freq"), "3000000\n"),
            (&format!("{CPU}/cpu0/cpufreq/stats/total_trans"), "7\n"),
            (&format!("{CPU}/cpu0/thermal_throttle/core_throttle_count"), "2\n"),
            ("/proc/stat", "cpu0 1 0 0 0 0 0 0 0\n"),
            ("/proc/interrupts", "  CPU0\n"),
            ("/proc/cpuinfo", "processor : 0\n"),
            ("/proc/thread-self/stat", "1 (a) R\n"),
            ("/proc/self/status", "Name:\ttardy\nVmLck:\t  4096 kB\n"),
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            ("/dev/kmsg", QUIET_LOG),
        ],
    );
    root
}

/// The caveats of a run on CPU 0 during which these files changed, at one look or for good.
fn caveats_after(changes: &[(&str, &str)], put_back: bool) -> Vec<Caveat> {
    let machine = machine();
    let measured: Cpus = "0".parse().unwrap();
    let mut monitor = ConditionsMonitor::new(Root::at(machine.path()), measured, &[]);
    monitor.begin();
    monitor.begin_counts();
    monitor.poll(1_000_000_000, &mut || {});
    let before: Vec<(String, String)> = changes
        .iter()
        .map(|(path, _)| {
            let path = (*path).to_owned();
            let file = machine.path().join(path.trim_start_matches('/'));
            (path, fs::read_to_string(file).unwrap_or_default())
        })
        .collect();
    plant(machine.path(), changes);
    monitor.poll(2_000_000_000, &mut || {});
    if put_back {
        let before: Vec<(&str, &str)> =
            before.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        plant(machine.path(), &before);
    }
    monitor.poll(3_000_000_000, &mut || {});
    monitor.end();
    caveats_of(&monitor)
}

fn caveats_of(monitor: &ConditionsMonitor) -> Vec<Caveat> {
    let machine = MachineEvidence {
        measured: monitor.measured.clone(),
        history: monitor.history().clone(),
        ..MachineEvidence::default()
    };
    // A run without a sample would have its own caveat.
    let head = SeriesHead { name: "cpu0".into(), cpu: Some(0), period_ns: None };
    let totals = Totals { count: 1, ..Totals::NONE };
    let series = vec![summarize(&head, &hlog::empty(), &totals)];
    let evidence = Evidence { machine, series, ..Evidence::default() };
    caveats::caveats(&evidence).into_iter().map(Caveat::from).collect()
}

/// The one caveat that comes of a change: its code and its text.
fn only(changes: &[(&str, &str)], put_back: bool) -> (String, String) {
    let caveats = caveats_after(changes, put_back);
    let [caveat] = caveats.as_slice() else { panic!("{changes:?}: {caveats:?}") };
    (caveat.code.clone(), caveat.text.clone())
}

fn assert_reported(change: (&str, &str), code: &str, word: &str) {
    let (found, text) = only(&[change], false);
    assert_eq!(found, code);
    assert!(text.contains(word), "{text}");
}

#[test]
fn a_machine_that_stays_as_it_is_gives_no_doubt() {
    assert_eq!(caveats_after(&[], false), []);
}

#[test]
fn a_measured_cpu_that_goes_offline_is_reported_even_when_it_comes_back() {
    let online = format!("{CPU}/online");
    for put_back in [false, true] {
        let (code, text) = only(&[(&online, "1\n")], put_back);
        assert_eq!(
            (code.as_str(), text.contains(": 0.")),
            ("measured_cpu_offline", true),
            "{text}"
        );
    }
}

#[test]
fn other_cpus_that_come_or_go_are_reported_even_when_they_come_back() {
    let online = format!("{CPU}/online");
    for (now, put_back) in [("0\n", true), ("0\n", false), ("0-2\n", false)] {
        let (code, _) = only(&[(&online, now)], put_back);
        assert_eq!(code, "cpus_changed");
    }
}

#[test]
fn another_clock_source_is_reported_even_when_the_first_comes_back() {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    for (put_back, words) in [(false, "tsc, then hpet."), (true, "tsc, then hpet, then tsc.")] {
        let (code, text) = only(&[(file, "hpet\n")], put_back);
        assert_eq!(code, "clock_source_changed");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn another_governor_is_reported_even_when_the_first_comes_back() {
    let file = format!("{CPU}/cpu0/cpufreq/scaling_governor");
    assert_reported(
        (&file, "powersave\n"),
        "governor_changed",
        "CPU 0 from performance to powersave",
    );
    assert_eq!(only(&[(&file, "powersave\n")], true).0, "governor_changed");
}

#[test]
fn another_frequency_is_reported_and_a_wavering_one_is_not() {
    let now = format!("{CPU}/cpu0/cpufreq/scaling_cur_freq");
    assert_reported((&now, "1200000\n"), "frequency_changed", "from 3000 MHz at the start to 1200");
    assert_eq!(caveats_after(&[(&now, "2990000\n")], false), []);
    let changes = format!("{CPU}/cpu0/cpufreq/stats/total_trans");
    assert_reported((&changes, "10\n"), "frequency_changed", "CPU 0 3 times");
}

#[test]
fn a_cpu_that_is_too_hot_is_reported() {
    let core = format!("{CPU}/cpu0/thermal_throttle/core_throttle_count");
    assert_reported((&core, "14\n"), "cpu_throttled", "CPU 0 12 times");
}

#[test]
fn what_only_counts_is_counted_from_the_end_of_the_warm_up() {
    let machine = machine();
    let changes = format!("{CPU}/cpu0/cpufreq/stats/total_trans");
    let heat = format!("{CPU}/cpu0/thermal_throttle/core_throttle_count");
    let mut monitor = ConditionsMonitor::new(Root::at(machine.path()), "0".parse().unwrap(), &[]);
    monitor.begin();
    plant(machine.path(), &[(&changes, "10\n"), (&heat, "9\n")]);
    monitor.begin_counts();
    plant(machine.path(), &[(&changes, "14\n")]);
    monitor.end();
    let cpu = &monitor.record().cpus[0];
    assert_eq!((cpu.frequency_changes, cpu.throttles), (Some(4), Some(0)));
}

#[test]
fn memory_that_does_not_stay_locked_is_reported() {
    let status = |kib: u32| format!("Name:\ttardy\nVmLck:\t  {kib} kB\n");
    assert_reported(("/proc/self/status", &status(0)), "memory_unlocked", "4096 KiB at the start");
    assert_eq!(caveats_after(&[("/proc/self/status", &status(3_900))], false), []);
}

#[test]
fn threads_that_cannot_be_asked_for_are_reported_and_those_that_have_ended_are_not() {
    let unread = |tid| {
        let machine = machine();
        let armed = Found { tid, ..Found::of_this_thread().unwrap() };
        let threads = [("cpu0".to_owned(), armed)];
        let root = Root::at(machine.path());
        let mut monitor = ConditionsMonitor::new(root, "0".parse().unwrap(), &threads);
        monitor.begin();
        monitor.poll(1, &mut || {});
        monitor.end();
        monitor.unread().into_iter().map(|unread| unread.source).collect::<Vec<_>>()
    };
    let ended = std::thread::spawn(sched::thread_id).join().unwrap();
    assert_eq!(unread(ended), [""; 0]);
    assert_eq!(unread(-1), ["sched_getattr"], "no number of a thread");
}

#[test]
fn a_quota_that_was_used_up_during_the_run_is_reported() {
    let stat = |times: u64| format!("nr_throttled {times}\nthrottled_usec {times}000\n");
    let machine = machine();
    let write = |times| plant(machine.path(), &[("/sys/fs/cgroup/box/cpu.stat", &stat(times))]);
    plant(machine.path(), &[("/proc/self/cgroup", "0::/box\n")]);
    let monitor = |after| {
        write(4);
        let root = Root::at(machine.path());
        let mut monitor = ConditionsMonitor::new(root, "0".parse().unwrap(), &[]);
        monitor.begin();
        write(after);
        monitor.end();
        caveats_of(&monitor)
    };
    assert_eq!(monitor(4), [], "used up before the run");
    let found = monitor(9);
    let codes: Vec<&str> = found.iter().map(|caveat| caveat.code.as_str()).collect();
    assert_eq!(codes, ["cpu_quota_used_up"]);
    assert!(
        found[0].text.contains("CPU quota 5 times") && found[0].text.contains(" ms in all"),
        "{found:?}"
    );
}

/// A monitor that has looked at a machine with these files, on which nothing happened.
fn watched(files: &[(&str, &str)]) -> ConditionsMonitor {
    let machine = machine();
    plant(machine.path(), files);
    let root = Root::at(machine.path());
    let mut monitor = ConditionsMonitor::new(root, "0".parse().unwrap(), &[]);
    monitor.begin();
    monitor.end();
    monitor
}

#[test]
fn a_quota_that_cannot_be_looked_at_is_named() {
    let unread = |files: &[(&str, &str)]| {
        let monitor = watched(files);
        let unread = monitor.unread().into_iter();
        unread.map(|unread| (unread.what, unread.source)).collect::<Vec<_>>()
    };
    let group = ("/proc/self/cgroup", "0::/box\n");
    let named = ("CPU quotas".to_owned(), "/sys/fs/cgroup".to_owned());
    assert_eq!(unread(&[group]), [named], "no group is visible");
    let stat = ("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1\n");
    assert!(unread(&[group, stat]).is_empty(), "it has no quota");
}

#[test]
fn rt_throttling_is_reported_when_the_kernel_logs_it_and_not_when_it_had_before() {
    let log = "6,0,5,-;Linux version\n4,2,9,-;sched: RT throttling activated\n";
    assert_reported(("/dev/kmsg", log), "rt_throttled", "RT throttling");
    let monitor = watched(&[("/dev/kmsg", log)]);
    assert_eq!(caveats_of(&monitor), []);
    assert_eq!(monitor.record().rt_throttled, None, "it says so once a boot");
}

#[test]
fn a_log_that_could_not_have_said_it_leaves_rt_throttling_unknown() {
    let recorded = |files: &[(&str, &str)]| {
        let monitor = watched(files);
        assert_eq!(caveats_of(&monitor), []);
        monitor.record().rt_throttled
    };
    let new = ("/proc/sys/kernel/osrelease", "6.12.9\n");
    let config = |text| ("/boot/config-6.12.9", text);
    assert_eq!(recorded(&[]), Some(false));
    assert_eq!(recorded(&[("/dev/kmsg", "6,70,5,-;eth0 up\n")]), None, "its beginning is lost");
    assert_eq!(recorded(&[("/dev/kmsg", "")]), None);
    assert_eq!(recorded(&[new]), None, "the fair server logs nothing");
    assert_eq!(recorded(&[new, config("# CONFIG_RT_GROUP_SCHED is not set\n")]), None);
    assert_eq!(recorded(&[new, config("CONFIG_RT_GROUP_SCHED=y\n")]), Some(false));
}

#[test]
fn rt_throttling_is_reported_where_the_beginning_of_the_log_is_lost() {
    let (before, log) =
        ("6,70,5,-;eth0 up\n", "6,70,5,-;eth0 up\n4,71,9,-;RT throttling activated\n");
    let machine = machine();
    plant(machine.path(), &[("/dev/kmsg", before)]);
    let mut monitor = ConditionsMonitor::new(Root::at(machine.path()), "0".parse().unwrap(), &[]);
    monitor.begin();
    plant(machine.path(), &[("/dev/kmsg", log)]);
    monitor.end();
    assert_eq!(monitor.record().rt_throttled, Some(true));
}

#[test]
fn a_suspended_machine_is_reported_and_clocks_read_in_turn_are_no_suspend() {
    let at = |suspended_ns: i64| Conditions { suspended_ns, ..Conditions::default() };
    let codes = |slept_ns: i64| {
        let mut monitor = ConditionsMonitor::new(Root::at("/nowhere"), Cpus::default(), &[]);
        monitor.history = ConditionsHistory::of(at(5_000_000_000));
        monitor.history.add(at(5_000_000_000 + slept_ns));
        caveats_of(&monitor).into_iter().map(|caveat| caveat.code).collect()
    };
    let codes: [Vec<String>; 2] = [codes(3_000_000), codes(3_000_000_000)];
    assert_eq!(codes, [Vec::new(), vec!["suspended".to_owned()]]);
}

#[test]
fn a_thread_that_runs_on_other_terms_for_one_look_is_reported_with_the_moment() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        sender.send(Found::of_this_thread().unwrap()).unwrap();
        let _ = ended.recv();
    });
    let armed = receiver.recv().unwrap();
    // As if it had been armed as something else, which it is not at this look.
    let mut other = armed.clone();
    other.scheduling.priority = 90;
    other.scheduling.policy = "fifo".into();
    let threads = [("cpu0".to_owned(), other), ("cpu1".to_owned(), armed.clone())];
    let mut monitor = ConditionsMonitor::new(Root::at("/nowhere"), Cpus::default(), &threads);
    monitor.poll(1_250_000_000, &mut || {});
    monitor.poll(2_000_000_000, &mut || {});
    let broken = monitor.deviations();
    let [ThreadDeviation { series, deviation }] = broken.as_slice() else { panic!("{broken:?}") };
    let Deviation::Differs { asked, at_ns, .. } = deviation else { panic!("{deviation:?}") };
    assert_eq!((series.as_str(), asked.priority, *at_ns), ("cpu0", 90, Some(1_250_000_000)));
    end.send(()).unwrap();
    thread.join().unwrap();
    monitor.poll(3_000_000_000, &mut || {});
    assert_eq!(monitor.deviations().len(), 1, "a thread that is gone does not count");
}

#[test]
fn a_shield_that_is_changed_is_reported_with_the_first_look_that_saw_it() {
    let (machine, file) = (machine(), "/cg/tardy-shield/cpuset.cpus.partition");
    plant(machine.path(), &[(file, "isolated\n")]);
    let root = Root::at(machine.path());
    let cpus: Cpus = "0".parse().unwrap();
    let shield = ShieldWatch::begin(&root, &cpus, vec![file.into()], Vec::new());
    let mut monitor = ConditionsMonitor::new(root, cpus, &[]).guard(Some(shield));
    monitor.begin();
    monitor.poll(1_000_000_000, &mut || {});
    assert_eq!(monitor.shield_loss(), None);
    plant(machine.path(), &[(file, "member\n")]);
    monitor.poll(2_000_000_000, &mut || {});
    plant(machine.path(), &[(file, "isolated\n")]);
    monitor.poll(3_000_000_000, &mut || {});
    monitor.end();
    let (loss, at_ns) = monitor.shield_loss().unwrap();
    assert_eq!((loss.path.as_str(), loss.now.as_deref()), (file, Some("member")));
    assert_eq!(at_ns, Some(2_000_000_000));
}

#[test]
fn a_shield_that_is_gone_at_the_end_is_reported() {
    let (machine, file) = (machine(), "/cg/tardy-shield/cpuset.cpus");
    plant(machine.path(), &[(file, "0\n")]);
    let root = Root::at(machine.path());
    let cpus: Cpus = "0".parse().unwrap();
    let shield = ShieldWatch::begin(&root, &cpus, vec![file.into()], Vec::new());
    let mut monitor = ConditionsMonitor::new(root, cpus, &[]).guard(Some(shield));
    monitor.begin();
    fs::remove_file(machine.path().join("cg/tardy-shield/cpuset.cpus")).unwrap();
    monitor.end();
    let (loss, at_ns) = monitor.shield_loss().unwrap();
    assert_eq!((loss.now, at_ns), (None, None));
}

#[test]
fn a_shield_that_cannot_be_looked_at_is_named() {
    let machine = machine();
    let root = Root::at(machine.path());
    let cpus: Cpus = "0".parse().unwrap();
    let file = "/cg/tardy-shield/cpuset.cpus";
    let shield = ShieldWatch::begin(&root, &cpus, vec![file.into()], Vec::new());
    let mut monitor = ConditionsMonitor::new(root, cpus, &[]).guard(Some(shield));
    monitor.begin();
    let named =
        |monitor: &ConditionsMonitor| monitor.unread().iter().any(|unread| unread.source == file);
    monitor.end();
    assert!(named(&monitor), "{:?}", monitor.unread());
    assert_eq!(monitor.shield_loss(), None);
}
