//! The cells of plans in rows and columns, with what there is of each.

use super::{
    cell_run::{measured, unmeasured},
    gate_decision::GateResult,
    matrix_page::PageCellRun,
    suite_page::PageFinding,
};
use crate::run::{PlanCell, PlanRecord, Run};

/// What there is of one run of a plan, or of one block of a comparison.
#[derive(Debug, Default, Clone)]
pub struct FoundRun {
    /// The run; `None` if it was not measured or cannot be read.
    pub run: Option<Run>,
    /// Why it cannot be read.
    pub error: Option<String>,
    /// Its own page, from that of the matrix.
    pub page: Option<String>,
    /// What gates came to.
    pub gates: Vec<GateResult>,
}

/// The gates that a plan has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedGates {
    /// All of them.
    pub asked: usize,
    /// Those that compare with other runs, where nobody decided these.
    pub undecided: usize,
}

/// A plan that was measured, with what there is of its cells, one entry each.
#[derive(Debug)]
pub struct MeasuredPlan {
    /// Its record.
    pub record: PlanRecord,
    /// What there is of each cell of the record.
    pub found: Vec<FoundRun>,
    /// What was found on the machine before; `None` if nobody looked.
    pub findings: Option<Vec<PageFinding>>,
    /// The gates that it was begun with.
    pub gates: AskedGates,
    /// What is said of limits for metrics that no cell has.
    pub unmeasured: Vec<GateResult>,
}

/// The cells of one plan, or of several beside each other: then each has its own columns.
#[derive(Debug)]
pub struct PlanSheet {
    /// How many plans there are.
    pub plans: usize,
    /// The parts and names of the rows.
    pub rows: Vec<(Option<String>, String)>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Every run, in its place.
    pub listed: Vec<PageCellRun>,
    /// What there is of each of them.
    pub found: Vec<FoundRun>,
}

impl PlanSheet {
    /// That of these plans.
    #[must_use]
    pub fn of(plans: &[MeasuredPlan]) -> Self {
        let mut sheet = Self {
            plans: plans.len(),
            rows: Vec::new(),
            columns: Vec::new(),
            listed: Vec::new(),
            found: Vec::new(),
        };
        for (number, plan) in plans.iter().enumerate() {
            let of_plan = (plans.len() > 1).then(|| called(plans, number));
            let column = |own: &str| match &of_plan {
                Some(plan) if own.is_empty() => plan.clone(),
                Some(plan) => format!("{plan}, {own}"),
                None => own.to_owned(),
            };
            sheet.columns.extend(plan.record.columns.iter().map(|own| column(own)));
            for row in &plan.record.rows {
                let cell = plan.record.cells.iter().find(|cell| cell.row == *row);
                let entry = (cell.and_then(|cell| cell.part.clone()), row.clone());
                if !sheet.rows.contains(&entry) {
                    sheet.rows.push(entry);
                }
            }
            for (cell, found) in plan.record.cells.iter().zip(&plan.found) {
                let place = PageCellRun { column: column(&cell.column), ..listed(cell, found) };
                sheet.listed.push(place);
                sheet.found.push(found.clone());
            }
        }
        sheet
    }
}

/// The name of a plan, with its number where several have the same.
pub(super) fn called(plans: &[MeasuredPlan], number: usize) -> String {
    let name = plans.get(number).map(|plan| plan.record.name.clone()).unwrap_or_default();
    let same = plans.iter().filter(|plan| plan.record.name == name).count();
    if same > 1 { format!("{name} ({})", number + 1) } else { name }
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
