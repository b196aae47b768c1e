//! The finding of plans beside each other: what the rows of each are against the first plan.

use super::{listed, sentence};
use crate::{
    report::{plans_beside::HeldRow, suite_page::PartFigure},
    run::{AbVerdict, Validity},
    units::many,
};

/// What is said of verdicts, the gravest first.
const WORDS: [(AbVerdict, &str); 4] = [
    (AbVerdict::Worse, "worse"),
    (AbVerdict::Better, "better"),
    (AbVerdict::Same, "the same"),
    (AbVerdict::Inconclusive, "inconclusive"),
];

/// The sentence on plans of these names, each compared with the first; `unread` is what is said of
/// cells that cannot be read.
#[must_use]
pub fn of_plans(
    names: &[String],
    unread: &[String],
    rows: &[HeldRow],
    figures: &[PartFigure],
) -> String {
    let invalid: Vec<String> =
        rows.iter().filter(|row| row.validity == Some(Validity::Invalid)).map(place).collect();
    let mut parts = Vec::new();
    if !invalid.is_empty() {
        let all = many(rows.len() as u64, "row");
        parts.push(format!("invalid: {} of {all}: {}", invalid.len(), listed(&invalid)));
    }
    parts.extend(of_rows(names, rows));
    parts.extend(of_figures(figures));
    if parts.is_empty() {
        parts.push("inconclusive: no row is judged, which takes three repeats of each plan".into());
    }
    sentence([unread.to_vec(), parts].concat())
}

/// `against x, y is worse in 1 of 12 rows (timer), the same in 11`
fn of_rows(names: &[String], rows: &[HeldRow]) -> Option<String> {
    let (first, others) = names.split_first()?;
    let judged: Vec<&HeldRow> = rows.iter().filter(|row| row.verdict.is_some()).collect();
    if judged.is_empty() {
        return None;
    }
    let mut said: Vec<String> = Vec::new();
    for (verdict, word) in WORDS {
        let own: Vec<&&HeldRow> =
            judged.iter().filter(|row| row.verdict == Some(verdict)).collect();
        if own.is_empty() {
            continue;
        }
        let rows = match said.is_empty() {
            true => format!("{} of {}", own.len(), many(judged.len() as u64, "row")),
            false => own.len().to_string(),
        };
        let places: Vec<String> = own.iter().map(|row| place(row)).collect();
        let places = match verdict {
            AbVerdict::Worse => format!(" ({})", listed(&places)),
            _ => String::new(),
        };
        said.push(format!("{word} in {rows}{places}"));
    }
    let is = if others.len() == 1 { "is" } else { "are" };
    Some(format!("against {first}, {} {is} {}", listed(others), said.join(", ")))
}

/// `worse in 1 of 20 other metrics (fork, bandwidth)`
fn of_figures(figures: &[PartFigure]) -> Option<String> {
    let verdict = |figure: &PartFigure| figure.change.as_ref().map(|change| change.verdict);
    let judged = figures.iter().filter(|figure| verdict(figure).is_some()).count();
    let worse = figures.iter().filter(|figure| verdict(figure) == Some(AbVerdict::Worse));
    let worse: Vec<String> =
        worse.map(|figure| format!("{} of {}", figure.name, figure.row)).collect();
    let all = many(judged as u64, "other metric");
    match (judged, worse.as_slice()) {
        (0, _) => None,
        (_, []) => Some(format!("none of {all} is worse")),
        (_, worse) => Some(format!("{} of {all} worse ({})", worse.len(), listed(worse))),
    }
}

fn place(row: &HeldRow) -> String {
    let names = [&row.row, &row.column].into_iter().filter(|name| !name.is_empty());
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}
