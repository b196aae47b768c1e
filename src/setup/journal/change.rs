//! One change of the machine with what was there before, and how it is undone.

use std::{fs, io, thread::sleep, time::Duration};

use serde::{Deserialize, Serialize};

use super::files::{KnownFile, is_straight};
use crate::{
    setup::threads::plain,
    sys::{
        cpus::Cpus,
        kernel_file::{self, CgroupDirectory, KernelFs},
        root::Root,
        sched::{self, RawScheduling},
        tasks::{self, TaskId},
    },
    units::many,
};

/// The cgroup of shielded CPUs.
pub const SHIELD: &str = "tardy-shield";
/// The cpuset of everything else.
pub const HOUSEKEEPING: &str = "tardy-housekeeping";
/// Where the kernel's tracer has its instances.
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Where cgroup v2 lists the controllers of children.
const CONTROL: &str = "cgroup.subtree_control";

/// A change that is about to be made. Undoing one that was never made does nothing, and so does
/// undoing one twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A file that holds one value.
    File {
        /// Where the machine has it.
        path: String,
        /// What was in it.
        old: String,
    },
    /// A cgroup that is made. Tasks that are in it at the end go to `back`.
    Group {
        /// Its directory.
        path: String,
        /// The directory of another cgroup.
        back: String,
    },
    /// An instance of the kernel's tracer that is made.
    TraceInstance {
        /// Its directory.
        path: String,
    },
    /// A controller that is switched on for the children of a cgroup.
    Controller {
        /// The cgroup's `cgroup.subtree_control`.
        path: String,
        /// The name of the controller.
        controller: String,
    },
    /// The CPUs of tasks, which kernels before 6.2 forget when a cpuset changes, and every kernel
    /// when a CPU goes offline.
    Affinities {
        /// List of CPUs, and the tasks (number and start) that were bound to them.
        tasks: Vec<(String, Vec<(i32, u64)>)>,
    },
    /// Policy and priority of one task.
    Scheduling {
        /// Its number.
        tid: i32,
        /// When it began, in clock ticks from boot.
        start: u64,
        /// The kernel's number of the policy, with the flag of `SCHED_RESET_ON_FORK`.
        policy: i32,
        /// Its real-time priority, 0 for policies without one.
        priority: i32,
    },
}

impl Change {
    /// The value that `path` has now, to be changed.
    #[must_use]
    pub fn of_file(root: &Root, path: &str) -> Option<Self> {
        let old = KnownFile::shown(path, root.read(path)?);
        Some(Self::File { path: path.into(), old })
    }

    /// Policy and priority of task `id`, to be changed; `None` if it is gone.
    #[must_use]
    pub fn of_scheduling(id: TaskId) -> Option<Self> {
        let RawScheduling { policy, priority } = sched::raw_of_thread(id.tid).ok()?;
        Some(Self::Scheduling { tid: id.tid, start: id.start, policy, priority })
    }

    /// The CPUs of task `id`, to be changed; `None` if it is gone.
    #[must_use]
    pub fn of_cpus(root: &Root, id: TaskId) -> Option<Self> {
        let cpus = tasks::cpus(root, id.tid)?.to_string();
        Some(Self::Affinities { tasks: vec![(cpus, vec![(id.tid, id.start)])] })
    }

    /// The CPUs of every task that may not use all that are online, unless it is the kernel that
    /// bound it: nothing else could bind it again.
    #[must_use]
    pub fn of_affinities(root: &Root) -> Self {
        let online = root.read("/sys/devices/system/cpu/online").unwrap_or_default();
        let online: Cpus = online.parse().unwrap_or_default();
        let mut groups: Vec<(String, Vec<(i32, u64)>)> = Vec::new();
        for (_, tid) in tasks::all(root) {
            let (Some(cpus), Some(start)) = (tasks::cpus(root, tid), tasks::start(root, tid))
            else {
                continue;
            };
            if online.without(&cpus).is_empty() || tasks::is_bound_by_kernel(root, tid) {
                continue;
            }
            let cpus = cpus.to_string();
            match groups.iter_mut().find(|(known, _)| *known == cpus) {
                Some((_, tasks)) => tasks.push((tid, start)),
                None => groups.push((cpus, vec![(tid, start)])),
            }
        }
        Self::Affinities { tasks: groups }
    }

    /// Whether it is one that tardy makes. A journal decides what is written as root, so that
    /// nothing else in it is believed.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        match self {
            Self::File { path, .. } => KnownFile::find(path).is_some(),
            Self::Group { path, back } => {
                let is_known = [SHIELD, HOUSEKEEPING].contains(&name(path));
                is_known && is_straight(path) && is_straight(back)
            }
            Self::TraceInstance { path } => is_own_instance(path),
            Self::Controller { path, controller } => {
                is_straight(path) && name(path) == CONTROL && controller == "cpuset"
            }
            Self::Affinities { .. } => true,
            Self::Scheduling { policy, priority, .. } => {
                RawScheduling { policy: *policy, priority: *priority }.is_plausible()
            }
        }
    }

    /// Restores what was there before, and reads it back. Says what it did, if there was anything
    /// to do: what is gone by itself needs nothing.
    ///
    /// # Errors
    /// What could not be restored, and why.
    pub fn undo(&self, root: &Root) -> Result<Option<String>, String> {
        match self {
            Self::File { path, old } => undo_file(root, path, old),
            Self::Group { path, back } => undo_group(root, path, back),
            Self::TraceInstance { path } => undo_instance(root, path),
            Self::Controller { path, controller } => undo_controller(root, path, controller),
            Self::Affinities { tasks } => undo_affinities(root, tasks),
            Self::Scheduling { tid, start, policy, priority } => {
                let old = RawScheduling { policy: *policy, priority: *priority };
                undo_scheduling(root, TaskId { tid: *tid, start: *start }, old)
            }
        }
    }
}

/// The last part of a path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn undo_file(root: &Root, path: &str, old: &str) -> Result<Option<String>, String> {
    let Some(file) = KnownFile::find(path) else {
        return Err(format!("{path} is not a setting that tardy changes"));
    };
    let now = match file.read(root) {
        Ok(now) => now,
        // A device or a CPU that went away took its setting with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{path} was {old:?}: {}", plain(&error))),
    };
    if now == old {
        return Ok(None);
    }
    let failed = |why: &str| format!("{path} is {now:?} and was {old:?}: {why}");
    file.write(root, old).map_err(|error| failed(&plain(&error)))?;
    match file.read(root) {
        Ok(back) if back == old => Ok(Some(format!("{path}: {old}"))),
        _ => Err(failed("the kernel took the old value and shows another")),
    }
}

fn undo_group(root: &Root, path: &str, back: &str) -> Result<Option<String>, String> {
    let refused = |error: io::Error| format!("{path} cannot be removed: {}", plain(&error));
    let group = match CgroupDirectory::open(root, path) {
        Ok(group) => group,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error)),
    };
    let (above, name) = path.rsplit_once('/').unwrap_or_default();
    let above = CgroupDirectory::open(root, above).map_err(refused)?;
    // Where it went away meanwhile, its tasks did too.
    let back = CgroupDirectory::open(root, back).ok();
    // Removing a partition ends it some time later, and the kernel then forgets the CPUs that
    // tasks were given back meanwhile. This ends it now; version 1 has no such file.
    let _ = group.write("cpuset.cpus.partition", "member");
    let mut why = None;
    // A task may fork between the look and the move, and one that exits is in the way until it gets
    // a CPU for that.
    for pause in [1, 1, 5, 20, 50, 100, 200, 400, 800] {
        if let Some(back) = &back {
            empty(&group, back);
        }
        let removed = if root.is_this_machine() {
            above.remove(name)
        } else {
            fs::remove_dir_all(root.path(path))
        };
        match removed {
            Ok(()) => return Ok(Some(format!("{path} removed"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => why = Some(error),
        }
        sleep(Duration::from_millis(pause));
    }
    Err(why.map(refused).unwrap_or_default())
}

/// Moves the tasks of cgroup `from` to `to`. What refuses shows when `from` is removed.
fn empty(from: &CgroupDirectory, to: &CgroupDirectory) {
    // Version 1 moves single tasks, version 2 processes.
    for list in ["tasks", "cgroup.procs"] {
        for task in from.read(list).unwrap_or_default().lines() {
            let _ = to.write(list, task);
        }
    }
}

/// `tardy-PID` among the instances of the tracer.
fn is_own_instance(path: &str) -> bool {
    let number = path.strip_prefix(INSTANCES).and_then(|name| name.strip_prefix("/tardy-"));
    number.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn undo_instance(root: &Root, path: &str) -> Result<Option<String>, String> {
    let stays = |why: &str| format!("{path} cannot be removed: {why}");
    if !root.path(INSTANCES).exists() {
        return Err(stays("mount tracefs, `mount -t tracefs nodev /sys/kernel/tracing`"));
    }
    let mut why = None;
    // A reader of it is in the way for a moment.
    for pause in [1, 5, 20, 50, 100, 200] {
        match fs::remove_dir(root.path(path)) {
            Ok(()) => return Ok(Some(format!("{path} removed"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => why = Some(error),
        }
        sleep(Duration::from_millis(pause));
    }
    Err(why.map(|error| stays(&plain(&error))).unwrap_or_default())
}

fn undo_controller(root: &Root, path: &str, controller: &str) -> Result<Option<String>, String> {
    let is_on = |text: &str| text.split_whitespace().any(|word| word == controller);
    let stays = |error: io::Error| format!("{path}: {controller} stays on: {}", plain(&error));
    match kernel_file::read(root, path, KernelFs::Cgroup) {
        Ok(text) if is_on(&text) => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(stays(error)),
    }
    let off = format!("-{controller}");
    kernel_file::write(root, path, KernelFs::Cgroup, &off).map_err(stays)?;
    Ok(Some(format!("{path}: {off}")))
}

fn undo_affinities(
    root: &Root,
    groups: &[(String, Vec<(i32, u64)>)],
) -> Result<Option<String>, String> {
    let (mut done, mut refused) = (0_u32, Vec::new());
    for (list, tasks) in groups {
        let cpus: Cpus = list.parse().map_err(|error| format!("CPUs {list:?}: {error}"))?;
        for &(tid, start) in tasks {
            let is_same = tasks::start(root, tid) == Some(start);
            if !is_same || tasks::cpus(root, tid).as_ref() == Some(&cpus) {
                continue;
            }
            match cpus.pin(tid) {
                Ok(()) => done += 1,
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    let name = tasks::name(root, tid).unwrap_or_default();
                    refused.push(format!("task {tid} ({name}) to {list}: {}", plain(&error)));
                }
            }
        }
    }
    if refused.is_empty() {
        return Ok((done > 0).then(|| format!("the CPUs of {}", many(done.into(), "task"))));
    }
    Err(format!("the CPUs of tasks: {}", refused.join(", ")))
}

fn undo_scheduling(root: &Root, id: TaskId, old: RawScheduling) -> Result<Option<String>, String> {
    let TaskId { tid, start } = id;
    let is_same = || tasks::start(root, tid) == Some(start);
    if !is_same() || sched::raw_of_thread(tid).ok() == Some(old) {
        return Ok(None);
    }
    match sched::set_raw(tid, old) {
        Ok(()) => {}
        // It ended meanwhile.
        Err(_) if !is_same() => return Ok(None),
        Err(error) => {
            let name = tasks::name(root, tid).unwrap_or_default();
            let error = plain(&error);
            return Err(format!("task {tid} ({name}) to policy {}: {error}", old.words()));
        }
    }
    Ok(Some(format!("policy of task {tid}: {}", old.words())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("proc/irq/7")).unwrap();
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn a_file_is_put_back_once_and_one_that_is_gone_needs_nothing() {
        let (_directory, root) = machine();
        let path = "/proc/irq/7/smp_affinity_list";
        fs::write(root.path(path), "0-1\n").unwrap();
        let change = Change::of_file(&root, path).unwrap();
        assert_eq!(change.undo(&root), Ok(None), "nothing was changed yet");
        fs::write(root.path(path), "1").unwrap();
        assert_eq!(change.undo(&root), Ok(Some(format!("{path}: 0-1"))));
        assert_eq!(change.undo(&root), Ok(None));
        fs::remove_file(root.path(path)).unwrap();
        assert_eq!(change.undo(&root), Ok(None));
        assert_eq!(Change::of_file(&root, path), None);
    }

    #[test]
    fn a_file_that_is_a_link_is_neither_read_nor_written() {
        let (directory, root) = machine();
        let (path, other) = ("/proc/irq/7/smp_affinity_list", directory.path().join("other"));
        fs::write(&other, "0").unwrap();
        std::os::unix::fs::symlink(&other, root.path(path)).unwrap();
        let change = Change::File { path: path.into(), old: "1000".into() };
        let error = change.undo(&root).unwrap_err();
        assert!(error.contains(path) && error.contains("symbolic links"), "{error}");
        assert!(error.contains("\"1000\""), "{error}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "0");
    }

    #[test]
    fn a_group_is_emptied_and_removed() {
        let (directory, root) = machine();
        let group = directory.path().join("sys/fs/cgroup/tardy-shield");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("tasks"), "12\n").unwrap();
        fs::write(directory.path().join("sys/fs/cgroup/tasks"), "").unwrap();
        let change = Change::Group {
            path: "/sys/fs/cgroup/tardy-shield".into(),
            back: "/sys/fs/cgroup".into(),
        };
        assert!(change.is_plausible());
        assert!(change.undo(&root).unwrap().unwrap().contains("removed"));
        let back = directory.path().join("sys/fs/cgroup/tasks");
        assert_eq!(fs::read_to_string(back).unwrap(), "12");
        assert_eq!(change.undo(&root), Ok(None));
    }

    #[test]
    fn an_instance_of_the_tracer_is_removed_and_no_other_directory() {
        let (directory, root) = machine();
        let change = |path: &str| Change::TraceInstance { path: path.into() };
        let own = "/sys/kernel/tracing/instances/tardy-12";
        let error = change(own).undo(&root).unwrap_err();
        assert!(error.contains("mount -t tracefs"), "it may be there all the same: {error}");
        fs::create_dir_all(root.path(own)).unwrap();
        assert_eq!(change(own).undo(&root), Ok(Some(format!("{own} removed"))));
        assert_eq!(change(own).undo(&root), Ok(None));
        assert!(directory.path().join("sys/kernel/tracing/instances").exists());
        assert!(change(own).is_plausible());
        let others = [
            "/sys/kernel/tracing/instances/other",
            "/sys/kernel/tracing/instances/tardy-",
            "/sys/kernel/tracing/instances/tardy-1/..",
            "/tmp/tardy-12",
            "tardy-12",
        ];
        assert!(others.iter().all(|path| !change(path).is_plausible()));
    }

    #[test]
    fn the_cpus_of_a_task_come_back() {
        let root = Root::default();
        let cpus = Cpus::allowed().unwrap();
        if cpus.len() < 2 {
            return;
        }
        std::thread::spawn(move || {
            let own = crate::sys::sched::thread_id();
            let first: Cpus = cpus.iter().take(1).collect();
            first.pin_this_thread().unwrap();
            let Change::Affinities { tasks } = Change::of_affinities(&root) else { panic!() };
            let of_own =
                |(_, tasks): &&(String, Vec<(i32, u64)>)| tasks.iter().any(|(tid, _)| *tid == own);
            let (list, tasks) = tasks.iter().find(of_own).unwrap();
            assert_eq!(*list, first.to_string());
            let mine = tasks.iter().copied().filter(|(tid, _)| *tid == own).collect();
            let change = Change::Affinities { tasks: vec![(list.clone(), mine)] };
            cpus.pin_this_thread().unwrap();
            assert_eq!(change.undo(&root), Ok(Some("the CPUs of 1 task".into())));
            assert_eq!(Cpus::allowed().unwrap(), first);
            let other = Change::Affinities { tasks: vec![(cpus.to_string(), vec![(own, 1)])] };
            assert_eq!(other.undo(&root), Ok(None), "another task with the same number");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_group_that_is_a_link_stays() {
        let (directory, root) = machine();
        fs::create_dir_all(directory.path().join("sys/fs/cgroup")).unwrap();
        fs::create_dir(directory.path().join("other")).unwrap();
        fs::write(directory.path().join("other/tasks"), "12\n").unwrap();
        let link = directory.path().join("sys/fs/cgroup/tardy-shield");
        std::os::unix::fs::symlink(directory.path().join("other"), link).unwrap();
        let (path, back) = ("/sys/fs/cgroup/tardy-shield".into(), "/sys/fs/cgroup".into());
        let change = Change::Group { path, back };
        assert!(change.undo(&root).unwrap_err().contains("cannot be removed"));
        assert!(directory.path().join("other/tasks").exists());
    }

    #[test]
    fn only_settings_that_tardy_changes_are_plausible() {
        let file = |path: &str| Change::File { path: path.into(), old: String::new() };
        for path in [
            "/proc/irq/7/smp_affinity_list",
            "/proc/irq/default_smp_affinity",
            "/sys/devices/virtual/workqueue/cpumask",
            "/sys/devices/system/cpu/cpu12/online",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
            "/sys/fs/cgroup/cpuset/some group/cpuset.cpus",
        ] {
            assert!(file(path).is_plausible(), "{path}");
        }
        for path in [
            "",
            "/etc/shadow",
            "/proc/irq/../sys/kernel/core_pattern",
            "/proc/irq/7/smp_affinity_list/../../../sys/kernel/core_pattern",
            "/proc/irq/x/smp_affinity_list",
            "/proc/sys/kernel/core_pattern",
            "/sys/devices/virtual/workqueue/cpumask/x",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
            "/sys/devices/system/cpu/cpux/online",
            "/sys/devices/system/memory/memory0/online",
            "/sys/devices/pci0000:00/0000:00:01.0/remove",
            "/sys/kernel/uevent_helper",
            "/tmp/cpuset.evil",
            "/tmp/../sys/fs/cgroup/cpuset.cpus",
            "tmp/cpuset.cpus",
        ] {
            assert!(!file(path).is_plausible(), "{path}");
        }
    }

    #[test]
    fn only_groups_and_controllers_that_tardy_makes_are_plausible() {
        let group = |path: &str, back: &str| Change::Group { path: path.into(), back: back.into() };
        assert!(group("/sys/fs/cgroup/tardy-housekeeping", "/sys/fs/cgroup").is_plausible());
        for (path, back) in [
            ("/home", "/"),
            ("/sys/fs/cgroup/tardy-other", "/sys/fs/cgroup"),
            ("/sys/fs/cgroup/../../tardy-shield", "/sys/fs/cgroup"),
            ("/sys/fs/cgroup/tardy-shield", "/sys/fs/cgroup/../x"),
            ("tardy-shield", "/sys/fs/cgroup"),
        ] {
            assert!(!group(path, back).is_plausible(), "{path} {back}");
        }
        let control = |path: &str, controller: &str| Change::Controller {
            path: path.into(),
            controller: controller.into(),
        };
        assert!(control("/sys/fs/cgroup/cgroup.subtree_control", "cpuset").is_plausible());
        assert!(!control("/sys/fs/cgroup/cgroup.subtree_control", "memory").is_plausible());
        assert!(!control("/sys/fs/cgroup/cgroup.kill", "cpuset").is_plausible());
        assert!(!control("/sys/../x/cgroup.subtree_control", "cpuset").is_plausible());
    }
}
