//! `series.hlog` and `live.hlog`, followed: what each series has counted by now.

use std::{collections::HashMap, io::ErrorKind, path::PathBuf};

use tardy_hot::{
    histogram::{highest_of, lowest_of},
    tally::Totals,
};

use super::{
    minute::LastMinute,
    sparse::{self, Buckets},
    tail::Tail,
};
use crate::limits::follow::{LARGEST_LIVE, MOST_BYTES};
use crate::limits::record::MOST_FOUND;
use crate::run::{
    counts::SeriesCounts,
    document::Document,
    files,
    hlog::{self, IntervalSpan},
    series_name::stage_of,
    summary::SeriesHead,
    writer::names,
};

/// Times in the log are rounded to 1 ms.
const ROUNDED_S: f64 = 0.002;

/// A series of whole latencies while its run is in progress.
#[derive(Debug, Clone)]
pub struct FollowedSeries {
    /// What it is measured as.
    pub head: SeriesHead,
    /// Exact totals since the start; `count` may run ahead of the histogram by a sample.
    pub totals: Totals,
    /// From when to when the largest came, s since the start; absent without samples.
    pub worst_s: Option<(f64, f64)>,
    /// The largest of each of the last seconds.
    pub minute: LastMinute,
    /// The end of what is in `series.hlog`, s.
    end_s: f64,
    /// What was taken from the interval in progress.
    live: Buckets,
    /// The end of that, s.
    live_end_s: f64,
}

impl FollowedSeries {
    fn new(head: SeriesHead) -> Self {
        Self {
            head,
            totals: Totals::NONE,
            worst_s: None,
            minute: LastMinute::default(),
            end_s: 0.0,
            live: Buckets::new(),
            live_end_s: 0.0,
        }
    }

    /// Exact totals, which come behind each interval.
    fn take_totals(&mut self, totals: Totals, span: Option<(f64, f64)>) {
        if totals.count > 0 && (self.totals.count == 0 || totals.max_ns > self.totals.max_ns) {
            self.worst_s = span;
        }
        self.totals = totals;
    }
}

/// The log of a run, followed.
#[derive(Debug)]
pub(super) struct SeriesLog {
    log: Tail,
    live: PathBuf,
    counts: SeriesCounts,
    series: Vec<FollowedSeries>,
    /// The number of each series; none of those that are not followed.
    numbers: HashMap<String, Option<usize>>,
    /// Whether series that are not in the record are to be followed.
    finds: bool,
    /// The end of the youngest interval, s.
    pub end_s: f64,
    /// What is wrong with it: it is read no further.
    pub damage: Option<String>,
}

/// One interval with its totals.
struct Entry {
    number: usize,
    span: IntervalSpan,
    counts: Buckets,
}

impl SeriesLog {
    pub(super) fn new(directory: &std::path::Path, document: &Document, finds: bool) -> Self {
        let heads = document.series.iter().filter(|series| !series.is_stage());
        let series: Vec<_> = heads.map(|series| FollowedSeries::new(series.head())).collect();
        let own = series.iter().enumerate().rev();
        let mut numbers: HashMap<String, Option<usize>> =
            own.map(|(number, series)| (series.head.name.clone(), Some(number))).collect();
        for stage in document.series.iter().filter(|series| series.is_stage()) {
            numbers.entry(stage.name.clone()).or_insert(None);
        }
        Self {
            log: Tail::new(directory.join(names::SERIES)),
            live: directory.join(names::LIVE),
            counts: SeriesCounts::new(series.len()),
            series,
            numbers,
            finds,
            end_s: 0.0,
            damage: None,
        }
    }

    pub(super) fn series(&self) -> &[FollowedSeries] {
        &self.series
    }

    /// As [`SeriesCounts::quantiles`], at most the largest that was measured.
    pub(super) fn quantiles(&self, number: usize, shares: &[f64]) -> Vec<Option<i64>> {
        let max_ns = self.series.get(number).map_or(i64::MAX, |series| series.totals.max_ns);
        let found = self.counts.quantiles(number, shares);
        found.into_iter().map(|found| found.map(|ns| ns.min(max_ns))).collect()
    }

    /// Reads what is new; how much of the log is read, from 0 to 1.
    pub(super) fn look(&mut self) -> f64 {
        if self.damage.is_some() {
            return 1.0;
        }
        // Before the log: what ends up there meanwhile is then known to be there.
        let live = files::read(&self.live, LARGEST_LIVE);
        let appended = match self.log.look(MOST_BYTES) {
            Ok(appended) => appended,
            Err(error) => {
                self.damage = Some(format!("{} cannot be read: {error}", names::SERIES));
                return 1.0;
            }
        };
        if appended.is_new {
            self.forget();
        }
        if let Err(what) = self.take(&appended.lines, false) {
            self.damage = Some(format!("{} is damaged: {what}", names::SERIES));
            return 1.0;
        }
        if appended.left > MOST_BYTES as u64 {
            let whole = self.log.read() + appended.left;
            return self.log.read() as f64 / whole as f64;
        }
        match live {
            Ok(live) => {
                if let Err(what) = self.take(&live, true) {
                    self.damage = Some(format!("{} is damaged: {what}", names::LIVE));
                }
            }
            // With short intervals the file does not exist.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.damage = Some(format!("{} cannot be read: {error}", names::LIVE)),
        }
        1.0
    }

    /// The log was cut off, and begins again.
    fn forget(&mut self) {
        let fresh = |series: &FollowedSeries| FollowedSeries::new(series.head.clone());
        self.series = self.series.iter().map(fresh).collect();
        self.counts = SeriesCounts::new(self.series.len());
        self.end_s = 0.0;
    }

    fn take(&mut self, lines: &[u8], is_live: bool) -> Result<(), &'static str> {
        let text = std::str::from_utf8(lines).map_err(|_| "it is not text")?;
        // Totals stand behind their interval.
        let mut last: Option<(usize, (f64, f64))> = None;
        for line in text.split_inclusive('\n') {
            if let Some((tag, totals)) = hlog::totals_of(line)? {
                let own = last.take().filter(|(number, _)| self.is_named(*number, &tag));
                if let Some((number, span)) = own
                    && let Some(series) = self.series.get_mut(number)
                {
                    series.take_totals(totals, Some(span));
                }
                continue;
            }
            let mut number = None;
            let read = sparse::interval(line, |tag| {
                number = self.number(tag);
                number.is_some()
            })?;
            if let (Some(number), Some((span, counts))) = (number, read) {
                let whole = (span.start_s, span.start_s + span.length_s);
                let entry = Entry { number, span, counts };
                last = self.count(entry, is_live).then_some((number, whole));
            }
        }
        Ok(())
    }

    fn is_named(&self, number: usize, tag: &str) -> bool {
        self.series.get(number).is_some_and(|series| series.head.name == tag)
    }

    /// The number of the series called `tag`, which may be found just now.
    fn number(&mut self, tag: &str) -> Option<usize> {
        if let Some(known) = self.numbers.get(tag) {
            return *known;
        }
        let is_followed = self.finds && stage_of(tag).is_none() && self.series.len() < MOST_FOUND;
        let number = is_followed.then(|| {
            let head = SeriesHead { name: tag.to_owned(), cpu: None, period_ns: None };
            self.series.push(FollowedSeries::new(head));
            self.counts.push()
        });
        if self.numbers.len() < 8 * MOST_FOUND {
            self.numbers.insert(tag.to_owned(), number);
        }
        number
    }

    /// Counts what is new in an interval; whether it is younger than what was known.
    fn count(&mut self, entry: Entry, is_live: bool) -> bool {
        let Entry { number, span, counts } = entry;
        let Some(series) = self.series.get_mut(number) else { return false };
        let end_s = span.start_s + span.length_s;
        if is_live && span.start_s <= series.end_s - ROUNDED_S {
            // It is in the log already.
            return false;
        }
        let fresh = without(&counts, &series.live);
        self.counts.add_buckets(number, &fresh);
        let from_s = span.start_s.max(series.live_end_s.min(end_s));
        let largest = fresh.last().map(|(index, _)| {
            // The bucket's upper edge is corrected by the totals behind it.
            highest_of(*index).min(series.totals.max_ns.max(lowest_of(*index)))
        });
        series.minute.note(from_s, end_s, largest);
        series.live = if is_live { counts } else { Buckets::new() };
        series.live_end_s = end_s;
        if !is_live {
            series.end_s = end_s;
        }
        self.end_s = self.end_s.max(end_s);
        true
    }
}

/// What is in the first and not in the second, which only has what the first has, too.
fn without(counts: &Buckets, known: &Buckets) -> Buckets {
    let mut known = known.iter().peekable();
    let mut fresh = Buckets::with_capacity(counts.len());
    for (index, count) in counts {
        while known.next_if(|(other, _)| other < index).is_some() {}
        let before = known.next_if(|(other, _)| other == index).map_or(0, |(_, count)| *count);
        if *count > before {
            fresh.push((*index, count - before));
        }
    }
    fresh
}
