//! What the kernel's side writes about the last wake-up of one measured thread, and its stages.
//!
//! The record lies in memory shared with the kernel. It is written on the CPU that switches the
//! thread in, before the thread runs, so that the thread itself reads it without a lock.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The last wake-up of one thread, as the kernel's side saw it; `struct tardy_thread` of
/// `src/kernel/recorder.h`. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ThreadRecord {
    /// Programmed expiry of the timer whose handler woke it.
    pub expires_ns: AtomicU64,
    /// Entry of the timer interrupt.
    pub entry_ns: AtomicU64,
    /// The timer's callback began.
    pub callback_ns: AtomicU64,
    /// It was made runnable.
    pub waking_ns: AtomicU64,
    /// It was switched in.
    pub switch_ns: AtomicU64,
    /// Where it was woken.
    pub cpu: AtomicU32,
    /// Where it was switched in.
    pub switch_cpu: AtomicU32,
    /// 1 where the callback ran in a softirq.
    pub in_softirq: AtomicU32,
    /// Its number.
    pub tid: AtomicU32,
    /// The last time it was stopped began then.
    pub stopped_from_ns: AtomicU64,
    /// And ended then.
    pub stopped_until_ns: AtomicU64,
    /// 1 between wake-up and switch.
    pub pending: AtomicU64,
    reserved: [AtomicU64; 6],
}

const _: () = assert!(size_of::<ThreadRecord>() == 128);

/// Sees memory that is shared with the kernel as records; what is left over at the end is not
/// seen.
#[must_use]
pub fn records(words: &[AtomicU64]) -> &[ThreadRecord] {
    let each = size_of::<ThreadRecord>() / size_of::<AtomicU64>();
    // SAFETY: a record consists of atomics without gaps, of which every value is one, and asks for
    // the alignment of a word; so many of them lie in `words`, which is borrowed as long.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), words.len() / each) }
}

/// The parts of one latency; they sum to it. Times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages {
    /// Programmed expiry to the entry of the timer interrupt; 0 where that began before.
    pub irq_ns: i64,
    /// Interrupt to the timer's callback, where that runs in a softirq; else 0.
    pub softirq_ns: i64,
    /// To the moment the thread was made runnable.
    pub handler_ns: i64,
    /// Runnable to switched in.
    pub dispatch_ns: i64,
    /// Switched in to the clock read in user space.
    pub user_ns: i64,
}

/// A wake-up that was late: for whoever finds out why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// The programmed expiry.
    pub t_ns: i64,
    /// Lateness.
    pub latency_ns: i64,
    /// Its parts; all 0 where the kernel's record did not match.
    pub stages: Stages,
    /// Whether they did.
    pub matched: bool,
    /// The CPU on which the thread was woken, and that on which it was switched in; only where
    /// matched.
    pub cpus: (u32, u32),
    /// When the thread was stopped and continued for the last time; 0 for never.
    pub stopped_ns: (u64, u64),
}
