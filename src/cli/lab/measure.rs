//! Measures cells of the lab into a directory, with their record and progress.

use std::{
    io::{self, Write as _},
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::matrix_progress::MatrixProgress;
use crate::{
    lab::matrix::{
        cell_runner::{CellRunner, file_names},
        results::Results,
        scheduler::{CellTask, ScheduleOptions, TaskEvent, TaskOutcome, run_tasks},
    },
    plan::order::CellOrder,
    run::{
        RunDirectory,
        lab::{LAB_VERSION, LabFailure, LabKernel, LabRecord},
    },
    sys::signals::Quit,
};

/// How cells are measured.
pub(super) struct LabMeasurement<'a> {
    /// The plan's name.
    pub plan: &'a str,
    /// Kernels and loads.
    pub cell_runner: &'a CellRunner,
    /// Where outcomes are kept.
    pub results: &'a Results,
    /// Numbers of the phase offsets.
    pub phases: Range<u32>,
    /// In which order cells are measured, and what it is drawn by where it is random.
    pub order: (CellOrder, u64),
    /// How long nothing is done after a cell that was measured.
    pub pause: Duration,
    /// How long all of it may take.
    pub budget: Option<Duration>,
    /// Guests in parallel.
    pub jobs: usize,
    /// Whether to measure also what is known.
    pub again: bool,
    /// Whether to say nothing meanwhile.
    pub quiet: bool,
    /// What ends it early.
    pub quit: &'a Quit,
}

impl LabMeasurement<'_> {
    /// Measures all cells into `directory`, which errors call `place`; what came of them.
    pub(super) fn measure(&self, directory: &RunDirectory, place: &Path) -> Result<LabRecord> {
        let tasks = self.cell_runner.tasks(self.phases.clone(), self.order.0, self.order.1);
        let unwritable = || format!("cannot write to {}", place.display());
        let mut record = self.record(directory, tasks.len()).with_context(unwritable)?;
        let began = Instant::now();
        let is_over = || self.budget.is_some_and(|budget| began.elapsed() >= budget);
        let stop = || self.quit.seen().is_some() || is_over();
        let (jobs, again, results, pause) = (self.jobs, self.again, self.results, self.pause);
        let orders = ScheduleOptions { directory, jobs, results, again, pause, stop: &stop };
        let mut watch = MatrixProgress::new(tasks.len(), jobs, self.quiet);
        let outcomes = run_tasks(&tasks, self.cell_runner, &orders, &mut |event| {
            if let TaskEvent::Ended(_, TaskOutcome::Measured(_) | TaskOutcome::Known) = event {
                record.undone = record.undone.saturating_sub(1);
                // The last one says where this fails.
                let _ = record.write(directory);
            }
            watch.note(&event);
        });
        watch.end();
        self.note(&mut record, &tasks, &outcomes);
        record.write(directory).with_context(unwritable)?;
        Ok(record)
    }

    /// The record before any of `undone` cells is measured; written at once, so that a killed lab
    /// leaves a readable directory.
    fn record(&self, directory: &RunDirectory, undone: usize) -> io::Result<LabRecord> {
        let targets = || self.cell_runner.targets.iter().filter(|target| !target.is_control);
        let names = file_names(targets().map(|target| target.name.as_str()));
        let mut kernels = Vec::new();
        for (target, name) in targets().zip(names) {
            let config = target.kernel.as_ref().map(|kernel| &kernel.config);
            let config = config.filter(|config| !config.is_empty()).map(|config| {
                let file = format!("config-{name}");
                directory.create(&file)?.write_all(config.text().as_bytes())?;
                io::Result::Ok(PathBuf::from(file))
            });
            kernels.push(LabKernel { name: target.name.clone(), config: config.transpose()? });
        }
        let record = LabRecord {
            lab_version: LAB_VERSION,
            plan: self.plan.to_owned(),
            kernels,
            loads: self.cell_runner.rows.iter().map(|row| row.name.clone()).collect(),
            seed: Some(self.cell_runner.seed),
            order_seed: (self.order.0 == CellOrder::Random).then_some(self.order.1),
            undone,
            ..LabRecord::default()
        };
        record.write(directory)?;
        Ok(record)
    }

    fn note(&self, record: &mut LabRecord, tasks: &[CellTask], outcomes: &[TaskOutcome]) {
        let CellRunner { rows, targets, .. } = self.cell_runner;
        record.undone = 0;
        for (task, outcome) in tasks.iter().zip(outcomes) {
            match outcome {
                TaskOutcome::Failed(why) => record.failed.push(LabFailure {
                    load: rows.get(task.load).map(|row| row.name.clone()).unwrap_or_default(),
                    kernel: targets.get(task.kernel).map(|own| own.column()).unwrap_or_default(),
                    seed: task.seed,
                    why: why.clone(),
                }),
                TaskOutcome::Stopped => record.undone += 1,
                TaskOutcome::Measured(_) | TaskOutcome::Known => {}
            }
        }
    }
}
