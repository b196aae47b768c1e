//! Where the level of a sequence changed, by ranks: in retrospect, and night after night.
//!
//! At each place the ranks before it are set against those after it (Pettitt, Applied Statistics
//! 28, 1979, p. 126), standardised as Mann and Whitney's test is (Ross, Tasoulis and Adams,
//! Technometrics 53, 2011, p. 379), and the place where they differ most is the step. Neighbours
//! that depend on each other make such differences by chance: with a correlation of 0.3 a nominal
//! 5% becomes 30%. So the correlation of neighbours is estimated from what the step leaves, and
//! the difference is reduced by its part of the variance, (1 + r) / (1 - r).
//!
//! `cargo xtask simulate trends` prints false alarms and power.

use serde::Serialize;

/// Fewer values say nothing.
pub const FEWEST_VALUES: usize = 20;

/// Values on either side of a step, at least.
const SIDE: usize = 4;

/// How much more often one of the looks after each value shows a step of a probability of some
/// percent than the last look alone does: at most 7 were simulated, with 40 to 730 values and
/// correlations of 0 to 0.5.
const NIGHTLY: f64 = 8.0;

/// A gross jump: this number of values one after the other, each so far above the largest before.
/// Ranks need more values than these to tell a jump from chance. Where values stay the same, the
/// last 3 of 20 are the largest once in 1,140 sequences, whatever their distribution.
const GROSS_VALUES: usize = 3;
const GROSS_RATIO: f64 = 2.0;

/// How long a gross jump that lasts stays an alarm: a look once a week sees it.
const GROSS_WEEK: usize = 7;

/// The number of latest values that are examined night after night.
const WINDOW: usize = 100;

/// What the standardised difference exceeds with which probability where nothing changes: the
/// largest over 20 to 400 values and correlations of 0 to 0.7, in 20,000 to 100,000 sequences each.
const CHANCES: [(f64, f64); 5] =
    [(0.1, 2.85), (0.05, 3.1), (0.01, 3.7), (0.001, 4.5), (0.0002, 4.9)];

/// The correlation of neighbouring nights for which limits are simulated, and reach is said.
pub(super) const TYPICAL_DEPENDENCE: f64 = 0.3;

/// Where the square of the limit is so much, values that stay the same pass it once in
/// `e^5.87` = 353 of them, and with each unit of the square more rarely by this exponent: as
/// simulated with a correlation of 0.3, the worst of 0, 0.3 and 0.5.
const LIMIT: (f64, f64, f64) = (10.24, 5.87, 0.385);

/// The place where ranks before and after differ most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankStep {
    /// The first value after it.
    pub place: usize,
    /// The difference in standard deviations; above 0 where values became larger.
    pub z: f64,
}

/// The most marked step of a sequence; `None` if it is too short, or all values are equal.
#[must_use]
pub fn step(values: &[f64]) -> Option<RankStep> {
    if values.len() < 2 * SIDE {
        return None;
    }
    let ranks = ranks(values);
    let count = ranks.len() as f64;
    let mean = f64::midpoint(count, 1.0);
    let squares: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if squares <= 0.0 {
        return None;
    }
    let variance = squares / (count - 1.0);
    let mut best = RankStep { place: 0, z: 0.0 };
    let mut sum = 0.0;
    for (number, rank) in ranks.iter().enumerate() {
        sum += rank - mean;
        let (before, after) = (number + 1, ranks.len() - number - 1);
        if before < SIDE || after < SIDE {
            continue;
        }
        let z = -sum / (variance * before as f64 * after as f64 / count).sqrt();
        if z.abs() > best.z.abs() {
            best = RankStep { place: before, z };
        }
    }
    let r = dependence(&ranks, best.place);
    let z = best.z * ((1.0 - r) / (1.0 + r)).sqrt();
    Some(RankStep { place: nearest_place(values, best.place), z })
}

/// The place that leaves the smallest sum of distances from the medians before and after the rough
/// one: the difference of ranks alone leans to where fewer values are. One value moves the sum by
/// no more than the step.
fn nearest_place(values: &[f64], rough: usize) -> usize {
    let (before, after) = values.split_at(rough.min(values.len()));
    let (low, high) = (middle(before), middle(after));
    let mut best = (rough, f64::INFINITY);
    let mut sum = 0.0;
    for (place, value) in values.iter().enumerate() {
        let is_inside = place >= SIDE && place + SIDE <= values.len();
        if is_inside && sum < best.1 {
            best = (place, sum);
        }
        sum += (value - low).abs() - (value - high).abs();
    }
    best.0
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Ranks from 1; equal values share their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let up_to = sorted.partition_point(|other| other.total_cmp(value).is_le());
        (below + 1 + up_to) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// The correlation of neighbours in what a step leaves, from 0 to 0.9, without the bias of means
/// that come from few values.
fn dependence(ranks: &[f64], place: usize) -> f64 {
    let (before, after) = ranks.split_at(place.min(ranks.len()));
    let left = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        part.iter().map(|rank| rank - mean).collect::<Vec<f64>>()
    };
    let left = [left(before), left(after)].concat();
    let squares: f64 = left.iter().map(|rank| rank * rank).sum();
    let products: f64 = left.iter().zip(left.iter().skip(1)).map(|(a, b)| a * b).sum();
    let count = ranks.len() as f64;
    if squares <= 0.0 {
        // Nothing is left but the step.
        return 0.0;
    }
    ((products / squares * count + 2.0) / (count - 4.0)).clamp(0.0, 0.9)
}

/// The correlation of neighbours of values of one level, from 0 to 0.9.
pub(super) fn correlation(values: &[f64]) -> f64 {
    dependence(&ranks(values), 0)
}

/// The probability of such a step in a sequence that stays the same, at most: between the simulated
/// ones, and beyond them, the logarithm continues by the square.
#[must_use]
pub fn probability(z: f64) -> f64 {
    let square = z * z;
    let points = CHANCES.map(|(chance, limit)| (limit * limit, chance.ln()));
    let pairs = points.iter().zip(points.iter().skip(1));
    let segment = pairs.clone().find(|(_, high)| square <= high.0).or(pairs.clone().next_back());
    let Some(((low, from), (high, to))) = segment else { return 1.0 };
    (from + (square - low) * (to - from) / (high - low)).exp().min(1.0)
}

/// The places of all steps whose probability is at most `level`: the most marked one, then those of
/// either side of it that is long enough.
#[must_use]
pub fn steps(values: &[f64], level: f64) -> Vec<usize> {
    if values.len() < FEWEST_VALUES {
        return Vec::new();
    }
    let Some((place, _)) = change(values).filter(|(_, chance)| *chance <= level) else {
        return Vec::new();
    };
    let (before, after) = values.split_at(place);
    let later = steps(after, level).into_iter().map(|further| further + place);
    steps(before, level).into_iter().chain([place]).chain(later).collect()
}

/// The most marked step, and its probability where nothing changes. Looked at are all values, their
/// halves and their middle half, as of two steps one makes values look dependent beside the other;
/// the probability counts these looks in (Bonferroni), and that they are repeated after each value:
/// it is the chance that one of all looks so far shows such a step.
#[must_use]
pub fn change(values: &[f64]) -> Option<(usize, f64)> {
    let in_window = |(from, to): (usize, usize)| {
        let found = step(values.get(from..to)?)?;
        Some((from + found.place, chance(found.z, values.len())))
    };
    windows(values.len()).filter_map(in_window).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Where to look: all values, their halves and their middle half, if they are long enough.
fn windows(count: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = [(0, count), (0, count / 2), (count / 2, count), (count / 4, count * 3 / 4)];
    all.into_iter().filter(|(from, to)| to - from >= FEWEST_VALUES)
}

/// The probability of such a step in any look so far at `count` values that stay the same.
fn chance(z: f64, count: usize) -> f64 {
    (NIGHTLY * windows(count).count() as f64 * probability(z)).min(1.0)
}

/// The number of `count` values that must lie on either side of a step to be found at `level`,
/// however large it is: ranks know no larger difference than that all values lie on one side of all
/// others. For values with a correlation of 0.3 between neighbours. `None` if no place is enough.
#[must_use]
pub fn fewest_beside(count: usize, level: f64) -> Option<usize> {
    if count < FEWEST_VALUES {
        return None;
    }
    let all = count as f64;
    let dependence = (1.0 - TYPICAL_DEPENDENCE) / (1.0 + TYPICAL_DEPENDENCE);
    let most = |beside: f64| (3.0 * beside * (all - beside) / (all + 1.0) * dependence).sqrt();
    (SIDE..=count / 2).find(|beside| chance(most(*beside as f64), count) <= level)
}

/// The level below which probabilities are taken for changes, so that of all that are, this share
/// is wrong on average (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57,
/// 1995, p. 289).
#[must_use]
pub fn discovery_level(probabilities: &[f64], share: f64) -> f64 {
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let all = sorted.len() as f64;
    let allowed = sorted.iter().enumerate().map(|(at, p)| (p, share * (at + 1) as f64 / all));
    allowed.filter(|(p, allowed)| *p <= allowed).map(|(p, _)| *p).fold(0.0, f64::max)
}

/// A step that was seen as soon as it could be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepAlarm {
    /// With this value it was seen.
    pub seen: usize,
    /// The first value after the step.
    pub place: usize,
    /// With this value it was seen last.
    pub seen_last: usize,
    /// Whether values became larger.
    pub is_up: bool,
    /// By what it was seen.
    pub rule: AlarmRule,
}

/// By what a step was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmRule {
    /// Ranks before and after it differ more than by chance.
    Ranks,
    /// Three values one after the other are each over twice the largest before them.
    GrossJump,
}

/// The jump that is seen first with the last of these values: the place of its first one.
fn gross_jump(values: &[f64]) -> Option<usize> {
    let place = values.len().checked_sub(GROSS_VALUES)?;
    let (before, after) = values.split_at(place);
    let limit = GROSS_RATIO * before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (limit > 0.0 && after.iter().all(|value| *value > limit)).then_some(place)
}

/// How many of these values in a row are over twice the largest before `place`.
fn lasting(values: &[f64], place: usize) -> usize {
    let (before, after) = values.split_at(place.min(values.len()));
    let limit = GROSS_RATIO * before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    after.iter().take(GROSS_WEEK).take_while(|value| **value > limit).count()
}

/// What would have been seen by looking after each value: where values stay the same, one alarm in
/// `run_length` of them on average, or fewer. After an alarm only values after its step are looked
/// at. `matters` is asked whether a step is large enough: it gets the first value that is looked
/// at, the first one after the step, and the last one. A gross jump up is an alarm, too; values are
/// positive.
#[must_use]
pub fn alarms(
    values: &[f64],
    run_length: f64,
    matters: impl Fn(usize, usize, usize) -> bool,
) -> Vec<StepAlarm> {
    let (square, exponent, slope) = LIMIT;
    let limit = (square + (run_length.max(2.0).ln() - exponent) / slope).max(1.0).sqrt();
    let mut found = Vec::new();
    let mut begin = 0;
    for seen in 0..values.len() {
        let from = begin.max((seen + 1).saturating_sub(WINDOW));
        let looked_at = values.get(from..=seen).unwrap_or_default();
        if looked_at.len() < FEWEST_VALUES {
            continue;
        }
        let is_seen =
            |step: &RankStep| step.z.abs() > limit && matters(from, from + step.place, seen);
        if let Some(RankStep { place, z }) = step(looked_at).filter(is_seen) {
            begin = from + place;
            let rule = AlarmRule::Ranks;
            found.push(StepAlarm { seen, place: begin, seen_last: seen, is_up: z > 0.0, rule });
        } else if let Some(place) =
            gross_jump(looked_at).filter(|place| matters(from, from + place, seen))
        {
            let own = values.get(from..).unwrap_or_default();
            let seen_last = from + place + lasting(own, place) - 1;
            begin = from + place;
            let rule = AlarmRule::GrossJump;
            found.push(StepAlarm { seen, place: begin, seen_last, is_up: true, rule });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::random::SplitMix64;

    /// Values of mean 0 and a correlation of neighbours, about normal.
    fn noise(count: usize, correlation: f64, random: &mut SplitMix64) -> Vec<f64> {
        let normal = |random: &mut SplitMix64| (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let mut last = normal(random);
        let next = |_| {
            last = correlation * last + (1.0 - correlation * correlation).sqrt() * normal(random);
            last
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn a_gross_jump_is_seen_with_its_third_value_and_stays_an_alarm_while_it_lasts() {
        let mut random = SplitMix64::new(7);
        let mut values: Vec<f64> =
            noise(45, 0.3, &mut random).iter().map(|own| 50.0 * (own * 0.1).exp()).collect();
        values.iter_mut().skip(40).for_each(|value| *value *= 10.0);
        let found = alarms(&values, 10_000.0, |_, _, _| true);
        let [alarm] = found.as_slice() else { panic!("{found:?}") };
        let rule = AlarmRule::GrossJump;
        assert_eq!(*alarm, StepAlarm { seen: 42, place: 40, seen_last: 44, is_up: true, rule });
        values[43] = 50.0;
        assert_eq!(alarms(&values, 10_000.0, |_, _, _| true)[0].seen_last, 42);
        values[41] = 50.0;
        assert_eq!(alarms(&values, 10_000.0, |_, _, _| true), []);
    }

    #[test]
    fn quiet_histories_seldom_raise_an_alarm_also_of_maxima_without_a_usual_size() {
        let mut random = SplitMix64::new(11);
        let spread = |values: Vec<f64>| values.iter().map(|own| (own * 0.2).exp()).collect();
        // Of the maximum of a night hardly anything is usual (Pareto, exponent 1.5).
        let heavy = |random: &mut SplitMix64| -> Vec<f64> {
            (0..170).map(|_| (1.0 - random.uniform()).powf(-1.0 / 1.5)).collect()
        };
        for kind in 0..3 {
            let is_raised = |_: &u32| {
                let values: Vec<f64> = match kind {
                    0 => spread(noise(170, 0.0, &mut random)),
                    1 => spread(noise(170, 0.3, &mut random)),
                    _ => heavy(&mut random),
                };
                !alarms(&values, 10_000.0, |_, _, _| true).is_empty()
            };
            let raised = (0..100).filter(is_raised).count();
            assert!(raised <= 4, "{kind}: {raised} of 100");
        }
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut values: Vec<f64> = (0..60_u32).map(|n| f64::from(n * 37 % 11)).collect();
        values.iter_mut().skip(40).for_each(|value| *value += 20.0);
        let found = step(&values).unwrap();
        assert_eq!(found.place, 40);
        assert!(found.z > 5.0 && probability(found.z) < 1e-4, "{found:?}");
        values.iter_mut().for_each(|value| *value = -*value);
        assert!(step(&values).unwrap().z < -5.0);
        assert_eq!(step(&[1.0; 30]), None);
        assert_eq!(step(&[1.0; 7]), None);
    }

    #[test]
    fn probabilities_fall_and_pass_through_what_was_simulated() {
        for (chance, limit) in CHANCES {
            assert!((probability(limit) / chance - 1.0).abs() < 1e-9);
        }
        assert!(probability(6.0) < 1e-5 && probability(6.0) > 1e-9);
        assert!((probability(0.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_of_what_stays_the_same_is_called_a_change_also_where_nights_depend_on_each_other() {
        let mut random = SplitMix64::new(1);
        for correlation in [0.0, 0.3, 0.6] {
            let is_found = |_: &u32| !steps(&noise(60, correlation, &mut random), 0.05).is_empty();
            let found = (0..400).filter(is_found).count();
            // 5% are 20, whose standard deviation is 4.4; the seed is fixed.
            assert!(found <= 30, "{correlation}: {found} of 400");
        }
    }

    #[test]
    fn all_steps_of_a_sequence_are_found() {
        let mut values = noise(120, 0.0, &mut SplitMix64::new(3));
        values.iter_mut().skip(40).for_each(|value| *value += 6.0);
        values.iter_mut().skip(80).for_each(|value| *value -= 12.0);
        let found = steps(&values, 0.01);
        // With 6 SD a place may be a night or two off, as noise has it.
        let is_near = |(at, truth): (&usize, usize)| at.abs_diff(truth) <= 2;
        assert!(found.len() == 2 && found.iter().zip([40, 80]).all(is_near), "{found:?}");
    }

    #[test]
    fn of_many_series_a_share_of_what_is_found_may_be_none() {
        assert_eq!(discovery_level(&[], 0.05), 0.0);
        assert_eq!(discovery_level(&[0.04, 0.5, 0.9], 0.05), 0.0);
        assert_eq!(discovery_level(&[0.04, 0.02, 0.03], 0.05), 0.04);
    }

    #[test]
    fn night_after_night_a_step_is_seen_once_and_soon() {
        let mut values = noise(100, 0.0, &mut SplitMix64::new(5));
        values.iter_mut().for_each(|value| *value += 20.0);
        values.iter_mut().skip(60).for_each(|value| *value += 6.0);
        let any = |_, _, _| true;
        let found = alarms(&values, 1_000.0, any);
        assert!(matches!(found.as_slice(), [one] if one.is_up && one.place == 60), "{found:?}");
        assert!((63..75).contains(&found[0].seen), "{found:?}");
        // What was seen does not depend on what came later.
        assert_eq!(alarms(&values[..=found[0].seen], 1_000.0, any), found);
        assert_eq!(alarms(&values[..found[0].seen], 1_000.0, any), []);
    }
    #[test]
    fn a_step_that_does_not_matter_raises_no_alarm_until_it_does() {
        let mut values: Vec<f64> = (0..90_u32).map(|n| f64::from(n * 37 % 11)).collect();
        values.iter_mut().skip(40).for_each(|value| *value += 20.0);
        let found = alarms(&values, 1_000.0, |from, place, last| {
            assert!(from <= place && place <= last);
            last >= 80
        });
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.seen, one.place), (80, 40));
    }

    #[test]
    fn how_near_the_end_a_step_may_be_is_said_as_it_is() {
        let mut last = None;
        for count in [60, 120, 400] {
            let beside = fewest_beside(count, 0.025).unwrap();
            for (after, is_found) in [(beside, true), (SIDE, false)] {
                let mut values: Vec<f64> =
                    (0..count).map(|n| (n * 37 % 11) as f64 + (n * 29 % 7) as f64).collect();
                values.iter_mut().skip(count - after).for_each(|value| *value += 1_000.0);
                assert_eq!(!steps(&values, 0.025).is_empty(), is_found, "{after} of {count}");
            }
            // Of more values fewer have to lie beside it.
            assert!(last.is_none_or(|last| beside <= last) && beside > SIDE, "{beside}");
            last = Some(beside);
        }
        assert_eq!((fewest_beside(19, 0.05), fewest_beside(20, 0.05)), (None, None));
        assert_eq!(fewest_beside(60, 1e-6), None, "as with many rows");
    }
}
