//! All figures of a session so far, from the blocks to the verdict.

use super::{
    figure::ComparedFigure,
    floor::floor,
    looks::LookPlan,
    measured::{MeasuredAs, MeasuredFigure},
    order::Quad,
    verdict::{AbVerdict, FigureResult, PairedFigure, judge, overall},
};

/// Sides are not called the same where equal ones differ by a factor of 2 or more, as a logarithm.
const MOST_FLOOR: f64 = std::f64::consts::LN_2;

/// One figure of B, compared with A.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureComparison {
    /// Which.
    pub figure: ComparedFigure,
    /// What `a` and `b` are: ns, or shares.
    pub measured_as: MeasuredAs,
    /// The geometric mean of A's blocks.
    pub a: f64,
    /// That of B's.
    pub b: f64,
    /// B / A.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub low: f64,
    /// Upper end of the ratio's interval.
    pub high: f64,
    /// Differences below this share are called the same: what was asked for, or the floor.
    pub margin: f64,
    /// The share by which equal sides would differ in a session like this, in 5% of them more.
    pub floor: f64,
    /// The test behind it, in logarithms.
    pub result: FigureResult,
}

/// All figures of B, compared with A.
#[derive(Debug, Clone, PartialEq)]
pub struct AbComparison {
    /// In the order in which they were given.
    pub figures: Vec<FigureComparison>,
    /// Over all of them.
    pub verdict: AbVerdict,
    /// Whether each is decided, so that more blocks are not needed.
    pub is_decided: bool,
}

/// What the blocks so far say, at the last look of `plan` that they are enough for; absent before
/// the first. `order` is that of their quads. `margin` is a share for all figures, 0.05 for 5%;
/// without it each figure has its own.
#[must_use]
pub fn compare(
    plan: &LookPlan,
    order: &[Quad],
    figures: &[MeasuredFigure],
    margin: Option<f64>,
) -> Option<AbComparison> {
    let blocks = figures.iter().map(|figure| figure.logs.len()).min()?;
    let pairs = *plan.pairs().get(plan.reached(blocks / 2).checked_sub(1)?)? as usize;
    let order = order.get(..pairs / 2)?;
    let floor_of = |figure: &MeasuredFigure| {
        floor(&figure.equal_log_ratios(order), figure.least_sd, pairs).unwrap_or(0.0)
    };
    let floors: Vec<f64> = figures.iter().map(floor_of).collect();
    let paired = |(figure, floor): (&MeasuredFigure, &f64)| PairedFigure {
        log_ratios: figure.log_ratios(order),
        least_sd: figure.least_sd,
        margin: margin.unwrap_or_else(|| figure.figure.default_margin()).ln_1p().max(*floor),
    };
    let paired: Vec<PairedFigure> = figures.iter().zip(&floors).map(paired).collect();
    let mut results = judge(plan, &paired);
    for (result, floor) in results.iter_mut().zip(&floors) {
        // Where equal sides differ so much, that these differ no more says nothing.
        if result.verdict == AbVerdict::Same && *floor > MOST_FLOOR {
            result.verdict = AbVerdict::Inconclusive;
        }
    }
    let all = figures.iter().zip(&paired).zip(&floors).zip(results);
    let figures: Vec<FigureComparison> = all
        .map(|(((figure, paired), floor), result)| {
            compared(figure, paired.margin, *floor, figure.means(order), result)
        })
        .collect();
    let verdicts: Vec<AbVerdict> = figures.iter().map(|figure| figure.result.verdict).collect();
    let is_decided = figures.iter().all(|figure| figure.result.is_decided());
    Some(AbComparison { figures, verdict: overall(&verdicts), is_decided })
}

fn compared(
    figure: &MeasuredFigure,
    margin: f64,
    floor: f64,
    (a, b): (f64, f64),
    result: FigureResult,
) -> FigureComparison {
    FigureComparison {
        figure: figure.figure,
        measured_as: figure.measured_as,
        a: a.exp(),
        b: b.exp(),
        ratio: result.mean.exp(),
        low: result.low.exp(),
        high: result.high.exp(),
        margin: margin.exp_m1(),
        floor: floor.exp_m1(),
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{ALPHA, order::quads},
        *,
    };
    use crate::analysis::random::SplitMix64;

    /// Blocks whose logarithms have this standard deviation; B's are by `shift` higher, and all
    /// rise by `drift` a block.
    fn measured(order: &[Quad], shift: f64, sd: f64, drift: f64) -> MeasuredFigure {
        let mut random = SplitMix64::new(5);
        let sides = order.iter().flat_map(|quad| quad.sides());
        let mut at = 0.0;
        let mut log = |side| {
            at += drift;
            let noise = crate::analysis::distributions::normal_upper(random.uniform()) * sd;
            at + noise + if side == super::super::order::AbSide::B { shift } else { 0.0 }
        };
        MeasuredFigure {
            figure: ComparedFigure::P99,
            measured_as: MeasuredAs::Latency,
            logs: sides.map(&mut log).collect(),
            least_sd: 0.001,
        }
    }

    fn of(shift: f64, sd: f64, drift: f64, margin: Option<f64>) -> AbComparison {
        let (plan, order) = (LookPlan::new(40, 1, ALPHA).unwrap(), quads(9, 20));
        compare(&plan, &order, &[measured(&order, shift, sd, drift)], margin).unwrap()
    }

    #[test]
    fn a_slower_b_is_worse_by_its_ratio() {
        let found = of(0.2_f64.ln_1p(), 0.02, 0.0, None);
        assert_eq!((found.verdict, found.is_decided), (AbVerdict::Worse, true));
        let figure = &found.figures[0];
        assert!((1.18..1.22).contains(&figure.ratio), "{figure:?}");
        assert!((figure.b / figure.a / figure.ratio - 1.0).abs() < 1e-9, "{figure:?}");
        assert!(figure.low < figure.ratio && figure.ratio < figure.high, "{figure:?}");
        assert!(figure.low < 1.2 && 1.2 < figure.high, "{figure:?}");
    }

    #[test]
    fn drift_is_not_taken_for_a_difference_and_raises_the_floor() {
        let found = of(0.0, 0.01, 0.2, None);
        assert!(matches!(found.verdict, AbVerdict::Same | AbVerdict::Inconclusive), "{found:?}");
        // 20 pairs of equals that differ by 0.2: t with 20 degrees of freedom is 2.086.
        let floor: f64 = 2.086 * 0.2 / 40.0_f64.sqrt();
        let figure = &found.figures[0];
        assert!((figure.floor - floor.exp_m1()).abs() < 0.01, "{figure:?} {floor}");
        assert!((figure.margin - figure.floor).abs() < 1e-12, "above the 5% of p99");
    }

    #[test]
    fn the_margin_is_the_one_asked_for_unless_the_floor_is_higher() {
        let figure = |margin| of(0.0, 0.02, 0.0, margin).figures[0].clone();
        assert!((figure(None).margin - 0.05).abs() < 1e-12);
        assert!((figure(Some(0.2)).margin - 0.2).abs() < 1e-12);
        let strict = figure(Some(0.0001));
        assert_eq!(strict.margin, strict.floor);
    }

    #[test]
    fn before_the_first_look_there_is_no_comparison() {
        let (plan, order) = (LookPlan::new(40, 1, ALPHA).unwrap(), quads(9, 20));
        let all = measured(&order, 0.0, 0.1, 0.0);
        let first =
            |blocks: usize| MeasuredFigure { logs: all.logs[..blocks].to_vec(), ..all.clone() };
        assert_eq!(compare(&plan, &order, &[first(15)], None), None);
        let found = compare(&plan, &order, &[first(20)], None).unwrap();
        assert_eq!(found.figures[0].result.pairs, 8);
        assert_eq!(compare(&plan, &order, &[], None), None);
    }
}
