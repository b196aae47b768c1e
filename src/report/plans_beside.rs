//! Several plans beside each other: what each row says of every plan against the first.

use serde::Serialize;

use super::{
    compare::{CompareOptions, compare_runs, of_report},
    figures::number,
    plan_sheet::{MeasuredPlan, PlanSheet, called},
    suite,
    suite_page::{FigureChange, PartFigure},
    table::Table,
    terminal::fold,
};
use crate::{
    analysis::ab::figure::JUDGED_BY_DEFAULT,
    plain::plain,
    run::{AbVerdict, Run, Validity},
    units,
};

/// What plans that were measured one after the other cannot tell.
pub const IN_TURN: &str = "The plans were measured one after the other: what changed on the \
                           machine meanwhile is in the differences. `tardy ab` interleaves them.";

/// How verdicts on rows and figures are to be read.
pub const BY_THEMSELVES: &str = "Latencies of each row are judged by themselves, as by `tardy \
                                 compare`, from three repeats a plan on: at 5% of rows alike, a \
                                 difference is wrongly seen. Metrics other than latencies are \
                                 judged at 5% for all of them together.";

/// One combination of a plan, compared with the same one of the first plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldRow {
    /// The row.
    pub row: String,
    /// Its column; empty where there is one only.
    pub column: String,
    /// Which plan.
    pub plan: String,
    /// What it is against the first plan; null where nothing may be judged.
    pub verdict: Option<AbVerdict>,
    /// The worst validity of its runs; null where they cannot be compared.
    pub validity: Option<Validity>,
    /// In words.
    pub sentence: String,
}

/// Plans, each after the first compared with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlansBeside {
    /// What they are called, the one first that the others are compared with.
    pub plans: Vec<String>,
    /// The worst of what is said of rows and figures.
    pub verdict: AbVerdict,
    /// Whether a row has an invalid run.
    pub has_invalid: bool,
    /// How many cells cannot be read, a sentence for each plan that has some.
    pub unread: Vec<String>,
    /// Latencies.
    pub rows: Vec<HeldRow>,
    /// Figures that are not latencies; only those of two plans are judged.
    pub figures: Vec<PartFigure>,
    /// What has to be known besides.
    pub remarks: Vec<String>,
}

impl PlansBeside {
    /// Holds every plan against the first; `unread` is what is said of cells that cannot be read.
    ///
    /// # Errors
    /// Plans that have nothing in common.
    pub fn of(
        plans: &[MeasuredPlan],
        unread: Vec<String>,
        remarks: Vec<String>,
    ) -> Result<Self, String> {
        let sheet = PlanSheet::of(plans);
        let rows = held(plans);
        let figures = suite::figures_of(plans.len(), &sheet);
        if rows.is_empty() && figures.is_empty() {
            return Err("no row was measured in both plans: compare plans of one file, or write \
                        the rows' runs (`tardy list` has their names)"
                .into());
        }
        let own = rows.iter().map(|row| row.verdict.unwrap_or(AbVerdict::Inconclusive));
        let changes = figures.iter().filter_map(|figure| figure.change.as_ref());
        let verdict = worst(own.chain(changes.map(|change| change.verdict)));
        Ok(Self {
            plans: (0..plans.len()).map(|at| called(plans, at)).collect(),
            verdict,
            unread,
            has_invalid: rows.iter().any(|row| row.validity == Some(Validity::Invalid)),
            rows,
            figures,
            remarks: [vec![BY_THEMSELVES.to_owned(), IN_TURN.to_owned()], remarks].concat(),
        })
    }

    /// As a table of rows and one of figures, with the verdict last.
    #[must_use]
    pub fn text(&self, width: Option<usize>) -> String {
        let mut blocks = Vec::new();
        if !self.rows.is_empty() {
            blocks.push(self.latencies());
        }
        if !self.figures.is_empty() {
            blocks.push(self.other_figures(width));
        }
        let remarks: Vec<String> = self.remarks.iter().map(|remark| plain(remark)).collect();
        blocks.push(remarks.join("\n"));
        blocks.push(self.all_together());
        fold(&(blocks.join("\n\n") + "\n"), width)
    }

    /// The worst of what is said of rows, and how many of them say so by chance alone.
    fn all_together(&self) -> String {
        let rows: Vec<AbVerdict> = self.rows.iter().filter_map(|row| row.verdict).collect();
        let as_bad = rows.iter().filter(|verdict| **verdict == self.verdict).count();
        let different = matches!(self.verdict, AbVerdict::Better | AbVerdict::Worse);
        let chance = match rows.len() {
            count if different && as_bad > 0 && count > 1 => format!(
                " ({as_bad} of {count} rows; were all alike, {} of them would be called different)",
                number(0.05 * count as f64)
            ),
            _ => String::new(),
        };
        format!("All together: {}{chance}.", self.verdict.as_str())
    }

    fn latencies(&self) -> String {
        let one = |row: &HeldRow| {
            let place = [&row.row, &row.column, &row.plan];
            let place: Vec<&str> =
                place.into_iter().filter(|own| !own.is_empty()).map(String::as_str).collect();
            plain(&format!("{}: {}", place.join(", "), row.sentence))
        };
        self.rows.iter().map(one).collect::<Vec<_>>().join("\n")
    }

    fn other_figures(&self, width: Option<usize>) -> String {
        let columns = self.figures.iter().map(|figure| figure.cells.len()).max().unwrap_or(0);
        let numbers: Vec<String> = (1..=columns).map(|number| format!("({number})")).collect();
        let mut headings = vec!["metric", "row", "unit"];
        headings.extend(numbers.iter().map(String::as_str));
        headings.extend(["change", "from", "to", "verdict"]);
        let mut table = Table::new(3, &headings);
        for figure in &self.figures {
            let mut row: Vec<String> =
                [&figure.name, &figure.row, &figure.unit].map(|name| plain(name)).into();
            let cell = |at: usize| figure.cells.get(at).and_then(Option::as_ref);
            row.extend(
                (0..columns)
                    .map(|at| cell(at).map_or_else(|| "-".into(), |range| number(range.median))),
            );
            row.extend(change(figure.change.as_ref()));
            table.row(row);
        }
        table.fitted(width, &["from", "to", "row"]).0.join("\n")
    }
}

fn change(found: Option<&FigureChange>) -> [String; 4] {
    let Some(found) = found else { return ["-", "-", "-", "not judged"].map(str::to_owned) };
    let more = match (found.verdict, found.needed) {
        (AbVerdict::Inconclusive, Some(needed)) => format!(" ({needed} repeats would do)"),
        _ => String::new(),
    };
    let verdict = format!("{}{more}", found.verdict.as_str());
    [units::change(found.ratio), units::change(found.low), units::change(found.high), verdict]
}

/// What has to be said of all where these are said of each.
fn worst(all: impl Iterator<Item = AbVerdict>) -> AbVerdict {
    let rank = |verdict: &AbVerdict| match verdict {
        AbVerdict::Worse => 3,
        AbVerdict::Inconclusive => 2,
        AbVerdict::Better => 1,
        AbVerdict::Same => 0,
    };
    all.max_by_key(rank).unwrap_or(AbVerdict::Inconclusive)
}

/// Each row of the first plan that others have too: what they are against it.
#[must_use]
pub fn held(plans: &[MeasuredPlan]) -> Vec<HeldRow> {
    let Some((first, others)) = plans.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for row in &first.record.rows {
        for column in &first.record.columns {
            for (number, other) in others.iter().enumerate() {
                let (a, b) = (runs(first, row, column), runs(other, row, column));
                let Some((verdict, validity, sentence)) = judged(a, b) else { continue };
                let (row, column) = (row.clone(), column.clone());
                let plan = called(plans, number + 1);
                found.push(HeldRow { row, column, plan, verdict, validity, sentence });
            }
        }
    }
    found
}

/// The runs of a cell that have latencies.
fn runs(plan: &MeasuredPlan, row: &str, column: &str) -> Vec<Run> {
    let cells = plan.record.cells.iter().zip(&plan.found);
    let own = cells.filter(|(cell, _)| cell.row == row && cell.column == column);
    let runs = own.filter_map(|(_, found)| found.run.clone());
    runs.filter(|run| run.document.wakeups().next().is_some()).collect()
}

/// What B is against A; nothing where a side has no latencies.
fn judged(a: Vec<Run>, b: Vec<Run>) -> Option<(Option<AbVerdict>, Option<Validity>, String)> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let options = CompareOptions { judged: JUDGED_BY_DEFAULT.to_vec(), margin: None };
    let report = match compare_runs(a, b, &options) {
        Ok(report) => report,
        Err(error) => return Some((None, None, format!("cannot be compared: {error}"))),
    };
    let validity = report.comparisons.iter().map(|one| one.validity).max();
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
    let may_judge = one.judged && validity != Some(Validity::Invalid);
    let verdict = may_judge.then_some(one.verdict);
    Some((verdict, validity, format!("{doubt}{}{besides}", one.sentence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_worse_makes_all_of_it_worse_and_nothing_is_no_pass() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        for (all, expected) in [
            (vec![], Inconclusive),
            (vec![Same, Better], Better),
            (vec![Same, Inconclusive, Better], Inconclusive),
            (vec![Worse, Inconclusive], Worse),
        ] {
            assert_eq!(worst(all.clone().into_iter()), expected, "{all:?}");
        }
    }

    #[test]
    fn figures_stand_beside_each_other_with_what_is_said_of_them() {
        let range = |median| super::super::suite_page::FigureRange {
            median,
            low: median,
            high: median,
            values: vec![median; 3],
        };
        let change = FigureChange {
            ratio: 0.9,
            low: 0.88,
            high: 0.92,
            verdict: AbVerdict::Worse,
            needed: None,
        };
        let figure = |name: &str, change| PartFigure {
            name: name.into(),
            unit: "MB/s".into(),
            row: "copy".into(),
            cells: vec![Some(range(1_000.0)), Some(range(900.0))],
            change,
        };
        let row = HeldRow {
            row: "idle".into(),
            column: String::new(),
            plan: "new".into(),
            verdict: Some(AbVerdict::Same),
            validity: Some(Validity::Valid),
            sentence: "B is the same".into(),
        };
        let all = PlansBeside {
            plans: vec!["old".into(), "new".into()],
            verdict: AbVerdict::Worse,
            has_invalid: false,
            unread: Vec::new(),
            rows: vec![row],
            figures: vec![figure("pipe/64KiB", Some(change)), figure("tcp/64KiB", None)],
            remarks: vec![IN_TURN.into()],
        };
        let text = all.text(None);
        assert!(text.starts_with("idle, new: B is the same\n\nmetric"), "{text}");
        let words = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let expected = "pipe/64KiB copy MB/s 1,000 900 -10.0% -12.0% -8.0% worse";
        assert_eq!(words("pipe/64KiB"), expected);
        assert!(words("tcp/64KiB").ends_with("- - - not judged"));
        assert!(text.ends_with("All together: worse.\n"), "{text}");
        assert!(all.text(Some(60)).lines().all(|line| line.len() <= 80), "{}", all.text(Some(60)));
    }
}
