//! `tardy compare`: runs side by side, and a verdict where there are enough of them.

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use serde::Serialize;

use super::{
    Exit,
    flags::{FormatFlags, WithoutFlags, margin},
    gates,
    nights::nights_gates,
    output,
    report::Campaign,
};
use crate::{
    analysis::ab::figure::{ComparedFigure, JUDGED_BY_DEFAULT},
    plain::plain,
    report::{
        compare::{
            CompareOptions, CompareReport, HeldRuns, SideComparison, WorseGate, compare_runs, text,
        },
        finding,
        gate_decision::GateResult,
        plans_beside::PlansBeside,
        published,
        terminal::fold,
    },
    run::{AbVerdict, BandDifference, ComparedFigureRow, Run, Validity},
    store::Store,
    sys::memory,
};

/// Compare runs; with three or more per side, give a verdict
///
/// `compare A B C` shows B and C beside A. `compare A1 A2 A3 --vs B1 B2 B3` judges whether B is
/// better or worse than A, based on the spread of the runs of each side; one run per side gets no
/// verdict. `compare PLAN1 PLAN2` compares plans with the first, row by row. `compare A --published
/// ID` shows A beside a published table.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 better, or the same within the margin; 1 worse; 2 error; \
                        3 inconclusive; 4 a run is invalid.")]
pub(super) struct CompareFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`; the first ones are A
    #[arg(value_name = "RUN", required_unless_present = "published")]
    runs: Vec<String>,
    /// Runs of B; the runs before --vs are those of A
    #[arg(long, value_name = "RUN", num_args = 1..)]
    vs: Vec<String>,
    /// What to judge: p50, p90, p99, p99.9, p99.99, max, missed [default: p50,p99,p99.9]
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    figures: Vec<ComparedFigure>,
    /// Largest difference that still counts as the same [default: 5% up to p99, 10% beyond]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Limit for B: worse<5%@p99 or 'worse<5%@p99 vs RUN'; repeatable
    ///
    /// Decided on the interval of the ratio, which takes three runs per side. After vs come the
    /// runs to compare with, separated by commas, instead of A; or baseline, the nights before that
    /// are alike. B is then the runs after --vs, or all others. The exit code is that of the gates:
    /// 0 if all pass, 1 if one fails, 3 if one is inconclusive.
    #[arg(long = "gate", value_name = "LIMIT")]
    gates: Vec<WorseGate>,
    /// Show one run beside a published table; `list` lists the tables
    ///
    /// Shows the metrics that both have, and differences in method. It gives no verdict, and the
    /// exit code is 0.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["vs", "figures", "margin", "gates", "without"]
    )]
    published: Option<String>,
    /// Compare invalid runs too; they are marked, and the exit code stays 4
    #[arg(long)]
    even_invalid: bool,
    #[command(flatten)]
    without: WithoutFlags,
    #[command(flatten)]
    format: FormatFlags,
}

/// Compares and prints.
pub(super) fn compare(flags: &CompareFlags, store: &Store) -> Result<Exit> {
    if let Some(id) = &flags.published {
        return flags.beside(id, store);
    }
    if let Some(plans) = flags.plans(store)? {
        return flags.put_plans(&plans);
    }
    ensure!(
        flags.runs.len() + flags.vs.len() > 1,
        "one run is not enough: name another one, as in `tardy compare {} last`{}",
        flags.runs[0],
        flags.hint_of_nights()
    );
    ensure!(
        flags.gates.is_empty() || !flags.without.is_given(),
        "--gate decides on what was measured, with its host: leave out --without host, or --gate"
    );
    let find = |names: &[String]| -> Result<Vec<Run>> {
        let found = names.iter().map(|name| Ok(store.find(name)?)).collect::<Result<Vec<Run>>>()?;
        flags.without.of_all(found)
    };
    let (a, b) = (find(&flags.runs)?, find(&flags.vs)?);
    if flags.refuses(a.iter().chain(&b)) {
        return Ok(Exit::Invalid);
    }
    let options = CompareOptions { judged: flags.judged(), margin: flags.margin };
    // A day has thousands of histograms; malloc keeps blocks of this size instead of freeing them.
    memory::keep_heap();
    let against = flags.against(&a, &b, store)?;
    let report = compare_runs(a, b, &options)?;
    let gates = flags.decide(&report, against)?;
    if flags.format.is_json() {
        output::put_json(&GatedReport::of(&report, gates.as_deref()))?;
    } else {
        output::put(&text(&report, output::width()))?;
        gates::put(gates.as_deref())?;
    }
    Ok(exit(&report, gates.as_deref()))
}

/// The report, and beside its members what was asked for.
#[derive(Serialize)]
struct GatedReport<'a> {
    #[serde(flatten)]
    report: &'a CompareReport,
    /// Those of the only comparison, as `ab --json` has them; null where there are several.
    figures: Option<&'a [ComparedFigureRow]>,
    /// Equal sides were not measured.
    floor: Option<f64>,
    /// As `figures`.
    causes: Option<&'a [BandDifference]>,
    /// Runs that are there are judged once.
    looks: [(); 0],
    /// Nothing was drawn.
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<&'a [GateResult]>,
}

impl<'a> GatedReport<'a> {
    fn of(report: &'a CompareReport, gates: Option<&'a [GateResult]>) -> Self {
        let only = match report.comparisons.as_slice() {
            [one] => Some(one),
            _ => None,
        };
        Self {
            report,
            figures: only.map(|one| one.figures.as_slice()),
            floor: None,
            causes: only.map(|one| one.causes.as_slice()).filter(|causes| !causes.is_empty()),
            looks: [],
            seed: None,
            gates,
        }
    }
}

impl CompareFlags {
    /// Whether one of these is invalid and was not asked for; says so.
    fn refuses<'a>(&self, mut runs: impl Iterator<Item = &'a Run>) -> bool {
        let invalid = runs.find(|run| run.document.validity == Validity::Invalid);
        let Some(run) = invalid.filter(|_| !self.even_invalid) else { return false };
        let name = &run.document.name;
        output::warn(&format!(
            "{name} is invalid (`tardy show {name}` says why), and its figures decide nothing; \
             measure again, or compare it all the same with --even-invalid"
        ));
        true
    }

    /// The plans that are named, compared with the first; nothing where runs are named.
    fn plans(&self, store: &Store) -> Result<Option<PlansBeside>> {
        let names = [self.runs.as_slice(), &self.vs].concat();
        let Some(plans) = Campaign::find(&names, store)? else { return Ok(None) };
        let Some(found) = plans.beside()? else { return Ok(None) };
        ensure!(
            self.vs.is_empty() || self.runs.len() == 1,
            "plans are compared with the first one: leave out --vs"
        );
        let has_own = !self.figures.is_empty() || self.margin.is_some() || !self.gates.is_empty();
        ensure!(
            !has_own && !self.without.is_given(),
            "plans are compared row by row, by p50, p99 and p99.9: leave out --figures, --margin, \
             --gate and --without, or name the runs of a row (`tardy list --where plan=NAME`)"
        );
        Ok(Some(found))
    }

    fn put_plans(&self, plans: &PlansBeside) -> Result<Exit> {
        if self.format.is_json() {
            output::put_json(plans)?;
        } else {
            let finding =
                finding::of_plans(&plans.plans, &plans.unread, &plans.rows, &plans.figures);
            output::put(&fold(&format!("{}\n\n", plain(&finding)), output::width()))?;
            output::put(&plans.text(output::width()))?;
        }
        Ok(match plans.has_invalid {
            true => Exit::Invalid,
            false => of_verdict(plans.verdict),
        })
    }

    /// Puts a run beside a published table.
    fn beside(&self, id: &str, store: &Store) -> Result<Exit> {
        if id == "list" {
            ensure!(self.runs.is_empty(), "--published list takes no run");
            ensure!(!self.format.is_json(), "--published list is a table for reading: no --json");
            output::put(&published::list())?;
            return Ok(Exit::Done);
        }
        let [name] = self.runs.as_slice() else {
            bail!("--published takes one run, and {} are named", self.runs.len());
        };
        let run = store.find(name)?;
        if self.refuses(std::iter::once(&run)) {
            return Ok(Exit::Invalid);
        }
        let found =
            published::beside(&run.document, id).map_err(|error| anyhow!("--published {error}"))?;
        if self.format.is_json() {
            output::put_json(&found)?;
        } else {
            output::put(&published::text(&found, output::width()))?;
        }
        Ok(match found.validity {
            Validity::Invalid => Exit::Invalid,
            _ => Exit::Done,
        })
    }

    /// What was asked for and what gates need, each once.
    fn judged(&self) -> Vec<ComparedFigure> {
        let asked = if self.figures.is_empty() { &JUDGED_BY_DEFAULT[..] } else { &self.figures };
        let mut judged = Vec::new();
        for figure in asked.iter().copied().chain(self.of_sides().map(|gate| gate.figure)) {
            if !judged.contains(&figure) {
                judged.push(figure);
            }
        }
        judged
    }

    /// The verb for one run and the nights before it, if that was asked for.
    fn hint_of_nights(&self) -> String {
        let gate = self.gates.iter().find(|gate| gate.past_nights.is_some());
        gate.map_or_else(String::new, |gate| {
            format!(
                "; one against the nights before is judged by `tardy show {} --gate '{gate}'`",
                self.runs[0]
            )
        })
    }

    /// Gates that name no runs: they are about the sides that are compared.
    fn of_sides(&self) -> impl Iterator<Item = &WorseGate> {
        self.gates.iter().filter(|gate| gate.is_of_sides())
    }

    /// What gates come to that name the runs which B is compared with, or the nights before.
    fn against(&self, a: &[Run], b: &[Run], store: &Store) -> Result<Vec<GateResult>> {
        let mut found = Vec::new();
        let all = if b.is_empty() { a } else { b };
        for gate in nights_gates(self.gates.iter(), store)? {
            found.extend(gate.decide(&all.iter().collect::<Vec<_>>()));
        }
        for gate in self.gates.iter().filter(|gate| !gate.bases.is_empty()) {
            let base = gates::base(gate, store)?;
            let held: Vec<Run> = all.iter().filter(|run| !base.has(run)).cloned().collect();
            let Some(first) = held.first() else {
                bail!("--gate \"{gate}\": all runs of B stand behind vs; name others");
            };
            let names: Vec<String> =
                first.document.wakeups().map(|series| series.name.clone()).collect();
            let probe = first.document.probe.measured_as();
            let refusal = base.refusal(HeldRuns { probe, series: &names, runs: held.len() });
            ensure!(refusal.is_none(), "--gate {}", refusal.unwrap_or_default());
            found.extend(base.decide(held));
        }
        Ok(found)
    }

    /// What the comparison says of the gates, after those that were decided `against` other runs;
    /// `None` without gates.
    fn decide(
        &self,
        report: &CompareReport,
        against: Vec<GateResult>,
    ) -> Result<Option<Vec<GateResult>>> {
        if self.gates.is_empty() {
            return Ok(None);
        }
        if self.of_sides().next().is_none() {
            return Ok(Some(against));
        }
        let [one] = report.comparisons.as_slice() else {
            bail!("--gate decides between two sides: write the runs of B behind --vs");
        };
        let mut found = against;
        for gate in self.of_sides() {
            let decided = gate.decide(one).map_err(|refusal| anyhow!("--gate {refusal}"))?;
            found.extend(decided);
        }
        Ok(Some(found))
    }
}

/// Of the gates where there are any, or else of the verdict.
fn exit(report: &CompareReport, gates: Option<&[GateResult]>) -> Exit {
    let is_invalid = |one: &SideComparison| one.validity == Validity::Invalid;
    match report.verdict {
        _ if report.comparisons.iter().any(is_invalid) => Exit::Invalid,
        _ if gates.is_some() => gates::verdict(gates),
        verdict => of_verdict(verdict),
    }
}

const fn of_verdict(verdict: AbVerdict) -> Exit {
    match verdict {
        AbVerdict::Worse => Exit::No,
        AbVerdict::Inconclusive => Exit::Inconclusive,
        AbVerdict::Better | AbVerdict::Same => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        flags: CompareFlags,
    }

    #[test]
    fn what_gates_ask_for_is_judged_and_nothing_twice() {
        use ComparedFigure::{P50, P99, P999};
        use clap::Parser as _;
        let judged = |words: &[&str]| {
            Typed::try_parse_from([&["compare", "a", "b"], words].concat()).unwrap().flags.judged()
        };
        assert_eq!(judged(&[]), [P50, P99, P999]);
        assert_eq!(judged(&["--figures", "p99,p50,p99"]), [P99, P50]);
        let gate = ["--figures=p50", "--gate=worse<5%@p99.9", "--gate=worse<9%@p50"];
        assert_eq!(judged(&gate), [P50, P999]);
    }
}
