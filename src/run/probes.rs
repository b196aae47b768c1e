//! The table of probes: all that others must know of each. The command line, reports and the lab
//! read it; `probes` has what makes them.

use serde::{Deserialize, Serialize};

use super::Document;

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeInfo {
    /// On the command line and in `run.json`.
    pub name: &'static str,
    /// What it does and asks, in one line of help.
    pub help: &'static str,
    /// What one of its samples is.
    pub sample: SampleName,
    /// Where their latencies begin.
    pub latency_from: LatencyFrom,
    /// When it takes the next one.
    pub rhythm: Rhythm,
    /// How many samples it takes where no length is given; absent: 60 s.
    pub default_samples: Option<u64>,
    /// Whether `--trace` has anything to trace in it.
    pub traceable: Traceable,
    /// Whether a `tardy echo` on another machine can be its far end.
    pub takes_echo: bool,
}

/// Where a latency begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyFrom {
    /// At the time that was programmed or scheduled.
    Schedule,
    /// When the message is sent.
    Sending,
    /// When the kernel stamps the packet.
    Stamp,
}

/// When a probe takes its next sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rhythm {
    /// Every `--interval`, by threads on each of `--cpus`.
    Interval,
    /// When a message comes, between two ends on a CPU each.
    Messages,
}

/// What of a probe can be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traceable {
    /// Stages, and the cause of each late sample.
    All,
    /// The same, but only where it is asked for.
    OnRequest,
    /// Nothing.
    No,
}

/// All probes.
pub const PROBES: &[ProbeInfo] = &[
    ProbeInfo {
        name: "timer",
        help: "Sleep until a programmed time; how late is the wake-up?",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        rhythm: Rhythm::Interval,
        default_samples: None,
        traceable: Traceable::All,
        takes_echo: false,
    },
    ProbeInfo {
        name: "pingpong",
        help: "Send a message and wait for its answer; how long is the round trip?",
        sample: SampleName::RoundTrip,
        latency_from: LatencyFrom::Sending,
        rhythm: Rhythm::Messages,
        default_samples: Some(1_000_000),
        traceable: Traceable::OnRequest,
        takes_echo: true,
    },
    ProbeInfo {
        name: "receive",
        help: "Read packets: from the kernel's receive time stamp to the thread that reads it",
        sample: SampleName::Packet,
        latency_from: LatencyFrom::Stamp,
        rhythm: Rhythm::Messages,
        default_samples: None,
        traceable: Traceable::OnRequest,
        takes_echo: false,
    },
    ProbeInfo {
        name: "stream",
        help: "Send packets on a schedule: from the scheduled send time to the arrival",
        sample: SampleName::Packet,
        latency_from: LatencyFrom::Schedule,
        rhythm: Rhythm::Messages,
        default_samples: None,
        traceable: Traceable::OnRequest,
        takes_echo: true,
    },
    ProbeInfo {
        name: "fake",
        help: "Synthetic samples with known values: for tests and demos",
        sample: SampleName::WakeUp,
        latency_from: LatencyFrom::Schedule,
        rhythm: Rhythm::Interval,
        default_samples: None,
        traceable: Traceable::No,
        takes_echo: false,
    },
];

/// The one that is measured where none is named.
pub const DEFAULT_PROBE: &ProbeInfo = &PROBES[0];

impl ProbeInfo {
    /// The probe called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PROBES.iter().find(|probe| probe.name == name)
    }
}

/// What one sample is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SampleName {
    /// Of a timer.
    #[default]
    WakeUp,
    /// Of a ping-pong: there and back.
    RoundTrip,
    /// Of a stream or of what is received: one way.
    Packet,
    /// Of several runs that do not measure the same.
    Sample,
}

impl SampleName {
    /// What the samples of `document` are; those of a probe that is not in the table are wake-ups.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        ProbeInfo::find(document.probe.name()).map_or(Self::WakeUp, |probe| probe.sample)
    }

    /// What the samples of all of them are.
    #[must_use]
    pub fn of_all<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        let mut names = documents.into_iter().map(Self::of);
        let first = names.next().unwrap_or(Self::Sample);
        if names.all(|name| name == first) { first } else { Self::Sample }
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

    /// What one is that is late: `later than` a threshold, or `longer than` it.
    #[must_use]
    pub const fn late(self) -> &'static str {
        match self {
            Self::RoundTrip => "longer",
            Self::WakeUp | Self::Packet | Self::Sample => "later",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_found_again() {
        for probe in PROBES {
            assert_eq!(ProbeInfo::find(probe.name), Some(probe));
            assert!(probe.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
            assert!(!probe.help.is_empty() && !probe.help.ends_with('.'));
        }
        assert_eq!(ProbeInfo::find("nosuch"), None);
    }
}
