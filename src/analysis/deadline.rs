//! Deadlines: what share of periods met theirs, and how misses follow each other.

use super::{
    distributions::normal_upper,
    percentile::{BlockCount, dependence},
};
use crate::run::summary::ENOUGH_BEYOND;

/// The probability with which an interval misses on either side.
const TAIL: f64 = 0.025;

/// The 95% interval of the share of misses, from 0 to 1, by the score of Wilson (JASA 22, 1927, p.
/// 209) with as many samples as independent ones would say as much. Absent with fewer than 10
/// independent misses, and where how they depend on each other cannot be estimated.
#[must_use]
pub fn share_missed(missed: u64, periods: u64, blocks: &[BlockCount]) -> Option<(f64, f64)> {
    let effect = dependence(blocks)?.design_effect;
    let effective = periods as f64 / effect;
    let share = missed as f64 / periods.max(1) as f64;
    if effective * share < ENOUGH_BEYOND as f64 {
        return None;
    }
    let square = normal_upper(TAIL).powi(2);
    let middle = (share + square / (2.0 * effective)) / (1.0 + square / effective);
    let spread = share * (1.0 - share) / effective + square / (4.0 * effective * effective);
    let half = square.sqrt() * spread.sqrt() / (1.0 + square / effective);
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

/// How misses follow each other, period by period.
#[derive(Debug, Clone)]
pub struct Misses {
    periods: u64,
    missed: u64,
    run: u64,
    longest: u64,
    windows: Vec<Window>,
}

/// The most misses in any window of a fixed number of consecutive periods.
#[derive(Debug, Clone)]
struct Window {
    length: usize,
    /// The last periods, a ring.
    last: Vec<bool>,
    within: u64,
    most: u64,
}

impl Misses {
    /// None yet; windows of these lengths are looked at.
    #[must_use]
    pub fn new(lengths: &[usize]) -> Self {
        let window = |length: &usize| Window {
            length: (*length).max(1),
            last: vec![false; (*length).max(1)],
            within: 0,
            most: 0,
        };
        let windows = lengths.iter().map(window).collect();
        Self { periods: 0, missed: 0, run: 0, longest: 0, windows }
    }

    /// The next period.
    pub fn add(&mut self, is_missed: bool) {
        for window in &mut self.windows {
            let place = (self.periods % window.length as u64) as usize;
            if let Some(oldest) = window.last.get_mut(place) {
                window.within -= u64::from(*oldest);
                *oldest = is_missed;
                window.within += u64::from(is_missed);
                window.most = window.most.max(window.within);
            }
        }
        self.periods += 1;
        self.missed += u64::from(is_missed);
        self.run = if is_missed { self.run + 1 } else { 0 };
        self.longest = self.longest.max(self.run);
    }

    /// The periods of a sample this late, of which each counts: the one that it was for, then those
    /// that passed meanwhile, each later by one period. With `period_ns` 0 there is only the first.
    pub fn add_sample(&mut self, latency_ns: i64, period_ns: i64, deadline_ns: i64) {
        let mut late_ns = latency_ns;
        self.add(late_ns > deadline_ns);
        while period_ns > 0 && late_ns >= period_ns {
            late_ns -= period_ns;
            self.add(late_ns > deadline_ns);
        }
    }

    /// Periods so far.
    #[must_use]
    pub const fn periods(&self) -> u64 {
        self.periods
    }

    /// Missed ones.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// The longest burst: the number of consecutive misses.
    #[must_use]
    pub const fn longest_burst(&self) -> u64 {
        self.longest
    }

    /// Pairs of a window's length in periods and the most misses in one window.
    pub fn windows(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.windows.iter().map(|window| (window.length, window.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_windows_are_those_counted_by_hand() {
        let mut misses = Misses::new(&[3, 10]);
        for sign in "..x.xx...xxx.x".chars() {
            misses.add(sign == 'x');
        }
        assert_eq!((misses.periods(), misses.missed(), misses.longest_burst()), (14, 7, 3));
        assert_eq!(misses.windows().collect::<Vec<_>>(), [(3, 3), (10, 6)]);
    }

    #[test]
    fn a_late_sample_takes_the_periods_that_it_slept_through() {
        let mut misses = Misses::new(&[]);
        // 3.4 periods late: 3.4, 2.4, 1.4, 0.4; all but the last are over half a period.
        misses.add_sample(3_400, 1_000, 500);
        misses.add_sample(400, 1_000, 500);
        assert_eq!((misses.periods(), misses.missed(), misses.longest_burst()), (5, 3, 3));
        let mut single = Misses::new(&[]);
        single.add_sample(3_400, 0, 500);
        assert_eq!((single.periods(), single.missed()), (1, 1));
    }

    #[test]
    fn a_share_has_an_interval_that_grows_with_groups_and_none_without_misses() {
        let blocks = |late: &dyn Fn(usize) -> u64| -> Vec<BlockCount> {
            (0..100).map(|n| BlockCount { samples: 100, beyond: late(n) }).collect()
        };
        let (low, high) = share_missed(100, 10_000, &blocks(&|_| 1)).unwrap();
        // Wilson for 100 of 10,000: 0.00823 to 0.01215.
        assert!((low - 0.00823).abs() < 2e-5 && (high - 0.01215).abs() < 2e-5, "{low} {high}");
        let grouped = blocks(&|n| if n % 4 == 0 { 4 } else { 0 });
        let (_, wider) = share_missed(100, 10_000, &grouped).unwrap();
        assert!(wider > high);
        assert_eq!(share_missed(0, 10_000, &blocks(&|_| 0)), None);
        assert_eq!(share_missed(5, 10_000, &blocks(&|n| u64::from(n < 5))), None);
    }
}
