//! The record that a plan begins with.

use crate::{
    cli::gates::PlannedCell,
    plain::plain,
    plan::{
        Plan,
        order::{CellOrder, sequence},
    },
    run::{CellStatus, PLAN_SCHEMA_VERSION, PlanCell, PlanRecord, PlanStatus},
};

/// A plan of which nothing is measured yet.
pub(super) fn record(plan: &Plan, planned: &[PlannedCell], seed: u64) -> PlanRecord {
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
            expected_ns: planned.get(number)?.length_ns,
            path: None,
            run_id: None,
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
        gates: plan.gates.iter().map(|gate| gate.text.clone()).collect(),
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

/// The commands that resuming a plan runs, a line each: they come from a file.
pub(super) fn commands_of(record: &PlanRecord) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let pending = record.cells.iter().filter(|cell| cell.status == CellStatus::Pending);
    for cell in pending {
        let prepare = cell.prepare.as_ref().map(|command| format!("prepare: {command}"));
        let is_command = |word: &&String| word.starts_with("--load-command");
        let loads = cell.words.iter().filter(is_command).map(|word| format!("load: {word}"));
        let attached = cell.words.iter().position(|word| word == "--");
        let attached = attached.and_then(|at| cell.words.get(at + 1..));
        let attached = attached.map(|words| format!("attach: {}", words.join(" ")));
        let all = prepare.into_iter().chain(loads).chain(attached);
        for what in all.map(|what| plain(&format!("It runs {what}"))) {
            if !found.contains(&what) {
                found.push(what);
            }
        }
    }
    found.extend(record.undo.as_ref().map(|undo| plain(&format!("It runs undo: {undo}"))));
    found
}
