//! Sessions of A against B: how often equal sides are called different, and shifts are found.

use tardy::analysis::{
    ab::{
        ALPHA,
        comparison::{AbComparison, compare},
        figure::ComparedFigure,
        looks::LookPlan,
        measured::{MeasuredAs, MeasuredFigure},
        order::{AbSide, Quad, quads},
        power::{pairs_at_least, pairs_needed},
        verdict::AbVerdict,
    },
    random::SplitMix64,
};

use super::{
    processes::normal,
    table::{Effort, markdown, percent},
};

/// How the logarithm of a figure differs from block to block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// Independent, normal.
    Normal,
    /// Independent, Student's t with 3 degrees of freedom.
    HeavyTailed,
    /// Normal about a level that wanders: half of the variance is an autoregression of 0.9 a block.
    Wandering,
    /// Normal about a level that rises by half a standard deviation each block.
    Rising,
}

const NOISES: [(&str, Noise); 4] = [
    ("normal", Noise::Normal),
    ("t with 3 degrees of freedom", Noise::HeavyTailed),
    ("wandering level", Noise::Wandering),
    ("rising level", Noise::Rising),
];

/// Figures of a session, of which half of the variance is common to all.
const FIGURES: [ComparedFigure; 6] = [
    ComparedFigure::P50,
    ComparedFigure::P90,
    ComparedFigure::P99,
    ComparedFigure::P999,
    ComparedFigure::P9999,
    ComparedFigure::Max,
];

/// One session.
#[derive(Debug, Clone, Copy)]
struct Session<'a> {
    plan: &'a LookPlan,
    noise: Noise,
    /// The standard deviation of a pair's log ratio.
    sd: f64,
    /// By how much B's first figure is higher, as a logarithm; the others are equal.
    shift: f64,
}

impl Session<'_> {
    /// The comparison at the look that ends it: all is decided, or it was the last.
    fn run(&self, random: &mut SplitMix64) -> Option<AbComparison> {
        let pairs = self.plan.pairs().last().copied().unwrap_or(0) as usize;
        let order = quads(random.bits(), pairs / 2);
        let figures = self.figures(&order, random);
        let mut last = None;
        for pairs in self.plan.pairs() {
            let begun = |figure: &MeasuredFigure| MeasuredFigure {
                logs: figure.logs.iter().take(2 * *pairs as usize).copied().collect(),
                ..figure.clone()
            };
            let begun: Vec<MeasuredFigure> = figures.iter().map(begun).collect();
            last = compare(self.plan, &order, &begun, None);
            if last.as_ref().is_some_and(|comparison| comparison.is_decided) {
                break;
            }
        }
        last
    }

    fn figures(&self, order: &[Quad], random: &mut SplitMix64) -> Vec<MeasuredFigure> {
        let sides: Vec<AbSide> = order.iter().flat_map(|quad| quad.sides()).collect();
        let common = self.levels(sides.len(), random);
        let figure = |place: usize| {
            let own = self.levels(sides.len(), random);
            let log = |((common, own), side): ((&f64, &f64), &AbSide)| {
                let is_shifted = place == 0 && *side == AbSide::B;
                (common + own) / 2.0_f64.sqrt() + if is_shifted { self.shift } else { 0.0 }
            };
            MeasuredFigure {
                figure: FIGURES.get(place).copied().unwrap_or(ComparedFigure::Max),
                measured_as: MeasuredAs::Latency,
                logs: common.iter().zip(&own).zip(&sides).map(log).collect(),
                least_sd: 0.001,
            }
        };
        (0..self.plan.figures()).map(figure).collect()
    }

    /// The noise of each block; its standard deviation makes that of a difference `sd`.
    fn levels(&self, blocks: usize, random: &mut SplitMix64) -> Vec<f64> {
        let sd = self.sd / 2.0_f64.sqrt();
        let mut level = normal(random);
        let mut at = 0.0;
        let mut block = |_| {
            at += 1.0;
            let value = match self.noise {
                Noise::Normal => normal(random),
                Noise::HeavyTailed => heavy_tailed(random),
                Noise::Wandering => {
                    level = 0.9 * level + (1.0_f64 - 0.81).sqrt() * normal(random);
                    (level + normal(random)) / 2.0_f64.sqrt()
                }
                Noise::Rising => normal(random) + at / 2.0,
            };
            value * sd
        };
        (0..blocks).map(&mut block).collect()
    }
}

/// Student's t with 3 degrees of freedom, divided by its standard deviation.
pub(super) fn heavy_tailed(random: &mut SplitMix64) -> f64 {
    let square: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (square / 3.0).sqrt() / 3.0_f64.sqrt()
}

/// Verdicts on equal sides.
pub(super) fn equal_sides(effort: Effort) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for (name, noise) in NOISES {
        for pairs in [6, 10, 40] {
            for figures in [1, 3, 6] {
                let plan = LookPlan::new(pairs, figures, ALPHA)?;
                let session = Session { plan: &plan, noise, sd: 0.1, shift: 0.0 };
                let row = format!("equal {name} {pairs} {figures}");
                let found = effort.repeat(&row, |random| session.run(random));
                rows.push(verdicts(name, pairs, figures, &found));
            }
        }
    }
    let head = ["noise", "pairs", "figures", "better or worse (false)", "same", "inconclusive"];
    let title = format!("Verdicts on equal sides, {} repeats", effort.repeats);
    Ok(markdown(&title, &head, &rows))
}

fn verdicts(name: &str, pairs: u32, figures: usize, found: &[Option<AbComparison>]) -> Vec<String> {
    let count = |of: &[AbVerdict]| {
        let is = |one: &&Option<AbComparison>| {
            one.as_ref().is_some_and(|comparison| of.contains(&comparison.verdict))
        };
        percent(found.iter().filter(is).count(), found.len())
    };
    vec![
        name.to_owned(),
        pairs.to_string(),
        figures.to_string(),
        count(&[AbVerdict::Better, AbVerdict::Worse]),
        count(&[AbVerdict::Same]),
        count(&[AbVerdict::Inconclusive]),
    ]
}

/// How often shifts are found with the pairs of the plain formula, and with those that tardy asks
/// for.
pub(super) fn power(effort: Effort) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for figures in [1, 6] {
        for sd in [0.1, 0.3] {
            for shift in [0.05_f64, 0.1, 0.2] {
                let least = pairs_at_least(sd, shift, ALPHA / figures as f64, 0.8).ceil();
                let asked = pairs_needed(shift.ln_1p(), sd, figures)?.unwrap_or(u32::MAX);
                let by_formula = found(effort, figures, sd, shift, (least as u32).max(6))?;
                let by_plan = found(effort, figures, sd, shift, asked)?;
                let shift = format!("{:.0}%", 100.0 * shift);
                let numbers = [figures.to_string(), sd.to_string(), shift, least.to_string()];
                rows.push([&numbers[..], &[by_formula, asked.to_string(), by_plan]].concat());
            }
        }
    }
    let head = [
        "figures",
        "SD of a pair's log ratio",
        "shift",
        "pairs by the formula",
        "found with these (6 at least, whole quads)",
        "pairs that tardy asks for",
        "found with these",
    ];
    let title = format!("Power, {} repeats", effort.repeats);
    Ok(markdown(&title, &head, &rows))
}

/// How often the first figure is called worse, or within the margin while its interval leaves out
/// "no difference".
fn found(
    effort: Effort,
    figures: usize,
    sd: f64,
    shift: f64,
    pairs: u32,
) -> anyhow::Result<String> {
    let plan = LookPlan::new(pairs, figures, ALPHA)?;
    let session = Session { plan: &plan, noise: Noise::Normal, sd, shift: shift.ln_1p() };
    let row = format!("power {figures} {sd} {shift} {pairs}");
    let results = effort.repeat(&row, |random| session.run(random));
    let is_found = |comparison: &&Option<AbComparison>| {
        let first = comparison.as_ref().and_then(|comparison| comparison.figures.first());
        first.is_some_and(|figure| figure.result.low > 0.0)
    };
    Ok(percent(results.iter().filter(is_found).count(), results.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_noise_finds_its_shift_and_one_without_shift_is_the_same() {
        let plan = LookPlan::new(6, 3, ALPHA).unwrap();
        let of = |shift| {
            let session = Session { plan: &plan, noise: Noise::Normal, sd: 0.001, shift };
            session.run(&mut SplitMix64::new(1)).map(|comparison| comparison.verdict)
        };
        assert_eq!(of(0.5), Some(AbVerdict::Worse));
        assert_eq!(of(-0.5), Some(AbVerdict::Better));
        assert_eq!(of(0.0), Some(AbVerdict::Same));
    }

    #[test]
    fn pairs_have_the_standard_deviation_that_was_asked_for() {
        let plan = LookPlan::new(1_000, 1, ALPHA).unwrap();
        for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Wandering] {
            let session = Session { plan: &plan, noise, sd: 0.1, shift: 0.0 };
            let levels = session.levels(40_000, &mut SplitMix64::new(1));
            let square = levels.iter().map(|level| level * level).sum::<f64>() / 40_000.0;
            // The variance of t with 3 degrees of freedom converges slowly.
            assert!((0.9..1.2).contains(&(square * 2.0 / 0.01)), "{noise:?}: {square}");
        }
    }
}
