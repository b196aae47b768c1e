//! Many changes tried at once: which of them differ from nothing, with false discoveries
//! controlled.
//!
//! Each change and figure is one test: of the mean log ratio of pairs, whose number was fixed
//! beforehand, by Student's t. Of all tests together those are discoveries that the procedure of
//! Benjamini and Hochberg (JRSS B 57, 1995, p. 289) finds: of what is called better or worse, the
//! expected share that is neither stays below the rate. Figures of one change go together, and so
//! do changes that share blocks of one machine: the procedure holds under such positive dependence
//! (Benjamini and Yekutieli, Annals of Statistics 29, 2001, p. 1165).
//!
//! The interval of a discovery is widened for having been selected: of the intervals of
//! discoveries, the expected share that misses stays below the rate (Benjamini and Yekutieli, JASA
//! 100, 2005, p. 71), which is the level 1 - rate * discoveries / tests. It leaves out "no
//! difference" exactly where the procedure does. The others have their own 95%.

use super::verdict::AbVerdict;
use crate::analysis::distributions::{t_tail, t_upper};

/// The share of false ones among the discoveries, at most, as an expectation.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Where equal sides differ by a factor of 2 or more, that others differ no more says nothing.
const MOST_FLOOR: f64 = std::f64::consts::LN_2;

/// One figure of one change: what its pairs say. Logarithms of B / A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairTest {
    /// Mean of the log ratios.
    pub mean: f64,
    /// Their standard deviation, above zero.
    pub sd: f64,
    /// How many, at least 2; fixed before they were measured.
    pub pairs: u32,
    /// Smaller differences are called the same.
    pub margin: f64,
    /// By how much equal sides would differ.
    pub floor: f64,
}

/// What is said of it, beside all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discovery {
    /// The probability of such a mean without a difference.
    pub p: f64,
    /// The smallest rate at which it would be a discovery.
    pub p_adjusted: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// What it comes to.
    pub verdict: AbVerdict,
}

impl PairTest {
    fn error(&self) -> f64 {
        self.sd / f64::from(self.pairs).sqrt()
    }

    fn freedom(&self) -> f64 {
        f64::from(self.pairs.saturating_sub(1).max(1))
    }

    fn p(&self) -> f64 {
        (2.0 * t_tail((self.mean / self.error()).abs(), self.freedom())).min(1.0)
    }

    /// Of the mean, with this error probability.
    fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = t_upper(alpha / 2.0, self.freedom()) * self.error();
        (self.mean - half, self.mean + half)
    }
}

/// What is said of each of `tests`, in their order, with an expected share of false discoveries of
/// at most `rate`.
#[must_use]
pub fn discoveries(tests: &[PairTest], rate: f64) -> Vec<Discovery> {
    let adjusted = adjusted(&tests.iter().map(PairTest::p).collect::<Vec<_>>());
    let found = adjusted.iter().filter(|p| **p <= rate).count();
    let alpha = rate * found as f64 / tests.len().max(1) as f64;
    let of = |(test, p_adjusted): (&PairTest, &f64)| {
        let is_found = *p_adjusted <= rate;
        let (low, high) = test.interval(if is_found { alpha } else { rate });
        let is_within = -test.margin < low && high < test.margin;
        let verdict = match () {
            () if is_within && test.floor <= MOST_FLOOR => AbVerdict::Same,
            () if is_within || !is_found => AbVerdict::Inconclusive,
            () if test.mean < 0.0 => AbVerdict::Better,
            () => AbVerdict::Worse,
        };
        Discovery { p: test.p(), p_adjusted: *p_adjusted, low, high, verdict }
    };
    tests.iter().zip(&adjusted).map(of).collect()
}

/// The probabilities as adjusted by the procedure: the k-th smallest of m times m / k, and none
/// more than one above it.
fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (above, place) in order.into_iter().enumerate() {
        let rank = p.len() - above;
        // The last one is its own: rounding must not make it smaller.
        least = least.min(p[place] * (p.len() as f64 / rank as f64));
        adjusted[place] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{distributions::normal_upper, random::SplitMix64};

    fn test(mean: f64, sd: f64) -> PairTest {
        PairTest { mean, sd, pairs: 6, margin: 0.05, floor: 0.05 }
    }

    #[test]
    fn probabilities_are_adjusted_as_in_the_paper() {
        // The 15 probabilities of Benjamini and Hochberg (1995), section 3.2: four are rejected at
        // 5%, where Bonferroni rejects three.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let found = adjusted(&p);
        assert_eq!(found.iter().filter(|p| **p <= 0.05).count(), 4);
        assert!((found[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12, "{found:?}");
        // Falling back to the one above: 0.0278 * 15 / 6 is more than 0.0298 * 15 / 7.
        assert!((found[5] - 0.0298 * 15.0 / 7.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found[14], adjusted(&[])), (1.0, vec![]));
    }

    #[test]
    fn one_test_alone_is_the_t_test_with_its_interval() {
        let found = discoveries(&[test(-0.2, 0.1)], 0.05)[0];
        // t = 0.2 / (0.1 / sqrt(6)) = 4.899; twice the tail with 5 degrees of freedom.
        assert!((found.p - 0.004_47).abs() < 1e-4, "{found:?}");
        let half = 2.5706 * 0.1 / 6.0_f64.sqrt();
        assert!((found.high - (half - 0.2)).abs() < 1e-4, "{found:?}");
        assert_eq!(found.verdict, AbVerdict::Better);
    }

    #[test]
    fn among_many_that_do_nothing_the_same_evidence_is_no_discovery() {
        let mut tests = vec![test(0.001, 0.1); 29];
        tests.push(test(-0.2, 0.1));
        let found = discoveries(&tests, 0.05);
        assert_eq!(found[29].verdict, AbVerdict::Inconclusive, "{:?}", found[29]);
        assert!(found[29].p < 0.05 && found[29].p_adjusted > 0.05);
        tests[29] = test(-0.9, 0.1);
        let found = discoveries(&tests, 0.05)[29];
        assert_eq!(found.verdict, AbVerdict::Better);
        // Wider than 95%, and still without zero.
        assert!(found.high - found.low > 2.0 * 2.5706 * 0.1 / 6.0_f64.sqrt() && found.high < 0.0);
    }

    #[test]
    fn what_lies_within_the_margin_is_the_same_unless_equal_sides_differ_by_twice() {
        assert_eq!(discoveries(&[test(0.001, 0.01)], 0.05)[0].verdict, AbVerdict::Same);
        let noisy = PairTest { margin: 1.0, floor: 1.0, ..test(0.001, 0.1) };
        assert_eq!(discoveries(&[noisy], 0.05)[0].verdict, AbVerdict::Inconclusive);
        assert_eq!(discoveries(&[test(0.5, 0.1)], 0.05)[0].verdict, AbVerdict::Worse);
    }

    #[test]
    fn of_many_sessions_the_false_share_of_discoveries_stays_below_the_rate() {
        let mut random = SplitMix64::new(11);
        let (mut shares, sessions) = (0.0, 400);
        for _ in 0..sessions {
            // 15 figures without a difference and 5 with a large one.
            let of = |shift: f64, random: &mut SplitMix64| {
                let pairs: Vec<f64> =
                    (0..6).map(|_| shift + 0.1 * normal_upper(random.uniform())).collect();
                let mean = pairs.iter().sum::<f64>() / 6.0;
                let square: f64 = pairs.iter().map(|pair| (pair - mean).powi(2)).sum();
                PairTest { margin: 1e-9, ..test(mean, (square / 5.0).sqrt()) }
            };
            let shifts = (0..20).map(|number| if number < 5 { -0.5 } else { 0.0 });
            let tests: Vec<PairTest> = shifts.map(|shift| of(shift, &mut random)).collect();
            let found: Vec<bool> = discoveries(&tests, 0.05)
                .iter()
                .map(|found| found.verdict != AbVerdict::Inconclusive)
                .collect();
            let all = found.iter().filter(|found| **found).count();
            let wrong = found[5..].iter().filter(|found| **found).count();
            shares += wrong as f64 / all.max(1) as f64;
        }
        // 0.05 * 15 / 20 by theory, with a standard error of about 0.005.
        assert!(shares / f64::from(sessions) < 0.055, "{}", shares / f64::from(sessions));
    }
}
