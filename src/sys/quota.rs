//! CPU quotas of control groups (`cpu.max`, `cpu.cfs_quota_us`): tasks in a group that has used its
//! quota up do not run until the next period, except real-time threads.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use super::root::{Root, SHOWN};

/// The groups of this process, and where the version that it is in lies.
pub(super) const GROUPS: &str = "/proc/self/cgroup";
pub(super) const MOUNT: &str = "/sys/fs/cgroup";

/// What says whether `/proc` is there: a kernel without control groups has no list of them.
const PROC: &str = "/proc/self/status";

const COUNTS: &str = "cpu.stat";

/// Every group of either version has it.
const TASKS: &str = "cgroup.procs";

/// How often the control groups of this process had used up their quotas, since they were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// Periods in which they had.
    pub times: u64,
    /// How long tasks were kept from running for that, ns; a sum over CPUs.
    pub kept_ns: u64,
}

impl QuotaUse {
    /// Of its groups and those above them, as far as they are visible; nothing where the kernel has
    /// no groups, or where those are without a quota.
    ///
    /// # Errors
    /// What would say it and cannot be read: `GROUPS`, or below `MOUNT`.
    pub fn read(root: &Root) -> Result<Self, &'static str> {
        let Some(groups) = root.read(GROUPS) else {
            let is_absent = root.path(PROC).exists() && is_missing(&root.path(GROUPS));
            return if is_absent { Ok(Self::default()) } else { Err(GROUPS) };
        };
        let found: Vec<_> = groups.lines().filter_map(cpu_group).collect();
        let first = found.iter().any(|(version, _)| *version == Version::First);
        // Where the first version has the controller, the second one has it not.
        let own = found.iter().filter(|(version, _)| (*version == Version::First) == first);
        own.map(|(version, group)| Self::of_group(root, *version, group))
            .try_fold(Self::default(), |sum, one| Some(sum + one?))
            .ok_or(MOUNT)
    }

    /// Of a group and those above it; `None` if they cannot be read.
    fn of_group(root: &Root, version: Version, group: &Path) -> Option<Self> {
        // Of a group beyond this namespace nothing is visible here.
        if group.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let mut mounts = version.mounts().iter().map(Path::new);
        // Where a container sees its own group alone, that is the uppermost.
        let seen = |mount: &Path| {
            let own = root.path(mount.join(group));
            is_seen(&own).or_else(|| is_seen(&root.path(mount))) == Some(true)
        };
        let mount = mounts.find(|mount| seen(mount))?;
        let visible = group.ancestors().map(|group| mount.join(group));
        let above = match Above::find(root, mount) {
            Above::Shown(above) => above,
            Above::Nothing | Above::Hidden => Vec::new(),
        };
        let stats = visible
            .chain(above)
            .filter_map(|group| root.read(group.join(COUNTS)).as_deref().and_then(Self::parse));
        Some(stats.fold(Self::default(), |sum, one| sum + one))
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

/// Whether quotas of groups above this container's, which act on it as well, cannot be seen.
#[must_use]
pub fn has_hidden_groups(root: &Root) -> bool {
    let mounts = [Version::First, Version::Second].into_iter().flat_map(Version::mounts);
    mounts.map(Path::new).any(|mount| matches!(Above::find(root, mount), Above::Hidden))
}

/// The groups above the uppermost one that is visible at a mount.
enum Above {
    /// The visible one is the kernel's uppermost.
    Nothing,
    /// Where they are visible all the same, innermost first.
    Shown(Vec<PathBuf>),
    /// Nowhere.
    Hidden,
}

impl Above {
    fn find(root: &Root, mount: &Path) -> Self {
        let has = |name: &str| root.path(mount.join(name)).exists();
        // The kernel's own uppermost group has no type; in version 1 it alone has the agent, and
        // every group of the CPU controller has shares.
        let is_below = has("cgroup.type") || (has("cpu.shares") && !has("release_agent"));
        if !is_below {
            return Self::Nothing;
        }
        let top = PathBuf::from(format!("{SHOWN}{MOUNT}"));
        let own = fs::metadata(root.path(mount)).ok().map(|about| (about.dev(), about.ino()));
        match own.and_then(|own| way_to(root, &top, own, DEEPEST)) {
            Some(way) => Self::Shown(way),
            None => Self::Hidden,
        }
    }
}

/// More levels of groups than container managers nest.
const DEEPEST: u32 = 10;

/// The directories from the parent of the one with this device and number up to `top`.
fn way_to(root: &Root, top: &Path, own: (u64, u64), levels: u32) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(root.path(top)).ok()?.flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for group in groups {
        let is_own = group.metadata().is_ok_and(|about| (about.dev(), about.ino()) == own);
        let way = if is_own {
            Some(Vec::new())
        } else if levels > 0 {
            way_to(root, &top.join(group.file_name()), own, levels - 1)
        } else {
            None
        };
        if let Some(mut way) = way {
            way.push(top.to_owned());
            return Some(way);
        }
    }
    None
}

/// Versions of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    First,
    Second,
}

impl Version {
    /// Where its groups of the CPU controller may lie.
    const fn mounts(self) -> &'static [&'static str] {
        match self {
            Self::First => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            Self::Second => &[MOUNT, "/sys/fs/cgroup/unified"],
        }
    }
}

/// The group that the CPU controller may bound, of a line of `/proc/PID/cgroup`, as in cgroups(7):
/// `number:controllers:path`.
fn cpu_group(line: &str) -> Option<(Version, &Path)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, group) = rest.split_once(':')?;
    let version = match controllers {
        "" => Version::Second,
        list if list.split(',').any(|controller| controller == "cpu") => Version::First,
        _ => return None,
    };
    Some((version, Path::new(group.strip_prefix('/')?)))
}

/// Whether the counters in a group's directory can be read, or are missing because nothing counts;
/// `None` without such a group.
fn is_seen(group: &Path) -> Option<bool> {
    match fs::read(group.join(COUNTS)) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_missing(&group.join(TASKS)) {
                None
            } else {
                Some(true)
            }
        }
        Err(_) => Some(false),
    }
}

/// Whether there is certainly no such file.
fn is_missing(file: &Path) -> bool {
    fs::symlink_metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound)
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

    fn found(files: &[(&str, &str)]) -> Result<(u64, u64), &'static str> {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::at(machine.path());
        for (file, text) in files {
            let path = root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        QuotaUse::read(&root).map(|used| (used.times, used.kept_ns))
    }

    const SECOND: (&str, &str) = (GROUPS, "0::/a/b\n");

    #[test]
    fn groups_and_those_above_them_count_in_either_version() {
        let second = [
            SECOND,
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 30\n"),
            ("/sys/fs/cgroup/a/b/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_usec 4\n"),
        ];
        assert_eq!(found(&second), Ok((3, 34_000)));
        let first = [
            (GROUPS, "9:cpuset:/x\n4:cpu,cpuacct:/a\n0::/gone\n"),
            ("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 7\nthrottled_time 55\n"),
        ];
        assert_eq!(found(&first), Ok((7, 55)));
    }

    #[test]
    fn a_container_that_sees_its_own_group_alone_finds_it_uppermost() {
        let own = ("/sys/fs/cgroup/cpu.stat", "nr_throttled 2\nthrottled_usec 30\n");
        assert_eq!(found(&[SECOND, own]), Ok((2, 30_000)));
        let first = (GROUPS, "4:cpu:/docker/a\n");
        let own = ("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_throttled 2\nthrottled_time 30\n");
        assert_eq!(found(&[first, own]), Ok((2, 30)));
    }

    #[test]
    fn where_nothing_counts_no_quota_was_used_up() {
        let stat = ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        assert_eq!(found(&[(GROUPS, "0::/\n"), stat]), Ok((0, 0)), "no controller");
        let group = ("/sys/fs/cgroup/cpu/a/cgroup.procs", "1\n");
        assert_eq!(found(&[(GROUPS, "4:cpu:/a\n"), group]), Ok((0, 0)), "no CFS_BANDWIDTH");
        assert_eq!(found(&[(GROUPS, "")]), Ok((0, 0)), "no hierarchy is mounted");
        assert_eq!(found(&[(PROC, "Name:\n")]), Ok((0, 0)), "no groups in this kernel");
    }

    #[test]
    fn groups_that_cannot_be_looked_at_are_no_groups_without_a_quota() {
        assert_eq!(found(&[]), Err(GROUPS), "no /proc");
        assert_eq!(found(&[SECOND]), Err(MOUNT), "not mounted here");
        let above = ("/sys/fs/cgroup/cpu.stat", "nr_throttled 2\nthrottled_usec 30\n");
        assert_eq!(found(&[(GROUPS, "0::/../b\n"), above]), Err(MOUNT), "beyond the namespace");
        assert_eq!(found(&[(GROUPS, "4:cpu:/a\n0::/\n"), above]), Err(MOUNT));
        // A directory cannot be read as a file, whoever tries.
        let inner = ("/sys/fs/cgroup/a/b/cpu.stat/x", "");
        assert_eq!(found(&[SECOND, above, inner]), Err(MOUNT));
    }

    #[test]
    fn groups_above_a_container_count_where_it_has_the_hierarchy_of_its_host() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::at(machine.path());
        let write = |file: &str, text: &str| {
            let path = root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(GROUPS, "0::/\n");
        write("/host/sys/fs/cgroup/pods/cpu.stat", "nr_throttled 2\nthrottled_usec 30\n");
        write("/host/sys/fs/cgroup/pods/one/cpu.stat", "nr_throttled 1\nthrottled_usec 4\n");
        write("/host/sys/fs/cgroup/pods/one/cgroup.type", "domain\n");
        write("/host/sys/fs/cgroup/other/cpu.stat", "nr_throttled 9\nthrottled_usec 9\n");
        std::fs::create_dir_all(root.path("/sys/fs")).unwrap();
        let own = root.path("/host/sys/fs/cgroup/pods/one");
        std::os::unix::fs::symlink(own, root.path(MOUNT)).unwrap();
        let found = QuotaUse::read(&root).map(|used| (used.times, used.kept_ns));
        assert_eq!((found, has_hidden_groups(&root)), (Ok((3, 34_000)), false));
        std::fs::rename(root.path("/host"), root.path("/hidden")).unwrap();
        std::fs::remove_file(root.path(MOUNT)).unwrap();
        write("/sys/fs/cgroup/cpu.stat", "nr_throttled 1\nthrottled_usec 4\n");
        write("/sys/fs/cgroup/cgroup.type", "domain\n");
        let found = QuotaUse::read(&root).map(|used| (used.times, used.kept_ns));
        assert_eq!((found, has_hidden_groups(&root)), (Ok((1, 4_000)), true));
    }
}
