//! What has to be there before a program is loaded: rights, and the kernel's description of its
//! types (BTF).

use std::{fs, path::Path};

use crate::sys::{capabilities, kernel_config, root::Root};

use super::TracingUnavailable;

/// Where the kernel describes its types.
pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The numbers of the initial namespaces (`PROC_PID_INIT_INO` and `PROC_TIME_INIT_INO`,
/// include/linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "4026531836";
const FIRST_TIME_NAMESPACE: &str = "4026531834";

/// The first kernel whose BPF has atomic operations that return the value before: added in 5.12,
/// and to arm64's compiler of BPF in 5.18. Some distributions have them in older kernels.
const FIRST: (u32, u32) = if cfg!(target_arch = "aarch64") { (5, 18) } else { (5, 12) };

/// Whether this process may trace this kernel, without loading anything. Loading may still fail; on
/// a kernel that is called too old here it may work, if its distribution added what is missing.
///
/// # Errors
/// [`TracingUnavailable::NoRights`], [`TracingUnavailable::NoBtf`],
/// [`TracingUnavailable::PidNamespace`], [`TracingUnavailable::TimeNamespace`] or
/// [`TracingUnavailable::TooOld`].
pub fn can_trace() -> Result<(), TracingUnavailable> {
    may_load()?;
    too_old(&Root::default()).map_or(Ok(()), Err)
}

/// The same without a look at the kernel's release.
pub(super) fn may_load() -> Result<(), TracingUnavailable> {
    may_trace(capabilities::may_trace(), Path::new(BTF))?;
    own_namespaces()
}

/// Whether threads have the numbers here that the kernel's own records have, and its clocks show
/// the same time.
pub(super) fn own_namespaces() -> Result<(), TracingUnavailable> {
    let link = |name: &str| {
        let target = fs::read_link(Path::new("/proc/self/ns").join(name)).unwrap_or_default();
        target.to_string_lossy().into_owned()
    };
    are_first_namespaces(&link("pid"), &link("time"))
}

/// The programs see the numbers that threads have outside of all containers, and the clock without
/// the offset of a time namespace (`timens_add_monotonic`, include/linux/time_namespace.h).
fn are_first_namespaces(pid: &str, time: &str) -> Result<(), TracingUnavailable> {
    let is_other = |link: &str, begin: &str, first: &str| {
        let number = link.strip_prefix(begin).and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|number| number != first)
    };
    if is_other(pid, "pid:[", FIRST_PID_NAMESPACE) {
        return Err(TracingUnavailable::PidNamespace);
    }
    if is_other(time, "time:[", FIRST_TIME_NAMESPACE) {
        return Err(TracingUnavailable::TimeNamespace);
    }
    Ok(())
}

fn may_trace(capable: bool, btf: &Path) -> Result<(), TracingUnavailable> {
    if !capable {
        let why = "neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON".to_owned();
        return Err(TracingUnavailable::NoRights { why });
    }
    fs::File::open(btf).map(drop).map_err(|error| no_btf(btf, &error))
}

pub(super) fn no_btf(path: &Path, error: &dyn std::fmt::Display) -> TracingUnavailable {
    TracingUnavailable::NoBtf { path: path.display().to_string(), why: error.to_string() }
}

/// Of a kernel that refused programs: that it is too old for them, if it is.
pub(super) fn too_old(root: &Root) -> Option<TracingUnavailable> {
    let is_old = kernel_config::release(root).is_some_and(|release| release < FIRST);
    is_old.then(|| TracingUnavailable::TooOld {
        release: root.read("/proc/sys/kernel/osrelease").unwrap_or_default(),
    })
}

/// Whether timers of threads may expire in a softirq: so it is with `PREEMPT_RT`.
pub(super) fn timers_expire_in_softirq(root: &Root) -> bool {
    root.read("/sys/kernel/realtime").is_some_and(|text| text == "1")
        || root.read("/proc/version").is_some_and(|text| text.contains("PREEMPT_RT"))
}

/// Whether the kernel is known to be preemptible, for a real-time task, wherever preemption is not
/// disabled: so it is with `full` and with `lazy` (from 6.13 on), which lets ordinary tasks alone
/// wait for the tick (`resched_curr_lazy`, kernel/sched/core.c).
///
/// The model in force (`sched_dynamic_show`, kernel/sched/debug.c) precedes what the kernel was
/// booted with, of which the last word counts, and which only `PREEMPT_DYNAMIC` heeds
/// (`setup_preempt_mode`, kernel/sched/core.c).
pub(super) fn is_preemptible(root: &Root) -> bool {
    let is_model = |model: &str| ["full", "lazy"].contains(&model);
    if timers_expire_in_softirq(root) {
        return true;
    }
    if let Some(models) = root.read("/sys/kernel/debug/sched/preempt") {
        let mut words = models.split_whitespace();
        let in_force = words.find_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
        return in_force.is_some_and(is_model);
    }
    let heeds = root.read("/proc/version").is_some_and(|text| text.contains("PREEMPT_DYNAMIC"));
    let asked = root.read("/proc/cmdline").unwrap_or_default();
    let model = asked.split_whitespace().rev().find_map(|word| word.strip_prefix("preempt="));
    heeds && model.is_some_and(is_model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_an_error_that_names_the_remedy_also_in_a_container() {
        let lack = may_trace(false, Path::new(BTF)).unwrap_err();
        let text = lack.to_string();
        for word in ["CAP_BPF", "CAP_PERFMON", "setcap cap_bpf,cap_perfmon+ep", "--cap-add"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_container_with_thread_numbers_or_clocks_of_its_own_is_an_error_that_names_the_remedy() {
        let (pid, time) = ("pid:[4026531836]", "time:[4026531834]");
        assert!(are_first_namespaces(pid, time).is_ok());
        assert!(are_first_namespaces("", "").is_ok(), "a kernel without such namespaces");
        let lack = are_first_namespaces("pid:[4026532281]", time).unwrap_err();
        assert!(lack.to_string().contains("--pid host"), "{lack}");
        let lack = are_first_namespaces(pid, "time:[4026532282]").unwrap_err();
        assert!(lack.to_string().contains("time namespace"), "{lack}");
    }

    #[test]
    fn a_kernel_that_does_not_describe_its_types_is_named() {
        let lack = may_trace(true, Path::new("/nonexistent/btf")).unwrap_err();
        assert!(matches!(lack, TracingUnavailable::NoBtf { .. }));
        assert!(lack.to_string().contains("CONFIG_DEBUG_INFO_BTF"), "{lack}");
    }

    #[test]
    fn a_kernel_that_is_too_old_is_named_with_the_one_that_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert!(too_old(&root).is_none(), "nothing is known of it");
        fs::create_dir_all(directory.path().join("proc/sys/kernel")).unwrap();
        let booted = |release: &str| {
            fs::write(directory.path().join("proc/sys/kernel/osrelease"), release).unwrap();
            too_old(&root).map(|lack| lack.to_string())
        };
        let text = booted("5.10.0-32-amd64\n").unwrap();
        assert!(text.contains("5.12 or later (arm64: 5.18)"), "{text}");
        assert!(text.contains("this is 5.10.0-32-amd64"), "{text}");
        assert_eq!(booted("6.1.0-56-amd64\n"), None);
    }

    #[test]
    fn a_real_time_kernel_is_known_by_either_file() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert!(!timers_expire_in_softirq(&root));
        fs::create_dir_all(directory.path().join("proc")).unwrap();
        let version = directory.path().join("proc/version");
        fs::write(&version, "Linux version 6.1.0 #1 SMP PREEMPT_DYNAMIC").unwrap();
        assert!(!timers_expire_in_softirq(&root));
        fs::write(&version, "Linux version 6.1.0 #1 SMP PREEMPT_RT Debian").unwrap();
        assert!(timers_expire_in_softirq(&root) && is_preemptible(&root));
    }

    #[test]
    fn the_preemption_model_in_force_precedes_the_one_that_was_booted_with() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::at(directory.path());
        assert!(!is_preemptible(&root));
        let booted = |words: &str| {
            write("proc/cmdline", words);
            is_preemptible(&root)
        };
        write("proc/version", "Linux version 6.1.0 #1 SMP PREEMPT_NONE");
        assert!(!booted("quiet preempt=full\n"), "a kernel that has one model");
        write("proc/version", "Linux version 6.1.0 #1 SMP PREEMPT_DYNAMIC Debian");
        assert!(booted("quiet preempt=full\n") && booted("preempt=lazy"));
        assert!(!booted("quiet preempt=none\n") && !booted("preempt=full preempt=voluntary"));
        let model = "sys/kernel/debug/sched/preempt";
        for (models, expected) in [
            ("none voluntary (full)\n", true),
            ("none voluntary full (lazy)\n", true),
            ("none (voluntary) full\n", false),
        ] {
            write(model, models);
            assert_eq!((booted("preempt=full"), booted("")), (expected, expected), "{models}");
        }
    }
}
