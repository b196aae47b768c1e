//! Caveats about messages: ends that stopped, messages that were lost, clocks that disagree.

use serde::Serialize;

use super::values::{EndCount, OsError, list, moment};
use crate::{
    run::caveat::Effect,
    units::{Nanos, count, many, times},
};

/// A caveat about a run of messages. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MessageCaveat {
    /// The remote endpoint stopped during the run.
    FarEnded {
        /// How.
        #[serde(flatten)]
        reason: FarEndReason,
        /// When, ns from the start of the run.
        at_ns: i64,
    },
    /// Messages or their answers did not arrive.
    MessagesLost {
        /// How many, by series.
        series: Vec<LostMessages>,
        /// Of these, how many an end could not send.
        unsent: Vec<EndCount>,
    },
    /// The system refused to send packets.
    SendRefused {
        /// By end.
        ends: Vec<SendRefusal>,
    },
    /// Packets arrived but were not read in time from the receiving thread.
    PacketsUnrecorded {
        /// How many, by end.
        ends: Vec<EndCount>,
    },
    /// Socket buffers hold less than a second of the rate.
    BufferSmall {
        /// Those whose sockets hold less.
        ends: Vec<EndBuffer>,
        /// What a second of the rate needs.
        needed_bytes: u64,
    },
    /// The offset between the two clocks is not known for the whole run.
    ClockUnsteady {
        /// Steps of a clock that were seen.
        steps: u64,
        /// Periods in which the clock offset was not known.
        unknown_periods: u64,
        /// Of how many.
        periods: u64,
    },
    /// A packet takes several frames.
    PacketsFragmented {
        /// Size of a packet with its headers.
        packet_bytes: u64,
        /// What a frame holds.
        mtu_bytes: u64,
    },
    /// A packet that comes while its receiver sends waits for that.
    ReceiverSends {
        /// The ends that send and receive in one thread.
        ends: Vec<String>,
        /// The series in which one packet in a hundred or more came so late that it may have met
        /// that.
        series: Vec<String>,
        /// The latency of a packet that comes when its receiver sends, ns.
        meets_ns: i64,
        /// It meets the next one after this much more time, ns.
        period_ns: i64,
    },
}

/// Why a remote endpoint stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum FarEndReason {
    /// It ended.
    Gone {
        /// Which, and how: `far (process): signal 9`.
        how: String,
    },
    /// This number of answers in a row did not arrive.
    Silent {
        /// How many.
        answers: u64,
        /// How long each was waited for, ns.
        timeout_ns: i64,
    },
    /// It was killed, because the local endpoint could not stop waiting otherwise.
    Killed {
        /// How long an answer was waited for, ns.
        timeout_ns: i64,
    },
    /// Its answer is longer than was agreed.
    AnswerTooLong,
    /// Its answer is shorter than was agreed.
    AnswerTooShort,
    /// The transport failed.
    TransportFailed {
        /// The error of the system.
        error: OsError,
    },
}

impl FarEndReason {
    fn text(&self) -> String {
        match self {
            Self::Gone { how } => how.clone(),
            Self::Silent { answers, timeout_ns } => {
                format!("{answers} answers in a row did not arrive within {}", Nanos(*timeout_ns))
            }
            Self::Killed { timeout_ns } => {
                let timeout = Nanos(*timeout_ns);
                format!("no answer arrived within {timeout}; the remote endpoint was killed")
            }
            Self::AnswerTooLong => "far: its answer is longer than --size".into(),
            Self::AnswerTooShort => "far: its answer is shorter than --size".into(),
            Self::TransportFailed { error } => format!("far: {error}"),
        }
    }
}

/// Messages of a series that did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostMessages {
    /// The series.
    pub series: String,
    /// How many did not arrive.
    pub lost: u64,
    /// Of how many.
    pub sent: u64,
}

/// Packets that the system refused to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SendRefusal {
    /// `near`, `far`, `far2`.
    pub end: String,
    /// How many.
    pub packets: u64,
    /// The error of the last of them; `None` if the end does not report it.
    pub error: Option<OsError>,
}

/// What the socket of an end holds unread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndBuffer {
    /// `near`, `far`, `far2`.
    pub end: String,
    /// How much.
    pub bytes: u64,
}

/// "rtt: 3 of 10 (of these, near could not send 2)"
fn lost(series: &[LostMessages], unsent: &[EndCount]) -> String {
    let lost = list(series, ", ", |LostMessages { series, lost, sent }| {
        format!("{series}: {} of {}", count(*lost), count(*sent))
    });
    let unsent = list(unsent, "; ", |of: &EndCount| {
        format!("{} could not send {}", of.end, count(of.count))
    });
    if unsent.is_empty() { lost } else { format!("{lost} (of these, {unsent})") }
}

/// "near: Network is unreachable, 7 packets"
fn refusal(SendRefusal { end, packets, error }: &SendRefusal) -> String {
    let why = error.as_ref().map(|error| format!("{error}, ")).unwrap_or_default();
    format!("{end}: {why}{}", many(*packets, "packet"))
}

/// "in 2 of 9 periods it was too uncertain"
fn unsteady(steps: u64, unknown: u64, periods: u64) -> String {
    match steps {
        0 => format!("in {unknown} of {periods} periods it was too uncertain"),
        _ => format!(
            "a clock was set (seen {}), and in {unknown} of {periods} periods it was not known",
            times(steps)
        ),
    }
}

fn in_frames(packet_bytes: u64, mtu_bytes: u64) -> String {
    format!(
        "Each packet is split into several frames: packets of {packet_bytes} bytes, frames of at \
         most {mtu_bytes}."
    )
}

/// "of back are therefore rare shortly after 50.0 us, and again every 100 us"
fn sends_too(ends: &[String], series: &[String], meets_ns: i64, period_ns: i64) -> String {
    format!(
        "Sending and receiving share a thread ({}): a packet that comes while its receiver sends \
         waits for that. Latencies of {} are therefore rare shortly after {}, and again every {}, \
         and more frequent right behind.",
        ends.join(", "),
        series.join(" and "),
        Nanos(meets_ns),
        Nanos(period_ns)
    )
}

impl MessageCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::FarEnded { reason, at_ns } => (
                "far_ended",
                Weakens,
                format!(
                    "The remote endpoint stopped during the run: {}, at {}.",
                    reason.text(),
                    moment(*at_ns)
                ),
                "Find out why it stopped, and repeat the run; the data up to then is complete.",
            ),
            Self::MessagesLost { series, unsent } => (
                "messages_lost",
                Informs,
                format!("Messages did not arrive: {}. They have no latency.", lost(series, unsent)),
                "Read losses with latencies; a larger buffer or a lower --rate reduces losses.",
            ),
            Self::SendRefused { ends } => (
                "send_refused",
                Weakens,
                format!("The system refused to send packets: {}.", list(ends, "; ", refusal)),
                "Check that the interface is up and has a route: ip addr, ip route get.",
            ),
            Self::PacketsUnrecorded { ends } => (
                "packets_unrecorded",
                Weakens,
                format!(
                    "Packets arrived but were not recorded in time: {}.",
                    list(ends, "; ", |of| format!("{}: {}", of.end, count(of.count)))
                ),
                "Leave a CPU outside --cpus free, or measure at a lower --rate.",
            ),
            Self::BufferSmall { ends, needed_bytes } => (
                "buffer_small",
                Informs,
                format!(
                    "Sockets hold less than a second of the rate unread: {} instead of \
                     {needed_bytes} bytes.",
                    list(ends, ", ", |EndBuffer { end, bytes }| format!("{end}: {bytes} bytes"))
                ),
                "Measure as root, or raise net.core.rmem_max; until then stalls show as losses.",
            ),
            Self::ClockUnsteady { steps, unknown_periods, periods } => (
                "clock_unsteady",
                Weakens,
                format!(
                    "The offset between the two clocks is not known for the whole run: {}.",
                    unsteady(*steps, *unknown_periods, *periods)
                ),
                "Do not let anything set the clocks during the run; round trips are not affected.",
            ),
            Self::PacketsFragmented { packet_bytes, mtu_bytes } => (
                "packets_fragmented",
                Informs,
                in_frames(*packet_bytes, *mtu_bytes),
                "Use a smaller --size, unless fragments are what you measure.",
            ),
            Self::ReceiverSends { ends, series, meets_ns, period_ns } => (
                "receiver_sends",
                Informs,
                sends_too(ends, series, *meets_ns, *period_ns),
                "For exact shapes measure each way alone: without --both-ways and --to.",
            ),
        }
    }
}
