//! A comparison as text: the compared sides, the figures, where a difference may come from, and
//! last, where the eye is, the verdict.

use anstyle::{AnsiColor, Style};

use super::{CompareReport, SideComparison, Unjudged, shift};
use crate::{
    analysis::bands::LATE,
    plain::plain,
    report::{
        causes::words::label,
        change::ratio,
        comparison_page::{FactDifference, ShiftPoint},
        intervals::{NamedInterval, RunIntervals},
        sample_name,
        table::{Table, us},
        terminal::{fold, interval},
    },
    run::{AbVerdict, BandDifference, ComparedFigureRow, ComparedUnit, Validity},
    units::{self, share},
};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Causes that are shown of a band.
const CAUSES: usize = 5;

/// Columns that fit on a narrow terminal, the first of them first.
const LEAST: [&str; 5] = ["margin", "A's interval", "B's interval", "p99.99", "p90"];

/// The columns of the table by series where nothing is judged.
const BY_SERIES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// All comparisons of a report, in lines of at most `width` characters where that is given.
#[must_use]
pub fn text(report: &CompareReport, width: Option<usize>) -> String {
    let mut out = String::new();
    for (number, one) in report.comparisons.iter().enumerate() {
        out.push_str(if number > 0 { "\n" } else { "" });
        push(&mut out, one, report, width);
    }
    fold(&out, width)
}

fn push(out: &mut String, one: &SideComparison, report: &CompareReport, width: Option<usize>) {
    push_sides(out, one, report);
    push_figures(out, one, report, width);
    push_shift(out, one);
    push_facts(out, &one.facts);
    one.causes.iter().take(1).for_each(|band| push_causes(out, band, one.samples));
    if !one.remarks.is_empty() {
        out.push('\n');
    }
    one.remarks.iter().for_each(|remark| out.push_str(&format!("{DIM}{}{DIM:#}\n", plain(remark))));
    let colour = colour(one.verdict);
    let (verdict, why) = (one.verdict.as_str(), reason(one));
    out.push_str(&format!("\n{colour}{verdict}{colour:#}: {BOLD}{why}{BOLD:#}\n"));
}

const fn colour(verdict: AbVerdict) -> Style {
    match verdict {
        AbVerdict::Better | AbVerdict::Same => AnsiColor::Green.on_default(),
        AbVerdict::Inconclusive => AnsiColor::Yellow.on_default(),
        AbVerdict::Worse => AnsiColor::Red.on_default(),
    }
}

fn push_sides(out: &mut String, one: &SideComparison, report: &CompareReport) {
    for (side, names) in [("A", &one.a), ("B", &one.b)] {
        out.push_str(&format!("{BOLD}{side}{BOLD:#} {}\n", plain(&names.join(", "))));
    }
    let own = |name: &String| one.a.contains(name) || one.b.contains(name);
    for run in report.runs.iter().filter(|run| own(&run.name)) {
        if run.validity != Validity::Valid {
            let (name, verdict) = (plain(&run.name), run.validity.displayed());
            out.push_str(&format!("{name} is {verdict}: tardy show {name}\n"));
        }
    }
    out.push('\n');
}

/// A table for all series together, or for each that cannot be put together; then the ratios by
/// series.
fn push_figures(
    out: &mut String,
    one: &SideComparison,
    report: &CompareReport,
    width: Option<usize>,
) {
    let rows: Vec<&ComparedFigureRow> = one.figures.iter().chain(&one.described).collect();
    let mut series: Vec<Option<&str>> = Vec::new();
    for row in &rows {
        if !series.contains(&row.series.as_deref()) {
            series.push(row.series.as_deref());
        }
    }
    let is_pooled = series.contains(&None);
    for (number, own) in series.iter().filter(|own| own.is_none() || !is_pooled).enumerate() {
        out.push_str(if number > 0 { "\n" } else { "" });
        let rows: Vec<&ComparedFigureRow> =
            rows.iter().filter(|row| row.series.as_deref() == *own).copied().collect();
        let table = if one.judged { judged(one, &rows) } else { described(one, report, &rows) };
        push_table(out, &table, width);
    }
    if is_pooled {
        out.push('\n');
        push_table(out, &by_series(one, &series, &rows), width);
    }
}

/// The figures in the order in which they are always named.
fn in_order<'a>(rows: &[&'a ComparedFigureRow]) -> Vec<&'a ComparedFigureRow> {
    use crate::analysis::ab::figure::COMPARED_FIGURES;
    let find = |name: &str| rows.iter().find(|row| row.figure == name).copied();
    COMPARED_FIGURES.iter().filter_map(|(_, name)| find(name)).collect()
}

fn heading(rows: &[&ComparedFigureRow]) -> String {
    let series = rows.first().and_then(|row| row.series.as_deref());
    format!("us, {}", series.map_or("all series".into(), sample_name::series))
}

/// With a verdict for each figure that has one.
fn judged(one: &SideComparison, rows: &[&ComparedFigureRow]) -> Table {
    let heading = heading(rows);
    let mut table =
        Table::new(1, &[heading.as_str(), "A", "B", "B/A", "95% interval", "margin", "verdict"]);
    for row in in_order(rows) {
        let is_judged = one.figures.iter().any(|own| own == row);
        let ends = row.low.zip(row.high);
        let ends =
            ends.map_or_else(String::new, |(low, high)| format!("{}..{}", ratio(low), ratio(high)));
        let verdict = if is_judged { row.verdict.as_str() } else { "not judged" };
        let margin = if is_judged { share(row.margin) } else { String::new() };
        table.row(vec![
            figure(row),
            value(row, row.a),
            value(row, row.b),
            ratio(row.ratio),
            ends,
            margin,
            verdict.into(),
        ]);
    }
    table
}

/// Side by side, each run with its own interval.
fn described(one: &SideComparison, report: &CompareReport, rows: &[&ComparedFigureRow]) -> Table {
    let run = |names: &[String]| -> Option<&RunIntervals> {
        let [name] = names else { return None };
        report.runs.iter().find(|run| run.name == *name)?.intervals.as_ref()
    };
    let heading = heading(rows);
    let mut table = Table::new(
        1,
        &[heading.as_str(), "A", "A's interval", "B", "B's interval", "B - A", "B/A"],
    );
    for row in in_order(rows) {
        let own = |names: &[String]| {
            let of = run(names).and_then(|known| named(known, row));
            of.map_or_else(String::new, interval)
        };
        table.row(vec![
            figure(row),
            value(row, row.a),
            own(&one.a),
            value(row, row.b),
            own(&one.b),
            difference(row),
            ratio(row.ratio),
        ]);
    }
    table
}

/// The interval that a run has for a figure.
fn named<'a>(known: &'a RunIntervals, row: &ComparedFigureRow) -> Option<&'a NamedInterval> {
    let percentile = row.figure.strip_prefix('p')?;
    let all = match &row.series {
        Some(name) => &known.series.iter().find(|series| series.name == *name)?.percentiles,
        None => known.pooled.as_ref()?,
    };
    all.iter().find(|own| own.percentile == percentile)
}

/// B / A for each series, with the verdict where there is one.
fn by_series(one: &SideComparison, series: &[Option<&str>], rows: &[&ComparedFigureRow]) -> Table {
    let judged: Vec<&str> = in_order(&one.figures.iter().collect::<Vec<_>>())
        .into_iter()
        .map(|row| row.figure.as_str())
        .collect();
    let columns = if one.judged { judged } else { BY_SERIES.to_vec() };
    let mut table = Table::new(1, &[&["B/A by series"][..], columns.as_slice()].concat());
    for name in series.iter().flatten() {
        let cell = |column: &&str| {
            let is_it = |row: &&&ComparedFigureRow| {
                row.series.as_deref() == Some(*name) && row.figure == **column
            };
            rows.iter().find(is_it).map_or_else(String::new, |row| {
                let verdict = match row.verdict {
                    _ if !one.judged => "",
                    AbVerdict::Inconclusive => " ?",
                    AbVerdict::Better => " better",
                    AbVerdict::Worse => " worse",
                    AbVerdict::Same => " same",
                };
                format!("{}{verdict}", ratio(row.ratio))
            })
        };
        let mut cells = vec![sample_name::series(name).into_owned()];
        cells.extend(columns.iter().map(cell));
        table.row(cells);
    }
    table
}

fn push_table(out: &mut String, table: &Table, width: Option<usize>) {
    let (lines, gone) = table.fitted(width, &LEAST);
    for (number, line) in lines.iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
    if !gone.is_empty() {
        out.push_str(&format!("{DIM}no room for {}: --json has all{DIM:#}\n", gone.join(", ")));
    }
}

fn figure(row: &ComparedFigureRow) -> String {
    match row.above_ns {
        Some(ns) => {
            let ns = i64::try_from(ns).unwrap_or(i64::MAX);
            format!("{}: above {} us", row.figure, us(Some(ns)))
        }
        None => row.figure.clone(),
    }
}

fn value(row: &ComparedFigureRow, value: f64) -> String {
    match row.unit {
        ComparedUnit::Ns => us(Some(value.round() as i64)),
        ComparedUnit::Share => share(value),
    }
}

fn difference(row: &ComparedFigureRow) -> String {
    match row.unit {
        ComparedUnit::Ns => signed_us(row.b - row.a),
        ComparedUnit::Share => String::new(),
    }
}

/// Nanoseconds as microseconds with their sign.
fn signed_us(ns: f64) -> String {
    let text = us(Some(ns.round() as i64));
    if ns > 0.0 { format!("+{text}") } else { text }
}

/// The shift function as a picture: of all series together, or of each.
fn push_shift(out: &mut String, one: &SideComparison) {
    let mut series: Vec<&Option<String>> = Vec::new();
    for point in &one.shift {
        if !series.contains(&&point.series) {
            series.push(&point.series);
        }
    }
    let is_pooled = series.contains(&&None);
    for own in series.into_iter().filter(|own| own.is_none() || !is_pooled) {
        let points: Vec<ShiftPoint> =
            one.shift.iter().filter(|point| point.series == *own).cloned().collect();
        let Some(first) = points.first() else { continue };
        let of = own.as_deref().map_or("all series".into(), sample_name::series);
        out.push_str(&format!(
            "\n{DIM}B/A by percentile, {of}; [--o--]: 95% of each by itself, by {}{DIM:#}\n",
            first.basis.meaning()
        ));
        for (name, line) in shift::lines(&points) {
            out.push_str(&format!("{name:<8}{line}\n"));
        }
    }
}

fn push_facts(out: &mut String, facts: &[FactDifference]) {
    if facts.is_empty() {
        return;
    }
    out.push_str(&format!("\n{DIM}What differs besides, as far as the records tell:{DIM:#}\n"));
    let name = facts.iter().map(|fact| fact.fact.chars().count()).max().unwrap_or(0);
    for fact in facts {
        let line = format!(
            "  {:<name$}  {} | {}",
            plain(&fact.fact),
            plain(&fact.a.join(", ")),
            plain(&fact.b.join(", "))
        );
        out.push_str(&line);
        out.push('\n');
    }
}

pub(in crate::report) fn push_causes(out: &mut String, band: &BandDifference, samples: &str) {
    let (a, b) = (band.a_ns, band.b_ns);
    let [mean_a, mean_b] = [a, b].map(|ns| us(Some(ns.round() as i64)));
    let which = match band.band.as_str() {
        LATE => "cycles over the deadline".to_owned(),
        name => format!("{samples} above {name}"),
    };
    out.push_str(&format!(
        "\n{DIM}{which}, us on average: {mean_a} in A, {mean_b} in B, {}; of \
         which{DIM:#}\n",
        signed_us(b - a)
    ));
    let mut table = Table::new(1, &["", "A", "B", "B - A"]);
    for cause in band.causes.iter().take(CAUSES) {
        let [of_a, of_b] = [cause.a_ns, cause.b_ns].map(|ns| us(Some(ns.round() as i64)));
        let name = format!("  {}", label(cause.cause, &cause.name));
        table.row(vec![name, of_a, of_b, signed_us(cause.difference_ns())]);
    }
    let rest = band.causes.iter().skip(CAUSES);
    let (rest_a, rest_b) = rest.fold((0.0, 0.0), |sum, own| (sum.0 + own.a_ns, sum.1 + own.b_ns));
    if band.causes.len() > CAUSES {
        let [of_a, of_b] = [rest_a, rest_b].map(|ns: f64| us(Some(ns.round() as i64)));
        table.row(vec!["  other causes".into(), of_a, of_b, signed_us(rest_b - rest_a)]);
    }
    for line in table.lines().iter().skip(1) {
        out.push_str(&format!("{line}\n"));
    }
    let blamed = band.blamed_a.min(band.blamed_b);
    if blamed < 0.995 {
        let [of_a, of_b] = [band.blamed_a, band.blamed_b].map(|own| (own * 100.0).round());
        out.push_str(&format!(
            "{DIM}Of this time, {of_a}% of A and {of_b}% of B were analyzed.{DIM:#}\n"
        ));
    }
}

/// The verdict's reason in one line.
fn reason(one: &SideComparison) -> String {
    if let Some(why) = one.unjudged {
        let why = match why {
            Unjudged::FewRuns => "too few runs to judge a difference",
            Unjudged::SeveralPrograms => "different programs measured, so that nothing is judged",
        };
        return format!("{why}; the figures above describe these runs");
    }
    let first = one.figures.first().map(|row| row.series.clone());
    let own = |row: &&ComparedFigureRow| {
        first.as_ref().is_some_and(|first| first.is_some() || row.series == *first)
    };
    let of = |verdict: AbVerdict| -> Vec<String> {
        let rows = one.figures.iter().filter(own).filter(|row| row.verdict == verdict);
        let name = |row: &ComparedFigureRow| {
            let series = row.series.as_ref();
            let series =
                series.map_or_else(String::new, |name| format!("{} ", sample_name::series(name)));
            format!("{series}{} {}", row.figure, in_brackets(row.ratio))
        };
        rows.map(name).collect()
    };
    let said = [
        (AbVerdict::Worse, "B is worse at"),
        (AbVerdict::Better, "B is better at"),
        (AbVerdict::Same, "within the margin at"),
        (AbVerdict::Inconclusive, "undecided at"),
    ];
    let parts = said.map(|(verdict, words)| {
        let figures = of(verdict);
        if figures.is_empty() { String::new() } else { format!("{words} {}", figures.join(", ")) }
    });
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// `(+12.0%)`, `(9.78 times)`
fn in_brackets(of: f64) -> String {
    if of >= 2.0 { format!("({} times)", ratio(of)) } else { format!("({})", units::change(of)) }
}
