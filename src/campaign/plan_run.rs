//! The cells of a plan, one after the other: prepared, measured, recorded. A resumed plan
//! continues where the session before ended.

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    child_result::{cell_run, take_up},
    child_run::{ChildOrder, ChildRuns},
    commands::{Commands, UserCommand},
    lock::locked,
    plan_request::{PlanProgress, PlanRequest, PlanSource, PlanView},
    process::ChildWaiter,
};
use crate::{
    run::{
        CellStatus, Document, PLAN, PLAN_LOCK, PlanCell, PlanRecord, PlanStatus, RunDirectory,
        Status,
    },
    sys::{run_id::new_id, signals::Quit},
};

/// The directory of cells, beside the record.
const CELLS: &str = "cells";

/// The plan as it was read, beside the record.
const COPY: &str = "plan.toml";

/// How long a prepare command may take where the plan has no budget.
const LONGEST_COMMAND: Duration = Duration::from_secs(3_600);

/// How often is asked whether the run of a killed sitting has ended, and how long.
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the plan stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanEnd {
    Done,
    OverBudget,
    Quit,
}

/// Measures what is pending, and hands over the record, with the directory that has it too.
///
/// # Errors
/// A command of the user failed, or the record cannot be written. What was measured by then is
/// kept, and what the commands changed is restored.
pub(crate) fn run_plan(
    request: PlanRequest,
    quit: Quit,
    view: &mut PlanView<'_>,
) -> Result<(PlanRecord, RunDirectory)> {
    let mut campaign = PlanCampaign::new(request, quit)?;
    let measured = campaign.measure(view);
    let undone = campaign.undo();
    let directory = campaign.directory.clone();
    campaign.close(measured, undone).map(|record| (record, directory))
}

struct PlanCampaign {
    record: PlanRecord,
    directory: RunDirectory,
    /// Where the cells go.
    cells: RunDirectory,
    /// Where it is, for people.
    place: PathBuf,
    store: PathBuf,
    runs: ChildRuns,
    commands: Commands,
    watch: ChildWaiter,
    start: Instant,
    /// Of the sittings before, ns.
    spent_ns: u64,
    /// Held as long as this sitting continues.
    _lock: File,
}

impl PlanCampaign {
    fn new(request: PlanRequest, quit: Quit) -> Result<Self> {
        let PlanRequest { mut record, source, directory: place, store } = request;
        let cannot = || format!("cannot write into {}", place.display());
        let (directory, text) = match source {
            PlanSource::New(text) => (RunDirectory::make_private(&place)?, Some(text)),
            PlanSource::Resumed(directory) => (directory, None),
        };
        let lock = locked(&directory, &place, PLAN_LOCK)?;
        let cells = if let Some(text) = text {
            directory.replace(COPY, text.as_bytes()).with_context(cannot)?;
            directory.subdirectory(CELLS).with_context(cannot)?
        } else {
            // Another sitting may have gone on since it was read.
            let now = PlanRecord::read_own(&directory, &place)?;
            record = PlanRecord { budget_ns: record.budget_ns, ..now };
            record.sittings += 1;
            directory.own_below(Path::new(CELLS)).with_context(cannot)?
        };
        take_up(&directory, &mut record).with_context(|| place.display().to_string())?;
        (record.status, record.ended_at, record.error) = (PlanStatus::Running, None, None);
        let log = |name: &str| match record.sittings {
            ..=1 => format!("{name}.log"),
            number => format!("{name}-{number}.log"),
        };
        let limit = record.budget_ns.map_or(LONGEST_COMMAND, Duration::from_nanos);
        let campaign = Self {
            runs: ChildRuns::new(&directory, &log("cells")).with_context(cannot)?,
            commands: Commands::new(&directory, &log("commands"), limit).with_context(cannot)?,
            watch: ChildWaiter::new(quit).context("cannot set a signal handler")?,
            start: Instant::now(),
            spent_ns: record.spent_ns,
            _lock: lock,
            record,
            directory,
            cells,
            place,
            store,
        };
        campaign.write()?;
        Ok(campaign)
    }

    fn measure(&mut self, view: &mut PlanView<'_>) -> Result<PlanEnd> {
        for number in 0..self.record.cells.len() {
            if self.cell(number)?.status != CellStatus::Pending || self.take_whole_run(number)? {
                continue;
            }
            if self.watch.is_quit() {
                return Ok(PlanEnd::Quit);
            }
            let needed_ns = self.record.cell_ns(self.cell(number)?);
            let fits = |budget_ns| self.record.spent_ns.saturating_add(needed_ns) <= budget_ns;
            if !self.record.budget_ns.is_none_or(fits) {
                return Ok(PlanEnd::OverBudget);
            }
            if !self.measure_cell(number, view)? || !self.pause(view) {
                return Ok(PlanEnd::Quit);
            }
        }
        Ok(PlanEnd::Done)
    }

    fn cell(&self, number: usize) -> Result<&PlanCell> {
        self.record.cells.get(number).context("the plan has no such cell")
    }

    /// Takes the run of a cell that was begun by a sitting which was killed, where it is whole.
    fn take_whole_run(&mut self, number: usize) -> Result<bool> {
        let Some(path) = self.cell(number)?.path.clone() else { return Ok(false) };
        let began = Instant::now();
        loop {
            // What is damaged or another run is measured again; it stays where it is.
            let Ok(run) = cell_run(&self.directory, self.cell(number)?) else { return Ok(false) };
            match run.document.status {
                Status::Complete | Status::StoppedOver => {
                    self.note(number, &run.document, None)?;
                    return Ok(true);
                }
                Status::Running if self.watch.is_quit() => return Ok(false),
                Status::Running => ensure!(
                    began.elapsed() < PATIENCE,
                    "{} is still measured by another tardy; wait for its end",
                    self.place.join(path).display()
                ),
                Status::Interrupted | Status::Crashed | Status::Imported => return Ok(false),
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Prepares and measures one cell; whether it came to its end before the user wanted all to
    /// end.
    fn measure_cell(&mut self, number: usize, view: &mut PlanView<'_>) -> Result<bool> {
        let began = Instant::now();
        let name = self.begin(number)?;
        if !self.prepare(number, &name)? {
            return Ok(false);
        }
        let cell = self.cell(number)?;
        let run_name = format!("{}-{name}", self.record.name);
        let path = self.place.join(CELLS).join(&name);
        let directory = self.cells.subdirectory(&name);
        let directory = directory.with_context(|| format!("cannot make {}", path.display()))?;
        let order = ChildOrder {
            words: &cell.words,
            length_ns: None,
            id: cell.run_id.as_deref().unwrap_or_default(),
            directory: &directory,
            path: &path,
            name: &run_name,
            store: &self.store,
        };
        let mut show = || {
            (view.show)(&PlanProgress {
                record: &self.record,
                within: began.elapsed(),
                cell: Some(cell),
                has_ended: false,
            });
        };
        show();
        let measured = self.runs.measure(&order, &self.watch, (view.pace, &mut show));
        directory.remove_if_empty();
        if !self.note_outcome(number, measured, began)? {
            return Ok(false);
        }
        (view.show)(&PlanProgress {
            record: &self.record,
            within: began.elapsed(),
            cell: self.record.cells.get(number),
            has_ended: true,
        });
        Ok(true)
    }

    /// Notes what came of a cell; whether it came to its end.
    fn note_outcome(
        &mut self,
        number: usize,
        measured: Result<bool>,
        began: Instant,
    ) -> Result<bool> {
        let run = match measured {
            Ok(false) => return Ok(false),
            Ok(true) => cell_run(&self.directory, self.cell(number)?),
            Err(error) => Err(error),
        };
        match run {
            Ok(run) if has_ended(run.document.status) => {
                let taken_ns = u64::try_from(began.elapsed().as_nanos()).ok();
                self.note(number, &run.document, taken_ns)?;
            }
            Ok(_) if self.watch.is_quit() => return Ok(false),
            Ok(run) => {
                let how = run.document.status.as_str();
                self.note_failure(number, format!("it was ended from outside: {how}"))?;
            }
            Err(error) => self.note_failure(number, format!("{error:#}"))?,
        }
        Ok(true)
    }

    /// Notes where a cell is measured: in a directory that nothing was measured in before.
    fn begin(&mut self, number: usize) -> Result<String> {
        let stem = format!("{:04}", number + 1);
        let further = (2_u32..).map(|attempt| format!("{stem}-{attempt}"));
        let mut names = std::iter::once(stem.clone()).chain(further);
        let name = names.find(|name| !self.cells.holds(name)).unwrap_or(stem);
        let cell = self.record.cells.get_mut(number).context("the plan has no such cell")?;
        (cell.path, cell.run_id) = (Some(format!("{CELLS}/{name}")), Some(new_id()?));
        self.write()?;
        Ok(name)
    }

    fn prepare(&mut self, number: usize, name: &str) -> Result<bool> {
        let Some(text) = self.cell(number)?.prepare.clone() else { return Ok(true) };
        if !self.record.is_prepared {
            // Before it changes anything: if this process is killed, the next session restores it.
            self.record.is_prepared = true;
            self.write()?;
        }
        let command =
            UserCommand { what: "prepare", shown: "prepare", text: &text, block: Some(name) };
        let done = self.commands.run(command, &self.watch)?;
        self.record.commands.push(done.record.clone());
        if done.ended.was_asked {
            return Ok(false);
        }
        self.commands.check(command, &done)?;
        Ok(true)
    }

    /// Restores what the prepare commands may have changed.
    fn undo(&mut self) -> Result<()> {
        let Some(text) = self.record.undo.clone().filter(|_| self.record.is_prepared) else {
            return Ok(());
        };
        let command = UserCommand { what: "undo", shown: "undo", text: &text, block: None };
        let done = self.commands.run(command, &self.watch)?;
        self.record.commands.push(done.record.clone());
        let checked = self.commands.check(command, &done);
        checked.context("the machine may still be as the last prepare command left it")?;
        self.record.is_prepared = false;
        Ok(())
    }

    /// Does nothing for the plan's pause; whether the user wants it to continue.
    fn pause(&mut self, view: &mut PlanView<'_>) -> bool {
        let began = Instant::now();
        let whole = Duration::from_nanos(self.record.pause_ns);
        let is_last = self.record.count(CellStatus::Pending) == 0;
        while !is_last && began.elapsed() < whole && !self.watch.is_quit() {
            std::thread::sleep(whole.saturating_sub(began.elapsed()).min(LOOK));
            if view.pace.is_some() {
                (view.show)(&PlanProgress {
                    record: &self.record,
                    within: began.elapsed(),
                    cell: None,
                    has_ended: false,
                });
            }
        }
        !self.watch.is_quit()
    }

    fn note(&mut self, number: usize, document: &Document, taken_ns: Option<u64>) -> Result<()> {
        let cell = self.record.cells.get_mut(number).context("the plan has no such cell")?;
        cell.status = CellStatus::Measured;
        cell.validity = Some(document.validity);
        cell.run_status = Some(document.status);
        cell.taken_ns = taken_ns;
        cell.error = None;
        self.spend();
        self.write()
    }

    fn note_failure(&mut self, number: usize, error: String) -> Result<()> {
        let cell = self.record.cells.get_mut(number).context("the plan has no such cell")?;
        cell.status = CellStatus::Failed;
        cell.error = Some(error);
        self.spend();
        self.write()
    }

    fn spend(&mut self) {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.record.spent_ns = self.spent_ns.saturating_add(now);
    }

    /// Writes all or nothing: a killed process leaves the record of the cell before.
    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.record)? + "\n";
        self.directory.replace(PLAN, text.as_bytes()).with_context(|| {
            let place = self.place.display();
            format!("cannot write {PLAN} in {place}; the cells that were measured are readable")
        })
    }

    /// The last record. A command that could not put the machine back is an error, whatever was
    /// measured.
    fn close(mut self, measured: Result<PlanEnd>, undone: Result<()>) -> Result<PlanRecord> {
        let error = measured.as_ref().err().or(undone.as_ref().err());
        self.record.error = error.map(|error| format!("{error:#}"));
        self.record.status = match (&measured, &undone) {
            (Err(_), _) | (_, Err(_)) => PlanStatus::Failed,
            (Ok(PlanEnd::Done), _) => PlanStatus::Complete,
            (Ok(PlanEnd::OverBudget), _) => PlanStatus::OverBudget,
            (Ok(PlanEnd::Quit), _) => PlanStatus::Interrupted,
        };
        self.record.ended_at = Some(jiff::Timestamp::now().to_string());
        self.spend();
        let written = self.write();
        match (measured, undone) {
            (Err(error), Err(other)) => Err(error.context(format!("and undo: {other:#}"))),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(_), Ok(())) => written.map(|()| self.record),
        }
    }
}

const fn has_ended(status: Status) -> bool {
    matches!(status, Status::Complete | Status::StoppedOver)
}
