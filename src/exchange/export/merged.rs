//! Histograms of many runs added up, with exact percentiles: of each machine, and of all together.
//! `deploy/sql/merge.sql` computes the same rows from the Parquet rows of the same runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use super::{CountedRuns, check_size, counted::CountedRun, rows::HistogramRow};
use crate::run::tracks::no_formula;

/// Percentiles in thousandths of a percent, so that their ranks are exact.
const PERCENTILES: [u64; 6] = [50_000, 90_000, 99_000, 99_900, 99_990, 99_999];

const COLUMNS: [&str; 22] = [
    "scope",
    "host",
    "kernel",
    "cpu_model",
    "verdict",
    "probe",
    "load",
    "series",
    "hosts",
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

/// What is merged: kernel, CPU model, verdict, probe, load, series.
type Key = [String; 6];

/// Added histograms.
#[derive(Debug, Default)]
struct Merged {
    hosts: BTreeSet<String>,
    runs: BTreeSet<String>,
    samples: i64,
    early: i64,
    above: i64,
    range: Option<(i64, i64)>,
    /// Highest value and count, by the lowest value.
    buckets: BTreeMap<u64, (u64, u64)>,
}

impl Merged {
    fn add(&mut self, run: &CountedRun, number: usize, row: &HistogramRow<'_>) {
        let [_, _, samples, early, above, min, max] = row.totals();
        self.hosts.insert(row.host.to_owned());
        self.runs.insert(row.run.to_owned());
        self.samples = self.samples.saturating_add(samples);
        self.early = self.early.saturating_add(early);
        self.above = self.above.saturating_add(above);
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

fn record(
    csv: &mut csv::Writer<Vec<u8>>,
    scope: [&str; 2],
    groups: BTreeMap<Key, Merged>,
) -> io::Result<()> {
    for (key, own) in groups {
        let (min, max) = own.range.unwrap_or_default();
        let sums = [own.samples, own.early, own.above];
        let ranks = PERCENTILES.map(|thousandths| own.percentile(thousandths));
        let sizes = (own.hosts.len(), own.runs.len());
        let (scope, key) = (scope.map(no_formula), key.each_ref().map(|text| no_formula(text)));
        csv.serialize((&scope, &key, sizes, sums, own.counted(), ranks, min, max))?;
        check_size(csv.get_ref().len())?;
    }
    Ok(())
}

/// Rows of [`COLUMNS`]: `scope` is `host` or `fleet`. Runs of a machine follow each other.
pub(super) fn write(runs: CountedRuns<'_>) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS)?;
    let mut fleet = BTreeMap::<Key, Merged>::new();
    let (mut host, mut of_host) = (String::new(), BTreeMap::<Key, Merged>::new());
    for run in runs {
        let run = run?;
        if run.document.facts.hostname != host {
            record(&mut csv, ["host", &host], std::mem::take(&mut of_host))?;
            host.clone_from(&run.document.facts.hostname);
        }
        for (number, series) in run.document.series.iter().enumerate() {
            if run.buckets(number).is_empty() {
                continue;
            }
            let row = HistogramRow::of(&run.document, series);
            let key = [row.kernel, row.cpu_model, row.verdict, row.probe, &row.load, row.series]
                .map(str::to_owned);
            fleet.entry(key.clone()).or_default().add(&run, number, &row);
            of_host.entry(key).or_default().add(&run, number, &row);
        }
    }
    record(&mut csv, ["host", &host], of_host)?;
    record(&mut csv, ["fleet", ""], fleet)?;
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
            assert_eq!(both[8..10], ["2", "2"]);
            let count = |row: &[String]| row[13].parse::<u64>().unwrap();
            assert_eq!(count(both), 2 * count(one));
            // The same samples twice have the same percentiles, which are those of the record.
            assert_eq!(both[14..], one[14..]);
            let series = first.series.iter().find(|series| series.name == one[7]).unwrap();
            for (name, at) in [("50", 14), ("99", 16), ("99.9", 17), ("99.999", 19)] {
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
