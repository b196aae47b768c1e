//! Several plans beside each other: what each row says of every plan against the first.

use crate::{
    analysis::ab::figure::JUDGED_BY_DEFAULT,
    report::{
        compare::{CompareOptions, compare_runs, of_report},
        matrix_page::PageMatrix,
        plan_sheet::{MeasuredPlan, called},
    },
    run::Run,
};

/// Adds a sentence to each row for every plan but the first, and for each of its columns.
pub(super) fn judge(page: &mut PageMatrix, plans: &[MeasuredPlan]) {
    let Some((first, others)) = plans.split_first() else { return };
    for row in &mut page.loads {
        for column in &first.record.columns {
            for (number, other) in others.iter().enumerate() {
                let (a, b) = (runs(first, &row.name, column), runs(other, &row.name, column));
                let who = (others.len() > 1).then(|| called(plans, number + 1));
                let of = Some(column.clone()).filter(|column| !column.is_empty());
                let place: Vec<String> = who.into_iter().chain(of).collect();
                let place = if place.is_empty() { place } else { vec![place.join(", ")] };
                let said = sentence(a, b);
                row.verdicts.extend(said.map(|said| [place, vec![said]].concat().join(": ")));
            }
        }
    }
}

/// The runs of a cell that have latencies.
fn runs(plan: &MeasuredPlan, row: &str, column: &str) -> Vec<Run> {
    let cells = plan.record.cells.iter().zip(&plan.found);
    let own = cells.filter(|(cell, _)| cell.row == row && cell.column == column);
    let runs = own.filter_map(|(_, found)| found.run.clone());
    runs.filter(|run| run.document.wakeups().next().is_some()).collect()
}

/// What B is against A; nothing where a side has no latencies.
fn sentence(a: Vec<Run>, b: Vec<Run>) -> Option<String> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let options = CompareOptions { judged: JUDGED_BY_DEFAULT.to_vec(), margin: None };
    match compare_runs(a, b, &options) {
        Ok(report) => {
            let one = of_report(&report).into_iter().next()?;
            let doubt = if one.judged { "" } else { "not judged: " };
            let side = |values: &[String]| values.join(" or ");
            let differ: Vec<String> = one
                .facts
                .iter()
                .map(|fact| format!("{} ({} and {})", fact.fact, side(&fact.a), side(&fact.b)))
                .collect();
            let besides = match differ.as_slice() {
                [] => String::new(),
                some => format!(". What differs besides: {}", some.join(", ")),
            };
            Some(format!("{doubt}{}{besides}", one.sentence))
        }
        Err(error) => Some(format!("cannot be compared: {error}")),
    }
}
