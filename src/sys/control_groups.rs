//! Where the control groups of this process lie, and what they forbid.

use super::{conditions::throttles_groups, root::Root};

/// The directories of this process's groups and of those above them, innermost first: of version 2,
/// and of version 1 with this controller. Some may be missing here.
#[must_use]
pub fn directories(root: &Root, controller: &str) -> Vec<String> {
    let text = root.read("/proc/self/cgroup").unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
        let (Some(controllers), Some(path)) = (controllers, path) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if controllers.split(',').any(|own| own == controller) => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => continue,
        };
        for mount in mounts {
            let mut path = path.trim_end_matches('/').to_owned();
            loop {
                directories.push(format!("{mount}{path}"));
                let Some(up) = path.rfind('/') else { break };
                path.truncate(up);
            }
        }
    }
    directories
}

/// A control group that allows no real-time tasks, whatever rights they have: a kernel that counts
/// the time of groups of real-time tasks (`RT_GROUP_SCHED`) gives a new group none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RealTimeBan {
    /// Of version 1, whose file can give it time.
    NoTime {
        /// The group.
        directory: String,
    },
    /// Of version 2, which has no such file.
    NoFile {
        /// The group.
        directory: String,
    },
}

impl RealTimeBan {
    /// The ban on this process, if there is one.
    #[must_use]
    pub fn find(root: &Root) -> Option<Self> {
        // Without a limit of the whole machine the kernel asks no group (`rt_bandwidth_enabled`).
        if root.value::<i64>("/proc/sys/kernel/sched_rt_runtime_us").is_some_and(|us| us < 0) {
            return None;
        }
        let directories = directories(root, "cpu");
        let read = |directory: &String, name: &str| root.read(format!("{directory}/{name}"));
        let is_zero =
            |directory: &&String| read(directory, "cpu.rt_runtime_us").as_deref() == Some("0");
        if let Some(directory) = directories.iter().find(is_zero) {
            return Some(Self::NoTime { directory: directory.clone() });
        }
        // The uppermost group of version 2 has no such file, and every other one with the
        // controller has it.
        let mut bounded = directories.iter().filter(|group| read(group, "cpu.max").is_some());
        let directory = bounded.next()?.clone();
        (throttles_groups(root) == Some(true)).then_some(Self::NoFile { directory })
    }

    /// What is observed.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::NoTime { directory } => format!(
                "the control group {directory} gives real-time tasks no time: its \
                 cpu.rt_runtime_us is 0, and this kernel has RT_GROUP_SCHED"
            ),
            Self::NoFile { directory } => format!(
                "the control group {directory} gives real-time tasks no time: this kernel has \
                 RT_GROUP_SCHED, which gives it only to the uppermost group of cgroup v2"
            ),
        }
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NoTime { directory } => format!(
                "Give it and the groups above it time, from the top down, e.g. `echo 950000 > \
                 {directory}/cpu.rt_runtime_us`, or measure outside of it"
            ),
            Self::NoFile { .. } => "Measure in the uppermost group (`echo $$ > \
                 /sys/fs/cgroup/cgroup.procs`), run `sysctl kernel.sched_rt_runtime_us=-1`, or \
                 boot with rt_group_sched=0 if the kernel knows that option"
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<RealTimeBan> {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::at(machine.path());
        for (file, text) in files {
            let path = root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        RealTimeBan::find(&root)
    }

    const FIRST: (&str, &str) = ("/proc/self/cgroup", "4:cpu,cpuacct:/a/b\n0::/\n");
    const SECOND: (&str, &str) = ("/proc/self/cgroup", "0::/\n");
    const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

    #[test]
    fn a_group_without_real_time_is_found_in_either_version() {
        let own = ("/sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us", "0\n");
        let directory = "/sys/fs/cgroup/cpu/a/b".to_owned();
        assert_eq!(found(&[FIRST, own]), Some(RealTimeBan::NoTime { directory }));
        assert_eq!(found(&[FIRST, (own.0, "950000\n")]), None);
        assert_eq!(found(&[FIRST, own, (LIMIT, "-1\n")]), None, "the kernel asks no group");

        let kernel = ("/proc/sys/kernel/osrelease", "6.1.0\n");
        let config = ("/boot/config-6.1.0", "CONFIG_RT_GROUP_SCHED=y\n");
        let bounded = ("/sys/fs/cgroup/cpu.max", "max 100000\n");
        let directory = "/sys/fs/cgroup".to_owned();
        let ban = Some(RealTimeBan::NoFile { directory });
        assert_eq!(found(&[SECOND, kernel, config, bounded]), ban);
        assert_eq!(found(&[SECOND, kernel, config]), None, "the uppermost group");
        assert_eq!(found(&[SECOND, kernel, bounded]), None, "no such kernel");
    }
}
