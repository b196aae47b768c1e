//! What a row of a histogram says of its run and its series, besides its bucket: the same in
//! Parquet, in CSV and in what is merged.

use sha2::{Digest as _, Sha256};

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
    /// Names of the loads, `+` between them; empty without a load.
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

    /// One number for what is merged: the same for all histograms of one kernel, CPU model,
    /// verdict, probe, load and series, on every machine and in every version. An engine groups
    /// rows by a number many times as fast as by six texts. 63 bits of SHA-256: of 10^5 kinds two
    /// are the same with a probability of 5e-10.
    pub(super) fn merge_key(&self) -> i64 {
        let mut hash = Sha256::new();
        let load = self.load.as_str();
        for text in [self.kernel, self.cpu_model, self.verdict, self.probe, load, self.series] {
            hash.update(text);
            hash.update([0]);
        }
        let first = hash.finalize().iter().take(8).fold(0, |all, byte| all << 8 | i64::from(*byte));
        first & i64::MAX
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
