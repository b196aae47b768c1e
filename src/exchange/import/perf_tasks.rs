//! Wake-ups of tasks, as perf tells them: a series for each name and for each task of it, as
//! `tardy attach` has them.

use std::collections::HashMap;

use super::{imported_data::ImportedData, source::ImportError};
use crate::limits::import::MOST_TASKS;
use crate::run::{ImportCaveat, series_name::name_of_task};

/// The series of a file, and the events that belong to no series.
#[derive(Debug, Default)]
pub(super) struct TaskSeries {
    numbers: HashMap<String, usize>,
    tasks: usize,
    /// Runs that no wake-up began.
    unwoken: u64,
}

/// A wake-up of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskWakeUp<'a> {
    pub(super) comm: &'a str,
    /// Its number; `None` if perf does not know it.
    pub(super) tid: Option<u32>,
    /// When it was woken, ns.
    pub(super) woken_ns: i64,
    /// Until it ran, ns.
    pub(super) delay_ns: i64,
}

impl TaskSeries {
    /// Adds one to the series of its name and to that of its task.
    pub(super) fn add(
        &mut self,
        sheet: &mut ImportedData,
        wake_up: TaskWakeUp<'_>,
    ) -> Result<(), ImportError> {
        let TaskWakeUp { comm, tid, woken_ns, delay_ns } = wake_up;
        let name = name_of_task(comm.as_bytes());
        let own = tid.map(|tid| format!("{name}/{tid}"));
        let pooled = self.number(sheet, name)?;
        sheet.sample(pooled, woken_ns, delay_ns)?;
        let Some(own) = own else { return Ok(()) };
        if !self.numbers.contains_key(&own) {
            if self.tasks == MOST_TASKS {
                return Ok(());
            }
            self.tasks += 1;
        }
        let own = self.number(sheet, own)?;
        sheet.sample(own, woken_ns, delay_ns)
    }

    fn number(&mut self, sheet: &mut ImportedData, name: String) -> Result<usize, ImportError> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let number = sheet.series(&name, None)?;
        self.numbers.insert(name, number);
        Ok(number)
    }

    /// A task ran, and nothing says that it was woken for it.
    pub(super) const fn add_unwoken(&mut self) {
        self.unwoken += 1;
    }

    /// Says what is not a wake-up.
    pub(super) fn finish(self, sheet: &mut ImportedData) {
        if self.unwoken > 0 {
            let why = "tells of no wake-up: the task continued after another one had its CPU, or \
                       was woken before the record began, or may have been woken less than a \
                       microsecond before";
            sheet.caveats.push(ImportCaveat::RowsLeftOut { rows: self.unwoken, why });
        }
    }
}
