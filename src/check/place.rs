//! Where this system runs: on bare metal or in a virtual machine, in a container, under limits.

use super::{CheckedMachine, Finding, Look, Severity};
use crate::{
    setup::facts,
    sys::{
        control_groups::{self, RealTimeBan},
        counters::Stat,
        cpus::Cpus,
    },
    units,
};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] =
    &[cpu_limit, steal_time, cpu_set, virtual_machine, real_time_group, container];

fn virtual_machine(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "virtual_machine";
    match facts::virtualisation(&subject.root) {
        Some(kind) => Finding::costs(
            CODE,
            Severity::Matters,
            format!("this is a virtual machine ({kind}): its host schedules its CPUs"),
            "measure on bare metal; or on the host: dedicated CPUs for this guest (`virsh \
             vcpupin`), real-time priority for its vCPU threads, huge pages",
        ),
        None => Finding::ok(CODE, "no sign of a hypervisor"),
    }
}

fn steal_time(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "steal_time";
    let ticks = Stat::read(&subject.root).cpus;
    let share = |steal: u64, all: u64| steal as f64 * 100.0 / all.max(1) as f64;
    let ours = ticks.iter().filter(|cpu| subject.cpus.contains(cpu.cpu));
    let worst = ours.max_by(|a, b| share(a.steal, a.all).total_cmp(&share(b.steal, b.all)));
    let Some(worst) = worst else {
        return Finding::unknown(CODE, "/proc/stat names none of these CPUs", "`cat /proc/stat`");
    };
    let percent = share(worst.steal, worst.all);
    if percent < 0.1 {
        return Finding::ok(CODE, "no steal time");
    }
    let severity = if percent > 5.0 { Severity::Serious } else { Severity::Matters };
    Finding::costs(
        CODE,
        severity,
        format!("the hypervisor took {percent:.1}% of CPU {}'s time since boot", worst.cpu),
        "use a host that is not overcommitted, or dedicated CPUs (a dedicated instance)",
    )
}

fn container(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "container";
    let marks = ["/.dockerenv", "/run/.containerenv"];
    let marked = marks.iter().any(|mark| subject.root.path(mark).exists());
    let groups = subject.root.read("/proc/1/cgroup").unwrap_or_default();
    let named = ["docker", "kubepods", "lxc", "libpod"].iter().find(|name| groups.contains(**name));
    if !marked && named.is_none() {
        return Finding::ok(CODE, "no sign of a container");
    }
    Finding::costs(
        CODE,
        Severity::Little,
        format!("this is a container ({})", named.unwrap_or(&"/.dockerenv or similar exists")),
        "start it with `--cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=99 --ulimit \
         memlock=-1 --cpuset-cpus LIST` and without `--cpus`",
    )
}

fn cpu_limit(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "cpu_limit";
    for directory in control_groups::directories(&subject.root, "cpu") {
        let read = |name: &str| subject.root.read(format!("{directory}/{name}"));
        // "max 100000" or "50000 100000"
        let limit = read("cpu.max").filter(|limit| !limit.starts_with("max"));
        let quota = read("cpu.cfs_quota_us").filter(|quota| !quota.starts_with('-'));
        let Some(limit) = limit.or_else(|| {
            Some(format!("{} {}", quota?, read("cpu.cfs_period_us").unwrap_or_default()))
        }) else {
            continue;
        };
        return Finding::costs(
            CODE,
            Severity::Serious,
            format!("{directory} limits CPU time to {limit} us (quota, period); then all wait"),
            format!(
                "`echo max > {directory}/cpu.max` (v1: `echo -1 > {directory}/cpu.cfs_quota_us`), \
                 or no `--cpus` and no limits.cpu where the container is started"
            ),
        );
    }
    Finding::ok(CODE, "no cgroup above this process limits its CPU time")
}

fn real_time_group(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "real_time_group";
    match RealTimeBan::find(&subject.root) {
        Some(ban) => Finding::costs(CODE, Severity::Serious, ban.text(), ban.remedy()),
        None => Finding::ok(CODE, "no cgroup forbids real-time tasks"),
    }
}

fn cpu_set(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "cpu_set";
    let status = subject.root.read("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let Some(allowed) = list.and_then(|list| list.trim().parse::<Cpus>().ok()) else {
        return Finding::unknown(CODE, "/proc/self/status cannot be read", "`taskset -pc $$`");
    };
    let missing = subject.cpus.without(&allowed);
    if missing.is_empty() {
        return Finding::ok(CODE, format!("this process may use {}", units::cpus(&allowed)));
    }
    let severity = if subject.named { Severity::Serious } else { Severity::Little };
    Finding::costs(
        CODE,
        severity,
        format!("this process may not use {}, only {allowed}", units::cpus(&missing)),
        format!(
            "`taskset -pc {} $$`; where that is refused, a cpuset restricts it: `cat \
             /proc/self/cgroup` shows which",
            subject.cpus
        ),
    )
}
