//! What a file says of a run, as it is being read.

use hdrhistogram::Histogram;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tardy_hot::{histogram::HIGHEST_NS, tally::Totals};

use super::{
    hdr_counts::HdrBucket,
    source::ImportError,
    spools::{IntervalSpool, SampleSpool},
};
use crate::limits::import::{MOST_SERIES, MOST_VALUES};
use crate::run::{
    Facts, FigureHead, ImportCaveat, IntervalOf, SeriesHead, counts::SeriesCounts, hlog,
    hlog::IntervalSpan, peaks::Peak, series_name::name_of_series,
};

/// A unit of latencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LatencyUnit {
    /// 1 ns.
    Nanoseconds,
    /// 1,000 ns.
    #[default]
    Microseconds,
    /// 1,000,000 ns.
    Milliseconds,
    /// 1,000,000,000 ns.
    Seconds,
}

impl LatencyUnit {
    /// Its length, ns.
    pub(super) const fn ns(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }

    /// In words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
        }
    }
}

/// A series of it.
#[derive(Debug)]
pub(super) struct ImportedSeries {
    pub(super) head: SeriesHead,
    pub(super) totals: Totals,
}

/// A run as far as a file tells.
#[derive(Debug)]
pub struct ImportedData {
    /// The program that measured.
    pub(super) program: String,
    /// Its version; empty if it is not said.
    pub(super) version: String,
    /// Its command line; empty if it is not said.
    pub(super) command: String,
    /// The probe of tardy whose samples are the same thing.
    pub(super) same_as: Option<&'static str>,
    /// Parameters of what measured.
    pub(super) parameters: Map<String, Value>,
    pub(super) facts: Facts,
    pub(super) started_at: Option<Timestamp>,
    pub(super) duration_ns: Option<u64>,
    pub(super) series: Vec<ImportedSeries>,
    /// Results that are not latencies, with the values of each.
    pub(super) figures: Vec<(FigureHead, Vec<f64>)>,
    pub(super) caveats: Vec<ImportCaveat>,
    /// Late samples of which the file says why they were late.
    pub(super) peaks: Vec<Peak>,
    /// Numbers of series whose mean the file does not state, and nothing else tells.
    pub(super) without_mean: Vec<usize>,
    /// System management interrupts that the file counts.
    pub(super) smis: u64,
    /// SHA-256 of the unpacked file, in hexadecimal digits.
    pub(crate) content_sha256: String,
    counts: SeriesCounts,
    pub(super) intervals: IntervalSpool,
    pub(super) samples: SampleSpool,
}

impl ImportedData {
    /// Of a file of `program`, of which nothing has been read.
    pub(super) fn new(program: &str, same_as: Option<&'static str>) -> Self {
        Self {
            program: program.into(),
            version: String::new(),
            command: String::new(),
            same_as,
            parameters: Map::new(),
            facts: Facts::default(),
            started_at: None,
            duration_ns: None,
            series: Vec::new(),
            figures: Vec::new(),
            caveats: Vec::new(),
            peaks: Vec::new(),
            without_mean: Vec::new(),
            smis: 0,
            content_sha256: String::new(),
            counts: SeriesCounts::new(0),
            intervals: IntervalSpool::default(),
            samples: SampleSpool::default(),
        }
    }

    /// The number of the series of this name, which is made where it is new. What would separate
    /// fields in the log of a run is escaped.
    pub(super) fn series(&mut self, name: &str, cpu: Option<u32>) -> Result<usize, ImportError> {
        let name = name_of_series(name);
        if let Some(at) = self.series.iter().position(|series| series.head.name == name) {
            return Ok(at);
        }
        if self.series.len() >= MOST_SERIES {
            return Err(ImportError::new(format!("it has more than {MOST_SERIES} series")));
        }
        let head = SeriesHead { name, cpu, period_ns: None };
        self.series.push(ImportedSeries { head, totals: Totals::NONE });
        Ok(self.counts.push())
    }

    /// A series of this CPU, beside those it has already: `cpu0`, `cpu0#1`.
    pub(super) fn cpu(&mut self, cpu: u32) -> Result<usize, ImportError> {
        let taken = |name: &str| self.series.iter().any(|series| series.head.name == name);
        let mut name = format!("cpu{cpu}");
        let mut further = 1;
        while taken(&name) {
            name = format!("cpu{cpu}#{further}");
            further += 1;
        }
        self.series(&name, Some(cpu))
    }

    /// Adds a value of a figure, which is made where it is new.
    pub(super) fn figure(&mut self, head: FigureHead, value: f64) -> Result<(), ImportError> {
        if let Some((_, values)) = self.figures.iter_mut().find(|(own, _)| *own == head) {
            if values.len() >= MOST_VALUES {
                let what = format!("it has more than {MOST_VALUES} values of {}", head.name);
                return Err(ImportError::new(what));
            }
            values.push(value);
            return Ok(());
        }
        if self.figures.len() >= MOST_SERIES {
            return Err(ImportError::new(format!("it has more than {MOST_SERIES} figures")));
        }
        self.figures.push((head, vec![value]));
        Ok(())
    }

    /// Adds `count` samples of this latency to a series.
    pub(super) fn add(&mut self, number: usize, latency_ns: i64, count: u64) {
        let Some(series) = self.series.get_mut(number).filter(|_| count > 0) else { return };
        let totals = &mut series.totals;
        totals.count = totals.count.saturating_add(count);
        let sum = latency_ns.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        totals.sum_ns = totals.sum_ns.saturating_add(sum);
        totals.min_ns = totals.min_ns.min(latency_ns);
        totals.max_ns = totals.max_ns.max(latency_ns);
        if latency_ns < 0 {
            totals.early = totals.early.saturating_add(count);
        } else if latency_ns > HIGHEST_NS {
            totals.above = totals.above.saturating_add(count);
        } else {
            self.counts.record(number, latency_ns, count);
        }
    }

    /// Adds a sample with its time, ns since anything that is the same for all of them.
    pub(super) fn sample(
        &mut self,
        number: usize,
        t_ns: i64,
        latency_ns: i64,
    ) -> Result<(), ImportError> {
        self.add(number, latency_ns, 1);
        Ok(self.samples.push(number, t_ns, latency_ns)?)
    }

    /// The times of the first and of the last sample, ns; nothing where samples have none.
    pub(super) const fn times_ns(&self) -> Option<(i64, i64)> {
        self.samples.times_ns()
    }

    /// Adds what a series had from a time on (s since the start, and how long). A sample is taken
    /// as the middle of its bucket; smallest and largest as the ends of theirs.
    pub(super) fn interval(
        &mut self,
        number: usize,
        (start_s, length_s): (f64, f64),
        buckets: &[HdrBucket],
        unit_ns: i64,
    ) -> Result<(), ImportError> {
        let ns = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).saturating_mul(unit_ns);
        let mut counts = hlog::empty();
        for HdrBucket { low, high, count } in buckets {
            let middle_ns = ns(low + (high - low) / 2);
            self.add(number, middle_ns, *count);
            if middle_ns <= HIGHEST_NS {
                counts.saturating_record_n(u64::try_from(middle_ns).unwrap_or(0), *count);
            }
        }
        let Some(series) = self.series.get_mut(number) else { return Ok(()) };
        if let (Some(first), Some(last)) = (buckets.first(), buckets.last()) {
            series.totals.min_ns = series.totals.min_ns.min(ns(first.low));
            series.totals.max_ns = series.totals.max_ns.max(ns(last.high));
        }
        let span = IntervalSpan { tag: series.head.name.clone(), start_s, length_s };
        Ok(self.intervals.push(&IntervalOf { span, counts, totals: series.totals })?)
    }

    /// A late sample of a series. Where the file has a table in this unit, whose largest latency is
    /// rounded down, the sample is in it, unless it is larger than all of that.
    pub(super) fn late(&mut self, number: usize, latency_ns: i64, table: Option<LatencyUnit>) {
        let Some(totals) = self.series.get_mut(number).map(|own| &mut own.totals) else { return };
        let upto_ns = table.map(|unit| totals.max_ns.saturating_add(unit.ns()));
        if totals.count > 0 && upto_ns.is_some_and(|upto_ns| latency_ns < upto_ns) {
            totals.max_ns = totals.max_ns.max(latency_ns);
        } else if totals.count > 0 && totals.above == totals.count {
            // A distribution of this one alone would be a false one.
            totals.count = totals.count.saturating_add(1);
            totals.above = totals.count;
            totals.sum_ns = totals.sum_ns.saturating_add(latency_ns);
            totals.min_ns = totals.min_ns.min(latency_ns);
            totals.max_ns = totals.max_ns.max(latency_ns);
            self.undistributed(number, 1);
        } else {
            self.add(number, latency_ns, 1);
        }
    }

    /// The mean of a series, where the file states it; samples beyond the last bin are in it.
    pub(super) fn set_mean(&mut self, number: usize, mean_ns: i64) {
        let Some(series) = self.series.get_mut(number) else { return };
        for caveat in &mut self.caveats {
            if let ImportCaveat::LatenciesHidden { series: of, mean_is_stated, .. } = caveat {
                *mean_is_stated |= *of == series.head.name;
            }
        }
        let count = i64::try_from(series.totals.count).unwrap_or(i64::MAX);
        series.totals.sum_ns = mean_ns.saturating_mul(count);
    }

    /// Of a series without a histogram: how many samples, the smallest, their mean and the largest.
    pub(super) fn summary(&mut self, number: usize, count: u64, [min, mean, max]: [i64; 3]) {
        let Some(series) = self.series.get_mut(number).filter(|_| count > 0) else { return };
        let sum_ns = mean.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        let (min_ns, max_ns) = (min.min(max), max);
        let none = Totals::NONE;
        series.totals = Totals { count, above: count, sum_ns, min_ns, max_ns, ..none };
        self.undistributed(number, count);
    }

    /// Notes samples of a series that are in no histogram.
    fn undistributed(&mut self, number: usize, count: u64) {
        // Stages are parts of samples that count already.
        let is_stage = self.series.get(number).is_some_and(|series| series.head.is_stage());
        let count = if is_stage { 0 } else { count };
        for caveat in &mut self.caveats {
            if let ImportCaveat::NoDistribution { samples } = caveat {
                *samples = samples.saturating_add(count);
                return;
            }
        }
        self.caveats.push(ImportCaveat::NoDistribution { samples: count });
    }

    /// Adds samples beyond the last bin, of which the largest of the series is known: they count as
    /// that, so that no percentile is too small, and the mean is an upper limit.
    pub(super) fn hidden(&mut self, number: usize, hidden: u64, from_ns: i64, max_ns: i64) {
        if hidden == 0 {
            return;
        }
        let taken_ns = max_ns.max(from_ns);
        self.add(number, taken_ns, hidden);
        let Some(series) = self.series.get(number) else { return };
        self.caveats.push(ImportCaveat::LatenciesHidden {
            series: series.head.name.clone(),
            hidden,
            samples: series.totals.count,
            from_ns,
            taken_ns,
            mean_is_stated: false,
        });
    }

    /// The mean that a file states of a series with samples beyond its last bin, if it can be the
    /// one of its bins and of those samples; `unit_ns` is what it may be rounded by.
    pub(super) fn mean_with_hidden(&mut self, number: usize, mean_ns: i64, unit_ns: i64) {
        let Some(series) = self.series.get(number) else { return };
        let name = &series.head.name;
        let hidden = self.caveats.iter().find_map(|caveat| match caveat {
            ImportCaveat::LatenciesHidden { series, hidden, from_ns, taken_ns, .. } => {
                (series == name).then(|| i128::from(*hidden) * i128::from(taken_ns - from_ns))
            }
            _ => None,
        });
        let Some(room) = hidden else { return };
        let (count, upper) = (i128::from(series.totals.count), i128::from(series.totals.sum_ns));
        let (mean, unit) = (i128::from(mean_ns), i128::from(unit_ns));
        if (mean - unit) * count <= upper && (mean + unit) * count >= upper - room {
            self.set_mean(number, mean_ns);
        }
    }

    /// The smallest that a file states of a series all of whose samples are beyond its last bin.
    pub(super) fn min_of_hidden(&mut self, number: usize, min_ns: i64) {
        let Some(series) = self.series.get_mut(number) else { return };
        let are_all = self.caveats.iter().any(|caveat| match caveat {
            ImportCaveat::LatenciesHidden { series: of, hidden, samples, .. } => {
                *of == series.head.name && hidden == samples
            }
            _ => false,
        });
        if are_all {
            series.totals.min_ns = series.totals.min_ns.min(min_ns);
        }
    }

    /// Of a loop that looks for gaps: turns that nothing disturbed.
    pub(super) fn leave_out_turns(&mut self, count: u64, upto_ns: i64) {
        for caveat in &mut self.caveats {
            if let ImportCaveat::TurnsLeftOut { turns, .. } = caveat {
                *turns = turns.saturating_add(count);
                return;
            }
        }
        self.caveats.push(ImportCaveat::TurnsLeftOut { turns: count, upto_ns });
    }

    /// Notes where the file states other counts than it has.
    pub(super) fn check_count(&mut self, number: usize, stated: u64) {
        let Some(series) = self.series.get(number) else { return };
        let found = series.totals.count;
        if found != stated {
            let series = series.head.name.clone();
            self.caveats.push(ImportCaveat::CountsDiffer { series, stated, found });
        }
    }

    /// A parameter of what measured.
    pub(super) fn parameter(&mut self, name: &str, value: impl Into<Value>) {
        self.parameters.insert(name.into(), value.into());
    }

    /// Whether each series counts as many samples as it has: in its histogram, before their time,
    /// and without a value in it; and whether the parts of each late sample sum to it.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let are_whole = self.peaks.iter().all(|peak| {
            let parts = peak.blame.iter().fold(0_u64, |sum, part| sum.saturating_add(part.ns));
            parts == peak.latency_ns.unsigned_abs()
        });
        let mut series = self.series.iter().enumerate();
        are_whole
            && series.all(|(number, ImportedSeries { totals, .. })| {
                let outside = totals.early.saturating_add(totals.above);
                totals.count >= self.counts.of(number).len().saturating_add(outside)
                    && (totals.count == 0 || totals.min_ns <= totals.max_ns)
            })
    }

    /// The counts of a series.
    pub(super) fn counts(&self, number: usize) -> Histogram<u64> {
        self.counts.of(number)
    }

    /// Refuses what says nothing.
    pub(super) fn checked(mut self) -> Result<Self, ImportError> {
        self.intervals.flush()?;
        self.samples.flush()?;
        if let (None, Some((first_ns, last_ns))) = (self.duration_ns, self.times_ns()) {
            let lasted_ns = u64::try_from(last_ns.saturating_sub(first_ns)).unwrap_or(0);
            self.duration_ns = (lasted_ns > 0).then_some(lasted_ns);
        }
        if let Some(refusal) = self.counts.refusal() {
            return Err(ImportError::new(refusal));
        }
        let turns = |caveat: &ImportCaveat| matches!(caveat, ImportCaveat::TurnsLeftOut { .. });
        let is_quiet = self.caveats.iter().any(turns);
        let is_quiet = is_quiet || !self.figures.is_empty();
        if !is_quiet && self.series.iter().all(|series| series.totals.count == 0) {
            return Err(ImportError::new("it has no sample"));
        }
        Ok(self)
    }
}
