//! The histogram's layout against the `hdrhistogram` crate, which others read it with, and that
//! a series loses nothing.

use hdrhistogram::Histogram as Hdr;
use proptest::prelude::*;
use tardy_hot::{
    histogram::{HIGHEST_NS, Histogram, LEN, highest_of, index_of, lowest_of},
    wakeup::Series,
};

fn hdr() -> Hdr<u64> {
    Hdr::new_with_bounds(1, HIGHEST_NS as u64, 3).unwrap()
}

/// Values of every magnitude alike, with the two extremes among them.
fn value() -> impl Strategy<Value = i64> {
    prop_oneof![
        1 => Just(0),
        1 => Just(HIGHEST_NS),
        2 => 0..=HIGHEST_NS,
        20 => (0_u32..=41, any::<u64>()).prop_map(|(bits, noise)| {
            let highest = (1_u64 << bits) - 1;
            ((noise & highest) as i64).min(HIGHEST_NS)
        }),
    ]
}

/// Latencies as above, and those that no histogram takes.
fn latency() -> impl Strategy<Value = i64> {
    prop_oneof![
        10 => value(),
        1 => -HIGHEST_NS..0,
        1 => HIGHEST_NS + 1..=4 * HIGHEST_NS,
        1 => prop_oneof![Just(-1), Just(HIGHEST_NS + 1), Just(-HIGHEST_NS)],
    ]
}

#[test]
fn every_bucket_has_the_edges_that_hdrhistogram_gives_it() {
    let hdr = hdr();
    let last = index_of(HIGHEST_NS);
    for index in 0..=last {
        let (low, high) = (lowest_of(index), highest_of(index));
        assert_eq!((index_of(low), index_of(high)), (index, index));
        for value in [low as u64, high as u64] {
            assert_eq!(hdr.lowest_equivalent(value), low as u64, "bucket {index}");
            assert_eq!(hdr.highest_equivalent(value), high as u64, "bucket {index}");
        }
    }
    assert!(last < LEN);
}

#[test]
fn buckets_follow_each_other_without_gap_or_overlap() {
    assert_eq!((lowest_of(0), index_of(0)), (0, 0));
    for index in 1..LEN {
        assert_eq!(lowest_of(index), highest_of(index - 1) + 1, "bucket {index}");
    }
}

#[test]
fn a_value_outside_the_range_is_not_counted_and_does_no_harm() {
    let histogram = Histogram::new();
    for value in [-1, i64::MIN, i64::MAX] {
        histogram.record(value);
    }
    assert!((0..LEN).all(|index| histogram.count(index) == 0));
    assert_eq!(histogram.count(LEN), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_value_lies_in_the_bucket_that_hdrhistogram_puts_it_in(value in value()) {
        let (hdr, index) = (hdr(), index_of(value));
        prop_assert!(lowest_of(index) <= value && value <= highest_of(index));
        prop_assert_eq!(hdr.lowest_equivalent(value as u64), lowest_of(index) as u64);
        prop_assert_eq!(hdr.highest_equivalent(value as u64), highest_of(index) as u64);
    }

    #[test]
    fn after_any_recording_every_count_is_that_of_hdrhistogram(
        values in prop::collection::vec(value(), 0..400)
    ) {
        let (histogram, mut hdr) = (Histogram::new(), hdr());
        for value in values {
            histogram.record(value);
            hdr.record(value as u64).unwrap();
        }
        for index in 0..LEN {
            let low = lowest_of(index).min(HIGHEST_NS) as u64;
            let there = if lowest_of(index) > HIGHEST_NS { 0 } else { hdr.count_at(low) };
            prop_assert_eq!(histogram.count(index), there, "bucket {}", index);
        }
        histogram.clear();
        prop_assert!((0..LEN).all(|index| histogram.count(index) == 0));
    }

    #[test]
    fn count_is_the_histogram_and_early_and_above_whatever_comes(
        latencies in prop::collection::vec(latency(), 0..400)
    ) {
        let series = Series::default();
        latencies.iter().for_each(|latency| series.record(*latency));
        let totals = series.tally.totals();
        let counted: u64 = (0..LEN).map(|index| series.histogram.count(index)).sum();
        let like = |wanted: fn(&i64) -> bool| latencies.iter().filter(|l| wanted(l)).count() as u64;
        prop_assert_eq!(totals.early, like(|l| *l < 0));
        prop_assert_eq!(totals.above, like(|l| *l > HIGHEST_NS));
        prop_assert_eq!(totals.count, latencies.len() as u64);
        prop_assert_eq!(totals.count, counted + totals.early + totals.above);
        prop_assert_eq!(totals.sum_ns, latencies.iter().sum::<i64>());
        prop_assert_eq!(totals.min_ns, latencies.iter().copied().min().unwrap_or(i64::MAX));
        prop_assert_eq!(totals.max_ns, latencies.iter().copied().max().unwrap_or(i64::MIN));
    }
}
