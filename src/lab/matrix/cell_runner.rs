//! Measures the cells of a matrix, in guests and on this machine.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    host::{self, HostCell},
    rows::LabRow,
    scheduler::{CellTask, Measure},
};
use crate::{
    lab::{
        cell::{Cell, ClockMode, guest_runner::GuestRunner, phase::StartPhase},
        kernels::Kernel,
    },
    plan::order::{CellOrder, sequence},
    run::RunDirectory,
};

/// A kernel to measure.
#[derive(Debug, Clone)]
pub struct Target {
    /// What its column is called, in `facts.lab` too.
    pub name: String,
    /// To be booted; none for this machine's own.
    pub kernel: Option<Kernel>,
    /// Whether it repeats another target with other padding.
    pub is_control: bool,
}

impl Target {
    /// What people call its column: a repetition is the kernel again.
    #[must_use]
    pub fn column(&self) -> String {
        if self.is_control { format!("{}, again", self.name) } else { self.name.clone() }
    }
}

/// Kernels and loads, and how they are measured.
pub struct CellRunner {
    /// Where guests are run; none is needed for this machine alone.
    pub runner: Option<GuestRunner>,
    /// The columns.
    pub targets: Vec<Target>,
    /// The rows.
    pub rows: Vec<LabRow>,
    /// What makes a guest's time.
    pub mode: ClockMode,
    /// Draws phase offsets and padding.
    pub seed: u64,
    /// How long one cell may take.
    pub limit: Duration,
    /// This program.
    pub program: PathBuf,
}

impl CellRunner {
    /// All cells in the order in which they are measured, kernels side by side: what is to be
    /// compared is measured at about the same time.
    #[must_use]
    pub fn tasks(&self, phases: Range<u32>, order: CellOrder, order_seed: u64) -> Vec<CellTask> {
        let loads = file_names(self.rows.iter().map(|row| row.name.as_str()));
        let columns: Vec<String> = self.targets.iter().map(Target::column).collect();
        let kernels = file_names(columns.iter().map(String::as_str));
        let rounds = phases.end.saturating_sub(phases.start);
        let mut tasks = Vec::new();
        for (round, load) in sequence(order, order_seed, self.rows.len(), rounds) {
            let (Some(row), Some(load_name)) = (self.rows.get(load), loads.get(load)) else {
                continue;
            };
            let seed = phases.start.saturating_add(round);
            for (kernel, (target, kernel_name)) in self.targets.iter().zip(&kernels).enumerate() {
                let place = Path::new(load_name).join(kernel_name).join(seed.to_string());
                let name = format!("{} under {}, phase {seed}", row.name, target.column());
                tasks.push(CellTask { load, kernel, seed, place, name });
            }
        }
        tasks
    }

    fn parts(&self, task: &CellTask) -> Result<(&LabRow, &Target)> {
        let row = self.rows.get(task.load).context("the task has no load")?;
        Ok((row, self.targets.get(task.kernel).context("the task has no kernel")?))
    }

    /// The cell of a guest; none for this machine.
    fn cell(&self, task: &CellTask) -> Result<Option<(&GuestRunner, Cell)>> {
        let (row, target) = self.parts(task)?;
        let (Some(kernel), is_control) = (target.kernel.clone(), target.is_control) else {
            return Ok(None);
        };
        let runner = self.runner.as_ref().context("the lab has no runner for guests")?;
        let cell = Cell {
            kernel,
            mode: self.mode,
            seed: task.seed,
            start: StartPhase::draw(self.seed, task.seed, is_control),
            is_control,
            load: row.name.clone(),
            arguments: cell_arguments(row),
            far: row.far.clone(),
            cpus: 1,
            limit: self.limit,
        };
        Ok(Some((runner, cell)))
    }
}

impl Measure for CellRunner {
    fn key(&self, task: &CellTask) -> Result<Option<String>> {
        // Noise differs each time, so it is measured each time.
        match self.cell(task)? {
            Some((runner, cell)) if self.mode == ClockMode::Deterministic => {
                runner.key(&cell).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn measure(
        &self,
        task: &CellTask,
        place: &RunDirectory,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        if let Some((runner, cell)) = self.cell(task)? {
            return runner.run(&cell, place, stop).map(|_| ());
        }
        let (row, _) = self.parts(task)?;
        let cell = HostCell {
            program: &self.program,
            load: &row.name,
            arguments: &cell_arguments(row),
            seed: task.seed,
            limit: self.limit,
        };
        host::measure(&cell, place, stop)
    }
}

/// What `tardy run` is given inside, without what the lab sets itself: `run`, and `--raw`. Untraced
/// unless the plan asks for it: the instructions of the BPF programs would be counted too.
#[must_use]
pub fn cell_arguments(row: &LabRow) -> Vec<String> {
    let own = row.arguments.iter().skip(1).filter(|word| *word != "--raw");
    let mut arguments: Vec<String> = own.cloned().collect();
    if !arguments.iter().any(|word| word.starts_with("--trace=")) {
        arguments.push("--trace=off".into());
    }
    arguments
}

/// Names of files like these, each another: `kill-0-to-300-processes`.
#[must_use]
pub fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let keep = |c: char| c.is_ascii_alphanumeric() || "._+=".contains(c);
        let words = name.split(|c| !keep(c)).filter(|word| !word.is_empty());
        let plain = words.collect::<Vec<_>>().join("-");
        let plain = plain.trim_start_matches(['.', '-']);
        let plain: String = plain.chars().take(60).collect();
        let stem = if plain.is_empty() { "unnamed".to_owned() } else { plain };
        let taken = |name: &String| found.contains(name);
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut candidates = std::iter::once(stem.clone()).chain(numbered);
        found.extend(candidates.find(|name| !taken(name)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_differ() {
        let names = ["kill(0) to 300", "kill 0 to 300", "../..", "6.1+preempt=full", "ä", "/"];
        let found = file_names(names.into_iter());
        let wanted =
            ["kill-0-to-300", "kill-0-to-300-2", "unnamed", "6.1+preempt=full", "unnamed-2"];
        assert_eq!(found[..5], wanted);
        assert!(found.iter().all(|name| !name.starts_with('.') && !name.contains('/')));
    }

    #[test]
    fn runs_are_untraced_unless_the_plan_says_otherwise() {
        let of = |words: &[&str]| {
            let words = ["run"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            cell_arguments(&LabRow { arguments: words, ..LabRow::default() })
        };
        assert_eq!(of(&["timer", "--raw"]), ["timer", "--trace=off"]);
        assert_eq!(of(&["timer", "--trace=peaks"]), ["timer", "--trace=peaks"]);
    }

    #[test]
    fn every_kernel_load_and_phase_is_a_task_and_kernels_are_side_by_side() {
        let row = |name: &str| LabRow { name: name.into(), ..LabRow::default() };
        let target = |name: &str| Target { name: name.into(), kernel: None, is_control: false };
        let cell_runner = CellRunner {
            runner: None,
            targets: vec![target("a"), target("b")],
            rows: vec![row("x y"), row("z")],
            mode: ClockMode::Real,
            seed: 1,
            limit: Duration::from_secs(1),
            program: PathBuf::new(),
        };
        let tasks = cell_runner.tasks(0..2, CellOrder::Listed, 0);
        let places: Vec<_> = tasks.iter().map(|task| task.place.display().to_string()).collect();
        assert_eq!(places.len(), 8);
        assert_eq!(places[..5], ["x-y/a/0", "x-y/b/0", "z/a/0", "z/b/0", "x-y/a/1"]);
        assert_eq!(tasks[7].name, "z under b, phase 1");
    }
}
