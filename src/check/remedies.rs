//! Causes of late wake-ups and what cures them on this machine: a setting of the table, an
//! interrupt's CPUs, a task's CPUs or policy. Only where the evidence names the thing and this
//! machine has it; everything else has no remedy that is known.

use crate::{
    run::peaks::{Cause, FAIR_SERVER, HELD_BY, INVERSION, OUT_OF_BUDGET, REAL_TIME_THROTTLING},
    setup::settings::{Setting, SettingChoice},
    sys::{
        counters::{InterruptSource, interrupt_sources},
        cpus::Cpus,
        root::Root,
        sched::{self, RawScheduling},
        tasks,
    },
};

/// What a run blames, as far as a remedy depends on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedCulprit {
    /// What kind.
    pub cause: Cause,
    /// Which one, as in the peaks.
    pub name: String,
    /// The tasks whose work it was, `name/pid`, most time first.
    pub tasks: Vec<String>,
    /// The processes of the threads that were measured, where they are another program's.
    pub programs: Vec<u32>,
}

/// What cures a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CauseRemedy {
    /// As in `--set`.
    pub choice: SettingChoice,
    /// The same as commands of a shell.
    pub commands: Vec<String>,
    /// What it may break.
    pub may_break: String,
}

/// Functions and threads of the kernel whose switch is known: a part of the name of the cause, and
/// the setting.
const SWITCHES: [(&str, &str); 10] = [
    ("vmstat_update", "vm_stat_interval"),
    ("vmstat_shepherd", "vm_stat_interval"),
    ("watchdog_timer_fn", "soft_watchdog"),
    ("softlockup_fn", "soft_watchdog"),
    ("kcompactd", "compaction"),
    ("khugepaged", "thp"),
    ("task_numa_work", "numa_balancing"),
    ("wb_workfn", "dirty_writeback"),
    (REAL_TIME_THROTTLING, "rt_runtime"),
    (FAIR_SERVER, "fair_server"),
];

/// Threads of tardy's own that work beside the measured ones.
const OWN: [&str; 2] = ["tardy/drain", "tardy/recorder"];

/// What cures it for the measured `cpus`.
///
/// # Errors
/// Why no remedy is known, or why a known one is not to be had here.
pub(crate) fn remedy(
    culprit: &NamedCulprit,
    root: &Root,
    cpus: &Cpus,
) -> Result<CauseRemedy, String> {
    let NamedCulprit { cause, name, .. } = culprit;
    if let Some((_, setting)) = SWITCHES.iter().find(|(part, _)| name.contains(part)) {
        return of_setting(setting, root, cpus);
    }
    match cause {
        Cause::Hardirq => of_interrupt(name, root, cpus),
        Cause::Thread => of_thread(culprit, root, cpus),
        Cause::Lock if name.contains(HELD_BY) => Err(of_lock(culprit, root)),
        Cause::Throttled if name == OUT_OF_BUDGET => Err("no setting, but the thread's own \
             policy: give it more runtime in each period (--deadline-params, chrt \
             --sched-runtime), which other deadline threads then cannot have, or less to do"
            .into()),
        Cause::IdleExit => of_setting("idle_states", root, cpus),
        _ => Err("no known fix".into()),
    }
}

fn of_setting(name: &str, root: &Root, cpus: &Cpus) -> Result<CauseRemedy, String> {
    let setting = Setting::find(name).ok_or("no known fix")?;
    made(&format!("{name}={}", setting.better), setting.may_break, root, cpus)
}

fn made(text: &str, may_break: &str, root: &Root, cpus: &Cpus) -> Result<CauseRemedy, String> {
    let choice: SettingChoice = text.parse()?;
    let commands = choice.commands(root, cpus)?;
    if commands.is_empty() {
        return Err(format!("{text} would fix it, and is already set"));
    }
    Ok(CauseRemedy { choice, commands, may_break: may_break.into() })
}

/// What moving an interrupt may break.
const MOVED_INTERRUPT: &str = "the other CPUs take that interrupt; its device may be slower";

/// Off the measured CPUs, where one line of `/proc/interrupts` alone has a handler of this name.
fn of_interrupt(name: &str, root: &Root, cpus: &Cpus) -> Result<CauseRemedy, String> {
    let lines = interrupt_sources(root).into_iter().filter(|line| line.name.parse::<u32>().is_ok());
    let named: Vec<InterruptSource> = lines
        .filter(|line| {
            line.handlers.iter().any(|it| it == name) || *name == format!("irq {}", line.name)
        })
        .collect();
    match named.as_slice() {
        [line] => {
            let others: Vec<&str> =
                line.handlers.iter().filter(|it| *it != name).map(String::as_str).collect();
            let breaks = match others.is_empty() {
                true => MOVED_INTERRUPT.to_owned(),
                false => {
                    format!("{MOVED_INTERRUPT}, and so may {}, on the same line", others.join(", "))
                }
            };
            made(&format!("irq:{}=away", line.name), &breaks, root, cpus)
        }
        [] => {
            Err("no known fix: it does not belong to a device, so its CPUs cannot be chosen".into())
        }
        all => {
            let all: Vec<&str> = all.iter().map(|line| line.name.as_str()).collect();
            Err(format!("no known fix: interrupts {} have that name", all.join(", ")))
        }
    }
}

/// What the program itself can do about one of its locks.
fn of_lock(culprit: &NamedCulprit, root: &Root) -> String {
    let inherit = "give it priority inheritance (pthread_mutexattr_setprotocol, \
                   PTHREAD_PRIO_INHERIT) or a priority ceiling (PTHREAD_PRIO_PROTECT)";
    if !culprit.name.starts_with(INVERSION) {
        return format!(
            "no setting, but a lock of the program: hold it for less time; if its holder is \
             preempted, {inherit}"
        );
    }
    let other = only_task(culprit).ok().filter(|(_, tid)| {
        let process = tasks::process(root, *tid);
        process.is_some_and(|process| !culprit.programs.contains(&process))
    });
    let lower = other.map_or_else(String::new, |(name, _)| {
        format!("; or lower the priority of {name}, which is another program's")
    });
    format!("no setting, but a lock of the program: {inherit}{lower}")
}

/// The one task that is named, off the measured CPUs, or an ordinary one where it cannot leave
/// them.
fn of_thread(culprit: &NamedCulprit, root: &Root, cpus: &Cpus) -> Result<CauseRemedy, String> {
    // An interrupt's thread follows its interrupt.
    if let Some((number, _)) = culprit.name.strip_prefix("irq/").and_then(|it| it.split_once('-')) {
        return made(&format!("irq:{number}=away"), MOVED_INTERRUPT, root, cpus);
    }
    if OWN.contains(&culprit.name.as_str()) {
        return Err("no setting, but tardy's own thread: measure again with a CPU for it \
                    (--housekeeping), or with less for it to do (--trace off)"
            .into());
    }
    if culprit.name.starts_with("kworker/u") {
        return of_setting("workqueue_mask", root, cpus);
    }
    let (name, tid) = only_task(culprit)?;
    if tasks::name(root, tid).as_deref() != Some(name) {
        return Err(format!("no known fix: task {tid} ({name}) has ended"));
    }
    if tasks::process(root, tid).is_some_and(|process| culprit.programs.contains(&process)) {
        return Err(format!(
            "no setting: {name} is a thread of the measured program itself; give the late thread \
             a higher priority, or a CPU of its own"
        ));
    }
    if tasks::is_bound_by_kernel(root, tid) {
        return Err(format!("no known fix: the kernel binds {name} to its CPU"));
    }
    let away = made(
        &format!("task:{tid}:cpus=away"),
        "it shares the other CPUs, and is slower there",
        root,
        cpus,
    );
    let scheduling = sched::raw_of_thread(tid).unwrap_or(RawScheduling::ORDINARY);
    match away {
        Err(_) if scheduling.is_plausible() && scheduling.priority > 0 => made(
            &format!("task:{tid}:policy=other"),
            "it is no longer a real-time task, and may miss its own deadlines",
            root,
            cpus,
        ),
        away => away,
    }
}

fn only_task(culprit: &NamedCulprit) -> Result<(&str, i32), String> {
    match culprit.tasks.as_slice() {
        [task] => {
            let parts = task.rsplit_once('/');
            let found = parts.and_then(|(name, tid)| Some((name, tid.parse().ok()?)));
            found.ok_or_else(|| format!("no known fix: {task} has no number"))
        }
        [] => Err("no known fix: no peak that was kept names its task".into()),
        all => Err(format!("no known fix: {} tasks have that name", all.len())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/sys/kernel/soft_watchdog", "0\n"),
            ("proc/irq/36/smp_affinity_list", "0-3\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000\n"),
            (
                "proc/interrupts",
                "  CPU0\n 36: 5 PCI-MSI 1-edge      virtio1-req.0, usb 1\n 37: 1 IO  x\n \
                 38: 1 IO  x\n",
            ),
            ("proc/interrupts.x", ""),
            ("proc/51/comm", "vision\n"),
            ("proc/51/status", "Name:\tvision\nTgid:\t50\n"),
            ("proc/61/comm", "hog\n"),
            ("proc/61/status", "Name:\thog\nTgid:\t60\n"),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    fn cure(cause: Cause, name: &str, tasks: &[&str]) -> Result<String, String> {
        let (_directory, root) = machine();
        let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
        let culprit = NamedCulprit { cause, name: name.into(), tasks, programs: vec![50] };
        let found = remedy(&culprit, &root, &"1".parse().unwrap())?;
        assert!(!found.may_break.is_empty());
        Ok(found.commands.join("; "))
    }

    #[test]
    fn what_the_evidence_names_has_its_command_and_everything_else_has_none() {
        let interrupt = cure(Cause::Hardirq, "virtio1-req.0", &[]);
        assert_eq!(interrupt, Ok("echo 0,2-3 > /proc/irq/36/smp_affinity_list".into()));
        assert_eq!(cure(Cause::Hardirq, "usb 1", &[]), interrupt, "they share it");
        let statistics = cure(Cause::Thread, "kworker/1:2 vmstat_update", &["kworker/1:2/77"]);
        assert_eq!(statistics, Ok("echo 60 > /proc/sys/vm/stat_interval".into()));
        let server = cure(Cause::Throttled, "fair server", &[]);
        assert_eq!(server, Ok("echo 0 > /sys/kernel/debug/sched/fair_server/cpu1/runtime".into()));
        let throttling = cure(Cause::Throttled, "real-time throttling", &[]);
        assert_eq!(throttling, Ok("echo -1 > /proc/sys/kernel/sched_rt_runtime_us".into()));
        let held = "lock 0x7f00 held by worker";
        let inversion = format!("{INVERSION}{held}, preempted by x (fifo 50)");
        for (cause, name, tasks, why) in [
            (Cause::Hardirq, "x", &[][..], "interrupts 37, 38"),
            (Cause::Hardirq, "timer: f", &[], "does not belong to a device"),
            (Cause::Thread, "tardy/recorder", &["tardy/recorder/7"], "--housekeeping"),
            (Cause::Softirq, "NET_RX", &[], "no known fix"),
            (Cause::Unexplained, "asleep", &[], "no known fix"),
            (Cause::Thread, "cc", &["cc/1", "cc/2"], "2 tasks"),
            (Cause::Thread, "cc", &[], "no peak"),
            (Cause::Thread, "cc", &["cc/7"], "task 7 (cc) has ended"),
            (Cause::Hardirq, "timer: watchdog_timer_fn", &[], "is already set"),
            (Cause::IdleExit, "C6", &[], "no idle states"),
            (Cause::Throttled, "deadline budget used up", &[], "more runtime in each period"),
            (Cause::Throttled, "CPU quota of its group", &[], "no known fix"),
            (Cause::Thread, "vision", &["vision/51"], "thread of the measured program itself"),
            (Cause::Lock, &inversion, &["vision/51"], "PTHREAD_PRIO_INHERIT"),
            (Cause::Lock, &inversion, &["hog/61"], "or lower the priority of hog"),
            (Cause::Lock, held, &["worker/52"], "hold it for less time"),
        ] {
            let found = cure(cause, name, tasks).unwrap_err();
            assert!(found.contains(why), "{name}: {found}");
        }
        let own = cure(Cause::Lock, &inversion, &["vision/51"]).unwrap_err();
        assert!(!own.contains("lower the priority"), "{own}");
    }
}
