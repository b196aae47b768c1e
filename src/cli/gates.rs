//! `--gate`: limits that figures must keep, a table of what came of them, and the exit code.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use super::{
    Exit,
    nights::{NightsGate, nights_gates},
    output,
};
use crate::{
    report::{
        compare::{GateBase, HeldRuns, WorseGate},
        figure_gate::{FigureGate, FigureGateError},
        gate::Gate,
        gate_decision::{GateResult, GateVerdict, decide},
        sample_name,
        table::Table,
        terminal::fold,
    },
    run::{Document, FigureHead, FigureRecord, Run, RunDirectory},
    store::Store,
};

/// Limits for the figures of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(super) struct GateFlags {
    /// Limit, e.g. p99.9<=80us, missed=0, 'worse<5%@p99 vs RUN'; repeatable
    ///
    /// Decided on the 95% interval: pass (exit code 0), fail (1), or inconclusive (3). It applies
    /// to every series, or to the one named before a colon: cpu1:max<1ms. Other metrics, e.g. of
    /// bandwidth and noise, have limits by name and in their own unit: on the mean of the repeats,
    /// or on the sum of counts (xruns=0). worse<5%@p99 vs RUN fails if p99 is more than 5% above
    /// RUN. It uses the interval of `tardy compare`, which takes three runs per side: the repeats
    /// of a plan against RUN,RUN,RUN. worse<5%@p99 vs baseline compares with the nights before that
    /// are alike, by how much they differ; vs baseline:30 with the last 30.
    #[arg(long = "gate", value_name = "EXPR")]
    pub gates: Vec<RunGate>,
}

/// A gate of one run, or of one against others that it names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunGate {
    Limit(Gate),
    Figure(FigureGate),
    Worse(WorseGate),
}

impl FromStr for RunGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let left = text.split(['<', '>', '=']).next().unwrap_or_default().trim();
        if is_of_figure(left) {
            return text
                .parse()
                .map(Self::Figure)
                .map_err(|error: FigureGateError| error.to_string());
        }
        let figure = left.rsplit_once(':').map_or(left, |(_, figure)| figure);
        if !figure.trim_start().starts_with("worse") {
            return text
                .parse()
                .map(Self::Limit)
                .map_err(|error: crate::report::gate::GateError| error.to_string());
        }
        let gate: WorseGate = text.parse().map_err(|error| format!("{error}"))?;
        if gate.is_of_sides() {
            return Err(format!(
                "\"{gate}\": say worse than which run: '{gate} vs RUN', or '{gate} vs baseline' \
                 for the nights before"
            ));
        }
        Ok(Self::Worse(gate))
    }
}

/// Whether it is the name of a figure that is not a latency.
fn is_of_figure(name: &str) -> bool {
    let is_percentile = || {
        let mut letters = name.chars();
        letters.next() == Some('p')
            && letters.all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    !name.is_empty()
        && !name.contains(':')
        && !name.starts_with("worse")
        && !["max", "missed"].contains(&name)
        && !is_percentile()
}

/// Gates with the runs that they name.
#[derive(Debug, Clone, Default)]
pub(super) struct RunGates {
    limits: Vec<Gate>,
    figures: Vec<FigureGate>,
    worse: Vec<GateBase>,
    nights: Vec<NightsGate>,
}

/// What is known of a cell of a plan before it is measured.
pub(super) struct PlannedCell {
    /// How long it measures with its warm-up, ns.
    pub length_ns: u64,
    /// The series that gates may name.
    pub series: Vec<String>,
    /// The figures that it will have; `None` if some show only at the end.
    pub figures: Option<Vec<FigureHead>>,
}

impl GateFlags {
    /// Whether none is named.
    pub(super) const fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// Finds the runs that gates name: `last` is the last one before anything is measured.
    pub(super) fn find(&self, store: &Store) -> Result<RunGates> {
        let mut found = RunGates::default();
        for gate in &self.gates {
            match gate {
                RunGate::Limit(gate) => found.limits.push(gate.clone()),
                RunGate::Figure(gate) => found.figures.push(gate.clone()),
                RunGate::Worse(gate) if gate.past_nights.is_some() => {}
                RunGate::Worse(gate) => found.worse.push(base(gate, store)?),
            }
        }
        found.nights = nights_gates(self.against_runs(), store)?;
        Ok(found)
    }

    /// Those of each run by itself, for which no other run is looked for.
    pub(super) fn limits(&self) -> RunGates {
        let mut found = RunGates::default();
        for gate in &self.gates {
            match gate {
                RunGate::Limit(gate) => found.limits.push(gate.clone()),
                RunGate::Figure(gate) => found.figures.push(gate.clone()),
                RunGate::Worse(_) => {}
            }
        }
        found
    }

    /// Those that hold runs against others, or the nights before.
    pub(super) fn against_runs(&self) -> impl Iterator<Item = &WorseGate> {
        self.gates.iter().filter_map(|gate| match gate {
            RunGate::Limit(_) | RunGate::Figure(_) => None,
            RunGate::Worse(gate) => Some(gate),
        })
    }
}

/// A gate with the runs that it names.
pub(super) fn base(gate: &WorseGate, store: &Store) -> Result<GateBase> {
    let runs: Result<Vec<Run>, _> = gate.bases.iter().map(|name| store.find(name)).collect();
    let runs = runs.with_context(|| format!("--gate \"{gate}\""))?;
    GateBase::new(gate.clone(), runs).map_err(|refusal| anyhow!("--gate {refusal}"))
}

impl RunGates {
    /// Whether none was asked for.
    pub(super) const fn is_empty(&self) -> bool {
        self.has_no_limits() && !self.names_runs()
    }

    const fn has_no_limits(&self) -> bool {
        self.limits.is_empty() && self.figures.is_empty()
    }

    /// Those that a cell of a plan can have: of latencies where it has some, and of its figures.
    pub(super) fn of_cell(&self, has_latencies: bool, figures: &[FigureHead]) -> Self {
        let is_there = |gate: &&FigureGate| figures.iter().any(|own| own.name == gate.figure());
        let own = if has_latencies { self.clone() } else { Self::default() };
        Self { figures: self.figures.iter().filter(is_there).cloned().collect(), ..own }
    }

    /// Those that a run of a plan can have.
    pub(super) fn of_run(&self, document: &Document) -> Self {
        let figures: Vec<FigureHead> = document.figures.iter().map(FigureRecord::head).collect();
        self.of_cell(document.wakeups().next().is_some(), &figures)
    }

    /// The number of all of them.
    pub(super) const fn count(&self) -> usize {
        self.limits.len() + self.figures.len() + self.worse.len() + self.nights.len()
    }

    /// What is said of limits for figures that none of these runs has.
    pub(super) fn unmeasured<'a>(
        &self,
        runs: impl Iterator<Item = &'a Document> + Clone,
    ) -> Vec<GateResult> {
        let is_known = |gate: &&FigureGate| {
            let mut known = runs.clone().flat_map(|run| &run.figures);
            known.any(|own| own.name == gate.figure())
        };
        let missing = self.figures.iter().filter(|gate| !is_known(gate));
        missing.map(|gate| gate.unmeasured("no cell has that figure")).collect()
    }

    /// Whether some are decided by all runs of a set-up together, against others.
    pub(super) const fn names_runs(&self) -> bool {
        !(self.worse.is_empty() && self.nights.is_empty())
    }

    /// Those that name the runs which others are compared with.
    pub(super) fn bases(&self) -> &[GateBase] {
        &self.worse
    }

    /// Those against the nights before.
    pub(super) fn nights(&self) -> &[NightsGate] {
        &self.nights
    }

    /// Why no cell of a plan can have one of them: the limit of a figure that none will have.
    pub(super) fn refusal_of_plan(&self, cells: &[PlannedCell]) -> Option<String> {
        let known: Option<Vec<&[FigureHead]>> =
            cells.iter().map(|cell| cell.figures.as_deref()).collect();
        let known = known?.concat();
        let is_unknown =
            |gate: &&FigureGate| !known.iter().any(|figure| figure.name == gate.figure());
        let series: Vec<String> = cells.iter().flat_map(|cell| cell.series.clone()).collect();
        self.figures.iter().find(is_unknown)?.refusal(&known, &series)
    }

    /// Refuses a gate for runs that there will not be; says which can never pass with the planned
    /// samples a series. `figures` are `None` if some show only at the end.
    pub(super) fn check(
        &self,
        held: HeldRuns<'_>,
        figures: Option<&[FigureHead]>,
        planned: Option<u64>,
    ) -> Result<()> {
        let limits = self.limits.iter().find_map(|gate| gate.refusal(held.series));
        let figures = || {
            let known = figures?;
            self.figures.iter().find_map(|gate| gate.refusal(known, held.series))
        };
        let refusal = limits.or_else(figures).or_else(|| self.worse_refusal(held));
        ensure!(refusal.is_none(), "--gate {}", refusal.unwrap_or_default());
        if let Some(planned) = planned {
            self.limits.iter().filter_map(|gate| gate.doubt(planned)).for_each(|doubt| {
                output::warn(&doubt);
            });
            self.worse.iter().filter_map(|gate| gate.doubt(held.runs)).for_each(|doubt| {
                output::warn(&doubt);
            });
        }
        Ok(())
    }

    /// What a run says of the limits; `None` without limits.
    pub(super) fn decide_limits(&self, run: &Run) -> Result<Option<Vec<GateResult>>> {
        if self.has_no_limits() {
            return Ok(None);
        }
        let refused = |refusal: String| anyhow!("--gate {refusal}");
        let mut found = match self.limits.is_empty() {
            true => Vec::new(),
            false => decide(run, &self.limits).map_err(refused)?,
        };
        for gate in &self.figures {
            found.push(gate.decide(&run.document).map_err(refused)?);
        }
        Ok(Some(found))
    }

    /// Why these runs cannot have the gates that hold them against others.
    fn worse_refusal(&self, held: HeldRuns<'_>) -> Option<String> {
        let named = self.worse.iter().find_map(|gate| gate.refusal(held));
        named.or_else(|| self.nights.iter().find_map(|gate| gate.gate().unknown_series(held)))
    }

    /// What runs of one set-up say of gates that hold them against others.
    pub(super) fn decide_worse(&self, runs: &[&Run]) -> Result<Vec<GateResult>> {
        let Some(first) = runs.first().filter(|_| self.names_runs()) else {
            return Ok(Vec::new());
        };
        let series: Vec<String> =
            first.document.wakeups().map(|series| series.name.clone()).collect();
        let probe = first.document.probe.measured_as();
        let held = HeldRuns { probe, series: &series, runs: runs.len() };
        let refusal = self.worse_refusal(held);
        ensure!(refusal.is_none(), "--gate {}", refusal.unwrap_or_default());
        let own = || runs.iter().map(|run| (*run).clone()).collect();
        let named = self.worse.iter().flat_map(|gate| gate.decide(own()));
        Ok(named.chain(self.nights.iter().flat_map(|gate| gate.decide(runs))).collect())
    }

    /// What a run says of all of them; `None` without gates.
    pub(super) fn decide(&self, run: &Run) -> Result<Option<Vec<GateResult>>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut found = self.decide_limits(run)?.unwrap_or_default();
        found.extend(self.decide_worse(&[run])?);
        Ok(Some(found))
    }

    /// What a run says of them that has just been measured, wherever its directory was moved since.
    pub(super) fn decide_held(&self, held: &RunDirectory) -> Result<Option<Vec<GateResult>>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.decide(&Run::open(&held.path())?)
    }
}

/// Prints the table of reasons, where gates were asked for.
pub(super) fn put(results: Option<&[GateResult]>) -> Result<()> {
    put_by("series", results)
}

/// The same for gates of something else than series.
pub(super) fn put_by(of: &str, results: Option<&[GateResult]>) -> Result<()> {
    let Some(results) = results else { return Ok(()) };
    output::put(&format!("\n{}", table(of, results, output::width())))
}

fn table(of: &str, results: &[GateResult], width: Option<usize>) -> String {
    let mut table = Table::new(4, &["gate", of, "", "why"]);
    for result in results {
        let series = result.series.as_deref().map_or("all".into(), sample_name::series);
        let verdict = result.verdict.as_str().to_owned();
        table.row(vec![result.gate.clone(), series.into_owned(), verdict, result.reason.clone()]);
    }
    fold(&(table.lines().join("\n") + "\n"), width)
}

/// The exit code of a run, with what came of its gates if it had some.
pub(super) fn exit(document: &Document, results: Option<&[GateResult]>) -> Exit {
    Exit::of(document).worst(verdict(results))
}

/// The exit code of what came of gates, if there were some: if none could be decided, that is not a
/// pass.
pub(super) fn verdict(results: Option<&[GateResult]>) -> Exit {
    let Some(results) = results else { return Exit::Done };
    match results.iter().map(|result| result.verdict).max() {
        Some(GateVerdict::Fail) => Exit::No,
        Some(GateVerdict::Inconclusive) | None => Exit::Inconclusive,
        Some(GateVerdict::Pass) => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_latency_is_a_figure() {
        let of = |text: &str| text.parse::<RunGate>();
        for text in ["pipe/64KiB>=900MB/s", "xruns=0", "fork < 100us", "cpu0/lost<1%"] {
            assert!(matches!(of(text), Ok(RunGate::Figure(_))), "{text}");
        }
        for text in ["p99<=80us", "cpu0/response:p99<=80us", "missed=0", "max<1ms"] {
            assert!(matches!(of(text), Ok(RunGate::Limit(_))), "{text}");
        }
        assert!(matches!(of("worse<5%@p99 vs a"), Ok(RunGate::Worse(_))));
        let says = |text: &str| of(text).unwrap_err();
        assert!(says("p95<=80us").contains("unknown metric \"p95\""), "{}", says("p95<=80us"));
        assert!(says("p99").contains("is not a gate"), "{}", says("p99"));
    }

    #[test]
    fn gates_that_nothing_was_decided_of_do_not_pass() {
        let result = |verdict| GateResult {
            gate: "p99<=80us".into(),
            series: None,
            verdict,
            reason: String::new(),
        };
        let [pass, open, fail] =
            [GateVerdict::Pass, GateVerdict::Inconclusive, GateVerdict::Fail].map(result);
        assert_eq!(verdict(None), Exit::Done);
        assert_eq!(verdict(Some(&[])), Exit::Inconclusive);
        assert_eq!(verdict(Some(std::slice::from_ref(&pass))), Exit::Done);
        assert_eq!(verdict(Some(&[pass.clone(), open.clone()])), Exit::Inconclusive);
        assert_eq!(verdict(Some(&[open, fail, pass])), Exit::No);
    }
}
