//! The record that a plan begins with.

use crate::{
    plan::{
        Plan,
        order::{CellOrder, sequence},
    },
    run::{CellStatus, PLAN_SCHEMA_VERSION, PlanCell, PlanRecord, PlanStatus},
};

/// A plan of which nothing is measured yet.
pub(super) fn record(plan: &Plan, lengths: &[u64], seed: u64) -> PlanRecord {
    let cell = |(round, number): (u32, usize)| {
        let row = plan.rows.get(number)?;
        Some(PlanCell {
            name: row.name.clone(),
            part: row.part.clone(),
            row: row.row.clone(),
            column: row.column.clone(),
            repeat: round + 1,
            words: row.words(),
            prepare: row.prepare.clone(),
            expected_ns: lengths.get(number).copied()?,
            path: None,
            status: CellStatus::Pending,
            validity: None,
            run_status: None,
            taken_ns: None,
            error: None,
        })
    };
    let order = sequence(plan.order, seed, plan.rows.len(), plan.repeat);
    PlanRecord {
        schema_version: PLAN_SCHEMA_VERSION,
        id: String::new(),
        name: String::new(),
        plan: plan.name.clone(),
        argv: Vec::new(),
        status: PlanStatus::Running,
        started_at: jiff::Timestamp::now().to_string(),
        ended_at: None,
        order: plan.order.as_str().into(),
        seed: if plan.order == CellOrder::Random { seed } else { 0 },
        repeat: plan.repeat,
        pause_ns: plan.pause_ns.unsigned_abs(),
        budget_ns: plan.budget_ns.map(i64::unsigned_abs),
        spent_ns: 0,
        sittings: 1,
        undo: plan.undo.clone(),
        is_prepared: false,
        rows: distinct(plan.rows.iter().map(|row| &row.row)),
        columns: distinct(plan.rows.iter().map(|row| &row.column)),
        cells: order.into_iter().filter_map(cell).collect(),
        commands: Vec::new(),
        error: None,
    }
}

/// Each once, in the order of first appearance.
fn distinct<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for one in all {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    found
}
