//! Both backends in a tree that stands for a machine.

use super::*;
use crate::setup::journal::tests::journal_in;

struct Machine {
    directory: tempfile::TempDir,
    root: Root,
}

impl Machine {
    fn new(mounts: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let machine = Self { directory, root };
        machine.write("/proc/mounts", mounts);
        machine
    }

    fn v1() -> Self {
        let machine = Self::new(
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
             cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n",
        );
        machine.write("/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
        machine.write("/sys/fs/cgroup/cpuset/cpuset.mems", "0\n");
        machine.write("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1\n");
        machine.write("/sys/fs/cgroup/cpuset/tasks", "1\n2\n");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn journal(&self) -> Journal {
        journal_in(self.directory.path())
    }

    fn make(&self, journal: &mut Journal) -> Result<Group, SetupError> {
        let backend = Backend::find(&self.root).unwrap();
        let (shielded, rest) = ("1".parse().unwrap(), "0".parse().unwrap());
        Group::make(journal, &self.root, backend, &shielded, &rest)
    }
}

#[test]
fn the_backend_is_where_cpuset_is_and_without_it_the_reason_is_reported() {
    assert_eq!(Backend::find(&Machine::v1().root), Ok(Backend::V1("/sys/fs/cgroup/cpuset".into())));
    let unified = Machine::new("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n");
    assert!(Backend::find(&unified.root).unwrap_err().contains("neither"));
    unified.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    assert_eq!(Backend::find(&unified.root), Ok(Backend::V2("/sys/fs/cgroup".into())));
    unified.write("/proc/sys/kernel/osrelease", "5.10.0-32-amd64\n");
    assert!(Backend::find(&unified.root).unwrap_err().contains("6.1 and later"));
    let none = Machine::new("proc /proc proc rw 0 0\n");
    assert!(Backend::find(&none.root).unwrap_err().contains("no cgroup hierarchy"));
}

#[test]
fn version_1_makes_two_exclusive_cpusets_and_removes_them() {
    let machine = Machine::v1();
    let mut journal = machine.journal();
    let group = machine.make(&mut journal).unwrap();
    let value = |path: &str| machine.root.read(format!("/sys/fs/cgroup/cpuset/{path}"));
    assert_eq!(value("tardy-shield/cpuset.cpus").unwrap(), "1");
    assert_eq!(value("tardy-shield/cpuset.sched_load_balance").unwrap(), "0");
    assert_eq!(value("tardy-housekeeping/cpuset.cpus").unwrap(), "0");
    assert_eq!(value("tardy-housekeeping/cpuset.sched_load_balance").unwrap(), "1");
    assert_eq!(value("cpuset.sched_load_balance").unwrap(), "0");
    group.enter().unwrap();
    assert_eq!(value("tardy-shield/tasks").unwrap(), "0");
    group.leave().unwrap();
    assert_eq!(value("tardy-housekeeping/tasks").unwrap(), "0");
    assert!(!group.holds_helpers());
    assert_eq!(journal.undo().failed, [""; 0]);
    assert_eq!(value("cpuset.sched_load_balance").unwrap(), "1");
    assert_eq!(
        (value("tardy-shield/cpuset.cpus"), value("tardy-housekeeping/tasks")),
        (None, None)
    );
}

#[test]
fn another_cpuset_with_the_same_cpus_is_an_error_that_names_it() {
    let machine = Machine::v1();
    machine.write("/sys/fs/cgroup/cpuset/docker/cpuset.cpus", "0-3\n");
    let mut journal = machine.journal();
    let error = machine.make(&mut journal).unwrap_err().to_string();
    assert!(error.contains("/sys/fs/cgroup/cpuset/docker has CPUs 0-3"), "{error}");
}

#[test]
fn version_2_switches_the_controller_on_and_says_why_a_partition_is_invalid() {
    let machine = Machine::new("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    machine.write("/sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    machine.write("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
    let mut journal = machine.journal();
    let group = machine.make(&mut journal).unwrap();
    let value = |path: &str| machine.root.read(format!("/sys/fs/cgroup/{path}")).unwrap();
    assert_eq!(value("cgroup.subtree_control"), "+cpuset");
    assert_eq!(value("tardy-shield/cpuset.cpus"), "1");
    assert_eq!(value("tardy-shield/cpuset.cpus.partition"), "isolated");
    assert!(group.holds_helpers());
    journal.undo();

    // What a kernel makes of it that cannot: a file that takes nothing and says why.
    let partition = machine.root.path("/sys/fs/cgroup/tardy-shield/cpuset.cpus.partition");
    let mut journal = machine.journal();
    fs::create_dir_all(partition.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/sys/devices/system/cpu/possible", partition).unwrap();
    let error = machine.make(&mut journal).unwrap_err().to_string();
    assert!(error.contains("the partition of CPU 1 is"), "{error}");
}

#[test]
fn a_read_only_cgroup_is_an_error_with_its_path() {
    let machine = Machine::v1();
    let mut journal = machine.journal();
    // Nothing can be made below a file.
    machine.write("/proc/mounts", "cgroup /sys/fs/cgroup/cpuset/tasks cgroup rw,cpuset 0 0\n");
    let error = machine.make(&mut journal).unwrap_err().to_string();
    assert!(error.contains("cannot make /sys/fs/cgroup/cpuset/tasks/tardy-"), "{error}");
}
