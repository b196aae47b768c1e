//! Tasks (threads, also the kernel's): who there is, since when, and on which CPUs each may run.

use std::{fs, io, path::Path};

use rustix::fs::Dir;

use super::{cpus::Cpus, root::Root};

/// A task and the moment it began, which together are never given twice in one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskId {
    /// The kernel's number.
    pub tid: i32,
    /// Clock ticks from boot to its start.
    pub start: u64,
}

/// Numbers in the names of `directory`, ascending.
#[must_use]
pub fn numbers(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The tasks of this process. They can be listed also when no descriptor is left: their directory
/// stays open.
#[derive(Debug)]
pub struct OwnTasks(Dir);

impl OwnTasks {
    /// Opens their directory.
    ///
    /// # Errors
    /// `/proc` is missing, or no descriptor is left.
    pub fn open() -> io::Result<Self> {
        Ok(Self(Dir::new(fs::File::open("/proc/self/task")?)?))
    }

    /// Their numbers.
    #[must_use]
    pub fn list(&mut self) -> Vec<i32> {
        self.0.rewind();
        let entries = self.0.by_ref().flatten();
        entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect()
    }
}

/// Every task, with its process. What ends meanwhile is left out.
#[must_use]
pub fn all(root: &Root) -> Vec<(i32, i32)> {
    let of = |pid: i32| {
        let tasks = numbers(&root.path(format!("/proc/{pid}/task")));
        tasks.into_iter().map(move |tid| (pid, tid))
    };
    numbers(&root.path("/proc")).into_iter().flat_map(of).collect()
}

/// When task `tid` began; `None` if it is gone. A zombie is gone.
#[must_use]
pub fn start(root: &Root, tid: i32) -> Option<u64> {
    let fields = fields(root, tid)?;
    let is_gone = matches!(fields.first()?.as_str(), "Z" | "X");
    if is_gone { None } else { fields.get(19)?.parse().ok() }
}

/// The process that started task `tid`, or took its place; `None` if it is gone.
#[must_use]
pub fn parent(root: &Root, tid: i32) -> Option<i32> {
    fields(root, tid)?.get(1)?.parse().ok()
}

/// Whether the kernel alone decides on which CPUs task `tid` runs: it cannot be bound elsewhere.
#[must_use]
pub fn is_bound_by_kernel(root: &Root, tid: i32) -> bool {
    /// `PF_NO_SETAFFINITY`.
    const FIXED: u64 = 0x0400_0000;
    let flags = fields(root, tid).and_then(|fields| fields.get(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & FIXED != 0)
}

/// The fields of a task's `stat` from the third on. The second is a name that may hold spaces and
/// brackets, and no UTF-8.
fn fields(root: &Root, tid: i32) -> Option<Vec<String>> {
    let stat = fs::read(root.path(format!("/proc/{tid}/stat"))).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The CPUs that task `tid` may run on; `None` if it is gone.
#[must_use]
pub fn cpus(root: &Root, tid: i32) -> Option<Cpus> {
    let status = root.read(format!("/proc/{tid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    line.trim().parse().ok()
}

/// The name of task `tid`; `None` if it is gone.
#[must_use]
pub fn name(root: &Root, tid: i32) -> Option<String> {
    root.read(format!("/proc/{tid}/comm"))
}

/// The process of task `tid`; `None` if it is gone.
#[must_use]
pub fn process(root: &Root, tid: i32) -> Option<u32> {
    let status = root.read(format!("/proc/{tid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_among_all_tasks_and_began_once() {
        let (root, own) = (Root::default(), crate::sys::sched::thread_id());
        assert!(all(&root).iter().any(|(_, tid)| *tid == own));
        assert_eq!(start(&root, own), start(&root, own));
        assert_eq!(cpus(&root, own), Cpus::allowed().ok());
        assert!(name(&root, own).is_some());
        assert_eq!(start(&root, i32::MAX), None);
    }

    #[test]
    fn own_tasks_come_and_go() {
        let (mut tasks, own) = (OwnTasks::open().unwrap(), crate::sys::sched::thread_id());
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, until_end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send(crate::sys::sched::thread_id()).unwrap();
            let _ = until_end.recv();
        });
        let other = receiver.recv().unwrap();
        let listed = tasks.list();
        assert!(listed.contains(&own) && listed.contains(&other), "{listed:?}");
        drop(end);
        thread.join().unwrap();
        // The kernel lets a thread be joined shortly before it takes it away.
        while tasks.list().contains(&other) {
            std::thread::yield_now();
        }
        assert!(tasks.list().contains(&own));
    }

    #[test]
    fn the_start_is_found_behind_a_name_full_of_brackets_and_a_zombie_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("proc/7")).unwrap();
        let root = Root::at(directory.path());
        let stat = |state: &str| {
            let fields = (4..22).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
            let text = format!("7 (a) b) {state} {fields} 4711 23 24");
            fs::write(directory.path().join("proc/7/stat"), text).unwrap();
            start(&root, 7)
        };
        assert_eq!(stat("S"), Some(4711));
        assert_eq!(stat("Z"), None);
        assert!(!is_bound_by_kernel(&root, 7));
        let text = "7 (kworker/0:1) S 2 0 0 0 -1 69238880 0 0";
        fs::write(directory.path().join("proc/7/stat"), text).unwrap();
        assert!(is_bound_by_kernel(&root, 7));
    }
}
