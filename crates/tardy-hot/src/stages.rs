//! What the BPF side writes about the last wake-up of one measured thread, and its stages.
//!
//! The record lies in memory shared with the kernel. It is written on the CPU that switches the
//! thread in, before the thread runs, so that the thread itself reads it without a lock.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::os::fd::BorrowedFd;

use crate::ring::Sample;

/// The last wake-up of one thread, as the BPF side saw it; `struct tardy_thread` of
/// `src/kernel/recorder.h`. Times are `CLOCK_MONOTONIC` ns.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ThreadRecord {
    /// Programmed expiry of the timer whose handler woke it.
    pub expires_ns: AtomicU64,
    /// Entry of the timer interrupt.
    pub entry_ns: AtomicU64,
    /// The timer's callback began; may be `entry_ns` where that was not in a softirq.
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
    // the alignment of a word; this number of them lies in `words`, which is borrowed as long.
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

impl ThreadRecord {
    /// The stages of a wake-up at `t_ns + latency_ns` from the expiry `t_ns`, both ns; `None` if
    /// the record is not of an expiry between `t_ns` and `within_ns` after it. To be called by the
    /// thread of the record, after it has woken up.
    ///
    /// With e = max(entry, t): irq = e - t; softirq = callback - e where the callback ran in a
    /// softirq; handler = the rest up to the wake-up; dispatch = switch - waking; user = the rest
    /// of the latency. Whatever the record says, they sum to the latency.
    #[inline(always)]
    #[must_use]
    pub fn stages(&self, t_ns: i64, latency_ns: i64, within_ns: u64) -> Option<Stages> {
        let read = |field: &AtomicU64| field.load(Ordering::Relaxed) as i64;
        let after_ns = self.expires_ns.load(Ordering::Relaxed).wrapping_sub(t_ns as u64);
        if after_ns > within_ns {
            return None;
        }
        let entered_ns = read(&self.entry_ns).max(t_ns);
        let waking_ns = read(&self.waking_ns);
        let in_softirq = self.in_softirq.load(Ordering::Relaxed) != 0;
        let called_ns = if in_softirq { read(&self.callback_ns) } else { entered_ns };
        // Still pending: it was woken before it had gone to sleep, and was never switched in.
        let is_pending = self.pending.load(Ordering::Relaxed) != 0;
        let switch_ns = if is_pending { waking_ns } else { read(&self.switch_ns) };
        Some(Stages {
            irq_ns: entered_ns - t_ns,
            softirq_ns: called_ns - entered_ns,
            handler_ns: waking_ns - called_ns,
            dispatch_ns: switch_ns - waking_ns,
            user_ns: t_ns + latency_ns - switch_ns,
        })
    }

    /// All that is known of a late wake-up; `stages` are those of [`ThreadRecord::stages`].
    #[must_use]
    pub fn late(&self, sample: Sample, stages: Option<Stages>) -> Late {
        let matched = stages.is_some();
        let cpu = |number: &AtomicU32| if matched { number.load(Ordering::Relaxed) } else { 0 };
        Late {
            t_ns: sample.t_ns,
            latency_ns: sample.latency_ns,
            expires_ns: stages.map_or(0, |_| self.expires_ns.load(Ordering::Relaxed) as i64),
            stages: stages.unwrap_or_default(),
            matched,
            cpus: (cpu(&self.cpu), cpu(&self.switch_cpu)),
            stopped_ns: self.stopped_ns(),
        }
    }

    /// When the thread was stopped and continued for the last time; 0 for never.
    #[must_use]
    pub fn stopped_ns(&self) -> (u64, u64) {
        let read = |field: &AtomicU64| field.load(Ordering::Relaxed);
        (read(&self.stopped_from_ns), read(&self.stopped_until_ns))
    }
}

/// Where the records of measured threads lie, and what keeps them there.
pub trait Records: core::fmt::Debug + Send + Sync {
    /// The record of the `n`-th measured thread; `None` if there are not so many.
    fn record(&self, n: usize) -> Option<&ThreadRecord>;

    /// Where another process finds it: memory that it can map, and the words of 8 bytes in it that
    /// lie before the record. `None` if the memory cannot be shared.
    fn place(&self, _n: usize) -> Option<(BorrowedFd<'_>, usize)> {
        None
    }

    /// Whether the record has no stages, as they are found later: the thread then hands over every
    /// sample.
    fn are_found_later(&self) -> bool {
        false
    }
}

/// A wake-up that was late: for the analysis of its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Late {
    /// The programmed expiry.
    pub t_ns: i64,
    /// Lateness.
    pub latency_ns: i64,
    /// The expiry that the kernel had for the timer: later than `t_ns` where the thread programmed
    /// a relative one too late; 0 where the kernel's record did not match.
    pub expires_ns: i64,
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
