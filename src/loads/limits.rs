//! Checks whether the machine has the resources that a load needs. Reads limits, changes none.

use std::path::Path;

use rustix::fs::statvfs;
use rustix::process::{Resource, geteuid, getrlimit};

use super::{LoadError, Need};
use crate::sys::root::Root;

/// Tasks and memory that stay for everything else.
const TASKS_KEPT: u64 = 200;
const MEMORY_KEPT_SHARE: u64 = 10;

/// Disk space that stays for everything else: a share of it, and no more than this.
const DISK_KEPT_SHARE: u64 = 20;
const DISK_KEPT_MAX: u64 = 1 << 30;

/// Files that a worker has open beside those of its load.
const FILES_KEPT: u64 = 16;

/// What is available. What could not be read counts as unlimited: the start itself will show it.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    /// Tasks that can still be started.
    pub tasks: u64,
    /// Files that one process may open.
    pub open_files: u64,
    /// Memory available without swapping, bytes.
    pub memory_bytes: u64,
    /// Free space where the load is to write, bytes; unlimited until it is requested.
    pub disk_bytes: u64,
}

impl Capacity {
    /// Reads the limits; that of open files is the hard one, to which the supervisor raises
    /// its own.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let most = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]
            .into_iter()
            .filter_map(|path| root.value::<u64>(path))
            .min()
            .unwrap_or(u64::MAX);
        let running = root.read("/proc/loadavg");
        let running = running.as_deref().and_then(tasks_in_loadavg).unwrap_or(0);
        let memory = root.read("/proc/meminfo");
        let memory = memory.as_deref().and_then(available_in_meminfo).unwrap_or(u64::MAX);
        let open_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let tasks = most.saturating_sub(running + TASKS_KEPT);
        Self {
            tasks: tasks.min(own_tasks()).min(tasks_of_group(root)),
            open_files: open_files.saturating_sub(FILES_KEPT),
            memory_bytes: memory - memory / MEMORY_KEPT_SHARE,
            disk_bytes: u64::MAX,
        }
    }
}

/// Bytes that a load may write below `directory`.
///
/// # Errors
/// The directory does not exist.
pub fn free_disk(load: &str, directory: &Path) -> Result<u64, LoadError> {
    let found = statvfs(directory).map_err(|error| LoadError::System {
        load: load.to_owned(),
        action: format!("ask for the free space in {}", directory.display()),
        source: error.into(),
        remedy: "name a directory that exists with dir=",
    })?;
    let of_blocks = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    let kept = (of_blocks(found.f_blocks) / DISK_KEPT_SHARE).min(DISK_KEPT_MAX);
    Ok(of_blocks(found.f_bavail).saturating_sub(kept))
}

/// Tasks that the control groups of this process leave it: its own, and all above.
fn tasks_of_group(root: &Root) -> u64 {
    let groups = root.read("/proc/self/cgroup").unwrap_or_default();
    let mounts = root.read("/proc/self/mounts").unwrap_or_default();
    let mut left = u64::MAX;
    for (mount, path) in pids_groups(&groups, &mounts) {
        for above in Path::new(path).ancestors() {
            let below_mount = above.strip_prefix("/").unwrap_or(above);
            let file = |name: &str| Path::new(mount).join(below_mount).join(name);
            // `max` is not a number, and no limit.
            let most = root.value::<u64>(file("pids.max"));
            let now = root.value::<u64>(file("pids.current"));
            if let (Some(most), Some(now)) = (most, now) {
                left = left.min(most.saturating_sub(now));
            }
        }
    }
    left
}

/// Where groups are that could limit the number of tasks: mount point, and path below it. A line
/// of `/proc/self/cgroup` is `8:pids:/a` or, of version 2, `0::/a`.
fn pids_groups<'a>(groups: &'a str, mounts: &'a str) -> Vec<(&'a str, &'a str)> {
    let mounted = |wanted: fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (place, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            wanted(kind, options).then_some(place)
        })
    };
    let first = mounted(|kind, options| kind == "cgroup" && has_pids(options));
    let second = mounted(|kind, _| kind == "cgroup2");
    let group = |line: &'a str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let mount =
            if controllers.is_empty() { second } else { first.filter(|_| has_pids(controllers)) };
        Some((mount?, path))
    };
    groups.lines().filter_map(group).collect()
}

fn has_pids(names: &str) -> bool {
    names.split(',').any(|name| name == "pids")
}

/// What `ulimit -u` leaves; it does not apply to root.
fn own_tasks() -> u64 {
    if geteuid().is_root() {
        return u64::MAX;
    }
    getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX)
}

/// `0.29 0.34 0.21 2/83 7145`: 83.
fn tasks_in_loadavg(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses a need beyond what there is.
///
/// # Errors
/// [`LoadError::TooLarge`], for the first thing that is short.
pub fn check(load: &str, need: &Need, machine: &Capacity) -> Result<(), LoadError> {
    let rows = [
        (
            need.tasks,
            "processes or threads",
            machine.tasks,
            "make the load smaller, or raise `ulimit -u`, the sysctls kernel.pid_max and \
             kernel.threads-max, or the control group's pids.max",
        ),
        (
            need.open_files,
            "open files in one process",
            machine.open_files,
            "make the load smaller, or raise the hard limit of open files (`ulimit -Hn`)",
        ),
        (
            need.memory_bytes,
            "bytes of memory",
            machine.memory_bytes,
            "make the load smaller, or free memory",
        ),
        (
            need.disk_bytes,
            "bytes of free disk space",
            machine.disk_bytes,
            "make the load smaller, free space, or name another directory with dir=",
        ),
    ];
    for (needed, what, available, remedy) in rows {
        if needed > available {
            let load = load.to_owned();
            return Err(LoadError::TooLarge { load, needed, what, available, remedy });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SMALL: Capacity =
        Capacity { tasks: 100, open_files: 50, memory_bytes: 1 << 20, disk_bytes: 1 << 30 };

    #[test]
    fn each_thing_that_is_short_is_named() {
        let fits = Need {
            tasks: 100,
            counters: 1,
            open_files: 50,
            memory_bytes: 1 << 20,
            disk_bytes: 1 << 30,
        };
        check("x", &fits, &SMALL).unwrap();
        let said = |need: &Need| check("x", need, &SMALL).unwrap_err().to_string();
        assert!(said(&Need { tasks: 101, ..fits }).starts_with(
            "load x needs 101 processes or threads, only 100 are available: make the load smaller"
        ));
        assert!(said(&Need { open_files: 51, ..fits }).contains("51 open files in one process"));
        assert!(said(&Need { memory_bytes: 1 << 21, ..fits }).contains("bytes of memory"));
        assert!(said(&Need { disk_bytes: 1 << 31, ..fits }).contains("bytes of free disk space"));
    }

    #[test]
    fn the_kernels_lines_are_understood() {
        assert_eq!(tasks_in_loadavg("0.29 0.34 0.21 2/83 7145\n"), Some(83));
        assert_eq!(tasks_in_loadavg("nonsense"), None);
        let text = "MemTotal: 100 kB\nMemAvailable:      64 kB\n";
        assert_eq!(available_in_meminfo(text), Some(65536));
        assert_eq!(available_in_meminfo("MemAvailable: 18446744073709551615 kB"), None);
    }

    /// A machine with these control groups: `/proc/self/cgroup`, mounts, and limits by path.
    fn machine(groups: &str, mounts: &str, limits: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let proc = directory.path().join("proc/self");
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("cgroup"), groups).unwrap();
        fs::write(proc.join("mounts"), mounts).unwrap();
        for (path, most, now) in limits {
            let group = directory.path().join(path);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("pids.max"), most).unwrap();
            fs::write(group.join("pids.current"), now).unwrap();
        }
        directory
    }

    #[test]
    fn the_tightest_control_group_limits_the_tasks() {
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let limits = [
            ("sys/fs/cgroup/user.slice", "500\n", "100\n"),
            ("sys/fs/cgroup/user.slice/mine", "max\n", "7\n"),
        ];
        let of_second = machine("0::/user.slice/mine\n", second, &limits);
        assert_eq!(tasks_of_group(&Root::at(of_second.path())), 400);

        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n";
        let limits = [("sys/fs/cgroup/pids/a/b", "10", "4"), ("sys/fs/cgroup/cpu/a", "1", "1")];
        let of_first = machine("8:pids:/a/b\n1:cpu:/a\n0::/\n", mounts, &limits);
        assert_eq!(tasks_of_group(&Root::at(of_first.path())), 6);
        assert_eq!(Capacity::read(&Root::at(of_first.path())).tasks, 6.min(own_tasks()));

        let none = machine("", "", &[]);
        assert_eq!(tasks_of_group(&Root::at(none.path())), u64::MAX);
    }

    #[test]
    fn free_space_is_that_of_the_directory() {
        assert!(free_disk("x", Path::new("/")).is_ok());
        let said = free_disk("x", Path::new("/none/such")).unwrap_err().to_string();
        assert!(said.contains("/none/such") && said.contains("with dir="), "{said}");
    }

    #[test]
    fn this_machine_has_something_to_give() {
        let machine = Capacity::read(&Root::default());
        assert!(machine.tasks > 0 && machine.memory_bytes > 0 && machine.open_files > 0);
    }
}
