//! What one sample of a run is called, and its series: a wake-up, a round trip, a packet.

use crate::run::messages::ROUND_TRIP;
pub use crate::run::probes::SampleName;

/// A series as tables call it: `round trip` for `rtt`, others by their names.
#[must_use]
pub fn series(name: &str) -> &str {
    if name == ROUND_TRIP { "round trip" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn runs_that_measure_different_things_have_samples_in_common() {
        let [timer, pingpong, stream] =
            ["timer", "pingpong", "stream"].map(|probe| fixture::of(probe, &[]));
        assert_eq!(SampleName::of_all([&pingpong, &pingpong]), SampleName::RoundTrip);
        assert_eq!(SampleName::of_all([&timer, &stream]).many(), "samples");
        assert_eq!(SampleName::of(&stream).one(), "packet");
    }
}
