//! What one sample of a run is called, and its series: a wake-up, a round trip, a packet.

use crate::run::{Document, messages::ROUND_TRIP};

/// What one sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    /// Of a timer.
    WakeUp,
    /// Of a ping-pong: there and back.
    RoundTrip,
    /// Of a stream or of what is received: one way.
    Packet,
    /// Of several runs that do not measure the same.
    Sample,
}

impl Noun {
    /// What the samples of `document` are.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        match document.probe.name() {
            "pingpong" => Self::RoundTrip,
            "stream" | "receive" => Self::Packet,
            _ => Self::WakeUp,
        }
    }

    /// What the samples of all of them are.
    #[must_use]
    pub fn of_all<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        let mut nouns = documents.into_iter().map(Self::of);
        let first = nouns.next().unwrap_or(Self::Sample);
        if nouns.all(|noun| noun == first) { first } else { Self::Sample }
    }

    /// `wake-up`.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::WakeUp => "wake-up",
            Self::RoundTrip => "round trip",
            Self::Packet => "packet",
            Self::Sample => "sample",
        }
    }

    /// `wake-ups`.
    #[must_use]
    pub const fn many(self) -> &'static str {
        match self {
            Self::WakeUp => "wake-ups",
            Self::RoundTrip => "round trips",
            Self::Packet => "packets",
            Self::Sample => "samples",
        }
    }

    /// What axes are called that have its length.
    #[must_use]
    pub const fn measure(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::WakeUp | Self::Packet | Self::Sample => "latency",
        }
    }
}

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
        assert_eq!(Noun::of_all([&pingpong, &pingpong]), Noun::RoundTrip);
        assert_eq!(Noun::of_all([&timer, &stream]).many(), "samples");
        assert_eq!(Noun::of(&stream).one(), "packet");
    }
}
