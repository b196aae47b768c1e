//! Settings of machines that stand in directories: set, read back, restored, tried, written out.

use std::{fs, path::Path};

use super::*;
use crate::{
    setup::journal::{Journal, KnownFile, tests::journal_in},
    sys::{cpus::Cpus, root::Root},
};

const FILES: &[(&str, &str)] = &[
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors", "performance powersave"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/name", "POLL\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state1/name", "C6\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state1/disable", "0\n"),
    ("/proc/sys/kernel/timer_migration", "1\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("/proc/sys/vm/stat_interval", "1\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/sys/kernel/debug/sched/preempt", "none (voluntary) full\n"),
    ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("/proc/irq/7/smp_affinity_list", "0-1\n"),
    ("/proc/irq/8/smp_affinity_list", "1\n"),
    ("/proc/irq/9/smp_affinity_list", "3\n"),
];

struct Machine {
    directory: tempfile::TempDir,
    root: Root,
    journal: Journal,
    cpus: Cpus,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = directory.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        let journal = journal_in(directory.path());
        Self { directory, root, journal, cpus: "1".parse().unwrap() }
    }

    fn set(&mut self, texts: &[&str]) -> Result<HeldSettings, String> {
        let choices: Vec<SettingChoice> = texts.iter().map(|text| text.parse().unwrap()).collect();
        HeldSettings::set(Some(&mut self.journal), &self.root, &choices, &self.cpus)
            .map_err(|error| error.to_string())
    }

    fn read(&self, path: &str) -> String {
        KnownFile::find(path).unwrap().read(&self.root).unwrap()
    }

    /// Every file with its text.
    fn all(&self) -> Vec<String> {
        FILES.iter().map(|(path, _)| self.root.read(path).unwrap()).collect()
    }
}

#[test]
fn each_setting_is_set_read_back_and_put_back() {
    for (choice, path, value) in [
        ("governor=performance", FILES[1].0, "performance"),
        ("idle_states=10", "/sys/devices/system/cpu/cpu1/cpuidle/state1/disable", "1"),
        ("timer_migration=0", "/proc/sys/kernel/timer_migration", "0"),
        ("thp=never", "/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        ("preempt=full", "/sys/kernel/debug/sched/preempt", "full"),
        ("workqueue_mask=away", "/sys/devices/virtual/workqueue/cpumask", "d"),
        ("irq_affinity=away", "/proc/irq/7/smp_affinity_list", "0"),
        ("irq:8=0,3", "/proc/irq/8/smp_affinity_list", "0,3"),
    ] {
        let mut machine = Machine::new();
        let before = machine.all();
        let held = machine.set(&[choice]).unwrap();
        assert_eq!(machine.read(path), value, "{choice}");
        assert_eq!(held.loss(), None, "{choice}");
        assert_eq!(held.found().len(), 1);
        assert_eq!(machine.journal.undo().failed, [""; 0], "{choice}");
        // What shows all choices in a kernel shows in a tree what was written.
        let after = machine.all();
        let is_as_before = |(one, other): (&String, &String)| {
            one == other
                || one.contains(&format!("[{other}]"))
                || one.contains(&format!("({other})"))
        };
        assert!(before.iter().zip(&after).all(is_as_before), "{choice}: {before:?} {after:?}");
    }
}

#[test]
fn interrupts_that_cannot_fire_here_stay_and_the_others_go_elsewhere() {
    let mut machine = Machine::new();
    let held = machine.set(&["irq_affinity=away"]).unwrap();
    let at = |irq: u32| machine.read(&format!("/proc/irq/{irq}/smp_affinity_list"));
    assert_eq!([at(7), at(8), at(9)], ["0", "0,2-3", "3"]);
    let found = &held.found()[0];
    assert_eq!((found.was.as_str(), found.found.as_str()), ("2 of 3 here", "0 of 3 here"));
}

#[test]
fn a_value_that_somebody_else_changed_is_noticed_also_of_what_was_only_looked_at() {
    for choice in ["timer_migration=0", "timer_migration=now"] {
        let mut machine = Machine::new();
        let held = machine.set(&[choice]).unwrap();
        fs::write(machine.root.path("/proc/sys/kernel/timer_migration"), "7\n").unwrap();
        let loss = held.loss().unwrap();
        assert_eq!((loss.name.as_str(), loss.now.as_deref()), ("timer_migration", Some("7")));
    }
}

#[test]
fn what_is_only_looked_at_changes_nothing_and_needs_no_journal() {
    let machine = Machine::new();
    let before = machine.all();
    let choices = table().filter(|setting| {
        trials(&machine.root, &machine.cpus)
            .iter()
            .any(|(own, trial)| own.name == setting.name && trial.is_ok())
    });
    let choices: Vec<SettingChoice> =
        choices.map(|setting| format!("{}=now", setting.name).parse().unwrap()).collect();
    assert!(choices.len() > 5, "{choices:?}");
    let held = HeldSettings::set(None, &machine.root, &choices, &machine.cpus).unwrap();
    assert_eq!((held.loss(), machine.all()), (None, before));
}

#[test]
fn a_later_setting_that_is_refused_says_so_and_the_journal_has_the_earlier() {
    let mut machine = Machine::new();
    let path = machine.root.path("/proc/sys/vm/stat_interval");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/nonexistent", &path).unwrap();
    let error = machine.set(&["timer_migration=0", "vm_stat_interval=60"]).unwrap_err();
    assert!(error.starts_with("--set vm_stat_interval=60 is not available: "), "{error}");
    machine.journal.undo();
    assert_eq!(machine.read("/proc/sys/kernel/timer_migration"), "1");
}

#[test]
fn what_is_no_setting_or_no_value_is_refused_with_what_there_is() {
    for (text, word) in [
        ("governor", "NAME=VALUE"),
        ("nosuch=1", "timer_migration"),
        ("irq:x=0", "irq:N"),
        ("task:0:cpus=1", "task:TID:cpus"),
        ("task:7:nice=1", "task:TID:cpus"),
        ("timer_migration=2", "from 0 to 1"),
        ("timer_migration=", "from 0 to 1"),
        ("thp=sometimes", "madvise"),
        ("governor=a b", "letters"),
        ("irq:7=", "list of CPUs"),
        ("irq:7=x", "list of CPUs"),
        ("task:7:policy=fifo", "fifo:N"),
        ("task:7:policy=fifo:100", "fifo:N"),
        ("task:7:policy=other:1", "fifo:N"),
    ] {
        let error = text.parse::<SettingChoice>().unwrap_err();
        assert!(error.contains(word), "{text}: {error}");
    }
    for text in ["rt_runtime=-1", "irq:7=0-2", "task:7:policy=fifo:1", "task:7:cpus=now"] {
        text.parse::<SettingChoice>().unwrap();
    }
}

#[test]
fn what_this_machine_has_not_or_has_already_is_not_tried_and_it_is_said_why() {
    let machine = Machine::new();
    let of = |name: &str| {
        let all = trials(&machine.root, &machine.cpus);
        all.into_iter().find(|(setting, _)| setting.name == name).unwrap().1
    };
    assert_eq!(of("governor"), Ok("powersave".into()));
    assert_eq!(of("idle_states"), Ok("C6, 133 us".into()));
    assert_eq!(of("rt_runtime"), Err(TrialRefusal::IsSo("-1".into())));
    for (name, word) in [("nmi_watchdog", "no /proc/sys"), ("fair_server", "fair_server/cpu1")] {
        let Err(TrialRefusal::Cannot(why)) = of(name) else { panic!("{name}") };
        assert!(why.contains(word), "{why}");
    }
    let everything = "0-3".parse().unwrap();
    let all = trials(&machine.root, &everything);
    let (_, trial) = all.into_iter().find(|(own, _)| own.name == "workqueue_mask").unwrap();
    let Err(TrialRefusal::Cannot(why)) = trial else { panic!() };
    assert!(why.contains("every CPU is measured"), "{why}");
    let known = machine.directory.path().join(FILES[2].0.trim_start_matches('/'));
    fs::write(known, "powersave ondemand\n").unwrap();
    let Err(TrialRefusal::Cannot(why)) = of("governor") else { panic!() };
    assert!(why.contains("no governor performance"), "{why}");
}

#[test]
fn every_setting_of_the_table_can_be_typed_and_its_files_can_be_put_back() {
    let mut names: Vec<&str> = table().map(|setting| setting.name).collect();
    for setting in table() {
        let choice: SettingChoice = format!("{}={}", setting.name, setting.better).parse().unwrap();
        assert_eq!(choice.flag(), format!("--set {}={}", setting.name, setting.better));
        let path = match setting.place {
            SettingPlace::File(path) | SettingPlace::Mask(path) => path.to_owned(),
            SettingPlace::OfCpus(before, after) => format!("{before}3{after}"),
            SettingPlace::IdleStates => {
                "/sys/devices/system/cpu/cpu3/cpuidle/state1/disable".into()
            }
            SettingPlace::Interrupts => "/proc/irq/3/smp_affinity_list".into(),
            SettingPlace::Interrupt(_) => panic!("{}: it has a number", setting.name),
        };
        assert!(KnownFile::find(&path).is_some(), "{path}");
        for text in [setting.what, setting.may_break] {
            assert!(!text.is_empty() && !text.ends_with('.') && !text.contains('\n'), "{text}");
        }
        let document = include_str!("../../../docs/reference/settings.md");
        assert!(document.contains(&format!("| `{}` |", setting.name)), "{}", setting.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each once");
}

#[test]
fn a_task_has_its_cpus_and_its_policy_for_a_time() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let tid = child.id();
    let directory = tempfile::tempdir().unwrap();
    let (root, mut journal) = (Root::default(), journal_in(directory.path()));
    let first: Cpus = Cpus::allowed().unwrap().iter().take(1).collect();
    let before = crate::sys::tasks::cpus(&root, i32::try_from(tid).unwrap());
    let choices = [format!("task:{tid}:cpus={first}"), format!("task:{tid}:policy=batch")];
    let choices = choices.map(|text| text.parse::<SettingChoice>().unwrap());
    let held = HeldSettings::set(Some(&mut journal), &root, &choices, &first).unwrap();
    let found: Vec<(String, String)> =
        held.found().into_iter().map(|found| (found.was, found.found)).collect();
    assert_eq!(found[0].1, first.to_string());
    assert_eq!(found[1], ("other".into(), "batch".into()));
    assert_eq!(held.loss(), None);
    // Those in the journal belong to the tree that stands for a machine, which has no such task.
    let changes = [crate::setup::journal::Change::Scheduling {
        tid: i32::try_from(tid).unwrap(),
        start: crate::sys::tasks::start(&root, i32::try_from(tid).unwrap()).unwrap(),
        policy: libc::SCHED_OTHER,
        priority: 0,
    }];
    assert_eq!(changes[0].undo(&root), Ok(Some(format!("policy of task {tid}: other"))));
    assert_eq!(changes[0].undo(&root), Ok(None));
    before.unwrap().pin(i32::try_from(tid).unwrap()).unwrap();
    assert_eq!(held.loss().unwrap().place, format!("CPUs of task {tid}"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(held.loss().unwrap().now, None);
    let gone = HeldSettings::set(None, &root, &choices, &first).unwrap_err().to_string();
    assert!(gone.contains(&format!("no task {tid}")), "{gone}");
}

#[test]
fn what_helps_is_written_out_with_its_undo_and_nothing_is_installed() {
    let machine = Machine::new();
    let of = |name: &str| {
        HelpfulSetting::of(Setting::find(name).unwrap(), &machine.root, &machine.cpus).unwrap()
    };
    let before = machine.all();
    let names = ["timer_migration", "thp", "irq_affinity", "governor", "workqueue_mask"];
    let files = drop_ins(&names.map(of));
    let text = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.unwrap_or_else(|| panic!("{path}: {files:?}")).text.clone()
    };
    assert!(text("sysctl.d/90-tardy.conf").contains("\nkernel.timer_migration = 0\n"));
    let pages = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\n";
    assert!(text("tmpfiles.d/90-tardy.conf").contains(pages));
    let service = text("systemd/tardy-settings.service");
    for line in [
        "ExecStart=-/bin/sh -c 'echo 0,2-3 > /proc/irq/8/smp_affinity_list'\n",
        "ExecStop=-/bin/sh -c 'echo 1 > /proc/irq/8/smp_affinity_list'\n",
    ] {
        assert!(service.contains(line), "{service}");
    }
    assert!(!service.contains("irq/9"), "it cannot fire there anyway");
    assert!(text("tuned/tardy/tuned.conf").contains("[sysctl]\nkernel.timer_migration=0\n"));
    assert!(text("kernel-command-line").contains("irqaffinity=0,2-3"));
    let undo = text("undo.sh");
    for line in ["echo '1' > /proc/sys/kernel/timer_migration\n", "echo 'madvise' > /sys/kernel/mm"]
    {
        assert!(undo.contains(line), "{undo}");
    }
    assert!(text("README").contains("irq_affinity may break: "));
    assert_eq!((machine.all(), drop_ins(&[])), (before, Vec::new()));
    assert!(files.iter().all(|file| Path::new(file.path).is_relative()));
}
