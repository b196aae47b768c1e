//! Caveats about tracing. None of them affects the latencies themselves.

use serde::Serialize;

use super::values::list;
use crate::{
    run::{
        caveat::Effect,
        trace::{LostEvents, MissingTracepoint},
    },
    units::{Nanos, count, many},
};

/// A caveat about the causes and stages of a run. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TraceCaveat {
    /// Tracing was not requested and is not available.
    Untraced {
        /// Why, and the remedy; as `trace.why_not`.
        why_not: String,
    },
    /// This kernel cannot report some causes.
    TracedInPart {
        /// Missing tracepoints, and what cannot be reported without them.
        missing: Vec<MissingTracepoint>,
        /// Why there are stages and no causes, and the remedy; `None` if there are causes.
        no_causes: Option<String>,
    },
    /// The kernel's own tracer did it, not BPF.
    TracedByTracefs {
        /// Why not by BPF, and the remedy; `None` if it was asked for so.
        why_not_bpf: Option<String>,
        /// Whether causes were looked for, too.
        causes: bool,
    },
    /// The kernel's tracer lost events.
    TraceEventsLost {
        /// On which CPUs, and how many.
        cpus: Vec<LostEvents>,
    },
    /// The recorder lost events.
    EventsLost {
        /// How many.
        lost: u64,
    },
    /// Peaks were left out for want of room.
    PeaksLeftOut {
        /// How many.
        left_out: u64,
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
    /// Every CPU was sampled.
    Profiled {
        /// Samples per second.
        hz: u32,
        /// How many samples were taken, the warm-up included.
        samples: u64,
        /// What one took of its CPU, on average, ns; the interrupt around it is not in it.
        sample_ns: u64,
        /// Samples that were lost.
        lost: u64,
    },
}

/// "who sent an interrupt (ipi_send_cpu): the kernel has none"
fn in_part(missing: &[MissingTracepoint], no_causes: Option<&str>) -> String {
    let missing = list(missing, "; ", |MissingTracepoint { tracepoint, switches_off, why }| {
        format!("{switches_off} ({tracepoint}): {why}")
    });
    let no_causes = no_causes.map(|why| format!("stages only, no causes: {why}"));
    let parts = (!missing.is_empty()).then_some(missing).into_iter().chain(no_causes);
    parts.collect::<Vec<_>>().join("; ")
}

/// What the kernel's own tracer does not see, too.
fn of_own_tracer(
    why_not_bpf: Option<&str>,
    causes: bool,
) -> (&'static str, Effect, String, &'static str) {
    let why = why_not_bpf.map(|why| format!(", as BPF is not available: {why}"));
    let unseen = match causes {
        true => "It shows no stacks, locks, page faults, long functions or stolen time",
        false => "It was asked for stages alone, and names no causes",
    };
    let why = why.unwrap_or_default();
    let text = format!("Wake-ups were traced by the kernel's own tracer{why}. {unseen}.");
    let remedy = "Use a kernel and rights with which BPF can trace: it shows more, for less.";
    ("traced_by_tracefs", Effect::Informs, text, remedy)
}

fn lost_on(cpus: &[LostEvents]) -> (&'static str, Effect, String, &'static str) {
    let each = list(cpus, ", ", |LostEvents { cpu, events }| {
        format!("at least {} on CPU {cpu}", count(*events))
    });
    let text = format!(
        "The kernel's trace lost events: {each}. Wake-ups there have no stages, or show too much \
         unexplained time. Latencies are complete."
    );
    ("trace_events_lost", Effect::Informs, text, "Use a longer --interval, or measure fewer CPUs.")
}

fn no_room(left_out: u64) -> (&'static str, Effect, String, &'static str) {
    let text = format!(
        "{} that should have been kept whole found no more room on the disk, of the size that \
         --peak-room gives. A new worst one was still kept, and all are in the sums of causes.",
        many(left_out, "late sample")
    );
    let remedy = "Use a higher --peak-over, or a larger --peak-room.";
    ("peaks_left_out", Effect::Informs, text, remedy)
}

impl TraceCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::Informs;
        match self {
            Self::Untraced { why_not } => (
                "untraced",
                Informs,
                format!("Wake-ups were not traced; causes of late ones are unknown: {why_not}."),
                "Follow the advice in the message, or use --trace off to run without tracing.",
            ),
            Self::TracedInPart { missing, no_causes } => (
                "traced_in_part",
                Informs,
                format!(
                    "Not all causes are reported here: {}.",
                    in_part(missing, no_causes.as_deref())
                ),
                "Read their time under \"unexplained\" or under the cause around it; a newer \
                 kernel has these tracepoints.",
            ),
            Self::TracedByTracefs { why_not_bpf, causes } => {
                of_own_tracer(why_not_bpf.as_deref(), *causes)
            }
            Self::TraceEventsLost { cpus } => lost_on(cpus),
            Self::EventsLost { lost } => (
                "events_lost",
                Informs,
                format!(
                    "The recorder lost {}: some late wake-ups show too much unexplained time. \
                     Latencies are complete.",
                    many(*lost, "event")
                ),
                "Use --stacks off, or a longer --interval.",
            ),
            Self::PeaksLeftOut { left_out } => no_room(*left_out),
            Self::WakeupsUnmatched { unmatched, wakeups } => (
                "wakeups_unmatched",
                Informs,
                format!(
                    "{} of {} could not be matched to trace events, so they have no stage \
                     breakdown. Latencies are complete.",
                    count(*unmatched),
                    many(*wakeups, "wake-up")
                ),
                "Use a longer --interval, or --wake nanosleep. In a ping-pong this happens \
                 where a message arrives before the end sleeps, in a simulated task where a frame \
                 ends when the next begins.",
            ),
            Self::SymbolsHidden => (
                "symbols_hidden",
                Informs,
                "The kernel hides its functions' addresses: stacks have no names.".into(),
                "Run as root with `sysctl -w kernel.kptr_restrict=0`, or 1 with CAP_SYSLOG.",
            ),
            Self::Profiled { hz, samples, sample_ns, lost } => (
                "profiled",
                Informs,
                format!(
                    "Every CPU was interrupted {hz} times a second for the profile, {} in all: \
                     each took {} and its interrupt, which latencies include.{}",
                    many(*samples, "sample"),
                    Nanos(i64::try_from(*sample_ns).unwrap_or(i64::MAX)),
                    match lost {
                        0 => String::new(),
                        lost => format!(" {} more were lost.", count(*lost)),
                    }
                ),
                "Take latencies from a run without --profile, or use a lower rate: --profile=19.",
            ),
        }
    }
}
