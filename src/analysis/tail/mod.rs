//! How late may it become in an hour, a day, a year? A model of the tail of a run, or why there is
//! none.
//!
//! Peaks over a threshold: clusters of late values, a generalised Pareto distribution of their
//! maxima, the lowest threshold from which on it fits. It is believed only where the shape is the
//! same at three thresholds and the first half of the run foresees the maximum of the second. A
//! level says what would come if this mix of load continued: what comes more rarely than the run is
//! long is not in it.
//!
//! `docs/explanation/statistics.md` has coverage and refusals for known tails.

mod clusters;
mod goodness;
mod pareto;
mod profile;
#[cfg(test)]
mod tests;

pub use clusters::{cluster_maxima, extremal_index};
pub use profile::Interval;

use goodness::{first_that_fits, probability};
use profile::Fit;

use super::random::SplitMix64;

/// The least number of clusters that a model needs.
pub const FEWEST_CLUSTERS: usize = 50;

/// A shape that may be larger than this lets no level be estimated.
pub const LARGEST_SHAPE: f64 = 0.5;

/// A level beyond this multiple of the observed time is an extrapolation.
pub const EXTRAPOLATION: f64 = 10.0;

/// The highest number of exceedances of a threshold that is tried, and the step to the next one.
const MOST_EXCEEDANCES: usize = 500;
const STEP: f64 = 0.85;

/// Thresholds at which the shape must be the same.
const STABLE: usize = 3;

/// The probability with which the foreseen maximum misses on either side.
const MISSED: f64 = 0.025;

/// Where random numbers begin: the same run has the same answer.
const SEED: u64 = 1;

/// Equally long pieces of a run, each with its largest value: intervals of the log, or samples.
#[derive(Debug, Clone, Copy)]
pub struct TailPieces<'a> {
    /// The largest value of each, ns, in the order of time.
    pub maxima_ns: &'a [f64],
    /// The time that all of them take, s.
    pub length_s: f64,
    /// The share of them that may lie over the lowest threshold: a seventh of the maxima of
    /// intervals, a twentieth of samples.
    pub highest_share: f64,
}

/// Why a model is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refusal {
    /// The level moved within the run, or high values are periodic.
    Unsteady,
    /// Too few clusters, with how many there are over the lowest threshold.
    FewClusters(usize),
    /// Too few clusters over the thresholds at which a model fits.
    FewFitting,
    /// No threshold at which it does.
    NoFit,
    /// The shape is another at a higher threshold.
    Unstable,
    /// The shape may be this large.
    Heavy(f64),
    /// The second half has this maximum, ns, where the first half foresaw these.
    Unforeseen {
        /// The maximum.
        max_ns: f64,
        /// Foreseen at least.
        low_ns: f64,
        /// Foreseen at most.
        high_ns: f64,
    },
}

/// A level that is exceeded once in a time, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReturnLevel {
    /// The time, s.
    pub period_s: f64,
    /// The level with its interval, ns.
    pub level_ns: Interval,
    /// Whether the time is more than [`EXTRAPOLATION`] times the observed one.
    pub is_extrapolation: bool,
}

/// A model of a tail.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The threshold, ns.
    pub threshold_ns: f64,
    /// Clusters over it.
    pub clusters: usize,
    /// How likely a true model would fit worse.
    pub fit_probability: f64,
    /// The shape.
    pub shape: Interval,
    /// The levels that were asked for; those of times in which less than one cluster comes are left
    /// out.
    pub levels: Vec<ReturnLevel>,
}

/// One threshold and its clusters.
#[derive(Debug, Clone)]
struct Candidate {
    threshold: f64,
    clusters: Vec<(usize, f64)>,
}

/// A model of these pieces with levels for these times, s; or the reason for its absence.
///
/// # Errors
/// The reason.
pub fn model(pieces: TailPieces<'_>, periods_s: &[f64], is_steady: bool) -> Result<Model, Refusal> {
    if !is_steady {
        return Err(Refusal::Unsteady);
    }
    let candidates = candidates(pieces);
    if candidates.len() < STABLE {
        let lowest = thresholds(pieces).first().copied();
        let clusters = lowest.map_or(0, |lowest| cluster_maxima(pieces.maxima_ns, lowest).len());
        return Err(Refusal::FewClusters(clusters));
    }
    let mut random = SplitMix64::new(SEED);
    let probabilities: Vec<f64> =
        candidates.iter().map(|own| probability(&own.excesses(), &mut random)).collect();
    let chosen = first_that_fits(&probabilities).ok_or(Refusal::NoFit)?;
    let (Some(stable), Some(fit_probability)) =
        (candidates.get(chosen..chosen + STABLE), probabilities.get(chosen))
    else {
        return Err(Refusal::FewFitting);
    };
    let [chosen, higher @ ..] = stable else { return Err(Refusal::FewFitting) };
    let excesses = chosen.excesses();
    let fit = Fit::of(&excesses);
    let shape = fit.shape();
    if shape.high > LARGEST_SHAPE {
        return Err(Refusal::Heavy(shape.high));
    }
    let is_same = |other: &Candidate| {
        let other = Fit::of(&other.excesses()).likeliest.shape;
        (shape.low..=shape.high).contains(&other)
    };
    if !higher.iter().all(is_same) {
        return Err(Refusal::Unstable);
    }
    chosen.predicts_second_half(pieces)?;
    let per_s = excesses.len() as f64 / pieces.length_s;
    let level = |period_s: &f64| {
        let clusters = per_s * period_s;
        (clusters > 1.0).then(|| ReturnLevel {
            period_s: *period_s,
            level_ns: fit.level(clusters).above(chosen.threshold),
            is_extrapolation: *period_s > EXTRAPOLATION * pieces.length_s,
        })
    };
    Ok(Model {
        threshold_ns: chosen.threshold,
        clusters: excesses.len(),
        fit_probability: *fit_probability,
        shape,
        levels: periods_s.iter().filter_map(level).collect(),
    })
}

impl Interval {
    /// The same, higher by `base`.
    fn above(self, base: f64) -> Self {
        Self { value: self.value + base, low: self.low + base, high: self.high + base }
    }
}

/// Thresholds, ascending, from the one that a share of the pieces exceeds.
fn thresholds(pieces: TailPieces<'_>) -> Vec<f64> {
    let mut sorted = pieces.maxima_ns.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut over = (sorted.len() as f64 * pieces.highest_share).min(MOST_EXCEEDANCES as f64);
    let mut found = Vec::new();
    while over >= FEWEST_CLUSTERS as f64 {
        found.extend(sorted.get(over as usize).copied());
        over *= STEP;
    }
    found.dedup();
    found
}

/// Thresholds with enough clusters each.
fn candidates(pieces: TailPieces<'_>) -> Vec<Candidate> {
    let of = |threshold: f64| Candidate {
        threshold,
        clusters: cluster_maxima(pieces.maxima_ns, threshold),
    };
    let enough = |own: &Candidate| own.clusters.len() >= FEWEST_CLUSTERS;
    thresholds(pieces).into_iter().map(of).filter(enough).collect()
}

impl Candidate {
    fn excesses(&self) -> Vec<f64> {
        self.clusters.iter().map(|(_, value)| value - self.threshold).collect()
    }

    /// Whether the first half of the run foresees the maximum of the second. It must lie between
    /// the level that this time exceeds almost surely and the one that it hardly ever does, at the
    /// outer ends of their intervals.
    fn predicts_second_half(&self, pieces: TailPieces<'_>) -> Result<(), Refusal> {
        let middle = pieces.maxima_ns.len() / 2;
        let early: Vec<f64> = self
            .clusters
            .iter()
            .filter(|(place, _)| *place < middle)
            .map(|(_, value)| value - self.threshold)
            .collect();
        let late = pieces.maxima_ns.get(middle..).unwrap_or_default();
        let max_ns = late.iter().copied().fold(0.0, f64::max);
        if early.len() < FEWEST_CLUSTERS / 3 {
            return Err(Refusal::FewFitting);
        }
        let fit = Fit::of(&early);
        // P(max <= x) = exp(-n P(X > x)): the level of one in n / -ln q clusters.
        let level = |probability: f64| early.len() as f64 / -probability.ln();
        let lowest = level(MISSED);
        let low_ns = match lowest > 1.0 {
            true => self.threshold + fit.level(lowest).low,
            false => self.threshold,
        };
        let high_ns = self.threshold + fit.level(level(1.0 - MISSED)).high;
        match (low_ns..=high_ns).contains(&max_ns) {
            true => Ok(()),
            false => Err(Refusal::Unforeseen { max_ns, low_ns, high_ns }),
        }
    }
}
