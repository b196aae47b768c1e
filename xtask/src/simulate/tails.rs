//! Runs from known tails: does the model hold the true return level, or refuse?

use tardy::analysis::{
    random::SplitMix64,
    tail::{Model, Refusal, TailPieces, model},
};

use super::table::{Effort, markdown, percent, quantile};

/// Samples of each run, one a ms, and of each interval.
const SAMPLES: usize = 60_000;
const BLOCK: usize = 100;
const LENGTH_S: f64 = 60.0;

/// Times whose levels are looked at, s.
const TIMES: [(&str, f64); 3] = [("hour", 3_600.0), ("day", 86_400.0), ("year", 31_557_600.0)];

/// A tail of single samples: a name, one sample in us from a number between 0 and 1, and the value
/// that is exceeded with a probability. Mixtures know theirs from their kinds.
struct Tail {
    name: &'static str,
    upper_us: fn(f64) -> f64,
}

const TAILS: [Tail; 6] = [
    Tail { name: "exponential, mean 5 us", upper_us: |tail| 5.0 - 5.0 * tail.ln() },
    Tail { name: "Pareto, index 10", upper_us: |tail| 5.0 * tail.powf(-0.1) },
    Tail { name: "Pareto, index 4", upper_us: |tail| 5.0 * tail.powf(-0.25) },
    Tail { name: "Pareto, index 2", upper_us: |tail| 5.0 * tail.powf(-0.5) },
    Tail { name: "Pareto, index 1", upper_us: |tail| 5.0 / tail },
    Tail { name: "bounded, shape -0.3", upper_us: |tail| 5.0 + 20.0 * (1.0 - tail.powf(0.3)) },
];

/// A second kind of latencies: one sample in so many, 100 us on average above 50 us, beside an
/// exponential with 5 us.
const KINDS: [(&str, f64); 3] = [
    ("two kinds, the second 20 times a second", 50.0),
    ("two kinds, the second twice a second", 500.0),
    ("two kinds, the second 6 times a minute", 10_000.0),
];

/// The table.
pub(super) fn table(effort: Effort) -> String {
    let mut rows = Vec::new();
    for Tail { name, upper_us } in TAILS {
        let found = effort.repeat(&format!("tail {name}"), |random| {
            run(|random| upper_us(random.uniform()), random)
        });
        rows.extend(lines(name, &found, upper_us));
    }
    for (name, one_in) in KINDS {
        let draw = |random: &mut SplitMix64| match random.uniform() * one_in < 1.0 {
            true => 50.0 - 100.0 * random.uniform().ln(),
            false => 5.0 - 5.0 * random.uniform().ln(),
        };
        let found = effort.repeat(&format!("tail {name}"), |random| run(draw, random));
        rows.extend(lines(name, &found, |tail| mixed(tail, one_in)));
    }
    let head = [
        "tail",
        "time",
        "refused",
        "why mostly",
        "coverage",
        "too low",
        "estimate / truth (median)",
        "upper / lower end (median)",
    ];
    let title = format!("Return levels from {SAMPLES} samples, {} repeats", effort.repeats);
    markdown(&title, &head, &rows)
}

/// The value that the mixture exceeds with this probability.
fn mixed(tail: f64, one_in: f64) -> f64 {
    let exceeded = |x: f64| {
        let far = if x < 50.0 { 1.0 } else { (-(x - 50.0) / 100.0).exp() };
        far / one_in + (1.0 - 1.0 / one_in) * (-(x - 5.0) / 5.0).exp()
    };
    let (mut low, mut high) = (5.0, 1e5);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if exceeded(middle) > tail { low = middle } else { high = middle }
    }
    high
}

fn run(draw: impl Fn(&mut SplitMix64) -> f64, random: &mut SplitMix64) -> Result<Model, Refusal> {
    let mut worst = |_: usize| (0..BLOCK).map(|_| 1e3 * draw(random)).fold(0.0, f64::max);
    let maxima: Vec<f64> = (0..SAMPLES / BLOCK).map(&mut worst).collect();
    let pieces = TailPieces { maxima_ns: &maxima, length_s: LENGTH_S, highest_share: 0.15 };
    model(pieces, &TIMES.map(|(_, time)| time), true)
}

fn lines(
    name: &str,
    found: &[Result<Model, Refusal>],
    upper_us: impl Fn(f64) -> f64,
) -> Vec<Vec<String>> {
    let models: Vec<&Model> = found.iter().flatten().collect();
    let refused = percent(found.len() - models.len(), found.len());
    let line = |(place, (time, seconds)): (usize, &(&str, f64))| {
        // One of all samples of that time.
        let truth = 1e3 * upper_us(1.0 / (seconds * 1e3));
        let levels: Vec<_> = models.iter().filter_map(|own| own.levels.get(place)).collect();
        let count = |holds: &dyn Fn(f64, f64) -> bool| {
            let held = levels.iter().filter(|own| holds(own.level_ns.low, own.level_ns.high));
            percent(held.count(), levels.len())
        };
        let middle = |of: &dyn Fn(f64, f64, f64) -> f64| {
            let all: Vec<f64> = levels
                .iter()
                .map(|own| of(own.level_ns.value, own.level_ns.low, own.level_ns.high))
                .collect();
            if all.is_empty() { "-".into() } else { format!("{:.2}", quantile(&all, 0.5)) }
        };
        vec![
            name.to_owned(),
            (*time).to_owned(),
            refused.clone(),
            mostly(found),
            count(&|low, high| (low..=high).contains(&truth)),
            count(&|_, high| high < truth),
            middle(&|value, _, _| value / truth),
            middle(&|_, low, high| high / low),
        ]
    };
    TIMES.iter().enumerate().map(line).collect()
}

/// The most frequent reason for a refusal.
fn mostly(found: &[Result<Model, Refusal>]) -> String {
    let name = |refusal: &Refusal| match refusal {
        Refusal::Unsteady => "not stationary",
        Refusal::FewClusters(_) | Refusal::FewFitting => "too few clusters",
        Refusal::NoFit => "no fit",
        Refusal::Unstable => "unstable",
        Refusal::Heavy(_) => "shape",
        Refusal::Unforeseen { .. } => "unforeseen",
    };
    let mut names: Vec<&str> =
        found.iter().filter_map(|own| own.as_ref().err()).map(name).collect();
    names.sort_unstable();
    let most = names.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    most.map_or("-", |same| same[0]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_has_a_row_for_each_tail_and_time() {
        let effort = Effort { repeats: 1, threads: 2, seed: 1 };
        let text = table(effort);
        assert_eq!(text.lines().count(), 5 + 3 * (TAILS.len() + KINDS.len()), "{text}");
    }

    #[test]
    fn the_quantile_of_a_mixture_is_that_of_its_rarer_kind_far_out() {
        // 1e-6 of all, one in 500 of which is of the second kind: 5e-4 of those.
        let expected = 50.0 - 100.0 * 5e-4_f64.ln();
        assert!((mixed(1e-6, 500.0) - expected).abs() < 0.01);
    }
}
