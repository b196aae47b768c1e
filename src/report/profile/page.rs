//! Who used the CPUs, as the page of a run has it.

use serde::{Deserialize, Serialize};

use super::{FlameGraph, ProfileReport, SymbolShare, TaskNameShare};
use crate::{
    plain::cut,
    run::{Run, peaks::Peak, profile::CpuContext},
};

/// Tasks and functions in the tables of a page.
const MOST_ROWS: usize = 15;
/// Names of threads whose late cycles are told of.
const MOST_NAMES: usize = 5;
/// Characters of a name in these.
const LONGEST: usize = 160;

/// Who used the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageCpuUse {
    /// Of the whole run, by samples; null where it was not profiled.
    pub profile: Option<PageProfile>,
    /// Of late moments only; null where no peak was traced.
    pub late: Option<PageLateUse>,
    /// What threads of an attached program did in their late cycles, in a sentence for each name;
    /// empty without late cycles or a profile.
    #[serde(default)]
    pub own_time: Vec<String>,
    /// What is wrong with the profile; empty where nothing is.
    pub damage: String,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageProfile {
    /// What samples were taken by: `cpu-clock` or `cycles`.
    pub event: String,
    /// What weights are in: `ns` or `cycles`.
    pub unit: String,
    /// Samples a second on each CPU, as asked for.
    pub hz: u32,
    /// Samples in it.
    pub samples: u64,
    /// Samples that were due; null where samples come at no fixed rate, or the CPUs are not known.
    pub due: Option<u64>,
    /// Samples that were lost.
    pub lost: u64,
    /// Samples whose task or stack had no room.
    pub other: u64,
    /// Whether interrupts are told from what they interrupt.
    pub tells_interrupts: bool,
    /// Of all CPUs together, in the order hard interrupt, softirq, kernel, user, idle: its name
    /// (`hardirq`) and percent of all samples.
    pub contexts: Vec<(String, f64)>,
    /// By the names of tasks, those that took most first.
    pub tasks: Vec<TaskNameShare>,
    /// By function, those that took most themselves first.
    pub symbols: Vec<SymbolShare>,
    /// All stacks.
    pub flame: FlameGraph,
}

/// What late samples waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageLateUse {
    /// The peaks in it.
    pub peaks: u64,
    /// Stacks weighted by the ns that they cost.
    pub flame: FlameGraph,
}

impl PageCpuUse {
    /// Of a run and its peaks.
    #[must_use]
    pub fn of(run: &Run, peaks: &[Peak]) -> Self {
        let late = || PageLateUse { peaks: peaks.len() as u64, flame: FlameGraph::of_peaks(peaks) };
        let (profile, damage) = match run.profile() {
            Ok(profile) => (profile, String::new()),
            Err(damage) => (None, damage.to_string()),
        };
        let cpus = super::online(&run.document);
        let own_time = profile.as_ref().map(super::own_time).unwrap_or_default();
        let own_time = own_time.iter().take(MOST_NAMES).map(|own| format!("{}.", own.sentence()));
        let own_time = own_time.collect();
        let profile = profile.map(|profile| PageProfile::of(&profile, cpus));
        Self { profile, late: (!peaks.is_empty()).then(late), own_time, damage }
    }
}

impl PageProfile {
    fn of(profile: &crate::run::profile::Profile, cpus: Option<u64>) -> Self {
        let mut report = ProfileReport::of(profile, cpus, MOST_ROWS);
        for task in &mut report.tasks {
            task.name = cut(&task.name, LONGEST);
        }
        for symbol in &mut report.symbols {
            symbol.name = cut(&symbol.name, LONGEST);
            symbol.module = cut(&symbol.module, LONGEST);
        }
        let whole = profile.weight();
        let context = |context: &CpuContext| {
            let own = profile.rows.iter().filter(|row| row.2 == *context);
            let weight = own.fold(0_u64, |sum, row| sum.saturating_add(row.5));
            (context.as_str().to_owned(), super::percent(weight, whole))
        };
        Self {
            event: report.event,
            unit: report.unit,
            hz: report.hz,
            samples: report.samples,
            due: report.due,
            lost: report.lost,
            other: report.other,
            tells_interrupts: report.tells_interrupts,
            contexts: CpuContext::ALL.iter().rev().map(context).collect(),
            tasks: report.tasks,
            symbols: report.symbols,
            flame: FlameGraph::of_profile(profile),
        }
    }
}
