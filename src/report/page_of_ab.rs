//! The page of a comparison by `tardy ab`: its answer, and its blocks, pooled and one by one.

use super::{
    ab,
    ab_page::PageAb,
    cell_run::{measured, unmeasured},
    compare::{SideComparison, of_blocks},
    matrix_page::{MatrixKind, PageCellRun},
    page::Page,
    plan_page::pooled,
    plan_sheet::FoundRun,
};
use crate::run::{AbBlock, AbRecord, CellStatus, Document, SideName};

/// The row of the blocks that are compared, and that of the first of each side.
const COMPARED: &str = "compared";
const TRIAL: &str = "trial";

/// The page of a comparison; `found` has one entry for each block of the record, and `blocks` is
/// what the compared blocks of both sides say when they are compared with each other.
#[must_use]
pub fn page(
    record: &AbRecord,
    found: Vec<FoundRun>,
    blocks: Option<&SideComparison>,
    remarks: Vec<String>,
) -> Page {
    let documents: Vec<Document> =
        found.iter().filter_map(|found| Some(found.run.as_ref()?.document.clone())).collect();
    let names = [SideName::A, SideName::B].map(|side| name(record, side));
    // Both may have the same options.
    let columns = [format!("A: {}", names[0]), format!("B: {}", names[1])];
    let listed = listed(record, &found, &columns);
    let mut matrix = pooled(record.name.clone(), &columns, &[COMPARED.into()], &listed, found);
    matrix.kind = MatrixKind::Ab;
    matrix.headline.clone_from(&record.name);
    matrix.remarks = remarks;
    matrix.runs = listed;
    let [a_name, b_name] = names;
    Page {
        comparisons: vec![of_blocks(record, blocks, ab::answer_text(record), [a_name, b_name])],
        matrix: Some(Box::new(matrix)),
        ab: Some(Box::new(PageAb {
            status: record.status,
            a: record.a.clone(),
            b: record.b.clone(),
            how: ab::how_lines(record),
            looks: record.looks.clone(),
            caveats: record.caveats.clone(),
            error: record.error.clone(),
        })),
        ..Page::empty(&documents)
    }
}

/// `--policy other`; `A` if a side has neither options nor a command.
fn name(record: &AbRecord, side: SideName) -> String {
    let own = record.side(side);
    let prepare = own.prepare.as_ref().map(|command| format!("after `{command}`"));
    let parts = [Some(own.options.trim().to_owned()), prepare];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    match parts.is_empty() {
        true => "no options".into(),
        false => parts.join(", "),
    }
}

fn listed(record: &AbRecord, found: &[FoundRun], columns: &[String; 2]) -> Vec<PageCellRun> {
    let mut counts = [0_u32; 2];
    let mut one = |(block, found): (&AbBlock, &FoundRun)| {
        let at = usize::from(block.side == SideName::B);
        let own = match &found.run {
            Some(run) => measured(run, &found.gates),
            None => unmeasured(CellStatus::Measured),
        };
        let mut repeat = 1;
        if let Some(count) = counts.get_mut(at).filter(|_| block.compared) {
            *count += 1;
            repeat = *count;
        }
        PageCellRun {
            row: if block.compared { COMPARED } else { TRIAL }.into(),
            column: columns.get(at).cloned().unwrap_or_default(),
            repeat,
            page: found.page.clone(),
            path: Some(block.path.clone()),
            error: found.error.clone(),
            ..own
        }
    };
    record.blocks.iter().zip(found).map(&mut one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::ab::tests::{record, row},
        run::AbVerdict,
    };

    fn unread() -> FoundRun {
        FoundRun { error: Some("gone".into()), ..FoundRun::default() }
    }

    #[test]
    fn the_record_judges_and_sides_with_the_same_options_stay_two() {
        let rows = [row("p50", 1.196, "worse"), row("p99", 1.01, "inconclusive")];
        let mut record = record("complete", "worse", &rows);
        record.b = record.a.clone();
        let found = record.blocks.iter().map(|_| unread()).collect();
        let page = page(&record, found, None, vec!["a remark".into()]);
        let (one, ab) = (&page.comparisons[0], page.ab.unwrap());
        assert_eq!((one.verdict, &one.figures), (AbVerdict::Worse, &record.figures));
        assert!(one.sentence.starts_with("worse: p50 +19.6%; inconclusive: p99"), "{one:?}");
        assert_eq!(
            (one.a_name.as_str(), one.b_name.as_str()),
            ("--policy other", "--policy other")
        );
        let needed = ab.how.iter().any(|line| line.starts_with("p99: needs about 120 pairs"));
        assert!(needed, "{:?}", ab.how);
        assert_eq!(ab.looks, record.looks);
        let matrix = page.matrix.unwrap();
        let names: Vec<&str> = matrix.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["A: --policy other", "B: --policy other"]);
        assert_eq!(matrix.remarks, ["a remark"]);
        let places = matrix.runs.iter().map(|run| (run.row.as_str(), run.column.as_str()));
        assert_eq!(
            places.collect::<Vec<_>>(),
            [(TRIAL, names[0]), (TRIAL, names[1]), (COMPARED, names[0]), (COMPARED, names[1]),]
        );
        assert!(matrix.runs.iter().all(|run| run.error.as_deref() == Some("gone")));
    }

    #[test]
    fn a_side_is_called_by_its_options_and_its_command() {
        let mut record = record("complete", "same", &[]);
        record.a.options = " ".into();
        assert_eq!(name(&record, SideName::A), "no options");
        assert_eq!(name(&record, SideName::B), "--policy fifo, after `sysctl x`");
    }
}
