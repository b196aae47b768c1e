//! A matrix of the lab for a terminal: what the numbers mean, tables, verdicts, what failed.

use std::collections::HashSet;

use anstyle::{Effects, Style};
use serde::{Deserialize, Serialize};

use super::{causes::words::label, table::Table};
use crate::{
    analysis::{
        Matrix,
        matrix::{
            CellCause, Column, FIGURES, Figure, JudgedFigure, Judgement, MatrixCell, MatrixRow,
            margin_of,
        },
    },
    plain,
    run::{
        AbVerdict,
        lab::{LabFailure, meaning},
    },
    units::{Nanos, Scale, count, percent},
};

const DIM: Style = Style::new().effects(Effects::DIMMED);
const BOLD: Style = Style::new().effects(Effects::BOLD);

/// What stands below the figures.
const NOTES: [&str; 2] = [
    "Percentiles: where the median of all phase offsets lies (95%), or with fewer than 6 of them \
     their range. max: the largest over these phases.",
    "~ fewer than 10 samples beyond it in a run: little more than the maximum, and not judged.",
];

/// What one look at a matrix shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixView {
    /// What was measured.
    pub title: String,
    /// What it comes to, in one sentence.
    pub finding: String,
    /// The figures.
    pub matrix: Matrix,
    /// Cells without a run.
    pub failed: Vec<LabFailure>,
    /// Cells that an early end left undone.
    pub undone: usize,
    /// How the kernels' configurations differ; absent if fewer than two are known.
    pub config: Option<ConfigTable>,
}

/// Options that are not the same in all kernels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigTable {
    /// The kernels whose configuration is known.
    pub kernels: Vec<String>,
    /// What matters to latency.
    pub rows: Vec<ConfigRow>,
    /// How many other options differ.
    pub others: usize,
}

/// One option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigRow {
    /// Its name.
    pub option: String,
    /// Its value in each kernel of [`ConfigTable::kernels`]; absent if it is not set.
    pub values: Vec<Option<String>>,
}

/// The sheet as text.
#[must_use]
pub fn show(sheet: &MatrixView) -> String {
    let matrix = &sheet.matrix;
    // Names of plans, loads and kernels are foreign, and what failed says anything: none of it
    // begins its own line, or has a colour. What is in tables is plain already.
    let mut lines = vec![format!("{BOLD}{}{BOLD:#}", plain::plain(&sheet.finding))];
    lines.push(plain::plain(&headline(sheet)));
    lines.extend(meanings(matrix).iter().map(|line| plain::plain(line)));
    lines.extend(matrix.remarks.iter().map(|line| plain::plain(line)));
    lines.push(String::new());
    if matrix.kernels.len() > 1 {
        lines.extend(dim_first(overview(sheet, "99").lines()));
        lines.push(String::new());
    }
    lines.extend(details(matrix));
    lines.extend(NOTES.map(|note| format!("{DIM}{note}{DIM:#}")));
    lines.extend(sheet.config.iter().flat_map(configurations));
    lines.extend(failures(sheet));
    lines.join("\n") + "\n"
}

/// `founding: 2 kernels, 12 loads, 24 runs`.
#[must_use]
pub fn headline(sheet: &MatrixView) -> String {
    let number =
        |n: usize, sample_name: &str| format!("{n} {sample_name}{}", if n == 1 { "" } else { "s" });
    let cells = sheet.matrix.loads.iter().flat_map(|row| &row.cells).flatten();
    let runs = cells.map(|cell| cell.runs.len()).sum();
    let parts = [
        number(sheet.matrix.kernels.len(), "kernel"),
        number(sheet.matrix.loads.len(), "load"),
        number(runs, "run"),
    ];
    format!("{}: {}", sheet.title, parts.join(", "))
}

/// What the numbers mean, a sentence for each mode that they were measured in.
#[must_use]
pub fn meanings(matrix: &Matrix) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for kernel in matrix.kernels.iter().filter(|kernel| !kernel.mode.is_empty()) {
        let sentence = meaning(&kernel.mode);
        if !found.contains(&sentence) {
            found.push(sentence);
        }
    }
    found
}

/// One figure: a row a load, a column a kernel.
fn overview(sheet: &MatrixView, figure: &str) -> Table {
    let matrix = &sheet.matrix;
    let name = figure_name(figure);
    let failed: HashSet<(&str, &str)> =
        sheet.failed.iter().map(|cell| (&*cell.load, &*cell.kernel)).collect();
    let mut headings = vec![name.as_str()];
    headings.extend(matrix.kernels.iter().map(|kernel| kernel.name.as_str()));
    let mut table = Table::new(1, &headings);
    for row in &matrix.loads {
        let cell = |(kernel, cell): (&Column, &Option<MatrixCell>)| match cell {
            Some(cell) => of(cell, figure).map_or_else(|| "-".into(), range),
            // The reason why the figure is missing.
            None if failed.contains(&(&*row.name, &*kernel.name)) => "failed".into(),
            None => "-".into(),
        };
        let cells = matrix.kernels.iter().zip(&row.cells).map(cell);
        table.row(std::iter::once(row.name.clone()).chain(cells).collect());
    }
    table
}

/// All figures: a line a load and kernel, and under each load what is judged.
fn details(matrix: &Matrix) -> Vec<String> {
    let mut headings = vec!["load and kernel", "phases", "samples"];
    let names = FIGURES.map(figure_name);
    headings.extend(names.iter().map(String::as_str));
    let mut table = Table::new(1, &headings);
    // Verdicts are sentences and stand between the lines; where, is known before widths are.
    let below = |line: &String| format!("    {}", plain::plain(line));
    let mut after: Vec<Vec<String>> = vec![Vec::new()];
    for row in &matrix.loads {
        table.row(vec![row.name.clone()]);
        after.push(Vec::new());
        for (kernel, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let name = matrix.kernels.get(kernel).map_or("", |kernel| kernel.name.as_str());
            let mut cells = vec![format!("  {name}"), cell.phases.to_string(), count(cell.samples)];
            cells.extend(FIGURES.iter().map(|figure| of(cell, figure).map_or("-".into(), range)));
            table.row(cells);
            after.push(worst(cell).iter().map(below).collect());
        }
        if let Some(last) = after.last_mut() {
            last.extend(verdicts(matrix, row).iter().map(below));
        }
    }
    let lines = dim_first(table.lines());
    let both = lines.into_iter().zip(after);
    both.flat_map(|(line, after)| std::iter::once(line).chain(after)).collect()
}

/// What the worst wake-ups of a cell were spent on: who held the CPU.
fn worst(cell: &MatrixCell) -> Option<String> {
    let part = |cause: &CellCause| {
        format!("{} {}", label(cause.cause, &cause.name), percent(cause.share, 0))
    };
    let parts: Vec<String> = cell.causes.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("worst: {}", parts.join(", ")))
}

/// What is judged of a load, a sentence for each kernel but the first.
#[must_use]
pub fn verdicts(matrix: &Matrix, row: &MatrixRow) -> Vec<String> {
    row.judgements.iter().map(|judgement| verdict(matrix, judgement)).collect()
}

fn verdict(matrix: &Matrix, judgement: &Judgement) -> String {
    let name = |at: usize| matrix.kernels.get(at).map_or("?", |kernel| kernel.name.as_str());
    let pair = format!("{} against {}", name(judgement.kernel), name(judgement.against));
    if let Some(reason) = &judgement.not_judged {
        return format!("{pair}: {reason}");
    }
    let parts: Vec<String> = judgement.figures.iter().map(judged).collect();
    match parts.is_empty() {
        true => format!("{pair}: not judged: no figure is certain enough"),
        false => format!("{pair}: {}", parts.join(", ")),
    }
}

/// `p99 at least 133 times lower`, `p50 the same within 5%`, `max inconclusive (0.84 to 1.3)`.
pub(super) fn judged(own: &JudgedFigure) -> String {
    let name = figure_name(&own.figure);
    let least = |factor: f64, word: &str| {
        let (number, decimals) = rounded_down(factor);
        format!("{name} at least {number:.decimals$} times {word}")
    };
    match (own.verdict, own.low, own.high) {
        (AbVerdict::Better, _, Some(high)) => least(1.0 / high, "lower"),
        (AbVerdict::Worse, Some(low), _) => least(low, "higher"),
        (AbVerdict::Same, Some(low), Some(high)) => {
            let reach = (high - 1.0).max(1.0 / low - 1.0).max(margin_of(&own.figure));
            format!("{name} the same within {:.0}%", (100.0 * reach).ceil())
        }
        (_, Some(low), Some(high)) => format!("{name} inconclusive ({low:.2} to {high:.2})"),
        _ => format!("{name} inconclusive"),
    }
}

/// A factor that is a lower limit, and with how many decimals it is written: none more than holds.
fn rounded_down(factor: f64) -> (f64, usize) {
    let decimals: u16 = if factor >= 100.0 { 0 } else { u16::from(factor < 10.0) + 1 };
    let scale = 10_f64.powi(decimals.into());
    // What binary fractions lack is no reason to write 1.02 for 1.03.
    ((factor * scale + 1e-9).floor() / scale, decimals.into())
}

/// `p99.9`, `max`.
#[must_use]
pub fn figure_name(figure: &str) -> String {
    if figure == "max" { figure.into() } else { format!("p{figure}") }
}

fn of<'a>(cell: &'a MatrixCell, figure: &str) -> Option<&'a Figure> {
    cell.figures.iter().find(|own| own.name == figure)
}

/// `154 to 158 us`, or one value where both ends are written alike. Of the maximum, the largest.
fn range(figure: &Figure) -> String {
    let mark = if figure.uncertain { "~" } else { "" };
    let from = if figure.name == "max" { figure.high } else { figure.low };
    let (from, to) = match (figure.median_low, figure.median_high) {
        (Some(low), Some(high)) => (low, high),
        _ => (from, figure.high),
    };
    let (low, high) = (Nanos(from).to_string(), Nanos(to).to_string());
    if low == high {
        return format!("{mark}{high}");
    }
    let unit = Scale::of(from);
    if unit == Scale::of(to) {
        return format!("{mark}{} to {high}", unit.number(from));
    }
    format!("{mark}{low} to {high}")
}

/// What differs in how the kernels were built.
fn configurations(config: &ConfigTable) -> Vec<String> {
    let mut headings = vec!["configuration"];
    headings.extend(config.kernels.iter().map(String::as_str));
    let mut table = Table::new(headings.len(), &headings);
    for row in &config.rows {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let values = row.values.iter().map(value);
        table.row(std::iter::once(row.option.clone()).chain(values).collect());
    }
    let mut lines = vec![String::new()];
    lines.extend(dim_first(table.lines()));
    lines.push(format!("and {} other options: drivers, file systems, protocols", config.others));
    lines
}

fn failures(sheet: &MatrixView) -> Vec<String> {
    let mut lines = Vec::new();
    if !sheet.failed.is_empty() {
        lines.extend([String::new(), format!("{BOLD}failed{BOLD:#}")]);
    }
    for cell in &sheet.failed {
        let name = format!("{} under {}, phase {}:", cell.load, cell.kernel, cell.seed);
        lines.push(plain::plain(&name));
        lines.extend(cell.why.lines().map(|line| format!("    {}", plain::plain(line))));
    }
    if sheet.undone > 0 {
        lines.push(format!("Ended early: {} of the plan's runs were not made.", sheet.undone));
    }
    lines
}

fn dim_first(lines: Vec<String>) -> Vec<String> {
    let styled = |(number, line): (usize, String)| match number {
        0 => format!("{DIM}{line}{DIM:#}"),
        _ => line,
    };
    lines.into_iter().enumerate().map(styled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::Cause;

    fn cell(low: i64, high: i64) -> Option<MatrixCell> {
        let figure = |name: &&str| Figure {
            name: (*name).to_owned(),
            low,
            high,
            median: low,
            median_low: None,
            median_high: None,
            uncertain: **name == *"99.9",
        };
        Some(MatrixCell {
            phases: 5,
            runs: vec![0; 5],
            samples: 50_000,
            figures: FIGURES.iter().map(figure).collect(),
            invalid: Vec::new(),
            causes: Vec::new(),
        })
    }

    fn sheet() -> MatrixView {
        let column = |name: &str| Column {
            name: name.into(),
            release: "6.1".into(),
            preemption: "rt".into(),
            hash: String::new(),
            mode: "deterministic".into(),
            is_control: false,
        };
        let judgement = |not_judged: Option<&str>, figures| Judgement {
            kernel: 1,
            against: 0,
            not_judged: not_judged.map(str::to_owned),
            figures,
        };
        let judged = |figure: &str, verdict, low, high| JudgedFigure {
            figure: figure.into(),
            verdict,
            ratio: low,
            low: Some(low),
            high: Some(high),
            is_paired: false,
            share: 4,
        };
        let row =
            |name: &str, cells, judgements| MatrixRow { name: name.into(), cells, judgements };
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        let found = vec![
            judged("50", Worse, 1.0399, 1.2),
            judged("99", Better, 0.01, 1.0 / 15.29),
            judged("max", Better, 0.001, 1.0 / 132.9),
        ];
        let near = vec![judged("50", Same, 0.99, 1.02), judged("99", Inconclusive, 0.8, 1.256)];
        let loads = vec![
            row(
                "signals",
                vec![cell(154_000, 158_000), cell(10_100, 10_100)],
                vec![judgement(None, found)],
            ),
            row("idle", vec![cell(980, 1_020), cell(9_000, 9_000)], vec![judgement(None, near)]),
            row("files", vec![cell(1, 2), None], vec![judgement(Some("not judged: why"), vec![])]),
        ];
        MatrixView {
            title: "founding".into(),
            finding: "A finding.".into(),
            matrix: Matrix {
                kernels: vec![column("standard"), column("rt")],
                loads,
                remarks: vec!["A remark.".into()],
                comparisons: 4,
            },
            failed: vec![LabFailure {
                load: "files".into(),
                kernel: "rt".into(),
                seed: 3,
                why: "it panicked; its console's last lines:\noops".into(),
            }],
            undone: 2,
            config: Some(ConfigTable {
                kernels: vec!["standard".into(), "rt".into()],
                rows: vec![ConfigRow {
                    option: "CONFIG_PREEMPT_RT".into(),
                    values: vec![None, Some("y".into())],
                }],
                others: 41,
            }),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn meaning_tables_verdicts_and_failures_are_all_there() {
        let text = plain(&show(&sheet()));
        for wanted in [
            "founding: 2 kernels, 3 loads, 25 runs\nTimes are executed instructions times 2 ns",
            "A remark.\n\np99               standard       rt\n",
            "signals      154 to 158 us  10.1 us\n",
            "idle     980 ns to 1.02 us  9.00 us\n",
            "~154 to 158 us",
            "    rt against standard: p50 at least 1.03 times higher, p99 at least 15.2 times \
             lower, max at least 132 times lower\n",
            "    rt against standard: p50 the same within 5%, p99 inconclusive (0.80 to 1.26)\n",
            "    rt against standard: not judged: why\n",
            "failed\nfiles under rt, phase 3:\n    it panicked; its console's last lines:\n    \
             oops\n",
            "configuration      standard  rt\nCONFIG_PREEMPT_RT  -         y\nand 41 other",
            "Ended early: 2 of the plan's runs",
        ] {
            assert!(text.contains(wanted), "{wanted}\nin\n{text}");
        }
        let hole = text.lines().find(|line| line.starts_with("files ")).unwrap();
        assert!(hole.ends_with("failed"), "{text}");
    }

    #[test]
    fn a_percentile_has_the_interval_of_its_median_and_a_maximum_is_the_largest() {
        let whole = cell(1_000, 9_000).unwrap().figures.remove(0);
        assert_eq!(range(&whole), "1.00 to 9.00 us");
        let some = Figure { median_low: Some(2_000), median_high: Some(3_000), ..whole.clone() };
        assert_eq!(range(&some), "2.00 to 3.00 us");
        assert_eq!(range(&Figure { name: "max".into(), ..whole }), "9.00 us");
    }

    #[test]
    fn at_least_is_never_more_than_holds() {
        let written = |factor: f64| {
            let (number, decimals) = rounded_down(factor);
            format!("{number:.decimals$}")
        };
        for (factor, wanted) in
            [(1.039, "1.03"), (1.03, "1.03"), (9.999, "9.99"), (15.29, "15.2"), (199.9, "199")]
        {
            assert_eq!(written(factor), wanted);
        }
    }

    #[test]
    fn a_traced_cell_names_who_held_the_cpu() {
        let mut sheet = sheet();
        let cause = |cause, name: &str, share| CellCause { cause, name: name.into(), share };
        sheet.matrix.loads[0].cells[0].as_mut().unwrap().causes = vec![
            cause(Cause::Nonpreemptible, "kill_something_info", 0.914),
            cause(Cause::Unexplained, "", 0.06),
        ];
        let text = plain(&show(&sheet));
        let wanted = "    worst: non-preemptible: kill_something_info 91%, unexplained 6%\n  rt";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn nothing_foreign_has_a_colour_or_begins_a_line() {
        const HIDDEN: &str = "\u{1b}[8m\rx";
        let mut sheet = sheet();
        sheet.title.push_str(HIDDEN);
        let matrix = &mut sheet.matrix;
        matrix.remarks.push(HIDDEN.into());
        matrix.kernels.iter_mut().for_each(|kernel| {
            kernel.name.push_str(HIDDEN);
            kernel.mode = HIDDEN.into();
        });
        matrix.loads.iter_mut().for_each(|row| row.name.push_str(HIDDEN));
        matrix.loads[2].judgements[0].not_judged = Some(format!("a\nb{HIDDEN}"));
        let name = format!("a\nb{HIDDEN}");
        matrix.loads[0].cells[0].as_mut().unwrap().causes =
            vec![CellCause { cause: Cause::Nonpreemptible, name, share: 0.9 }];
        let failed = &mut sheet.failed[0];
        [&mut failed.load, &mut failed.kernel, &mut failed.why]
            .into_iter()
            .for_each(|text| text.push_str(HIDDEN));
        let config = sheet.config.as_mut().unwrap();
        config.kernels[0].push_str(HIDDEN);
        config.rows[0].option.push_str(HIDDEN);
        config.rows[0].values[1] = Some(HIDDEN.into());
        let text = show(&sheet);
        assert!(!text.contains("\u{1b}[8m") && !text.contains('\r'), "{text}");
        assert!(text.lines().all(|line| !line.starts_with('b')), "{text}");
        // Title, meaning, remark; one table with 2 kernels and 3 loads, one with 3 loads and 5
        // cells; 3 verdicts with 2 names each, a reason, a cause; a failure; the configurations.
        let shown = text.matches("\\u{1b}[8m\\u{d}x").count();
        assert_eq!(shown, 3 + (2 + 3) + (3 + 5) + 6 + 1 + 1 + 3 + 3, "{text}");
    }

    #[test]
    fn one_kernel_alone_has_one_table() {
        let mut one = sheet();
        one.matrix.kernels.truncate(1);
        one.matrix.loads.iter_mut().for_each(|row| {
            row.cells.truncate(1);
            row.judgements.clear();
        });
        let text = plain(&show(&one));
        assert_eq!(text.matches("signals").count(), 1, "{text}");
    }
}
