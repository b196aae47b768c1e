//! What is known of a run before it measures: its series, its samples, how long it takes.

use anyhow::{Result, bail, ensure};

use super::RunFlags;
use crate::{
    cli::gates::{PlannedCell, RunGates},
    report::compare::HeldRuns,
    run::{FigureHead, SeriesHead, probes::ProbeInfo},
    session::{Length, RunPlan},
    store::Store,
};

/// The number of samples that each series is to have, if that is known beforehand.
pub(super) fn planned_samples(plan: &RunPlan) -> Option<u64> {
    match plan.length {
        Length::Samples(samples) => Some(samples),
        Length::Time(ns) => {
            let interval_ns = plan.probe.parameters().interval_ns().filter(|ns| *ns > 0)?;
            u64::try_from(ns / interval_ns).ok()
        }
        Length::Unlimited => None,
    }
}

/// The names of the series that a run will have and that gates may name: those of whole latencies,
/// and of responses.
pub(super) fn series_of(plan: &RunPlan) -> Vec<String> {
    let whole = |head: &SeriesHead| !head.is_stage() || head.is_response();
    plan.probe.heads(None).into_iter().filter(whole).map(|head| head.name).collect()
}

/// Refuses gates that this number of runs of the plan cannot have; of these samples a series it
/// says which they cannot decide.
pub(super) fn check(
    gates: &RunGates,
    plan: &RunPlan,
    runs: usize,
    planned: Option<u64>,
) -> Result<()> {
    if plan.probe.finds_series() {
        // Which there are, shows at the end.
        return Ok(());
    }
    let (series, figures) = (series_of(plan), figures_of(plan));
    let held = HeldRuns { probe: plan.probe.name(), series: &series, runs };
    gates.check(held, figures.as_deref(), planned)
}

/// The figures that a run will have; `None` if some show only at the end, as what took a thread
/// from its CPU that never sleeps.
fn figures_of(plan: &RunPlan) -> Option<Vec<FigureHead>> {
    let is_known = !spins(plan.probe.name()) && !plan.probe.finds_series();
    is_known.then(|| plan.probe.figures())
}

/// Refuses a deadline for what answers nothing: threads that never sleep, and figures.
pub(super) fn check_deadline(plan: &RunPlan) -> Result<()> {
    let name = plan.probe.name();
    ensure!(
        plan.deadline_ns.is_none()
            || !(spins(name) || series_of(plan).is_empty() && !plan.probe.finds_series()),
        "--deadline is not supported with {name}: nothing in it is due at a time; leave it out"
    );
    Ok(())
}

fn spins(probe: &str) -> bool {
    ProbeInfo::find(probe).is_some_and(ProbeInfo::never_sleeps)
}

impl RunFlags {
    /// A cell of a plan, after the checks of [`super::run`]. Says of the first one which gates this
    /// number of them cannot decide.
    ///
    /// # Errors
    /// The option, and the remedy; a run without an end.
    pub(in crate::cli) fn planned_cell(
        &self,
        store: &Store,
        gates: &RunGates,
        repeats: usize,
        is_first: bool,
    ) -> Result<PlannedCell> {
        let plan = self.plan(store, Vec::new())?;
        let has_latencies = ProbeInfo::find(plan.probe.name()).is_none_or(ProbeInfo::has_latencies);
        // A plan of several probes has gates for those cells that can keep or break them.
        let gates = gates.of_cell(has_latencies, &plan.probe.figures());
        check(&gates, &plan, repeats, planned_samples(&plan).filter(|_| is_first))?;
        check_deadline(&plan)?;
        let length_ns = match plan.length {
            Length::Time(ns) => ns,
            Length::Samples(samples) => {
                i64::try_from(samples).unwrap_or(i64::MAX).saturating_mul(plan.interval_ns)
            }
            Length::Unlimited => bail!("--duration inf: a cell of a plan has to end; use a time"),
        };
        Ok(PlannedCell {
            length_ns: length_ns.saturating_add(plan.warmup_ns).unsigned_abs(),
            series: series_of(&plan),
            figures: figures_of(&plan),
        })
    }
}
