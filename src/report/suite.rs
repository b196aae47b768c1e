//! What the page of a plan has beside its matrix: figures part by part, causes over all runs, and
//! what was found on the machine before.

mod figures;

use serde::Deserialize;

use super::{
    causes::cells,
    plan_sheet::{MeasuredPlan, PlanSheet},
    suite_page::{PageFinding, PagePlan, PageSuite, PartFigure, PlanPart},
    words,
};
use crate::{
    run::{CellStatus, PlanCell, Run, Validity},
    units::{Nanos, many},
};

/// What `tardy check` found before a suite was measured, in the directory of the plan.
pub const FINDINGS: &str = "check.json";

/// The file of findings.
#[derive(Deserialize)]
struct FoundBefore {
    findings: Vec<PageFinding>,
}

/// Reads what [`FINDINGS`] holds.
///
/// # Errors
/// Text that is not such a file.
pub fn findings(text: &str) -> serde_json::Result<Vec<PageFinding>> {
    let mut found: FoundBefore = serde_json::from_str(text)?;
    found.findings.retain(|finding| finding.status != "ok");
    let rank = |finding: &PageFinding| match finding.severity.as_deref() {
        Some("serious") => 0,
        Some("matters") => 1,
        Some("little") => 2,
        _ => 3,
    };
    found.findings.sort_by_key(rank);
    Ok(found.findings)
}

/// What the cells of these plans come to; nothing where the first has no parts.
#[must_use]
pub fn of(plans: &[MeasuredPlan], sheet: &PlanSheet) -> Option<PageSuite> {
    let first = plans.first()?;
    let mut names: Vec<&str> = Vec::new();
    for row in &first.record.rows {
        let cell = first.record.cells.iter().find(|cell| cell.row == *row);
        let name = cell.and_then(|cell| cell.part.as_deref()).filter(|name| !names.contains(name));
        names.extend(name);
    }
    let runs: Vec<&Run> = sheet.found.iter().filter_map(|found| found.run.as_ref()).collect();
    let one = |plan: &MeasuredPlan| PagePlan {
        name: plan.record.name.clone(),
        machine: plan
            .found
            .iter()
            .find_map(|found| found.run.as_ref())
            .map(machine)
            .unwrap_or_default(),
        answers: answers(plan),
        findings: plan.findings.clone(),
    };
    let mut parts: Vec<PlanPart> = names.iter().map(|name| part(name, sheet)).collect();
    if plans.len() == 2 {
        figures::judge(parts.iter_mut().flat_map(|part| &mut part.figures).collect());
    }
    (!names.is_empty()).then(|| PageSuite {
        plans: plans.iter().map(one).collect(),
        parts,
        causes: cells::over_all(&runs),
    })
}

/// Figures of all rows that are not latencies, those of two plans judged together.
#[must_use]
pub fn figures_of(plans: usize, sheet: &PlanSheet) -> Vec<PartFigure> {
    let mut found =
        figures::of(&sheet.rows.iter().map(|(_, row)| row.clone()).collect::<Vec<_>>(), sheet);
    if plans == 2 {
        figures::judge(found.iter_mut().collect());
    }
    found
}

/// `Intel ..., Linux 6.12.0 (preemption full)`
fn machine(run: &Run) -> String {
    let cpu = run.document.facts.cpu_model.clone();
    cpu.into_iter().chain([words::kernel(&run.document)]).collect::<Vec<_>>().join(", ")
}

/// What may be said of all of it: how much may be believed, and the worst that was seen.
fn answers(plan: &MeasuredPlan) -> Vec<String> {
    let cells = &plan.record.cells;
    let pairs = cells.iter().zip(&plan.found);
    let measured: Vec<(&PlanCell, &Run)> =
        pairs.filter_map(|(cell, found)| Some((cell, found.run.as_ref()?))).collect();
    let with =
        |validity| measured.iter().filter(|(_, run)| run.document.validity == validity).count();
    let mut said = vec![format!(
        "{} of {} measured: {} valid, {} questionable, {} invalid.",
        measured.len(),
        many(cells.len() as u64, "run"),
        with(Validity::Valid),
        with(Validity::Weakened),
        with(Validity::Invalid)
    )];
    let failed = cells.iter().filter(|cell| cell.status == CellStatus::Failed).count();
    if failed > 0 {
        let failed = many(failed as u64, "run");
        said.push(format!("{failed} could not be measured; the reasons are below."));
    }
    said.extend(worst_of_parts(&measured));
    said
}

/// The largest latency of each part, in the order in which parts came; invalid runs tell nothing.
fn worst_of_parts(measured: &[(&PlanCell, &Run)]) -> Vec<String> {
    let mut worst: Vec<(&str, i64, &PlanCell)> = Vec::new();
    for (cell, run) in measured {
        let largest = run.document.wakeups().filter_map(|series| series.max).max();
        let believed = largest.filter(|_| run.document.validity != Validity::Invalid);
        let (Some(part), Some(max)) = (cell.part.as_deref(), believed) else { continue };
        match worst.iter_mut().find(|(name, ..)| *name == part) {
            Some(known) if max > known.1 => *known = (part, max, cell),
            Some(_) => {}
            None => worst.push((part, max, cell)),
        }
    }
    worst.sort_by_key(|(_, max, _)| -max);
    let line = |(part, max, cell): &(&str, i64, &PlanCell)| {
        let place = match cell.name == *part {
            true => String::new(),
            false => format!("{}, ", cell.name),
        };
        format!("{part}: at most {}, in {place}repeat {}.", Nanos(*max), cell.repeat)
    };
    worst.iter().map(line).collect()
}

fn part(name: &str, sheet: &PlanSheet) -> PlanPart {
    let rows = sheet.rows.iter().filter(|(part, _)| part.as_deref() == Some(name));
    let rows: Vec<String> = rows.map(|(_, row)| row.clone()).collect();
    PlanPart { name: name.into(), figures: figures::of(&rows, sheet), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::plan_sheet::{AskedGates, FoundRun},
        run::{PlanRecord, plan_record::tests::record},
    };

    #[test]
    fn what_is_fine_is_no_finding_and_the_gravest_comes_first() {
        let one = |code: &str, status: &str, severity: &str| {
            format!(
                r#"{{"code":"{code}","status":"{status}","severity":{severity},"evidence":"e","remedy":""}}"#
            )
        };
        let all = [
            one("a", "ok", "null"),
            one("b", "unknown", "null"),
            one("c", "costs", "\"little\""),
            one("d", "costs", "\"serious\""),
        ];
        let found = findings(&format!("{{\"findings\":[{}]}}", all.join(","))).unwrap();
        let codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["d", "c", "b"]);
        assert!(findings("{}").is_err());
    }

    #[test]
    fn a_plan_without_parts_is_no_suite_and_parts_keep_the_order_of_the_rows() {
        let of_record = |record: PlanRecord| {
            let found = vec![FoundRun::default(), FoundRun::default()];
            let gates = AskedGates::default();
            let unmeasured = Vec::new();
            let plans = vec![MeasuredPlan { record, found, findings: None, gates, unmeasured }];
            let sheet = PlanSheet::of(&plans);
            of(&plans, &sheet)
        };
        let mut record = record();
        assert_eq!(of_record(record.clone()), None);
        record.cells[0].part = Some("second".into());
        record.cells[1].part = Some("first".into());
        record.rows.reverse();
        let suite = of_record(record).unwrap();
        let parts: Vec<&str> = suite.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(parts, ["first", "second"]);
        let answers = &suite.plans[0].answers;
        assert_eq!(*answers, ["0 of 2 runs measured: 0 valid, 0 questionable, 0 invalid."]);
    }
}
