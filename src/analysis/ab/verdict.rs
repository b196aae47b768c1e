//! Better, worse, the same, or inconclusive: what the pairs so far say of each figure.
//!
//! The mean of the log ratios is tested at each look of a [`LookPlan`]; once a boundary was
//! reached, it stays reached. Over several figures the error probability is shared by Holm's rule
//! (Scandinavian Journal of Statistics 6, 1979, p. 65): the figure with the strongest evidence must
//! reach the boundary for alpha / m, the next one that for alpha / (m - 1), and so on until one
//! does not; boundaries of group-sequential tests may be shared so, as they fall together (Ye, Li,
//! Liu, Yao, Statistics in Medicine 32, 2013, p. 1112).
//!
//! The interval of a figure is the repeated one at the error probability at which it was tested,
//! cut with those of the looks before: so it leaves out "no difference" exactly where the test
//! does. If the mean of the last look is outside of what was cut, the end on its side is that of
//! the last look, and a difference that an earlier look saw may be seen no more. By itself each
//! holds with 95% at least; that all of them hold at once is certain with 95% only as long as
//! none is decided.

use super::{looks::LookPlan, order::AbSide};
use crate::analysis::distributions::normal_of_t;
pub use crate::run::AbVerdict;

/// The pairs of one figure, and what a difference must exceed.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedFigure {
    /// ln(B / A) of each pair so far.
    pub log_ratios: Vec<f64>,
    /// What the standard deviation of these is at least.
    pub least_sd: f64,
    /// The margin, as a logarithm: ln(1.05) for 5%, or more where the floor is higher.
    pub margin: f64,
}

/// What the pairs of a figure say. Logarithms of B / A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureResult {
    /// The mean at the last look.
    pub mean: f64,
    /// The standard deviation of the pairs at the last look.
    pub sd: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Pairs of the last look.
    pub pairs: u32,
    /// Figures that share the error probability with this one, with itself: that of its interval is
    /// alpha / share.
    pub share: usize,
    /// What follows.
    pub verdict: AbVerdict,
    /// Whether the intervals of different looks have nothing in common: the difference is not the
    /// same all the time, and the verdict is missing. The interval is that of the last look.
    pub contradictory: bool,
}

impl FigureResult {
    /// Whether more pairs would not change the verdict.
    #[must_use]
    pub const fn is_decided(&self) -> bool {
        !matches!(self.verdict, AbVerdict::Inconclusive)
    }

    /// Which side is lower for certain, if one is.
    #[must_use]
    pub fn lower_side(&self) -> Option<AbSide> {
        match self.verdict {
            AbVerdict::Better => Some(AbSide::B),
            AbVerdict::Worse => Some(AbSide::A),
            AbVerdict::Same | AbVerdict::Inconclusive => None,
        }
    }
}

/// Mean and standard error at one look.
#[derive(Debug, Clone, Copy)]
struct AtLook {
    look: usize,
    pairs: u32,
    mean: f64,
    sd: f64,
}

impl AtLook {
    fn of(figure: &PairedFigure, look: usize, pairs: u32) -> Option<Self> {
        let ratios = figure.log_ratios.get(..pairs as usize)?;
        let count = f64::from(pairs);
        let mean = ratios.iter().sum::<f64>() / count;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let sd = (squares / (count - 1.0)).sqrt().max(figure.least_sd);
        Some(Self { look, pairs, mean, sd })
    }

    fn error(&self) -> f64 {
        self.sd / f64::from(self.pairs).sqrt()
    }

    /// What the O'Brien-Fleming constant is compared with.
    fn evidence(&self, plan: &LookPlan) -> f64 {
        let z = normal_of_t(self.mean / self.error(), f64::from(self.pairs - 1));
        z.abs() * plan.fraction(self.look).sqrt()
    }

    fn interval(&self, plan: &LookPlan, share: usize) -> (f64, f64) {
        let half = plan.critical_t(share, self.look) * self.error();
        (self.mean - half, self.mean + half)
    }
}

/// What the pairs so far say of each figure, at the last look that they are enough for. Empty
/// before the first; all figures must have as many pairs.
#[must_use]
pub fn judge(plan: &LookPlan, figures: &[PairedFigure]) -> Vec<FigureResult> {
    let pairs = figures.iter().map(|figure| figure.log_ratios.len()).min().unwrap_or(0);
    let reached = plan.pairs().get(..plan.reached(pairs)).unwrap_or_default();
    let looks_of = |figure: &PairedFigure| -> Vec<AtLook> {
        let looks = reached.iter().enumerate();
        looks.filter_map(|(look, pairs)| AtLook::of(figure, look, *pairs)).collect()
    };
    let looks: Vec<Vec<AtLook>> = figures.iter().map(looks_of).collect();
    let shares = holm(plan, &looks);
    let all = figures.iter().zip(&looks).zip(shares);
    all.filter_map(|((figure, looks), share)| result(plan, figure, looks, share)).collect()
}

/// By how many figures the error probability is shared when each is tested, the strongest evidence
/// first; once one is not rejected, the others are tested no more, and keep its share.
fn holm(plan: &LookPlan, looks: &[Vec<AtLook>]) -> Vec<usize> {
    let strongest =
        |looks: &Vec<AtLook>| looks.iter().map(|look| look.evidence(plan)).fold(0.0, f64::max);
    let evidence: Vec<f64> = looks.iter().map(strongest).collect();
    let mut order: Vec<usize> = (0..evidence.len()).collect();
    order.sort_by(|a, b| evidence[*b].total_cmp(&evidence[*a]));
    let mut share = plan.figures().max(evidence.len());
    let mut shares = vec![share; evidence.len()];
    let mut goes_on = true;
    for place in order {
        shares[place] = share;
        goes_on = goes_on && evidence[place] >= plan.constant(share);
        if goes_on {
            share -= 1;
        }
    }
    shares
}

fn result(
    plan: &LookPlan,
    figure: &PairedFigure,
    looks: &[AtLook],
    share: usize,
) -> Option<FigureResult> {
    let last = looks.last()?;
    let intervals = looks.iter().map(|look| look.interval(plan, share));
    let cut = |(low, high): (f64, f64), next: (f64, f64)| (low.max(next.0), high.min(next.1));
    let (low, high) = intervals.fold((f64::NEG_INFINITY, f64::INFINITY), cut);
    let contradictory = low > high;
    let (last_low, last_high) = last.interval(plan, share);
    // A wider interval holds the truth as often, and must hold its own estimate.
    let low = if contradictory || last.mean < low { last_low } else { low };
    let high = if contradictory || last.mean > high { last_high } else { high };
    let verdict = match () {
        () if contradictory => AbVerdict::Inconclusive,
        () if -figure.margin < low && high < figure.margin => AbVerdict::Same,
        () if high < 0.0 => AbVerdict::Better,
        () if low > 0.0 => AbVerdict::Worse,
        () => AbVerdict::Inconclusive,
    };
    let AtLook { pairs, mean, sd, .. } = *last;
    Some(FigureResult { mean, sd, low, high, pairs, share, verdict, contradictory })
}

/// The verdict over all judged figures: worse if any is worse, else inconclusive if none is
/// decided, else better if any is better, else the same.
#[must_use]
pub fn overall(verdicts: &[AbVerdict]) -> AbVerdict {
    let any = |verdict: AbVerdict| verdicts.contains(&verdict);
    if any(AbVerdict::Worse) {
        AbVerdict::Worse
    } else if any(AbVerdict::Better) {
        AbVerdict::Better
    } else if any(AbVerdict::Same) {
        AbVerdict::Same
    } else {
        AbVerdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.05;

    /// Pairs of this mean and standard deviation, in turns above and below.
    fn pairs(count: usize, mean: f64, sd: f64) -> Vec<f64> {
        let spread = sd * ((count as f64 - 1.0) / count as f64).sqrt();
        (0..count).map(|at| if at % 2 == 0 { mean + spread } else { mean - spread }).collect()
    }

    fn judged(plan: &LookPlan, figures: &[Vec<f64>]) -> Vec<FigureResult> {
        let figure = |ratios: &Vec<f64>| PairedFigure {
            log_ratios: ratios.clone(),
            least_sd: 0.001,
            margin: MARGIN,
        };
        judge(plan, &figures.iter().map(figure).collect::<Vec<_>>())
    }

    fn verdicts(plan: &LookPlan, figures: &[Vec<f64>]) -> Vec<AbVerdict> {
        judged(plan, figures).iter().map(|result| result.verdict).collect()
    }

    #[test]
    fn one_figure_is_judged_by_its_interval() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        // The interval is about 2.1 * sd / sqrt(40) = 0.033 * (sd / 0.1) to either side.
        for (mean, sd, expected) in [
            (0.1, 0.1, Worse),
            (-0.1, 0.1, Better),
            (0.0, 0.1, Same),
            (0.02, 0.1, Inconclusive),
            (0.0, 0.3, Inconclusive),
            // Certainly not zero, and certainly below the margin.
            (0.02, 0.01, Same),
            (0.1, 0.0, Worse),
        ] {
            let found = verdicts(&plan, &[pairs(40, mean, sd)]);
            assert_eq!(found, [expected], "mean {mean}, sd {sd}");
        }
    }

    #[test]
    fn the_interval_is_the_one_computed_by_hand() {
        let plan = LookPlan::new(6, 1, 0.05).unwrap();
        let found = judged(&plan, &[vec![0.1, 0.2, 0.3, 0.1, 0.2, 0.3]])[0];
        // Mean 0.2, squares 4 * 0.01, by 5: sd 0.08944, error 0.03651.
        assert!((found.mean - 0.2).abs() < 1e-12 && (found.sd - 0.089_443).abs() < 1e-6);
        let half = plan.critical_t(1, 1) * 0.089_443 / 6.0_f64.sqrt();
        assert!((found.low - (0.2 - half)).abs() < 1e-6, "{found:?}");
        assert!((found.high - (0.2 + half)).abs() < 1e-6, "{found:?}");
        // A little over the 2.571 of a single look.
        assert!((2.571..2.75).contains(&plan.critical_t(1, 1)));
        assert_eq!((found.pairs, found.share), (6, 1));
    }

    #[test]
    fn before_the_first_look_nothing_is_said() {
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        assert_eq!(judged(&plan, &[pairs(7, 9.0, 0.1)]), []);
        assert_eq!(judged(&plan, &[pairs(9, 9.0, 0.1)])[0].pairs, 8, "those of the look");
        assert_eq!(judged(&plan, &[]), []);
    }

    #[test]
    fn what_was_decided_at_a_look_stays_decided() {
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        let mut ratios = pairs(16, 0.3, 0.1);
        assert_eq!(verdicts(&plan, &[ratios.clone()]), [AbVerdict::Worse]);
        // Noise that alone would hide it.
        ratios.extend(pairs(24, 0.3, 3.0));
        assert_eq!(verdicts(&plan, &[ratios]), [AbVerdict::Worse]);
    }

    #[test]
    fn an_interval_holds_its_own_estimate() {
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        let mut ratios = pairs(16, -0.1, 0.1);
        let early = judged(&plan, &[ratios.clone()])[0];
        ratios.extend(pairs(24, -0.4, 0.6));
        let late = judged(&plan, &[ratios])[0];
        assert!(late.mean < early.low, "{early:?} {late:?}");
        assert!(!late.contradictory && late.low < late.mean, "{late:?}");
        assert!(late.high < 0.0, "{late:?}");
    }

    #[test]
    fn looks_that_contradict_each_other_are_inconclusive() {
        let plan = LookPlan::new(40, 1, 0.05).unwrap();
        let mut ratios = pairs(16, 1.0, 0.01);
        ratios.extend(pairs(24, -1.0, 0.01));
        let early = judged(&plan, &[ratios[..16].to_vec()])[0];
        assert_eq!((early.verdict, early.contradictory), (AbVerdict::Worse, false));
        // The mean falls to -0.2, with a standard deviation of about 1.
        let late = judged(&plan, &[ratios])[0];
        assert_eq!((late.verdict, late.contradictory), (AbVerdict::Inconclusive, true));
        assert!(late.low < late.mean && late.mean < late.high, "{late:?}");
    }

    #[test]
    fn holm_asks_most_of_the_strongest_and_less_of_the_next() {
        let plan = LookPlan::new(40, 3, 0.05).unwrap();
        let error = 0.1 / 40.0_f64.sqrt();
        let t = |share| plan.critical_t(share, 4);
        // Enough for a half of 5%, and not for a third.
        let middle = f64::midpoint(t(2), t(3)) * error;
        let strong = 2.0 * t(3) * error;
        let of = |means: [f64; 3]| {
            let found = judged(&plan, &means.map(|mean| pairs(40, mean, 0.1)));
            found.iter().map(|result| (result.low > 0.0, result.share)).collect::<Vec<_>>()
        };
        assert_eq!(of([middle, 0.0, 0.0]), [(false, 3), (false, 3), (false, 3)]);
        assert_eq!(of([0.0, middle, strong]), [(false, 1), (true, 2), (true, 3)]);
        // As much as the last one needs, and tested no more: the second is too weak.
        let last = f64::midpoint(t(1), t(2)) * error;
        assert_eq!(of([last, last, strong]), [(false, 2), (false, 2), (true, 3)]);
    }

    #[test]
    fn the_overall_verdict_is_the_one_of_the_table() {
        use AbVerdict::{Better, Inconclusive, Same, Worse};
        for (verdicts, expected) in [
            (&[Better, Worse, Same, Inconclusive][..], Worse),
            (&[Better, Same, Inconclusive], Better),
            (&[Same, Inconclusive], Same),
            (&[Inconclusive, Inconclusive], Inconclusive),
            (&[Same, Same], Same),
            (&[], Inconclusive),
        ] {
            assert_eq!(overall(verdicts), expected, "{verdicts:?}");
        }
    }
}
