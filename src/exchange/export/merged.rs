//! Histograms of many runs added up, with exact percentiles: of each machine, and of all together.
//! `deploy/sql/merge.sql` computes the same rows from the Parquet rows of the same runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use super::{
    CountedRuns, check_size,
    counted::CountedRun,
    rows::{HistogramRow, RunColumns},
};
use crate::run::{alike::RunConditions, tracks::no_formula};

/// Percentiles in thousandths of a percent, so that their ranks are exact.
const PERCENTILES: [u64; 6] = [50_000, 90_000, 99_000, 99_900, 99_990, 99_999];

const COLUMNS: [&str; 29] = [
    "scope",
    "host",
    "machine",
    "labels",
    "kernel",
    "cpu_model",
    "verdict",
    "probe",
    "policy",
    "priority",
    "interval_ns",
    "load",
    "conditions",
    "conditions_key",
    "series",
    "machines",
    "runs",
    "samples",
    "early",
    "above",
    "counted",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "p99_999_ns",
    "min_ns",
    "max_ns",
];

/// What is merged: runs of one kernel, CPU model and verdict under equal conditions, and a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MergeGroup {
    kernel: String,
    cpu_model: String,
    verdict: &'static str,
    conditions: RunConditions,
    series: String,
}

impl MergeGroup {
    fn of(row: &HistogramRow<'_>) -> Self {
        let document = row.run.document;
        Self {
            kernel: document.facts.kernel.clone(),
            cpu_model: row.run.cpu_model().to_owned(),
            verdict: document.validity.as_str(),
            conditions: row.run.conditions.clone(),
            series: row.series.name.clone(),
        }
    }

    /// Cells of its columns.
    fn cells(&self) -> [String; 11] {
        let RunConditions { probe, policy, priority, interval_ns, load, .. } = &self.conditions;
        let text = |text: &str| no_formula(text).into_owned();
        [
            text(&self.kernel),
            text(&self.cpu_model),
            self.verdict.to_owned(),
            text(probe),
            text(policy),
            priority.to_string(),
            interval_ns.to_string(),
            text(load),
            text(&self.conditions.text()),
            self.conditions.key(),
            text(&self.series),
        ]
    }
}

/// Machines that a part of the rows is of.
#[derive(Debug, Default)]
struct MergeScope {
    name: &'static str,
    host: String,
    machine: String,
}

/// Added histograms.
#[derive(Debug, Default)]
struct Merged {
    machines: BTreeSet<String>,
    runs: u64,
    /// Those of one machine; if they changed meanwhile, the last in the alphabet, as in hosts.sql.
    labels: String,
    samples: u64,
    early: u64,
    above: u64,
    range: Option<(i64, i64)>,
    /// Highest value and count, by the lowest value.
    buckets: BTreeMap<u64, (u64, u64)>,
}

impl Merged {
    fn add(&mut self, run: &CountedRun, number: usize, row: &HistogramRow<'_>) {
        let series = row.series;
        let (min, max) = (series.min.unwrap_or(0), series.max.unwrap_or(0));
        self.machines.insert(row.run.machine.clone());
        // Each is handed over once. Two machines may give their runs the same id.
        self.runs += 1;
        if self.labels < row.run.labels {
            self.labels.clone_from(&row.run.labels);
        }
        self.samples = self.samples.saturating_add(series.count);
        self.early = self.early.saturating_add(series.early);
        self.above = self.above.saturating_add(series.above);
        let (low, high) = self.range.unwrap_or((min, max));
        self.range = Some((low.min(min), high.max(max)));
        for bucket in run.buckets(number) {
            let own = self.buckets.entry(bucket.low_ns).or_insert((bucket.high_ns, 0));
            own.1 = own.1.saturating_add(bucket.count);
        }
    }

    fn counted(&self) -> u64 {
        self.buckets.values().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The highest value of the first bucket up to which ceil(p N) samples lie, at most the largest
    /// latency. Products are compared, as a quotient would be rounded.
    fn percentile(&self, thousandths: u64) -> i64 {
        let wanted = u128::from(self.counted()) * u128::from(thousandths);
        let mut passed = 0_u128;
        let found = self.buckets.values().find(|(_, count)| {
            passed += u128::from(*count) * 100_000;
            passed >= wanted
        });
        let high = found.map_or(0, |(high, _)| i64::try_from(*high).unwrap_or(i64::MAX));
        high.min(self.range.map_or(high, |(_, max)| max))
    }
}

type Groups = BTreeMap<MergeGroup, Merged>;

fn record(csv: &mut csv::Writer<Vec<u8>>, scope: &MergeScope, groups: Groups) -> io::Result<()> {
    for (group, own) in groups {
        let (min, max) = own.range.unwrap_or_default();
        let sums = [own.samples, own.early, own.above, own.counted()];
        let ranks = PERCENTILES.map(|thousandths| own.percentile(thousandths));
        let sizes = (own.machines.len(), own.runs);
        let labels = if scope.machine.is_empty() { "" } else { &own.labels };
        let scope = [scope.name, &scope.host, &scope.machine, labels].map(no_formula);
        csv.serialize((&scope, group.cells(), sizes, sums, ranks, min, max))?;
        check_size(csv.get_ref().len())?;
    }
    Ok(())
}

/// Rows of [`COLUMNS`]: `scope` is `host` or `fleet`. Runs of a machine follow each other.
pub(super) fn write(runs: CountedRuns<'_>) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS)?;
    let mut fleet = Groups::new();
    let (mut host, mut of_host) = (MergeScope::default(), Groups::new());
    for run in runs {
        let run = run?;
        let columns = RunColumns::of(&run.document);
        if columns.machine != host.machine {
            record(&mut csv, &host, std::mem::take(&mut of_host))?;
            let (name, host_name) = ("host", columns.document.facts.hostname.clone());
            let machine = columns.machine.clone();
            host = MergeScope { name, host: host_name, machine };
        }
        for (number, series) in run.document.series.iter().enumerate() {
            if run.buckets(number).is_empty() {
                continue;
            }
            let row = HistogramRow { run: &columns, series };
            let group = MergeGroup::of(&row);
            fleet.entry(group.clone()).or_default().add(&run, number, &row);
            of_host.entry(group).or_default().add(&run, number, &row);
        }
    }
    record(&mut csv, &host, of_host)?;
    record(&mut csv, &MergeScope { name: "fleet", ..MergeScope::default() }, fleet)?;
    csv.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::counted::tests::{measured, text};

    #[test]
    fn two_machines_are_merged_and_stay_beside_it() {
        let mut other = measured();
        other.document.facts.hostname = "other".into();
        other.document.id = "other".into();
        let (host, first) = (measured().document.facts.hostname, measured().document);
        let written = text(write(&mut [measured(), other].into_iter().map(Ok)));
        let with = |scope: &str| -> Vec<Vec<String>> {
            let rows = written.lines().filter(|row| row.starts_with(scope));
            let mut rows: Vec<Vec<String>> = csv::ReaderBuilder::new()
                .has_headers(false)
                .from_reader(rows.collect::<Vec<_>>().join("\n").as_bytes())
                .records()
                .map(|row| row.unwrap().iter().map(str::to_owned).collect())
                .collect();
            rows.sort();
            rows
        };
        let (own, fleet) = (with(&format!("host,{host},")), with("fleet,"));
        assert_eq!(own.len(), fleet.len());
        assert!(!own.is_empty());
        for (one, both) in own.iter().zip(&fleet) {
            assert_eq!(both[15..17], ["2", "2"]);
            let count = |row: &[String]| row[20].parse::<u64>().unwrap();
            assert_eq!(count(both), 2 * count(one));
            // The same samples twice have the same percentiles, which are those of the record.
            assert_eq!(both[21..], one[21..]);
            let series = first.series.iter().find(|series| series.name == one[14]).unwrap();
            for (name, at) in [("50", 21), ("99", 23), ("99.9", 24), ("99.999", 26)] {
                assert_eq!(series.percentiles[name].to_string(), one[at], "{name}");
            }
        }
    }

    #[test]
    fn a_rank_beyond_what_doubles_hold_is_exact() {
        let half = 1_u64 << 61;
        let buckets = [(1, (1, half)), (3, (3, half))].into();
        let mut merged = Merged { range: Some((1, 3)), buckets, ..Merged::default() };
        assert_eq!(merged.percentile(50_000), 1);
        merged.buckets.insert(3, (3, half + 2));
        assert_eq!(merged.percentile(50_000), 3);
    }
}
