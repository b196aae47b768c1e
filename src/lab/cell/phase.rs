//! Phase offsets: how long a guest waits before it measures, and padding of its command line.
//!
//! One counted run is one throw of the relative phases of timer, tick and load, and of where the
//! kernel's memory happens to lie. Phase offsets are drawn at random, so that several of them are a
//! sample of all there could be; a fixed lattice would be none. The seed is stored, so that the
//! same phases can be drawn again, and a phase does not depend on how many others are drawn.

use std::time::Duration;

use crate::analysis::random::SplitMix64;

/// Waits are drawn from this time: several ticks of any kernel.
pub const SPAN: Duration = Duration::from_millis(10);

/// Padding has fewer bytes than this: those of two lines of a cache.
pub const MOST_PADDING: u16 = 128;

/// What draws the padding of a repetition (A/A), in place of that of the kernel itself.
const OF_CONTROL: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Where a guest begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartPhase {
    /// How long it waits before it measures, ns.
    pub wait_ns: u64,
    /// Bytes more on the kernel's command line.
    pub padding: u16,
}

impl StartPhase {
    /// The phase offset of this number. A repetition waits as long, and has other padding.
    #[must_use]
    pub fn draw(seed: u64, number: u32, is_control: bool) -> Self {
        let of = |stream: u64| {
            let mixed = SplitMix64::new(seed ^ stream).bits();
            SplitMix64::new(mixed ^ u64::from(number))
        };
        let mut random = of(0);
        let wait_ns = (random.uniform() * SPAN.as_nanos() as f64) as u64;
        let own = if is_control { of(OF_CONTROL).uniform() } else { random.uniform() };
        Self { wait_ns, padding: (own * f64::from(MOST_PADDING)) as u16 }
    }

    /// What it adds to the kernel's command line. A dot makes it a parameter of a module, which no
    /// kernel hands to its first process.
    #[must_use]
    pub fn word(self) -> String {
        format!(" tardy.padding={}", "x".repeat(self.padding.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, count: u32) -> Vec<StartPhase> {
        (0..count).map(|number| StartPhase::draw(seed, number, false)).collect()
    }

    #[test]
    fn a_seed_draws_the_same_phases_in_every_version() {
        let found = drawn(1, 2);
        assert_eq!(found, drawn(1, 9)[..2]);
        assert_ne!(found, drawn(2, 2));
        let first = StartPhase { wait_ns: 3_681_895, padding: 120 };
        assert_eq!(found[0], first, "cells that were measured before are found again");
    }

    #[test]
    fn phases_fill_the_span_and_the_padding_evenly() {
        let found = drawn(7, 4_000);
        let span = u64::try_from(SPAN.as_nanos()).unwrap();
        let tenth = |at: u64| {
            let range = at * span / 10..(at + 1) * span / 10;
            found.iter().filter(|start| range.contains(&start.wait_ns)).count()
        };
        // Four standard deviations about 400; the seed is fixed.
        assert!((0..10).all(|at| (324..476).contains(&tenth(at))));
        for padding in 0..MOST_PADDING {
            assert!(found.iter().any(|start| start.padding == padding), "{padding}");
        }
        assert!(found.iter().all(|start| start.padding < MOST_PADDING));
    }

    #[test]
    fn a_repetition_waits_as_long_with_other_padding() {
        let pairs = (0..100)
            .map(|number| (StartPhase::draw(1, number, false), StartPhase::draw(1, number, true)));
        let others = pairs.filter(|(own, again)| {
            assert_eq!(own.wait_ns, again.wait_ns);
            own.padding != again.padding
        });
        assert!(others.count() > 90);
        let padded = StartPhase { padding: 3, ..StartPhase::default() };
        assert_eq!(padded.word(), " tardy.padding=xxx");
    }
}
