//! A plan in progress on standard error: a line that is overwritten on a terminal, in a pipe a line
//! for each cell that has ended.

use std::{io::IsTerminal as _, time::Duration};

use crate::{
    campaign::PlanProgress,
    cli::{output, progress::StatusLine},
    plain::plain,
    report::plan as text,
    run::CellStatus,
};

/// What is said while it is in progress.
#[derive(Debug)]
pub(super) enum PlanStatusView {
    /// Nothing.
    Silent,
    /// The line of a terminal.
    Line(StatusLine),
    /// A line a cell.
    Log,
}

impl PlanStatusView {
    /// What suits standard error.
    pub(super) fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Silent,
            (false, true) => Self::Line(StatusLine::new(true)),
            (false, false) => Self::Log,
        }
    }

    /// How often it wants to be shown during a cell; absent for never.
    pub(super) const fn pace(&self) -> Option<Duration> {
        match self {
            Self::Silent | Self::Log => None,
            Self::Line(_) => Some(Duration::from_millis(500)),
        }
    }

    /// Shows what happens.
    pub(super) fn show(&mut self, progress: &PlanProgress<'_>) {
        let PlanProgress { record, cell, within, has_ended } = *progress;
        match (self, cell.filter(|_| has_ended)) {
            (Self::Line(line), None) => {
                line.write(|| text::passing(record, cell, within.as_secs_f64()));
            }
            (Self::Log, Some(cell)) => {
                let ended = record.cells.len() - record.count(CellStatus::Pending);
                let how = match cell.status {
                    CellStatus::Failed => "FAILED",
                    _ => "measured",
                };
                let left = text::time_left(record);
                let of = record.cells.len();
                let (name, repeat) = (&cell.name, cell.repeat);
                let line = format!("{ended}/{of} {name}, repeat {repeat}: {how}; {left} left");
                output::notice(&plain(&line));
            }
            _ => {}
        }
    }

    /// Erases what was only for the time of the plan.
    pub(super) fn clear(&mut self) {
        if let Self::Line(line) = self {
            line.clear();
        }
    }
}
