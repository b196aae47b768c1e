//! Who used the CPUs: the views of a profile. Top symbols, tasks, contexts of each CPU.

mod flame;
mod late;
mod own_time;
mod page;
mod text;

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::run::{
    Document,
    profile::{CpuContext, Profile, ProfileCost},
};

pub use flame::{FlameGraph, FlameKind};
pub use late::{LateFunction, LateProfile, late_text};
pub use own_time::{OwnTime, OwnTimePlace, own_time, own_time_text};
pub use page::{PageCpuUse, PageLateUse, PageProfile};
pub use text::text;

/// The number of tasks and functions in the views.
pub const MOST_SHOWN: usize = 1_000;

/// A profile, summed up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileReport {
    /// What samples were taken by: `cpu-clock` or `cycles`.
    pub event: String,
    /// What weights are in: `ns` or `cycles`.
    pub unit: String,
    /// Samples a second on each CPU, as asked for.
    pub hz: u32,
    /// How long, s.
    pub duration_s: f64,
    /// Samples in it.
    pub samples: u64,
    /// Samples that were due: one a period on each CPU, idle ones too. Absent if samples come at
    /// no fixed rate (`cycles`), or the CPUs are not known.
    pub due: Option<u64>,
    /// Samples that were lost.
    pub lost: u64,
    /// Samples whose task or stack had no room.
    pub other: u64,
    /// Whether interrupts are told from what they interrupt.
    pub tells_interrupts: bool,
    /// What sampling took.
    pub cost: ProfileCost,
    /// By CPU.
    pub cpus: Vec<CpuContextShare>,
    /// By the names of tasks, those that took most first.
    pub tasks: Vec<TaskNameShare>,
    /// By function, those that took most themselves first.
    pub symbols: Vec<SymbolShare>,
}

/// What one CPU did. Shares of the samples of this CPU, in the order of [`CpuContext::ALL`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuContextShare {
    /// The CPU.
    pub cpu: u32,
    /// Its samples.
    pub samples: u64,
    /// Percent.
    pub idle: f64,
    /// Percent.
    pub user: f64,
    /// Percent.
    pub kernel: f64,
    /// Percent.
    pub softirq: f64,
    /// Percent.
    pub hardirq: f64,
}

/// What tasks of one name did. Shares are of all samples; interrupts belong to no task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskNameShare {
    /// Their name; empty for those that had no room, and `[interrupts]` for no task.
    pub name: String,
    /// How many there were.
    pub tasks: u64,
    /// Samples.
    pub samples: u64,
    /// Percent.
    pub share: f64,
    /// Percent in user mode.
    pub user: f64,
    /// Percent in the kernel.
    pub kernel: f64,
}

/// What one function did. Shares are of all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SymbolShare {
    /// Its name.
    pub name: String,
    /// `[kernel]`, or the path of a program or library.
    pub module: String,
    /// Samples in the function itself.
    pub samples: u64,
    /// Percent in the function itself.
    pub own: f64,
    /// Percent in it and in what it calls.
    pub total: f64,
}

/// The name under which interrupts are among tasks.
pub const INTERRUPTS: &str = "[interrupts]";

/// Percent of a whole.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

impl ProfileReport {
    /// The views of this profile of `online` CPUs, with at most `most` tasks and functions.
    #[must_use]
    pub fn of(profile: &Profile, online: Option<u64>, most: usize) -> Self {
        let duration_ns = profile.until_ns.saturating_sub(profile.from_ns);
        Self {
            event: profile.event.clone(),
            unit: profile.unit.clone(),
            hz: profile.hz,
            duration_s: duration_ns as f64 / 1e9,
            samples: profile.samples,
            due: online.and_then(|online| due(profile, online)),
            lost: profile.lost,
            other: profile.other,
            tells_interrupts: profile.tells_interrupts,
            cost: profile.cost,
            cpus: cpus(profile),
            tasks: tasks(profile, most),
            symbols: symbols(profile, most),
        }
    }
}

/// The CPUs that were online when the run began; `None` if it does not say so.
#[must_use]
pub fn online(document: &Document) -> Option<u64> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(u64::from(last.checked_sub(first)?) + 1)
    };
    document.facts.cpus_online.split(',').map(range).sum()
}

/// A clock has one period whatever the CPU does; cycles stop where a CPU is halted.
fn due(profile: &Profile, cpus: u64) -> Option<u64> {
    let ns = u64::try_from(profile.until_ns.saturating_sub(profile.from_ns)).ok()?;
    let periods = u128::from(ns) * u128::from(profile.hz) / 1_000_000_000;
    let all = u64::try_from(periods * u128::from(cpus)).ok()?;
    (profile.event == "cpu-clock").then_some(all)
}

fn cpus(profile: &Profile) -> Vec<CpuContextShare> {
    let mut sums: BTreeMap<u32, (u64, [u64; 5])> = BTreeMap::new();
    for row in &profile.rows {
        let (samples, weights) = sums.entry(row.0).or_default();
        *samples = samples.saturating_add(row.4);
        let at = CpuContext::ALL.iter().position(|context| *context == row.2).unwrap_or(0);
        if let Some(weight) = weights.get_mut(at) {
            *weight = weight.saturating_add(row.5);
        }
    }
    let share = |(cpu, (samples, weights)): (u32, (u64, [u64; 5]))| {
        let whole = weights.iter().fold(0, |all: u64, weight| all.saturating_add(*weight));
        let [idle, user, kernel, softirq, hardirq] = weights.map(|weight| percent(weight, whole));
        CpuContextShare { cpu, samples, idle, user, kernel, softirq, hardirq }
    };
    sums.into_iter().map(share).collect()
}

#[derive(Default)]
struct TaskSum {
    tasks: HashSet<u32>,
    samples: u64,
    weight: u64,
    user: u64,
    kernel: u64,
}

fn tasks(profile: &Profile, most: usize) -> Vec<TaskNameShare> {
    let whole = profile.weight();
    let mut sums: BTreeMap<&str, TaskSum> = BTreeMap::new();
    for row in &profile.rows {
        let is_task = !matches!(row.2, CpuContext::Softirq | CpuContext::Hardirq);
        let named = profile.tasks.get(row.1 as usize).map_or("", |task| &task.name);
        let sum = sums.entry(if is_task { named } else { INTERRUPTS }).or_default();
        if is_task {
            sum.tasks.insert(row.1);
        }
        sum.samples = sum.samples.saturating_add(row.4);
        sum.weight = sum.weight.saturating_add(row.5);
        match row.2 {
            CpuContext::User => sum.user = sum.user.saturating_add(row.5),
            CpuContext::Kernel => sum.kernel = sum.kernel.saturating_add(row.5),
            CpuContext::Idle | CpuContext::Softirq | CpuContext::Hardirq => {}
        }
    }
    let mut sums: Vec<(&str, TaskSum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.weight));
    let share = |(name, sum): (&str, TaskSum)| TaskNameShare {
        name: name.to_owned(),
        tasks: sum.tasks.len() as u64,
        samples: sum.samples,
        share: percent(sum.weight, whole),
        user: percent(sum.user, whole),
        kernel: percent(sum.kernel, whole),
    };
    sums.into_iter().take(most).map(share).collect()
}

fn symbols(profile: &Profile, most: usize) -> Vec<SymbolShare> {
    let whole = profile.weight();
    // Its samples and weight, and its weight with what it calls.
    let mut sums: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
    let mut below = vec![0_u64; profile.nodes.len()];
    for row in &profile.rows {
        let Some(node) = row.node() else { continue };
        let Some(frame) = profile.stack(Some(node)).next() else { continue };
        let sum = sums.entry(frame).or_default();
        (sum.0, sum.1) = (sum.0.saturating_add(row.4), sum.1.saturating_add(row.5));
        if let Some(below) = below.get_mut(node) {
            *below = below.saturating_add(row.5);
        }
    }
    // Callers come before what they call.
    for (node, (caller, frame)) in profile.nodes.iter().enumerate().rev() {
        let weight = below.get(node).copied().unwrap_or(0);
        let caller = (*caller as usize).checked_sub(1);
        if let Some(caller) = caller.and_then(|caller| below.get_mut(caller)) {
            *caller = caller.saturating_add(weight);
        }
        // A function that calls itself counts once.
        if !profile.stack(caller).any(|above| above == *frame) {
            let sum = sums.entry(*frame).or_default();
            sum.2 = sum.2.saturating_add(weight);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, own, total))| std::cmp::Reverse((*own, *total)));
    let share = |(frame, (samples, own, total)): (u32, (u64, u64, u64))| {
        let (name, module) = profile.frame(frame);
        let (name, module) = (name.to_owned(), module.to_owned());
        let (own, total) = (percent(own, whole), percent(total, whole));
        SymbolShare { name, module, samples, own, total }
    };
    sums.into_iter().take(most).map(share).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::run::profile::{KERNEL_MODULE, ProfileRow, ProfiledTask};

    /// CPU 0 runs `burn` for three of four samples, one of them in a softirq; CPU 1 idles.
    pub(crate) fn sampled() -> Profile {
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        let task = |name: &str, tid| ProfiledTask { name: name.into(), pid: tid, tid };
        let row = |cpu, task, context, node, samples| {
            ProfileRow(cpu, task, context, node, samples, samples * 10)
        };
        Profile {
            version: 1,
            event: "cpu-clock".into(),
            unit: "ns".into(),
            hz: 99,
            from_ns: 1_000_000_000,
            until_ns: 3_000_000_000,
            tells_interrupts: true,
            samples: 8,
            lost: 2,
            other: 0,
            cost: ProfileCost { samples: 10, program_ns: 50_000, helper_ns: 1_000_000 },
            modules: names(&[KERNEL_MODULE, "/bin/burn"]),
            functions: names(&["do_idle", "halt", "main", "spin", "net_rx"]),
            frames: vec![(0, 0), (1, 0), (2, 1), (3, 1), (4, 0)],
            nodes: vec![(0, 0), (1, 1), (0, 2), (3, 3), (4, 3), (0, 4)],
            tasks: vec![task("", 0), task("swapper", 0), task("burn", 7)],
            rows: vec![
                row(0, 2, CpuContext::User, 5, 2),
                row(0, 2, CpuContext::User, 3, 1),
                row(0, 2, CpuContext::Softirq, 6, 1),
                row(1, 1, CpuContext::Idle, 2, 4),
            ],
            late: None,
        }
    }

    #[test]
    fn shares_of_cpus_tasks_and_functions_are_those_of_the_samples() {
        let report = ProfileReport::of(&sampled(), None, MOST_SHOWN);
        let cpus: Vec<_> =
            report.cpus.iter().map(|cpu| (cpu.cpu, cpu.idle, cpu.user, cpu.softirq)).collect();
        assert_eq!(cpus, [(0, 0.0, 75.0, 25.0), (1, 100.0, 0.0, 0.0)]);
        let tasks: Vec<_> =
            report.tasks.iter().map(|task| (task.name.as_str(), task.tasks, task.share)).collect();
        assert_eq!(tasks, [("swapper", 1, 50.0), ("burn", 1, 37.5), (INTERRUPTS, 0, 12.5)]);
        let symbols: Vec<_> =
            report.symbols.iter().map(|it| (it.name.as_str(), it.own, it.total)).collect();
        let expected = [
            ("halt", 50.0, 50.0),
            ("spin", 25.0, 25.0),
            ("main", 12.5, 37.5),
            ("net_rx", 12.5, 12.5),
            ("do_idle", 0.0, 50.0),
        ];
        assert_eq!(symbols, expected, "spin calls itself and counts once");
        assert_eq!(ProfileReport::of(&sampled(), None, 1).symbols.len(), 1);
    }

    #[test]
    fn samples_are_due_at_the_rate_of_a_clock_on_every_cpu_and_not_by_cycles() {
        let mut profile = sampled();
        let due = |profile: &Profile, cpus| ProfileReport::of(profile, cpus, 1).due;
        assert_eq!(due(&profile, Some(2)), Some(396), "2 s at 99 a second");
        assert_eq!(due(&profile, None), None);
        profile.until_ns = profile.from_ns - 1;
        assert_eq!(due(&profile, Some(2)), None, "a file may say anything");
        profile = Profile { event: "cycles".into(), ..sampled() };
        assert_eq!(due(&profile, Some(2)), None);
    }

    #[test]
    fn cpus_are_counted_from_the_list_in_the_facts() {
        let mut document = crate::report::fixture::of("timer", &["cpu0"]);
        for (list, cpus) in [("0-3,8", Some(5)), ("0", Some(1)), ("", None), ("3-1", None)] {
            document.facts.cpus_online = list.into();
            assert_eq!(online(&document), cpus, "{list}");
        }
    }
}
