//! Several runs of A against several of B: does a figure differ, beyond what runs of one side
//! differ among themselves?
//!
//! The unit of replication is the run: how samples depend on each other within one does not matter.
//! The means of the logarithms are compared by Welch's test, which lets the sides differ in spread
//! (Biometrika 34, 1947, p. 28; degrees of freedom by Satterthwaite, Biometrics Bulletin 2, 1946,
//! p. 110). Over several figures the error probability is shared by Holm's rule (Scandinavian
//! Journal of Statistics 6, 1979, p. 65), and the interval of a figure has the one at which it was
//! tested.
//!
//! The test believes that runs are independent: made in turns, not all of A and then all of B.

use super::{
    ab::ALPHA,
    distributions::{normal_upper, t_tail, t_upper},
    phases::holm,
};
use crate::run::AbVerdict;

/// With fewer runs on a side nothing is judged: two hardly show how much runs differ.
pub const FEWEST_RUNS: usize = 3;

/// A number of runs that is not worth being named.
const MOST_RUNS: f64 = 100_000.0;

/// With this probability as many runs as are said to be needed decide.
const POWER: f64 = 0.8;

/// One figure of every run, as a logarithm.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicatedFigure {
    /// Of the runs of A.
    pub a: Vec<f64>,
    /// Of the runs of B.
    pub b: Vec<f64>,
    /// What the standard deviation of a run is at least: the width of a bucket, or that of chance.
    pub least_sd: f64,
    /// Differences below this are called the same, as a logarithm.
    pub margin: f64,
}

/// What the runs say of a figure. Logarithms of B / A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplicatedResult {
    /// The difference of the means.
    pub mean: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Figures that share the error probability with this one, with itself: that of its interval is
    /// 5% divided by it.
    pub share: usize,
    /// What follows.
    pub verdict: AbVerdict,
    /// The number of runs a side that would decide it in four of five cases, if difference and
    /// spread stay as they are; `None` if it is decided, and for more than 100,000.
    pub needed: Option<u32>,
}

/// The difference of two sides, before it is judged.
#[derive(Debug, Clone, Copy)]
struct Difference {
    mean: f64,
    /// The variance of one run, the mean of both sides.
    variance: f64,
    error: f64,
    freedom: f64,
}

impl Difference {
    fn of(figure: &ReplicatedFigure) -> Self {
        let least = figure.least_sd.powi(2);
        let (a, b) = (mean_variance(&figure.a, least), mean_variance(&figure.b, least));
        let (count_a, count_b) = (figure.a.len() as f64, figure.b.len() as f64);
        let (of_a, of_b) = (a.1 / count_a, b.1 / count_b);
        let spread = of_a.powi(2) / (count_a - 1.0) + of_b.powi(2) / (count_b - 1.0);
        Self {
            mean: b.0 - a.0,
            variance: f64::midpoint(a.1, b.1),
            error: (of_a + of_b).sqrt(),
            freedom: ((of_a + of_b).powi(2) / spread).max(1.0),
        }
    }

    /// The probability of a difference at least as large if both sides are the same.
    fn probability(&self) -> f64 {
        2.0 * t_tail(self.mean.abs() / self.error, self.freedom)
    }

    fn judged(&self, margin: f64, share: usize) -> ReplicatedResult {
        let alpha = ALPHA / share as f64;
        let half = t_upper(alpha / 2.0, self.freedom) * self.error;
        let (low, high) = (self.mean - half, self.mean + half);
        let verdict = match () {
            () if -margin < low && high < margin => AbVerdict::Same,
            () if high < 0.0 => AbVerdict::Better,
            () if low > 0.0 => AbVerdict::Worse,
            () => AbVerdict::Inconclusive,
        };
        let is_open = verdict == AbVerdict::Inconclusive;
        let needed = is_open.then(|| self.needed(margin, alpha)).flatten();
        ReplicatedResult { mean: self.mean, low, high, share, verdict, needed }
    }

    /// Runs a side that tell it from no difference or from the margin, whichever is easier.
    fn needed(&self, margin: f64, alpha: f64) -> Option<u32> {
        runs_needed(self.variance, self.mean.abs().max(margin - self.mean.abs()), alpha)
    }
}

/// Runs a side with which a difference of `distance` is seen in four of five cases at an error
/// probability of `alpha`, where one run has this variance (Guenther, The American Statistician 35,
/// 1981, p. 243); `None` for more than 100,000.
pub(super) fn runs_needed(variance: f64, distance: f64, alpha: f64) -> Option<u32> {
    let z = normal_upper(alpha / 2.0);
    let reach = (z + normal_upper(1.0 - POWER)).powi(2);
    let runs = 2.0 * reach * variance / distance.powi(2) + z.powi(2) / 4.0;
    (runs <= MOST_RUNS).then(|| runs.ceil().max(FEWEST_RUNS as f64) as u32)
}

/// Mean, and variance but not below `least`.
fn mean_variance(logs: &[f64], least: f64) -> (f64, f64) {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).max(least))
}

/// What the runs say of each figure; absent for one with fewer than [`FEWEST_RUNS`] on a side,
/// which takes no share of the error probability either.
#[must_use]
pub fn judge(figures: &[ReplicatedFigure]) -> Vec<Option<ReplicatedResult>> {
    let has_enough = |figure: &&ReplicatedFigure| figure.a.len().min(figure.b.len()) >= FEWEST_RUNS;
    let differences: Vec<Option<Difference>> =
        figures.iter().map(|figure| Some(figure).filter(has_enough).map(Difference::of)).collect();
    let found = differences.iter().flatten();
    let mut shares = holm(&found.map(Difference::probability).collect::<Vec<_>>(), 0).into_iter();
    let all = figures.iter().zip(&differences);
    all.map(|(figure, found)| Some((*found)?.judged(figure.margin, shares.next()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(a: &[f64], b: &[f64]) -> ReplicatedFigure {
        ReplicatedFigure { a: a.into(), b: b.into(), least_sd: 0.001, margin: 0.05 }
    }

    fn one(a: &[f64], b: &[f64]) -> ReplicatedResult {
        judge(&[figure(a, b)])[0].unwrap()
    }

    #[test]
    fn the_interval_is_the_one_computed_by_hand() {
        // Means 0.2 and 0.5; variances 0.01 and 0.04 over 3 runs; error^2 = 0.05 / 3, so 0.129099;
        // freedom = 0.05^2 / ((0.01^2 + 0.04^2) / 2) = 2.9412, t of 0.025 between 4.303 (of 2) and
        // 3.182 (of 3): 3.2254 by statistical tables of fractional degrees.
        let found = one(&[0.1, 0.2, 0.3], &[0.3, 0.5, 0.7]);
        let half = t_upper(0.025, 2.941_176) * 0.129_099;
        assert!((3.18..3.30).contains(&(half / 0.129_099)), "{half}");
        assert!((found.mean - 0.3).abs() < 1e-12, "{found:?}");
        assert!((found.low - (0.3 - half)).abs() < 1e-5, "{found:?}");
        assert!((found.high - (0.3 + half)).abs() < 1e-5, "{found:?}");
        assert_eq!((found.verdict, found.share), (AbVerdict::Inconclusive, 1));
    }

    #[test]
    fn verdicts_follow_from_the_interval_and_the_margin() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        // Error of a difference about 0.0082, t about 2.8: 0.023 to either side.
        let near = |mean: f64| [mean - 0.01, mean, mean + 0.01];
        let base = near(1.0);
        for (mean, expected) in [(1.1, Worse), (0.9, Better), (1.0, Same), (1.04, Worse)] {
            assert_eq!(one(&base, &near(mean)).verdict, expected, "{mean}");
        }
        assert_eq!(one(&[0.5, 1.0, 1.5], &[0.6, 1.1, 1.6]).verdict, Inconclusive);
        // Certainly not zero, and certainly below the margin.
        let fine = |mean: f64| [mean - 0.001, mean, mean + 0.001];
        assert_eq!(one(&fine(1.0), &fine(1.02)).verdict, Same);
    }

    #[test]
    fn two_runs_of_a_side_are_not_judged() {
        let few = [figure(&[1.0, 1.1], &[2.0, 2.1, 2.2]), figure(&[1.0], &[2.0])];
        assert_eq!(judge(&few), [None, None]);
        assert_eq!(judge(&[]), []);
        // Nor do they take from what others are tested at.
        let enough = figure(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2]);
        let both = judge(&[few[0].clone(), enough.clone()]);
        assert_eq!(both[1], judge(&[enough])[0]);
    }

    #[test]
    fn runs_that_are_all_alike_are_no_certainty() {
        let alike = ReplicatedFigure { least_sd: 0.5, ..figure(&[1.0; 3], &[1.2; 3]) };
        assert_eq!(judge(&[alike])[0].unwrap().verdict, AbVerdict::Inconclusive);
    }

    #[test]
    fn holm_asks_most_of_the_strongest_and_less_of_the_next() {
        // With 2 degrees of freedom more than it takes: p of 3 runs a side as means move apart.
        let shifted = |shift: f64| figure(&[0.0, 0.1, 0.2], &[shift, shift + 0.1, shift + 0.2]);
        let p = |shift| Difference::of(&shifted(shift)).probability();
        let at = |wanted: f64| {
            let (mut low, mut high) = (0.0, 10.0);
            for _ in 0..60 {
                let middle = f64::midpoint(low, high);
                if p(middle) > wanted { low = middle } else { high = middle }
            }
            low
        };
        // Enough for a half of 5%, and not for a third.
        let middle = at(0.02);
        let strong = at(0.001);
        let of = |shifts: [f64; 3]| {
            let found = judge(&shifts.map(shifted));
            found.iter().flatten().map(|one| (one.low > 0.0, one.share)).collect::<Vec<_>>()
        };
        assert_eq!(of([middle, 0.0, 0.0]), [(false, 3), (false, 3), (false, 3)]);
        assert_eq!(of([0.0, middle, strong]), [(false, 1), (true, 2), (true, 3)]);
    }

    #[test]
    fn what_is_needed_decides_in_four_of_five_cases() {
        use crate::analysis::{distributions::normal_upper, random::SplitMix64};
        let undecided = one(&[0.0, 0.1, 0.2], &[0.1, 0.2, 0.3]);
        let needed = undecided.needed.unwrap() as usize;
        // 2 * 7.849 * 0.01 / 0.01 + 0.96 = 16.7.
        assert_eq!(needed, 17);
        let mut random = SplitMix64::new(3);
        let mut draw = |mean: f64| -> Vec<f64> {
            (0..needed).map(|_| mean + 0.1 * normal_upper(random.uniform())).collect()
        };
        let found = (0..1_000).filter(|_| one(&draw(0.0), &draw(0.1)).low > 0.0).count();
        assert!((760..840).contains(&found), "{found}");
        let hopeless = one(&[0.0, 9.0, 18.0], &[0.001, 9.001, 18.001]);
        assert_eq!((hopeless.verdict, hopeless.needed), (AbVerdict::Inconclusive, None));
    }
}
