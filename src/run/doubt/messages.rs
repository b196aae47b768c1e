//! Doubts about messages: ends that went away, messages that did not come, clocks that disagree.

use crate::run::caveat::Effect;

/// A doubt about a run of messages. One variant a code, as in [`super::Doubt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDoubt {
    /// The far end went away in the middle.
    FarEnded {
        /// Which, when, and how.
        what: String,
    },
    /// Messages or their answers did not come.
    MessagesLost {
        /// How many of how many, by series.
        what: String,
    },
    /// The system refused to send packets.
    SendRefused {
        /// Which end, why, how many.
        what: String,
    },
    /// Packets arrived that nobody took in time from the thread that received them.
    PacketsUnrecorded {
        /// How many, by end.
        what: String,
    },
    /// Socket buffers hold less than a second of the rate.
    BufferSmall {
        /// Which, and how much.
        what: String,
    },
    /// How the clocks of both machines compare is not known for all of the run.
    ClockUnsteady {
        /// How often, and why.
        what: String,
    },
    /// A packet takes several frames.
    PacketsFragmented {
        /// How large both are.
        what: String,
    },
}

impl MessageDoubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::FarEnded { what } => (
                "far_ended",
                Weakens,
                format!("The far end broke off while the run went on: {what}."),
                "Look why it ended, and measure again; what was measured until then is whole.",
            ),
            Self::MessagesLost { what } => (
                "messages_lost",
                Informs,
                format!("Messages did not arrive: {what}. No latency stands for them."),
                "Judge losses beside latencies; a larger buffer or a lower --rate loses fewer.",
            ),
            Self::SendRefused { what } => (
                "send_refused",
                Weakens,
                format!("The system refused to send packets: {what}."),
                "Look whether the interface is up and has a way there: ip addr, ip route get.",
            ),
            Self::PacketsUnrecorded { what } => (
                "packets_unrecorded",
                Weakens,
                format!("Packets arrived and were not recorded, for lack of time: {what}."),
                "Leave a CPU free beside those of --cpus, or measure at a lower --rate.",
            ),
            Self::BufferSmall { what } => (
                "buffer_small",
                Informs,
                format!("Sockets hold less than a second of the rate unread: {what}."),
                "Measure as root, or raise net.core.rmem_max; until then stalls show as losses.",
            ),
            Self::ClockUnsteady { what } => (
                "clock_unsteady",
                Weakens,
                format!("How the clocks of both machines compare is not known throughout: {what}."),
                "Let nothing set the clocks meanwhile; round trips are right either way.",
            ),
            Self::PacketsFragmented { what } => (
                "packets_fragmented",
                Informs,
                format!("Each packet goes in several frames: {what}."),
                "Use a smaller --size, unless fragments are what you measure.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_and_what_broke_off_weakens() {
        let what = String::from("x");
        let doubts = [
            ("far_ended", Effect::Weakens, MessageDoubt::FarEnded { what: what.clone() }),
            ("messages_lost", Effect::Informs, MessageDoubt::MessagesLost { what: what.clone() }),
            ("send_refused", Effect::Weakens, MessageDoubt::SendRefused { what: what.clone() }),
            (
                "packets_unrecorded",
                Effect::Weakens,
                MessageDoubt::PacketsUnrecorded { what: what.clone() },
            ),
            ("buffer_small", Effect::Informs, MessageDoubt::BufferSmall { what: what.clone() }),
            ("clock_unsteady", Effect::Weakens, MessageDoubt::ClockUnsteady { what: what.clone() }),
            ("packets_fragmented", Effect::Informs, MessageDoubt::PacketsFragmented { what }),
        ];
        for (code, effect, doubt) in doubts {
            let (named, known, text, remedy) = doubt.words();
            assert_eq!((named, known), (code, effect));
            assert!(text.contains('x') && !remedy.is_empty());
        }
    }
}
