//! Percentile intervals against ranks computed by hand.

use hdrhistogram::Histogram;

use super::*;
use crate::{analysis::random::SplitMix64, run::hlog};

/// `count` blocks of 100 samples with `beyond` beyond, at least as many as independent samples
/// would have.
fn even_blocks(count: usize, beyond: u64) -> Vec<BlockCount> {
    vec![BlockCount { samples: 100, beyond }; count]
}

fn ranks(percent: f64, samples: u64, effective: f64, backing: Backing) -> Ranks {
    let beyond = effective * (1.0 - percent / 100.0);
    Ranks::of(percent, &Support { samples, effective, beyond, dependence: None, backing })
}

#[test]
fn independent_samples_have_the_ranks_of_the_tables() {
    // Conover, table A3: of 20, the 6th and the 15th.
    let median = ranks(50.0, 20, 20.0, Backing::Sound);
    assert_eq!(median, Ranks { low: Some(6), high: Some(15) });
    // p99 of 2,000, about Poisson with mean 20 beyond it: P(X <= 11) = 0.020, P(X > 29) = 0.021.
    // So X_(1971), which has 29 above it, and X_(1989), which has 11.
    let tail = ranks(99.0, 2_000, 2_000.0, Backing::Sound);
    assert_eq!(tail, Ranks { low: Some(1_971), high: Some(1_989) });
}

#[test]
fn dependent_samples_have_the_ranks_of_fewer() {
    // A tenth of them count: those of 2,000, at ten times the distance from the end.
    let found = ranks(99.0, 20_000, 2_000.0, Backing::Sound);
    assert_eq!(found, Ranks { low: Some(19_710), high: Some(19_890) });
}

#[test]
fn with_too_few_there_is_a_lower_end_at_most() {
    // 500 samples, 5 beyond p99: P(X <= 1) = 0.040, P(X > 10) = 0.013, P(X > 9) = 0.031.
    let few = ranks(99.0, 500, 500.0, Backing::TooFew);
    assert_eq!(few, Ranks { low: Some(490), high: None });
    // P(B = 0) of 3 throws is 0.125: not even the smallest is low enough.
    let none = ranks(50.0, 3, 3.0, Backing::TooFew);
    assert_eq!(none, Ranks { low: None, high: None });
    let unknown = ranks(50.0, 1_000, 0.0, Backing::TooFew);
    assert_eq!(unknown, Ranks { low: None, high: None });
}

#[test]
fn backing_follows_the_effective_samples_beyond() {
    let of = |blocks| Support::of(99.0, 100 * blocks as u64, &even_blocks(blocks, 1)).backing;
    assert_eq!(of(20), Backing::Sound);
    assert_eq!(of(19), Backing::Few);
    assert_eq!(of(10), Backing::Few);
    assert_eq!(of(9), Backing::TooFew);
    assert_eq!(of(4), Backing::TooFew, "with 4 blocks dependence cannot be estimated");
}

#[test]
fn grouped_samples_are_refused_where_as_many_single_ones_are_not() {
    // 20 late samples of 2,000: one a block, and all in two of 20 blocks.
    let single = Support::of(99.0, 2_000, &even_blocks(20, 1));
    let mut blocks = even_blocks(20, 0);
    blocks[3].beyond = 10;
    blocks[11].beyond = 10;
    let grouped = Support::of(99.0, 2_000, &blocks);
    assert_eq!(single.backing, Backing::Sound);
    assert_eq!(grouped.backing, Backing::TooFew);
    // Excesses 9, 9 and 18 times -1: squares 180, by 20/19; independent 2,000 * 0.0099 = 19.8.
    // Kurtosis 8.11, so 5.6 degrees of freedom: t between 2.571 (of 5) and 2.447 (of 6).
    let effect = |t: f64| 180.0 * 20.0 / 19.0 / 19.8 * (t / 1.959_964).powi(2);
    let range = 2_000.0 / effect(2.571)..2_000.0 / effect(2.447);
    assert!(range.contains(&grouped.effective), "{grouped:?} {range:?}");
}

/// Independent latencies of 1 to 1,000 us, each equally likely.
fn samples(count: usize) -> Vec<u64> {
    let mut random = SplitMix64::new(7);
    (0..count).map(|_| 1_000 + (random.uniform() * 999_000.0) as u64).collect()
}

fn histogram(samples: &[u64]) -> Histogram<u64> {
    let mut counts = hlog::empty();
    for sample in samples {
        counts.saturating_record(*sample);
    }
    counts
}

#[test]
fn histograms_give_the_same_interval_as_the_samples_in_them() {
    let samples = samples(20_000);
    let max = samples.iter().max().map(|max| *max as i64);
    let percents = [50.0, 99.0, 99.9, 99.99];
    let total = histogram(&samples);
    let mut counter = Exceedances::of_total(&total, max, &percents);
    for block in samples.chunks(200) {
        counter.add(&histogram(block));
    }
    for (binned, percent) in counter.intervals(&total, max).iter().zip(percents) {
        let raw = of_samples(percent, &samples, 200);
        assert_eq!(binned.support.backing, raw.support.backing, "{percent}");
        // A bucket is a thousandth wide.
        let near = |binned: u64, raw: u64| binned.abs_diff(raw) <= raw / 500;
        assert!(near(binned.value_ns, raw.value_ns), "{binned:?} {raw:?}");
        let ends = binned.low_ns.zip(raw.low_ns).into_iter().chain(binned.high_ns.zip(raw.high_ns));
        for (binned, raw) in ends {
            assert!(near(binned, raw), "{percent}: {binned} {raw}");
        }
        assert_eq!(binned.high_ns.is_some(), raw.high_ns.is_some());
    }
}

#[test]
fn an_interval_surrounds_its_percentile_and_ends_at_the_maximum() {
    let samples = samples(11_000);
    let max = samples.iter().max().copied();
    let found = of_samples(99.9, &samples, 110);
    assert_eq!(found.support.samples, 11_000);
    assert!(found.low_ns.unwrap() < found.value_ns);
    assert!(found.high_ns.is_none_or(|high| found.value_ns < high && Some(high) <= max));
    let total = histogram(&samples);
    let mut counter = Exceedances::of_total(&total, max.map(|max| max as i64), &[99.9]);
    samples.chunks(110).for_each(|block| counter.add(&histogram(block)));
    for found in counter.intervals(&total, max.map(|max| max as i64)) {
        assert!(found.high_ns.is_none_or(|high| Some(high) <= max), "not the bucket's end");
    }
}

#[test]
fn samples_that_are_all_alike_have_no_interval() {
    // Nothing lies beyond: how far they depend on each other cannot be seen.
    let found = of_samples(50.0, &[5_000; 1_000], 10);
    assert_eq!((found.value_ns, found.support.backing), (5_000, Backing::TooFew));
    assert_eq!((found.low_ns, found.high_ns), (None, None));
}

#[test]
fn nothing_measured_is_nothing_said() {
    let found = of_samples(99.0, &[], 10);
    assert_eq!((found.low_ns, found.high_ns, found.support.samples), (None, None, 0));
    let total = hlog::empty();
    let empty = Exceedances::of_total(&total, None, &[50.0]).intervals(&total, None);
    assert_eq!((empty[0].low_ns, empty[0].high_ns), (None, None));
}

#[test]
fn a_percentile_in_a_full_bucket_is_judged_by_the_samples_that_reach_it() {
    // Half are 1 us, half 2 us, block by block: p60 is 2 us, and nothing lies above it.
    let mut counter = Exceedances::new(&[(60.0, 2_000)]);
    let (low, high) = (histogram(&[1_000; 10]), histogram(&[2_000; 10]));
    let mut total = hlog::empty();
    for turn in 0..100 {
        let block = if turn % 2 == 0 { &low } else { &high };
        counter.add(block);
        total.add(block).unwrap();
    }
    let found = counter.intervals(&total, Some(2_000));
    // Whole blocks are alike: each says as much as one sample.
    assert!((50.0..=101.0).contains(&found[0].support.effective), "{found:?}");
    assert_eq!(found[0].high_ns, Some(2_000));
}

#[test]
fn what_two_series_have_at_the_same_time_is_one_block() {
    // Of two series alike every late sample has a twin: together they say no more than one alone.
    let one = samples(20_000);
    let (total, max) = (histogram(&one), one.iter().max().map(|max| *max as i64));
    let mut alone = Exceedances::of_total(&total, max, &[99.0]);
    let mut both = alone.clone();
    for block in one.chunks(200) {
        let block = histogram(block);
        alone.add(&block);
        both.add(&block);
        both.add_to_last(&block);
    }
    let mut twice = total.clone();
    twice.add(&total).unwrap();
    let (alone, both) = (alone.intervals(&total, max)[0], both.intervals(&twice, max)[0]);
    assert_eq!(both.support.samples, 2 * alone.support.samples);
    let ratio = both.support.effective / alone.support.effective;
    assert!((0.85..1.15).contains(&ratio), "{alone:?} {both:?}");
}
