//! What the machine did in the last second: read where the view runs, not from the run.

use std::collections::HashMap;

use tardy_hot::clock::now_ns;

use crate::{
    live::{CpuShares, MovedInterrupt},
    run::Document,
    sys::{
        counters::{ContextTicks, InterruptSource, context_ticks, interrupt_sources},
        cpus::Cpus,
        root::Root,
    },
};

/// Sources of interrupts that are shown at the most.
const MOST_SOURCES: usize = 40;

/// Counters of this machine, and what they were at the last look.
#[derive(Debug)]
pub(super) struct Machine {
    root: Root,
    at_ns: i64,
    ticks: HashMap<u32, ContextTicks>,
    sources: HashMap<(&'static str, String), InterruptSource>,
}

/// What changed since the look before.
#[derive(Debug, Default)]
pub(super) struct MachineNow {
    pub cpus: Vec<CpuShares>,
    pub interrupts: Vec<MovedInterrupt>,
}

/// Whether a run is measured by the kernel that this program runs on.
pub(super) fn is_here(document: &Document) -> bool {
    let own = Root::default().read("/proc/sys/kernel/random/boot_id");
    own.is_some() && own == document.facts.boot_id
}

/// The CPUs that a run measures.
pub(super) fn measured(document: &Document) -> Cpus {
    let found = document.setup.found.cpus.as_deref();
    let asked = document.setup.asked.as_ref().map(|asked| asked.cpus.as_str());
    found.or(asked).and_then(|list| list.parse().ok()).unwrap_or_default()
}

impl Machine {
    pub(super) fn new() -> Self {
        let (ticks, sources) = (HashMap::new(), HashMap::new());
        Self { root: Root::default(), at_ns: now_ns(), ticks, sources }
    }

    /// Reads the counters; the first time there is nothing that changed.
    pub(super) fn look(&mut self, measured: &Cpus) -> MachineNow {
        let now = now_ns();
        let seconds = (now - self.at_ns).max(1) as f64 / 1e9;
        self.at_ns = now;
        MachineNow { cpus: self.cpus(measured), interrupts: self.interrupts(measured, seconds) }
    }

    fn cpus(&mut self, measured: &Cpus) -> Vec<CpuShares> {
        let ticks = context_ticks(&self.root);
        let shares = ticks
            .iter()
            .filter_map(|now| shares(self.ticks.get(&now.cpu)?, now, measured.contains(now.cpu)));
        let shares = shares.collect();
        self.ticks = ticks.into_iter().map(|ticks| (ticks.cpu, ticks)).collect();
        shares
    }

    fn interrupts(&mut self, measured: &Cpus, seconds: f64) -> Vec<MovedInterrupt> {
        let sources = interrupt_sources(&self.root);
        let moved = sources.iter().filter_map(|now| {
            let before = self.sources.get(&(now.kind, now.name.clone()))?;
            moved(before, now, measured, seconds)
        });
        let mut moved: Vec<_> = moved.collect();
        moved.sort_by(|a, b| b.per_s.total_cmp(&a.per_s).then_with(|| a.source.cmp(&b.source)));
        moved.truncate(MOST_SOURCES);
        let keyed = |source: InterruptSource| ((source.kind, source.name.clone()), source);
        self.sources = sources.into_iter().map(keyed).collect();
        moved
    }
}

/// Shares of the time between two looks; `None` if no tick has passed.
fn shares(before: &ContextTicks, now: &ContextTicks, is_measured: bool) -> Option<CpuShares> {
    let passed = |of: fn(&ContextTicks) -> u64| of(now).saturating_sub(of(before)) as f64;
    let [user, system, idle] =
        [passed(|ticks| ticks.user), passed(|ticks| ticks.system), passed(|ticks| ticks.idle)];
    let [hardirq, softirq, steal] =
        [passed(|ticks| ticks.hardirq), passed(|ticks| ticks.softirq), passed(|ticks| ticks.steal)];
    let all = user + system + idle + hardirq + softirq + steal;
    (all > 0.0).then(|| CpuShares {
        cpu: now.cpu,
        is_measured,
        user: user / all,
        system: system / all,
        hardirq: hardirq / all,
        softirq: softirq / all,
        steal: steal / all,
    })
}

fn moved(
    before: &InterruptSource,
    now: &InterruptSource,
    measured: &Cpus,
    seconds: f64,
) -> Option<MovedInterrupt> {
    let known: HashMap<u32, u64> = before.counts.iter().copied().collect();
    let (mut all, mut own) = (0_u64, 0_u64);
    for (cpu, count) in &now.counts {
        // One that came online meanwhile counts from its first look on.
        let Some(before) = known.get(cpu) else { continue };
        let more = count.saturating_sub(*before);
        all += more;
        own += if measured.contains(*cpu) { more } else { 0 };
    }
    (all > 0).then(|| MovedInterrupt {
        source: source(now),
        per_s: all as f64 / seconds,
        measured_per_s: own as f64 / seconds,
    })
}

/// What it is called: chip and kind of a device's interrupt do not tell one from another.
fn source(of: &InterruptSource) -> String {
    let InterruptSource { kind, name, description, .. } = of;
    let is_line = name.bytes().all(|byte| byte.is_ascii_digit());
    match (*kind, is_line) {
        ("irq", true) => {
            let handlers = description.rsplit(' ').next().unwrap_or_default();
            format!("irq {name} {handlers}").trim_end().to_owned()
        }
        ("irq", false) if !description.is_empty() => format!("{description} ({name})"),
        _ => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(user: u64, idle: u64, steal: u64) -> ContextTicks {
        ContextTicks { cpu: 3, user, idle, steal, ..ContextTicks::default() }
    }

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let found = shares(&ticks(100, 100, 7), &ticks(130, 160, 17), true).unwrap();
        assert_eq!((found.cpu, found.is_measured), (3, true));
        assert_eq!((found.user, found.steal, found.busy()), (0.3, 0.1, 0.4));
        assert_eq!(shares(&ticks(5, 5, 5), &ticks(5, 5, 5), true), None, "no tick passed");
    }

    #[test]
    fn only_sources_that_counted_have_moved() {
        let source = |counts: &[u64]| InterruptSource {
            kind: "irq",
            name: "24".into(),
            description: "PCI-MSI virtio0".into(),
            handlers: Vec::new(),
            counts: (0..).zip(counts.iter().copied()).collect(),
        };
        let measured: Cpus = [1].into_iter().collect();
        let before = source(&[10, 10]);
        let found = moved(&before, &source(&[10, 30]), &measured, 2.0).unwrap();
        assert_eq!(found.source, "irq 24 virtio0");
        assert_eq!((found.per_s, found.measured_per_s), (10.0, 10.0));
        let other = moved(&before, &source(&[16, 10, 99]), &measured, 2.0).unwrap();
        assert_eq!((other.per_s, other.measured_per_s), (3.0, 0.0));
        assert_eq!(moved(&before, &before, &measured, 2.0), None);
    }
}
