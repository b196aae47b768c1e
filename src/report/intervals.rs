//! The percentiles of a run with their intervals, from `series.hlog`: which samples lie beyond a
//! percentile, interval by interval of the log, says how far they depend on each other.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::analysis::steadiness::SeriesBlocks;
use crate::{
    analysis::percentile::{Backing, Exceedances, PercentileInterval, PooledExceedances},
    run::{
        CaveatKind, LatencyView, Run, SeriesSummary, counts::SeriesCounts, summary::PERCENTILES,
    },
};

/// The probability with which an interval holds its percentile.
const CONFIDENCE: f64 = 0.95;

/// Two intervals of the log are of the same time if they start within this; its times are rounded
/// to 1 ms.
const SAME_START_S: f64 = 0.0015;

/// The percentiles of each series of whole latencies, with intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunIntervals {
    /// The probability with which an interval holds its percentile.
    pub confidence: f64,
    /// The longest interval of the log, s: how late samples group within such a time is not seen.
    pub block_s: f64,
    /// `per_period` if scheduled periods were missed so often that wake-ups alone flatter; else
    /// `per_sample`.
    pub counted: LatencyView,
    /// In the order of the record; empty where the log is damaged.
    pub series: Vec<SeriesIntervals>,
    /// Those of all series together, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooled: Option<Vec<NamedInterval>>,
    /// What is wrong with the log.
    #[serde(skip)]
    pub damage: Option<CaveatKind>,
}

/// The percentiles of one series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesIntervals {
    /// The name of the series.
    pub name: String,
    /// As far as there are samples.
    pub percentiles: Vec<NamedInterval>,
    /// Whether the log has all samples in one interval, as that of an imported histogram: then
    /// nothing tells in which order they came.
    #[serde(skip)]
    pub is_unordered: bool,
}

/// A percentile and its interval; latencies in ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedInterval {
    /// As in `run.json`: `99.9`.
    pub percentile: String,
    /// Its value in this run.
    pub value_ns: u64,
    /// The lower end; `None` if not even that can be said.
    pub low_ns: Option<u64>,
    /// The upper end; `None` if `backing` is `too_few`.
    pub high_ns: Option<u64>,
    /// Samples of the series.
    pub samples: u64,
    /// The number of independent samples beyond the percentile that would say as much; null if how
    /// far samples depend on each other cannot be estimated.
    pub effective_beyond: Option<f64>,
    /// `sound` from 20 of these on, `few` from 10 on, `too_few` below.
    pub backing: &'static str,
}

impl NamedInterval {
    /// An interval under its name in `run.json`.
    #[must_use]
    pub fn new(percentile: &str, found: &PercentileInterval) -> Self {
        let known = found.support.dependence.is_some();
        Self {
            percentile: percentile.into(),
            value_ns: found.value_ns,
            low_ns: found.low_ns,
            high_ns: found.high_ns,
            samples: found.support.samples,
            effective_beyond: known.then_some(found.support.beyond),
            backing: match found.support.backing {
                Backing::Sound => "sound",
                Backing::Few => "few",
                Backing::TooFew => "too_few",
            },
        }
    }
}

/// What the log of a run holds: the counts of its series, and what lies beyond their percentiles.
#[derive(Debug)]
pub struct RunLog {
    counts: SeriesCounts,
    beyond: Vec<Option<Exceedances>>,
    together: Option<Together>,
    blocks: SeriesBlocks,
    block_s: f64,
    view: LatencyView,
}

/// What lies beyond the percentiles of all series of whole latencies together. What several series
/// have at the same time is one block, so that a stall of all CPUs counts once.
#[derive(Debug)]
struct Together {
    beyond: PooledExceedances,
    begun_s: f64,
}

impl RunLog {
    /// Reads the whole log of a run, in the view that its headline has.
    ///
    /// # Errors
    /// A log that is damaged, or has more counts than memory is given to.
    pub fn read(run: &Run) -> Result<Self, String> {
        Self::read_as(run, LatencyView::of(&run.document), false)
    }

    /// The same in a given view; also for all series together, where these are to be pooled.
    ///
    /// # Errors
    /// As above.
    pub fn read_as(run: &Run, view: LatencyView, pools: bool) -> Result<Self, String> {
        let series = &run.document.series;
        let mut together = pools.then(|| Together::new(run, view));
        let mut counts = SeriesCounts::new(series.len());
        let of_series = |own: &SeriesSummary| exceedances(own, view);
        let mut beyond: Vec<Option<Exceedances>> = series.iter().map(of_series).collect();
        let mut blocks = SeriesBlocks::new(series.len());
        let mut block_s = 0.0_f64;
        let read = run.intervals(|number, span, block| {
            if let (Some(own), Some(Some(beyond))) = (series.get(number), beyond.get_mut(number)) {
                let counted = view.counts(own, &block);
                block_s = block_s.max(span.length_s);
                counts.add(number, &counted);
                beyond.add(&counted);
                blocks.add(number, &span, &block);
                let all = together.iter_mut().filter(|_| !own.is_part());
                all.for_each(|all| all.add(span.start_s, &counted));
            }
        });
        let damage = read.err().map(|error| error.to_string()).or_else(|| counts.refusal());
        damage.map_or(Ok(Self { counts, beyond, together, blocks, block_s, view }), Err)
    }

    /// The intervals of every series.
    #[must_use]
    pub const fn blocks(&self) -> &SeriesBlocks {
        &self.blocks
    }

    /// The caveats of a run that follow from its log, which was read or could not be.
    #[must_use]
    pub fn caveats(run: &Run, read: &Result<Self, String>) -> Vec<CaveatKind> {
        match read {
            Ok(log) => log.blocks.caveats(&run.document),
            Err(what) => vec![CaveatKind::SeriesDamaged { what: what.clone() }],
        }
    }

    /// The counts of every series.
    #[must_use]
    pub const fn counts(&self) -> &SeriesCounts {
        &self.counts
    }

    /// The percentiles of all whole latencies together, where they were asked for; absent also for
    /// series that differ so much that telling them apart takes too much memory.
    #[must_use]
    pub fn pooled(&self, run: &Run) -> Option<Vec<NamedInterval>> {
        let series = run.document.series.iter().enumerate();
        let whole = series.filter(|(_, own)| !own.is_part()).map(|(number, _)| number);
        let total = self.counts.sum(whole);
        let max = run.document.wakeups().filter_map(|series| series.max).max();
        let beyond = self.together.as_ref()?.beyond.exceedances(&total, max)?;
        Some(named(PERCENTILES.iter(), &beyond.intervals(&total, max)))
    }
}

impl Together {
    fn new(run: &Run, view: LatencyView) -> Self {
        let of = |(name, percent): &(&str, f64)| {
            let own = || run.document.wakeups().filter_map(|own| view.percentiles(own).get(*name));
            let (low, high) = (own().min().copied(), own().max().copied());
            (*percent, low.unwrap_or(0), high.unwrap_or(0))
        };
        let beyond = PooledExceedances::new(&PERCENTILES.map(|percentile| of(&percentile)));
        Self { beyond, begun_s: f64::NEG_INFINITY }
    }

    fn add(&mut self, start_s: f64, block: &Histogram<u64>) {
        if (start_s - self.begun_s).abs() < SAME_START_S {
            self.beyond.add_to_last(block);
        } else {
            self.begun_s = start_s;
            self.beyond.add(block);
        }
    }
}

impl RunIntervals {
    /// The interval of a percentile, by its name, of a series.
    #[must_use]
    pub fn of_series(&self, series: &str, percentile: &str) -> Option<&NamedInterval> {
        let own = self.series.iter().find(|own| own.name == series)?;
        own.percentiles.iter().find(|own| own.percentile == percentile)
    }

    /// How many independent samples say as much as those of a series: of all its percentiles the
    /// fewest, as late samples come more in groups than others.
    #[must_use]
    pub fn effective(&self, series: &str) -> Option<f64> {
        let own = self.series.iter().find(|own| own.name == series)?;
        let of = |own: &NamedInterval| {
            let percent: f64 = own.percentile.parse().ok()?;
            Some(own.effective_beyond? / (1.0 - percent / 100.0))
        };
        own.percentiles.iter().filter_map(of).min_by(f64::total_cmp)
    }

    /// Whether nothing tells in which order the samples of a series came.
    #[must_use]
    pub fn is_unordered(&self, series: &str) -> bool {
        self.series.iter().any(|own| own.name == series && own.is_unordered)
    }

    /// Reads the log of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Self::of_read(run, &RunLog::read(run))
    }

    /// The intervals of a run whose log was read, or could not be.
    #[must_use]
    pub fn of_read(run: &Run, log: &Result<RunLog, String>) -> Self {
        let nothing = |what| Self {
            confidence: CONFIDENCE,
            block_s: 0.0,
            counted: LatencyView::of(&run.document),
            series: Vec::new(),
            pooled: None,
            damage: Some(CaveatKind::SeriesDamaged { what }),
        };
        // Values of the whole run beside a part of its log would say what is not so.
        log.as_ref().map_or_else(|what| nothing(what.clone()), |log| Self::of_log(run, log))
    }

    /// The intervals of a run whose log was read.
    #[must_use]
    pub fn of_log(run: &Run, log: &RunLog) -> Self {
        let series = &run.document.series;
        let of = |(number, (own, beyond)): (usize, (&SeriesSummary, &Option<Exceedances>))| {
            let found = beyond.as_ref()?.intervals(&log.counts.of(number), own.max);
            let (name, own) = (own.name.clone(), log.view.percentiles(own));
            let names = PERCENTILES.iter().filter(|(name, _)| own.contains_key(*name));
            let is_unordered = log.blocks.of(number).len() == 1;
            Some(SeriesIntervals { name, percentiles: named(names, &found), is_unordered })
        };
        let all = series.iter().zip(&log.beyond).enumerate();
        let series = all.filter_map(of).collect();
        let (block_s, counted) = (log.block_s, log.view);
        Self { confidence: CONFIDENCE, block_s, counted, series, pooled: None, damage: None }
    }
}

/// Intervals under their names.
fn named<'a>(
    names: impl Iterator<Item = &'a (&'a str, f64)>,
    found: &[PercentileInterval],
) -> Vec<NamedInterval> {
    names.zip(found).map(|((name, _), found)| NamedInterval::new(name, found)).collect()
}

/// A counter for the percentiles of a series of whole latencies that has any.
fn exceedances(series: &SeriesSummary, view: LatencyView) -> Option<Exceedances> {
    let own = view.percentiles(series);
    let value = |(name, percent): &(&str, f64)| Some((*percent, *own.get(*name)?));
    let values: Vec<(f64, u64)> = PERCENTILES.iter().filter_map(value).collect();
    let is_judged = !series.is_stage() || series.is_response();
    (is_judged && !values.is_empty()).then(|| Exceedances::new(&values))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{
        analysis::{percentile::of_samples, random::SplitMix64},
        report::fixture,
        run::names,
    };

    /// Blocks of 200 independent latencies of 1 to 1,000 us, each equally likely.
    fn blocks(count: usize) -> Vec<Vec<u64>> {
        let mut random = SplitMix64::new(7);
        let mut latency = |_: usize| 1_000 + (random.uniform() * 999_000.0) as u64;
        (0..count).map(|_| (0..200).map(&mut latency).collect()).collect()
    }

    fn of<'a>(found: &'a RunIntervals, percentile: &str) -> &'a NamedInterval {
        let all = &found.series[0].percentiles;
        all.iter().find(|own| own.percentile == percentile).unwrap()
    }

    #[test]
    fn the_intervals_of_a_run_are_those_of_its_samples() {
        let place = tempfile::tempdir().unwrap();
        let blocks = blocks(100);
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks.clone())]);
        let found = RunIntervals::of(&run);
        assert_eq!((found.damage.as_ref(), found.series.len()), (None, 1));
        assert_eq!(found.block_s, 0.1);
        let samples = blocks.concat();
        for (name, percent) in [("50", 50.0), ("90", 90.0), ("99", 99.0)] {
            let (own, raw) = (of(&found, name), of_samples(percent, &samples, 200));
            assert_eq!(own.backing, "sound", "{name}");
            // A bucket is a thousandth wide.
            let near = |own: Option<u64>, raw: Option<u64>| {
                own.unwrap().abs_diff(raw.unwrap()) <= raw.unwrap() / 500
            };
            assert!(near(own.low_ns, raw.low_ns) && near(own.high_ns, raw.high_ns), "{own:?}");
        }
        // 20 samples lie beyond it, 2 beyond the next one.
        assert_ne!(of(&found, "99.9").backing, "too_few");
        let few = of(&found, "99.99");
        assert_eq!((few.backing, few.high_ns), ("too_few", None));
        assert!(few.effective_beyond.is_none_or(|beyond| beyond <= 2.0), "{few:?}");
    }

    #[test]
    fn samples_that_come_in_groups_say_less_than_their_number() {
        let place = tempfile::tempdir().unwrap();
        // 40 late samples of 20,000: one in each of 40 blocks, and all in 2.
        let mut single = vec![vec![5_000; 200]; 100];
        let mut grouped = single.clone();
        for late in 0..40_usize {
            let latency = 90_000 + 1_000 * late as u64;
            single[late * 7 % 40 * 2][0] = latency;
            grouped[if late % 2 == 0 { 9 } else { 70 }][late] = latency;
        }
        let runs = [("single", single), ("grouped", grouped)].map(|(name, blocks)| {
            let run = fixture::written(&place.path().join(name), &[("cpu0", blocks)]);
            of(&RunIntervals::of(&run), "99.9").clone()
        });
        assert_ne!(runs[0].backing, "too_few", "{runs:?}");
        assert!(runs[0].high_ns.is_some());
        assert_eq!((runs[1].backing, runs[1].high_ns), ("too_few", None), "{runs:?}");
    }

    #[test]
    fn a_damaged_log_has_no_intervals_but_a_caveat() {
        let place = tempfile::tempdir().unwrap();
        let run = fixture::written(&place.path().join("r"), &[("cpu0", blocks(100))]);
        let log = run.path.join(names::SERIES);
        let text = fs::read_to_string(&log).unwrap();
        fs::write(&log, text.replacen("HISTF", "HISTG", 1)).unwrap();
        let found = RunIntervals::of(&run);
        assert!(found.series.is_empty());
        let Some(CaveatKind::SeriesDamaged { what }) = found.damage else { panic!("no caveat") };
        assert!(what.contains("its histogram is damaged"), "{what}");
    }

    #[test]
    fn stages_and_series_without_samples_have_none() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let mut run = Run::open(&fixture).unwrap();
        let whole = run.document.wakeups().count();
        assert_eq!(RunIntervals::of(&run).series.len(), whole);
        run.document.series[0].stage_of = Some("cpu9".into());
        run.document.series[5].percentiles.clear();
        run.document.series[5].scheduled = None;
        assert_eq!(RunIntervals::of(&run).series.len(), whole - 2);
    }
}
