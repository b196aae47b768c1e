//! Intervals on their way to the disk, one series after the other.

use std::{io, sync::atomic::AtomicBool};

use super::{DrainInputs, Thread, pauses};
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
        series.iter_mut().for_each(|(reader, _)| reader.read());
        found.iter().for_each(FoundSeries::read);
        let known = series.iter().map(|(reader, _)| reader.interval(start_s, length_s));
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
