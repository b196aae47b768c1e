//! Columns of text: numbers to the right, names to the left.

use crate::plain::cut;

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
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cell = |(column, (cell, width)): (usize, (&String, &usize))| {
                if column < self.left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            };
            let cells: Vec<String> = row.iter().zip(&widths).enumerate().map(cell).collect();
            cells.join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

fn shown(cell: &str) -> String {
    cut(cell, LONGEST_CELL)
}

/// Nanoseconds as microseconds, a decimal below 100.
pub fn us(ns: Option<i64>) -> String {
    let Some(ns) = ns else { return "-".into() };
    let us = ns as f64 / 1e3;
    if us.abs() < 99.95 { format!("{us:.1}") } else { format!("{us:.0}") }
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
}
