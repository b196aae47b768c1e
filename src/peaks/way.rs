//! The ways of a message, as the measuring thread and the kernel's record have them.

use tardy_hot::trips::{Backlog, LateLeg};

use super::usual::at_most;

/// What a way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WayKind {
    /// From the sender's clock read to the receiver's.
    #[default]
    Message,
    /// From the time at which the sender had to send until it did: `receiver` is the sender.
    Pacing,
}

/// One way of a message. Threads are numbers of those that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MessageWay {
    /// What it is called: `there`.
    pub name: &'static str,
    /// What it is.
    pub kind: WayKind,
    /// How its beginning is called.
    pub begins: &'static str,
    /// When; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// When the receiver had the message.
    pub to_ns: i64,
    /// `None` if that is not measured.
    pub sender: Option<usize>,
    /// Who received it.
    pub receiver: usize,
    /// What the kernel's record has of the receiver's wake-up; one before this way is the last that
    /// it had.
    pub seen: LateLeg,
    /// Of pacing: since when the sender was behind, with this packet or others before it; else 0.
    pub since_ns: i64,
    /// The packets that the receiver saw to first.
    pub backlog: Backlog,
    /// The message before it waited for the same, and was later.
    pub follows_later: bool,
}

/// How a thread was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Of a message: number of the sender's thread.
    pub sender: Option<u32>,
    /// On another CPU than the one on which it was queued.
    pub is_remote: bool,
    /// When that CPU was interrupted for it, or left its idle state.
    pub interrupt_ns: Option<i64>,
    /// Such an interrupt was seen to be sent.
    pub was_sent: bool,
}

/// What a thread may have taken for earlier packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Earlier {
    /// Not after this.
    pub until_ns: i64,
    /// The longest time of it, ns: each takes no longer than usual.
    pub most_ns: u64,
}

impl Earlier {
    /// Of these packets, each of which usually takes `usual_ns`.
    #[must_use]
    pub(super) fn of(backlog: Backlog, usual_ns: i64) -> Self {
        let most_ns = backlog.packets.saturating_mul(at_most(usual_ns).unsigned_abs());
        Self { until_ns: backlog.until_ns, most_ns }
    }
}
