//! Memory: pages that the kernel swaps out, merges or moves while a program runs.

use super::{CheckedMachine, Finding, Look, Severity, some_of};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] = &[swap, transparent_hugepages, numa_balancing];

fn swap(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "swap";
    let Some(text) = subject.root.read("/proc/swaps") else {
        return Finding::ok(CODE, "the kernel cannot swap");
    };
    let used_kib = |line: &str| line.split_ascii_whitespace().nth(3)?.parse::<u64>().ok();
    let name = |line: &str| line.split_ascii_whitespace().next().map(str::to_owned);
    let names: Vec<String> = text.lines().skip(1).filter_map(name).collect();
    let used_kib: u64 = text.lines().skip(1).filter_map(used_kib).sum();
    if names.is_empty() {
        return Finding::ok(CODE, "none");
    }
    let severity = if used_kib > 0 { Severity::Matters } else { Severity::Little };
    let used_mib = used_kib.div_ceil(1024);
    Finding::costs(
        CODE,
        severity,
        format!("{}, {used_mib} MiB used: unlocked memory may be swapped out", some_of(&names)),
        "`swapoff -a`; or lock the program's memory (mlockall), as `tardy run` does",
    )
}

fn transparent_hugepages(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "transparent_hugepages";
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(text) = subject.root.read(file) else {
        return Finding::ok(CODE, "the kernel has none");
    };
    match text.split(['[', ']']).nth(1) {
        Some("always") => Finding::costs(
            CODE,
            Severity::Matters,
            "always: a page fault may clear 2 MiB, and khugepaged moves pages in use",
            format!("`echo madvise > {file}`, or kernel option `transparent_hugepage=madvise`"),
        ),
        Some(mode) => Finding::ok(CODE, mode),
        None => Finding::unknown(CODE, format!("{file} contains {text}"), format!("`cat {file}`")),
    }
}

fn numa_balancing(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "numa_balancing";
    let on = subject.root.read("/proc/sys/kernel/numa_balancing").is_some_and(|on| on != "0");
    let nodes = subject.root.read("/sys/devices/system/node/online").unwrap_or_default();
    if !on {
        return Finding::ok(CODE, "off");
    }
    if nodes.parse::<crate::sys::cpus::Cpus>().is_ok_and(|nodes| nodes.len() < 2) {
        return Finding::ok(CODE, "on, but there is only one node");
    }
    Finding::costs(
        CODE,
        Severity::Matters,
        "pages are unmapped to see who uses them, and moved between nodes: page faults, also in \
         locked memory",
        "`sysctl -w kernel.numa_balancing=0`, or kernel option `numa_balancing=disable`",
    )
}
