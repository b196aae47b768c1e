//! A stored baseline of the lab: the figures of one kernel over phase offsets, and whether another
//! kernel is worse than they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    matrix::{FIGURES, PhaseId, RunFigures, figures_of, margin_of},
    phases::{FEWEST_PHASES, PhaseFigure, PhaseResult, judge, phases_needed},
};
use crate::run::{Document, Validity, facts::LabFacts};

/// The version of the file that this tardy writes.
pub const BASELINE_VERSION: u32 = 1;

/// Figures of one kernel, load by load and phase by phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// See [`BASELINE_VERSION`].
    pub baseline_version: u32,
    /// The plan's name.
    pub plan: String,
    /// The kernel as it was asked for.
    pub kernel: String,
    /// `uname -r`
    pub release: String,
    /// SHA-256 of its image.
    pub kernel_hash: String,
    /// The version of tardy that measured.
    pub tardy_version: String,
    /// SHA-256 of tardy with its libraries, as the guest had it.
    pub program_hash: String,
    /// QEMU's version.
    pub qemu: String,
    /// The loads, in the order of the plan.
    pub loads: Vec<BaselineLoad>,
}

/// One load of a baseline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineLoad {
    /// Its name in the plan.
    pub name: String,
    /// What `tardy run` was given inside.
    pub arguments: Vec<String>,
    /// What the tardy in the second box was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<String>,
    /// Its phase offsets.
    pub phases: Vec<BaselinePhase>,
}

/// One phase offset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselinePhase {
    /// Its number.
    pub seed: u32,
    /// How long the guest waited, ns.
    pub wait_ns: u64,
    /// Bytes of padding on the kernel's command line.
    pub padding: u16,
    /// Figures by their names, `50` to `max`, ns.
    pub figures: BTreeMap<String, i64>,
    /// Names of those with fewer than 10 samples beyond them, which are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain: Vec<String>,
}

/// The reason why no baseline exists, or why nothing can be compared with one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BaselineError {
    /// A cell that was not measured.
    #[error("load {0:?} has no run of this kernel; a baseline has all loads of its plan")]
    Missing(String),
    /// A run that says of itself that it does not count.
    #[error("run {0:?} is invalid; measure again before it becomes a baseline")]
    Invalid(String),
    /// Times that are the host's.
    #[error("a baseline holds counted time: measure with --mode deterministic")]
    NotCounted,
    /// Another program inside.
    #[error(
        "it was made with tardy {tardy} and QEMU {qemu}, and other programs give other figures; \
         write it again from the old kernel with --baseline"
    )]
    Programs {
        /// The version of tardy that made it.
        tardy: String,
        /// The version of QEMU that it was made with.
        qemu: String,
    },
    /// A load that it does not have.
    #[error("it has no load {0:?}; write it again from the old kernel with --baseline")]
    NoLoad(String),
    /// A load that is another one now.
    #[error(
        "load {0:?} is measured otherwise than it was then; write it again from the old kernel \
         with --baseline"
    )]
    OtherLoad(String),
    /// A newer file.
    #[error("version {0} is newer than this tardy")]
    Newer(u32),
}

/// What is said of one figure of one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineResult {
    /// The load.
    pub load: String,
    /// The kernel that is compared with the baseline.
    pub kernel: String,
    /// The figure, as in [`FIGURES`].
    pub figure: String,
    /// By how much it may be higher, as a share.
    pub margin: f64,
    /// What the phase offsets say.
    pub finding: BaselineFinding,
}

/// What the phase offsets say of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BaselineFinding {
    /// The new figures are those of the baseline at each of at least [`FEWEST_PHASES`] phases.
    Alike,
    /// Of new / old.
    Compared(PhaseResult),
    /// A run of either has fewer than 10 samples beyond it, or no such figure.
    Uncertain,
}

impl BaselineResult {
    /// Whether the interval lies below what is allowed, or above; none where it does neither.
    #[must_use]
    pub fn is_kept(&self) -> Option<bool> {
        let limit = self.margin.ln_1p();
        match self.finding {
            BaselineFinding::Alike => Some(true),
            BaselineFinding::Uncertain => None,
            BaselineFinding::Compared(result) => match result.interval {
                Some((_, high)) if high <= limit => Some(true),
                Some((low, _)) if low > limit => Some(false),
                _ => None,
            },
        }
    }
}

impl Baseline {
    /// Of the runs of one kernel, whose loads these are.
    ///
    /// # Errors
    /// A load without a run, an invalid run, time that was not counted.
    pub fn of(plan: &str, loads: &[String], runs: &[&Document]) -> Result<Self, BaselineError> {
        let mut baseline =
            Self { baseline_version: BASELINE_VERSION, plan: plan.to_owned(), ..Self::default() };
        for load in loads {
            let own = runs.iter().filter_map(|run| Some((*run, run.facts.lab.as_ref()?)));
            let own: Vec<_> = own.filter(|(_, lab)| lab.load == *load).collect();
            let Some((first, lab)) = own.first() else {
                return Err(BaselineError::Missing(load.clone()));
            };
            let phases = own.iter().map(|(run, lab)| phase(run, lab));
            baseline.loads.push(BaselineLoad {
                name: load.clone(),
                arguments: lab.arguments.clone(),
                far: lab.far.clone(),
                phases: phases.collect::<Result<_, _>>()?,
            });
            baseline.kernel.clone_from(&lab.kernel);
            baseline.kernel_hash.clone_from(&lab.kernel_hash);
            baseline.program_hash.clone_from(&lab.program_hash);
            baseline.qemu.clone_from(&lab.qemu);
            baseline.release.clone_from(&first.facts.kernel);
            baseline.tardy_version.clone_from(&first.facts.tardy_version);
        }
        Ok(baseline)
    }

    /// Whether runs of these programs, and of loads with these arguments, may be compared with it.
    ///
    /// # Errors
    /// What differs.
    pub fn check(
        &self,
        (program_hash, qemu): (&str, &str),
        loads: &[BaselineLoad],
    ) -> Result<(), BaselineError> {
        if self.baseline_version > BASELINE_VERSION {
            return Err(BaselineError::Newer(self.baseline_version));
        }
        if self.program_hash != program_hash || self.qemu != qemu {
            let (tardy, qemu) = (self.tardy_version.clone(), self.qemu.clone());
            return Err(BaselineError::Programs { tardy, qemu });
        }
        for load in loads {
            let known = self.load(&load.name);
            let known = known.ok_or_else(|| BaselineError::NoLoad(load.name.clone()))?;
            if known.arguments != load.arguments || known.far != load.far {
                return Err(BaselineError::OtherLoad(load.name.clone()));
            }
        }
        Ok(())
    }

    fn load(&self, name: &str) -> Option<&BaselineLoad> {
        self.loads.iter().find(|own| own.name == name)
    }

    /// The fewest phase offsets of a load.
    #[must_use]
    pub fn fewest_phases(&self) -> usize {
        self.loads.iter().map(|load| load.phases.len()).min().unwrap_or(0)
    }

    /// What runs say of each kernel, load and figure, where the load has a baseline; `margin` is
    /// what is allowed, in place of that of each figure. All that are compared share an error
    /// probability of 5%.
    #[must_use]
    pub fn decide(&self, runs: &[&Document], margin: Option<f64>) -> Vec<BaselineResult> {
        let mut cells: BTreeMap<(&str, &str), BTreeMap<PhaseId, RunFigures>> = BTreeMap::new();
        for (run, lab) in runs.iter().filter_map(|run| Some((run, run.facts.lab.as_ref()?))) {
            let id = PhaseId { seed: lab.seed, wait_ns: lab.wait_ns, padding: lab.padding };
            let own = cells.entry((&lab.load, &lab.kernel)).or_default();
            own.entry(id).or_insert_with(|| figures_of(run));
        }
        let mut found = Vec::new();
        let mut figures = Vec::new();
        for ((load, kernel), phases) in &cells {
            let Some(known) = self.load(load) else { continue };
            for (at, name) in FIGURES.iter().enumerate() {
                let margin = margin.unwrap_or_else(|| margin_of(name));
                let figure = figure(known, phases, at, margin);
                found.push(BaselineResult {
                    load: (*load).to_owned(),
                    kernel: (*kernel).to_owned(),
                    figure: (*name).to_owned(),
                    margin,
                    finding: BaselineFinding::Uncertain,
                });
                figures.push(figure);
            }
        }
        let certain: Vec<PhaseFigure> = figures.iter().flatten().cloned().collect();
        let results = judge(&certain, certain.len());
        let judged = found.iter_mut().zip(&figures).filter(|(_, figure)| figure.is_some());
        for (((one, _), figure), result) in judged.zip(&certain).zip(results) {
            one.finding = match is_alike(figure) {
                true => BaselineFinding::Alike,
                false => BaselineFinding::Compared(result),
            };
        }
        found
    }
}

/// Whether each new phase has the figure of the same old one, at enough of them to say so.
fn is_alike(figure: &PhaseFigure) -> bool {
    let are_common = figure.pairs.len() == figure.b.len() && figure.b.len() >= FEWEST_PHASES;
    are_common && figure.pairs.iter().all(|(old, new)| old == new)
}

/// The number of phase offsets that it takes to find that `loads` loads under `kernels` kernels are
/// worse.
#[must_use]
pub fn phases_of_gate(loads: usize, kernels: usize) -> usize {
    phases_needed(loads * kernels * FIGURES.len()).unpaired
}

fn phase(run: &Document, lab: &LabFacts) -> Result<BaselinePhase, BaselineError> {
    if run.validity == Validity::Invalid {
        return Err(BaselineError::Invalid(run.name.clone()));
    }
    let counted = lab.wait_ns.filter(|_| lab.mode == "deterministic");
    let wait_ns = counted.ok_or(BaselineError::NotCounted)?;
    let own = figures_of(run);
    let named = FIGURES.iter().zip(own.values);
    let uncertain = FIGURES.iter().zip(own.uncertain).filter(|(_, is_uncertain)| *is_uncertain);
    Ok(BaselinePhase {
        seed: lab.seed,
        wait_ns,
        padding: lab.padding,
        figures: named.filter_map(|(name, ns)| Some(((*name).to_owned(), ns?))).collect(),
        uncertain: uncertain.map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// A figure of both, where it is certain in all runs.
fn figure(
    known: &BaselineLoad,
    phases: &BTreeMap<PhaseId, RunFigures>,
    at: usize,
    margin: f64,
) -> Option<PhaseFigure> {
    let name = *FIGURES.get(at)?;
    let is_uncertain = |own: &BaselinePhase| own.uncertain.iter().any(|other| other == name);
    let is_new_uncertain = |own: &RunFigures| own.uncertain.get(at).copied().unwrap_or(true);
    if known.phases.iter().any(is_uncertain) || phases.values().any(is_new_uncertain) {
        return None;
    }
    let log = |ns: i64| (ns.max(1) as f64).ln();
    let value = |own: &RunFigures| own.values.get(at).copied().flatten().map(log);
    let old = |own: &BaselinePhase| own.figures.get(name).copied().map(log);
    let pair = |own: &BaselinePhase| {
        let id = PhaseId { seed: own.seed, wait_ns: Some(own.wait_ns), padding: own.padding };
        Some((old(own)?, value(phases.get(&id)?)?))
    };
    let found = PhaseFigure {
        a: known.phases.iter().filter_map(old).collect(),
        b: phases.values().filter_map(value).collect(),
        pairs: known.phases.iter().filter_map(pair).collect(),
        margin: margin.ln_1p(),
        floor: 0.0,
    };
    (!found.a.is_empty() && !found.b.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::matrix::tests::run,
        run::{AbVerdict, Validity},
    };

    const PROGRAMS: (&str, &str) = ("", "7.2.0");

    /// `count` phase offsets, each later than the one before.
    fn phases(load: &str, count: u32, p99: u64) -> Vec<Document> {
        let of = |seed| run("k", load, seed, [8_000, p99 + u64::from(seed), 0, 3 * p99]);
        (1..=count).map(of).collect()
    }

    fn baseline(loads: &[&str], runs: &[Document]) -> Result<Baseline, BaselineError> {
        let loads: Vec<String> = loads.iter().map(|load| (*load).to_owned()).collect();
        Baseline::of("plan", &loads, &runs.iter().collect::<Vec<_>>())
    }

    /// What each figure of these runs is found to be.
    fn kept(old: &Baseline, runs: &[Document]) -> Vec<(String, Option<bool>)> {
        let found = old.decide(&runs.iter().collect::<Vec<_>>(), None);
        found.iter().map(|one| (one.figure.clone(), one.is_kept())).collect()
    }

    fn of(kept: &[(String, Option<bool>)], figure: &str) -> Option<bool> {
        kept.iter().find(|(name, _)| name == figure).expect("each figure is there").1
    }

    #[test]
    fn what_became_worse_by_more_than_the_margin_is_not_kept() {
        let needed = u32::try_from(phases_of_gate(1, 1)).unwrap();
        let old = baseline(&["l"], &phases("l", needed, 100_000)).unwrap();
        assert_eq!(old.fewest_phases(), needed as usize);
        let same = kept(&old, &phases("l", needed, 100_000));
        let worse = kept(&old, &phases("l", needed, 120_000));
        let better = kept(&old, &phases("l", needed, 80_000));
        assert_eq!(
            (of(&same, "99"), of(&worse, "99"), of(&better, "99")),
            (Some(true), Some(false), Some(true))
        );
        assert_eq!((of(&worse, "50"), of(&worse, "max")), (Some(true), Some(false)));
        let allowed =
            old.decide(&phases("l", needed, 120_000).iter().collect::<Vec<_>>(), Some(0.3));
        assert!(
            allowed.iter().filter(|one| one.figure == "99").all(|one| one.is_kept() == Some(true))
        );
    }

    #[test]
    fn nothing_is_said_of_uncertain_figures_and_of_too_few_phases() {
        let old = baseline(&["l"], &phases("l", 7, 100_000)).unwrap();
        // Fewer than 10 samples lie beyond the p99.9 of these runs.
        assert_eq!(of(&kept(&old, &phases("l", 7, 100_000)), "99.9"), None);
        let few = phases("l", 3, 100_000);
        let found = kept(&baseline(&["l"], &few).unwrap(), &few);
        assert!(found.iter().all(|(_, kept)| kept.is_none()), "{found:?}");
        let one = kept(&old, &phases("l", 1, 900_000));
        assert_eq!(of(&one, "99"), None, "one phase is one throw");
        assert_eq!(kept(&old, &phases("other", 7, 100_000)), [], "it has no such load");
    }

    #[test]
    fn one_of_two_figures_being_near_the_margin_is_no_verdict() {
        let old = baseline(&["l"], &phases("l", 7, 100_000)).unwrap();
        let spread: Vec<Document> = (1..=7)
            .map(|seed: u32| run("k", "l", seed, [8_000, 95_000 + 4_000 * u64::from(seed), 0, 1]))
            .collect();
        assert_eq!(of(&kept(&old, &spread), "99"), None);
        let results = old.decide(&spread.iter().collect::<Vec<_>>(), None);
        let BaselineFinding::Compared(result) =
            results.iter().find(|one| one.figure == "99").unwrap().finding
        else {
            panic!("{results:?}")
        };
        assert_ne!(result.verdict, AbVerdict::Same);
    }

    #[test]
    fn a_baseline_is_refused_where_a_run_is_missing_invalid_or_not_counted() {
        let runs = phases("l", 4, 100_000);
        let missing = baseline(&["l", "m"], &runs);
        assert_eq!(missing, Err(BaselineError::Missing("m".into())));
        let mut invalid = runs.clone();
        invalid[2].validity = Validity::Invalid;
        assert_eq!(baseline(&["l"], &invalid), Err(BaselineError::Invalid("l/k/3".into())));
        let mut real = runs;
        real[0].facts.lab.as_mut().unwrap().mode = "kvm".into();
        assert_eq!(baseline(&["l"], &real), Err(BaselineError::NotCounted));
    }

    #[test]
    fn other_programs_and_other_loads_are_not_held_against_it() {
        let old = baseline(&["l"], &phases("l", 4, 100_000)).unwrap();
        let load = |name: &str, arguments: &[&str]| BaselineLoad {
            name: name.into(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            ..BaselineLoad::default()
        };
        assert_eq!(old.check(PROGRAMS, &[load("l", &[])]), Ok(()));
        assert_eq!(old.check(PROGRAMS, &[load("m", &[])]), Err(BaselineError::NoLoad("m".into())));
        let other = old.check(PROGRAMS, &[load("l", &["--interval=2ms"])]);
        assert_eq!(other, Err(BaselineError::OtherLoad("l".into())));
        let newer = Baseline { baseline_version: BASELINE_VERSION + 1, ..old.clone() };
        assert_eq!(newer.check(PROGRAMS, &[]), Err(BaselineError::Newer(BASELINE_VERSION + 1)));
        for programs in [("x", "7.2.0"), ("", "9.0.0")] {
            let found = old.check(programs, &[]);
            assert!(matches!(found, Err(BaselineError::Programs { .. })), "{found:?}");
        }
    }
}
