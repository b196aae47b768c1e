//! What a row of a histogram says of its run and its series, besides its bucket: the same in
//! Parquet, in CSV and in what is merged.

use crate::run::{Document, SeriesSummary};

/// A run and a series of it, as each row of its buckets repeats them.
#[derive(Debug, Clone)]
pub(super) struct HistogramRow<'a> {
    /// Name of the machine; empty where the record does not say.
    pub(super) host: &'a str,
    /// `uname -r`
    pub(super) kernel: &'a str,
    /// The id of the run.
    pub(super) run: &'a str,
    pub(super) series: &'a str,
    /// `valid`, `weakened` or `invalid`.
    pub(super) verdict: &'static str,
    /// The class of hardware; empty where the record does not say.
    pub(super) cpu_model: &'a str,
    pub(super) probe: &'a str,
    /// Names of the loads, `+` between them; empty where there was none.
    pub(super) load: String,
    /// When the run began, ns since 1970 UTC.
    pub(super) started_ns: i64,
    pub(super) duration_ns: u64,
    summary: &'a SeriesSummary,
}

impl<'a> HistogramRow<'a> {
    pub(super) fn of(document: &'a Document, series: &'a SeriesSummary) -> Self {
        let facts = &document.facts;
        let loads: Vec<&str> = document.loads.iter().map(|load| load.name.as_str()).collect();
        let started = document.started_at.parse::<jiff::Timestamp>();
        let started = started.map_or(0, |started| started.as_nanosecond());
        Self {
            host: &facts.hostname,
            kernel: &facts.kernel,
            run: &document.id,
            series: &series.name,
            verdict: document.validity.as_str(),
            cpu_model: facts.cpu_model.as_deref().unwrap_or_default(),
            probe: document.probe.name(),
            load: loads.join("+"),
            started_ns: i64::try_from(started).unwrap_or(i64::MAX),
            duration_ns: document.duration_ns,
            summary: series,
        }
    }

    /// Start, length, samples, early, above, smallest and largest. A row exists only where there is
    /// a sample, which has a smallest and a largest.
    pub(super) fn totals(&self) -> [i64; 7] {
        let own = self.summary;
        let [duration, samples, early, above] = [self.duration_ns, own.count, own.early, own.above]
            .map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        let (min, max) = (own.min.unwrap_or(0), own.max.unwrap_or(0));
        [self.started_ns, duration, samples, early, above, min, max]
    }
}
