//! The scheduler: throttling, isolation, watchdogs, housekeeping, mitigations.

use super::{CheckedMachine, Finding, Look, Severity, some_of};
use crate::{
    sys::{cpus::Cpus, kernel_config::release},
    units,
};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] =
    &[rt_throttling, nmi_watchdog, soft_watchdog, vm_stat_interval, mitigations];

/// Checks that only make sense for named CPUs.
pub(super) const OF_NAMED: &[Look] = &[isolcpus, nohz_full, rcu_nocbs];

fn rt_throttling(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "rt_throttling";
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    let Some(runtime_us) = subject.root.value::<i64>(file) else {
        return Finding::unknown(CODE, format!("{file} cannot be read"), "check as root");
    };
    let period_us = subject.root.value("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let is_limited = runtime_us >= 0 && runtime_us < period_us;
    let limit_ms = is_limited.then(|| (period_us - runtime_us) / 1000);
    let stopped = |ms: i64| {
        format!("a real-time task that never sleeps is stopped for {ms} ms of each second")
    };
    let sysctl = "for tasks that spin: `sysctl -w kernel.sched_rt_runtime_us=-1`";
    let off = "`for f in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do echo 0 > $f; done`";
    let (evidence, remedy) = match (limit_ms, FairServer::of(subject)) {
        (None, FairServer::None) => {
            return Finding::ok(CODE, "real-time tasks may use all CPU time");
        }
        (None, FairServer::Unknown) => {
            let evidence = "the kernel's fair server (/sys/kernel/debug/sched/fair_server) cannot \
                            be read; it stops real-time tasks also where sched_rt_runtime_us is -1";
            return Finding::unknown(CODE, evidence, "check as root, where debugfs is mounted");
        }
        (None, FairServer::Takes { ms }) => (
            format!("{} by the fair server, whatever sched_rt_runtime_us is", stopped(ms)),
            format!("for tasks that spin: {off}"),
        ),
        (Some(ms), FairServer::Takes { .. } | FairServer::Unknown) => {
            (stopped(ms), format!("{sysctl}, and {off}"))
        }
        (Some(ms), FairServer::None) => {
            (stopped(ms), format!("{sysctl}; a task that never sleeps then locks up its CPU"))
        }
    };
    Finding::costs(CODE, Severity::Little, evidence, remedy)
}

/// The deadline server that runs ordinary tasks where real-time ones leave them no time; it does
/// not ask for `sched_rt_runtime_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FairServer {
    /// It is missing, or off.
    None,
    /// It takes this much of each second, on the CPU where it takes most.
    Takes { ms: i64 },
    /// The kernel has one, and does not show it.
    Unknown,
}

impl FairServer {
    fn of(subject: &CheckedMachine) -> Self {
        let directory = "/sys/kernel/debug/sched/fair_server";
        let value = |cpu: u32, name: &str| -> Option<i64> {
            subject.root.value(format!("{directory}/cpu{cpu}/{name}"))
        };
        let taken_ms = |cpu: u32| {
            let period_ns = value(cpu, "period").unwrap_or(1_000_000_000).max(1);
            Some(value(cpu, "runtime")?.saturating_mul(1_000) / period_ns)
        };
        match subject.cpus.iter().filter_map(taken_ms).max() {
            Some(0) => Self::None,
            Some(ms) => Self::Takes { ms },
            // It came with 6.12.
            None if release(&subject.root).is_some_and(|release| release >= (6, 12)) => {
                Self::Unknown
            }
            None => Self::None,
        }
    }
}

/// Whether `what` is kept off all CPUs that the user named, and the kernel option that does it.
fn kept_off(subject: &CheckedMachine, code: &'static str, kept: &Cpus, what: &str) -> Finding {
    let missing = subject.cpus.without(kept);
    if missing.is_empty() {
        return Finding::ok(code, format!("{what} kept off {}", units::cpus(&subject.cpus)));
    }
    let option = if code == "isolcpus" { "isolcpus=managed_irq,domain," } else { code };
    let equals = if option.ends_with(',') { "" } else { "=" };
    let shield = match code {
        "isolcpus" => format!("; or without a reboot: `tardy shield {} -- COMMAND`", subject.cpus),
        _ => String::new(),
    };
    Finding::costs(
        code,
        Severity::Matters,
        format!("{what} not kept off {}", units::cpus(&missing)),
        if subject.is_everything() {
            "name fewer CPUs with --cpus: at least one must do everything else".to_owned()
        } else {
            format!("kernel option `{option}{equals}{}`{shield}", subject.cpus)
        },
    )
}

fn list(text: Option<String>) -> Cpus {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn isolcpus(subject: &CheckedMachine) -> Finding {
    let isolated = list(subject.root.read("/sys/devices/system/cpu/isolated"));
    kept_off(subject, "isolcpus", &isolated, "other tasks are")
}

fn nohz_full(subject: &CheckedMachine) -> Finding {
    let free = list(subject.root.read("/sys/devices/system/cpu/nohz_full"));
    kept_off(subject, "nohz_full", &free, "the timer tick is")
}

fn rcu_nocbs(subject: &CheckedMachine) -> Finding {
    let free = |name: &str| list(subject.option(name).map(str::to_owned));
    // nohz_full CPUs have no RCU callbacks either.
    let free: Cpus = free("rcu_nocbs").iter().chain(free("nohz_full").iter()).collect();
    let all = subject.option("rcu_nocbs") == Some("all");
    let free = if all { subject.cpus.clone() } else { free };
    kept_off(subject, "rcu_nocbs", &free, "RCU callbacks are")
}

fn switch(
    subject: &CheckedMachine,
    (code, name): (&'static str, &str),
    evidence: &str,
    remedy: &str,
) -> Finding {
    match subject.root.read(format!("/proc/sys/kernel/{name}")).as_deref() {
        Some("0") => Finding::ok(code, "off"),
        Some(_) => Finding::costs(code, Severity::Little, evidence, remedy),
        None => Finding::ok(code, "the kernel has no such watchdog"),
    }
}

fn nmi_watchdog(subject: &CheckedMachine) -> Finding {
    switch(
        subject,
        ("nmi_watchdog", "nmi_watchdog"),
        "the NMI watchdog interrupts every CPU about every ten seconds, and uses a perf counter",
        "`sysctl -w kernel.nmi_watchdog=0`, or kernel option `nmi_watchdog=0`",
    )
}

fn soft_watchdog(subject: &CheckedMachine) -> Finding {
    switch(
        subject,
        ("soft_watchdog", "soft_watchdog"),
        "the lock-up watchdog wakes a task of priority 99 on every CPU every 4 s",
        "`sysctl -w kernel.soft_watchdog=0`, or kernel option `nosoftlockup`; or keep it off some \
         CPUs: `sysctl -w kernel.watchdog_cpumask=LIST`",
    )
}

fn vm_stat_interval(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "vm_stat_interval";
    match subject.root.value::<u32>("/proc/sys/vm/stat_interval") {
        Some(seconds) if seconds >= 10 => Finding::ok(CODE, format!("{seconds} s")),
        Some(seconds) => Finding::costs(
            CODE,
            Severity::Little,
            format!("memory statistics are collected on every CPU every {seconds} s"),
            "`sysctl -w vm.stat_interval=10`",
        ),
        None => Finding::ok(CODE, "the kernel collects none"),
    }
}

fn mitigations(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "mitigations";
    if subject.option("mitigations") == Some("off") {
        return Finding::ok(CODE, "off on the kernel's command line");
    }
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let is_mitigated = |name: &String| {
        let text = subject.root.read(format!("{directory}/{name}"));
        text.is_some_and(|text| text.starts_with("Mitigation"))
    };
    let mut names = subject.root.names(directory);
    names.retain(is_mitigated);
    if names.is_empty() {
        return Finding::ok(CODE, "no mitigation is active");
    }
    Finding::costs(
        CODE,
        Severity::Little,
        format!("entering the kernel is slower because of {}", some_of(&names)),
        "leave them on, unless every program on this machine is trusted: kernel option \
         `mitigations=off`",
    )
}
