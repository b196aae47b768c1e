//! What a histogram cannot hold exactly, as plain integers that one thread writes.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Running totals of one series. Written by the measuring thread, readable at any time; the fields
/// are separate words, so a reading taken meanwhile may be one sample apart between fields.
#[derive(Debug)]
#[repr(align(64))]
pub struct Tally {
    count: AtomicU64,
    early: AtomicU64,
    above: AtomicU64,
    missed: AtomicU64,
    sum_ns: AtomicI64,
    min_ns: AtomicI64,
    max_ns: AtomicI64,
}

/// A reading of a [`Tally`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// All wake-ups, early ones and those above the histogram included.
    pub count: u64,
    /// Wake-ups before their programmed expiry (negative latency).
    pub early: u64,
    /// Latencies above [`crate::histogram::HIGHEST_NS`].
    pub above: u64,
    /// Periods that passed without their own wake-up.
    pub missed: u64,
    /// Sum of all latencies, early ones negative, in ns.
    pub sum_ns: i64,
    /// Smallest latency in ns, `i64::MAX` while `count` is 0.
    pub min_ns: i64,
    /// Largest latency in ns, `i64::MIN` while `count` is 0.
    pub max_ns: i64,
}

impl Totals {
    /// The totals of no sample at all.
    pub const NONE: Self = Self {
        count: 0,
        early: 0,
        above: 0,
        missed: 0,
        sum_ns: 0,
        min_ns: i64::MAX,
        max_ns: i64::MIN,
    };
}

/// Adds to an atomic that only this thread writes.
macro_rules! bump {
    ($field:expr, $by:expr) => {
        $field.store($field.load(Ordering::Relaxed).wrapping_add($by), Ordering::Relaxed)
    };
}

impl Tally {
    /// A tally of nothing.
    #[must_use]
    pub fn new() -> Self {
        let fresh = Self {
            count: AtomicU64::new(0),
            early: AtomicU64::new(0),
            above: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            sum_ns: AtomicI64::new(0),
            min_ns: AtomicI64::new(0),
            max_ns: AtomicI64::new(0),
        };
        fresh.clear();
        fresh
    }

    /// Back to nothing. Only for the measuring thread, between loops.
    pub fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.early.store(0, Ordering::Relaxed);
        self.above.store(0, Ordering::Relaxed);
        self.missed.store(0, Ordering::Relaxed);
        self.sum_ns.store(0, Ordering::Relaxed);
        self.min_ns.store(i64::MAX, Ordering::Relaxed);
        self.max_ns.store(i64::MIN, Ordering::Relaxed);
    }

    /// Counts one latency.
    #[inline(always)]
    pub fn add(&self, latency_ns: i64) {
        bump!(self.count, 1);
        bump!(self.sum_ns, latency_ns);
        if latency_ns < self.min_ns.load(Ordering::Relaxed) {
            self.min_ns.store(latency_ns, Ordering::Relaxed);
        }
        if latency_ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(latency_ns, Ordering::Relaxed);
        }
    }

    /// Counts one early wake-up, on top of [`Tally::add`].
    #[inline(always)]
    pub fn add_early(&self) {
        bump!(self.early, 1);
    }

    /// Counts one latency beyond the histogram, on top of [`Tally::add`].
    #[inline(always)]
    pub fn add_above(&self) {
        bump!(self.above, 1);
    }

    /// Counts periods that passed without a wake-up.
    #[inline(always)]
    pub fn add_missed(&self, periods: u64) {
        bump!(self.missed, periods);
    }

    /// The totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            count: self.count.load(Ordering::Relaxed),
            early: self.early.load(Ordering::Relaxed),
            above: self.above.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
            min_ns: self.min_ns.load(Ordering::Relaxed),
            max_ns: self.max_ns.load(Ordering::Relaxed),
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
