//! CPU quotas of control groups (`cpu.max`, `cpu.cfs_quota_us`): whoever is in a group that has
//! used its own up does not run until the next period, but for real-time threads.

use std::path::{Component, Path};

use super::root::Root;

/// How often the control groups of this process had used up their quotas, since they were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// Periods in which they had.
    pub times: u64,
    /// How long tasks were kept from running for that, ns; a sum over CPUs.
    pub kept_ns: u64,
}

impl QuotaUse {
    /// Of its groups and those above them, as far as they are visible; absent where none can be
    /// read that counts it.
    #[must_use]
    pub fn read(root: &Root) -> Option<Self> {
        let groups = root.read("/proc/self/cgroup")?;
        let found = groups.lines().filter_map(|line| Self::of_hierarchy(root, line));
        found.reduce(|a, b| a + b)
    }

    /// A line of `/proc/PID/cgroup`, as in cgroups(7): `number:controllers:path`.
    fn of_hierarchy(root: &Root, line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            list if list.split(',').any(|controller| controller == "cpu") => "/sys/fs/cgroup/cpu",
            _ => return None,
        };
        let group = Path::new(group.strip_prefix('/')?);
        // Of a group beyond this namespace nothing is visible here.
        if group.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let stats = group.ancestors().filter_map(|group| {
            root.read(Path::new(mount).join(group).join("cpu.stat"))
                .as_deref()
                .and_then(Self::parse)
        });
        stats.reduce(|a, b| a + b)
    }

    /// A `cpu.stat` of either version; that of a group without the controller lacks the counts.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
        };
        let ns = value("throttled_time");
        let kept_ns = ns.or_else(|| Some(value("throttled_usec")?.saturating_mul(1_000)))?;
        Some(Self { times: value("nr_throttled")?, kept_ns })
    }

    /// What came since `before`; nothing where a group was left.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            times: self.times.saturating_sub(before.times),
            kept_ns: self.kept_ns.saturating_sub(before.kept_ns),
        }
    }
}

impl std::ops::Add for QuotaUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            times: self.times.saturating_add(other.times),
            kept_ns: self.kept_ns.saturating_add(other.kept_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<(u64, u64)> {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::at(machine.path());
        for (file, text) in files {
            let path = root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        QuotaUse::read(&root).map(|used| (used.times, used.kept_ns))
    }

    #[test]
    fn groups_and_those_above_them_count_in_either_version() {
        let second = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 30\n"),
            ("/sys/fs/cgroup/a/b/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_usec 4\n"),
        ];
        assert_eq!(found(&second), Some((3, 34_000)));
        let first = [
            ("/proc/self/cgroup", "9:cpuset:/x\n4:cpu,cpuacct:/a\n0::/\n"),
            ("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 7\nthrottled_time 55\n"),
        ];
        assert_eq!(found(&first), Some((7, 55)));
    }

    #[test]
    fn what_cannot_be_read_or_does_not_count_is_absent() {
        assert_eq!(found(&[]), None);
        let stat = ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        assert_eq!(found(&[("/proc/self/cgroup", "0::/\n"), stat]), None);
        let above = ("/sys/fs/cgroup/cpu.stat", "nr_throttled 2\nthrottled_usec 30\n");
        assert_eq!(found(&[("/proc/self/cgroup", "0::/../b\nnonsense\n"), above]), None);
    }
}
