//! What tracing costs here: slices with and without it in turn, before the run, under its loads.
//!
//! Each slice arms the same probe again, under the same conditions. The order alternates (off on,
//! on off), so that a drift adds to as many differences as it takes from. What a slice measures is
//! not part of the run.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use tardy_hot::{clock::now_ns, stop::Stop, wakeup::Series};

use super::{RunPlan, quantiles::quantile, tracing::Loaded};
use crate::{
    probes::{ArmOptions, Schedule, ThreadReport},
    run::TraceCost,
    setup::arrange::Arranged,
    sys::{counters::Stat, root::Root},
};

/// Pairs of slices.
const PAIRS: u32 = 4;

/// Length of a slice, ns.
const SLICE_NS: i64 = 500_000_000;

/// What a slice does before it counts, ns: threads settle, the first wake-ups are slow.
const WARMUP_NS: i64 = 50_000_000;

/// How long all slices take, ns.
pub(crate) const LENGTH_NS: i64 = 2 * PAIRS as i64 * (SLICE_NS + WARMUP_NS);

/// What one slice found.
#[derive(Debug, Clone, Copy)]
struct Slice {
    median_ns: i64,
    cpu_per_wakeup_ns: i64,
    /// Busy CPUs, in percent of one.
    busy_percent: f64,
}

/// Measures it; `None` if `quit` ended it early or a slice had no samples. Tracing is off
/// afterwards.
///
/// # Errors
/// The probe cannot be armed, or the BPF side not be switched on.
pub(super) fn cost(
    plan: &RunPlan,
    arranged: &Arranged,
    traced: &mut Loaded,
    mut quit: impl FnMut() -> bool,
) -> Result<Option<TraceCost>> {
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let mut found = [None; 2];
        for with in [pair % 2 == 1, pair % 2 == 0] {
            let slice = slice(plan, arranged, with.then_some(&mut *traced), &mut quit);
            traced.pause();
            let Some(slice) = slice? else { return Ok(None) };
            found[usize::from(with)] = Some(slice);
        }
        if let [Some(without), Some(with)] = found {
            pairs.push((without, with));
        }
    }
    Ok(Some(summary(&pairs)))
}

fn slice(
    plan: &RunPlan,
    arranged: &Arranged,
    mut traced: Option<&mut Loaded>,
    mut quit: impl FnMut() -> bool,
) -> Result<Option<Slice>> {
    let stop = Arc::new(Stop::new());
    let tracing = traced.as_ref().map(|traced| traced.tracing().clone());
    let wants = ArmOptions { ring_samples: None, tracing };
    let mut armed = arranged.within(|| plan.probe.arm(&wants, &stop))??;
    if let Some(traced) = &mut traced {
        traced.follow(&armed.traced)?;
    }
    let whole = armed.recorded.iter().filter(|one| !one.head.is_stage());
    let series: Vec<Arc<Series>> = whole.map(|one| Arc::clone(&one.series)).collect();
    let warmup_ns = now_ns() + 5_000_000;
    let start_ns = warmup_ns + WARMUP_NS;
    let end_ns = start_ns + SLICE_NS;
    let before = Stat::read(&Root::default());
    armed.start(Schedule {
        warmup_ns,
        start_ns,
        end_ns,
        samples: u64::MAX,
        stop_over_ns: i64::MAX,
    });
    while !armed.is_done() {
        std::thread::sleep(Duration::from_millis(20));
        armed.poll();
        if quit() {
            armed.stop();
        }
    }
    let took_ns = now_ns() - warmup_ns;
    let after = Stat::read(&Root::default());
    let reports = armed.finish().reports;
    Ok((!quit()).then(|| found(&series, &reports, busy(&before, &after, took_ns))).flatten())
}

fn found(series: &[Arc<Series>], reports: &[ThreadReport], busy_percent: f64) -> Option<Slice> {
    let wakeups: u64 = series.iter().map(|series| series.tally.totals().count).sum();
    let cpu_ns: u64 = reports.iter().map(|report| report.usage.cpu_ns).sum();
    let mut medians: Vec<i64> = series.iter().map(|series| quantile(series, 500)).collect();
    let median_ns = middle(&mut medians)?;
    let cpu_per_wakeup_ns = i64::try_from(cpu_ns.checked_div(wakeups)?).ok()?;
    Some(Slice { median_ns, cpu_per_wakeup_ns, busy_percent })
}

/// Busy CPUs between two reads, in percent of one; counted in ticks of 10 ms.
fn busy(before: &Stat, after: &Stat, took_ns: i64) -> f64 {
    let ticks = |stat: &Stat| stat.cpus.iter().map(|cpu| cpu.busy).sum::<u64>();
    let busy_ns = ticks(after).saturating_sub(ticks(before)) as f64 * 1e7;
    busy_ns / took_ns.max(1) as f64 * 100.0
}

fn summary(pairs: &[(Slice, Slice)]) -> TraceCost {
    let of = |pick: fn(&(Slice, Slice)) -> i64| {
        let mut all: Vec<i64> = pairs.iter().map(pick).collect();
        middle(&mut all).unwrap_or(0)
    };
    let added = |pair: &(Slice, Slice)| pair.1.median_ns - pair.0.median_ns;
    let range = pairs.iter().map(added);
    let mut percents: Vec<i64> = pairs
        .iter()
        .map(|(without, with)| ((with.busy_percent - without.busy_percent) * 10.0).round() as i64)
        .collect();
    TraceCost {
        pairs: pairs.len() as u32,
        slice_ns: SLICE_NS,
        median_without_ns: of(|(without, _)| without.median_ns),
        median_with_ns: of(|(_, with)| with.median_ns),
        added_median_ns: of(|(without, with)| with.median_ns - without.median_ns),
        added_range_ns: (range.clone().min().unwrap_or(0), range.max().unwrap_or(0)),
        cpu_per_wakeup_ns: (
            of(|(without, _)| without.cpu_per_wakeup_ns),
            of(|(_, with)| with.cpu_per_wakeup_ns),
        ),
        added_cpu_percent: middle(&mut percents).unwrap_or(0) as f64 / 10.0,
    }
}

/// The median; the middle of the two in the middle where there are two.
fn middle(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    let (low, high) = (values.get(last / 2)?, values.get(last.div_ceil(2))?);
    Some(low + (high - low) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_median_of_the_differences_within_pairs() {
        let slice = |median_ns: i64| Slice {
            median_ns,
            cpu_per_wakeup_ns: median_ns / 2,
            busy_percent: median_ns as f64 / 1000.0,
        };
        // A drift of 10 us from pair to pair hides nothing.
        let pairs = [(10, 11), (20, 22), (30, 31), (40, 45)]
            .map(|(without, with)| (slice(without * 1000), slice(with * 1000)));
        let cost = summary(&pairs);
        assert_eq!((cost.added_median_ns, cost.added_range_ns), (1_500, (1_000, 5_000)));
        assert_eq!((cost.median_without_ns, cost.median_with_ns), (25_000, 26_500));
        assert_eq!((cost.cpu_per_wakeup_ns, cost.added_cpu_percent), ((12_500, 13_250), 1.5));
        assert_eq!((middle(&mut []), middle(&mut [3, 1])), (None, Some(2)));
    }
}
