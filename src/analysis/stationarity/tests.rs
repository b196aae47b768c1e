//! Runs that stay the same, and runs that do not.

use super::*;
use crate::analysis::random::SplitMix64;

/// Intervals of 0.1 s whose medians and maxima spread about a level that may depend on the time.
fn blocks(seed: u64, count: usize, level: impl Fn(usize) -> (f64, f64)) -> Vec<LoggedInterval> {
    let mut random = SplitMix64::new(seed);
    let block = |number: usize| {
        let (median, max) = level(number);
        LoggedInterval {
            start_s: number as f64 * 0.1,
            length_s: 0.1,
            samples: 100,
            median_ns: (median * (0.98 + 0.04 * random.uniform())) as u64,
            max_ns: (max * (1.0 - 0.3 * random.uniform().ln())) as u64,
        }
    };
    (0..count).map(block).collect()
}

#[test]
fn a_steady_run_has_nothing_to_say() {
    let found = unsteadiness(&blocks(1, 600, |_| (5_000.0, 20_000.0)), 1).unwrap();
    assert!(found.is_steady(), "{found:?}");
}

#[test]
fn a_step_is_found_where_it_is() {
    let level = |number| if number < 400 { (5_000.0, 20_000.0) } else { (6_000.0, 20_000.0) };
    let found = unsteadiness(&blocks(2, 600, level), 1).unwrap();
    let [change] = found.changes.as_slice() else { panic!("{found:?}") };
    assert_eq!((change.aspect, change.kind), (Aspect::Middle, ChangeKind::Step));
    assert!((change.at_s - 40.0).abs() < 1.0, "{change:?}");
    assert!((change.after_ns / change.before_ns - 1.2).abs() < 0.02, "{change:?}");
}

#[test]
fn a_drift_is_no_step() {
    let level = |number| (5_000.0, 20_000.0 * (1.0 + number as f64 / 400.0));
    let found = unsteadiness(&blocks(3, 600, level), 1).unwrap();
    let [change] = found.changes.as_slice() else { panic!("{found:?}") };
    assert_eq!((change.aspect, change.kind), (Aspect::Worst, ChangeKind::Drift));
    assert!(change.after_ns > change.before_ns * 1.5, "{change:?}");
}

#[test]
fn what_comes_and_goes_is_found_too() {
    let level = |number| match number {
        250..350 => (7_000.0, 20_000.0),
        _ => (5_000.0, 20_000.0),
    };
    let found = unsteadiness(&blocks(4, 600, level), 1).unwrap();
    assert!(!found.changes.is_empty(), "{found:?}");
}

#[test]
fn a_change_that_matters_to_nobody_is_not_told() {
    let level = |number| if number < 300 { (5_000.0, 20_000.0) } else { (5_100.0, 20_000.0) };
    let found = unsteadiness(&blocks(5, 600, level), 1).unwrap();
    assert!(found.is_steady(), "{found:?}");
}

#[test]
fn regular_peaks_have_a_period() {
    let level = |number| (5_000.0, if number % 10 == 3 { 90_000.0 } else { 20_000.0 });
    let found = unsteadiness(&blocks(6, 600, level), 1).unwrap();
    let period = found.period.unwrap();
    assert!((period.period_ns / 1e9 - 1.0).abs() < 0.02, "{period:?}");
}

#[test]
fn few_intervals_say_nothing_and_short_ones_do_not_count() {
    assert_eq!(unsteadiness(&blocks(7, FEWEST_BLOCKS - 1, |_| (5_000.0, 20_000.0)), 1), None);
    let mut some = blocks(8, 100, |_| (5_000.0, 20_000.0));
    some.iter_mut().skip(30).for_each(|block| block.samples = 3);
    assert_eq!(filled(&some).len(), 100, "most have three");
    some.iter_mut().skip(50).for_each(|block| block.samples = 100);
    assert_eq!(filled(&some).len(), 80);
}
