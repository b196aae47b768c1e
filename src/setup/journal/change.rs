//! One change of the machine with what was there before, and how it is undone.

use std::{fs, io, path::Path, thread::sleep, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    setup::threads::plain,
    sys::{cpus::Cpus, root::Root, tasks},
};

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
}

impl Change {
    /// The value that `path` has now, to be changed.
    #[must_use]
    pub fn of_file(root: &Root, path: &str) -> Option<Self> {
        Some(Self::File { path: path.into(), old: root.read(path)? })
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
        let is_straight = |path: &str| path.starts_with('/') && !path.contains("/../");
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        match self {
            Self::File { path, .. } => {
                let known = ["/proc/irq/", "/sys/devices/"].iter().any(|p| path.starts_with(p));
                is_straight(path) && (known || name(path).starts_with("cpuset."))
            }
            Self::Group { path, back } => {
                is_straight(path) && is_straight(back) && name(path).starts_with("tardy-")
            }
            Self::Controller { path, controller } => {
                is_straight(path)
                    && name(path) == "cgroup.subtree_control"
                    && controller == "cpuset"
            }
            Self::Affinities { .. } => true,
        }
    }

    /// Puts back what was there before, and reads it back. Says what it did, if there was anything
    /// to do: what is gone by itself needs nothing.
    ///
    /// # Errors
    /// What could not be put back, and why.
    pub fn undo(&self, root: &Root) -> Result<Option<String>, String> {
        match self {
            Self::File { path, old } => undo_file(root, path, old),
            Self::Group { path, back } => undo_group(root, path, back),
            Self::Controller { path, controller } => undo_controller(root, path, controller),
            Self::Affinities { tasks } => undo_affinities(root, tasks),
        }
    }
}

fn undo_file(root: &Root, path: &str, old: &str) -> Result<Option<String>, String> {
    let Some(now) = root.read(path) else {
        // A device or a CPU that went away took its setting with it.
        return Ok(None);
    };
    if now == old {
        return Ok(None);
    }
    let failed = |why: &str| format!("{path} is {now:?} and was {old:?}: {why}");
    fs::write(root.path(path), old).map_err(|error| failed(&plain(&error)))?;
    match root.read(path) {
        Some(back) if back == old => Ok(Some(format!("{path}: {old}"))),
        _ => Err(failed("the kernel took the old value and shows another")),
    }
}

fn undo_group(root: &Root, path: &str, back: &str) -> Result<Option<String>, String> {
    let (group, back) = (root.path(path), root.path(back));
    if !group.exists() {
        return Ok(None);
    }
    let partition = group.join("cpuset.cpus.partition");
    if partition.exists() {
        // Removing a partition ends it some time later, and the kernel then forgets the CPUs that
        // tasks were given back meanwhile. This ends it now.
        let _ = fs::write(partition, "member");
    }
    let mut refused = None;
    // A task may fork between the look and the move, and one that exits is in the way a little.
    for pause in [1, 1, 5, 20, 50, 100, 200] {
        empty(&group, &back);
        let removed = if root.is_this_machine() {
            fs::remove_dir(&group)
        } else {
            fs::remove_dir_all(&group)
        };
        match removed {
            Ok(()) => return Ok(Some(format!("{path} removed"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => refused = Some(plain(&error)),
        }
        sleep(Duration::from_millis(pause));
    }
    Err(format!("{path} cannot be removed: {}", refused.unwrap_or_default()))
}

/// Moves the tasks of cgroup `from` to `to`. What refuses shows when `from` is removed.
fn empty(from: &Path, to: &Path) {
    // Version 1 moves single tasks, version 2 processes.
    for list in ["tasks", "cgroup.procs"] {
        let text = fs::read_to_string(from.join(list)).unwrap_or_default();
        for task in text.lines() {
            let _ = fs::write(to.join(list), task);
        }
    }
}

fn undo_controller(root: &Root, path: &str, controller: &str) -> Result<Option<String>, String> {
    let is_on = |text: &str| text.split_whitespace().any(|word| word == controller);
    if !root.read(path).is_some_and(|text| is_on(&text)) {
        return Ok(None);
    }
    let written = fs::write(root.path(path), format!("-{controller}"));
    written.map_err(|error| format!("{path}: {controller} stays on: {}", plain(&error)))?;
    Ok(Some(format!("{path}: -{controller}")))
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
        return Ok((done > 0).then(|| format!("the CPUs of {done} tasks")));
    }
    Err(format!("the CPUs of tasks: {}", refused.join(", ")))
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
    fn a_file_that_refuses_is_named_with_both_values() {
        let (_directory, root) = machine();
        // One that reads as a list of CPUs, and cannot be written.
        let path = "/proc/irq/7/smp_affinity_list";
        std::os::unix::fs::symlink("/sys/devices/system/cpu/possible", root.path(path)).unwrap();
        let change = Change::File { path: path.into(), old: "1000".into() };
        let error = change.undo(&root).unwrap_err();
        let now = root.read(path).unwrap();
        assert!(error.contains(path) && error.contains(&now), "{error}");
        assert!(error.contains("\"1000\""), "{error}");
    }

    #[test]
    fn a_group_is_emptied_and_removed() {
        let (directory, root) = machine();
        let group = directory.path().join("sys/fs/cgroup/tardy-shield");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("tasks"), "12\n").unwrap();
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
            assert_eq!(change.undo(&root), Ok(Some("the CPUs of 1 tasks".into())));
            assert_eq!(Cpus::allowed().unwrap(), first);
            let other = Change::Affinities { tasks: vec![(cpus.to_string(), vec![(own, 1)])] };
            assert_eq!(other.undo(&root), Ok(None), "another task with the same number");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_tardy_would_never_change_is_not_plausible() {
        let file = |path: &str| Change::File { path: path.into(), old: String::new() };
        assert!(file("/proc/irq/7/smp_affinity_list").is_plausible());
        assert!(file("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance").is_plausible());
        assert!(!file("/etc/shadow").is_plausible());
        assert!(!file("/proc/irq/../sys/kernel/core_pattern").is_plausible());
        assert!(!Change::Group { path: "/home".into(), back: "/".into() }.is_plausible());
    }
}
