//! Series that are found while a probe measures, and were not known before: those of threads of
//! others, which come and go.
//!
//! There may be many, so that each takes little memory: only buckets that were counted in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tardy_hot::tally::Totals;

use crate::run::{
    IntervalOf, SeriesHead, SeriesSummary,
    hlog::{self, IntervalSpan},
    summary::summarize,
};

/// Counts of one kind of time, which only grow. Buckets are as wide as who counts makes them.
#[derive(Debug, Default)]
pub struct TimeCounts(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    totals: Totals,
    /// As they were when it was read for the interval that may be written.
    read: Totals,
    period_ns: Option<i64>,
    /// By value: how often, and how much of that is in intervals that are written, or about to be.
    buckets: Vec<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    ns: u64,
    count: u64,
    written: u64,
    /// As it was when it was read for the interval that may be written.
    read: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self { totals: Totals::NONE, read: Totals::NONE, period_ns: None, buckets: Vec::new() }
    }
}

impl TimeCounts {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `count` times about `ns`.
    pub fn add(&self, ns: u64, count: u64) {
        let mut counts = self.counts();
        match counts.buckets.binary_search_by_key(&ns, |bucket| bucket.ns) {
            Ok(at) => {
                if let Some(bucket) = counts.buckets.get_mut(at) {
                    bucket.count += count;
                }
            }
            Err(at) => counts.buckets.insert(at, Bucket { ns, count, written: 0, read: 0 }),
        }
    }

    /// Adds the exact totals of what was added: how often, their sum, the extremes, and those
    /// without a bucket.
    pub fn add_totals(&self, count: u64, sum_ns: i64, extremes_ns: (i64, i64), above: u64) {
        let totals = &mut self.counts().totals;
        totals.count += count;
        totals.sum_ns = totals.sum_ns.saturating_add(sum_ns);
        totals.min_ns = totals.min_ns.min(extremes_ns.0);
        totals.max_ns = totals.max_ns.max(extremes_ns.1);
        totals.above += above;
    }

    /// What its schedule is, and how many periods passed without a sample.
    pub fn set_schedule(&self, period_ns: i64, missed: u64) {
        let mut counts = self.counts();
        counts.period_ns = Some(period_ns);
        counts.totals.missed = missed;
    }

    /// The totals by now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counts().totals
    }

    /// The value at or below which `per_mille` of a thousand lie, ns; `None` without any.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<i64> {
        let counts = self.counts();
        let all: u64 = counts.buckets.iter().map(|bucket| bucket.count).sum();
        let rank = (all * per_mille).div_ceil(1000).max(1);
        let mut passed = 0;
        let bucket = counts.buckets.iter().find(|bucket| {
            passed += bucket.count;
            passed >= rank
        })?;
        i64::try_from(bucket.ns).ok().map(|ns| ns.min(counts.totals.max_ns))
    }
}

/// A series that was found.
#[derive(Debug, Clone)]
pub struct FoundSeries {
    /// Its name.
    pub name: String,
    /// What is counted.
    pub counts: Arc<TimeCounts>,
}

impl FoundSeries {
    /// Reads what has come since the last [`FoundSeries::keep`].
    pub fn read(&self) {
        let mut counts = self.counts.counts();
        counts.read = counts.totals;
        counts.buckets.iter_mut().for_each(|bucket| bucket.read = bucket.count);
    }

    /// What was read last; `None` if there was nothing.
    #[must_use]
    pub fn interval(&self, start_s: f64, length_s: f64) -> Option<IntervalOf> {
        let counts = self.counts.counts();
        let mut fresh = hlog::empty();
        for bucket in counts.buckets.iter().filter(|bucket| bucket.read > bucket.written) {
            fresh.saturating_record_n(bucket.ns, bucket.read - bucket.written);
        }
        let span = IntervalSpan { tag: self.name.clone(), start_s, length_s };
        (!fresh.is_empty()).then(|| IntervalOf { span, counts: fresh, totals: counts.read })
    }

    /// Its name, how many samples it has and the largest, where it is one of whole latencies of all
    /// threads of a name.
    #[must_use]
    pub fn at_a_glance(&self) -> Option<(String, u64, Option<i64>)> {
        let totals = self.counts.totals();
        let is_shown = !self.name.contains('/');
        let max = (totals.count > 0).then_some(totals.max_ns);
        is_shown.then(|| (self.name.clone(), totals.count, max))
    }

    /// Whether something has come since then.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.counts.counts().buckets.iter().any(|bucket| bucket.count > bucket.written)
    }

    /// What was read last has been written.
    pub fn keep(&self) {
        self.counts.counts().buckets.iter_mut().for_each(|bucket| bucket.written = bucket.read);
    }

    /// What the record says of it.
    #[must_use]
    pub fn summary(&self) -> SeriesSummary {
        let counts = self.counts.counts();
        let mut all = hlog::empty();
        for bucket in &counts.buckets {
            all.saturating_record_n(bucket.ns, bucket.count);
        }
        let head = SeriesHead { name: self.name.clone(), cpu: None, period_ns: counts.period_ns };
        summarize(&head, &all, &counts.totals)
    }
}

/// All that were found so far, in the order in which they were. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FoundSeriesList(Arc<Mutex<Vec<FoundSeries>>>);

impl FoundSeriesList {
    /// One more.
    pub fn push(&self, series: FoundSeries) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(series);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<FoundSeries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_were_not_kept_come_again_and_those_without_counts_do_not() {
        let series = FoundSeries { name: "app/7".into(), counts: Arc::default() };
        let read = |start_s, length_s| {
            series.read();
            series.interval(start_s, length_s)
        };
        assert!(read(0.0, 0.1).is_none());
        let add = |ns, count| {
            series.counts.add(ns, count);
            series.counts.add_totals(count, ns as i64 * count as i64, (ns as i64, ns as i64), 0);
        };
        add(5_000, 2);
        assert_eq!(read(0.0, 0.1).unwrap().counts.len(), 2);
        add(7_000, 1);
        let before = series.interval(0.0, 0.1).unwrap();
        assert_eq!((before.counts.len(), before.totals.count), (2, 2), "as it was read");
        let both = read(0.0, 0.2).unwrap();
        assert_eq!((both.counts.len(), both.totals.count, both.totals.max_ns), (3, 3, 7_000));
        add(5_000, 1);
        series.keep();
        assert!(series.is_fresh(), "one came after the reading");
        assert_eq!(read(0.2, 0.1).unwrap().counts.len(), 1);
        series.keep();
        assert!(read(0.3, 0.1).is_none() && !series.is_fresh());
        let summary = series.summary();
        assert_eq!((summary.count, summary.thread_of.as_deref()), (4, Some("app")));
        assert_eq!(
            (series.counts.quantile(500), series.counts.quantile(990)),
            (Some(5_000), Some(7_000))
        );
    }
}
