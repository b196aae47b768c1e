//! Fixed log-linear counts: 1 ns to 1 hour, three significant digits, nothing lost.
//!
//! The bucket layout is that of HdrHistogram with `lowest_discernible = 1` and three digits, so
//! that a count carries over to any HdrHistogram without rounding. One thread records; any other
//! thread may read at any time: counts only grow, so the difference of two readings is what came
//! between them. That needs no hand-over between writer and reader, and the writer never waits.

use crate::sync::{AtomicU64, Ordering};

/// The largest value that is counted: one hour, in ns.
pub const HIGHEST_NS: i64 = 3_600_000_000_000;

/// log2 of the number of buckets in the first, linear part: 2048 separate 1000 values in each
/// decade, which is what three significant digits ask for.
const SUB_BUCKET_BITS: u32 = 11;
const SUB_BUCKETS: usize = 1 << SUB_BUCKET_BITS;
const HALF: usize = SUB_BUCKETS / 2;

/// Number of counters: enough doublings of 2048 to pass [`HIGHEST_NS`], half a row each.
pub const LEN: usize = {
    let mut rows = 1;
    let mut reach = SUB_BUCKETS as i64;
    while reach <= HIGHEST_NS {
        reach <<= 1;
        rows += 1;
    }
    (rows + 1) * HALF
};

const _: () = assert!(index_of(HIGHEST_NS) < LEN);

/// The counter that `value_ns` belongs to; `value_ns` must lie in `0..=HIGHEST_NS`.
#[inline(always)]
#[must_use]
pub const fn index_of(value_ns: i64) -> usize {
    let value = value_ns as u64;
    let row = (64 - SUB_BUCKET_BITS) - (value | (SUB_BUCKETS as u64 - 1)).leading_zeros();
    ((row as usize + 1) << (SUB_BUCKET_BITS - 1)) + (value >> row) as usize - HALF
}

/// The lowest value that counter `index` stands for, in ns.
#[must_use]
pub const fn lowest_of(index: usize) -> i64 {
    let row = index >> (SUB_BUCKET_BITS - 1);
    if row == 0 {
        return index as i64;
    }
    (((index & (HALF - 1)) + HALF) as i64) << (row - 1)
}

/// The highest value that counter `index` stands for, in ns.
#[must_use]
pub const fn highest_of(index: usize) -> i64 {
    lowest_of(index + 1) - 1
}

/// Counts per bucket, written by one thread and read by others.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[AtomicU64]>,
}

impl Histogram {
    /// An empty histogram whose memory (264 KiB) has been written to, so that recording takes no
    /// page fault.
    #[must_use]
    pub fn new() -> Self {
        // Zero from the allocator may be a page not there yet; a written zero is there.
        let counts: Box<[AtomicU64]> = (0..LEN).map(|_| AtomicU64::new(u64::MAX)).collect();
        let fresh = Self { counts };
        fresh.clear();
        fresh
    }

    /// Sets every count to 0. Only for the recording thread, between loops.
    pub fn clear(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Counts `value_ns`, which must lie in `0..=HIGHEST_NS`: those outside are the business of
    /// [`crate::tally::Tally`]. Beyond the last bucket nothing is counted, and nothing else
    /// happens. Only one thread may record.
    #[inline(always)]
    pub fn record(&self, value_ns: i64) {
        if let Some(count) = self.counts.get(index_of(value_ns)) {
            // One writer: a load and a store suffice, and cost a tenth of a locked add.
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The count of bucket `index` so far; 0 beyond the last bucket.
    #[inline]
    #[must_use]
    pub fn count(&self, index: usize) -> u64 {
        self.counts.get(index).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}
