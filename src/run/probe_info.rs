//! What is known of a probe beside its parameters; `probes` has the table of them.

use serde::{Deserialize, Serialize};

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
    /// Whose threads are measured, and what they wait for.
    pub threads: MeasuredThreads,
    /// How many samples it takes where no length is given; absent: 60 s.
    pub default_samples: Option<u64>,
    /// Whether `--trace` has anything to trace in it.
    pub traceable: Traceable,
    /// Whether a `tardy echo` on another machine can be its remote endpoint.
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
    /// At the wake-up, or where a timer caused that at its expiry.
    WakeUp,
    /// At a clock read, of which the next came only at its end.
    ClockRead,
}

/// What the measured threads wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredThreads {
    /// A time that comes, or a device that interrupts.
    WaitForTime,
    /// Messages, between two ends on a CPU each.
    WaitForMessages,
    /// An audio server that begins a cycle.
    WaitForServer,
    /// Nothing: they never sleep.
    NeverWait,
    /// They do what is timed, and have no latencies.
    Work,
    /// They are another program's, and wait for whatever that waits for.
    Foreign,
}

/// What of a probe can be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traceable {
    /// Stages, and the cause of each late sample.
    All,
    /// The same, but only where it is asked for.
    OnRequest,
    /// The cause of each late sample, where it is asked for: it has no stages.
    Causes,
    /// Nothing.
    No,
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
    /// Of a thread that never sleeps: a time in which it did not have its CPU.
    Gap,
    /// Of a simulated task: the start of its work, or where it never sleeps the end.
    Frame,
    /// For a mutex.
    Wait,
    /// Of several runs that do not measure the same.
    Sample,
    /// Of an attached thread: from the expiry of its timer to the end of its work. No probe has it
    /// alone, and no record.
    #[serde(skip)]
    Response,
}

impl SampleName {
    /// `wake-up`.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::WakeUp => "wake-up",
            Self::RoundTrip => "round trip",
            Self::Packet => "packet",
            Self::Gap => "gap",
            Self::Frame => "frame",
            Self::Wait => "wait",
            Self::Sample => "sample",
            Self::Response => "response",
        }
    }

    /// `wake-ups`.
    #[must_use]
    pub const fn many(self) -> &'static str {
        match self {
            Self::WakeUp => "wake-ups",
            Self::RoundTrip => "round trips",
            Self::Packet => "packets",
            Self::Gap => "gaps",
            Self::Frame => "frames",
            Self::Wait => "waits",
            Self::Sample => "samples",
            Self::Response => "responses",
        }
    }

    /// What one is that is late: `later than` a threshold, or `longer than` it.
    #[must_use]
    pub const fn late(self) -> &'static str {
        match self {
            Self::RoundTrip | Self::Gap | Self::Wait | Self::Response => "longer",
            Self::WakeUp | Self::Packet | Self::Frame | Self::Sample => "later",
        }
    }

    /// What axes are called that have its length.
    #[must_use]
    pub const fn measure(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::Gap => "gap",
            Self::Wait => "wait",
            Self::Response => "response time",
            Self::WakeUp | Self::Packet | Self::Frame | Self::Sample => "latency",
        }
    }
}

impl ProbeInfo {
    /// Whether it has latencies, beside figures or alone.
    #[must_use]
    pub fn has_latencies(&self) -> bool {
        self.threads != MeasuredThreads::Work
    }

    /// Whether the measured threads are another program's.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.threads == MeasuredThreads::Foreign
    }

    /// Whether they never sleep.
    #[must_use]
    pub fn never_sleeps(&self) -> bool {
        self.threads == MeasuredThreads::NeverWait
    }

    /// Whether they exchange messages.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.threads == MeasuredThreads::WaitForMessages
    }
}
