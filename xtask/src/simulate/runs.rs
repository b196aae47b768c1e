//! Runs of A against runs of B: how often equal sides are called different.

use tardy::{
    analysis::{
        ab::verdict::overall,
        random::SplitMix64,
        replicates::{ReplicatedFigure, judge},
    },
    run::AbVerdict,
};

use super::{
    processes::normal,
    sessions::heavy_tailed,
    table::{Effort, markdown, percent},
};

/// How the logarithm of a figure differs from run to run.
type Noise = fn(&mut SplitMix64) -> f64;

const NOISES: [(&str, Noise); 3] = [
    ("normal", normal),
    ("t with 3 degrees of freedom", heavy_tailed),
    ("exponential", exponential),
];

/// Half of the variance is common to all figures of a run.
const SHARED: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The factors by which runs of B spread more than those of A in the rows of unequal spread.
const SPREADS: [f64; 2] = [1.0, 3.0];

/// Skewed, with a standard deviation of 1.
pub(super) fn exponential(random: &mut SplitMix64) -> f64 {
    -random.uniform().ln() - 1.0
}

/// Verdicts on equal sides.
pub(super) fn equal_sides(effort: Effort) -> String {
    let mut rows = Vec::new();
    for (name, noise) in NOISES {
        for spread in SPREADS {
            for runs in [3, 5, 10] {
                for figures in [1, 3, 6] {
                    let row = format!("runs {name} {spread} {runs} {figures}");
                    let found =
                        effort.repeat(&row, |random| verdict(noise, spread, runs, figures, random));
                    rows.push(line([name, &spread.to_string()], runs, figures, &found));
                }
            }
        }
    }
    let head = [
        "noise",
        "spread of B / A",
        "runs a side",
        "figures",
        "better or worse (false)",
        "same",
        "inconclusive",
    ];
    let title = format!("Verdicts on runs of equal sides, {} repeats", effort.repeats);
    markdown(&title, &head, &rows)
}

fn verdict(
    noise: Noise,
    spread: f64,
    runs: usize,
    figures: usize,
    random: &mut SplitMix64,
) -> AbVerdict {
    let mut side = |sd: f64| -> Vec<Vec<f64>> {
        let mut run = || {
            let common = noise(random);
            let mut own = || sd * SHARED * (common + noise(random));
            (0..figures).map(|_| own()).collect::<Vec<f64>>()
        };
        (0..runs).map(|_| run()).collect()
    };
    let (a, b) = (side(0.1), side(0.1 * spread));
    let of = |runs: &[Vec<f64>], figure: usize| -> Vec<f64> {
        runs.iter().filter_map(|run| run.get(figure)).copied().collect()
    };
    let figure = |figure: usize| ReplicatedFigure {
        a: of(&a, figure),
        b: of(&b, figure),
        least_sd: 0.001,
        margin: 0.05_f64.ln_1p(),
    };
    let results = judge(&(0..figures).map(figure).collect::<Vec<_>>());
    overall(&results.iter().flatten().map(|result| result.verdict).collect::<Vec<_>>())
}

fn line(names: [&str; 2], runs: usize, figures: usize, found: &[AbVerdict]) -> Vec<String> {
    let share = |of: &[AbVerdict]| {
        percent(found.iter().filter(|verdict| of.contains(verdict)).count(), found.len())
    };
    vec![
        names[0].to_owned(),
        names[1].to_owned(),
        runs.to_string(),
        figures.to_string(),
        share(&[AbVerdict::Better, AbVerdict::Worse]),
        share(&[AbVerdict::Same]),
        share(&[AbVerdict::Inconclusive]),
    ]
}
