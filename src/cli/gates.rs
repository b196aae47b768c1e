//! `--gate`: limits that figures must keep, a table of what came of them, and the exit code.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use super::{Exit, output};
use crate::{
    report::{
        compare::{GateBase, HeldRuns, WorseGate},
        gate::{Gate, GateResult, GateVerdict, decide},
        table::Table,
        terminal::fold,
    },
    run::{Document, Run, RunDirectory},
    store::Store,
};

/// Limits for the figures of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(super) struct GateFlags {
    /// A limit: p99.9<=80us, max<150us, missed=0, cpu1:p99<=80us, 'worse<5%@p99 vs RUN'; repeatable
    ///
    /// Decided on the 95 % interval: pass (exit code 0), fail (1), or inconclusive (3). It holds
    /// for every series, or for the one that is named before the colon. worse<5%@p99 vs RUN allows
    /// so much more than in RUN, by the interval of the ratio as `tardy compare` has it: that takes
    /// three runs of each, as of a plan's repeats, against RUN,RUN,RUN.
    #[arg(long = "gate", value_name = "EXPR")]
    pub gates: Vec<RunGate>,
}

/// A gate of one run, or of one against others that it names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunGate {
    Limit(Gate),
    Worse(WorseGate),
}

impl FromStr for RunGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let figure = text.split(['<', '=']).next().unwrap_or_default();
        let figure = figure.rsplit_once(':').map_or(figure, |(_, figure)| figure);
        if !figure.trim_start().starts_with("worse") {
            return text
                .parse()
                .map(Self::Limit)
                .map_err(|error: crate::report::gate::GateError| error.to_string());
        }
        let gate: WorseGate = text.parse().map_err(|error| format!("{error}"))?;
        if gate.bases.is_empty() {
            return Err(format!("\"{gate}\": say worse than which run: '{gate} vs RUN'"));
        }
        Ok(Self::Worse(gate))
    }
}

/// Gates with the runs that they name.
#[derive(Debug, Clone, Default)]
pub(super) struct RunGates {
    limits: Vec<Gate>,
    worse: Vec<GateBase>,
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
                RunGate::Worse(gate) => found.worse.push(base(gate, store)?),
            }
        }
        Ok(found)
    }

    /// Those of each run by itself, for which no other run is looked for.
    pub(super) fn limits(&self) -> RunGates {
        let limits = self.gates.iter().filter_map(|gate| match gate {
            RunGate::Limit(gate) => Some(gate.clone()),
            RunGate::Worse(_) => None,
        });
        RunGates { limits: limits.collect(), worse: Vec::new() }
    }

    /// Those that hold runs against others.
    pub(super) fn against_runs(&self) -> impl Iterator<Item = &WorseGate> {
        self.gates.iter().filter_map(|gate| match gate {
            RunGate::Limit(_) => None,
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
        self.limits.is_empty() && self.worse.is_empty()
    }

    /// Whether some name the runs that others are held against.
    pub(super) const fn names_runs(&self) -> bool {
        !self.worse.is_empty()
    }

    /// Refuses a gate for runs that there will not be; says which can never pass with so many
    /// samples a series.
    pub(super) fn check(&self, held: HeldRuns<'_>, planned: Option<u64>) -> Result<()> {
        let limits = self.limits.iter().find_map(|gate| gate.refusal(held.series));
        let worse = || self.worse.iter().find_map(|gate| gate.refusal(held));
        let refusal = limits.or_else(worse);
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

    /// What a run says of the limits; nothing where there are none.
    pub(super) fn decide_limits(&self, run: &Run) -> Result<Option<Vec<GateResult>>> {
        if self.limits.is_empty() {
            return Ok(None);
        }
        decide(run, &self.limits).map(Some).map_err(|refusal| anyhow!("--gate {refusal}"))
    }

    /// What runs of one set-up say of gates that name others.
    pub(super) fn decide_worse(&self, runs: &[&Run]) -> Result<Vec<GateResult>> {
        let Some(first) = runs.first().filter(|_| !self.worse.is_empty()) else {
            return Ok(Vec::new());
        };
        let series: Vec<String> =
            first.document.wakeups().map(|series| series.name.clone()).collect();
        let probe = first.document.probe.measured_as();
        let held = HeldRuns { probe, series: &series, runs: runs.len() };
        let refusal = self.worse.iter().find_map(|gate| gate.refusal(held));
        ensure!(refusal.is_none(), "--gate {}", refusal.unwrap_or_default());
        let own = || runs.iter().map(|run| (*run).clone()).collect();
        Ok(self.worse.iter().flat_map(|gate| gate.decide(own())).collect())
    }

    /// What a run says of all of them; nothing where there are none.
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
        let series = result.series.clone().unwrap_or_else(|| "all".into());
        let verdict = result.verdict.as_str().to_owned();
        table.row(vec![result.gate.clone(), series, verdict, result.reason.clone()]);
    }
    fold(&(table.lines().join("\n") + "\n"), width)
}

/// The exit code of a run, with what came of its gates if it had some.
pub(super) fn exit(document: &Document, results: Option<&[GateResult]>) -> Exit {
    Exit::of(document).worst(verdict(results))
}

/// The exit code of what came of gates, if there were some: where none could be decided, that is
/// no pass.
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
