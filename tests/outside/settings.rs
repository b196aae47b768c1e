//! Settings of the machine that setting it up changes: read, and given odd values.

use std::{collections::BTreeMap, fs, path::PathBuf};

use tardy::{
    setup::shield::cpuset::Backend,
    sys::{cpus::Cpus, root::Root, tasks},
};

/// Where unbound kernel work may run.
pub(crate) const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

/// This CPU alone.
pub(crate) fn only(cpu: u32) -> Cpus {
    [cpu].into_iter().collect()
}

/// What a file holds, without its line end; nothing where it cannot be read.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

/// Gives an interrupt and the workqueues values that nobody would have by default, and says what
/// was there.
pub(crate) fn plant(cpu: u32) -> Vec<(PathBuf, String)> {
    let mut planted = Vec::new();
    let own = only(cpu).to_string();
    for irq in tasks::numbers(std::path::Path::new("/proc/irq")) {
        let path = PathBuf::from(format!("/proc/irq/{irq}/smp_affinity_list"));
        let old = read(path.to_str().unwrap());
        if old != own && fs::write(&path, &own).is_ok() {
            planted.push((path, old));
            break;
        }
    }
    let old = read(WORKQUEUES);
    if fs::write(WORKQUEUES, only(cpu).to_mask()).is_ok() {
        planted.push((WORKQUEUES.into(), old));
    }
    planted
}

/// Every setting that a shield changes.
pub(crate) fn settings() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut keep = |path: String| {
        let value = read(&path);
        found.insert(path, value);
    };
    for irq in tasks::numbers(std::path::Path::new("/proc/irq")) {
        keep(format!("/proc/irq/{irq}/smp_affinity_list"));
    }
    keep("/proc/irq/default_smp_affinity".into());
    keep(WORKQUEUES.into());
    for cpu in 0..64 {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if fs::metadata(&path).is_ok() {
            keep(path);
        }
    }
    let (Backend::V1(mount) | Backend::V2(mount)) = Backend::find(&Root::default()).unwrap();
    for file in ["cpuset.sched_load_balance", "cgroup.subtree_control", "cpuset.cpus"] {
        keep(format!("{mount}/{file}"));
    }
    for entry in fs::read_dir(&mount).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let group = entry.file_name().into_string().unwrap();
        // Other groups of this machine come and go as they like.
        if group.starts_with("tardy-") {
            keep(format!("{mount}/{group}"));
        }
    }
    found
}

/// A governor that the CPU does not have now, where it could have another.
pub(crate) fn other_governor(cpu: u32) -> Option<String> {
    let file = |name| read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{name}"));
    let (now, all) = (file("governor"), file("available_governors"));
    all.split_whitespace().find(|name| *name != now).map(str::to_owned)
}
