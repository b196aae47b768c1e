//! Interrupts: their affinity, their threads, and irqbalance.

use super::{CheckedMachine, Finding, Look, Severity, some_of};
use crate::{
    sys::{
        counters::{InterruptSource, interrupt_sources},
        cpus::Cpus,
    },
    units,
};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] = &[irq_threads, irqbalance];

/// Checks that only make sense for named CPUs: some CPU has to take interrupts.
pub(super) const OF_NAMED: &[Look] = &[irq_affinity];

/// The default priority of the threads that `tardy run` measures.
const MEASURED: u32 = 90;

/// The interrupts that may fire on the checked CPUs, by number and name; the most frequent ones
/// first.
fn on_our_cpus(subject: &CheckedMachine) -> Vec<String> {
    let is_ours = |irq: &String| {
        let of = |name: &str| subject.root.read(format!("/proc/irq/{irq}/{name}"));
        let list = of("effective_affinity_list").filter(|list| !list.is_empty());
        let cpus: Cpus = list.or_else(|| of("smp_affinity_list"))?.parse().ok()?;
        cpus.iter().any(|cpu| subject.cpus.contains(cpu)).then_some(())
    };
    let named = |irq: String| {
        // Each handler has a directory; without one the interrupt does not fire.
        let names = subject.root.names(format!("/proc/irq/{irq}"));
        let is_handler =
            |name: &&String| subject.root.path(format!("/proc/irq/{irq}/{name}")).is_dir();
        Some(format!("{irq} {}", names.iter().find(is_handler)?))
    };
    let mut irqs = subject.root.names("/proc/irq");
    irqs.retain(|name| name.parse::<u32>().is_ok());
    let sources = interrupt_sources(&subject.root);
    irqs.sort_by_key(|irq| {
        let own = sources.iter().find(|source| source.kind == "irq" && source.name == *irq);
        let fired = own.map_or(0, |own| fired_on(own, &subject.cpus));
        (std::cmp::Reverse(fired), irq.parse::<u32>().unwrap_or(0))
    });
    irqs.into_iter().filter(|irq| is_ours(irq).is_some()).filter_map(named).collect()
}

fn fired_on(source: &InterruptSource, cpus: &Cpus) -> u64 {
    let ours = source.counts.iter().filter(|(cpu, _)| cpus.contains(*cpu));
    ours.map(|(_, count)| *count).sum()
}

fn irq_affinity(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "irq_affinity";
    if !subject.root.path("/proc/irq").is_dir() {
        return Finding::unknown(CODE, "/proc/irq cannot be read", "check outside the container");
    }
    let cpus = &subject.cpus;
    let irqs = on_our_cpus(subject);
    if irqs.is_empty() {
        return Finding::ok(CODE, format!("no device interrupts {}", units::cpus(cpus)));
    }
    let first = irqs.first().and_then(|irq| irq.split(' ').next()).unwrap_or_default();
    Finding::costs(
        CODE,
        Severity::Matters,
        format!(
            "{} interrupts of devices may fire on {}: {}",
            irqs.len(),
            units::cpus(cpus),
            some_of(&irqs)
        ),
        format!(
            "`tardy shield {cpus} -- COMMAND`, or one by one: `echo LIST > \
             /proc/irq/{first}/smp_affinity_list`; from boot on: kernel option `irqaffinity=LIST`"
        ),
    )
}

/// Processes: number, name, real-time priority.
fn tasks(subject: &CheckedMachine) -> impl Iterator<Item = (String, u32)> {
    let pids = subject.root.names("/proc").into_iter().filter(|name| name.parse::<u32>().is_ok());
    pids.filter_map(|pid| {
        let stat = subject.root.read(format!("/proc/{pid}/stat"))?;
        let (before, after) = stat.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        // Field 40 of proc_pid_stat(5); the state, field 3, comes first here.
        let priority = after.split_ascii_whitespace().nth(37)?.parse().unwrap_or(0);
        Some((name, priority))
    })
}

fn irq_threads(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "irq_threads";
    let threads: Vec<(String, u32)> =
        tasks(subject).filter(|(name, _)| name.starts_with("irq/")).collect();
    let above: Vec<String> = threads
        .iter()
        .filter(|(_, priority)| *priority >= MEASURED)
        .map(|(name, priority)| format!("{name} at {priority}"))
        .collect();
    if !above.is_empty() {
        return Finding::costs(
            CODE,
            Severity::Matters,
            format!("interrupt threads preempt priority {MEASURED}: {}", some_of(&above)),
            "`chrt -f -p 50 PID` for each, PID from `ps -eo pid,rtprio,comm | grep irq/`; or a \
             higher --priority",
        );
    }
    let highest = threads.iter().map(|(_, priority)| *priority).max();
    match highest {
        Some(highest) => Finding::ok(CODE, format!("{} of them, at most {highest}", threads.len())),
        None => Finding::ok(CODE, "interrupts are not handled by threads here"),
    }
}

fn irqbalance(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "irqbalance";
    if !tasks(subject).any(|(name, _)| name == "irqbalance") {
        return Finding::ok(CODE, "irqbalance does not run");
    }
    let severity = if subject.named { Severity::Matters } else { Severity::Little };
    Finding::costs(
        CODE,
        severity,
        "irqbalance runs, and moves interrupts to any CPU at any time",
        format!(
            "`systemctl stop irqbalance`, or keep it off these CPUs: a line \
             `IRQBALANCE_BANNED_CPULIST={}` in /etc/default/irqbalance",
            subject.cpus
        ),
    )
}
