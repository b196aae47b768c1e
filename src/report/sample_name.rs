//! What one sample of a run is called, and its series: a wake-up, a round trip, a packet.

use std::borrow::Cow;

pub use crate::run::probes::SampleName;
use crate::run::{messages::ROUND_TRIP, series_name::shown_name};

/// Series that are not called by their names, with what they are called.
pub const SERIES: [(&str, &str); 1] = [(ROUND_TRIP, "round trip")];

/// A series as tables call it: `round trip` for `rtt`, others by their names, as their owners wrote
/// them.
#[must_use]
pub fn series(name: &str) -> Cow<'_, str> {
    let known = SERIES.iter().find(|(own, _)| *own == name);
    known.map_or_else(|| shown_name(name), |(_, words)| Cow::Borrowed(*words))
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

    #[test]
    fn where_responses_lead_they_are_what_is_drawn() {
        let mut judged = fixture::judged();
        assert_eq!(SampleName::drawn(&judged), SampleName::WakeUp);
        judged.lead_by_responses();
        assert_eq!(SampleName::drawn(&judged).many(), "samples", "log has wake-ups alone");
        judged.series.iter_mut().filter(|own| own.name == "log").for_each(|own| own.count = 0);
        assert_eq!(SampleName::drawn(&judged).many(), "responses");
        assert_eq!(SampleName::of(&judged).many(), "wake-ups", "causes are of these");
    }
}
