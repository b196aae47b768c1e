//! What a step usually takes: the median of its series, and how much more than that is not late.

/// A thread's own way takes no longer than twice its median and this.
const MORE_THAN_USUAL_NS: i64 = 3_000;

/// And no median is taken for more than this.
const MOST_USUAL_NS: i64 = 20_000;

/// The median of each step of a thread's wake-ups, ns: until they are known, those of an idle
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsualStages {
    /// Programmed expiry to the entry of the timer interrupt.
    pub irq_ns: i64,
    /// Runnable to switched in.
    pub dispatch_ns: i64,
    /// Switched in to the clock read in user space.
    pub user_ns: i64,
}

impl Default for UsualStages {
    fn default() -> Self {
        Self { irq_ns: 3_000, dispatch_ns: 3_000, user_ns: 3_000 }
    }
}

/// The median of each step of one way, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypicalLeg {
    /// To the receiver's wake-up.
    pub send_ns: i64,
    /// To the switch to it.
    pub dispatch_ns: i64,
    /// To its clock read.
    pub receive_ns: i64,
}

impl Default for TypicalLeg {
    fn default() -> Self {
        Self { send_ns: 5_000, dispatch_ns: 3_000, receive_ns: 3_000 }
    }
}

/// What a step with this median may take without being late, ns.
#[must_use]
pub(super) fn at_most(median_ns: i64) -> i64 {
    2 * median_ns.min(MOST_USUAL_NS) + MORE_THAN_USUAL_NS
}
