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
}

impl MessageDoubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::FarEnded { what } => (
                "far_ended",
                Weakens,
                format!("The far end went away while the run went on: {what}."),
                "Look why it ended, and measure again; what was measured until then is whole.",
            ),
            Self::MessagesLost { what } => (
                "messages_lost",
                Informs,
                format!("Messages did not arrive: {what}. No latency stands for them."),
                "Judge losses beside latencies; a larger buffer or a lower --rate loses fewer.",
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
            ("messages_lost", Effect::Informs, MessageDoubt::MessagesLost { what }),
        ];
        for (code, effect, doubt) in doubts {
            let (named, known, text, remedy) = doubt.words();
            assert_eq!((named, known), (code, effect));
            assert!(text.contains('x') && !remedy.is_empty());
        }
    }
}
