//! Who went before the measured threads: tasks in rows, series in columns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::peaks::{Blame, Cause};

/// Who held up whom, in late wake-ups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preempted {
    /// Whom: the series.
    pub series: Vec<String>,
    /// Who: a row a task, the one that took most time first.
    pub rows: Vec<Preemptor>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preemptor {
    /// Its name.
    pub task: String,
    /// What it took from each series, in the order of [`Preempted::series`].
    pub cells: Vec<TaskShare>,
}

/// What one task took from one series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskShare {
    /// Late wake-ups in which it did.
    pub times: u64,
    /// How much together, ns.
    pub ns: u64,
}

impl Preemptor {
    /// What it took from all series together.
    #[must_use]
    pub fn all(&self) -> TaskShare {
        self.cells.iter().fold(TaskShare::default(), |all, cell| all.plus(*cell))
    }
}

impl TaskShare {
    const fn plus(self, other: Self) -> Self {
        Self { times: self.times.saturating_add(other.times), ns: self.ns.saturating_add(other.ns) }
    }
}

/// Who went before whom, as all late wake-ups were blamed; columns in the order of `series`, those
/// that nobody went before left out.
#[must_use]
pub fn preempted(blame: &Blame, series: &[&str]) -> Preempted {
    let mut cells: BTreeMap<(&str, &str), TaskShare> = BTreeMap::new();
    for (cause, times, ns) in blame.buckets.iter().flat_map(|bucket| &bucket.parts) {
        let of = blame.causes.get(*cause as usize);
        if let Some(of) = of.filter(|of| of.cause == Cause::Thread) {
            let cell = cells.entry((of.name.as_str(), of.series.as_str())).or_default();
            *cell = cell.plus(TaskShare { times: *times, ns: *ns });
        }
    }
    let is_hit = |own: &&&str| cells.keys().any(|(_, series)| series == *own);
    let series: Vec<&str> = series.iter().filter(is_hit).copied().collect();
    let mut tasks: Vec<&str> = cells.keys().map(|(task, _)| *task).collect();
    tasks.dedup();
    let row = |task: &str| Preemptor {
        task: task.to_owned(),
        cells: series
            .iter()
            .map(|series| cells.get(&(task, *series)).copied().unwrap_or_default())
            .collect(),
    };
    let mut rows: Vec<Preemptor> = tasks.into_iter().map(row).collect();
    rows.retain(|row| row.all().times > 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.all().ns));
    Preempted { series: series.into_iter().map(str::to_owned).collect(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, CauseOf, LatencyBucket};

    #[test]
    fn rows_are_tasks_and_columns_the_series_that_were_hit() {
        let of = |series: &str, cause, name: &str| CauseOf {
            series: series.into(),
            cause,
            name: name.into(),
            basis: Basis::Measured,
        };
        let bucket = |parts| LatencyBucket { low_ns: 0, wakeups: 0, ns: 0, parts };
        let blame = Blame {
            causes: vec![
                of("cpu0", Cause::Thread, "small"),
                of("cpu2", Cause::Thread, "big"),
                of("cpu0", Cause::Thread, "big"),
                of("cpu1", Cause::Softirq, "NET_RX"),
            ],
            buckets: vec![
                bucket(vec![(0, 1, 50), (1, 2, 100)]),
                bucket(vec![(1, 1, 200), (2, 1, u64::MAX), (3, 4, 900), (77, 1, 1)]),
            ],
            ..Blame::default()
        };
        let found = preempted(&blame, &["cpu0", "cpu1", "cpu2"]);
        assert_eq!(found.series, ["cpu0", "cpu2"]);
        let rows: Vec<_> = found.rows.iter().map(|row| row.task.as_str()).collect();
        assert_eq!(rows, ["big", "small"]);
        let cell = |times, ns| TaskShare { times, ns };
        assert_eq!(found.rows[0].cells, [cell(1, u64::MAX), cell(3, 300)]);
        assert_eq!(found.rows[0].all(), cell(4, u64::MAX));
        assert_eq!(found.rows[1].cells, [cell(1, 50), cell(0, 0)]);
        assert_eq!(preempted(&Blame::default(), &["cpu0"]), Preempted::default());
    }
}
