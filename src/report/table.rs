//! Columns of text: numbers to the right, names to the left.

use crate::{plain::cut, units::grouped};

/// A cell is cut after this number of characters: every row is as wide as the widest.
const LONGEST_CELL: usize = 400;

/// A table that is printed as a whole.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns that are aligned to the left.
    left: usize,
}

impl Table {
    /// A table with these headings, the first `left` columns aligned to the left.
    #[must_use]
    pub fn new(left: usize, headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|text| shown(text)).collect()], left }
    }

    /// Adds a row. Names of a run come into it, so nothing in a cell can steer a terminal.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| shown(cell)).collect());
    }

    /// The lines, two spaces between columns, none at the end.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.fitted(None, &[]).0
    }

    /// Characters of its longest line, at most.
    #[must_use]
    pub fn width(&self) -> usize {
        let widths = self.widths();
        width_of(widths.iter().copied())
    }

    /// The lines, where columns of `least` go until the rest is at most as wide as `width`: the
    /// first of them first, by their headings. And the headings of those that went.
    #[must_use]
    pub fn fitted(&self, width: Option<usize>, least: &[&str]) -> (Vec<String>, Vec<String>) {
        let widths = self.widths();
        let mut kept: Vec<usize> = (0..widths.len()).collect();
        let mut gone = Vec::new();
        for heading in least {
            let of = |column: &usize| widths.get(*column).copied();
            if width.is_none_or(|most| width_of(kept.iter().filter_map(of)) <= most) {
                break;
            }
            let is_it = |column: &usize| self.heading(*column) == Some(*heading);
            if kept.iter().any(is_it) {
                kept.retain(|column| !is_it(column));
                gone.push((*heading).to_owned());
            }
        }
        let lines = self.rows.iter().map(|row| self.line(row, &kept, &widths)).collect();
        (lines, gone)
    }

    fn heading(&self, column: usize) -> Option<&str> {
        self.rows.first()?.get(column).map(String::as_str)
    }

    fn line(&self, row: &[String], kept: &[usize], widths: &[usize]) -> String {
        let cell = |column: &usize| {
            let (cell, width) = (row.get(*column)?, *widths.get(*column)?);
            let is_left = *column < self.left;
            Some(if is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
        };
        let cells: Vec<String> = kept.iter().filter_map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    }

    /// Of each column.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }
}

/// Of columns of these widths, with the spaces between them.
fn width_of(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

fn shown(cell: &str) -> String {
    cut(cell, LONGEST_CELL)
}

/// Nanoseconds as microseconds, a decimal below 100.
pub fn us(ns: Option<i64>) -> String {
    let Some(ns) = ns else { return "-".into() };
    let us = ns as f64 / 1e3;
    if us.abs() < 99.95 { format!("{us:.1}") } else { grouped(&format!("{us:.0}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_run_stays_on_its_line() {
        let mut table = Table::new(1, &["a\rb"]);
        table.row(vec!["x\n\u{1b}[2J".into()]);
        assert_eq!(table.lines(), ["a\\u{d}b", "x\\u{a}\\u{1b}[2J"]);
        table.row(vec!["x".repeat(1 << 20)]);
        assert!(table.lines().iter().all(|line| line.len() <= LONGEST_CELL));
    }

    #[test]
    fn numbers_stand_under_each_other() {
        let mut table = Table::new(1, &["", "min", "max"]);
        table.row(vec!["cpu0".into(), "1".into(), "100".into()]);
        table.row(vec!["cpu10".into(), "20".into(), "3".into()]);
        assert_eq!(table.lines(), ["       min  max", "cpu0     1  100", "cpu10   20    3"]);
    }

    #[test]
    fn where_it_is_too_wide_the_least_important_columns_go_and_no_figure_is_cut() {
        let mut table = Table::new(1, &["us", "mean", "p50", "max"]);
        table.row(["cpu0", "100", "20000", "3"].map(String::from).to_vec());
        assert_eq!(table.width(), 22);
        let least = ["nosuch", "mean", "p50"];
        assert_eq!(table.fitted(Some(22), &least), (table.lines(), Vec::new()));
        let (lines, gone) = table.fitted(Some(21), &least);
        assert_eq!(lines, ["us      p50  max", "cpu0  20000    3"]);
        assert_eq!(gone, ["mean"]);
        let (lines, gone) = table.fitted(Some(1), &least);
        assert_eq!((lines.len(), gone.len()), (2, 2), "what is not least stays");
        assert_eq!(lines[1], "cpu0    3");
    }
}
