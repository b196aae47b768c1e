//! Nights that stay the same, and nights that do not, from a seed.

use super::*;
use crate::analysis::random::SplitMix64;

const FIVE: NightQuestion = NightQuestion { share: 0.05, series: 1 };

fn level(log: f64) -> NightLevel {
    NightLevel { log, runs: 1, squares: 0.0 }
}

/// Nights of one level whose neighbours have a correlation; about normal.
struct Nights {
    random: SplitMix64,
    sd: f64,
    correlation: f64,
    last: f64,
}

impl Nights {
    fn new(sd: f64, correlation: f64) -> Self {
        let mut nights = Self { random: SplitMix64::new(7), sd, correlation, last: 0.0 };
        nights.last = nights.normal();
        nights
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.uniform()).sum::<f64>() - 6.0
    }

    fn next(&mut self) -> NightLevel {
        let rest = (1.0 - self.correlation.powi(2)).sqrt();
        self.last = self.correlation * self.last + rest * self.normal();
        level(self.sd * self.last)
    }

    /// How many of 400 histories of `before` nights, and `judged` more that are worse by a share,
    /// are found so.
    fn count(
        &mut self,
        (before, judged): (usize, usize),
        question: NightQuestion,
        worse: f64,
        is_found: impl Fn(NightFinding) -> bool,
    ) -> usize {
        let is_it = |_: &usize| {
            let past: Vec<NightLevel> = (0..before).map(|_| self.next()).collect();
            let now = |night: NightLevel| level(night.log + worse.ln_1p());
            let now: Vec<NightLevel> = (0..judged).map(|_| now(self.next())).collect();
            let spread = NightSpread::of(&past).unwrap();
            is_found(spread.judge(&now, question).unwrap().finding)
        };
        (0..400).filter(is_it).count()
    }
}

fn passes(finding: NightFinding) -> bool {
    finding == NightFinding::Within
}

fn fails(finding: NightFinding) -> bool {
    finding == NightFinding::Above
}

/// As if many nights had shown this spread.
fn spread(sd: f64, correlation: f64) -> NightSpread {
    NightSpread {
        nights: 20,
        sd,
        mean: 0.0,
        correlation,
        highest: 0.0,
        within: None,
        within_share: 1.0,
    }
}

#[test]
fn the_interval_is_the_one_computed_by_hand() {
    // Eight nights, alternating: no correlation is seen, so that 20 * 0.3 / 28 is left.
    let past: Vec<NightLevel> =
        (0..8).map(|n| level(if n % 2 == 0 { 0.01 } else { -0.01 })).collect();
    let found = NightSpread::of(&past).unwrap();
    let r: f64 = 6.0 / 28.0;
    assert!((found.correlation - r).abs() < 1e-12, "{found:?}");
    let pairs: f64 = (1..8).map(|far| (1.0 - f64::from(far) / 8.0) * r.powi(far)).sum();
    let v = (1.0 + 2.0 * pairs) / 8.0;
    let sd = (8.0 * 0.0001 / (8.0 * (1.0 - v))).sqrt();
    assert!((found.sd - sd).abs() < 1e-12, "{found:?}");
    let freedom = 8.0 * (1.0 - r * r) / (1.0 + r * r) - 1.0;
    let half = t_upper(0.025, freedom) * sd * (1.0 + v).sqrt();
    let judged = found.judge(&[level(0.02)], FIVE).unwrap();
    assert!((judged.low.ln() - (0.02 - half)).abs() < 1e-9, "{judged:?} {half}");
    assert!((judged.high.ln() - (0.02 + half)).abs() < 1e-9, "{judged:?} {half}");
    assert_eq!(judged.finding, NightFinding::Open);
    assert_eq!(found.judge(&[], FIVE), None);
    assert_eq!(NightSpread::of(&past[1..]), None);
}

#[test]
fn from_the_number_that_is_said_on_most_unchanged_nights_pass() {
    let mut passed = Vec::new();
    for (sd, correlation) in [(0.01, 0.0), (0.01, 0.3), (0.0125, 0.3), (0.0125, 0.5), (0.015, 0.3)]
    {
        let needed = spread(sd, correlation).nights_needed(FIVE).unwrap();
        let count = Nights::new(sd, correlation).count((needed, 1), FIVE, 0.0, passes);
        passed.push((needed, count));
    }
    // 80% of 400 are 320.
    assert!(passed.iter().all(|(_, count)| *count >= 320), "{passed:?}");
    assert_eq!(passed, [(8, 375), (8, 365), (9, 328), (12, 348), (20, 337)]);
}

#[test]
fn unchanged_nights_seldom_fail_and_nights_that_are_worse_seldom_pass() {
    for (sd, correlation) in [(0.01, 0.3), (0.1, 0.0), (0.5, 0.3), (0.5, 0.5)] {
        let of = |worse: f64, is_found: fn(NightFinding) -> bool| {
            Nights::new(sd, correlation).count((20, 1), FIVE, worse, is_found)
        };
        // 1% and 2.5% of 400.
        let (failed, passed) = (of(0.0, fails), of(0.05, passes));
        assert!(failed <= 4 && passed <= 10, "{sd} {correlation}: {failed} {passed}");
    }
    let found = Nights::new(0.01, 0.3).count((20, 1), FIVE, 0.2, fails);
    assert!(found >= 390, "{found} of 400 steps of 20%");
}

#[test]
fn a_margin_that_no_night_decides_is_said_with_what_does() {
    let wide = spread(0.03, 0.3);
    assert_eq!(wide.nights_needed(FIVE), None);
    let margin = wide.decidable(20, 1, FIVE);
    assert!((0.08..0.11).contains(&margin), "{margin}");
    let other = NightQuestion { share: margin, series: 1 };
    let passed = Nights::new(0.03, 0.3).count((20, 1), other, 0.0, passes);
    assert!(passed >= 320, "{passed}");
    let together = wide.judged_needed(FIVE).unwrap();
    let passed = Nights::new(0.03, 0.3).count((60, together), FIVE, 0.0, passes);
    assert!(together > 2 && passed >= 320, "{together} {passed}");
    assert_eq!(spread(0.5, 0.3).judged_needed(FIVE), None);
    // All of several series are to pass.
    let four = NightQuestion { series: 4, ..FIVE };
    assert!(wide.decidable(20, 1, four) > margin);
}

#[test]
fn a_night_that_was_seen_before_is_not_called_worse() {
    let mut past: Vec<NightLevel> = (0..40).map(|n| level(0.01 * f64::from(n * 37 % 11))).collect();
    let judge = |past: &[NightLevel], log| {
        NightSpread::of(past).unwrap().judge(&[level(log)], FIVE).unwrap().finding
    };
    assert_eq!(judge(&past, 0.6), NightFinding::Above);
    past[7] = level(0.7);
    assert_eq!(judge(&past, 0.6), NightFinding::SeenBefore);
    assert_eq!(judge(&past, 0.8), NightFinding::Above);
}

#[test]
fn fewer_runs_than_usual_widen_the_interval_and_more_do_not_narrow_it() {
    let night = |middle: f64, runs: usize| {
        let ns = |run: usize| (1e6 * (middle + 0.02 * (run as f64 - 1.0)).exp()) as i64;
        NightLevel::of(&(0..runs).map(ns).collect::<Vec<i64>>()).unwrap()
    };
    let past: Vec<NightLevel> = (0..20).map(|n| night(0.001 * f64::from(n * 37 % 11), 3)).collect();
    let width = |runs: usize| {
        let found = NightSpread::of(&past).unwrap().judge(&[night(0.0, runs)], FIVE).unwrap();
        (found.high / found.low).ln()
    };
    assert!(width(1) > 1.5 * width(3), "{} {}", width(1), width(3));
    assert!((width(9) - width(3)).abs() < 1e-9);
    assert_eq!(NightLevel::of(&[]), None);
}

#[test]
fn the_runs_a_side_that_are_said_decide_in_four_of_five_cases() {
    use crate::analysis::replicates::{ReplicatedFigure, judge};
    let needed = spread(0.031, 0.3).runs_a_side(0.05).unwrap() as usize;
    // 2 * 7.849 * 0.031^2 / 0.04879^2 + 0.96 = 7.3.
    assert_eq!(needed, 8);
    let mut nights = Nights::new(0.031, 0.0);
    let mut side = || (0..needed).map(|_| nights.next().log).collect::<Vec<f64>>();
    let passed = (0..1_000).filter(|_| {
        let (a, b) = (side(), side());
        let found = judge(&[ReplicatedFigure { a, b, least_sd: 0.001, margin: 0.05 }]);
        found[0].unwrap().high < 0.05_f64.ln_1p()
    });
    let passed = passed.count();
    assert!((760..840).contains(&passed), "{passed}");
}
