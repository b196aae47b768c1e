//! The rows of a plan as the lab measures them: whole command lines, and what joins two boxes.

use crate::{lab::guest::nodes, plan::PlanRow};

/// One row of a plan, for a guest.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LabRow {
    /// As in [`PlanRow`].
    pub name: String,
    /// As in [`PlanRow`].
    pub line: usize,
    /// The arguments of `tardy` that measure under it: `run`, the probe, flags.
    pub arguments: Vec<String>,
    /// Those of the `tardy echo` in a second box; none where there is one box.
    pub far: Vec<String>,
}

impl LabRow {
    /// What a row of a plan is in a guest.
    #[must_use]
    pub fn of(row: &PlanRow) -> Self {
        let mut arguments = vec!["run".to_owned(), row.probe.clone()];
        arguments.extend(row.flags.iter().cloned());
        if row.far.is_some() {
            arguments.extend(nodes::way(&row.probe));
        }
        arguments.extend(row.loads.iter().map(|load| format!("--load={load}")));
        let far = row.far.clone().map(nodes::echo).unwrap_or_default();
        Self { name: row.name.clone(), line: row.line, arguments, far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_second_box_has_an_echo_and_the_probe_gets_its_address() {
        let text = "name = \"x\"\nboxes = 2\n[echo]\npriority = 80\n[run]\nsamples = 5\n\
                    [[load]]\nname = \"a\"\nprobe = \"pingpong\"\nuse = [\"idle\"]\n\
                    [[load]]\nname = \"b\"\nuse = []\n\
                    [[load]]\nname = \"alone\"\nuse = []\nboxes = 1\n";
        let plan = Plan::parse(text, "p.toml").unwrap();
        let rows: Vec<LabRow> = plan.rows.iter().map(LabRow::of).collect();
        let to = |at: usize| rows[at].arguments.iter().any(|word| word.starts_with("--to="));
        assert!(to(0) && !to(1), "a timer sends nothing");
        assert_eq!(rows[0].arguments[..3], ["run", "pingpong", "--samples=5"]);
        assert_eq!(rows[0].arguments.last().unwrap(), "--load=idle");
        assert_eq!(rows[0].far, nodes::echo(vec!["--priority=80".into()]));
        assert!(rows[2].far.is_empty() && !to(2));
    }
}
