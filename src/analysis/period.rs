//! Do peaks come periodically? And with which period?
//!
//! Events are folded at candidate periods and tested with Rayleigh's statistic (Rayleigh 1880; the
//! tail is that of Greenwood and Durand 1955, `P(n R^2 > z) < exp(-z)` to first order). Candidates
//! come from the differences of neighbouring events, but the false-alarm probability counts all
//! periods that could have been found: as many as there are independent frequencies in the time,
//! times three for what lies between them. One event per cycle is tested, drawn without looking at
//! its phase, so that a burst of peaks does not pass for a beat.

use std::{cmp::Ordering, f64::consts::TAU};

use serde::{Deserialize, Serialize};

/// With fewer cycles nothing is said.
const FEWEST_CYCLES: usize = 8;
/// More events than this add nothing but time.
const MOST_EVENTS: usize = 4_000;
/// Differences to this number of following events give candidates, divided by these numbers.
const NEIGHBOURS: usize = 4;
const DIVISORS: u32 = 8;
/// The number of candidates that are examined closely.
const CLOSE: usize = 16;
/// Samples that are taken at a grid have no phases below this number of its steps.
const STEPS: i64 = 4;
/// An event matches the period if it is within this share of a period.
const NEAR: f64 = 0.1;
/// A shorter period must be better by this factor than a longer one that has it as a harmonic.
const BETTER: f64 = 1.15;

/// A period of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Periodicity {
    /// The period, ns.
    pub period_ns: f64,
    /// Events that were looked at.
    pub events: u64,
    /// Share of them within a tenth of a period of the beat, 0 to 1; a fifth would be there anyhow.
    pub share: f64,
    /// How far those spread about the beat: the root of the mean square, ns.
    pub spread_ns: f64,
    /// How likely events without any period would look like this somewhere.
    pub false_alarm: f64,
}

/// The period of events at `times_ns`, sorted, if there is one at this level of false alarms; with
/// several, that of the most events. Periods are from four `grid_ns` (the interval at which there
/// can be events at all) to an eighth of the time.
#[must_use]
pub fn period(times_ns: &[i64], grid_ns: i64, level: f64) -> Option<Periodicity> {
    let times = relative(times_ns);
    let span = *times.last()?;
    let shortest = (grid_ns.max(1).saturating_mul(STEPS)) as f64;
    let longest = span / FEWEST_CYCLES as f64;
    if times.len() < FEWEST_CYCLES || longest < shortest {
        return None;
    }
    let search = Search { times: &times, span, shortest, longest };
    let mut best: Option<Fold> = None;
    for candidate in search.candidates() {
        let fold = search.refined(candidate);
        let is_better = |best: &Fold| fold.is_better_than(best);
        if search.holds(&fold) && best.as_ref().is_none_or(is_better) {
            best = Some(fold);
        }
    }
    let best = best?;
    let false_alarm = search.false_alarm(&best);
    (false_alarm <= level).then(|| search.periodicity(&best, false_alarm))
}

/// Times after the first event; where there are too many events, those of the beginning.
fn relative(times_ns: &[i64]) -> Vec<f64> {
    let first = times_ns.first().copied().unwrap_or(0);
    let after = |ns: &i64| i128::from(*ns) - i128::from(first);
    times_ns.iter().take(MOST_EVENTS).map(|ns| after(ns).max(0) as f64).collect()
}

/// Events folded at one period.
#[derive(Debug, Clone, Copy)]
struct Fold {
    period: f64,
    /// The resultant of the phases, 0 to 1, and their mean direction, in turns.
    resultant: f64,
    phase: f64,
    /// How many were folded.
    cycles: usize,
}

impl Fold {
    /// n R^2.
    fn power(&self) -> f64 {
        self.cycles as f64 * self.resultant * self.resultant
    }

    /// Harmonics of a period fit as well as itself: the longer one is the period.
    fn is_better_than(&self, other: &Self) -> bool {
        if self.period > other.period {
            self.resultant * BETTER >= other.resultant && self.power() * 2.0 >= other.power()
        } else {
            self.resultant > other.resultant * BETTER || self.power() > other.power() * 2.0
        }
    }
}

struct Search<'a> {
    times: &'a [f64],
    span: f64,
    shortest: f64,
    longest: f64,
}

impl Search<'_> {
    /// Periods that differences of neighbours suggest, the most coherent first.
    fn candidates(&self) -> Vec<f64> {
        let mut differences = Vec::new();
        for lag in 1..=NEIGHBOURS {
            let pairs = self.times.iter().zip(self.times.iter().skip(lag));
            differences.extend(pairs.map(|(early, late)| late - early));
        }
        differences.retain(|ns| *ns >= self.shortest);
        differences.sort_by(f64::total_cmp);
        // Evenly thinned: each takes a pass over all.
        let step = (differences.len() / 200).max(1);
        let chosen = differences.iter().copied().step_by(step);
        let divided = chosen.flat_map(|ns| (1..=DIVISORS).map(move |by| ns / f64::from(by)));
        let is_sought = |period: &f64| (self.shortest..=self.longest).contains(period);
        let scored = divided.filter(is_sought).map(|period| (near(&differences, period), period));
        let mut scored: Vec<(f64, f64)> = scored.collect();
        // What fits about as well is a period and its harmonics: the longest first.
        let rank = |(score, period): &(f64, f64)| ((score * 20.0).round(), *period);
        scored.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(Ordering::Equal));
        let mut found: Vec<f64> = Vec::new();
        for (_, period) in scored {
            let is_new = found.iter().all(|known| (known / period - 1.0).abs() > 0.01);
            if is_new {
                found.push(period);
            }
            if found.len() == CLOSE {
                break;
            }
        }
        found
    }

    /// The period near `period` that fits best, over ever longer stretches from the first event:
    /// an error of a period drifts, so that a stretch twice as long shows it twice as well.
    fn refined(&self, period: f64) -> Fold {
        let mut best = period;
        let eighth = self.times.get(FEWEST_CYCLES).copied().unwrap_or(self.span);
        let mut stretch = eighth.max(period * FEWEST_CYCLES as f64);
        // Where events are few, the first stretch is of many periods, and a candidate's own error
        // is many steps.
        let mut steps = (0.04 * 8.0 * stretch / period).clamp(6.0, 100.0) as i32;
        loop {
            let until = self.times.partition_point(|time| *time <= stretch);
            let times = self.times.get(..until).unwrap_or(self.times);
            let step = best * best / stretch / 8.0;
            let near = (-steps..=steps).map(|steps| best + f64::from(steps) * step);
            let fit = near.map(|period| (resultant(times.iter().copied(), period).0, period));
            best = fit.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(best, |(_, period)| period);
            if stretch >= self.span {
                break;
            }
            stretch *= 2.0;
            steps = 6;
        }
        self.folded(best.clamp(self.shortest, self.longest))
    }

    /// One event of each cycle, drawn without looking at its phase.
    fn folded(&self, period: f64) -> Fold {
        let mut drawn = Vec::new();
        let mut rest = self.times;
        while let Some(first) = rest.first() {
            let cycle = (first / period).floor();
            let end = rest.partition_point(|time| (time / period).floor() <= cycle);
            let (within, after) = rest.split_at(end.max(1));
            let turn = (drawn.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            drawn.extend(within.get(turn as usize % within.len()));
            rest = after;
        }
        let cycles = drawn.len();
        let (resultant, phase) = resultant(drawn.into_iter(), period);
        Fold { period, resultant, phase, cycles }
    }

    fn holds(&self, fold: &Fold) -> bool {
        fold.cycles >= FEWEST_CYCLES
    }

    /// Bonferroni over all periods that could have been found, and a factor three for those between
    /// independent ones.
    fn false_alarm(&self, fold: &Fold) -> f64 {
        let sought = 3.0 * self.span / self.shortest;
        (sought * (-fold.power()).exp()).min(1.0)
    }

    fn periodicity(&self, fold: &Fold, false_alarm: f64) -> Periodicity {
        let off = self.times.iter().map(|time| {
            let turns = time / fold.period - fold.phase;
            turns - turns.round()
        });
        let near: Vec<f64> = off.filter(|off| off.abs() <= NEAR).collect();
        let square = near.iter().map(|off| off * off).sum::<f64>() / near.len().max(1) as f64;
        Periodicity {
            period_ns: fold.period,
            events: self.times.len() as u64,
            share: near.len() as f64 / self.times.len().max(1) as f64,
            spread_ns: square.sqrt() * fold.period,
            false_alarm,
        }
    }
}

/// How well differences are multiples of a period: the mean cosine, -1 to 1.
fn near(differences: &[f64], period: f64) -> f64 {
    let sum: f64 = differences.iter().map(|ns| (TAU * ns / period).cos()).sum();
    sum / differences.len().max(1) as f64
}

/// The resultant of phases, 0 to 1, and their mean direction in turns.
fn resultant(times: impl Iterator<Item = f64>, period: f64) -> (f64, f64) {
    let (mut cos, mut sin, mut n) = (0.0, 0.0, 0_u32);
    for time in times {
        let angle = TAU * (time / period).fract();
        cos += angle.cos();
        sin += angle.sin();
        n += 1;
    }
    let length = (cos * cos + sin * sin).sqrt() / f64::from(n.max(1));
    (length, f64::atan2(sin, cos) / TAU)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const LEVEL: f64 = 0.01;

    /// SplitMix64 (Steele, Lea, Flood 2014).
    struct Random(u64);

    impl Random {
        /// Evenly from 0 to below 1.
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Events without memory, at a grid of 1 ms as wake-ups are, `mean_ms` apart.
        fn poisson(&mut self, n: usize, mean_ms: f64) -> Vec<i64> {
            let mut at = 0.0;
            let mut times = Vec::new();
            for _ in 0..n {
                at += -(1.0 - self.unit()).ln() * mean_ms;
                times.push(at.floor() as i64 * MS);
            }
            times
        }
    }

    /// Every `period_ms`, a share of `kept`, late by up to `jitter_ms`, on the grid; and `noise`
    /// events anywhere.
    fn beat(
        period_ms: f64,
        n: usize,
        kept: f64,
        jitter_ms: f64,
        noise: usize,
        seed: u64,
    ) -> Vec<i64> {
        let mut random = Random(seed);
        let mut times = Vec::new();
        for cycle in 0..n {
            if random.unit() < kept {
                let at = cycle as f64 * period_ms + 3.0 + random.unit() * jitter_ms;
                times.push(at.ceil() as i64 * MS);
            }
        }
        for _ in 0..noise {
            times.push((random.unit() * period_ms * n as f64) as i64 * MS);
        }
        times.sort_unstable();
        times
    }

    #[track_caller]
    fn finds(times: &[i64], period_ms: f64) -> Periodicity {
        let found = period(times, MS, LEVEL).expect("there is a period");
        let error = found.period_ns / (period_ms * 1e6) - 1.0;
        assert!(error.abs() < 2e-3, "{period_ms} ms: {found:?}");
        found
    }

    #[test]
    fn a_clean_beat_is_found_with_its_spread() {
        let found = finds(&beat(50.0, 200, 1.0, 0.0, 0, 1), 50.0);
        assert!(found.share > 0.99 && found.spread_ns < 1e6, "{found:?}");
        assert!(found.false_alarm < 1e-9 && found.events == 200, "{found:?}");
    }

    #[test]
    fn a_beat_is_found_though_most_of_it_is_missing_or_late() {
        for seed in 1..5 {
            finds(&beat(50.0, 1_200, 0.1, 0.0, 0, seed), 50.0);
            finds(&beat(100.0, 600, 0.5, 20.0, 0, seed), 100.0);
            finds(&beat(33.37, 300, 0.6, 2.0, 0, seed), 33.37);
            finds(&beat(1_000.0, 60, 0.7, 10.0, 0, seed), 1_000.0);
        }
    }

    #[test]
    fn a_period_is_found_among_others_and_its_share_is_reported() {
        for seed in 1..9 {
            let found = finds(&beat(50.0, 400, 0.8, 1.0, 200, seed), 50.0);
            assert!((0.55..0.8).contains(&found.share), "{found:?}");
        }
    }

    #[test]
    fn events_without_memory_have_no_period_but_at_the_stated_rate() {
        let mut alarms = 0;
        for seed in 0..60 {
            let mut random = Random(seed);
            let n = 20 + (random.unit() * 300.0) as usize;
            let mean_ms = 5.0 + random.unit() * 300.0;
            alarms += u32::from(period(&random.poisson(n, mean_ms), MS, LEVEL).is_some());
        }
        // At most 0.6 are expected; 4 or more would come less than once in a hundred.
        assert!(alarms < 4, "{alarms} of 60");
    }

    #[test]
    fn bursts_are_no_beat() {
        let mut alarms = 0;
        for seed in 0..30 {
            let mut random = Random(seed);
            let centres = random.poisson(25, 900.0);
            let mut times: Vec<i64> = centres
                .iter()
                .flat_map(|at| random.poisson(12, 6.0).into_iter().map(move |after| at + after))
                .collect();
            times.sort_unstable();
            alarms += u32::from(period(&times, MS, LEVEL).is_some());
        }
        assert!(alarms < 3, "{alarms} of 30");
    }

    #[test]
    fn too_few_events_and_absurd_ones_have_no_period() {
        assert_eq!(period(&[], MS, LEVEL), None);
        assert_eq!(period(&[1, 2, 3], MS, LEVEL), None);
        assert_eq!(period(&[5; 100], MS, LEVEL), None);
        let _ = period(&[i64::MIN, -1, 0, 1, i64::MAX, i64::MAX], 0, LEVEL);
        let wide: Vec<i64> = (-60..60).map(|k| k * (i64::MAX / 64)).collect();
        let _ = period(&wide, i64::MAX, LEVEL);
    }
}
