//! Doubts about what tracing tells. None of them touches the latencies themselves.

use crate::run::caveat::Effect;

/// A doubt about the causes and stages of a run. One variant a code, as in [`super::Doubt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceDoubt {
    /// Nobody asked for tracing, and it could not be had.
    Untraced {
        /// Why, and the remedy.
        why: String,
    },
    /// Some causes cannot be told on this kernel.
    TracedInPart {
        /// Tracepoints and what they switch off.
        what: String,
    },
    /// The recorder lost events.
    EventsLost {
        /// How many.
        lost: u64,
    },
    /// Wake-ups have no stages.
    WakeupsUnmatched {
        /// How many of how many.
        what: String,
    },
    /// The kernel hides the names of its functions.
    SymbolsHidden,
}

impl TraceDoubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::Informs;
        match self {
            Self::Untraced { why } => (
                "untraced",
                Informs,
                format!("Wake-ups were not traced, and nothing tells why they were late: {why}."),
                "Do what stands there; or say --trace off if that is what you mean.",
            ),
            Self::TracedInPart { what } => (
                "traced_in_part",
                Informs,
                format!("This kernel does not tell all causes: {what}."),
                "Read their time under \"unexplained\" or under the cause around it; a newer \
                 kernel has these tracepoints.",
            ),
            Self::EventsLost { lost } => (
                "events_lost",
                Informs,
                format!(
                    "The recorder lost {lost} events: some late wake-ups have more unexplained \
                     time than they ought to. Latencies are whole."
                ),
                "Use --stacks off, or a longer --interval.",
            ),
            Self::WakeupsUnmatched { what } => (
                "wakeups_unmatched",
                Informs,
                format!(
                    "{what} wake-ups matched no record of the kernel's side: stages leave them \
                     out. Latencies are whole."
                ),
                "Use a longer --interval, or --wake nanosleep. In a ping-pong an end had not gone \
                 to sleep yet when its message came; it happens.",
            ),
            Self::SymbolsHidden => (
                "symbols_hidden",
                Informs,
                "The kernel hides its functions' addresses: stacks have no names.".into(),
                "Run as root with `sysctl -w kernel.kptr_restrict=0`, or 1 with CAP_SYSLOG.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_about_tracing_inform_and_leave_the_latencies_alone() {
        let text = String::from("x");
        let doubts = [
            ("untraced", TraceDoubt::Untraced { why: text.clone() }),
            ("traced_in_part", TraceDoubt::TracedInPart { what: text.clone() }),
            ("events_lost", TraceDoubt::EventsLost { lost: 7 }),
            ("wakeups_unmatched", TraceDoubt::WakeupsUnmatched { what: text }),
            ("symbols_hidden", TraceDoubt::SymbolsHidden),
        ];
        for (code, doubt) in doubts {
            let (named, effect, _, remedy) = doubt.words();
            assert_eq!((named, effect), (code, Effect::Informs));
            assert!(!remedy.is_empty());
        }
    }
}
