//! Percentiles of a series that is still being written.

use tardy_hot::{
    histogram::{HIGHEST_NS, highest_of, index_of},
    wakeup::Series,
};

/// With fewer samples beyond it, a percentile is little more than the maximum, and a threshold
/// there would keep what comes after one stall from being analysed.
pub(super) const ENOUGH: u64 = 10;

/// The highest of the 90th, 99th and 99.9th percentile, up to `most` in a thousand, that has enough
/// samples beyond it; ns.
pub(super) fn tail(series: &Series, most: u64) -> Option<i64> {
    let count = series.tally.totals().count;
    let fits = |per_mille: &u64| *per_mille <= most && count * (1000 - per_mille) / 1000 >= ENOUGH;
    [999, 990, 900].into_iter().find(fits).map(|per_mille| quantile(series, per_mille))
}

/// The value that `per_mille` in a thousand of a series' samples reach, ns; 0 without samples. Read
/// while the series is written, so it may be a sample off.
pub(super) fn quantile(series: &Series, per_mille: u64) -> i64 {
    let totals = series.tally.totals();
    let bound = |ns: i64| index_of(ns.clamp(0, HIGHEST_NS));
    let mut left = totals.count.saturating_sub(totals.early) * per_mille / 1000;
    for index in bound(totals.min_ns)..=bound(totals.max_ns) {
        let count = series.histogram.count(index);
        if count > left {
            return highest_of(index);
        }
        left -= count;
    }
    totals.max_ns.max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_where_samples_are_beyond_it() {
        let series = Series::default();
        (1..=99).for_each(|ns| series.record(ns));
        assert_eq!(tail(&series, 999), None);
        series.record(100);
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(91), Some(91)));
        (101..=1000).for_each(|ns| series.record(ns));
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(991), Some(991)));
        (0..9_000).for_each(|_| series.record(1));
        assert_eq!((tail(&series, 990), tail(&series, 999)), (Some(901), Some(991)));
    }

    #[test]
    fn quantiles_are_those_of_the_samples_so_far() {
        let series = Series::default();
        assert_eq!(quantile(&series, 990), 0);
        (1..=1000).for_each(|ns| series.record(ns));
        series.record(-5);
        assert_eq!((quantile(&series, 990), quantile(&series, 999)), (991, 1000));
        series.record(2_000_000);
        assert!(quantile(&series, 999) <= 1001 && quantile(&series, 1000) >= 2_000_000);
    }
}
