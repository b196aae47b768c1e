//! Rows of ratios in virtual time, which has no noise: every difference is real.

use anyhow::Result;
use hdrhistogram::Histogram;
use tardy::units::Nanos;

use crate::bench::sheet::FigureRow;

/// One round's latencies of both sides, ns.
pub(super) struct Pair {
    pub ours: Histogram<u64>,
    pub theirs: Histogram<u64>,
}

/// With whom tardy is compared, and its maximum to that of the other at the most.
pub(super) struct Peer {
    pub name: &'static str,
    pub maximum_limit: f64,
}

/// Percentiles that are compared, and whether the limit is one.
const FIGURES: [(&str, f64, bool); 3] =
    [("p50", 0.5, true), ("p99", 0.99, true), ("p99.9", 0.999, false)];

/// The rows of `name` against `peer`: all rounds together, and the rounds' range.
pub(super) fn rows(name: &str, peer: &Peer, measured: Result<Vec<Pair>>) -> Vec<FigureRow> {
    let pairs = match measured {
        Ok(pairs) => pairs,
        Err(error) => {
            return vec![FigureRow::not_measured(name, "1.00", &format!("{error:#}"))];
        }
    };
    let mut all = Pair { ours: tardy::run::hlog::empty(), theirs: tardy::run::hlog::empty() };
    for pair in &pairs {
        // Bounds are equal, so that nothing can be lost.
        let _ = (all.ours.add(&pair.ours), all.theirs.add(&pair.theirs));
    }
    let row = |figure: &str, quantile: f64| {
        let (ours, theirs) = all.at(quantile);
        let (low, high) = range(pairs.iter().map(|pair| pair.ratio(quantile)));
        let measured = format!(
            "{:.3} ({low:.3} to {high:.3}); {} against {}",
            all.ratio(quantile),
            Nanos(ours as i64),
            Nanos(theirs as i64)
        );
        FigureRow::new(format!("{name}: {figure} against {}", peer.name), measured)
    };
    let percentile = |(figure, quantile, has_limit): (&str, f64, bool)| {
        let row = row(figure, quantile);
        if has_limit { row.judged("1.00", all.is_met(quantile)) } else { row }
    };
    let limit = peer.maximum_limit;
    let maximum = row("max", 1.0).judged(format!("{limit:.2}"), all.ratio(1.0) <= limit);
    FIGURES.into_iter().map(percentile).chain([maximum]).collect()
}

/// The row of a peer that prints only means: both sides' of each round, ns.
pub(super) fn mean_row(name: &str, peer: &str, measured: Result<Vec<(f64, f64)>>) -> FigureRow {
    let what = format!("{name}: mean against {peer}");
    let rounds = match measured {
        Ok(rounds) => rounds,
        Err(error) => return FigureRow::not_measured(what, "1.00", &format!("{error:#}")),
    };
    let count = rounds.len().max(1) as f64;
    let ours = rounds.iter().map(|(ours, _)| ours).sum::<f64>() / count;
    let theirs = rounds.iter().map(|(_, theirs)| theirs).sum::<f64>() / count;
    let ratios = rounds.iter().map(|(ours, theirs)| ours / theirs);
    let (low, high) = range(ratios);
    let measured = format!(
        "{:.3} ({low:.3} to {high:.3}); {} against {}",
        ours / theirs,
        Nanos(ours as i64),
        Nanos(theirs as i64)
    );
    // As exact as three digits are.
    FigureRow::new(what, measured).judged("1.00", ours <= theirs * 1.001)
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let widen = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    values.fold((f64::INFINITY, f64::NEG_INFINITY), widen)
}

impl Pair {
    fn at(&self, quantile: f64) -> (u64, u64) {
        (self.ours.value_at_quantile(quantile), self.theirs.value_at_quantile(quantile))
    }

    fn ratio(&self, quantile: f64) -> f64 {
        let (ours, theirs) = self.at(quantile);
        ours as f64 / theirs as f64
    }

    /// At most a bucket above: that is as far as the histograms tell two values apart.
    fn is_met(&self, quantile: f64) -> bool {
        let (ours, theirs) = self.at(quantile);
        ours <= self.theirs.highest_equivalent(self.theirs.next_non_equivalent(theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ours: u64, theirs: u64) -> Pair {
        let one = |value: u64| {
            let mut histogram = tardy::run::hlog::empty();
            histogram.record_n(value, 100).unwrap();
            histogram
        };
        Pair { ours: one(ours), theirs: one(theirs) }
    }

    #[test]
    fn one_bucket_above_is_met_and_two_are_not() {
        // Buckets of 8 ns there.
        let met = |ours: u64| pair(ours, 8_600).is_met(0.99);
        assert!(met(8_000) && met(8_600) && met(8_608) && !met(8_616));
        let peer = Peer { name: "a peer", maximum_limit: 1.5 };
        let pairs = vec![pair(8_600, 8_600), pair(8_616, 8_600)];
        let rows = rows("a kernel", &peer, Ok(pairs));
        let text = rows.iter().find(|row| row.what == "a kernel: p99 against a peer").unwrap();
        assert_eq!(text.met, Some(false));
        let maximum = rows.iter().find(|row| row.what == "a kernel: max against a peer").unwrap();
        assert_eq!(maximum.met, Some(true));
        assert!(text.measured.starts_with("1.002 (1.000 to 1.002); "), "{}", text.measured);
    }
}
