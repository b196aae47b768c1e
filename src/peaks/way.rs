//! The ways of a message, as the measuring thread and the kernel's record have them.

use tardy_hot::trips::LateWay;

/// One way of a message. Threads are numbers of those that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageWay {
    /// What it is called: `there`.
    pub name: &'static str,
    /// How its beginning is called.
    pub begins: &'static str,
    /// When; `CLOCK_MONOTONIC` ns.
    pub from_ns: i64,
    /// When the receiver had the message.
    pub to_ns: i64,
    /// Absent where that is not measured.
    pub sender: Option<usize>,
    /// Who received it.
    pub receiver: usize,
    /// What the kernel's record has of the receiver's wake-up.
    pub seen: LateWay,
}

/// How the receiver was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Number of the sender's thread.
    pub sender: Option<u32>,
    /// On another CPU than the one it then ran on.
    pub is_remote: bool,
    /// When that CPU was interrupted for it, or left its idle state.
    pub interrupt_ns: Option<i64>,
}
