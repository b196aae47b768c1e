//! A comparison for the page: the answer in words, and all that it rests on.

use super::{CompareReport, SideComparison, of_band, of_figures};
use crate::{
    report::comparison_page::{PageComparison, ShiftPoint},
    run::AbRecord,
};

/// The comparisons of a report, for a page that shows its runs in their order.
#[must_use]
pub fn of_report(report: &CompareReport) -> Vec<PageComparison> {
    let place = |name: &String| {
        let at = report.runs.iter().position(|run| run.name == *name);
        u32::try_from(at.unwrap_or(0)).unwrap_or(0)
    };
    let one = |(number, one): (usize, &SideComparison)| {
        let is_each = report.comparisons.len() > 1 || (one.a.len() == 1 && one.b.len() == 1);
        let (a, b) = if is_each {
            (vec![0], vec![u32::try_from(number + 1).unwrap_or(0)])
        } else {
            (one.a.iter().map(place).collect(), one.b.iter().map(place).collect())
        };
        of_sides(one, a, b)
    };
    report.comparisons.iter().enumerate().map(one).collect()
}

fn of_sides(one: &SideComparison, a: Vec<u32>, b: Vec<u32>) -> PageComparison {
    let first = one.causes.first();
    PageComparison {
        a,
        b,
        a_name: called(&one.a),
        b_name: called(&one.b),
        verdict: one.verdict,
        judged: one.judged,
        sentence: of_figures(one),
        cause: first.map_or_else(String::new, |band| of_band(band, one.samples)),
        figures: one.figures.clone(),
        described: one.described.clone(),
        shift: one.shift.clone(),
        shift_meaning: meaning(&one.shift),
        facts: one.facts.clone(),
        causes: one.causes.clone(),
        remarks: one.remarks.clone(),
    }
}

/// A comparison in blocks as its record judged it, pair by pair; what it does not have, figures
/// that are not judged, the shift and the facts, is of the compared `blocks` all together.
#[must_use]
pub(in crate::report) fn of_blocks(
    record: &AbRecord,
    blocks: Option<&SideComparison>,
    sentence: String,
    [a_name, b_name]: [String; 2],
) -> PageComparison {
    let causes = record.causes.clone().unwrap_or_default();
    let samples = blocks.map_or("samples", |blocks| blocks.samples);
    let shift = blocks.map(|blocks| blocks.shift.clone()).unwrap_or_default();
    PageComparison {
        a: Vec::new(),
        b: Vec::new(),
        a_name,
        b_name,
        verdict: record.verdict,
        judged: true,
        sentence,
        cause: causes.first().map_or_else(String::new, |band| of_band(band, samples)),
        figures: record.figures.clone(),
        described: blocks.map(|blocks| blocks.described.clone()).unwrap_or_default(),
        shift_meaning: meaning(&shift),
        shift,
        facts: blocks.map(|blocks| blocks.facts.clone()).unwrap_or_default(),
        causes,
        remarks: Vec::new(),
    }
}

/// What the intervals of a shift are.
fn meaning(shift: &[ShiftPoint]) -> String {
    shift.first().map_or_else(String::new, |point| point.basis.meaning().into())
}

/// A side by the name of its run, or of the first of several.
fn called(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    }
}
