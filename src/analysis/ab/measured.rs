//! One figure of every block, as a logarithm, and the differences of pairs.
//!
//! Latencies are compared as ratios: a change makes things slower by a factor, and the spread of a
//! logarithm hardly depends on its level. Where blocks are too short for a percentile, the shares
//! of samples above one common threshold are compared instead: both sides' samples of the first
//! look decide where it lies, so it favours neither. A share of k in n is taken as
//! (k + 1/2) / (n + 1), so that a block without any has a logarithm too (Haldane, Annals of Human
//! Genetics 20, 1956, p. 309; Anscombe, Biometrika 43, 1956, p. 461).

use hdrhistogram::Histogram;

use super::{
    figure::ComparedFigure,
    order::{QUAD, Quad},
};
use crate::run::{
    hlog,
    summary::{ENOUGH_BEYOND, percentile},
};

/// A bucket of a histogram is at most so wide, as a share of its value.
const BUCKET_WIDTH: f64 = 1.0 / 1024.0;

/// What one block measured.
#[derive(Debug, Clone)]
pub struct MeasuredBlock {
    /// Latencies, ns.
    pub counts: Histogram<u64>,
    /// The exact maximum, ns.
    pub max_ns: i64,
    /// Periods that were due.
    pub periods: u64,
    /// Those of them that passed without their own wake-up.
    pub missed: u64,
}

/// What the values of a figure are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredAs {
    /// Latencies in ns.
    Latency,
    /// Shares of samples above this latency, as the blocks are too short for the percentile.
    ShareAbove(u64),
    /// Shares of periods.
    ShareMissed,
}

/// One figure of all blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredFigure {
    /// Which.
    pub figure: ComparedFigure,
    /// What its values are.
    pub measured_as: MeasuredAs,
    /// The logarithm of each block's value, in the order of time.
    pub logs: Vec<f64>,
    /// What the standard deviation of a pair's difference is at least: of counts that of chance
    /// alone, of latencies the width of a bucket. Without it blocks that are all alike by chance,
    /// zeros above all, would be taken for certainty.
    pub least_sd: f64,
}

impl MeasuredFigure {
    /// The figure in `blocks`. How it is measured is decided by the `first` of them, those of the
    /// first look, and stays so when more blocks come.
    #[must_use]
    pub fn of(figure: ComparedFigure, blocks: &[MeasuredBlock], first: usize) -> Self {
        let first = blocks.get(..first).unwrap_or(blocks);
        match figure.percent() {
            Some(percent) => match threshold(percent, first) {
                Some(above_ns) => Self::of_share_above(figure, blocks, above_ns),
                None => Self::of_latency(figure, blocks, |block| {
                    percentile(&block.counts, percent, Some(block.max_ns))
                }),
            },
            None if figure == ComparedFigure::Max => {
                Self::of_latency(figure, blocks, |block| block.max_ns)
            }
            None => {
                let counts = blocks.iter().map(|block| (block.missed, block.periods));
                Self::of_counts(figure, MeasuredAs::ShareMissed, &counts.collect::<Vec<_>>())
            }
        }
    }

    /// The figure in `blocks` as it is, however few samples carry it: to be shown, not to be
    /// judged.
    #[must_use]
    pub fn described(figure: ComparedFigure, blocks: &[MeasuredBlock]) -> Self {
        match figure.percent() {
            Some(percent) => Self::of_latency(figure, blocks, |block| {
                percentile(&block.counts, percent, Some(block.max_ns))
            }),
            None => Self::of(figure, blocks, blocks.len()),
        }
    }

    fn of_latency(
        figure: ComparedFigure,
        blocks: &[MeasuredBlock],
        value_ns: impl Fn(&MeasuredBlock) -> i64,
    ) -> Self {
        // A latency of 0 has no logarithm; the clock does not tell it from 1 ns.
        let log = |block| (value_ns(block).max(1) as f64).ln();
        Self {
            figure,
            measured_as: MeasuredAs::Latency,
            logs: blocks.iter().map(log).collect(),
            least_sd: BUCKET_WIDTH,
        }
    }

    fn of_share_above(figure: ComparedFigure, blocks: &[MeasuredBlock], above_ns: u64) -> Self {
        let count = |block: &MeasuredBlock| {
            let counts = &block.counts;
            let above = counts.count_between(counts.next_non_equivalent(above_ns), u64::MAX);
            (above, counts.len())
        };
        let counts: Vec<(u64, u64)> = blocks.iter().map(count).collect();
        Self::of_counts(figure, MeasuredAs::ShareAbove(above_ns), &counts)
    }

    fn of_counts(figure: ComparedFigure, measured_as: MeasuredAs, counts: &[(u64, u64)]) -> Self {
        let log = |(k, n): &(u64, u64)| ((*k as f64 + 0.5) / (*n as f64 + 1.0)).ln();
        let sum: f64 = counts.iter().map(|(k, _)| *k as f64).sum();
        let mean = sum / counts.len().max(1) as f64;
        // The logarithm of a Poisson count varies by 1 / mean, and a pair has two of them.
        let least_sd = (2.0 / (mean + 0.5)).sqrt();
        Self { figure, measured_as, logs: counts.iter().map(log).collect(), least_sd }
    }

    /// ln(B / A) of every pair, in the order of time; what is left of a quad is left out.
    #[must_use]
    pub fn log_ratios(&self, order: &[Quad]) -> Vec<f64> {
        let difference = |(a, b): (f64, f64)| b - a;
        self.quads(order).flat_map(|(quad, logs)| quad.pairs(logs)).map(difference).collect()
    }

    /// The same of the pairs of equals: the later to the earlier.
    #[must_use]
    pub fn equal_log_ratios(&self, order: &[Quad]) -> Vec<f64> {
        let difference = |(early, late): (f64, f64)| late - early;
        self.quads(order).map(|(quad, logs)| difference(quad.equals(logs))).collect()
    }

    /// The mean logarithm of the blocks of A, and of those of B.
    #[must_use]
    pub fn means(&self, order: &[Quad]) -> (f64, f64) {
        let pairs: Vec<(f64, f64)> =
            self.quads(order).flat_map(|(quad, logs)| quad.pairs(logs)).collect();
        let count = pairs.len() as f64;
        let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        (sum(|pair| pair.0) / count, sum(|pair| pair.1) / count)
    }

    fn quads<'a>(&'a self, order: &'a [Quad]) -> impl Iterator<Item = (Quad, [f64; QUAD])> + 'a {
        order.iter().copied().zip(self.logs.as_chunks::<QUAD>().0.iter().copied())
    }
}

/// The threshold whose exceedances are counted, where a block has too few samples beyond the
/// percentile: the percentile of all these blocks together.
fn threshold(percent: f64, blocks: &[MeasuredBlock]) -> Option<u64> {
    let shortest = blocks.iter().map(|block| block.counts.len()).min()?;
    let beyond = shortest as f64 * (1.0 - percent / 100.0) * (1.0 + 1e-9);
    if beyond >= ENOUGH_BEYOND as f64 {
        return None;
    }
    let mut pooled = hlog::empty();
    for bucket in blocks.iter().flat_map(|block| block.counts.iter_recorded()) {
        pooled.saturating_record_n(bucket.value_iterated_to(), bucket.count_since_last_iteration());
    }
    u64::try_from(percentile(&pooled, percent, None)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(latencies: impl IntoIterator<Item = u64>, missed: u64) -> MeasuredBlock {
        let mut counts = hlog::empty();
        for latency in latencies {
            counts.saturating_record(latency);
        }
        let (max_ns, periods) = (counts.max() as i64, counts.len());
        MeasuredBlock { counts, max_ns, periods, missed }
    }

    /// 1 to 1,000 us, each once, times a factor.
    fn ramp(factor: u64) -> MeasuredBlock {
        block((1..=1_000).map(|us| us * 1_000 * factor), 0)
    }

    fn assert_logs(found: &[f64], expected: &[f64], within: f64) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        let near = |(found, expected): (&f64, &f64)| (found - expected).abs() <= within;
        assert!(found.iter().zip(expected).all(near), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn a_percentile_that_blocks_can_carry_is_compared_as_a_latency() {
        let blocks = [ramp(1), ramp(2), ramp(2), ramp(1)];
        for figure in [ComparedFigure::P50, ComparedFigure::P99, ComparedFigure::Max] {
            let found = MeasuredFigure::of(figure, &blocks, 4);
            assert_eq!(found.measured_as, MeasuredAs::Latency, "{figure}");
            let twice = std::f64::consts::LN_2;
            assert_logs(&found.log_ratios(&[Quad::Abba]), &[twice, twice], 0.001);
            assert_logs(&found.log_ratios(&[Quad::Baab]), &[-twice, -twice], 0.001);
            assert_logs(&found.equal_log_ratios(&[Quad::Abba]), &[0.0], 1e-12);
        }
    }

    #[test]
    fn blocks_too_short_for_a_percentile_are_compared_by_a_common_threshold() {
        // 1 of 1,000 lies beyond p99.9: too few. p99.9 of both together, 2,000 of each, is 1,996
        // us, which a block of A never exceeds, and one of B twice (1,998 and 2,000).
        let blocks = [ramp(1), ramp(2), ramp(2), ramp(1)];
        let found = MeasuredFigure::of(ComparedFigure::P999, &blocks, 4);
        let MeasuredAs::ShareAbove(above_ns) = found.measured_as else { panic!("{found:?}") };
        assert!(above_ns.abs_diff(1_996_000) <= 2_000, "{above_ns}");
        let share = |k: f64| ((k + 0.5) / 1_001.0_f64).ln();
        assert_logs(&found.logs, &[share(0.0), share(2.0), share(2.0), share(0.0)], 1e-12);
        // On average 1 a block: the variance of a pair is 2 / 1.5 by chance alone.
        assert!((found.least_sd - (2.0_f64 / 1.5).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn later_blocks_do_not_move_the_threshold() {
        let mut blocks = vec![ramp(1), ramp(2), ramp(2), ramp(1)];
        let before = MeasuredFigure::of(ComparedFigure::P999, &blocks, 4);
        blocks.extend([ramp(90), ramp(1), ramp(1), ramp(90)]);
        let after = MeasuredFigure::of(ComparedFigure::P999, &blocks, 4);
        assert_eq!(before.measured_as, after.measured_as);
        assert_eq!(before.logs, after.logs[..4]);
    }

    #[test]
    fn missed_periods_are_compared_as_shares_and_none_is_no_certainty() {
        let blocks = [0, 3, 3, 0].map(|missed| block([1_000; 99], missed));
        let found = MeasuredFigure::of(ComparedFigure::Missed, &blocks, 4);
        // 3.5 / 100 to 0.5 / 100.
        assert_logs(&found.log_ratios(&[Quad::Abba]), &[7.0_f64.ln(); 2], 1e-12);
        let none = [0; 4].map(|missed| block([1_000; 99], missed));
        let none = MeasuredFigure::of(ComparedFigure::Missed, &none, 4);
        assert_logs(&none.log_ratios(&[Quad::Abba]), &[0.0, 0.0], 1e-12);
        assert!((none.least_sd - 2.0).abs() < 1e-12, "2 / 0.5, and its root");
    }

    #[test]
    fn half_a_quad_is_left_out() {
        let blocks: Vec<MeasuredBlock> = (0..6).map(|_| ramp(1)).collect();
        let found = MeasuredFigure::of(ComparedFigure::P50, &blocks, 4);
        let order = [Quad::Abba, Quad::Baab];
        assert_eq!((found.logs.len(), found.log_ratios(&order).len()), (6, 2));
        assert_eq!(found.equal_log_ratios(&order).len(), 1);
    }

    #[test]
    fn blocks_without_samples_have_no_infinite_logarithm() {
        let blocks = [block([], 0), block([0, 0], 0)];
        for (figure, _) in super::super::figure::COMPARED_FIGURES {
            let found = MeasuredFigure::of(figure, &blocks, 2);
            assert!(found.logs.iter().all(|log| log.is_finite()), "{found:?}");
        }
    }
}
