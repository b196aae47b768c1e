//! What a child measured: its run is taken from the directory that was made for it, and only where
//! it is the run that was asked for.

use std::{io, path::Path};

use anyhow::{Context as _, Error, Result, anyhow};

use crate::run::{CellStatus, OpenError, PlanCell, PlanRecord, Run, RunDirectory, TakeError};

/// The run of a cell that was begun, below the directory of its plan, which is held open.
///
/// # Errors
/// It was never begun; or as [`RunDirectory::take_run`]. Somebody else owns a directory on the way,
/// or can write it.
pub(crate) fn cell_run(plan: &RunDirectory, cell: &PlanCell) -> Result<Run> {
    let path = Path::new(cell.path.as_ref().context("it was not begun")?);
    let run = (|| -> Result<Run> {
        let directory = plan.own_below(path)?;
        Ok(directory.take_run(cell.run_id.as_deref(), &cell.words)?)
    })();
    let run = run.with_context(|| path.display().to_string())?;
    // Nobody else can put another in its place: all directories on the way are the caller's own.
    Ok(Run::of(plan.path().join(path), run.document))
}

/// Makes of a record what there is to do yet: failed cells are pending again, and so are measured
/// ones whose run is damaged or gone. Gives what is said of the latter.
///
/// # Errors
/// A run that is there, and is not the cell's own.
pub(crate) fn take_up(plan: &RunDirectory, record: &mut PlanRecord) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    for cell in &mut record.cells {
        match cell.status {
            CellStatus::Pending => {}
            CellStatus::Failed => cell.status = CellStatus::Pending,
            CellStatus::Measured => {
                let Some(path) = &cell.path else { continue };
                let Err(error) = cell_run(plan, cell) else { continue };
                lost.push(lost_run(path, error)?);
                cell.status = CellStatus::Pending;
                (cell.validity, cell.run_status, cell.taken_ns) = (None, None, None);
            }
        }
    }
    Ok(lost)
}

/// What is said of a run that is damaged or gone.
///
/// # Errors
/// Any other error: measured again, the cell would have two runs.
fn lost_run(path: &str, error: Error) -> Result<String> {
    use OpenError::{Damaged, NoRun, Refused};
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match error.downcast_ref::<TakeError>() {
        Some(TakeError::Unread(NoRun { .. })) => Ok(format!("{path}: the run is missing")),
        Some(TakeError::Unread(Damaged { .. } | Refused { .. })) => Ok(format!("{error:#}")),
        Some(TakeError::OtherRun(_) | TakeError::OtherProbe { .. }) => {
            Err(anyhow!("{error:#}; move it away, and the cell is measured again"))
        }
        None if error.downcast_ref::<io::Error>().is_some_and(is_absent) => {
            Ok(format!("{path}: the run is missing"))
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::run::plan_record::tests::record;

    /// A plan with the run of its first cell, and that cell.
    fn plan() -> (tempfile::TempDir, RunDirectory, PlanCell) {
        let place = tempfile::tempdir().unwrap();
        let plan = RunDirectory::make_private(&place.path().join("plan")).unwrap();
        let own = plan.subdirectory("cells").unwrap().subdirectory("0001").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let document = Run::open(&fixture).unwrap().document;
        own.replace("run.json", &serde_json::to_vec(&document).unwrap()).unwrap();
        let cell = PlanCell {
            path: Some("cells/0001".into()),
            run_id: Some(document.id),
            words: vec!["timer".into()],
            ..record().cells[0].clone()
        };
        (place, plan, cell)
    }

    #[test]
    fn a_cell_is_taken_only_where_it_is_the_run_that_was_begun() {
        let (_place, plan, cell) = plan();
        let refused = |cell: &PlanCell| format!("{:#}", cell_run(&plan, cell).unwrap_err());
        assert_eq!(cell_run(&plan, &cell).unwrap().document.name, "timer");
        let older = PlanCell { run_id: None, words: vec!["--cpus=0".into()], ..cell.clone() };
        cell_run(&plan, &older).unwrap();
        let other = PlanCell { run_id: Some("20260101-000000.000-0000".into()), ..cell.clone() };
        assert!(
            refused(&other).contains("cells/0001: it holds another run"),
            "{}",
            refused(&other)
        );
        let other = PlanCell { words: vec!["noise".into()], ..cell.clone() };
        assert!(refused(&other).contains("a run of timer, and noise"), "{}", refused(&other));
        let other = PlanCell { path: Some("cells/0002".into()), ..cell.clone() };
        assert!(refused(&other).starts_with("cells/0002: "), "{}", refused(&other));
        let unbegun = PlanCell { path: None, ..cell };
        assert_eq!(refused(&unbegun), "it was not begun");
    }

    #[test]
    fn a_run_that_others_can_write_or_that_is_a_link_is_not_taken() {
        let (place, plan, cell) = plan();
        let refused = || format!("{:#}", cell_run(&plan, &cell).unwrap_err());
        let at = |name: &str| place.path().join("plan/cells").join(name);
        let set_mode = |name: &str, mode: u32| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["0001/run.json", "0001", ""] {
            let before = fs::metadata(at(name)).unwrap().permissions();
            set_mode(name, 0o777);
            assert!(refused().contains("can be written by others"), "{name}: {}", refused());
            fs::set_permissions(at(name), before).unwrap();
        }
        cell_run(&plan, &cell).unwrap();
        fs::rename(at("0001"), place.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(place.path().join("elsewhere"), at("0001")).unwrap();
        assert!(refused().starts_with("cells/0001: "), "{}", refused());
    }
}
