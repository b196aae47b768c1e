//! Did a run stay the same from its beginning to its end?
//!
//! Percentiles of a run whose level moved are those of a mixture: they depend on how long each part
//! was. Looked at are the medians and the maxima of the intervals of `series.hlog`: for a change of
//! level (`self_normalized`) in the whole run, in its halves, and in its middle half, so that
//! what comes and goes again is found; and for periods of high intervals ([`super::period`]).
//! What is significant must also be material: a long run finds changes that matter to nobody.
//!
//! `docs/explanation/statistics.md` has false alarms and power.

mod self_normalized;
#[cfg(test)]
mod tests;

use self_normalized::{evidence, ranks};

use super::period::{Periodicity, period};

/// How often a run that stays the same is called one that does not, over all its series.
pub const FALSE_ALARMS: f64 = 0.01;

/// Fewer intervals say nothing.
pub const FEWEST_BLOCKS: usize = 40;

/// Half of the false alarms go to changes, half to periods; each looks at two aspects.
const SHARES: f64 = 4.0;
/// Stretches in which changes are looked for.
const WINDOWS: usize = 4;
/// Neighbouring intervals are merged while they are more alike than this, and enough remain.
const ALIKE: f64 = 0.5;
const FEWEST_MERGED: usize = 80;
/// A change of the middle of this factor is material, and of the worst.
const MIDDLE_MARGIN: f64 = 1.05;
const WORST_MARGIN: f64 = 1.10;
/// Shares of intervals that are high, for periods.
const HIGH: [f64; 2] = [0.1, 0.02];

/// One interval of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoggedInterval {
    /// When it began, s from the start of the run.
    pub start_s: f64,
    /// Its length, s.
    pub length_s: f64,
    /// Its samples.
    pub samples: u64,
    /// Their median, ns.
    pub median_ns: u64,
    /// The largest of them, ns.
    pub max_ns: u64,
}

/// What of a series is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// The medians of intervals.
    Middle,
    /// Their maxima.
    Worst,
}

/// How a level moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// At once.
    Step,
    /// Little by little.
    Drift,
}

/// A level that moved within a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelShift {
    /// Of what.
    pub aspect: Aspect,
    /// How.
    pub kind: ChangeKind,
    /// When a step came, s from the start of the run; of a drift the middle of the stretch.
    pub at_s: f64,
    /// The stretch in which it was found, s.
    pub within_s: (f64, f64),
    /// Half of the intervals lay below, before and after, ns; or nine in ten where these differ
    /// more.
    pub before_ns: f64,
    /// The same after it; of a drift the last third of the stretch, and the first one before.
    pub after_ns: f64,
    /// The share of intervals that `before_ns` and `after_ns` are above: 0.5 or 0.9.
    pub share: f64,
}

/// What is not stationary in a series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unsteadiness {
    /// The most marked change of each aspect.
    pub changes: Vec<LevelShift>,
    /// The period of its high intervals.
    pub period: Option<Periodicity>,
}

impl Unsteadiness {
    /// Whether nothing was found.
    #[must_use]
    pub const fn is_steady(&self) -> bool {
        self.changes.is_empty() && self.period.is_none()
    }
}

/// What is not stationary in a series of a run with this number of `series`, which share the false
/// alarms. Absent with fewer than [`FEWEST_BLOCKS`] intervals that are filled.
#[must_use]
pub fn unsteadiness(blocks: &[LoggedInterval], series: usize) -> Option<Unsteadiness> {
    let filled = filled(blocks);
    if filled.len() < FEWEST_BLOCKS {
        return None;
    }
    let level = FALSE_ALARMS / SHARES / series.max(1) as f64;
    let aspects = [Aspect::Middle, Aspect::Worst];
    let changes = aspects.into_iter().filter_map(|aspect| change(&filled, aspect, level));
    let changes = changes.collect();
    let periods = aspects.into_iter().filter_map(|aspect| high_period(&filled, aspect, level));
    let period = periods.min_by(|a, b| a.false_alarm.total_cmp(&b.false_alarm));
    Some(Unsteadiness { changes, period })
}

/// The intervals that have at least half of the samples that are usual: the last one is often
/// short, and few samples have a small maximum.
#[must_use]
pub fn filled(blocks: &[LoggedInterval]) -> Vec<LoggedInterval> {
    let mut counts: Vec<u64> =
        blocks.iter().map(|block| block.samples).filter(|samples| *samples > 0).collect();
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
    let is_filled = |block: &&LoggedInterval| block.samples > 0 && block.samples >= usual / 2;
    blocks.iter().filter(is_filled).copied().collect()
}

impl LoggedInterval {
    fn value(&self, aspect: Aspect) -> f64 {
        match aspect {
            Aspect::Middle => self.median_ns as f64,
            Aspect::Worst => self.max_ns as f64,
        }
    }
}

/// The most marked change of one aspect.
fn change(blocks: &[LoggedInterval], aspect: Aspect, level: f64) -> Option<LevelShift> {
    let values: Vec<f64> = blocks.iter().map(|block| block.value(aspect)).collect();
    let count = blocks.len();
    let windows = [(0, count), (0, count / 2), (count / 2, count), (count / 4, count * 3 / 4)];
    let mut best: Option<(f64, LevelShift)> = None;
    for (from, to) in windows {
        let (Some(blocks), Some(values)) = (blocks.get(from..to), values.get(from..to)) else {
            continue;
        };
        if blocks.len() < FEWEST_BLOCKS {
            continue;
        }
        let found = evidence(&merged(&ranks(values)), level / WINDOWS as f64);
        if found < 1.0 || best.as_ref().is_some_and(|(known, _)| *known >= found) {
            continue;
        }
        let change = describe(blocks, values, aspect);
        if change.is_material() {
            best = Some((found, change));
        }
    }
    best.map(|(_, change)| change)
}

/// Values of ever longer stretches, until neighbours are no longer much alike: the normalisation
/// takes sequences that are long beside their own memory.
fn merged(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    while values.len() / 2 >= FEWEST_MERGED && correlation_of_neighbours(&values) > ALIKE {
        let mean = |pair: &[f64]| pair.iter().sum::<f64>() / pair.len() as f64;
        values = values.chunks_exact(2).map(mean).collect();
    }
    values
}

fn correlation_of_neighbours(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 =
        values.iter().zip(values.iter().skip(1)).map(|(a, b)| (a - mean) * (b - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// A step or a drift, whichever leaves less unexplained of the ranks, with its size.
fn describe(blocks: &[LoggedInterval], values: &[f64], aspect: Aspect) -> LevelShift {
    let ranks = ranks(values);
    let count = ranks.len() as f64;
    let mean = (count + 1.0) / 2.0;
    let (mut sum, mut slope, mut place, mut between) = (0.0, 0.0, 0, 0.0);
    for (number, rank) in ranks.iter().enumerate() {
        slope += (number as f64 - (count - 1.0) / 2.0) * (rank - mean);
        sum += rank - mean;
        let left = number as f64 + 1.0;
        let explained =
            if left < count { sum * sum * count / (left * (count - left)) } else { 0.0 };
        if explained > between {
            (place, between) = (number + 1, explained);
        }
    }
    let by_line = slope * slope / (count * (count * count - 1.0) / 12.0);
    let is_drift = by_line > between;
    let third = values.len() / 3;
    let (early, late) = if is_drift { (third, values.len() - third) } else { (place, place) };
    let (early, late) =
        (values.get(..early).unwrap_or(values), values.get(late..).unwrap_or(values));
    let ratio = |share: f64| (quantile(late, share) / quantile(early, share).max(1.0)).ln().abs();
    let share = if aspect == Aspect::Worst && ratio(0.9) > ratio(0.5) { 0.9 } else { 0.5 };
    let time = |at: usize| blocks.get(at).map_or(0.0, |block| block.start_s);
    let end = blocks.last().map_or(0.0, |block| block.start_s + block.length_s);
    LevelShift {
        aspect,
        kind: if is_drift { ChangeKind::Drift } else { ChangeKind::Step },
        at_s: time(if is_drift { values.len() / 2 } else { place }),
        within_s: (time(0), end),
        before_ns: quantile(early, share),
        after_ns: quantile(late, share),
        share,
    }
}

impl LevelShift {
    /// Whether the change is one that matters: 5% of the middle, 10% of the worst, the margins
    /// within which comparisons call sides the same.
    fn is_material(&self) -> bool {
        let margin = match self.aspect {
            Aspect::Middle => MIDDLE_MARGIN,
            Aspect::Worst => WORST_MARGIN,
        };
        let (low, high) = (self.before_ns.min(self.after_ns), self.before_ns.max(self.after_ns));
        high >= low.max(1.0) * margin
    }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The period of the intervals that are high in one aspect. What lasts for several intervals is one
/// event.
fn high_period(blocks: &[LoggedInterval], aspect: Aspect, level: f64) -> Option<Periodicity> {
    let values: Vec<f64> = blocks.iter().map(|block| block.value(aspect)).collect();
    let ns = |s: f64| (s * 1e9) as i64;
    let longest_s = blocks.iter().map(|block| block.length_s).fold(0.0, f64::max);
    let found = HIGH.into_iter().filter_map(|share| {
        let limit = quantile(&values, 1.0 - share);
        let mut events = Vec::new();
        let mut was_high = false;
        for block in blocks {
            let is_high = block.value(aspect) > limit;
            if is_high && !was_high {
                events.push(ns(block.start_s));
            }
            was_high = is_high;
        }
        period(&events, ns(longest_s), level / HIGH.len() as f64)
    });
    found.min_by(|a, b| a.false_alarm.total_cmp(&b.false_alarm))
}
