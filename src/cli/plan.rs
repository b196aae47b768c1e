//! `tardy plan`: from a file to cells, from their runs to a table and an exit code.

mod cell_gates;
mod outlook;
mod progress;
mod record;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Command, FromArgMatches as _};
use serde::Serialize;

use super::{
    Exit,
    flags::{FormatFlags, positive, random_seed, reason},
    gates::{self, GateFlags, PlannedCell, RunGates},
    output,
    run::{RunFlags, of_probe::name_other_probes},
    runs::new_id,
    setup::{recover_first, recover_last},
};
use crate::limits::plan::MOST_CELLS;
use crate::{
    campaign::{PlanProgress, PlanRequest, PlanSource, PlanView, cell_run, run_plan, take_up},
    plain::{plain, plain_path, shell_word},
    plan::{Plan, PlanRow},
    report::{gate_decision::GateResult, plan as text},
    run::{CellStatus, Document, PLAN, PlanRecord, PlanStatus, Run, RunDirectory},
    store::{Candidates, Store, beside, check_name, is_last, typed},
    sys::signals::Quit,
    units::Nanos,
};
pub(super) use cell_gates::{CellGate, gates_of, repeated};
use cell_gates::{THE_PLAN, finding, put_gates, with_those_of, with_those_of_file};
use progress::PlanStatusView;
use record::{commands_of, record};

/// Measure a plan on this machine: probes, loads and setups, interleaved
///
/// Each cell is a run, measured by `tardy run`. Every combination is measured once before any is
/// repeated, in an order drawn by a seed. plan.json is saved after each cell: --resume continues an
/// interrupted or killed plan, and measures nothing twice. docs/reference/plans.md describes the
/// file.
///
/// Exit codes: 0 done, 1 a gate failed, 2 an error, also of one cell, 3 a gate is inconclusive or a
/// cell for it was not measured, 4 a cell is invalid.
#[derive(Debug, Args)]
pub(super) struct PlanFlags {
    /// Plan to measure: a TOML file
    #[arg(value_name = "FILE", required_unless_present = "resume", conflicts_with = "resume")]
    file: Option<PathBuf>,
    #[command(flatten)]
    measuring: MeasuringFlags,
}

/// How a plan is measured, whoever wrote it.
#[derive(Debug, Args)]
pub(super) struct MeasuringFlags {
    /// Continue an interrupted, killed or unfinished plan: its directory or name
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["output", "name"])]
    resume: Option<PathBuf>,
    /// Only show the steps and the time they take
    ///
    /// With a gate worse<5%@p99, also how many runs or nights it takes, by how much earlier nights
    /// differ.
    #[arg(long)]
    check: bool,
    /// Total time, with preparation
    ///
    /// No cell starts that would not fit. The time of earlier sessions counts. Default: the plan's
    /// `budget`, else no limit.
    #[arg(long, value_name = "TIME", value_parser = positive)]
    budget: Option<Nanos>,
    #[command(flatten)]
    gates: GateFlags,
    /// New directory for the runs, instead of one in the store
    #[arg(short, long, value_name = "DIRECTORY", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Name of the run and of its directory
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    name: Option<String>,
    /// Print only the result: no progress, no hints
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    format: FormatFlags,
}

/// Measures, and prints the result.
pub(super) fn plan(flags: &PlanFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let own = |file: &PathBuf| -> Result<PlanText> {
        Ok(PlanText { text: Plan::text(file)?, name: plain_path(file) })
    };
    let text = flags.file.as_ref().map(own).transpose()?;
    flags.measuring.measure(text, (store, "plan"), argv, |_, _| Ok(()))
}

/// A plan as text, and what errors call it.
pub(super) struct PlanText {
    /// TOML.
    pub text: String,
    /// A path, or words.
    pub name: String,
}

/// A plan of an earlier sitting.
struct ResumedPlan {
    request: PlanRequest,
    /// What is said of runs that are damaged or gone.
    lost: Vec<String>,
}

/// The record, and what gates came to.
#[derive(Serialize)]
struct ShownPlan<'a> {
    #[serde(flatten)]
    record: &'a PlanRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<&'a [CellGate]>,
}

impl MeasuringFlags {
    /// Measures the plan of this text, or continues with the one that is named; `then` is called
    /// with the directory of what was measured, and where that is, before the result is printed.
    pub(super) fn measure(
        &self,
        text: Option<PlanText>,
        (store, verb): (&Store, &str),
        argv: Vec<String>,
        then: impl FnOnce(&RunDirectory, &Path) -> Result<()>,
    ) -> Result<Exit> {
        let (request, gates) = match text {
            None => {
                let ResumedPlan { request, lost } = self.resumed(store)?;
                lost.iter().for_each(|run| output::warn(&plain(run)));
                let gates = with_those_of(&self.gates, &request.record)?.find(store)?;
                (request, gates)
            }
            Some(text) => {
                let plan = Plan::parse(&text.text, &text.name)?;
                let gates = with_those_of_file(&self.gates, &plan, &text.name)?.find(store)?;
                (self.request(text, plan, (store, verb), argv, &gates)?, gates)
            }
        };
        if self.check {
            match self.format.is_json() {
                true => output::put_json(&request.record)?,
                false => output::put(&text::preview(&request.record))?,
            }
            let lines = outlook::outlook(&request.record, &gates, store)?;
            lines.iter().for_each(|line| output::notice(&plain(line)));
            if let Some(refusal) = text::over_budget(&request.record) {
                bail!(refusal);
            }
            return Ok(Exit::Done);
        }
        recover_first(self.quiet);
        if !self.quiet {
            output::notice(&format!("{}.", text::outlook(&request.record)));
            if self.is_resumed() {
                commands_of(&request.record).iter().for_each(|what| output::notice(what));
            }
        }
        let place = request.directory.clone();
        let shown = shell_word(&typed(&place));
        let quit = Quit::listen().context("cannot set a signal handler")?;
        let mut view = PlanStatusView::new(self.quiet);
        let pace = view.pace();
        let mut show = |progress: &PlanProgress<'_>| view.show(progress);
        let record = run_plan(request, quit, &mut PlanView { pace, show: &mut show });
        view.clear();
        let left = recover_last();
        let (record, directory) = record.with_context(|| {
            format!("what was measured is kept; continue with `tardy {verb} --resume {shown}`")
        })?;
        let is_whole =
            record.status == PlanStatus::Complete && record.count(CellStatus::Failed) == 0;
        if !is_whole && !self.quiet {
            output::notice(&format!("To continue: tardy {verb} --resume {shown}"));
        }
        then(&directory, &place)?;
        Ok(left.worst(self.result(&record, &directory, &shown, &gates)?))
    }

    /// Whether nothing is measured.
    pub(super) const fn is_check(&self) -> bool {
        self.check
    }

    /// Whether an earlier sitting is gone on with.
    pub(super) const fn is_resumed(&self) -> bool {
        self.resume.is_some()
    }

    /// The name in the plan's file of the one that is gone on with.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub(super) fn resumed_plan(&self, store: &Store) -> Result<Option<String>> {
        let found = self.resume.is_some().then(|| self.resumed(store)).transpose()?;
        Ok(found.map(|resumed| resumed.request.record.plan))
    }

    /// Whether only the result is printed.
    pub(super) const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Checks everything that can be checked before anything is changed.
    fn request(
        &self,
        PlanText { text, name: shown }: PlanText,
        plan: Plan,
        (store, verb): (&Store, &str),
        argv: Vec<String>,
        gates: &RunGates,
    ) -> Result<PlanRequest> {
        let cells = plan.rows.len().saturating_mul(plan.repeat as usize);
        ensure!(cells <= MOST_CELLS, "{shown}: {cells} cells; at most {MOST_CELLS} are measured");
        let mut planned = Vec::new();
        for row in &plan.rows {
            let place = || format!("{shown}, line {}: {:?}", row.line, row.name);
            let is_first = planned.is_empty();
            let own = planned_cell(row, store, gates, plan.repeat, is_first);
            planned.push(own.with_context(place)?);
        }
        if let Some(refusal) = gates.refusal_of_plan(&planned) {
            let is_its = |text: &str| refusal.starts_with(&format!("\"{text}\""));
            match plan.gates.iter().find(|gate| is_its(&gate.text)) {
                Some(gate) => bail!(gate.refusal(&shown, &refusal)),
                None => bail!("--gate {refusal}"),
            }
        }
        let id = new_id()?;
        let (directory, name) = self.place(store, &[verb, &plan.name], &id)?;
        let mut record = record(&plan, &planned, plan.seed.map_or_else(random_seed, Ok)?);
        (record.id, record.name, record.argv) = (id, name, argv);
        self.set_budget(&mut record);
        let (source, store) = (PlanSource::New(text), store.root().to_owned());
        Ok(PlanRequest { record, source, directory, store })
    }

    fn resumed(&self, store: &Store) -> Result<ResumedPlan> {
        let asked = self.resume.clone().unwrap_or_default();
        let last = asked.to_str().filter(|name| is_last(name));
        let directory = match last {
            Some(last) => store.find_any(last, Candidates::Plans).context("--resume")?.path,
            None => store.place_of(&asked).context("--resume: name a plan")?,
        };
        let held = RunDirectory::open_private(&directory).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::NotFound => "no plan was measured there",
                _ => "it is not gone on with",
            };
            let (shown, hint) = (plain_path(&directory), beside(&asked).unwrap_or_default());
            anyhow::anyhow!("--resume {shown}: {what}: {error}{hint}")
        })?;
        let mut record = PlanRecord::read_own(&held, &directory).context("--resume")?;
        let shown = || format!("--resume {}", plain_path(&directory));
        let lost = take_up(&held, &mut record).with_context(shown)?;
        let said = |run: &String| {
            format!("{}; the cell is to be measured again", directory.join(run).display())
        };
        let lost = lost.iter().map(said).collect();
        self.set_budget(&mut record);
        let (source, store) = (PlanSource::Resumed(held), store.root().to_owned());
        Ok(ResumedPlan { request: PlanRequest { record, source, directory, store }, lost })
    }

    fn set_budget(&self, record: &mut PlanRecord) {
        if let Some(budget) = self.budget {
            record.budget_ns = u64::try_from(budget.0).ok();
        }
    }

    /// Where it goes, and its name: the verb, the plan's name and the id where it has no other.
    fn place(&self, store: &Store, words: &[&str], id: &str) -> Result<(PathBuf, String)> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        // Plans of suites begin with that word already.
        let named = words.iter().filter(|word| **word != "suite");
        let own =
            || format!("{}-{id}", named.copied().collect::<Vec<_>>().join("-")).replace(' ', "-");
        if let Some(directory) = &self.output {
            if directory.join(PLAN).exists() {
                let shown = shell_word(&typed(directory));
                let verb = words.first().copied().unwrap_or("plan");
                bail!("{shown} holds a plan; continue with `tardy {verb} --resume {shown}`");
            }
            return Ok((directory.clone(), self.name.clone().unwrap_or_else(own)));
        }
        Ok(match &self.name {
            Some(name) => store.free_place(name),
            None => store.free_place(&own()),
        })
    }

    fn result(
        &self,
        record: &PlanRecord,
        directory: &RunDirectory,
        shown: &str,
        gates: &RunGates,
    ) -> Result<Exit> {
        let mut exit = Exit::Done;
        let (mut runs, mut found): (Vec<Option<Run>>, Vec<CellGate>) = (vec![], vec![]);
        for cell in &record.cells {
            let path = cell.path.as_ref().filter(|_| cell.status == CellStatus::Measured);
            let Some(path) = path else {
                runs.push(None);
                exit = exit.worst(match cell.status {
                    CellStatus::Failed => Exit::Failed,
                    _ if gates.is_empty() => Exit::Done,
                    _ => Exit::Inconclusive,
                });
                continue;
            };
            let run = cell_run(directory, cell).with_context(|| shown.to_owned())?;
            let results = gates.of_run(&run.document).decide_limits(&run)?;
            exit = exit.worst(gates::exit(&run.document, results.as_deref()));
            let named = |result| CellGate { cell: path.clone(), result };
            found.extend(results.into_iter().flatten().map(named));
            runs.push(Some(run));
        }
        let repeated = repeated(record, &runs, gates)?;
        let results: Vec<GateResult> = repeated.iter().map(|own| own.result.clone()).collect();
        exit = exit.worst(gates::verdict(gates.names_runs().then_some(results.as_slice())));
        found.extend(repeated);
        let unmeasured = gates.unmeasured(runs.iter().flatten().map(|run| &run.document));
        exit = exit.worst(gates::verdict((!unmeasured.is_empty()).then_some(&unmeasured)));
        let named = |result| CellGate { cell: THE_PLAN.into(), result };
        found.extend(unmeasured.into_iter().map(named));
        if found.is_empty() && !gates.is_empty() {
            exit = exit.worst(Exit::Inconclusive);
        }
        let documents: Vec<Option<Document>> =
            runs.into_iter().map(|run| run.map(|run| run.document)).collect();
        let found_any = (!gates.is_empty()).then_some(found.as_slice());
        if self.format.is_json() {
            output::put_json(&ShownPlan { record, gates: found_any })?;
        } else {
            let finding = finding(record, &documents, &found, gates.count());
            output::put(&text::result(record, &finding, &documents, shown))?;
            put_gates(record, &found)?;
        }
        Ok(exit)
    }
}

/// What is known of the cells of this row.
fn planned_cell(
    row: &PlanRow,
    store: &Store,
    gates: &RunGates,
    repeat: u32,
    is_first: bool,
) -> Result<PlannedCell> {
    ensure!(
        row.far.is_none(),
        "it wants two boxes, and this machine is one; measure it with `tardy lab run`"
    );
    let run = Command::new("run").no_binary_name(true).disable_help_flag(true);
    let matches = RunFlags::augment_args(run).try_get_matches_from(row.words());
    let refused = |error| anyhow::anyhow!("{}", reason(&name_other_probes(error)));
    let flags = matches.and_then(|matches| RunFlags::from_arg_matches(&matches));
    flags.map_err(refused)?.planned_cell(store, gates, repeat as usize, is_first)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::loads::LoadSpec;

    #[test]
    fn the_plans_that_come_along_are_of_words_that_run_takes() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let mut count = 0;
        for file in std::fs::read_dir(examples).unwrap() {
            let path = file.unwrap().path();
            let plan = Plan::open(&path).unwrap();
            assert!(plan.rows.len() > 1, "{}", path.display());
            for row in &plan.rows {
                let run = Command::new("run").no_binary_name(true);
                let matches = RunFlags::augment_args(run).try_get_matches_from(row.words());
                assert!(matches.is_ok(), "{}: {}", row.name, matches.unwrap_err());
                row.loads.iter().for_each(|load| drop(LoadSpec::parse(load).unwrap()));
            }
            count += 1;
        }
        assert_eq!(count, 7);
    }
}
