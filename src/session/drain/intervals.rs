//! Intervals on their way to the disk, one series after the other.

use std::{io, sync::atomic::AtomicBool};

use super::{super::interval_reader::IntervalReader, DrainInputs, Thread, pauses};
use crate::{
    probes::found_series::FoundSeries,
    run::{IntervalOf, RunWriter},
};

/// Takes intervals one after the other, with a pause after each.
type PutIntervals =
    fn(&mut RunWriter, &mut dyn Iterator<Item = IntervalOf>, &mut dyn FnMut()) -> io::Result<()>;

/// The approximate time to write one series that is found.
const EACH_NS: i64 = 2_000_000;

impl Thread {
    /// From one interval to the next at the least, ns: with hundreds of series writing them would
    /// be most of what this thread does.
    pub(super) fn least_ns(&self) -> i64 {
        i64::try_from(self.work.found.len()).unwrap_or(i64::MAX).saturating_mul(EACH_NS)
    }

    /// Hands what has come since the last interval to `put`, series by series: there may be many,
    /// and each takes a page of memory. All are read at its end, before the pauses: what comes in
    /// those is of the next one.
    pub(super) fn put_intervals(
        &mut self,
        now: i64,
        finished: &AtomicBool,
        found: &[FoundSeries],
        put: PutIntervals,
    ) -> io::Result<()> {
        let start_s = (self.interval_start_ns - self.work.start_ns) as f64 / 1e9;
        let length_s = (now - self.interval_start_ns).max(0) as f64 / 1e9;
        let DrainInputs { maker, series, cadence, .. } = &mut self.work;
        let readers = series.iter_mut().map(|(reader, _)| reader);
        let known = read_all(readers.collect(), start_s, length_s);
        found.iter().for_each(FoundSeries::read);
        let mut intervals =
            known.chain(found.iter().filter_map(|series| series.interval(start_s, length_s)));
        put(maker, &mut intervals, &mut pauses(*cadence, &mut self.used, finished))
    }

    pub(super) fn write_interval(&mut self, now: i64, finished: &AtomicBool) {
        // Those that are found meanwhile come with the next one.
        let found = self.work.found.all();
        let appended = self.put_intervals(now, finished, &found, RunWriter::append_intervals_with);
        if appended.is_ok() {
            self.work.series.iter_mut().for_each(|(reader, _)| reader.keep());
            found.iter().for_each(FoundSeries::keep);
            self.interval_start_ns = now;
        }
        self.note(appended, "series.hlog");
    }
}

/// Reads all series at once, and has an interval of each when its turn comes.
fn read_all(
    mut readers: Vec<&mut IntervalReader>,
    start_s: f64,
    length_s: f64,
) -> impl Iterator<Item = IntervalOf> {
    readers.iter_mut().for_each(|reader| reader.read());
    readers.into_iter().map(move |reader| reader.interval(start_s, length_s))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tardy_hot::wakeup::Series;

    use super::*;

    #[test]
    fn what_comes_while_intervals_are_written_is_of_the_next_one_for_every_series() {
        let series: [Arc<Series>; 3] = Default::default();
        let mut readers = series.clone().map(|own| IntervalReader::new("s", own));
        let mut write = || {
            let count = |interval: IntervalOf| {
                // Written slowly: a sample comes to each of them meanwhile.
                series.iter().for_each(|own| own.record(1_000));
                interval.counts.len()
            };
            let counts: Vec<u64> =
                read_all(readers.iter_mut().collect(), 0.0, 1.0).map(count).collect();
            readers.iter_mut().for_each(IntervalReader::keep);
            counts
        };
        assert_eq!([write(), write(), write()], [[0; 3], [3; 3], [3; 3]]);
    }
}
