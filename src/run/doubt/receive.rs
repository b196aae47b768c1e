//! Doubts about received packets: their stamps, the clock of those, and who sent none.

use crate::run::caveat::Effect;

/// A doubt about a run of received packets. One variant a code, as in [`super::Doubt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiveDoubt {
    /// The clock of stamps was stepped.
    ClockStepped {
        /// By how much, and how many packets were left out.
        what: String,
    },
    /// Packets without a stamp.
    PacketsUnstamped {
        /// How many of how many.
        what: String,
    },
    /// Packets of others among those of the sender.
    PacketsForeign {
        /// How many, and where.
        what: String,
    },
    /// There was no device to poll.
    BusyPollVain,
    /// Nothing came.
    NothingReceived {
        /// Where.
        place: String,
    },
}

impl ReceiveDoubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::ClockStepped { what } => (
                "clock_stepped",
                Weakens,
                format!("The clock by which packets are stamped was stepped meanwhile: {what}."),
                "Let nobody set the time while measuring; slewing it (chrony, ntpd) does no harm.",
            ),
            Self::PacketsUnstamped { what } => (
                "packets_unstamped",
                Informs,
                format!(
                    "The kernel stamped some packets not at all: {what}. No latency stands \
                         for them."
                ),
                "Give a longer --warmup: the kernel begins to stamp a moment after it is asked.",
            ),
            Self::PacketsForeign { what } => (
                "packets_foreign",
                Informs,
                format!("Others sent packets too, which are not measured: {what}."),
                "Use another port, or --sender none to measure whatever comes.",
            ),
            Self::BusyPollVain => (
                "busy_poll_vain",
                Weakens,
                "Busy polling did nothing: the packets came from a device that cannot be polled, \
                 as loopback, so that the thread slept as with --wait block."
                    .into(),
                "Measure at a NIC whose driver polls, or use --wait block or --wait spin.",
            ),
            Self::NothingReceived { place } => (
                "nothing_received",
                Invalidates,
                format!("No packet came to {place} while the run measured."),
                "Look whether packets get here at all (`tcpdump`), and what a firewall drops; with \
                 --sender none somebody must send.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_judged_weakens_and_what_is_missing_is_told() {
        let what = || String::from("x");
        let doubts = [
            ("clock_stepped", Effect::Weakens, ReceiveDoubt::ClockStepped { what: what() }),
            ("packets_unstamped", Effect::Informs, ReceiveDoubt::PacketsUnstamped { what: what() }),
            ("packets_foreign", Effect::Informs, ReceiveDoubt::PacketsForeign { what: what() }),
            ("busy_poll_vain", Effect::Weakens, ReceiveDoubt::BusyPollVain),
            (
                "nothing_received",
                Effect::Invalidates,
                ReceiveDoubt::NothingReceived { place: what() },
            ),
        ];
        for (code, effect, doubt) in doubts {
            let (named, known, text, remedy) = doubt.words();
            assert_eq!((named, known), (code, effect));
            assert!(!text.is_empty() && !remedy.is_empty());
        }
    }
}
