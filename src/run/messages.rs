//! What `run.json` says of a probe that exchanges messages: both ends, what came of each flow, and
//! how their clocks compare. Latencies are in `series`, as those of every probe.

use serde::{Deserialize, Serialize};

/// The name of the series of whole round trips.
pub const ROUND_TRIP: &str = "rtt";

/// The result of messages, beside how long they took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageRecord {
    /// `tcp`, `zmq-ipc`, ...
    pub transport: String,
    /// Bytes of one message; 0 where others send what they like.
    pub size: u64,
    /// Who sent and received: `near` (this tardy), then each remote endpoint.
    pub ends: Vec<EndRecord>,
    /// One entry a series of whole messages, in their order.
    pub flows: Vec<FlowRecord>,
    /// How the remote endpoint's clock compares with this machine's; absent if both are one.
    pub clock: Option<ClockRecord>,
}

/// One end of the way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndRecord {
    /// `near`, `far`, `far2`.
    pub name: String,
    /// `thread`, `process`, `machine` (an echo on another one, or in another namespace) or
    /// `foreign` (another program).
    pub place: String,
    /// Its address, where it has one.
    pub address: Option<String>,
    /// The CPU it runs on, where this tardy arranged that.
    pub cpu: Option<u32>,
    /// `fifo 90`, where this tardy arranged that.
    pub policy: Option<String>,
    /// How it waits for messages: `sleep`, `spin`, ...; absent if it cannot be chosen.
    pub wait: Option<String>,
    /// Bytes that its socket holds unread; absent if it has no socket.
    pub receive_buffer_bytes: Option<u64>,
    /// Bytes that its socket holds unsent.
    pub send_buffer_bytes: Option<u64>,
    /// Its version of tardy, where it is an echo.
    pub version: Option<String>,
}

/// The result of the messages of one series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlowRecord {
    /// The series.
    pub series: String,
    /// Messages of the measured time; of a stream those that were due, sent or not.
    pub sent: u64,
    /// Of those, how many arrived, each counted once; in a ping-pong, how many were answered.
    pub received: u64,
    /// Of those sent, how many never came.
    pub lost: u64,
    /// Arrived later than `late_over_ns` after their time; absent if it was not requested.
    pub late: Option<u64>,
    /// What counts as late, ns.
    pub late_over_ns: Option<i64>,
    /// Arrived more than once.
    pub duplicated: u64,
    /// Arrived after a later one.
    pub reordered: u64,
    /// Arrived, but were no messages of this run: of strangers, or damaged.
    pub foreign: u64,
    /// Messages per second that were asked for; absent if each waits for the one before.
    pub wanted_per_s: Option<f64>,
    /// Messages per second that were sent.
    pub achieved_per_s: Option<f64>,
}

/// How the remote endpoint's clock compares with this machine's; of received packets, how that of
/// the NIC which stamped them does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClockRecord {
    /// The clock of the remote endpoint minus that of the local endpoint, at the middle of the run,
    /// ns.
    pub offset_ns: i64,
    /// The true offset lies within this distance of it, ns: half the shortest round trip, and what
    /// the clocks drifted.
    pub uncertainty_ns: i64,
    /// By how much the offset grows, parts per billion.
    pub drift_ppb: f64,
    /// Exchanges that were compared.
    pub exchanges: u64,
    /// The shortest round trip among them, ns.
    pub shortest_round_trip_ns: i64,
}
