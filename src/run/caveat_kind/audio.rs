//! Doubts about the cycles of an audio server: that it went away, and when they were due.

use serde::Serialize;

use super::values::moment;
use crate::{run::caveat::Effect, units::times};

/// A caveat of a run of cycles. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AudioCaveat {
    /// The server went away, or was no longer the same.
    ServerLost {
        /// How.
        reason: ServerLossReason,
        /// When, ns from the start of the run.
        at_ns: i64,
    },
    /// After an xrun its cycles began anew at another phase.
    GridLaidAnew {
        /// How often.
        count: u64,
    },
}

/// How a server went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerLossReason {
    /// It ended, or put its client out.
    Ended,
    /// It had no cycle for 5 s.
    Silent,
    /// Its cycles have another number of frames.
    PeriodChanged,
    /// Its rate is another one.
    RateChanged,
    /// Its cycles follow each other without waiting for time.
    Freewheels,
}

/// The code of [`AudioCaveat::ServerLost`].
pub const SERVER_LOST: &str = "server_lost";

impl ServerLossReason {
    const fn text(self) -> &'static str {
        match self {
            Self::Ended => "it ended, or put tardy's client out",
            Self::Silent => "it had no cycle for 5 s",
            Self::PeriodChanged => "it changed the frames of a cycle",
            Self::RateChanged => "it changed its sample rate",
            Self::Freewheels => "it began to freewheel",
        }
    }
}

impl AudioCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        match self {
            Self::ServerLost { reason, at_ns } => (
                SERVER_LOST,
                Effect::Weakens,
                format!(
                    "The JACK server went away during the run: {}, at {}.",
                    reason.text(),
                    moment(*at_ns)
                ),
                "See what the server prints, and repeat the run; the data up to then is complete.",
            ),
            Self::GridLaidAnew { count } => (
                "grid_laid_anew",
                Effect::Informs,
                format!(
                    "After an xrun the server began its cycles at other times, {}: up to 16 \
                     cycles after it may be compared with the times before.",
                    times(*count)
                ),
                "Read the largest latencies with the xruns; a longer period of the server \
                 (jackd -p) has fewer.",
            ),
        }
    }
}
