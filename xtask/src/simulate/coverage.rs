//! How often intervals of percentiles hold the true one, and how wide they are.

use hdrhistogram::Histogram;
use tardy::{
    analysis::{
        percentile::{Backing, Exceedances, PercentileInterval},
        random::SplitMix64,
    },
    run::hlog,
};

use super::{
    processes::{PROCESSES, Process},
    table::{Effort, markdown, percent, quantile},
};

/// Percentiles that are simulated.
const PERCENTS: [f64; 3] = [50.0, 99.0, 99.9];

/// Intervals of a run, as many as tardy stores of one minute.
const INTERVALS: usize = 600;

/// The table for runs of `samples` samples.
pub(super) fn table(effort: Effort, samples: usize) -> String {
    let mut rows = Vec::new();
    for (name, process) in PROCESSES {
        let row = format!("coverage {name} {samples}");
        let runs = effort.repeat(&row, |random| run(process, samples, random));
        for (place, percent) in PERCENTS.into_iter().enumerate() {
            let found: Vec<PercentileInterval> =
                runs.iter().filter_map(|run| run.get(place)).copied().collect();
            rows.push(line(name, process, percent, &found));
        }
    }
    let head = [
        "data",
        "percentile",
        "effective beyond (median)",
        "refused",
        "marked",
        "coverage, marked",
        "coverage, 20 and more",
        "\"at least\" holds",
        "width / best, 20 and more",
    ];
    let title = format!("Coverage of 95% intervals, {samples} samples, {} repeats", effort.repeats);
    markdown(&title, &head, &rows)
}

/// The intervals of one run.
fn run(process: Process, samples: usize, random: &mut SplitMix64) -> Vec<PercentileInterval> {
    let drawn = process.draw(samples, random);
    let (mut total, mut counts) = (hlog::empty(), hlog::empty());
    fill(&mut total, &drawn);
    let max_ns = drawn.iter().max().and_then(|max| i64::try_from(*max).ok());
    let mut counter = Exceedances::of_total(&total, max_ns, &PERCENTS);
    for block in drawn.chunks(samples.div_ceil(INTERVALS)) {
        fill(&mut counts, block);
        counter.add(&counts);
    }
    counter.intervals(&total, max_ns)
}

fn fill(counts: &mut Histogram<u64>, samples: &[u64]) {
    counts.reset();
    for sample in samples {
        counts.saturating_record(*sample);
    }
}

fn line(
    name: &str,
    process: Process,
    percentile: f64,
    found: &[PercentileInterval],
) -> Vec<String> {
    let truth = process.percentile(percentile);
    let is_above_low = |one: &PercentileInterval| one.low_ns.is_none_or(|low| low as f64 <= truth);
    let is_below_high =
        |one: &PercentileInterval| one.high_ns.is_none_or(|high| truth <= high as f64);
    let of = |backing: Backing| -> Vec<&PercentileInterval> {
        found.iter().filter(|one| one.support.backing == backing).collect()
    };
    let (refused, few, sound) = (of(Backing::TooFew), of(Backing::Few), of(Backing::Sound));
    let covered = |of: &[&PercentileInterval]| {
        let held = of.iter().filter(|one| is_above_low(one) && is_below_high(one)).count();
        percent(held, of.len())
    };
    let beyond: Vec<f64> = found.iter().map(|one| one.support.beyond).collect();
    let at_least: Vec<_> = refused.iter().filter(|one| one.low_ns.is_some()).collect();
    let held = at_least.iter().filter(|one| is_above_low(one)).count();
    vec![
        name.to_owned(),
        format!("p{percentile}"),
        format!("{:.0}", quantile(&beyond, 0.5)),
        percent(refused.len(), found.len()),
        percent(few.len(), found.len()),
        covered(&few),
        covered(&sound),
        percent(held, at_least.len()),
        width(found, &sound),
    ]
}

/// The median width of the sound intervals as a multiple of the best: that between the 2.5th and
/// the 97.5th percentile of what the runs have as their percentile, which is unknown with one
/// run only.
fn width(found: &[PercentileInterval], sound: &[&PercentileInterval]) -> String {
    let values: Vec<f64> = found.iter().map(|one| one.value_ns as f64).collect();
    let best = quantile(&values, 0.975) - quantile(&values, 0.025);
    let width = |one: &&PercentileInterval| Some((one.high_ns? - one.low_ns?) as f64);
    let widths: Vec<f64> = sound.iter().filter_map(width).collect();
    match widths.is_empty() {
        true => "-".into(),
        false => format!("{:.2}", quantile(&widths, 0.5) / best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_table_has_a_row_for_each_process_and_percentile() {
        let effort = Effort { repeats: 2, threads: 2, seed: 1 };
        let text = table(effort, 3_000);
        assert_eq!(text.lines().count(), 5 + PROCESSES.len() * PERCENTS.len(), "{text}");
        // 3 samples beyond p99.9 are never enough.
        let tails = text.lines().filter(|line| line.contains("| p99.9 |"));
        assert!(tails.into_iter().all(|line| line.contains("| 100.0% |")), "{text}");
    }
}
