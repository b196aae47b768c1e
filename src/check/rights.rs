//! Rights: whether a program may use real-time priority, lock memory and keep CPUs awake.

use rustix::fs::{Access, access};

use super::{CheckedMachine, Finding, Look, Severity};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] = &[real_time_rights, memory_lock_rights, dma_latency];

/// Bits of `CapEff`.
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

/// More than the memory that a run locks, bytes.
const ENOUGH_MEMORY: u64 = 512 << 20;

/// Whether this process may use its capabilities on the machine: those of another user namespace
/// than the first give neither priorities nor locked memory (`capable` in kernel/capability.c).
fn is_in_first_namespace(subject: &CheckedMachine) -> bool {
    let Some(map) = subject.root.read("/proc/self/uid_map") else { return true };
    let numbers: Vec<&str> = map.split_ascii_whitespace().collect();
    numbers == ["0", "0", "4294967295"]
}

fn has_capability(subject: &CheckedMachine, bit: u32) -> Option<bool> {
    if !is_in_first_namespace(subject) {
        return Some(false);
    }
    let status = subject.root.read("/proc/self/status")?;
    let sets = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(sets.trim(), 16).ok().map(|sets| sets >> bit & 1 == 1)
}

/// The soft limit called `name`; `u64::MAX` for none.
fn limit(subject: &CheckedMachine, name: &str) -> Option<u64> {
    let limits = subject.root.read("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let soft = line.split_ascii_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

fn right(
    subject: &CheckedMachine,
    (code, bit): (&'static str, u32),
    (name, enough): (&str, u64),
    (severity, evidence, remedy): (Severity, &str, &str),
) -> Finding {
    let capable = has_capability(subject, bit);
    match (capable, limit(subject, name)) {
        (Some(true), _) => Finding::ok(code, "granted by capability"),
        (_, Some(limit)) if limit >= enough => Finding::ok(code, "granted by this user's limit"),
        (None, None) => {
            Finding::unknown(code, "/proc/self cannot be read", "`ulimit -a` and `capsh --print`")
        }
        _ => Finding::costs(code, severity, evidence, remedy),
    }
}

fn real_time_rights(subject: &CheckedMachine) -> Finding {
    right(
        subject,
        ("real_time_rights", CAP_SYS_NICE),
        ("Max realtime priority", 90),
        (
            Severity::Serious,
            "this user may not run real-time threads of priority 90: other tasks can delay them",
            "as root: `setcap cap_sys_nice,cap_ipc_lock+ep $(which tardy)`, or a line `@group - \
             rtprio 95` in /etc/security/limits.conf and a new login",
        ),
    )
}

fn memory_lock_rights(subject: &CheckedMachine) -> Finding {
    right(
        subject,
        ("memory_lock_rights", CAP_IPC_LOCK),
        ("Max locked memory", ENOUGH_MEMORY),
        (
            Severity::Matters,
            "this user may not lock memory: a page may be swapped out when it is needed",
            "a line `@group - memlock unlimited` in /etc/security/limits.conf and a new login, or \
             the capability cap_ipc_lock (`setcap`)",
        ),
    )
}

fn dma_latency(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "dma_latency";
    let device = subject.root.path("/dev/cpu_dma_latency");
    if !device.exists() {
        return Finding::ok(CODE, "no such device");
    }
    if access(&device, Access::WRITE_OK).is_ok() {
        return Finding::ok(CODE, "this user may keep CPUs out of deep idle states");
    }
    Finding::costs(
        CODE,
        Severity::Little,
        "this user may not open /dev/cpu_dma_latency, which keeps CPUs out of deep idle states",
        "as root: `chgrp GROUP /dev/cpu_dma_latency && chmod g+w /dev/cpu_dma_latency`",
    )
}
