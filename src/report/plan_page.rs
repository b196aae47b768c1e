//! The page of a plan: the matrix of its cells, each run by itself, and what was not measured.

use super::{
    causes::cells,
    finding::{PlanFinding, SharedGate, of_plans, unread},
    gate_decision::GateResult,
    lab::MatrixView,
    matrix_page::{self, MatrixKind, PageCellRun, PageMatrix},
    plan::ending,
    plan_sheet::{FoundRun, MeasuredPlan, PlanSheet, called},
    plans_beside::{BY_THEMSELVES, HeldRow, IN_TURN, held},
    suite,
};
use crate::{
    analysis::matrix::{
        Column, FIGURES, Matrix, MatrixCell, MatrixRow, RunFigures, figure_over, figures_of, whole,
    },
    run::{CellStatus, Run, lab::LabFailure},
};

/// How to read the figures.
const MEANING: &str = "Each cell is a combination of the plan on this machine; of a run its \
                       largest series counts. A range goes from the smallest to the largest run, \
                       and not a verdict: `tardy compare` gives one, from three runs a side on.";

/// What the page of a plan shows, or of several beside each other: each after the first judged
/// against it, row by row.
#[must_use]
pub fn matrix(plans: &[MeasuredPlan], remarks: Vec<String>) -> PageMatrix {
    let sheet = PlanSheet::of(plans);
    let suite = suite::of(plans, &sheet);
    let failed = sheet.listed.iter().filter_map(failure).collect();
    let rows: Vec<String> = sheet.rows.iter().map(|(_, row)| row.clone()).collect();
    let records = || plans.iter().map(|plan| &plan.record);
    let titles: Vec<String> = records().map(|record| record.plan.clone()).collect();
    let title = titles.first().cloned().unwrap_or_default();
    let undone = records().map(|record| record.count(CellStatus::Pending)).sum();
    let mut page = pooled(title, &sheet.columns, &rows, &sheet.listed, sheet.found.clone());
    page.kind = MatrixKind::Plan;
    page.headline = (0..plans.len()).map(|at| called(plans, at)).collect::<Vec<_>>().join(" and ");
    page.state = match plans {
        [one] => ending(&one.record),
        several => {
            let each = several.iter().enumerate();
            let each =
                each.map(|(at, plan)| format!("{}: {}", called(several, at), ending(&plan.record)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    page.meanings = vec![MEANING.into()];
    page.remarks = remarks;
    if let [one] = plans {
        page.finding = finding(one);
    } else {
        page.meanings = vec![format!("A column is a plan. {BY_THEMSELVES}")];
        page.remarks.push(IN_TURN.into());
        let rows = held(plans);
        let names: Vec<String> = (0..plans.len()).map(|at| called(plans, at)).collect();
        let figures = suite::figures_of(plans.len(), &sheet);
        page.finding = of_plans(&names, &unread(plans), &rows, &figures);
        judge(&mut page, plans.len(), rows);
    }
    page.remarks.extend(records().filter_map(|record| record.error.clone()));
    page.failed = failed;
    page.undone = undone;
    page.runs = sheet.listed;
    page.suite = suite.map(Box::new);
    page
}

/// What a plan comes to, in one sentence.
fn finding(plan: &MeasuredPlan) -> String {
    let found = |at: usize| plan.found.get(at);
    let run = |at: usize| found(at)?.run.as_ref().map(|run| &run.document);
    let gates = |at| -> Vec<&GateResult> {
        found(at).map(|found| found.gates.iter().collect()).unwrap_or_default()
    };
    let shared = plan.unmeasured.iter().map(|result| SharedGate { of: "", result });
    let shared = shared.collect();
    PlanFinding::of(&plan.record, run, gates, plan.gates).with_shared(shared).sentence()
}

/// Adds a sentence to each row for every plan but the first, and for each of its columns.
fn judge(page: &mut PageMatrix, plans: usize, rows: Vec<HeldRow>) {
    for held in rows {
        let Some(row) = page.loads.iter_mut().find(|row| row.name == held.row) else { continue };
        let who = (plans > 2).then_some(held.plan);
        let of = Some(held.column).filter(|column| !column.is_empty());
        let place: Vec<String> = who.into_iter().chain(of).collect();
        let place = if place.is_empty() { place } else { vec![place.join(", ")] };
        row.verdicts.push([place, vec![held.sentence]].concat().join(": "));
    }
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
    let finding = String::new();
    let sheet = MatrixView { title, finding, matrix, failed: Vec::new(), undone: 0, config: None };
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
    use crate::{
        report::plan_sheet::AskedGates,
        run::{PlanRecord, plan_record::tests::record},
    };

    fn plan(record: &PlanRecord, found: Vec<FoundRun>) -> MeasuredPlan {
        MeasuredPlan {
            record: record.clone(),
            found,
            findings: None,
            gates: AskedGates::default(),
            unmeasured: Vec::new(),
        }
    }

    #[test]
    fn plans_beside_each_other_have_columns_of_their_own() {
        let record = record();
        let one = || plan(&record, vec![FoundRun::default(); 2]);
        let page = matrix(&[one(), one()], Vec::new());
        let columns: Vec<&str> = page.kernels.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(columns, ["n (1)", "n (2)"]);
        assert_eq!((page.headline.as_str(), page.loads.len()), ("n (1) and n (2)", 2));
        assert_eq!(page.runs.len(), 4);
        assert!(page.loads.iter().all(|row| row.verdicts.is_empty()), "nothing was measured");
    }

    #[test]
    fn cells_without_a_run_are_told_with_the_reason() {
        let mut record = record();
        record.error = Some("the disk is full".into());
        record.cells[1].status = CellStatus::Failed;
        record.cells[1].error = Some("no rights".into());
        let unread = FoundRun { error: Some("run.json is damaged".into()), ..FoundRun::default() };
        let page =
            matrix(&[plan(&record, vec![unread, FoundRun::default()])], vec!["a remark".into()]);
        assert_eq!(page.remarks, ["a remark", "the disk is full"]);
        assert_eq!((page.undone, page.runs.len(), page.loads.len()), (0, 2, 2));
        assert!(page.loads.iter().all(|row| row.cells == [None]));
        let failed = page.failed.iter().map(|own| (own.load.as_str(), own.why.as_str()));
        let told = [("a", "run.json is damaged"), ("b", "no rights")];
        assert_eq!(failed.collect::<Vec<_>>(), told);
        record.cells[1].status = CellStatus::Pending;
        record.cells[1].error = None;
        let page = matrix(&[plan(&record, vec![FoundRun::default(); 2])], Vec::new());
        assert_eq!((page.undone, page.failed.len()), (1, 0));
    }
}
