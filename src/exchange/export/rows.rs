//! What a row of a histogram says of its run, its series and its bucket: the same in Parquet, in
//! CSV and in what is merged.

use sha2::{Digest as _, Sha256};

use super::counted::CountedBucket;
use crate::run::{Document, SeriesSummary, alike::RunConditions};

/// Where the value of a column comes from.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// From the run or the series.
    Text(for<'a> fn(&'a HistogramRow<'_>) -> &'a str),
    /// The same, a number.
    Number(fn(&HistogramRow<'_>) -> i64),
    /// From the bucket and its place within the series.
    Bucket(fn(&CountedBucket, i64) -> i64),
}

/// A column by its name.
type NamedColumn = (&'static str, Column);

/// All columns, in their order.
pub(super) const COLUMNS: [NamedColumn; 30] = [
    ("host", Column::Text(|row| &row.run.document.facts.hostname)),
    ("kernel", Column::Text(|row| &row.run.document.facts.kernel)),
    ("run", Column::Text(|row| &row.run.document.id)),
    ("series", Column::Text(|row| &row.series.name)),
    ("low_ns", Column::Bucket(|bucket, _| whole(bucket.low_ns))),
    ("high_ns", Column::Bucket(|bucket, _| whole(bucket.high_ns))),
    ("count", Column::Bucket(|bucket, _| whole(bucket.count))),
    ("verdict", Column::Text(|row| row.run.document.validity.as_str())),
    ("cpu_model", Column::Text(|row| row.run.cpu_model())),
    ("probe", Column::Text(|row| &row.run.conditions.probe)),
    ("load", Column::Text(|row| &row.run.conditions.load)),
    ("started_ns", Column::Number(|row| row.run.started_ns)),
    ("duration_ns", Column::Number(|row| whole(row.run.document.duration_ns))),
    ("samples", Column::Number(|row| whole(row.series.count))),
    ("early", Column::Number(|row| whole(row.series.early))),
    ("above", Column::Number(|row| whole(row.series.above))),
    // A row exists only if there is a sample, which has a smallest and a largest.
    ("min_ns", Column::Number(|row| row.series.min.unwrap_or(0))),
    ("max_ns", Column::Number(|row| row.series.max.unwrap_or(0))),
    ("merge_key", Column::Number(|row| row.merge_key())),
    ("bucket", Column::Bucket(|_, place| place)),
    ("machine", Column::Text(|row| &row.run.machine)),
    ("labels", Column::Text(|row| &row.run.labels)),
    ("policy", Column::Text(|row| &row.run.conditions.policy)),
    ("priority", Column::Number(|row| i64::from(row.run.conditions.priority))),
    ("interval_ns", Column::Number(|row| row.run.conditions.interval_ns)),
    ("conditions", Column::Text(|row| &row.run.conditions_text)),
    ("conditions_key", Column::Text(|row| &row.run.conditions_key)),
    // More in rows that deploy/sql/fold.sql has merged.
    ("machines", Column::Number(|_| 1)),
    ("runs", Column::Number(|_| 1)),
    ("repeated", Column::Number(|_| 0)),
];

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What all rows of a run repeat.
#[derive(Debug)]
pub(super) struct RunColumns<'a> {
    pub(super) document: &'a Document,
    pub(super) conditions: RunConditions,
    /// Conditions without a separate column.
    pub(super) conditions_text: String,
    pub(super) conditions_key: String,
    /// See [`crate::run::Facts::machine_key`].
    pub(super) machine: String,
    /// `rack=r12,role=db`; empty without labels.
    pub(super) labels: String,
    /// When the run began, ns since 1970 UTC.
    pub(super) started_ns: i64,
}

impl<'a> RunColumns<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        let conditions = RunConditions::of_document(document);
        let started = document.started_at.parse::<jiff::Timestamp>();
        let started = started.map_or(0, |started| started.as_nanosecond());
        let label = |(name, value): (&String, &String)| format!("{name}={value}");
        Self {
            document,
            conditions_text: conditions.text(),
            conditions_key: conditions.key(),
            conditions,
            machine: document.facts.machine_key(),
            labels: document.facts.labels.iter().map(label).collect::<Vec<_>>().join(","),
            started_ns: i64::try_from(started).unwrap_or(i64::MAX),
        }
    }

    /// The class of hardware; empty if the record does not say.
    pub(super) fn cpu_model(&self) -> &'a str {
        self.document.facts.cpu_model.as_deref().unwrap_or_default()
    }
}

/// A run and a series of it, as each row of its buckets repeats them.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistogramRow<'a> {
    pub(super) run: &'a RunColumns<'a>,
    pub(super) series: &'a SeriesSummary,
}

impl HistogramRow<'_> {
    /// One number for what is merged: the same for all histograms of one kernel, CPU model,
    /// verdict, series and of equal conditions, on every machine and in every version. An engine
    /// groups rows by a number many times as fast as by texts. 63 bits of SHA-256: of 10^5 kinds
    /// two are the same with a probability of 5e-10.
    pub(super) fn merge_key(&self) -> i64 {
        let RunColumns { document, conditions_key, .. } = self.run;
        let (kernel, verdict) = (document.facts.kernel.as_str(), document.validity.as_str());
        let mut hash = Sha256::new();
        for text in [kernel, self.run.cpu_model(), verdict, conditions_key, &self.series.name] {
            hash.update(text);
            hash.update([0]);
        }
        let first = hash.finalize().iter().take(8).fold(0, |all, byte| all << 8 | i64::from(*byte));
        first & i64::MAX
    }
}
