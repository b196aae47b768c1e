//! The view per scheduled period, made of the latencies of wake-ups.

use hdrhistogram::Histogram;

use super::hlog;

/// The greatest number of values that are written one by one; more take longer than going over all
/// buckets.
const FEW_STEPS: u64 = 5_000;

/// The view per scheduled period, derived from the view per wake-up: a latency L at period T counts
/// as L, L-T, ..., L-kT with k = floor(L/T). Bucket middles stand for values, none above `max_ns`.
/// The time that it takes does not depend on k, which a record may make as large as it likes.
#[must_use]
pub fn per_period(counts: &Histogram<u64>, max_ns: i64, period_ns: i64) -> Histogram<u64> {
    let Some(period) = u64::try_from(period_ns).ok().filter(|period| *period > 0) else {
        return counts.clone();
    };
    let max = u64::try_from(max_ns).unwrap_or(0);
    let mut view = hlog::empty();
    if counts.is_empty() {
        return view;
    }
    let mut late = Vec::new();
    for bucket in counts.iter_recorded() {
        let value = counts.median_equivalent(bucket.value_iterated_to()).min(max);
        let count = bucket.count_since_last_iteration();
        if value < period {
            view.saturating_record_n(value, count);
        } else {
            late.push((value, count));
        }
    }
    let steps = |value: u64| value / period + 1;
    if late.iter().map(|(value, _)| steps(*value)).fold(0, u64::saturating_add) <= FEW_STEPS {
        for (value, count) in late {
            let left = (0..steps(value)).map(|step| value - step * period);
            left.for_each(|left| view.saturating_record_n(left, count));
        }
    } else {
        spread(&mut view, &late, period);
    }
    view
}

/// Adds what latencies (with their counts, in their order) leave after each period: bucket by
/// bucket, from the highest, what is at least its lowest value less what was above it.
fn spread(view: &mut Histogram<u64>, late: &[(u64, u64)], period: u64) {
    let Some((highest, _)) = late.last() else { return };
    let mut passed = PeriodCounts::new(late, period);
    let (mut rest, mut above) = (late, 0);
    let top = tardy_hot::histogram::index_of(i64::try_from(*highest).unwrap_or(i64::MAX));
    for index in (0..=top).rev() {
        let low = tardy_hot::histogram::lowest_of(index) as u64;
        let (below, own) = rest.split_at(rest.partition_point(|(value, _)| *value < low));
        own.iter().for_each(|(value, count)| passed.add(*value, *count));
        rest = below;
        let from_low = passed.at_least(low);
        let count = u64::try_from(from_low.saturating_sub(above)).unwrap_or(u64::MAX);
        if count > 0 {
            view.saturating_record_n(low, count);
        }
        above = from_low;
    }
}

/// Latencies, and how often they pass a limit on their way down, period by period: of a latency L
/// and a limit X not above it, floor(L/T) - floor(X/T) + 1 times, and once less where what L leaves
/// at the end is below what X does.
struct PeriodCounts {
    period: u64,
    /// How many latencies, and the sum of their floor(L/T) + 1.
    count: u128,
    passes: u128,
    /// What latencies leave at the end, each once, in order.
    left: Vec<u64>,
    /// How many leave that, as sums over ranges (Fenwick 1994).
    sums: Vec<u128>,
}

impl PeriodCounts {
    /// None yet; none but these will be added.
    fn new(late: &[(u64, u64)], period: u64) -> Self {
        let mut left: Vec<u64> = late.iter().map(|(value, _)| value % period).collect();
        left.sort_unstable();
        left.dedup();
        let sums = vec![0; left.len()];
        Self { period, count: 0, passes: 0, left, sums }
    }

    fn add(&mut self, value: u64, count: u64) {
        let count = u128::from(count);
        self.count += count;
        self.passes += count * (u128::from(value / self.period) + 1);
        let mut at = self.left.partition_point(|left| *left < value % self.period);
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += count;
            at |= at + 1;
        }
    }

    /// How often those that were added are at least `limit`, which none of them is below.
    fn at_least(&self, limit: u64) -> u128 {
        let mut end = self.left.partition_point(|left| *left < limit % self.period);
        let mut below = 0;
        while let Some(sum) = end.checked_sub(1).and_then(|last| self.sums.get(last)) {
            below += sum;
            end &= end - 1;
        }
        self.passes - self.count * u128::from(limit / self.period) - below
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{cpu_ns, eventually};

    /// What latencies of one series leave, period by period.
    fn by_hand(late: &[(u64, u64)], period: u64) -> Histogram<u64> {
        let mut view = hlog::empty();
        for (value, count) in late {
            for missed in 0..=value / period {
                view.record_n(value - missed * period, *count).unwrap();
            }
        }
        view
    }

    #[test]
    fn periods_by_the_thousand_million_take_no_time() {
        let full = |first: usize| {
            let mut counts = hlog::empty();
            let last = tardy_hot::histogram::index_of(tardy_hot::histogram::HIGHEST_NS);
            for index in first..last {
                counts.record(tardy_hot::histogram::lowest_of(index) as u64).unwrap();
            }
            (counts, last)
        };
        let (all, last) = full(0);
        let (few, _) = full(last - 8);
        // One by one some 10^16 periods; bucket by bucket 10^9 steps for all, 10^5 for the few.
        for period_ns in [1, 1_000_000] {
            let of = |counts| cpu_ns(|| per_period(counts, i64::MAX, period_ns));
            let is_fast = || of(&all) < 100 * of(&few);
            assert!(eventually(is_fast), "{period_ns}: all take 100 times as long as a few");
        }
        assert_eq!(per_period(&few, i64::MAX, 1).count_at(0), 8);
    }

    proptest! {
        #[test]
        fn spreading_by_bucket_equals_spreading_by_period(
            values in prop::collection::btree_map(0_u64..3_000_000_000, 1_u64..5, 1..6),
            period in 100_000_u64..1_000_000,
        ) {
            let late: Vec<(u64, u64)> = values.into_iter().collect();
            let mut by_bucket = hlog::empty();
            spread(&mut by_bucket, &late, period);
            prop_assert_eq!(by_bucket, by_hand(&late, period));
        }

        #[test]
        fn short_periods_are_spread_as_long_ones(
            values in prop::collection::btree_map(0_u64..5_000, 1_u64..u64::MAX, 1..40),
            period in 1_u64..300,
        ) {
            let many = values.into_iter().map(|(ns, count)| (ns, 1 + (count >> 20)));
            let late: Vec<(u64, u64)> = many.collect();
            let mut by_bucket = hlog::empty();
            spread(&mut by_bucket, &late, period);
            prop_assert_eq!(by_bucket, by_hand(&late, period));
        }
    }
}
