//! What a probe knows at its end beside its series: of messages, and of threads of others. It
//! evaluates nothing: the session derives caveats from it.

use tardy_hot::receive::Seen;

use crate::run::{
    AttachRecord, EndCount, FarEndReason, FigureRecord, SendRefusal, ServerLossReason,
};

/// What is known of the messages of a run, or of its cycles; empty where all went well.
#[derive(Debug, Clone, Default)]
pub struct MessageEvidence {
    /// How the remote endpoint went away, if it did.
    pub far_loss: Option<FarLoss>,
    /// Messages that an end could not send.
    pub unsent: Vec<EndCount>,
    /// Packets that the system refused to send.
    pub refused: Vec<SendRefusal>,
    /// Packets that came too fast to be recorded.
    pub unrecorded: Vec<EndCount>,
    /// What a socket must hold for a second of the rate; absent without a rate.
    pub needed_bytes: Option<u64>,
    /// Size of a packet with its headers, and what a frame on its way holds; `None` if the
    /// transport cuts messages as it likes.
    pub frame_bytes: Option<(u64, u64)>,
    /// How well the clocks of both machines could be compared; `None` if both are one.
    pub clock: Option<ClockEvidence>,
    /// Of received packets.
    pub receive: Option<ReceiveEvidence>,
    /// Where ends send and receive in one thread.
    pub one_thread: Option<OneThread>,
    /// Of the probe `audio`: how its server went away, if it did.
    pub server_loss: Option<ServerLoss>,
    /// Of the probe `audio`: how often the grid of its cycles was laid anew.
    pub grids_anew: u64,
}

/// How a JACK server went away in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLoss {
    /// How.
    pub reason: ServerLossReason,
    /// When, ns from the start of the run.
    pub at_ns: i64,
}

/// Ends that cannot take a packet while they send their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneThread {
    /// `near`, `far`.
    pub ends: Vec<String>,
    /// The series of what they receive.
    pub series: Vec<String>,
    /// How late a packet is that comes at the moment when its receiver sends, ns; or whole periods
    /// later.
    pub meets_ns: i64,
    /// Time between two packets that an end sends, ns.
    pub period_ns: i64,
}

/// How a remote endpoint went away in the middle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarLoss {
    /// How.
    pub reason: FarEndReason,
    /// When, ns from the start of the run.
    pub at_ns: i64,
}

/// How well two clocks could be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockEvidence {
    /// Steps of either that were seen.
    pub steps: u64,
    /// Periods in which it was not known how they compare.
    pub unknown_periods: u64,
    /// Of how many.
    pub periods: u64,
}

/// What is known of received packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReceiveEvidence {
    /// What the reader counted.
    pub seen: Seen,
    /// The largest step of the clock of stamps, ns; 0 for none.
    pub step_ns: i64,
    /// Whether the device could be polled; `None` if that was not tried.
    pub could_poll: Option<bool>,
}

/// What is known when the last thread has been read.
#[derive(Debug)]
pub struct FinishedAttach {
    /// What the record says.
    pub record: AttachRecord,
    /// What became of each wake-up.
    pub figures: Vec<FigureRecord>,
    /// When counting ended, `CLOCK_MONOTONIC` ns.
    pub ended_ns: i64,
}
