//! What tracing adds to a wake-up in counted time: the timer probe in guests of the lab, whose time
//! is the count of their instructions, so that nothing else is in the difference.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tardy::run::{Run, hlog};

use super::{
    Bench, process, say,
    sheet::{FigureRow, Section},
};

/// Debian's kernels, as the lab calls them.
const KERNELS: [&str; 2] = ["standard", "rt"];
/// The row of the plan, and so its directory.
const ROW: &str = "idle";
/// What each level may add to the median wake-up, us.
const LEVELS: [(&str, f64); 2] = [("stages", 1.2), ("peaks", 2.0)];

/// The wake-ups of one guest, ns.
#[derive(Debug, Clone, Copy)]
struct Wakeups {
    p50_ns: f64,
    p99_ns: f64,
}

/// What one level adds to a figure, us: one number for each phase offset, from the least on.
#[derive(Debug, PartialEq)]
struct Added(Vec<f64>);

impl Added {
    fn new(with: &[f64], without: &[f64]) -> Self {
        let mut added: Vec<f64> =
            with.iter().zip(without).map(|(with, without)| (with - without) / 1e3).collect();
        added.sort_by(f64::total_cmp);
        Self(added)
    }

    fn greatest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    fn show(&self) -> String {
        let middle = self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN);
        let least = self.0.first().copied().unwrap_or(f64::NAN);
        format!("{middle:.2} ({least:.2} to {:.2}) us", self.greatest())
    }
}

/// Both kernels, all levels.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let seeds = bench.either(3, 1);
    let samples = bench.either(4_000, 400);
    let kernels: &[&str] = bench.either(&KERNELS, &KERNELS[..1]);
    let plan = bench.path("tracing.toml");
    fs::write(&plan, text(samples)).context("cannot write the plan")?;
    let lab = Lab { bench, plan, kernels, seeds };
    let without = lab.run("off")?;
    let mut section = Section::new("What tracing adds to a wake-up, in counted time");
    for (level, limit_us) in LEVELS {
        let with = lab.run(level)?;
        for (at, kernel) in kernels.iter().enumerate() {
            section.rows.extend(rows(kernel, level, limit_us, &with[at], &without[at]));
        }
    }
    section.note(format!(
        "Guests of `tardy lab` whose time is their count of instructions (2 ns each): Debian's \
         kernels, one CPU, idle, 1 ms interval, FIFO 90, {samples} wake-ups in each of {seeds} \
         phase offsets. Differences are to the same kernel and phase without tracing: the middle \
         phase, the least and the greatest; a limit is met when the greatest is.",
    ));
    Ok(section)
}

/// The plan of one row.
fn text(samples: u32) -> String {
    format!(
        "name = \"tracing\"\n\n[run]\ninterval = \"1ms\"\npolicy = \"fifo\"\npriority = 90\n\
         warmup = \"200ms\"\nsamples = {samples}\n\n[[load]]\nname = \"{ROW}\"\nuse = [\"idle\"]\n"
    )
}

/// Of one kernel: for each phase offset, the wake-ups with this level, and without.
fn rows(
    kernel: &str,
    level: &str,
    limit_us: f64,
    with: &[Wakeups],
    without: &[Wakeups],
) -> [FigureRow; 2] {
    let row = |what: &str, of: fn(&Wakeups) -> f64| {
        let [with, without] = [with, without].map(|all| all.iter().map(of).collect::<Vec<_>>());
        let added = Added::new(&with, &without);
        let before_us = without.first().copied().unwrap_or(f64::NAN) / 1e3;
        let measured = format!("{}; without {before_us:.2} us", added.show());
        let what = format!("added to {what} by `{level}`, {kernel}");
        (FigureRow::new(what, measured), added.greatest())
    };
    let (median, greatest_us) = row("the median wake-up", |wakeups| wakeups.p50_ns);
    let (p99, _) = row("p99", |wakeups| wakeups.p99_ns);
    [median.judged(format!("{limit_us} us"), greatest_us <= limit_us), p99]
}

/// What is the same for all levels.
struct Lab<'a> {
    bench: &'a Bench,
    plan: PathBuf,
    kernels: &'a [&'a str],
    seeds: u32,
}

impl Lab<'_> {
    /// All guests with one level: for each kernel, the wake-ups of each phase offset.
    fn run(&self, level: &str) -> Result<Vec<Vec<Wakeups>>> {
        let place = self.bench.path(&format!("counted-{level}"));
        let mut command = Command::new(&self.bench.tardy);
        command
            .args(["lab", "run", "--quiet", "--kernels", &self.kernels.join(",")])
            .args(["--trace", level, "--seeds", &self.seeds.to_string(), "-o"])
            .args([&place, &self.plan]);
        process::run(&mut command)?;
        say(&format!("  guests with --trace {level} have run"));
        let of_kernel = |kernel: &&str| {
            let phase = |seed: u32| wakeups(&place.join(ROW).join(kernel).join(seed.to_string()));
            (0..self.seeds).map(phase).collect()
        };
        self.kernels.iter().map(of_kernel).collect()
    }
}

/// Reads a run.
fn wakeups(place: &Path) -> Result<Wakeups> {
    let mut counts = hlog::empty();
    let run = Run::open(place).with_context(|| format!("cannot read {}", place.display()))?;
    run.intervals(|_, span, own| {
        // Series of stages are named after the one they split.
        if !span.tag.contains('/') {
            let _ = counts.add(&own);
        }
    })?;
    ensure!(!counts.is_empty(), "not one sample in {}", place.display());
    let at = |quantile| counts.value_at_quantile(quantile) as f64;
    Ok(Wakeups { p50_ns: at(0.5), p99_ns: at(0.99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_the_difference_within_a_start_phase() {
        let added = Added::new(&[9_000.0, 8_000.0, 8_400.0], &[7_000.0, 7_000.0, 7_100.0]);
        assert_eq!(added.show(), "1.30 (1.00 to 2.00) us");
        let wakeups = |p50_ns| Wakeups { p50_ns, p99_ns: 2.0 * p50_ns };
        let (with, without) = ([8_100.0, 8_300.0].map(wakeups), [7_000.0; 2].map(wakeups));
        let met = |limit_us| rows("rt", "stages", limit_us, &with, &without)[0].met;
        assert_eq!((met(1.2), met(1.3)), (Some(false), Some(true)), "by the greatest");
    }

    #[test]
    fn the_plan_is_one_of_the_lab() {
        let plan = tardy::plan::Plan::parse(&text(400), "plan").unwrap();
        assert_eq!((plan.rows.len(), plan.rows[0].name.as_str()), (1, ROW));
    }
}
