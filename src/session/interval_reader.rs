//! Turns counters that only grow into intervals: what came since the last one that was written.

use std::sync::Arc;

use hdrhistogram::Histogram;
use tardy_hot::{
    histogram::{HIGHEST_NS, LEN, index_of, lowest_of},
    tally::Totals,
    wakeup::Series,
};

use crate::run::{IntervalOf, hlog};

/// One series, watched from outside its measuring thread.
#[derive(Debug)]
pub(super) struct IntervalReader {
    name: String,
    series: Arc<Series>,
    /// Counts that are in written intervals, up to the largest latency so far: those of stages are
    /// short, and there are many.
    written: Vec<u64>,
    /// The reading that is not written yet: bucket and count.
    fresh: Vec<(usize, u64)>,
    /// Totals at that reading.
    read: Totals,
}

impl IntervalReader {
    /// Nothing written yet.
    #[must_use]
    pub(super) fn new(name: &str, series: Arc<Series>) -> Self {
        Self {
            name: name.into(),
            series,
            written: Vec::new(),
            fresh: Vec::new(),
            read: Totals::NONE,
        }
    }

    /// Reads what has come since the last [`IntervalReader::keep`].
    pub(super) fn read(&mut self) {
        let totals = self.series.tally.totals();
        self.fresh.clear();
        self.read = totals;
        // Nothing lies outside what the tally has seen, and that is a small part of the whole.
        let bound = |ns: i64| index_of(ns.clamp(0, HIGHEST_NS));
        if totals.count > 0 {
            for index in bound(totals.min_ns)..=bound(totals.max_ns) {
                let written = self.written.get(index).copied().unwrap_or(0);
                let fresh = self.series.histogram.count(index).saturating_sub(written);
                if fresh > 0 {
                    self.fresh.push((index, fresh));
                }
            }
        }
    }

    /// What was read last, `start_s` and `length_s` from the start of the run.
    pub(super) fn interval(&self, start_s: f64, length_s: f64) -> IntervalOf {
        let mut counts = hlog::empty();
        for (index, fresh) in &self.fresh {
            counts.saturating_record_n(lowest_of(*index) as u64, *fresh);
        }
        let span = hlog::IntervalSpan { tag: self.name.clone(), start_s, length_s };
        IntervalOf { span, counts, totals: self.read }
    }

    /// Of which series this is.
    #[must_use]
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What was counted so far.
    #[must_use]
    pub(super) fn totals(&self) -> Totals {
        self.series.tally.totals()
    }

    /// What was read last has been written.
    pub(super) fn keep(&mut self) {
        let needed = self.fresh.last().map_or(0, |(index, _)| index + 1);
        if needed > self.written.len() {
            self.written.resize(needed, 0);
        }
        for (index, fresh) in self.fresh.drain(..) {
            if let Some(written) = self.written.get_mut(index) {
                *written += fresh;
            }
        }
    }

    /// Everything so far. Exact once the measuring thread has ended.
    #[must_use]
    pub(super) fn total(&self) -> (Histogram<u64>, Totals) {
        let mut counts = hlog::empty();
        for index in 0..LEN {
            let count = self.series.histogram.count(index);
            if count > 0 {
                counts.saturating_record_n(lowest_of(index) as u64, count);
            }
        }
        (counts, self.series.tally.totals())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_were_not_kept_come_again_with_the_next() {
        let series = Arc::new(Series::default());
        let mut reader = IntervalReader::new("cpu0", Arc::clone(&series));
        series.record(5_000);
        series.record(-1);
        reader.read();
        assert_eq!(reader.interval(0.0, 0.1).counts.len(), 1);
        series.record(7_000);
        assert_eq!(reader.interval(0.0, 0.1).totals.count, 2, "one came after the reading");
        reader.read();
        let both = reader.interval(0.0, 0.2);
        assert_eq!((both.counts.len(), both.totals.count, both.totals.early), (2, 3, 1));
        reader.keep();
        reader.read();
        assert_eq!(reader.interval(0.2, 0.1).counts.len(), 0);
        assert_eq!(reader.total().0.len(), 2);
    }
}
