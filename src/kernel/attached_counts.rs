//! What the programs count of an attached thread beside its times.

use super::header;

pub(super) const WAITS: usize = header::TARDY_ATTACH_WAITS as usize;
pub(super) const BEGINS: usize = header::TARDY_ATTACH_BEGINS as usize;

/// What is counted of a thread beside its times. All of it only grows, as long as its period stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachedCounts {
    /// Wake-ups by timers, interrupts, calls from other CPUs, and tasks.
    pub woken: [u64; 4],
    /// How often it lost its CPU while it wanted it.
    pub preempted: u64,
    /// How often it was switched in with no wake-up that was seen.
    pub unmatched: u64,
    /// Wake-ups that had the CPU before the hard expiry of their timer.
    pub in_slack: u64,
    /// Hard less soft expiry of its timers, summed, ns.
    pub slack_ns: u64,
    /// Cycles that took longer than the deadline: those that its own timer began, and those of
    /// wake-ups by others.
    pub over: [OverCounts; BEGINS],
    /// Wake-ups by its own timers from sleeps for a time within a cycle: they begin none.
    pub asides: u64,
}

/// What is counted of cycles that took longer than the deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OverCounts {
    /// How many.
    pub cycles: u64,
    /// Their parts, summed, ns: late at the beginning, on a CPU, ready but not running, asleep in
    /// between, and what was not seen.
    pub parts_ns: [u64; 5],
    /// Asleep in between, ns, by what for: a futex, a mutex with priority inheritance, a device or
    /// a page, and what the kernel does not say.
    pub waits_ns: [u64; WAITS],
    /// Of those cycles the ones whose sleeps for a futex are told from others.
    pub told: u64,
    /// Those with page faults.
    pub faulted: u64,
    /// Page faults without and with a read of the page.
    pub faults: [u64; 2],
}

impl OverCounts {
    fn each(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        fn all<const N: usize>(
            a: [u64; N],
            b: [u64; N],
            of: &impl Fn(u64, u64) -> u64,
        ) -> [u64; N] {
            std::array::from_fn(|at| of(a[at], b[at]))
        }
        Self {
            cycles: of(self.cycles, other.cycles),
            parts_ns: all(self.parts_ns, other.parts_ns, &of),
            waits_ns: all(self.waits_ns, other.waits_ns, &of),
            told: of(self.told, other.told),
            faulted: of(self.faulted, other.faulted),
            faults: all(self.faults, other.faults, &of),
        }
    }
}

impl AttachedCounts {
    fn each(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let woken = [0, 1, 2, 3].map(|by: usize| of(self.woken[by], other.woken[by]));
        Self {
            woken,
            preempted: of(self.preempted, other.preempted),
            unmatched: of(self.unmatched, other.unmatched),
            in_slack: of(self.in_slack, other.in_slack),
            slack_ns: of(self.slack_ns, other.slack_ns),
            over: [0, 1].map(|begin: usize| self.over[begin].each(&other.over[begin], &of)),
            asides: of(self.asides, other.asides),
        }
    }

    /// What has come since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.each(before, u64::saturating_sub)
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_add)
    }
}
