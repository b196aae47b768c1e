//! Was a run long enough? Events that it missed, and how late it may become in a longer time: by a
//! model of each series' tail, or the reason for its absence.

use serde::{Deserialize, Serialize};

use crate::analysis::steadiness::SeriesBlocks;
use crate::{
    analysis::{
        stationarity::{FEWEST_BLOCKS, filled},
        tail::{self, FEWEST_CLUSTERS, LARGEST_SHAPE, Model, Refusal, ReturnLevel, TailPieces},
    },
    run::{Run, names},
    units::{Nanos, count},
};

/// Times whose levels are estimated, s: an hour, a day, a year.
pub const TIMES_S: [f64; 3] = [3_600.0, 86_400.0, 31_557_600.0];

/// The greatest number of single samples by which a run is judged; with more, the maxima of
/// intervals are used.
const MOST_SAMPLES: u64 = 2_000_000;

/// What lies over the lowest threshold: a seventh of the maxima of intervals, which is
/// rare enough for two to hardly ever be in one, or a twentieth of samples.
const SHARE_OF_MAXIMA: f64 = 0.15;
const SHARE_OF_SAMPLES: f64 = 0.05;

/// Without any event in a time T, the rate of events is below this / T at 95%.
const NONE_SEEN: f64 = 3.0;

/// What can be said of the tails of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunTail {
    /// How long was measured, s.
    pub observed_s: f64,
    /// Series of whole latencies, in the order of the record.
    pub series: Vec<SeriesTail>,
}

/// What can be said of the tail of one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesTail {
    /// Its name.
    pub name: String,
    /// Its largest latency, ns: none was over it.
    pub max_ns: i64,
    /// At 95% what is over it comes less than once in this time, s, if the load stays.
    pub rarer_than_s: f64,
    /// What the model is made of: `samples`, or `interval_maxima` where these were not kept.
    pub pieces: String,
    /// The model; null if it has none.
    pub model: Option<TailModel>,
    /// Why it is missing; null if it has one.
    pub refusal: Option<String>,
}

/// A model of a tail: clusters over a threshold, a generalised Pareto distribution of their maxima.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TailModel {
    /// The threshold, ns.
    pub threshold_ns: u64,
    /// Clusters over it.
    pub clusters: u64,
    /// How likely samples of the model itself would fit it worse.
    pub fit_probability: f64,
    /// The shape: 0 is exponential, below it there is an end, above it a power law.
    pub shape: f64,
    /// The lower end of its 95% interval.
    pub shape_low: f64,
    /// The upper end.
    pub shape_high: f64,
    /// Levels that are exceeded once in an hour, a day, a year.
    pub levels: Vec<TailLevel>,
}

/// A level that is exceeded once in a time, on average, if this mix of load continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TailLevel {
    /// The time, s.
    pub period_s: f64,
    /// The level, ns.
    pub level_ns: u64,
    /// The lower end of its 95% interval, ns.
    pub low_ns: u64,
    /// The upper end, ns; null if it has none.
    pub high_ns: Option<u64>,
    /// Whether the time is more than ten times the observed one: an extrapolation of the model.
    pub is_extrapolation: bool,
}

impl RunTail {
    /// Of a run whose intervals were read.
    #[must_use]
    pub fn of(run: &Run, blocks: &SeriesBlocks) -> Self {
        let document = &run.document;
        let samples = kept_samples(run);
        let steady = blocks.unsteadiness(document);
        let observed_s = document.duration_ns as f64 / 1e9;
        let all = document.series.iter().enumerate().filter(|(_, series)| !series.is_part());
        let of = |(number, series): (usize, &crate::run::SeriesSummary)| {
            let steady = steady.iter().find(|(own, _)| *own == number).map(|own| own.1.is_steady());
            let kept = samples.as_ref().and_then(|samples| samples.get(number));
            let kept = kept.filter(|samples| !samples.is_empty());
            let found = match steady {
                None => Err(format!("fewer than {FEWEST_BLOCKS} intervals of the log are filled")),
                Some(steady) => {
                    let used = filled(blocks.of(number));
                    let maxima: Vec<f64> = used.iter().map(|block| block.max_ns as f64).collect();
                    let length_s = used.iter().map(|block| block.length_s).sum();
                    let pieces = kept.map_or(
                        TailPieces { maxima_ns: &maxima, length_s, highest_share: SHARE_OF_MAXIMA },
                        |samples| TailPieces {
                            maxima_ns: samples,
                            length_s: observed_s,
                            highest_share: SHARE_OF_SAMPLES,
                        },
                    );
                    tail::model(pieces, &TIMES_S, steady).map_err(|refusal| words(&refusal))
                }
            };
            Some(SeriesTail {
                name: series.name.clone(),
                max_ns: series.max?,
                rarer_than_s: observed_s / NONE_SEEN,
                pieces: if kept.is_some() { "samples" } else { "interval_maxima" }.into(),
                refusal: found.as_ref().err().cloned(),
                model: found.ok().map(|model| TailModel::of(&model)),
            })
        };
        Self { observed_s, series: all.filter_map(of).collect() }
    }
}

impl TailModel {
    fn of(model: &Model) -> Self {
        let level = |level: &ReturnLevel| TailLevel {
            period_s: level.period_s,
            level_ns: level.level_ns.value as u64,
            low_ns: level.level_ns.low as u64,
            high_ns: level.level_ns.high.is_finite().then_some(level.level_ns.high as u64),
            is_extrapolation: level.is_extrapolation,
        };
        Self {
            threshold_ns: model.threshold_ns as u64,
            clusters: model.clusters as u64,
            fit_probability: model.fit_probability,
            shape: model.shape.value,
            shape_low: model.shape.low,
            shape_high: model.shape.high,
            levels: model.levels.iter().map(level).collect(),
        }
    }
}

/// Single samples of each series, in their order, where they were kept whole and are not too many.
fn kept_samples(run: &Run) -> Option<Vec<Vec<f64>>> {
    let document = &run.document;
    let of_record = document.wakeups().map(|series| series.count).fold(0, u64::saturating_add);
    if !run.path.join(names::SAMPLES).is_dir() || of_record > MOST_SAMPLES {
        return None;
    }
    let mut samples = vec![Vec::new(); document.series.len()];
    let read = run.samples(|number, sample| {
        if let Some(own) = samples.get_mut(number) {
            own.push(sample.latency_ns as f64);
        }
    });
    let whole: u64 = samples.iter().map(|own| own.len() as u64).sum();
    (read.is_ok() && whole == of_record).then_some(samples)
}

/// Says in words why the tail has no model.
fn words(refusal: &Refusal) -> String {
    let ns = |ns: f64| Nanos(ns as i64);
    match refusal {
        Refusal::Unsteady => {
            "the run did not stay the same, or its high latencies are periodic".into()
        }
        Refusal::FewClusters(clusters) => format!(
            "{} separate groups of high latencies; it takes {FEWEST_CLUSTERS} at three thresholds",
            count(*clusters as u64)
        ),
        Refusal::FewFitting => format!(
            "where the model begins to fit there are too few separate groups of high latencies \
             (fewer than {FEWEST_CLUSTERS} at three thresholds)"
        ),
        Refusal::NoFit => {
            "no threshold above which the model fits; latencies of several kinds do that".into()
        }
        Refusal::Unstable => "the shape of the tail is another at a higher threshold".into(),
        Refusal::Heavy(shape) => format!(
            "the tail may be too heavy: its shape may be {shape:.2}, and levels are estimated up \
             to {LARGEST_SHAPE}"
        ),
        Refusal::Unforeseen { max_ns, low_ns, high_ns } => format!(
            "the first half of the run foresees a maximum between {} and {} for the second, \
             which had {}",
            ns(*low_ns),
            ns(*high_ns),
            ns(*max_ns)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::random::SplitMix64, report::fixture};

    fn written(place: &std::path::Path, latency: impl Fn(&mut SplitMix64) -> f64) -> Run {
        let mut random = SplitMix64::new(1);
        let mut block = |_| (0..20).map(|_| latency(&mut random) as u64).collect::<Vec<u64>>();
        let blocks: Vec<Vec<u64>> = (0..1_000).map(&mut block).collect();
        fixture::written_with(place, &[("cpu0", blocks)], |document| {
            document.duration_ns = 100_000_000_000;
        })
    }

    fn of(run: &Run) -> SeriesTail {
        let mut blocks = SeriesBlocks::new(1);
        run.intervals(|number, span, counts| blocks.add(number, &span, &counts)).unwrap();
        let mut found = RunTail::of(run, &blocks);
        assert_eq!((found.observed_s, found.series.len()), (100.0, 1));
        found.series.remove(0)
    }

    #[test]
    fn an_exponential_tail_has_levels_that_hold_the_truth_and_says_what_was_not_seen() {
        let place = tempfile::tempdir().unwrap();
        let run =
            written(&place.path().join("r"), |random| 20_000.0 - 5_000.0 * random.uniform().ln());
        let found = of(&run);
        assert_eq!((found.rarer_than_s.round(), found.pieces.as_str()), (33.0, "interval_maxima"));
        let model = found.model.unwrap();
        assert_eq!(found.refusal, None);
        for level in &model.levels {
            // 200 samples a second.
            let truth = (20_000.0 + 5_000.0 * (200.0 * level.period_s).ln()) as u64;
            let high = level.high_ns.unwrap();
            assert!(level.low_ns <= truth && truth <= high, "{level:?} {truth}");
            assert_eq!(level.is_extrapolation, level.period_s > 1_000.0);
        }
        assert_eq!(model.levels.len(), 3);
    }

    #[test]
    fn a_bounded_tail_has_levels_near_its_end_and_a_rare_second_kind_none() {
        let place = tempfile::tempdir().unwrap();
        let run = written(&place.path().join("bounded"), |random| {
            5_000.0 + 20_000.0 * (1.0 - random.uniform().powf(0.3))
        });
        let model = of(&run).model.unwrap();
        for level in &model.levels {
            let truth = 5_000.0 + 20_000.0 * (1.0 - (200.0 * level.period_s).powf(-0.3));
            let high = level.high_ns.unwrap() as f64;
            assert!(level.low_ns as f64 <= truth && truth <= high, "{level:?} {truth}");
        }
        // Of 20,000 samples about five.
        let run = written(&place.path().join("kinds"), |random| {
            let rare = random.uniform() < 0.000_25;
            let mean = if rare { 300_000.0 } else { 5_000.0 };
            20_000.0 - mean * random.uniform().ln()
        });
        let found = of(&run);
        assert!(found.model.is_none() && found.refusal.is_some(), "{found:?}");
    }

    #[test]
    fn a_heavy_tail_has_a_reason_and_no_levels() {
        let place = tempfile::tempdir().unwrap();
        let run = written(&place.path().join("r"), |random| 5_000.0 / random.uniform());
        let found = of(&run);
        assert!(found.model.is_none() && found.refusal.is_some(), "{found:?}");
    }
}
