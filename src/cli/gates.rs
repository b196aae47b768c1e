//! `--gate`: limits that figures must keep, a table of what came of them, and the exit code.

use anyhow::{Result, anyhow, ensure};
use clap::Args;

use super::{Exit, output};
use crate::{
    report::{
        gate::{Gate, GateResult, GateVerdict, decide},
        table::Table,
        terminal::fold,
    },
    run::{Document, Run, RunDirectory},
};

/// Limits for the figures of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(super) struct GateFlags {
    /// A limit: p99.9<=80us, max<150us, missed=0, cpu1:p99<=80us; repeatable
    ///
    /// Decided on the 95 % interval: pass (exit code 0), fail (1), or inconclusive (3). It holds
    /// for every series, or for the one that is named before the colon.
    #[arg(long = "gate", value_name = "EXPR")]
    pub gates: Vec<Gate>,
}

impl GateFlags {
    /// Refuses a gate for a series that there will not be; says which can never pass with so many
    /// samples a series.
    pub(super) fn check(&self, series: &[String], planned: Option<u64>) -> Result<()> {
        for gate in &self.gates {
            let refusal = gate.refusal(series);
            ensure!(refusal.is_none(), "--gate {}", refusal.unwrap_or_default());
            if let Some(doubt) = planned.and_then(|planned| gate.doubt(planned)) {
                output::warn(&doubt);
            }
        }
        Ok(())
    }

    /// What a run says of them; nothing where there are none.
    pub(super) fn decide(&self, run: &Run) -> Result<Option<Vec<GateResult>>> {
        if self.gates.is_empty() {
            return Ok(None);
        }
        let refused = |refusal: String| anyhow!("--gate {refusal}");
        decide(run, &self.gates).map(Some).map_err(refused)
    }
}

impl GateFlags {
    /// What a run says of them that has just been measured, wherever its directory was moved since.
    pub(super) fn decide_held(&self, held: &RunDirectory) -> Result<Option<Vec<GateResult>>> {
        if self.gates.is_empty() {
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
