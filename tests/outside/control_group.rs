//! A cgroup for what a test starts, of version 1 or 2: its memory can be taken, and limited; or its
//! share of the CPUs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Child,
};

use super::support::{eventually, in_guest, is_root};

/// Removed at the end.
pub(crate) struct ControlGroup {
    directory: PathBuf,
    is_first_version: bool,
}

impl ControlGroup {
    /// A line of a shell that waits until it is in such a group.
    pub(crate) const WAIT_INSIDE: &str =
        "until grep -q tardy-test- /proc/self/cgroup; do sleep 0.01; done";

    /// Of memory; `None` if none can be made.
    pub(crate) fn of_memory(name: &str) -> Option<Self> {
        Self::new(name, "memory", ["memory.usage_in_bytes", "memory.current"])
    }

    /// Of CPU time; `None` if none can be made.
    pub(crate) fn of_cpu(name: &str) -> Option<Self> {
        if in_guest() {
            // In version 2 a controller is to be asked for. Where this is version 1, it has it.
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
        }
        Self::new(name, "cpu", ["cpu.cfs_quota_us", "cpu.max"])
    }

    /// With a file of either version.
    fn new(name: &str, controller: &str, [first, second]: [&str; 2]) -> Option<Self> {
        let name = format!("tardy-test-{}-{name}", std::process::id());
        let tries = [(controller, first), ("", second)];
        tries.into_iter().filter(|_| is_root()).find_map(|(hierarchy, file)| {
            let directory = Path::new("/sys/fs/cgroup").join(hierarchy).join(&name);
            fs::create_dir(&directory).ok()?;
            let group = Self { directory, is_first_version: hierarchy == controller };
            group.file(file).exists().then_some(group)
        })
    }

    /// Lets it use `quota_ms` of one CPU in each 100 ms, real-time threads exempt. It runs before
    /// all other groups, so that it uses that up however many tasks others run.
    pub(crate) fn set_quota(&self, quota_ms: u32) {
        let us = quota_ms * 1_000;
        let text = if self.is_first_version { us.to_string() } else { format!("{us} 100000") };
        fs::write(self.either("cpu.cfs_quota_us", "cpu.max"), text).unwrap();
        let largest = if self.is_first_version { "262144" } else { "10000" };
        fs::write(self.either("cpu.shares", "cpu.weight"), largest).unwrap();
        // Kernels that count the time of real-time groups have none in a new one.
        let real_time = self.file("cpu.rt_runtime_us");
        if real_time.exists() {
            fs::write(real_time, "200000").unwrap();
        }
    }

    /// Whether real-time tasks are forbidden in it, as in every new group of a kernel that counts
    /// their time by groups.
    pub(crate) fn bans_real_time(&self) -> bool {
        fs::read_to_string(self.file("cpu.rt_runtime_us")).is_ok_and(|us| us.trim() == "0")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Which of two names a file has here.
    fn either(&self, first: &str, second: &str) -> PathBuf {
        self.file(if self.is_first_version { first } else { second })
    }

    /// Moves a process into it.
    pub(crate) fn take_in(&self, child: &Child) {
        fs::write(self.file("cgroup.procs"), child.id().to_string()).unwrap();
    }

    /// Whether memory can be taken from it.
    pub(crate) fn can_take(&self) -> bool {
        self.either("memory.force_empty", "memory.reclaim").exists()
    }

    /// Takes from its processes what is not locked and has a file behind it.
    pub(crate) fn take(&self) {
        let amount = if self.is_first_version { "0" } else { "64M" };
        // What is in use at the moment may be refused; it is tried again.
        let _ = fs::write(self.either("memory.force_empty", "memory.reclaim"), amount);
    }

    /// Bytes in use.
    pub(crate) fn usage(&self) -> u64 {
        let file = self.either("memory.usage_in_bytes", "memory.current");
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    /// Lets it use no more, also not by swapping where the kernel has a limit for that.
    pub(crate) fn limit(&self, bytes: u64) -> io::Result<()> {
        fs::write(self.either("memory.limit_in_bytes", "memory.max"), bytes.to_string())?;
        let (swap, most) = if self.is_first_version {
            (self.file("memory.memsw.limit_in_bytes"), bytes)
        } else {
            (self.file("memory.swap.max"), 0)
        };
        if swap.exists() { fs::write(swap, most.to_string()) } else { Ok(()) }
    }

    /// Whether the kernel has killed one of its processes for memory.
    pub(crate) fn was_short(&self) -> bool {
        let text = fs::read_to_string(self.either("memory.oom_control", "memory.events")).unwrap();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        // Kernels before 4.13 do not count them.
        kills.is_none_or(|kills| kills.trim() != "0")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Of a test that failed.
        let left = fs::read_to_string(self.file("cgroup.procs")).unwrap_or_default();
        for pid in left.lines().filter_map(|line| line.parse().ok()) {
            let pid = rustix::process::Pid::from_raw(pid);
            pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        }
        if !std::thread::panicking() {
            eventually("the group is removed", || fs::remove_dir(&self.directory).is_ok());
        } else {
            let _ = fs::remove_dir(&self.directory);
        }
    }
}
