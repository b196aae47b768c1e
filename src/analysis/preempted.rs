//! Who went before the measured threads: tasks in rows, series in columns.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use serde::{Deserialize, Serialize};

use crate::run::peaks::{Blame, Cause};

/// Rows times columns: with 256 CPUs more than a thousand tasks have a row each.
const MOST_CELLS: usize = 1 << 18;

/// Who held up whom, in late wake-ups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preempted {
    /// Whom: the series.
    pub series: Vec<String>,
    /// Who: a row a task, the one that took most time first. Where there are very many, those that
    /// took least share the last row, `1234 others`.
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
    fn new(task: &str, series: usize) -> Self {
        Self { task: task.to_owned(), cells: vec![TaskShare::default(); series] }
    }

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
/// that nobody went before left out. There are at most `MOST_CELLS` cells, however many tasks and
/// series a file names: in the last row those tasks are together that took least.
#[must_use]
pub fn preempted(blame: &Blame, series: &[&str]) -> Preempted {
    let cells = cells(blame);
    let hit: BTreeSet<&str> = cells.keys().map(|(_, series)| *series).collect();
    let series: Vec<&str> = series.iter().filter(|own| hit.contains(*own)).copied().collect();
    // The first of two series of one name has both.
    let columns: HashMap<&str, usize> =
        series.iter().enumerate().rev().map(|(column, series)| (*series, column)).collect();
    let mut tasks: HashMap<&str, TaskShare> = HashMap::new();
    for ((task, of), cell) in &cells {
        if columns.contains_key(of) {
            let all = tasks.entry(*task).or_default();
            *all = all.plus(*cell);
        }
    }
    let mut tasks: Vec<(&str, TaskShare)> = tasks.into_iter().collect();
    tasks.retain(|(_, all)| all.times > 0);
    tasks.sort_unstable_by_key(|(task, all)| (Reverse(all.ns), *task));
    let most = (MOST_CELLS / series.len().max(1)).max(1);
    let own_rows = if tasks.len() > most { most - 1 } else { tasks.len() };
    let mut rows: Vec<Preemptor> =
        tasks.iter().take(own_rows).map(|(task, _)| Preemptor::new(task, series.len())).collect();
    let rest = tasks.len() - own_rows;
    rows.extend((rest > 0).then(|| Preemptor::new(&format!("{rest} others"), series.len())));
    let places: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(row, (task, _))| (*task, row.min(own_rows))).collect();
    for ((task, of), cell) in &cells {
        let (row, column) = (places.get(task), columns.get(of));
        let own = row.and_then(|row| rows.get_mut(*row));
        if let Some(own) = own.zip(column).and_then(|(row, column)| row.cells.get_mut(*column)) {
            *own = own.plus(*cell);
        }
    }
    Preempted { series: series.into_iter().map(str::to_owned).collect(), rows }
}

/// What each task took from each series.
fn cells(blame: &Blame) -> BTreeMap<(&str, &str), TaskShare> {
    let mut cells: BTreeMap<(&str, &str), TaskShare> = BTreeMap::new();
    for (cause, times, ns) in blame.buckets.iter().flat_map(|bucket| &bucket.parts) {
        let of = blame.causes.get(*cause as usize);
        if let Some(of) = of.filter(|of| of.cause == Cause::Thread) {
            let cell = cells.entry((of.name.as_str(), of.series.as_str())).or_default();
            *cell = cell.plus(TaskShare { times: *times, ns: *ns });
        }
    }
    cells
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

    #[test]
    fn of_many_tasks_and_series_those_that_took_least_share_a_row() {
        let (tasks, series) = (5_000, 128);
        let names: Vec<String> = (0..series).map(|at| format!("cpu{at}")).collect();
        let of = |at: usize| CauseOf {
            series: names[at % series].clone(),
            cause: Cause::Thread,
            name: format!("task{at}"),
            basis: Basis::Measured,
        };
        let parts = (0..tasks).map(|at| (at as u32, 1, 10 + at as u64)).collect();
        let blame = Blame {
            causes: (0..tasks).map(of).collect(),
            buckets: vec![LatencyBucket { low_ns: 0, wakeups: 0, ns: 0, parts }],
            ..Blame::default()
        };
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = preempted(&blame, &columns);
        assert_eq!((found.series.len(), found.rows.len()), (series, MOST_CELLS / series));
        assert_eq!(found.rows[0].task, format!("task{}", tasks - 1));
        let rest = found.rows.last().unwrap();
        let together = tasks - MOST_CELLS / series + 1;
        assert_eq!(rest.task, format!("{together} others"));
        let ns = (0..together).map(|at| 10 + at as u64).sum();
        assert_eq!(rest.all(), TaskShare { times: together as u64, ns });
    }
}
