//! What has to be there before a program is loaded: rights, and the kernel's description of its
//! types (BTF), which also lists its tracepoints.

use std::{collections::HashSet, fs, path::Path};

use memchr::memmem;

use crate::sys::{capabilities, root::Root};

use super::TracingUnavailable;

/// Where the kernel describes its types.
pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The number of the initial PID namespace (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "4026531836";

/// What the name of a tracepoint's type begins with, after the end of the name before.
const PREFIX: &[u8] = b"\0btf_trace_";

/// Whether this process may trace this kernel, without loading anything. Loading may still fail.
///
/// # Errors
/// [`TracingUnavailable::NoRights`], [`TracingUnavailable::NoBtf`] or
/// [`TracingUnavailable::PidNamespace`].
pub fn can_trace() -> Result<(), TracingUnavailable> {
    may_trace(capabilities::may_trace(), Path::new(BTF))?;
    own_namespace()
}

/// Whether threads have the numbers here that the kernel's own records have.
pub(super) fn own_namespace() -> Result<(), TracingUnavailable> {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    is_first_namespace(&namespace.to_string_lossy())
}

/// The programs see the numbers that threads have outside of all containers.
fn is_first_namespace(namespace: &str) -> Result<(), TracingUnavailable> {
    match namespace.strip_prefix("pid:[").and_then(|rest| rest.strip_suffix(']')) {
        Some(number) if number != FIRST_PID_NAMESPACE => Err(TracingUnavailable::PidNamespace),
        _ => Ok(()),
    }
}

fn may_trace(capable: bool, btf: &Path) -> Result<(), TracingUnavailable> {
    if !capable {
        let why = "neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON".to_owned();
        return Err(TracingUnavailable::NoRights { why });
    }
    fs::File::open(btf).map(drop).map_err(|error| no_btf(btf, &error))
}

fn no_btf(path: &Path, error: &dyn std::fmt::Display) -> TracingUnavailable {
    TracingUnavailable::NoBtf { path: path.display().to_string(), why: error.to_string() }
}

/// The tracepoints for which the kernel's types have a description.
pub(super) fn tracepoints(btf: &Path) -> Result<HashSet<String>, TracingUnavailable> {
    let bytes = fs::read(btf).map_err(|error| no_btf(btf, &error))?;
    Ok(tracepoints_in(&bytes))
}

/// Names lie in the description as strings that end in a zero byte. There are some 5 MB of it, and
/// every traced run looks through it once.
fn tracepoints_in(btf: &[u8]) -> HashSet<String> {
    memmem::find_iter(btf, PREFIX)
        .filter_map(|at| btf.get(at + PREFIX.len()..)?.split(|&byte| byte == 0).next())
        .filter_map(|name| str::from_utf8(name).ok())
        .map(str::to_owned)
        .collect()
}

/// Whether timers of threads may expire in a softirq: so it is with `PREEMPT_RT`.
pub(super) fn timers_expire_in_softirq(root: &Root) -> bool {
    root.read("/sys/kernel/realtime").is_some_and(|text| text == "1")
        || root.read("/proc/version").is_some_and(|text| text.contains("PREEMPT_RT"))
}

/// Whether the kernel is known to be preemptible wherever preemption is not disabled.
pub(super) fn is_preemptible(root: &Root) -> bool {
    let dynamic = root.read("/sys/kernel/debug/sched/preempt");
    let asked = root.read("/proc/cmdline");
    timers_expire_in_softirq(root)
        || dynamic.is_some_and(|text| text.contains("(full)"))
        || asked.is_some_and(|text| text.split_whitespace().any(|word| word == "preempt=full"))
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
    fn a_container_with_thread_numbers_of_its_own_is_an_error_that_names_the_remedy() {
        assert!(is_first_namespace("pid:[4026531836]").is_ok());
        assert!(is_first_namespace("").is_ok(), "a kernel without such namespaces");
        let lack = is_first_namespace("pid:[4026532281]").unwrap_err();
        assert!(lack.to_string().contains("--pid host"), "{lack}");
    }

    #[test]
    fn a_kernel_that_does_not_describe_its_types_is_named() {
        let lack = may_trace(true, Path::new("/nonexistent/btf")).unwrap_err();
        assert!(matches!(lack, TracingUnavailable::NoBtf { .. }));
        assert!(lack.to_string().contains("CONFIG_DEBUG_INFO_BTF"), "{lack}");
        assert!(tracepoints(Path::new("/nonexistent/btf")).is_err());
    }

    #[test]
    fn tracepoints_are_found_among_the_names_of_types() {
        let names = b"\x9f\xeb\x01\0int\0btf_trace_sched_switch\0x_btf_trace_no\0btf_trace_b\0";
        let found = tracepoints_in(names);
        assert_eq!(found, ["sched_switch", "b"].map(str::to_owned).into());
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
    fn full_preemption_is_known_from_debugfs_or_the_command_line() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert!(!is_preemptible(&root));
        fs::create_dir_all(directory.path().join("proc")).unwrap();
        fs::write(directory.path().join("proc/cmdline"), "quiet preempt=full\n").unwrap();
        assert!(is_preemptible(&root));
        fs::write(directory.path().join("proc/cmdline"), "quiet preempt=none\n").unwrap();
        assert!(!is_preemptible(&root));
        let debug = directory.path().join("sys/kernel/debug/sched");
        fs::create_dir_all(&debug).unwrap();
        fs::write(debug.join("preempt"), "none voluntary (full)\n").unwrap();
        assert!(is_preemptible(&root));
    }
}
