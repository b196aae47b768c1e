//! Plain tables: CSV and JSON, of histograms and of single samples.

use std::io;

use serde::Serialize;

use super::{
    check_size,
    counted::CountedRun,
    parquet::Output,
    rows::{COLUMNS, Column, HistogramRow, RunColumns},
};
use crate::run::{Document, Run, SeriesSummary, tracks::no_formula};

/// One a bucket that has samples, of every series. The same rows as [`super::parquet`] writes.
pub(super) fn write_histograms(runs: &[CountedRun]) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS.map(|(name, _)| name))?;
    for run in runs {
        let columns = RunColumns::of(&run.document);
        for (number, series) in run.document.series.iter().enumerate() {
            let row = HistogramRow { run: &columns, series };
            let mut cells = COLUMNS.map(|(_, column)| match column {
                Column::Text(text) => no_formula(text(&row)).into_owned(),
                Column::Number(number) => number(&row).to_string(),
                Column::Bucket(_) => String::new(),
            });
            for (bucket, place) in run.buckets(number).iter().zip(0..) {
                for (cell, (_, column)) in cells.iter_mut().zip(COLUMNS) {
                    if let Column::Bucket(number) = column {
                        *cell = number(bucket, place).to_string();
                    }
                }
                csv.write_record(&cells)?;
                check_size(csv.get_ref().len())?;
            }
        }
    }
    csv.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// Rows `series, t_ns, latency_ns`: one a sample.
pub(super) fn write_samples(run: &Run, out: &mut dyn Output) -> io::Result<()> {
    let names: Vec<_> = run.document.series.iter().map(|own| no_formula(&own.name)).collect();
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["series", "t_ns", "latency_ns"])?;
    let mut failed = Ok(());
    let read = run.samples(|number, sample| {
        if let (Ok(()), Some(name)) = (&failed, names.get(number)) {
            failed = csv.serialize((name, sample.t_ns, sample.latency_ns));
        }
    });
    failed?;
    read.map_err(io::Error::other)?;
    csv.flush()
}

#[derive(Serialize)]
struct RunWithHistograms<'a> {
    /// As `run.json`.
    record: &'a Document,
    histograms: Vec<SeriesHistogram>,
}

#[derive(Serialize)]
struct SeriesHistogram {
    series: String,
    /// Lowest value, highest value, and how often; ns.
    buckets: Vec<[u64; 3]>,
}

/// The record of each run, with the histograms of its series.
pub(super) fn write_json(runs: &[CountedRun]) -> io::Result<Vec<u8>> {
    let all: Vec<RunWithHistograms<'_>> = runs.iter().map(with_histograms).collect();
    let mut bytes = serde_json::to_vec(&all)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn with_histograms(run: &CountedRun) -> RunWithHistograms<'_> {
    let series = run.document.series.iter().enumerate();
    let histogram = |(number, own): (usize, &'_ _)| {
        let SeriesSummary { name, .. } = own;
        let buckets = run.buckets(number).into_iter();
        let buckets = buckets.map(|bucket| [bucket.low_ns, bucket.high_ns, bucket.count]);
        SeriesHistogram { series: name.clone(), buckets: buckets.collect() }
    };
    RunWithHistograms { record: &run.document, histograms: series.map(histogram).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::counted::tests::{measured, text};

    #[test]
    fn no_text_of_a_record_is_a_formula_to_a_spreadsheet() {
        let mut run = measured();
        let odd = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\r=1"];
        for (at, own) in odd.into_iter().enumerate() {
            let document = &mut run.document;
            document.facts.hostname = own.into();
            document.facts.kernel = odd[(at + 1) % odd.len()].into();
            document.facts.cpu_model = Some(odd[(at + 2) % odd.len()].into());
            document.id = odd[(at + 3) % odd.len()].into();
            document.series[0].name = odd[(at + 4) % odd.len()].into();
            document.loads[0].name = odd[(at + 5) % odd.len()].into();
            document.setup.found.policy = Some(odd[at].into());
            document.facts.labels = [(odd[at].into(), odd[at].into())].into();
            let rows = text(write_histograms(std::slice::from_ref(&run)));
            let mut table = csv::Reader::from_reader(rows.as_bytes());
            for row in table.records().map(Result::unwrap) {
                for (at, cell) in row.iter().enumerate() {
                    let is_number = cell.parse::<i64>().is_ok();
                    assert!(is_number || !cell.starts_with(odd.map(first)), "{at}: {cell:?}");
                }
            }
        }
    }

    fn first(text: &str) -> char {
        text.chars().next().unwrap()
    }

    #[test]
    fn rows_and_json_have_every_count() {
        let run = measured();
        let all = run.document.series.len();
        let expected: u64 = (0..all).flat_map(|at| run.buckets(at)).map(|own| own.count).sum();
        let runs = [run];
        let rows = text(write_histograms(&runs));
        let mut table = csv::Reader::from_reader(rows.as_bytes());
        let counts = table.records().map(|row| row.unwrap()[6].parse::<u64>().unwrap());
        assert_eq!(counts.sum::<u64>(), expected);
        assert!(rows.starts_with("host,kernel,run,series,low_ns,high_ns,count,verdict,"), "{rows}");
        let json: serde_json::Value = serde_json::from_str(&text(write_json(&runs))).unwrap();
        let buckets = json[0]["histograms"].as_array().unwrap().iter();
        let buckets = buckets.flat_map(|own| own["buckets"].as_array().unwrap());
        assert_eq!(buckets.map(|own| own[2].as_u64().unwrap()).sum::<u64>(), expected);
        assert_eq!(json[0]["record"]["id"], runs[0].document.id);
    }
}
