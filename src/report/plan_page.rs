//! The page of a plan: the matrix of its cells, each run by itself, and what was not measured.

use super::{
    causes::cells,
    cell_run::{measured, unmeasured},
    gate::GateResult,
    lab::MatrixView,
    matrix_page::{self, MatrixKind, PageCellRun, PageMatrix},
    plan::ending,
};
use crate::{
    analysis::matrix::{
        Column, FIGURES, Matrix, MatrixCell, MatrixRow, RunFigures, figure_over, figures_of, whole,
    },
    run::{CellStatus, PlanCell, PlanRecord, Run, lab::LabFailure},
};

/// How to read the figures.
const MEANING: &str = "Each cell is a combination of the plan on this machine; of a run its \
                       largest series counts. A range goes from the smallest to the largest run, \
                       and is no verdict: `tardy compare` gives one, from three runs a side on.";

/// What there is of one run of a plan, or of one block of a comparison.
#[derive(Debug, Default)]
pub struct FoundRun {
    /// The run; absent where it was not measured or cannot be read.
    pub run: Option<Run>,
    /// Why it cannot be read.
    pub error: Option<String>,
    /// Its own page, from that of the matrix.
    pub page: Option<String>,
    /// What gates came to.
    pub gates: Vec<GateResult>,
}

/// What the page of a plan shows; `found` has one entry for each cell of the record.
#[must_use]
pub fn matrix(record: &PlanRecord, found: Vec<FoundRun>, remarks: Vec<String>) -> PageMatrix {
    let listed = record.cells.iter().zip(&found).map(|(cell, found)| listed(cell, found));
    let listed: Vec<PageCellRun> = listed.collect();
    let failed = listed.iter().filter_map(failure).collect();
    let (columns, rows) = (&record.columns, &record.rows);
    let mut page = pooled(record.plan.clone(), columns, rows, &listed, found);
    page.kind = MatrixKind::Plan;
    page.headline = record.name.clone();
    page.state = ending(record);
    page.meanings = vec![MEANING.into()];
    page.remarks = remarks;
    page.remarks.extend(record.error.clone());
    page.failed = failed;
    page.undone = record.count(CellStatus::Pending);
    page.runs = listed;
    page
}

/// A matrix of runs without anything judged: each in the cell that `listed` names.
pub(super) fn pooled(
    title: String,
    columns: &[String],
    rows: &[String],
    listed: &[PageCellRun],
    found: Vec<FoundRun>,
) -> PageMatrix {
    let (places, runs): (Vec<&PageCellRun>, Vec<Run>) =
        listed.iter().zip(found).filter_map(|(place, found)| Some((place, found.run?))).unzip();
    let column = |name: &String| Column {
        name: name.clone(),
        release: String::new(),
        preemption: String::new(),
        hash: String::new(),
        mode: String::new(),
        is_control: false,
    };
    let cell_of = |row: &String, column: &String| {
        let own = |place: &&PageCellRun| place.row == *row && place.column == *column;
        let own = places.iter().enumerate().filter(|(_, place)| own(place)).map(|(at, _)| at);
        cell(own.collect(), &runs)
    };
    let row = |name: &String| MatrixRow {
        name: name.clone(),
        cells: columns.iter().map(|column| cell_of(name, column)).collect(),
        judgements: Vec::new(),
    };
    let mut matrix = Matrix {
        kernels: columns.iter().map(column).collect(),
        loads: rows.iter().map(row).collect(),
        remarks: Vec::new(),
        comparisons: 0,
    };
    cells::fill(&mut matrix, &runs);
    let sheet = MatrixView { title, matrix, failed: Vec::new(), undone: 0, config: None };
    matrix_page::matrix(&sheet, &runs)
}

fn cell(own: Vec<usize>, runs: &[Run]) -> Option<MatrixCell> {
    let documents = own.iter().filter_map(|at| runs.get(*at)).map(|run| &run.document);
    let documents: Vec<_> = documents.collect();
    let figures: Vec<RunFigures> = documents.iter().map(|run| figures_of(run)).collect();
    let samples = documents.iter().flat_map(|run| whole(run)).map(|series| series.count);
    (!documents.is_empty()).then(|| MatrixCell {
        phases: documents.len(),
        runs: own,
        samples: samples.fold(0, u64::saturating_add),
        figures: (0..FIGURES.len()).filter_map(|at| figure_over(at, &figures)).collect(),
        invalid: Vec::new(),
        causes: Vec::new(),
    })
}

fn listed(cell: &PlanCell, found: &FoundRun) -> PageCellRun {
    let own = match &found.run {
        Some(run) => measured(run, &found.gates),
        None => unmeasured(cell.status),
    };
    let error = found.error.clone().or_else(|| cell.error.clone());
    PageCellRun {
        row: cell.row.clone(),
        column: cell.column.clone(),
        repeat: cell.repeat,
        page: found.page.clone(),
        path: cell.path.clone(),
        error,
        ..own
    }
}

/// A cell without a run, where something is known of why.
fn failure(run: &PageCellRun) -> Option<LabFailure> {
    let unread = run.status == CellStatus::Measured && run.error.is_some();
    (unread || run.status == CellStatus::Failed).then(|| LabFailure {
        load: run.row.clone(),
        kernel: run.column.clone(),
        seed: run.repeat,
        why: run.error.clone().unwrap_or_else(|| "no reason is known".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan_record::tests::record;

    #[test]
    fn cells_without_a_run_are_told_with_the_reason() {
        let mut record = record();
        record.error = Some("the disk is full".into());
        record.cells[1].status = CellStatus::Failed;
        record.cells[1].error = Some("no rights".into());
        let unread = FoundRun { error: Some("run.json is damaged".into()), ..FoundRun::default() };
        let page = matrix(&record, vec![unread, FoundRun::default()], vec!["a remark".into()]);
        assert_eq!(page.remarks, ["a remark", "the disk is full"]);
        assert_eq!((page.undone, page.runs.len(), page.loads.len()), (0, 2, 2));
        assert!(page.loads.iter().all(|row| row.cells == [None]));
        let failed = page.failed.iter().map(|own| (own.load.as_str(), own.why.as_str()));
        let told = [("a", "run.json is damaged"), ("b", "no rights")];
        assert_eq!(failed.collect::<Vec<_>>(), told);
        record.cells[1].status = CellStatus::Pending;
        record.cells[1].error = None;
        let page = matrix(&record, vec![FoundRun::default(), FoundRun::default()], Vec::new());
        assert_eq!((page.undone, page.failed.len()), (1, 0));
    }
}
