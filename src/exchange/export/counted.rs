//! A run with the counts of its series: what formats of histograms are made of.

use hdrhistogram::Histogram;
use serde_json::Value;

use crate::{
    run::{Caveat, Document, ProbeRecord, Run, SeriesSummary, Status, counts::SeriesCounts},
    units::{count, many},
};

/// A bucket of a histogram: its lowest and its highest value, ns, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedBucket {
    pub(super) low_ns: u64,
    pub(super) high_ns: u64,
    pub(super) count: u64,
}

impl CountedBucket {
    /// What stands for its samples.
    pub(super) const fn middle_ns(&self) -> u64 {
        self.low_ns + (self.high_ns - self.low_ns) / 2
    }
}

/// Samples of an imported series that were beyond the last bin of their file, and are counted as
/// the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HiddenSamples {
    pub(super) count: u64,
    /// None of them is smaller, ns.
    pub(super) from_ns: u64,
    /// What they are counted as, ns.
    pub(super) taken_ns: u64,
}

/// A run and its counts.
#[derive(Debug)]
pub(crate) struct CountedRun {
    pub(crate) document: Document,
    counts: SeriesCounts,
    /// What all its latencies are multiples of, ns, where its file had whole units.
    step_ns: Option<u64>,
}

impl CountedRun {
    /// Reads the counts of a run.
    ///
    /// # Errors
    /// A log that is damaged, or has more counts than memory is given to.
    pub(crate) fn read(run: Run) -> Result<Self, String> {
        let mut counts = SeriesCounts::new(run.document.series.len());
        let damaged = |what: String| format!("{}: series.hlog: {what}", run.document.name);
        run.intervals(|number, _, interval| counts.add(number, &interval))
            .map_err(|error| damaged(error.to_string()))?;
        if let Some(refusal) = counts.refusal() {
            return Err(damaged(refusal));
        }
        if let Some(lack) = lack(&run.document, &counts) {
            return Err(damaged(lack));
        }
        let step_ns = step_ns(&run.document);
        Ok(Self { document: run.document, counts, step_ns })
    }

    /// What stands for the samples of a bucket, ns: of whole units the one in it, so that they stay
    /// what they were; where a bucket is wider than a unit, the one in its middle.
    pub(super) fn value_ns(&self, bucket: &CountedBucket) -> u64 {
        let middle_ns = bucket.middle_ns();
        let Some(step_ns) = self.step_ns else { return middle_ns };
        let first = bucket.low_ns.div_ceil(step_ns);
        let last = bucket.high_ns / step_ns;
        if first > last {
            return middle_ns;
        }
        (middle_ns.saturating_add(step_ns / 2) / step_ns).clamp(first, last) * step_ns
    }

    /// The number of buckets that have samples, in all series.
    pub(crate) fn recorded(&self) -> usize {
        self.counts.recorded()
    }

    /// The series of whole latencies, with their numbers.
    pub(super) fn wakeups(&self) -> impl Iterator<Item = (usize, &SeriesSummary)> {
        let series = self.document.series.iter().enumerate();
        series.filter(|(_, series)| !series.is_stage())
    }

    /// The same, and before them the responses of attached threads.
    pub(super) fn with_responses(&self) -> impl Iterator<Item = (usize, &SeriesSummary)> {
        let is_attached = matches!(self.document.probe, ProbeRecord::Attach(_));
        let series = self.document.series.iter().enumerate();
        let responses = series.filter(move |(_, series)| is_attached && series.is_response());
        responses.chain(self.wakeups())
    }

    /// The buckets of a series that have samples, in their order.
    pub(super) fn buckets(&self, number: usize) -> Vec<CountedBucket> {
        recorded(&self.counts.of(number))
    }

    /// By how much a sample may move where latencies are written in units of this length, ns;
    /// nothing where that is less than a unit.
    pub(crate) fn moves_ns(&self, unit_ns: u64) -> Option<u64> {
        let buckets = self.wakeups().flat_map(|(number, _)| self.buckets(number));
        let moves = buckets.map(|bucket| {
            let value_ns = self.value_ns(&bucket);
            value_ns.abs_diff(bucket.low_ns).max(value_ns.abs_diff(bucket.high_ns))
        });
        moves.max().filter(|ns| *ns >= unit_ns)
    }

    /// The samples of a series that its file did not have in bins.
    pub(super) fn hidden(&self, series: &SeriesSummary) -> Option<HiddenSamples> {
        let mut caveats = self.document.caveats.iter().filter(|own| own.code == "latencies_hidden");
        let is_its = |own: &&Caveat| {
            own.values.get("series").and_then(Value::as_str) == Some(series.name.as_str())
        };
        caveats.find(is_its).and_then(hidden_samples)
    }

    /// Those of several series together.
    pub(super) fn sum(&self, numbers: impl IntoIterator<Item = usize>) -> Histogram<u64> {
        self.counts.sum(numbers)
    }
}

/// What the log of a run that has ended lacks of the samples in its record, as that of a copy that
/// was cut off does.
fn lack(document: &Document, counts: &SeriesCounts) -> Option<String> {
    if matches!(document.status, Status::Running | Status::Crashed) {
        return None;
    }
    document.series.iter().enumerate().find_map(|(number, series)| {
        let outside = series.early.saturating_add(series.above);
        let (found, all) = (counts.count(number), series.count.saturating_sub(outside));
        (found < all).then(|| {
            format!(
                "it has {} of the {} of {}: it was cut off; copy the run again",
                count(found),
                many(all, "sample"),
                series.name
            )
        })
    })
}

/// What a caveat says of hidden samples.
fn hidden_samples(caveat: &Caveat) -> Option<HiddenSamples> {
    let value = |name: &str| caveat.values.get(name)?.as_u64();
    Some(HiddenSamples {
        count: value("hidden")?,
        from_ns: value("from_ns")?,
        taken_ns: value("taken_ns")?,
    })
}

/// The steps of a run whose latencies are whole units.
fn step_ns(document: &Document) -> Option<u64> {
    let rounded = document.caveats.iter().find(|own| own.code == "latencies_rounded")?;
    rounded.values.get("step_ns")?.as_u64().filter(|step_ns| *step_ns > 0)
}

/// The buckets that have samples.
pub(super) fn recorded(counts: &Histogram<u64>) -> Vec<CountedBucket> {
    let bucket = |bucket: hdrhistogram::iterators::IterationValue<u64>| {
        let value = bucket.value_iterated_to();
        CountedBucket {
            low_ns: counts.lowest_equivalent(value),
            high_ns: counts.highest_equivalent(value),
            count: bucket.count_since_last_iteration(),
        }
    };
    counts.iter_recorded().map(bucket).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;

    /// A run that tardy measured long ago.
    pub(in crate::exchange) fn measured() -> CountedRun {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        CountedRun::read(Run::open(&place).unwrap()).unwrap()
    }

    /// What a writer made, as text.
    pub(in crate::exchange) fn text(written: std::io::Result<Vec<u8>>) -> String {
        String::from_utf8(written.unwrap()).unwrap()
    }

    #[test]
    fn what_a_bucket_of_more_than_a_unit_moves_is_known() {
        let place = tempfile::tempdir().unwrap();
        let run = |name: &str, ns: u64| {
            let series = [("cpu0", vec![vec![ns; 20]])];
            CountedRun::read(crate::report::fixture::written(&place.path().join(name), &series))
        };
        assert_eq!(run("a", 900_000).unwrap().moves_ns(1_000), None);
        let moves_ns = run("b", 9_000_000).unwrap().moves_ns(1_000);
        assert!(moves_ns.is_some_and(|ns| (1_000..=9_000).contains(&ns)), "{moves_ns:?}");
    }

    #[test]
    fn a_log_that_was_cut_off_is_damaged_unless_the_run_was_killed() {
        let place = tempfile::tempdir().unwrap();
        let blocks = vec![vec![9_000; 20], vec![8_000; 20]];
        let run = crate::report::fixture::written(place.path(), &[("cpu0", blocks)]);
        let log = place.path().join("series.hlog");
        let text = std::fs::read_to_string(&log).unwrap();
        let last = text.rfind("Tag=").unwrap();
        std::fs::write(&log, &text[..last]).unwrap();
        let said = CountedRun::read(run.clone()).unwrap_err();
        let lack = "it has 20 of the 40 samples of cpu0: it was cut off; copy the run again";
        assert!(said.ends_with(lack), "{said}");
        let mut killed = run;
        killed.document.status = Status::Crashed;
        assert!(CountedRun::read(killed).is_ok());
    }

    #[test]
    fn every_sample_of_the_histogram_is_in_a_bucket() {
        let run = measured();
        for (number, series) in run.wakeups() {
            let buckets = run.buckets(number);
            let counted: u64 = buckets.iter().map(|bucket| bucket.count).sum();
            assert_eq!(counted, series.count - series.early - series.above);
            assert!(buckets.windows(2).all(|pair| pair[0].high_ns < pair[1].low_ns));
        }
    }
}
