//! Figures of two kernels over phase offsets: do they differ, and by how much at least?
//!
//! The unit of replication is the phase offset: drawn at random, each is one throw. A figure of a
//! phase is compared by its rank, so that nothing is assumed of how phases spread: by the exact
//! test of Mann and Whitney, or, where both kernels began at the same phases and that makes their
//! figures go together, by the sign test on pairs. Over all figures of a table Holm's rule shares
//! the error probability (Scandinavian Journal of Statistics 6, 1979, p. 65), and an interval has
//! the one at which its figure was tested.

pub mod ranks;

use super::{ab::ALPHA, distributions::normal_upper, ratio};
use crate::run::AbVerdict;

/// With fewer phase offsets on a side nothing is judged: even disjoint ones are too likely.
pub const FEWEST_PHASES: usize = 4;

/// Pairs that go together less surely than at this error probability are not compared as pairs.
const PAIRING_ALPHA: f64 = 0.05;

/// More phases of a side are not looked at: all differences between two sides are sorted.
const MOST_PHASES: usize = 1_000;

/// One figure of two kernels, as logarithms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhaseFigure {
    /// Of the kernel that it is compared with, by phase.
    pub a: Vec<f64>,
    /// Of the kernel that is judged.
    pub b: Vec<f64>,
    /// Of both, at the phases that both began at.
    pub pairs: Vec<(f64, f64)>,
    /// What is allowed to be called the same, as a logarithm.
    pub margin: f64,
    /// Differences up to this are not told from none, as a logarithm.
    pub floor: f64,
}

/// What the phases say of a figure. Logarithms of b / a.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseResult {
    /// The median difference.
    pub shift: f64,
    /// Its interval; `None` if there are too few phases for one.
    pub interval: Option<(f64, f64)>,
    /// The probability of such a difference between equal kernels.
    pub probability: f64,
    /// Figures that share the error probability with this one, with itself: that of its interval is
    /// 5% divided by it.
    pub share: usize,
    /// Whether it was compared in pairs.
    pub is_paired: bool,
    /// What follows: a lower figure is better.
    pub verdict: AbVerdict,
}

/// How many phase offsets of each kernel a difference takes, if the phases of one all lie below
/// those of the other: with `comparisons` figures that share the 5%.
#[must_use]
pub fn phases_needed(comparisons: usize) -> PhasesNeeded {
    let alpha = ALPHA / comparisons.max(1) as f64;
    let least = |enough: &dyn Fn(usize) -> bool| {
        (FEWEST_PHASES..MOST_PHASES).find(|phases| enough(*phases)).unwrap_or(MOST_PHASES)
    };
    PhasesNeeded {
        unpaired: least(&|phases| ranks::smallest_probability(phases, phases) <= alpha),
        paired: least(&|phases| smallest_of_pairs(phases) <= alpha),
    }
}

/// See [`phases_needed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhasesNeeded {
    /// Where phases of both kernels are compared with all of the other.
    pub unpaired: usize,
    /// Where they are compared in pairs.
    pub paired: usize,
}

fn smallest_of_pairs(pairs: usize) -> f64 {
    0.5_f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX) - 1)
}

/// What the phases say of each figure. `comparisons` of them share the error probability: all of
/// these, and those that are not here as they have too few phases.
#[must_use]
pub fn judge(figures: &[PhaseFigure], comparisons: usize) -> Vec<PhaseResult> {
    let comparisons = comparisons.max(figures.len());
    let tested: Vec<Tested> =
        figures.iter().map(|figure| Tested::of(figure, comparisons)).collect();
    let absent = comparisons - figures.len();
    let shares = holm(&tested.iter().map(|one| one.probability).collect::<Vec<_>>(), absent);
    let all = figures.iter().zip(&tested).zip(shares);
    all.map(|((figure, tested), share)| tested.judged(figure, share)).collect()
}

/// A figure with its test.
struct Tested {
    a: Vec<f64>,
    b: Vec<f64>,
    /// Differences of pairs, where they are what is compared.
    pairs: Option<Vec<f64>>,
    probability: f64,
}

impl Tested {
    fn of(figure: &PhaseFigure, comparisons: usize) -> Self {
        let first = |all: &[f64]| all.iter().copied().take(MOST_PHASES).collect::<Vec<_>>();
        let (a, b) = (first(&figure.a), first(&figure.b));
        let is_paired = is_paired(figure, comparisons);
        let difference = |pair: &(f64, f64)| pair.1 - pair.0;
        let pairs = is_paired.then(|| figure.pairs.iter().map(difference).collect::<Vec<_>>());
        let probability = match &pairs {
            Some(pairs) => sign_probability(pairs),
            None => ranks::probability(&a, &b),
        };
        Self { a, b, pairs, probability }
    }

    fn judged(&self, figure: &PhaseFigure, share: usize) -> PhaseResult {
        let alpha = ALPHA / share as f64;
        let (shift, interval) = match &self.pairs {
            Some(pairs) => match ratio::median(pairs, 1.0 - alpha) {
                Ok(found) => (found.median, Some((found.low, found.high))),
                Err(_) => (middle(pairs), None),
            },
            None => ranks::shift(&self.a, &self.b, alpha),
        };
        let (margin, floor) = (figure.margin.max(figure.floor), figure.floor);
        let is_apart = self.probability <= alpha;
        let verdict = match interval {
            Some((low, high)) if -margin <= low && high <= margin => AbVerdict::Same,
            Some((_, high)) if is_apart && high < -floor => AbVerdict::Better,
            Some((low, _)) if is_apart && low > floor => AbVerdict::Worse,
            _ => AbVerdict::Inconclusive,
        };
        let (probability, is_paired) = (self.probability, self.pairs.is_some());
        PhaseResult { shift, interval, probability, share, is_paired, verdict }
    }
}

/// Whether pairs are what is to be compared: all phases are common to both kernels, there are
/// enough of them for a verdict, and the figures go together.
fn is_paired(figure: &PhaseFigure, comparisons: usize) -> bool {
    let count = figure.pairs.len();
    let are_common = count == figure.a.len() && count == figure.b.len();
    let are_enough = smallest_of_pairs(count.max(1)) <= ALPHA / comparisons.max(1) as f64;
    let together = || {
        // The rank correlation of independent pairs has a variance of 1 / (n - 1).
        let z = ranks::correlation(&figure.pairs) * (count as f64 - 1.0).sqrt();
        z > normal_upper(PAIRING_ALPHA)
    };
    are_common && are_enough && count <= MOST_PHASES && together()
}

/// Of the sign test, without pairs that are alike.
fn sign_probability(differences: &[f64]) -> f64 {
    let count = |sign: f64| differences.iter().filter(|one| **one * sign > 0.0).count();
    let (above, below) = (count(1.0), count(-1.0));
    let (all, fewer) = (above + below, above.min(below));
    let mut ways = 0.5_f64.powi(i32::try_from(all).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for place in 0..=fewer {
        sum += ways;
        ways *= (all - place) as f64 / (place + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

/// By how many figures the error probability is shared when each is tested, the least likely first;
/// once one is not rejected, the others are tested no more, and keep its share. `absent` figures
/// share it without being tested.
pub(super) fn holm(probabilities: &[f64], absent: usize) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = probabilities.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut share = order.len() + absent;
    let mut shares = vec![share; probabilities.len()];
    let mut goes_on = true;
    for (at, probability) in order {
        if let Some(own) = shares.get_mut(at) {
            *own = share;
        }
        goes_on = goes_on && probability <= ALPHA / share as f64;
        if goes_on {
            share -= 1;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{distributions::normal_upper, random::SplitMix64};

    fn figure(a: &[f64], b: &[f64]) -> PhaseFigure {
        let pairs = a.iter().copied().zip(b.iter().copied()).collect();
        PhaseFigure { a: a.into(), b: b.into(), pairs, margin: 0.05, floor: 0.01 }
    }

    /// `count` phases about `level`, a hundredth apart, in no order.
    fn phases(level: f64, count: usize) -> Vec<f64> {
        (0..count).map(|at| level + 0.01 * ((at * 7) % count) as f64).collect()
    }

    #[test]
    fn as_many_phases_are_needed_as_the_exact_tests_take() {
        assert_eq!(phases_needed(48), PhasesNeeded { unpaired: 7, paired: 11 });
        assert_eq!(phases_needed(1), PhasesNeeded { unpaired: 4, paired: 6 });
        for comparisons in [1, 4, 12, 48] {
            let needed = phases_needed(comparisons).unpaired;
            let verdicts = |count: usize| {
                let apart = figure(&phases(0.0, count), &phases(9.0, count));
                judge(&vec![apart; comparisons], comparisons).into_iter().all(|one| {
                    assert!(!one.is_paired, "{comparisons} {count}");
                    one.verdict == AbVerdict::Worse
                })
            };
            assert!(verdicts(needed), "{comparisons}");
            assert!(needed == FEWEST_PHASES || !verdicts(needed - 1), "{comparisons}");
        }
    }

    #[test]
    fn more_phases_bring_the_ends_nearer() {
        let mut random = SplitMix64::new(5);
        let mut width = |count: usize| {
            let mut draw = |level: f64| -> Vec<f64> {
                (0..count).map(|_| level + 0.1 * normal_upper(random.uniform())).collect()
            };
            let found = judge(&[figure(&draw(0.0), &draw(3.0))], 1)[0];
            assert_eq!(found.verdict, AbVerdict::Worse);
            let (low, high) = found.interval.unwrap();
            assert!(low < 3.1 && high > 2.9, "{found:?}");
            high - low
        };
        let (few, more, many) = (width(7), width(28), width(400));
        assert!(few > 1.5 * more && more > 2.0 * many, "{few} {more} {many}");
    }

    #[test]
    fn what_is_alike_is_the_same_and_what_is_near_is_not_called_different() {
        let alike = judge(&[figure(&[1.0; 7], &[1.0; 7])], 1)[0];
        assert_eq!((alike.verdict, alike.interval), (AbVerdict::Same, Some((0.0, 0.0))));
        // Certainly apart, by less than the floor.
        let near = |step: f64| judge(&[figure(&[1.0; 7], &[1.0 + step; 7])], 1)[0].verdict;
        assert_eq!((near(0.005), near(0.06)), (AbVerdict::Same, AbVerdict::Worse));
        let floored = PhaseFigure { floor: 0.1, ..figure(&[1.0; 7], &[1.12; 7]) };
        assert_eq!(judge(std::slice::from_ref(&floored), 1)[0].verdict, AbVerdict::Worse);
        let below = PhaseFigure { floor: 0.15, ..floored };
        assert_eq!(judge(&[below], 1)[0].verdict, AbVerdict::Same, "the floor raises the margin");
        let wide = judge(
            &[figure(&[0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2], &[0.7, 0.1, 1.3, 0.5, 1.1, 0.3, 0.9])],
            1,
        )[0];
        assert_eq!(wide.verdict, AbVerdict::Inconclusive);
    }

    #[test]
    fn pairs_are_compared_where_phases_go_together_and_only_there() {
        // The phase moves a figure tenfold, the kernel by a tenth.
        let of_phase: Vec<f64> = (0..12).map(|at| f64::from((at * 5) % 12) * 0.2).collect();
        let slower: Vec<f64> = of_phase.iter().map(|log| log + 0.1).collect();
        let found = judge(&[figure(&of_phase, &slower)], 1)[0];
        assert!(found.is_paired);
        assert_eq!(found.verdict, AbVerdict::Worse);
        let (low, high) = found.interval.unwrap();
        assert!((low - 0.1).abs() < 1e-9 && (high - 0.1).abs() < 1e-9, "{found:?}");
        let turned: Vec<f64> = slower.iter().rev().copied().collect();
        let other = judge(&[figure(&of_phase, &turned)], 1)[0];
        assert!(!other.is_paired && other.verdict == AbVerdict::Inconclusive, "{other:?}");
        let missing = PhaseFigure { pairs: Vec::new(), ..figure(&of_phase, &slower) };
        assert!(!judge(&[missing], 1)[0].is_paired, "other phases make no pairs");
    }

    #[test]
    fn the_sign_test_is_that_of_a_fair_coin() {
        assert!((sign_probability(&[1.0; 11]) - 2.0 / 2048.0).abs() < 1e-12);
        // 1 of 5: 2 * 6 / 32; one that is alike counts on no side.
        let found = sign_probability(&[1.0, 1.0, 0.0, 1.0, 1.0, -1.0]);
        assert!((found - 0.375).abs() < 1e-12, "{found}");
        assert!((sign_probability(&[0.0; 9]) - 1.0).abs() < 1e-12);
        assert!((sign_probability(&[1.0, -1.0]) - 1.0).abs() < 1e-12);
    }
}
