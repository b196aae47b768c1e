//! A plan as text: what would be measured, and what came of it, a line a combination.

use anstyle::Style;

use super::table::Table;
use crate::{
    analysis::matrix::{FIGURES, RunFigures, figures_of},
    plain::plain,
    run::{CellStatus, Document, PlanCell, PlanRecord, PlanStatus, Validity},
    units::{Nanos, Scale, many, span},
};

const BOLD: Style = Style::new().bold();

/// How to read the figures of the table.
const MEANING: &str = "figures: from the smallest to the largest run, of a run its largest series; \
                       ~ fewer than 10 samples beyond";

/// What would be measured, in which order, and how long that takes.
#[must_use]
pub fn preview(record: &PlanRecord) -> String {
    let mut table = Table::new(3, &["cell", "tardy run", "prepare", "takes"]);
    for cell in &record.cells {
        let prepare = cell.prepare.as_deref().map_or_else(|| "-".into(), plain);
        let takes = seconds(record.cell_ns(cell));
        let name = format!("{}, repeat {}", cell.name, cell.repeat);
        table.row(vec![plain(&name), plain(&cell.words.join(" ")), prepare, takes]);
    }
    let lines = table.lines().join("\n");
    format!("{BOLD}{}{BOLD:#}\n{lines}\n{}\n", plain(&record.plan), outlook(record))
}

/// `8 cells, about 1 min 4 s; the order is drawn by seed 7`, and whether the budget has room.
#[must_use]
pub fn outlook(record: &PlanRecord) -> String {
    let pending = record.count(CellStatus::Pending);
    let mut text = format!("{}, about {}", many(pending as u64, "cell"), seconds(record.left_ns()));
    if record.order == "random" {
        text.push_str(&format!("; the order is drawn by seed {}", record.seed));
    }
    if let Some(budget_ns) = record.budget_ns {
        let left_ns = budget_ns.saturating_sub(record.spent_ns);
        let fit = fitting(record, left_ns);
        if fit < pending {
            let budget = seconds(left_ns);
            text.push_str(&format!("; about {fit} of them fit into the budget of {budget}"));
        }
    }
    text
}

/// Why the budget is too small to measure each cell even once; nothing if it is not.
#[must_use]
pub fn over_budget(record: &PlanRecord) -> Option<String> {
    let left_ns = record.budget_ns?.saturating_sub(record.spent_ns);
    let pending = record.cells.iter().filter(|cell| cell.status == CellStatus::Pending);
    let measured = record.cells.iter().filter(|cell| cell.status == CellStatus::Measured);
    let measured: Vec<&str> = measured.map(|cell| cell.name.as_str()).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut needed_ns = 0_u64;
    for cell in pending.filter(|cell| !measured.contains(&cell.name.as_str())) {
        if !names.contains(&cell.name.as_str()) {
            names.push(&cell.name);
            let cell_ns = record.cell_ns(cell).saturating_add(record.pause_ns);
            needed_ns = needed_ns.saturating_add(cell_ns);
        }
    }
    (needed_ns > left_ns).then(|| {
        format!(
            "budget: about {} of {} fit into {}, and each of them once takes {}: raise it, or \
             measure for a shorter time",
            fitting(record, left_ns),
            many(names.len() as u64, "cell"),
            seconds(left_ns),
            seconds(needed_ns)
        )
    })
}

/// The number of the next cells that fit into this time.
fn fitting(record: &PlanRecord, mut left_ns: u64) -> usize {
    let pending = record.cells.iter().filter(|cell| cell.status == CellStatus::Pending);
    let fits = |cell: &&PlanCell| {
        let needed_ns = record.cell_ns(cell);
        let fits = needed_ns <= left_ns;
        left_ns = left_ns.saturating_sub(needed_ns.saturating_add(record.pause_ns));
        fits
    };
    pending.take_while(fits).count()
}

/// The result of a plan, with its finding first. `runs` are those of its cells, `None` for a cell
/// without a run.
#[must_use]
pub fn result(
    record: &PlanRecord,
    finding: &str,
    runs: &[Option<Document>],
    place: &str,
) -> String {
    let mut table = Table::new(2, &["", "runs", "p50", "p99", "p99.9", "max", ""]);
    for row in &record.rows {
        for column in &record.columns {
            let own = |cell: &PlanCell| cell.row == *row && cell.column == *column;
            let cells = record.cells.iter().zip(runs).filter(|(cell, _)| own(cell));
            let cells: Vec<(&PlanCell, &Option<Document>)> = cells.collect();
            if let Some((first, _)) = cells.first() {
                table.row(line(&first.name, &cells));
            }
        }
    }
    let mut lines = vec![format!("{BOLD}{}{BOLD:#}", plain(finding))];
    lines.push(format!("{}: {}", plain(&record.name), ending(record)));
    lines.extend(table.lines());
    lines.push(MEANING.into());
    for cell in record.cells.iter().filter(|cell| cell.status == CellStatus::Failed) {
        let why = cell.error.as_deref().unwrap_or("no reason is known");
        let why = plain(why.lines().next().unwrap_or_default());
        lines.push(format!("FAILED {}, repeat {}: {why}", plain(&cell.name), cell.repeat));
    }
    lines.push(format!("runs in {}", plain(place)));
    lines.join("\n") + "\n"
}

fn line(name: &str, cells: &[(&PlanCell, &Option<Document>)]) -> Vec<String> {
    let documents: Vec<&Document> = cells.iter().filter_map(|(_, run)| run.as_ref()).collect();
    let figures: Vec<RunFigures> = documents.iter().map(|run| figures_of(run)).collect();
    let invalid = documents.iter().filter(|run| run.validity == Validity::Invalid).count();
    let weakened = documents.iter().filter(|run| run.validity == Validity::Weakened).count();
    let doubts = [(invalid, "invalid"), (weakened, "questionable")];
    let doubts = doubts.into_iter().filter(|(count, _)| *count > 0);
    let doubts: Vec<String> = doubts.map(|(count, what)| format!("{count} {what}")).collect();
    let mut row = vec![plain(name), format!("{} of {}", documents.len(), cells.len())];
    row.extend((0..FIGURES.len()).map(|at| range(at, &figures)));
    row.push(doubts.join(", "));
    row
}

/// `154 to 158 us`, from the smallest to the largest run; one value where both are written alike.
fn range(at: usize, figures: &[RunFigures]) -> String {
    let values = || figures.iter().filter_map(|own| *own.values.get(at)?);
    let (Some(low), Some(high)) = (values().min(), values().max()) else { return "-".into() };
    let is_uncertain = |own: &RunFigures| own.uncertain.get(at).copied().unwrap_or(false);
    let mark = if figures.iter().any(is_uncertain) { "~" } else { "" };
    let (from, to) = (Nanos(low).to_string(), Nanos(high).to_string());
    let unit = Scale::of(low);
    match () {
        () if from == to => format!("{mark}{to}"),
        () if unit == Scale::of(high) => format!("{mark}{} to {to}", unit.number(low)),
        () => format!("{mark}{from} to {to}"),
    }
}

/// `complete, 8 of 8 cells measured`
pub(super) fn ending(record: &PlanRecord) -> String {
    let how = match record.status {
        PlanStatus::Running => "running, or was killed",
        PlanStatus::Complete => "complete",
        PlanStatus::OverBudget => "the budget is used up",
        PlanStatus::Interrupted => "ended early",
        PlanStatus::Failed => "failed",
    };
    let measured = record.count(CellStatus::Measured);
    format!("{how}, {measured} of {} measured", many(record.cells.len() as u64, "cell"))
}

/// `3 min left | cell 4 of 8 | idle, fifo, repeat 1`
#[must_use]
pub fn passing(record: &PlanRecord, cell: Option<&PlanCell>, within_s: f64) -> String {
    let left_s = (record.left_ns() as f64 / 1e9 - within_s).max(0.0);
    let ended = record.cells.len() - record.count(CellStatus::Pending);
    let what = match cell {
        Some(cell) => format!("{}, repeat {}", cell.name, cell.repeat),
        None => "pause".into(),
    };
    let number = (ended + usize::from(cell.is_some())).min(record.cells.len());
    let left = span(left_s);
    plain(&format!("{left} left | cell {number} of {} | {what}", record.cells.len()))
}

/// How long it will take yet.
#[must_use]
pub fn time_left(record: &PlanRecord) -> String {
    seconds(record.left_ns())
}

fn seconds(ns: u64) -> String {
    span(ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan_record::tests::record;

    #[test]
    fn the_preview_says_what_and_how_long_and_what_fits() {
        let mut record = record();
        record.cells[0].status = CellStatus::Pending;
        record.cells[0].taken_ns = None;
        let text = preview(&record);
        assert!(text.contains("a, repeat 1") && text.contains("2 cells, about 5.1 s"), "{text}");
        record.budget_ns = Some(3_000_000_000);
        assert!(outlook(&record).contains("about 1 of them fit"), "{}", outlook(&record));
        let refusal = "budget: about 1 of 2 cells fit into 3 s, and each of them once takes 5.6 s";
        let said = over_budget(&record).unwrap();
        assert!(said.starts_with(refusal), "{said}");
        record.budget_ns = Some(6_000_000_000);
        assert_eq!(over_budget(&record), None);
        record.cells[0].status = CellStatus::Measured;
        record.cells[1].status = CellStatus::Measured;
        record.budget_ns = Some(0);
        assert_eq!(over_budget(&record), None);
    }

    #[test]
    fn the_result_counts_runs_and_names_what_failed() {
        let mut record = record();
        record.status = PlanStatus::Complete;
        record.cells[1].status = CellStatus::Failed;
        record.cells[1].error = Some("no\x1b[8m rights\nmore".into());
        let text = result(&record, "A finding.", &[None, None], "/place");
        let first: Vec<String> = text
            .lines()
            .take(2)
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect();
        assert_eq!(first, ["A finding.", "n: complete, 1 of 2 cells measured"]);
        assert!(text.contains("complete, 1 of 2 cells measured"), "{text}");
        assert!(text.contains("FAILED b, repeat 1: no\\u{1b}[8m rights\n"), "{text}");
        assert!(text.contains("0 of 1"), "{text}");
    }

    #[test]
    fn a_range_goes_from_the_smallest_to_the_largest_run() {
        let run = |ns| RunFigures { values: [Some(ns); 4], uncertain: [false, false, true, false] };
        assert_eq!(range(0, &[run(158_000), run(154_000)]), "154 to 158 us");
        assert_eq!(range(2, &[run(9_000), run(2_000_000)]), "~9.00 us to 2.00 ms");
        assert_eq!((range(1, &[run(7_000)]), range(1, &[])), ("7.00 us".into(), "-".into()));
    }

    #[test]
    fn the_line_tells_the_time_left_and_the_cell() {
        let record = record();
        let text = passing(&record, record.cells.get(1), 1.0);
        assert_eq!(text, "2 s left | cell 2 of 2 | b, repeat 1");
    }
}
