//! Doubts about what tracing tells. None of them touches the latencies themselves.

use serde::Serialize;

use super::values::list;
use crate::run::{caveat::Effect, trace::MissingTracepoint};

/// A doubt about the causes and stages of a run. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TraceCaveat {
    /// Nobody asked for tracing, and it could not be had.
    Untraced {
        /// Why, and the remedy; as `trace.why_not`.
        why_not: String,
    },
    /// Some causes cannot be told on this kernel.
    TracedInPart {
        /// Tracepoints that are not there, and what cannot be told without them.
        missing: Vec<MissingTracepoint>,
        /// Why there are stages and no causes, and the remedy; absent where there are causes.
        no_causes: Option<String>,
    },
    /// The recorder lost events.
    EventsLost {
        /// How many.
        lost: u64,
    },
    /// Wake-ups have no stages.
    WakeupsUnmatched {
        /// How many.
        unmatched: u64,
        /// Of how many.
        wakeups: u64,
    },
    /// The kernel hides the names of its functions.
    SymbolsHidden,
}

/// "no who sent an interrupt (ipi_send_cpu): the kernel has none"
fn in_part(missing: &[MissingTracepoint], no_causes: Option<&str>) -> String {
    let missing = list(missing, "; ", |MissingTracepoint { tracepoint, switches_off, why }| {
        format!("no {switches_off} ({tracepoint}): {why}")
    });
    let no_causes = no_causes.map(|why| format!("stages alone, no causes: {why}"));
    let parts = (!missing.is_empty()).then_some(missing).into_iter().chain(no_causes);
    parts.collect::<Vec<_>>().join("; ")
}

impl TraceCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::Informs;
        match self {
            Self::Untraced { why_not } => (
                "untraced",
                Informs,
                format!(
                    "Wake-ups were not traced, and nothing tells why they were late: {why_not}."
                ),
                "Do what stands there; or say --trace off if that is what you mean.",
            ),
            Self::TracedInPart { missing, no_causes } => (
                "traced_in_part",
                Informs,
                format!(
                    "This kernel does not tell all causes: {}.",
                    in_part(missing, no_causes.as_deref())
                ),
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
            Self::WakeupsUnmatched { unmatched, wakeups } => (
                "wakeups_unmatched",
                Informs,
                format!(
                    "{unmatched} of {wakeups} wake-ups matched no record of the kernel's side: \
                     stages leave them out. Latencies are whole."
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
