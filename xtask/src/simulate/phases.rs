//! Kernels over phase offsets: how often equal ones are called different, also where the choice
//! between pairs and sets is made from the same data; and what is found of a difference.

use tardy::{
    analysis::{
        ab::verdict::overall,
        phases::{PhaseFigure, judge},
        random::SplitMix64,
    },
    run::AbVerdict,
};

use super::{
    processes::normal,
    runs::exponential,
    table::{Effort, markdown, percent},
};

/// Figures of a matrix of one load and two kernels.
const FIGURES: usize = 4;

/// How the logarithm of a figure differs from phase to phase; its standard deviation is [`SD`].
const SD: f64 = 0.1;

/// A name, and what a logarithm differs by.
type Noise = (&'static str, fn(&mut SplitMix64) -> f64);

/// Kernels as they are made up.
#[derive(Debug, Clone, Copy)]
struct Kernels {
    noise: Noise,
    /// The share of the variance that both kernels have in common at a phase.
    common: f64,
    /// Figures are whole multiples of this, as those of counted time are; 0: any.
    grid: f64,
    phases: usize,
    /// By how much the second is slower.
    shift: f64,
}

impl Kernels {
    fn name(&self) -> String {
        format!(
            "phases {} {} {} {} {}",
            self.noise.0, self.common, self.grid, self.phases, self.shift
        )
    }

    /// The verdict on the second kernel, and how many of its figures were compared in pairs.
    fn verdict(&self, random: &mut SplitMix64) -> (AbVerdict, usize) {
        let figures: Vec<PhaseFigure> = (0..FIGURES).map(|_| self.figure(random)).collect();
        let results = judge(&figures, FIGURES);
        let pairs = results.iter().filter(|result| result.is_paired).count();
        (overall(&results.iter().map(|result| result.verdict).collect::<Vec<_>>()), pairs)
    }

    fn figure(&self, random: &mut SplitMix64) -> PhaseFigure {
        let noise = self.noise.1;
        let (shared, own) = (self.common.sqrt(), (1.0 - self.common).sqrt());
        let on_grid = |value: f64| match self.grid {
            grid if grid > 0.0 => (value / grid).round() * grid,
            _ => value,
        };
        let mut pair = || {
            let common = noise(random);
            let mut one =
                |shift: f64| on_grid(SD * (shared * common + own * noise(random)) + shift.ln_1p());
            (one(0.0), one(self.shift))
        };
        let pairs: Vec<(f64, f64)> = (0..self.phases).map(|_| pair()).collect();
        PhaseFigure {
            a: pairs.iter().map(|(a, _)| *a).collect(),
            b: pairs.iter().map(|(_, b)| *b).collect(),
            pairs,
            margin: 0.05_f64.ln_1p(),
            floor: 1.01_f64.ln(),
        }
    }
}

/// Verdicts on equal kernels.
pub(super) fn equal_kernels(effort: Effort) -> String {
    let noises: [Noise; 2] = [("normal", normal), ("exponential", exponential)];
    let mut rows = Vec::new();
    for noise in noises {
        for common in [0.0, 0.5, 0.9] {
            for grid in [0.0, 0.05] {
                for phases in [7, 12, 20] {
                    rows.push(line(effort, &Kernels { noise, common, grid, phases, shift: 0.0 }));
                }
            }
        }
    }
    let title = format!("Verdicts on equal kernels over phase offsets, {} repeats", effort.repeats);
    markdown(&title, &head(), &rows)
}

/// What is found of a difference.
pub(super) fn power(effort: Effort) -> String {
    let noise: Noise = ("normal", normal);
    let mut rows = Vec::new();
    for common in [0.0, 0.9] {
        for phases in [7, 12, 20] {
            for shift in [0.05, 0.1, 0.2] {
                let of = Kernels { noise, common, grid: 0.0, phases, shift };
                rows.push(line(effort, &of));
            }
        }
    }
    let title =
        format!("Verdicts on a slower kernel over phase offsets, {} repeats", effort.repeats);
    markdown(&title, &head(), &rows)
}

const fn head() -> [&'static str; 10] {
    [
        "noise",
        "common to both",
        "grid",
        "phases",
        "slower by",
        "compared in pairs",
        "better",
        "worse",
        "same",
        "inconclusive",
    ]
}

fn line(effort: Effort, kernels: &Kernels) -> Vec<String> {
    let found = effort.repeat(&kernels.name(), |random| kernels.verdict(random));
    let pairs = found.iter().map(|(_, pairs)| pairs).sum();
    let share = |of: AbVerdict| {
        percent(found.iter().filter(|(verdict, _)| *verdict == of).count(), found.len())
    };
    vec![
        kernels.noise.0.to_owned(),
        format!("{:.0}%", kernels.common * 100.0),
        match kernels.grid {
            grid if grid > 0.0 => format!("{:.0}%", grid * 100.0),
            _ => "none".into(),
        },
        kernels.phases.to_string(),
        format!("{:.0}%", kernels.shift * 100.0),
        percent(pairs, found.len() * FIGURES),
        share(AbVerdict::Better),
        share(AbVerdict::Worse),
        share(AbVerdict::Same),
        share(AbVerdict::Inconclusive),
    ]
}
