//! One night against the nights before it: does its level lie above theirs by more than a margin?
//!
//! The logarithm of a figure of a night is taken as normal about a level; how much nights of one
//! level differ is estimated from the nights before, and the night that is judged differs from its
//! own level as much as they do. So the interval of the difference of the levels is that of a
//! prediction (Hahn, Journal of the American Statistical Association 64, 1969, p. 878): the
//! difference of the means, and Student's t times `sd * sqrt(v(m) + v(n))` to either side, for m
//! nights that are judged and n before them.
//!
//! Neighbours depend on each other. Their correlation r is estimated as for changes
//! ([`super::change_points`]); that of few nights is drawn towards the usual 0.3, as if 20 nights
//! had shown it. `v(n)` is the variance of the mean of n such values by that of one, and their
//! spread has `n (1 - r^2) / (1 + r^2) - 1` degrees of freedom (Bayley and Hammersley, Supplement
//! to the Journal of the Royal Statistical Society 8, 1946, p. 184).
//!
//! It passes if the 95% interval lies below the margin. It fails if a look each night can bear it:
//! only one in 100 nights of an unchanged level may. So the lower end of the interval is then
//! that of 99% to this side, shared by all series of the gate, and no night before may have been
//! as high: nights are not quite normal.
//!
//! `cargo xtask simulate nights` prints the tables of `docs/reference/gates.md`.

#[cfg(test)]
mod tests;

use super::{
    change_points::{TYPICAL_DEPENDENCE, correlation},
    distributions::{normal_tail, normal_upper, t_upper},
    replicates::runs_needed,
};

/// Fewer nights hardly show how much nights differ.
pub const FEWEST_NIGHTS: usize = 8;

/// The number of latest nights that a night is compared with.
pub const MOST_NIGHTS: usize = 60;

/// The tail of a 95% interval.
const TAIL: f64 = 0.025;

/// Nights of an unchanged level that may fail.
const FALSE_WORSE: f64 = 0.01;

/// Nights that the usual correlation counts as much as.
const PRIOR_NIGHTS: f64 = 20.0;

/// What the standard deviation of a night is at least: half the width of a bucket.
const LEAST_SD: f64 = 0.000_5;

/// Unchanged nights that pass with the number of nights that is said: 80%. The forecast takes the
/// correlation as known; of few nights that is 3 points too good.
const UNDECIDED: f64 = 0.2;
const FORECAST_ERROR: f64 = 0.03;

/// More nights judged together are not worth being named.
const MOST_JUDGED: usize = 30;

/// One night: its runs together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NightLevel {
    /// The mean of the logarithms of their figure.
    pub log: f64,
    /// Runs.
    pub runs: usize,
    /// The squares of their distances from the mean.
    squares: f64,
}

impl NightLevel {
    /// Of the figures of its runs, ns; nothing without any.
    #[must_use]
    pub fn of(figures_ns: &[i64]) -> Option<Self> {
        let logs: Vec<f64> = figures_ns.iter().map(|ns| ((*ns).max(1) as f64).ln()).collect();
        let log = logs.iter().sum::<f64>() / logs.len() as f64;
        let squares = logs.iter().map(|own| (own - log).powi(2)).sum();
        (!logs.is_empty()).then_some(Self { log, runs: logs.len(), squares })
    }
}

/// What is asked of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NightQuestion {
    /// By how much its level may be above that of the nights before, as a share.
    pub share: f64,
    /// Series for which this is asked together.
    pub series: usize,
}

impl NightQuestion {
    fn margin(self) -> f64 {
        self.share.ln_1p()
    }
}

/// What follows for a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NightFinding {
    /// Its level is above the others by less than the margin.
    Within,
    /// By more.
    Above,
    /// So it seems, but not surely enough for a look each night.
    SeemsAbove,
    /// So it seems, but nights before were as high.
    SeenBefore,
    /// Neither.
    Open,
}

/// What is said of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NightResult {
    /// Ends of the 95% interval of its level by that of the nights before.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// What follows.
    pub finding: NightFinding,
}

/// Nights of one level: where it is, and how much they differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NightSpread {
    /// How many.
    pub nights: usize,
    /// The standard deviation of one from the level, of its logarithm.
    pub sd: f64,
    mean: f64,
    correlation: f64,
    highest: f64,
    /// The variance of runs of one night; `None` if no night has two.
    within: Option<f64>,
    /// What the mean of the runs of a night has of it.
    within_share: f64,
}

impl NightSpread {
    /// Of these nights, oldest first; nothing of fewer than [`FEWEST_NIGHTS`].
    #[must_use]
    pub fn of(nights: &[NightLevel]) -> Option<Self> {
        let logs: Vec<f64> = nights.iter().map(|night| night.log).collect();
        if logs.len() < FEWEST_NIGHTS {
            return None;
        }
        let count = logs.len() as f64;
        let prior = PRIOR_NIGHTS * TYPICAL_DEPENDENCE;
        let correlation = (count * correlation(&logs) + prior) / (count + PRIOR_NIGHTS);
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let more: usize = nights.iter().map(|night| night.runs - 1).sum();
        let within: f64 = nights.iter().map(|night| night.squares).sum();
        Some(Self {
            nights: logs.len(),
            sd: (squares / (count * (1.0 - of_mean(logs.len(), correlation)))).sqrt().max(LEAST_SD),
            mean,
            correlation,
            highest: logs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            within: (more > 0).then(|| within / more as f64),
            within_share: nights.iter().map(|night| 1.0 / night.runs as f64).sum::<f64>() / count,
        })
    }

    /// What these nights say of later ones of one level; nothing of none.
    #[must_use]
    pub fn judge(&self, judged: &[NightLevel], question: NightQuestion) -> Option<NightResult> {
        let count = Some(judged.len()).filter(|count| *count > 0)?;
        let mean = judged.iter().map(|night| night.log).sum::<f64>() / count as f64;
        let runs = judged.iter().map(|night| 1.0 / night.runs as f64).sum::<f64>() / count as f64;
        // With fewer runs than usual a night differs more than those did.
        let more = self.within.unwrap_or(0.0) * (runs - self.within_share).max(0.0) / count as f64;
        let error = (self.error(self.nights, count).powi(2) + more).sqrt();
        let (difference, margin) = (mean - self.mean, question.margin());
        let end = |tail: f64| t_upper(tail, self.freedom(self.nights)) * error;
        let (low, high) = (difference - end(TAIL), difference + end(TAIL));
        let sure = difference - end(FALSE_WORSE / question.series.max(1) as f64);
        let finding = match () {
            () if high < margin => NightFinding::Within,
            () if low < margin => NightFinding::Open,
            () if mean <= self.highest => NightFinding::SeenBefore,
            () if sure < margin => NightFinding::SeemsAbove,
            () => NightFinding::Above,
        };
        Some(NightResult { low: low.exp(), high: high.exp(), finding })
    }

    /// From how many nights on 80% of unchanged nights pass, if they differ as these do; nothing
    /// if [`MOST_NIGHTS`] are not enough.
    #[must_use]
    pub fn nights_needed(&self, question: NightQuestion) -> Option<usize> {
        let enough = 1.0 - UNDECIDED + FORECAST_ERROR;
        (FEWEST_NIGHTS..=MOST_NIGHTS).find(|nights| self.passing(*nights, question) >= enough)
    }

    /// How many nights of one level take to be judged together, so that 80% of them pass, with
    /// [`MOST_NIGHTS`] before them; nothing if that is more than a month.
    #[must_use]
    pub fn judged_needed(&self, question: NightQuestion) -> Option<usize> {
        (1..=MOST_JUDGED)
            .find(|judged| self.decidable(MOST_NIGHTS, *judged, question) <= question.share)
    }

    /// The smallest margin, as a share, with which 80% of unchanged nights pass when `nights` are
    /// before them and `judged` are judged together.
    #[must_use]
    pub fn decidable(&self, nights: usize, judged: usize, question: NightQuestion) -> f64 {
        let freedom = self.freedom(nights);
        let (center, width) = noncentral(t_upper(TAIL, freedom), freedom);
        let distance = center + normal_upper(undecided(question)) * width;
        (distance * self.error(nights, judged)).exp_m1()
    }

    /// Runs a side, each of another night, with which two sides that are the same are told from
    /// ones that differ by this share in four of five cases; nothing for more than 100,000.
    #[must_use]
    pub fn runs_a_side(&self, share: f64) -> Option<u32> {
        runs_needed(self.sd.powi(2), share.ln_1p(), 2.0 * TAIL)
    }

    /// The share of unchanged nights of which all series pass, with this number before them; at
    /// least, as series are not taken to fail together.
    #[must_use]
    pub fn passing(&self, nights: usize, question: NightQuestion) -> f64 {
        let freedom = self.freedom(nights);
        let (center, width) = noncentral(t_upper(TAIL, freedom), freedom);
        let distance = question.margin() / self.error(nights, 1);
        let undecided = normal_tail((distance - center) / width);
        (1.0 - undecided * question.series.max(1) as f64).max(0.0)
    }

    /// The standard error of the difference of the levels.
    fn error(&self, nights: usize, judged: usize) -> f64 {
        let of = |count| of_mean(count, self.correlation);
        self.sd * (of(nights) + of(judged)).sqrt()
    }

    fn freedom(&self, nights: usize) -> f64 {
        let square = self.correlation.powi(2);
        (nights as f64 * (1.0 - square) / (1.0 + square) - 1.0).max(1.0)
    }
}

/// The share of nights of which one series may not pass, so that of all together 80% do.
fn undecided(question: NightQuestion) -> f64 {
    (UNDECIDED - FORECAST_ERROR) / question.series.max(1) as f64
}

/// Mean and standard deviation of the normal variable that a noncentral t exceeds `t` with (the
/// approximation 26.7.10 of Abramowitz and Stegun, Handbook of Mathematical Functions, 1964).
fn noncentral(t: f64, freedom: f64) -> (f64, f64) {
    (t * (1.0 - 0.25 / freedom), (1.0 + t * t / (2.0 * freedom)).sqrt())
}

/// The variance of the mean of `count` neighbours by that of one.
fn of_mean(count: usize, correlation: f64) -> f64 {
    let all = count as f64;
    let pair = |far: usize| (1.0 - far as f64 / all) * correlation.powi(far as i32);
    (1.0 + 2.0 * (1..count).map(pair).sum::<f64>()) / all
}
