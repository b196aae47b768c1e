//! `tardy lab run --gate` and `--baseline`: limits for figures of kernels, and figures that are
//! kept to hold other kernels against.

use std::{path::Path, str::FromStr};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;

use crate::limits::matrix::{JSON, LARGEST_BASELINE as LARGEST};
use crate::{
    analysis::{
        baseline::{Baseline, BaselineFinding, BaselineLoad, BaselineResult, phases_of_gate},
        phases::FEWEST_PHASES,
    },
    cli::{Exit, flags::margin, gates, output, report},
    lab::{
        cell::guest_runner::GuestRunner,
        matrix::cell_runner::{CellRunner, cell_arguments},
    },
    plain::plain_path,
    plan::Plan,
    report::{
        gate::Gate,
        gate_decision::{GateResult, GateVerdict, decide},
    },
    run::{Document, Run, Validity, files},
    units::change,
};

/// Limits for the kernels of a matrix.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(super) struct LabGateFlags {
    /// Limit, e.g. p99.9<=80us or missed=0, or a baseline file; repeatable
    ///
    /// A baseline file, written by --baseline, passes if no metric of any kernel is worse by more
    /// than the margin. A limit is decided for each run, and must hold for all phase offsets. Exit
    /// codes: 0 pass, 1 fail, 3 inconclusive, 4 invalid.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<LabGate>,
    /// By how much a kernel may be worse than the baseline [default: 5% up to p99, 10% beyond]
    #[arg(long = "gate-margin", value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Write the metrics of the first kernel to this file, for --gate
    #[arg(long, value_name = "FILE")]
    baseline: Option<std::path::PathBuf>,
}

/// A limit, or a file with figures.
#[derive(Debug, Clone, PartialEq)]
enum LabGate {
    Limit(Gate),
    File(String),
}

impl FromStr for LabGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A file whose name looks like a limit is ./name.
        if text.contains(['<', '=']) && !text.contains('/') {
            return text.parse().map(Self::Limit).map_err(|error| format!("{error}"));
        }
        let is_named = !text.trim().is_empty();
        is_named.then(|| Self::File(text.to_owned())).ok_or_else(|| {
            "it is empty; write a limit as p99<=80us, or a file that --baseline has written".into()
        })
    }
}

/// What is to be decided.
#[derive(Debug, Default)]
pub(super) struct LabGates {
    limits: Vec<Gate>,
    baselines: Vec<(String, Baseline)>,
    margin: Option<f64>,
}

impl LabGates {
    /// Adds the limits of a plan's file.
    ///
    /// # Errors
    /// One that is not a limit, with its line.
    pub(super) fn take_those_of(&mut self, plan: &Plan, file: Option<&Path>) -> Result<()> {
        let file = file.map_or_else(|| plan.name.clone(), plain_path);
        for gate in &plan.gates {
            let limit: Result<Gate, _> = gate.text.parse();
            let limit = limit.map_err(|why| anyhow!(gate.refusal(&file, &why.to_string())))?;
            self.limits.push(limit);
        }
        Ok(())
    }
}

impl LabGateFlags {
    /// Reads what there is to read, before anything is measured.
    pub(super) fn read(&self, is_counted: bool) -> Result<LabGates> {
        let mut gates = LabGates { margin: self.margin, ..LabGates::default() };
        for gate in &self.gates {
            match gate {
                LabGate::Limit(limit) => gates.limits.push(limit.clone()),
                LabGate::File(name) => gates.baselines.push((name.clone(), open(name)?)),
            }
        }
        ensure!(
            is_counted || (gates.baselines.is_empty() && self.baseline.is_none()),
            "a baseline holds counted time; leave out --mode real, or use a limit as \
             --gate 'p99<=80us'"
        );
        ensure!(
            self.margin.is_none() || !gates.baselines.is_empty(),
            "--gate-margin: needs a baseline; give one by --gate FILE"
        );
        Ok(gates)
    }

    /// Writes the baseline, where one was asked for.
    pub(super) fn write(&self, plan: &str, cells: &CellRunner, runs: &[Run]) -> Result<()> {
        let Some(file) = &self.baseline else { return Ok(()) };
        let first = cells.targets.first().map(|target| target.name.as_str()).unwrap_or_default();
        let own: Vec<&Document> = documents(runs).filter(|run| is_of(run, first)).collect();
        let loads: Vec<String> = cells.rows.iter().map(|row| row.name.clone()).collect();
        let baseline = Baseline::of(plan, &loads, &own)
            .with_context(|| format!("--baseline {}: not written", file.display()))?;
        report::write(file, (serde_json::to_string_pretty(&baseline)? + "\n").as_bytes())
    }
}

fn open(name: &str) -> Result<Baseline> {
    let path = Path::new(name);
    let text = files::read(path, LARGEST).with_context(|| format!("--gate {name}: cannot read"))?;
    JSON.check(&text).map_err(|what| anyhow!("--gate {name}: {what}"))?;
    let parsed = serde_json::from_slice(&text);
    parsed.with_context(|| format!("--gate {name}: no baseline; --baseline FILE writes one"))
}

/// Runs of kernels themselves, which no repetitions are.
fn documents(runs: &[Run]) -> impl Iterator<Item = &Document> {
    let is_control = |run: &Document| run.facts.lab.as_ref().is_some_and(|lab| lab.is_control);
    runs.iter().map(|run| &run.document).filter(move |run| !is_control(run))
}

/// Whether a run is of this kernel and load, and not of its control.
fn is_cell(run: &Run, kernel: &str, load: &str) -> bool {
    let lab = run.document.facts.lab.as_ref();
    lab.is_some_and(|lab| !lab.is_control && lab.load == load && lab.kernel == kernel)
}

fn is_of(run: &Document, kernel: &str) -> bool {
    run.facts.lab.as_ref().is_some_and(|lab| lab.kernel == kernel)
}

impl LabGates {
    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.baselines.is_empty()
    }

    /// Refuses what cannot be compared with a baseline, and says what can never be decided.
    pub(super) fn check(&self, cells: &CellRunner, phases: u32) -> Result<()> {
        let phases = usize::try_from(phases).unwrap_or(usize::MAX);
        let loads: Vec<BaselineLoad> = cells.rows.iter().map(of_row).collect();
        for (name, baseline) in &self.baselines {
            let programs = cells.runner.as_ref().map(GuestRunner::programs).unwrap_or_default();
            baseline.check(programs, &loads).with_context(|| format!("--gate {name}"))?;
            let kernels = cells.targets.iter().filter(|target| !target.is_control).count();
            let needed = phases_of_gate(cells.rows.len(), kernels);
            let planned = phases.min(baseline.fewest_phases());
            if planned < needed {
                let can = match planned < FEWEST_PHASES {
                    true => "neither pass nor fail",
                    false => "pass only where nothing at all has changed, and never fail",
                };
                output::warn(&format!(
                    "--gate {name}: with {planned} phase offsets it can {can}; it takes {needed} \
                     in both (--seeds {needed})"
                ));
            }
        }
        for limit in &self.limits {
            let fewest = loads.iter().filter_map(samples).min();
            if let Some(doubt) = fewest.and_then(|planned| limit.doubt(planned)) {
                output::warn(&doubt);
            }
        }
        Ok(())
    }

    /// What all cells say of them: one result a limit and cell, and one a figure of a baseline
    /// that can be judged; each gate has a result for each cell.
    pub(super) fn decide(&self, cells: &CellRunner, runs: &[Run]) -> Result<Vec<GateResult>> {
        let kernels = cells.targets.iter().filter(|target| !target.is_control);
        let kernels: Vec<&str> = kernels.map(|target| target.name.as_str()).collect();
        let loads: Vec<&str> = cells.rows.iter().map(|row| row.name.as_str()).collect();
        self.decide_cells(&kernels, &loads, runs)
    }

    fn decide_cells(
        &self,
        kernels: &[&str],
        loads: &[&str],
        runs: &[Run],
    ) -> Result<Vec<GateResult>> {
        let documents: Vec<&Document> = documents(runs).collect();
        let of_file = |(file, baseline): &(String, Baseline)| {
            (file.clone(), baseline.decide(&documents, self.margin))
        };
        let found: Vec<(String, Vec<BaselineResult>)> =
            self.baselines.iter().map(of_file).collect();
        let mut results = Vec::new();
        for (kernel, load) in
            kernels.iter().flat_map(|kernel| loads.iter().map(move |l| (kernel, l)))
        {
            let own: Vec<&Run> = runs.iter().filter(|run| is_cell(run, kernel, load)).collect();
            let name = format!("{load}, {kernel}");
            for limit in &self.limits {
                results.push(of_limit(limit, &name, &own)?);
            }
            for (file, found) in &found {
                results.extend(of_baseline_cell(file, &name, found, (kernel, load), &own));
            }
        }
        Ok(results)
    }

    /// The exit code of these results.
    pub(super) fn exit(&self, results: &[GateResult], runs: &[Run]) -> Exit {
        if self.is_empty() {
            return Exit::Done;
        }
        let is_invalid = runs.iter().any(|run| run.document.validity == Validity::Invalid);
        let invalid = if is_invalid { Exit::Invalid } else { Exit::Done };
        invalid.worst(gates::verdict(Some(results)))
    }
}

fn of_row(row: &crate::lab::matrix::rows::LabRow) -> BaselineLoad {
    BaselineLoad {
        name: row.name.clone(),
        arguments: cell_arguments(row),
        far: row.far.clone(),
        phases: Vec::new(),
    }
}

/// How many samples a run of it has, where that is said.
fn samples(load: &BaselineLoad) -> Option<u64> {
    load.arguments.iter().find_map(|word| word.strip_prefix("--samples=")?.parse().ok())
}

fn missing(gate: &str, name: &str) -> GateResult {
    undecided(gate, name, "not measured")
}

fn undecided(gate: &str, name: &str, reason: &str) -> GateResult {
    GateResult {
        gate: gate.to_owned(),
        series: Some(name.to_owned()),
        verdict: GateVerdict::Inconclusive,
        reason: reason.to_owned(),
    }
}

/// What a baseline says of one cell. Figures without the samples for it are skipped where there are
/// others.
fn of_baseline_cell(
    file: &str,
    name: &str,
    found: &[BaselineResult],
    (kernel, load): (&str, &str),
    runs: &[&Run],
) -> Vec<GateResult> {
    if runs.is_empty() {
        return vec![missing(file, name)];
    }
    let own = found.iter().filter(|one| one.kernel == kernel && one.load == load);
    let judged = own.filter(|one| one.finding != BaselineFinding::Uncertain);
    let results: Vec<GateResult> = judged.map(|one| of_baseline(file, name, one)).collect();
    if results.is_empty() {
        let reason = "no figure has 10 samples beyond it at each phase offset of both";
        return vec![undecided(file, name, reason)];
    }
    results
}

/// A limit over all phase offsets: it holds where each of them keeps it.
fn of_limit(limit: &Gate, name: &str, runs: &[&Run]) -> Result<GateResult> {
    let gate = limit.to_string();
    let mut worst: Option<GateResult> = None;
    let mut failed = 0;
    for run in runs {
        let found = decide(run, std::slice::from_ref(limit)).map_err(|refusal| anyhow!(refusal));
        let found = found.with_context(|| format!("--gate {limit}"))?;
        let Some(own) = found.into_iter().max_by_key(|one| one.verdict) else {
            bail!("--gate {limit}: run {} has no series", run.document.name)
        };
        failed += usize::from(own.verdict == GateVerdict::Fail);
        if worst.as_ref().is_none_or(|known| own.verdict > known.verdict) {
            worst = Some(own);
        }
    }
    let Some(worst) = worst else { return Ok(missing(&gate, name)) };
    let phases = runs.len();
    let reason = match worst.verdict {
        GateVerdict::Pass => format!("kept at each of {phases} phase offsets"),
        GateVerdict::Inconclusive => format!("at one of {phases} phase offsets: {}", worst.reason),
        GateVerdict::Fail => format!("{failed} of {phases} phase offsets; one: {}", worst.reason),
    };
    Ok(GateResult { gate, series: Some(name.to_owned()), verdict: worst.verdict, reason })
}

/// By how much a figure differs from that of the kernel it is compared with, or why nobody can say.
pub(super) fn difference(one: &BaselineResult) -> String {
    match one.finding {
        BaselineFinding::Alike => "the same at each phase offset".into(),
        BaselineFinding::Uncertain => "fewer than 10 samples beyond it".into(),
        BaselineFinding::Compared(result) => match result.interval {
            // In percent nobody reads that.
            Some((low, high)) if low.exp() >= 3.0 => {
                format!("{:.1} to {:.1} times", low.exp(), high.exp())
            }
            Some((low, high)) => format!("{} to {}", change(low.exp()), change(high.exp())),
            None => "too few phase offsets".into(),
        },
    }
}

fn of_baseline(file: &str, name: &str, one: &BaselineResult) -> GateResult {
    let figure = crate::report::lab::figure_name(&one.figure);
    let reason = format!("against the baseline: {}", difference(one));
    let verdict = match one.is_kept() {
        Some(true) => GateVerdict::Pass,
        Some(false) => GateVerdict::Fail,
        None => GateVerdict::Inconclusive,
    };
    GateResult {
        gate: format!("{figure} worse<={:.0}% than {file}", 100.0 * one.margin),
        series: Some(name.to_owned()),
        verdict,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::matrix::tests::run;

    #[test]
    fn a_limit_has_a_comparison_and_everything_else_is_a_file() {
        let parsed = |text: &str| text.parse::<LabGate>();
        assert!(matches!(parsed("p99.9<=80us"), Ok(LabGate::Limit(_))));
        assert_eq!(parsed("old.json"), Ok(LabGate::File("old.json".into())));
        assert_eq!(parsed("./a=b"), Ok(LabGate::File("./a=b".into())));
        assert!(parsed("p98<=80us").unwrap_err().contains("unknown metric"));
        assert!(parsed("").unwrap_err().contains("--baseline"));
    }

    #[test]
    fn what_there_is_nothing_to_hold_against_is_refused() {
        let flags = LabGateFlags { margin: Some(0.1), ..LabGateFlags::default() };
        assert!(flags.read(true).unwrap_err().to_string().contains("--gate-margin"));
        let flags = LabGateFlags { baseline: Some("x".into()), ..LabGateFlags::default() };
        assert!(flags.read(false).unwrap_err().to_string().contains("counted time"));
        flags.read(true).unwrap();
    }

    /// Phase offsets of one kernel and load.
    fn runs(load: &str, count: u32, p99: u64) -> Vec<Run> {
        let of = |seed: u32| run("k", load, seed, [8_000, p99 + u64::from(seed), 0, 3 * p99]);
        (1..=count).map(|seed| Run::of("r".into(), of(seed))).collect()
    }

    fn against(old: &[Run]) -> LabGates {
        let documents: Vec<&Document> = documents(old).collect();
        let baseline = Baseline::of("plan", &["l".into()], &documents).unwrap();
        LabGates { baselines: vec![("old.json".into(), baseline)], ..LabGates::default() }
    }

    fn exit_of(gates: &LabGates, loads: &[&str], runs: &[Run]) -> (Exit, Vec<GateResult>) {
        let results = gates.decide_cells(&["k"], loads, runs).unwrap();
        (gates.exit(&results, runs), results)
    }

    #[test]
    fn a_baseline_passes_fails_or_stays_open_and_never_passes_on_nothing() {
        let gates = against(&runs("l", 7, 100_000));
        assert_eq!(exit_of(&gates, &["l"], &runs("l", 7, 100_000)).0, Exit::Done);
        assert_eq!(exit_of(&gates, &["l"], &runs("l", 7, 150_000)).0, Exit::No);
        let (few, results) = exit_of(&gates, &["l"], &runs("l", 2, 150_000));
        assert_eq!(few, Exit::Inconclusive, "{results:?}");
        // What was not measured, what the baseline does not have, and what no samples carry.
        for (loads, own) in [
            (vec!["l", "m"], runs("l", 7, 100_000)),
            (vec!["m"], runs("m", 7, 100_000)),
            (vec!["l"], Vec::new()),
        ] {
            let (exit, results) = exit_of(&gates, &loads, &own);
            assert_eq!(exit, Exit::Inconclusive, "{loads:?}: {results:?}");
        }
        let mut thin = runs("l", 7, 100_000);
        for run in &mut thin {
            let all = ["50", "90", "99", "99.9"].map(String::from).to_vec();
            run.document.series.iter_mut().for_each(|series| series.uncertain = all.clone());
            run.document.series.iter_mut().for_each(|series| series.max = None);
        }
        let (exit, results) = exit_of(&gates, &["l"], &thin);
        assert_eq!(exit, Exit::Inconclusive, "{results:?}");
        assert!(results[0].reason.contains("no figure has 10 samples"), "{results:?}");
        assert_eq!(gates.exit(&[], &[]), Exit::Inconclusive);
        assert_eq!(LabGates::default().exit(&[], &[]), Exit::Done);
    }

    #[test]
    fn an_invalid_run_decides_nothing() {
        let gates = against(&runs("l", 7, 100_000));
        let mut own = runs("l", 7, 100_000);
        own[0].document.validity = Validity::Invalid;
        assert_eq!(exit_of(&gates, &["l"], &own).0, Exit::Invalid);
    }
}
