//! The files that tardy changes: their paths are the list of what a journal can have written.

use std::io;

use crate::sys::{
    kernel_file::{self, KernelFs},
    root::Root,
};

/// Numbers of the kernel that tardy changes, below `/proc/sys`.
const SYSCTLS: [[&str; 2]; 8] = [
    ["kernel", "timer_migration"],
    ["kernel", "sched_rt_runtime_us"],
    ["kernel", "nmi_watchdog"],
    ["kernel", "soft_watchdog"],
    ["kernel", "numa_balancing"],
    ["vm", "stat_interval"],
    ["vm", "compaction_proactiveness"],
    ["vm", "dirty_writeback_centisecs"],
];

/// A file of the kernel that holds one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile<'a> {
    path: &'a str,
    of: KernelFs,
}

impl<'a> KnownFile<'a> {
    /// The one of this path; `None` if tardy changes no such file.
    #[must_use]
    pub fn find(path: &'a str) -> Option<Self> {
        file_system(path).map(|of| Self { path, of })
    }

    /// Its value, without the white space at its end; of a file that shows all choices, the one
    /// that is chosen.
    ///
    /// # Errors
    /// It does not exist, is not a file of the kernel, or cannot be read.
    pub fn read(&self, root: &Root) -> io::Result<String> {
        Ok(Self::shown(self.path, kernel_file::read(root, self.path, self.of)?))
    }

    /// Writes a value.
    ///
    /// # Errors
    /// As [`Self::read`], or the kernel refuses the value.
    pub fn write(&self, root: &Root, value: &str) -> io::Result<()> {
        kernel_file::write(root, self.path, self.of, value)
    }

    /// The value in the text of the file at `path`.
    #[must_use]
    pub fn shown(path: &str, text: String) -> String {
        // `always [madvise] never`; `none voluntary (full) lazy`
        let marks = match path {
            PREEMPTION => ['(', ')'],
            _ if path.starts_with(HUGE_PAGES) => ['[', ']'],
            _ => return text,
        };
        let mut words = text.split_ascii_whitespace();
        let chosen = words.find_map(|word| word.strip_prefix(marks[0])?.strip_suffix(marks[1]));
        chosen.map_or(text.clone(), str::to_owned)
    }
}

/// How far the kernel is preempted, where that can be switched.
const PREEMPTION: &str = "/sys/kernel/debug/sched/preempt";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/";

/// The file system of a setting that tardy changes; absent for any other path.
fn file_system(path: &str) -> Option<KernelFs> {
    let is_number = |text: &str| {
        (1..10).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
    };
    let is_nth = |text: &str, of: &str| text.strip_prefix(of).is_some_and(is_number);
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["", "proc", "irq", "default_smp_affinity"] => Some(KernelFs::Procfs),
        ["", "proc", "irq", irq, "smp_affinity_list"] if is_number(irq) => Some(KernelFs::Procfs),
        ["", "proc", "sys", group, name] => {
            SYSCTLS.contains(&[group, name]).then_some(KernelFs::Procfs)
        }
        ["", "sys", "devices", "virtual", "workqueue", "cpumask"]
        | ["", "sys", "kernel", "mm", "transparent_hugepage", "enabled" | "defrag"] => {
            Some(KernelFs::Sysfs)
        }
        ["", "sys", "kernel", "debug", "sched", "preempt"] => Some(KernelFs::Debugfs),
        ["", "sys", "kernel", "tracing", "tracing_thresh"]
        | ["", "sys", "kernel", "tracing", "hwlat_detector", "width" | "window"] => {
            Some(KernelFs::Tracefs)
        }
        ["", "sys", "kernel", "debug", "sched", "fair_server", cpu, "runtime"]
            if is_nth(cpu, "cpu") =>
        {
            Some(KernelFs::Debugfs)
        }
        ["", "sys", "devices", "system", "cpu", cpu, rest @ ..] if is_nth(cpu, "cpu") => match rest
        {
            ["online"] | ["cpufreq", "scaling_governor"] => Some(KernelFs::Sysfs),
            ["cpuidle", state, "disable"] if is_nth(state, "state") => Some(KernelFs::Sysfs),
            _ => None,
        },
        ["", .., "cpuset.cpus" | "cpuset.sched_load_balance"] if is_straight(path) => {
            Some(KernelFs::Cgroup)
        }
        _ => None,
    }
}

/// Whether a path leads down from the root, by no detour.
pub(super) fn is_straight(path: &str) -> bool {
    let parts = path.strip_prefix('/').map(|path| path.split('/'));
    parts.is_some_and(|mut parts| parts.all(|part| !["", ".", ".."].contains(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_that_shows_all_choices_the_chosen_one_is_its_value() {
        let shown = |path: &str, text: &str| KnownFile::shown(path, text.into());
        let pages = "/sys/kernel/mm/transparent_hugepage/enabled";
        assert_eq!(shown(pages, "always [madvise] never"), "madvise");
        assert_eq!(shown(pages, "madvise"), "madvise", "as it is written");
        assert_eq!(shown(PREEMPTION, "none voluntary (full) lazy"), "full");
        assert_eq!(shown("/proc/irq/7/smp_affinity_list", "[0]"), "[0]");
    }

    #[test]
    fn known_files_are_those_that_tardy_changes() {
        for path in [
            "/proc/sys/kernel/timer_migration",
            "/proc/sys/vm/stat_interval",
            "/sys/kernel/mm/transparent_hugepage/defrag",
            "/sys/kernel/debug/sched/preempt",
            "/sys/kernel/debug/sched/fair_server/cpu3/runtime",
            "/sys/devices/system/cpu/cpu1/cpuidle/state2/disable",
        ] {
            assert!(KnownFile::find(path).is_some(), "{path}");
        }
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/stat_interval",
            "/proc/sys/net/vm/stat_interval",
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "/sys/kernel/debug/sched/fair_server/cpux/runtime",
            "/sys/devices/system/cpu/cpu1/cpuidle/state2/name",
            "/sys/devices/system/cpu/cpu1/cpuidle/../disable",
        ] {
            assert!(KnownFile::find(path).is_none(), "{path}");
        }
    }
}
