//! How often each test passed under each condition.

use std::collections::BTreeMap;

use super::condition::Condition;
use crate::suite::{listing::TestCase, results::Verdict};

/// Runs of one test under one condition.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
}

/// A row for each test, a column for each condition.
pub(super) struct Table {
    conditions: Vec<Condition>,
    rows: BTreeMap<String, Vec<Tally>>,
}

impl Table {
    pub(super) fn new(cases: &[TestCase], conditions: &[Condition]) -> Self {
        let row = |case: &TestCase| (case.full_name(), vec![Tally::default(); conditions.len()]);
        Self { conditions: conditions.to_vec(), rows: cases.iter().map(row).collect() }
    }

    pub(super) fn add(&mut self, name: &str, condition: Condition, verdict: &Verdict) {
        let column = self.conditions.iter().position(|known| *known == condition);
        let row = self.rows.get_mut(name);
        let Some(tally) = column.zip(row).and_then(|(column, row)| row.get_mut(column)) else {
            return;
        };
        match verdict {
            Verdict::Passed => tally.passed += 1,
            Verdict::Failed(_) => tally.failed += 1,
            Verdict::Skipped(_) => tally.skipped += 1,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.rows.values().flatten().any(|tally| tally.failed > 0)
    }

    /// Passed of all runs, by test; `-` where each run skipped.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = vec![
            self.conditions.iter().map(|condition| format!("{:>9}", condition.name())).collect(),
        ];
        for (name, row) in &self.rows {
            let cells: String = row.iter().map(|tally| format!("{:>9}", tally.text())).collect();
            lines.push(format!("{cells}  {name}"));
        }
        lines.join("\n") + "\n"
    }
}

impl Tally {
    fn text(self) -> String {
        match self.passed + self.failed {
            0 => "-".into(),
            runs => format!("{}/{runs}", self.passed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::listing::tests::cases;

    #[test]
    fn a_table_counts_by_test_and_condition() {
        let both = [Condition::Frozen, Condition::Memory];
        let mut table = Table::new(&cases("p", &["a", "b"]), &both);
        table.add("p::a", Condition::Frozen, &Verdict::Passed);
        table.add("p::b", Condition::Memory, &Verdict::Skipped("no root".into()));
        assert!(!table.has_failed());
        table.add("p::a", Condition::Frozen, &Verdict::Failed("exit code 101".into()));
        assert!(table.has_failed());
        let expected = "   frozen   memory\n      1/2        -  p::a\n        -        -  p::b\n";
        assert_eq!(table.text(), expected);
    }
}
