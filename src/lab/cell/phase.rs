//! Start phases: how long a guest waits before it measures.
//!
//! One counted run is one sample of the relative phases of timer, tick and load. Another
//! start phase is another sample, and the range over several shows how much the phase matters.

use std::time::Duration;

/// Start phases are spread over this time: several ticks of any kernel.
pub const SPAN: Duration = Duration::from_millis(10);

/// From one seed to the next, ns. Found by search: its multiples lie evenly on a circle of 10, 4 or
/// 1 ms and of 500, 250, 200, 100 or 50 us; of 3, 5, 10 or 20 seeds no gap is more than 2.1 times
/// as wide as if all were the same.
const STEP_NS: u64 = 7_361_771;

/// How long the guest of this seed waits: 0 for seed 0, else up to [`SPAN`], to the nanosecond.
#[must_use]
pub const fn wait(seed: u32) -> Duration {
    // Far from 64 bits: 32 of the seed and 23 of the step.
    Duration::from_nanos(seed as u64 * STEP_NS % SPAN.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_0_does_not_wait_and_no_seed_waits_longer_than_the_span() {
        assert_eq!(wait(0), Duration::ZERO);
        assert!((0..10_000).chain([u32::MAX]).all(|seed| wait(seed) < SPAN));
    }

    #[test]
    fn few_seeds_are_spread_over_the_span_over_a_tick_and_over_an_interval() {
        let gap = |circle: u64, seeds: u32| {
            let place = |seed| u64::try_from(wait(seed).as_nanos()).unwrap() % circle;
            let mut places: Vec<u64> = (1..=seeds).map(place).collect();
            places.sort_unstable();
            places.push(places[0] + circle);
            places.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
        };
        for circle in [10_000_000, 4_000_000, 1_000_000, 500_000, 250_000, 200_000, 100_000, 50_000]
        {
            for seeds in [3, 5, 10, 20] {
                let widest = gap(circle, seeds) * u64::from(seeds) * 10;
                assert!(widest <= circle * 21, "{seeds} on {circle} ns: {widest}");
            }
        }
    }
}
