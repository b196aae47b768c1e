//! The progress of a matrix while it is measured: one line that is overwritten on a terminal, one
//! line per cell in a pipe.

use std::io::{self, IsTerminal as _};

use crate::{
    cli::{output, progress::StatusLine},
    lab::matrix::scheduler::{CellTask, TaskEvent, TaskOutcome, time_left},
    plain::plain,
    units::span,
};

/// The progress of a matrix.
pub(super) struct MatrixProgress {
    line: StatusLine,
    /// Whether each finished cell gets its own line.
    tells: bool,
    jobs: usize,
    total: usize,
    ended: Vec<TaskOutcome>,
    running: Vec<CellTask>,
}

impl MatrixProgress {
    /// For `total` cells, some of them in parallel.
    pub(super) fn new(total: usize, jobs: usize, quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self {
            line: StatusLine::new(terminal && !quiet),
            tells: !terminal && !quiet,
            jobs,
            total,
            ended: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Records an event, and shows it.
    pub(super) fn note(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Began(task) => self.running.push((*task).clone()),
            TaskEvent::Ended(task, outcome) => {
                self.running.retain(|other| other.place != task.place);
                self.ended.push((*outcome).clone());
                if self.tells {
                    output::notice(&self.ending(task, outcome));
                }
            }
            TaskEvent::Tick => {}
        }
        let Self { line, jobs, total, ended, running, .. } = self;
        line.write(|| text(ended, *total, *jobs, running));
    }

    /// Erases the line.
    pub(super) fn end(&mut self) {
        self.line.clear();
    }

    fn ending(&self, task: &CellTask, outcome: &TaskOutcome) -> String {
        let how = match outcome {
            TaskOutcome::Measured(time) => format!("measured in {}", span(time.as_secs_f64())),
            TaskOutcome::Known => "reused".into(),
            TaskOutcome::Stopped => "ended early".into(),
            TaskOutcome::Failed(why) => {
                format!("FAILED: {}", why.lines().next().unwrap_or_default())
            }
        };
        // Names come from the plan, and what failed quotes a guest.
        plain(&format!("{}/{} {}: {how}", self.ended.len(), self.total, task.name))
    }
}

/// `7/24 cells | 2 min left | 1 failed | idle under rt, phase 0`
fn text(ended: &[TaskOutcome], total: usize, jobs: usize, running: &[CellTask]) -> String {
    let mut parts = vec![format!("{}/{total} cells", ended.len())];
    let mut all: Vec<Option<TaskOutcome>> = ended.iter().cloned().map(Some).collect();
    all.resize(total.max(ended.len()), None);
    if let Some(left) = time_left(&all, jobs) {
        parts.push(format!("{} left", span(left.as_secs_f64())));
    }
    let failed = ended.iter().filter(|outcome| matches!(outcome, TaskOutcome::Failed(_))).count();
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    parts.extend(running.iter().map(|task| task.name.clone()));
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use super::*;

    #[test]
    fn it_tells_how_many_how_long_and_which() {
        let task = CellTask {
            load: 0,
            kernel: 0,
            seed: 0,
            place: PathBuf::new(),
            name: "idle under rt, phase 0".into(),
        };
        let measured = TaskOutcome::Measured(Duration::from_secs(10));
        let ended = [measured.clone(), measured, TaskOutcome::Failed("x".into())];
        assert_eq!(
            text(&ended, 7, 2, std::slice::from_ref(&task)),
            "3/7 cells | 20 s left | 1 failed | idle under rt, phase 0"
        );
        assert_eq!(text(&[], 2, 1, &[]), "0/2 cells", "nothing is known of the time yet");
        let watch = MatrixProgress { ended: ended.to_vec(), ..MatrixProgress::new(7, 1, true) };
        assert_eq!(
            watch.ending(&task, &TaskOutcome::Failed("it panicked\x1b[8m\nmore".into())),
            "3/7 idle under rt, phase 0: FAILED: it panicked\\u{1b}[8m"
        );
    }
}
