//! Doubts about received packets: their stamps, the clock of those, and who sent none.

use serde::Serialize;

use crate::{
    run::caveat::Effect,
    units::{Nanos, many},
};

/// A caveat of a run of received packets. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ReceiveCaveat {
    /// The clock of stamps was stepped.
    ClockStepped {
        /// The largest step, ns; negative for one back.
        step_ns: i64,
        /// Packets that were left out for it.
        left_out: u64,
    },
    /// Packets without a stamp.
    PacketsUnstamped {
        /// How many.
        unstamped: u64,
        /// Of how many.
        packets: u64,
    },
    /// Packets of others among those of the sender.
    PacketsForeign {
        /// How many.
        packets: u64,
        /// What was listened to.
        address: String,
    },
    /// There was no device to poll.
    BusyPollVain,
    /// Nothing came.
    NothingReceived {
        /// What was listened to.
        address: String,
    },
}

impl ReceiveCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::ClockStepped { step_ns, left_out } => (
                "clock_stepped",
                Weakens,
                format!(
                    "The clock that stamps packets was stepped during the run: {} {}; \
                     {} left out.",
                    Nanos(step_ns.saturating_abs()),
                    if *step_ns > 0 { "forward" } else { "back" },
                    many(*left_out, "packet")
                ),
                "Do not set the time during a run; slewing it (chrony, ntpd) does no harm.",
            ),
            Self::PacketsUnstamped { unstamped, packets } => (
                "packets_unstamped",
                Informs,
                format!(
                    "The kernel did not stamp some packets: {unstamped} of {packets}. They have no \
                     latency."
                ),
                "Give a longer --warmup: the kernel begins to stamp a moment after it is asked.",
            ),
            Self::PacketsForeign { packets, address } => (
                "packets_foreign",
                Informs,
                format!("Packets of other senders are not measured: {packets} at {address}."),
                "Use another port, or --sender none to measure every packet.",
            ),
            Self::BusyPollVain => (
                "busy_poll_vain",
                Weakens,
                "Busy polling did nothing: the packets came from a device that cannot be polled, \
                 as loopback, so that the thread slept as with --wait block."
                    .into(),
                "Measure at a NIC whose driver polls, or use --wait block or --wait spin.",
            ),
            Self::NothingReceived { address } => (
                "nothing_received",
                Invalidates,
                format!("No packet arrived at {address} during the run."),
                "Check whether packets arrive (`tcpdump`) and what a firewall drops; with \
                 --sender none another program must send.",
            ),
        }
    }
}
