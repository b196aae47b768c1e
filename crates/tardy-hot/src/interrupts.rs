//! What the `irq` probe does in each turn beside the wake-up: a loop of known work, and counts of
//! how late the wake-ups of each slice of the time were. And how it finds the grid on which a
//! real-time clock interrupts.
//!
//! # What lies between the clock reads
//!
//! The wake-up is that of [`crate::wakeup`]. The loop is timed by two separate clock reads, after
//! the sample was recorded: what is longer than usual was taken from the thread meanwhile.

use core::{ffi::c_int, hint::black_box, sync::atomic::Ordering};

use crate::{
    clock,
    ring::Sample,
    stages::ThreadRecord,
    stop::Stop,
    wakeup::{Sink, errno},
};

/// The number of slices of the measured time; each slice has its own sums.
pub const SLICES: usize = 20;

/// The latencies that wake-ups are counted within, ns.
pub const WITHIN_NS: [i64; 2] = [1_000_000, 2_000_000];

/// The least number of interrupts from which a grid is estimated.
const LEAST_ARRIVALS: u32 = 16;

/// What happened in one slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SliceCounts {
    /// Wake-ups.
    pub wakeups: i64,
    /// Those of them at most as late as each of [`WITHIN_NS`].
    pub within: [i64; WITHIN_NS.len()],
    /// The programmed time of the last of them, ns.
    pub end_ns: i64,
    /// Time of all loops, ns.
    pub loops_ns: i64,
    /// The longest loop, ns.
    pub longest_ns: i64,
}

/// Hands every sample to `inner`, counts it, and then does the loop.
#[derive(Debug)]
pub struct TurnWork<'a, S> {
    /// Keeps the latency.
    pub inner: S,
    /// Counts by slice.
    pub slices: &'a mut [SliceCounts; SLICES],
    /// When the first slice begins, ns.
    pub begin_ns: i64,
    /// A slice takes so long, ns; `i64::MAX` where all is one.
    pub slice_ns: i64,
    /// Turns of the loop; 0 for none.
    pub turns: u64,
}

impl<S: Sink> Sink for TurnWork<'_, S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        self.inner.take(sample);
        let begin_ns = clock::now_ns();
        spin(self.turns);
        let took_ns = clock::now_ns() - begin_ns;
        let number =
            (sample.t_ns - self.begin_ns).max(0).checked_div(self.slice_ns).unwrap_or(0) as usize;
        if let Some(slice) = self.slices.get_mut(number.min(SLICES - 1)) {
            slice.wakeups += 1;
            for (within, ns) in slice.within.iter_mut().zip(WITHIN_NS) {
                *within += i64::from(sample.latency_ns <= ns);
            }
            slice.end_ns = sample.t_ns;
            slice.loops_ns += took_ns;
            slice.longest_ns = slice.longest_ns.max(took_ns);
        }
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

/// The work of the loop.
#[inline(never)]
fn spin(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// How many turns of the loop take `ns` where nothing disturbs it: by the shortest of several
/// tries.
#[must_use]
pub fn turns_in(ns: i64) -> u64 {
    const TRIED: u64 = 100_000;
    let took = |_| {
        let begin_ns = clock::now_ns();
        spin(TRIED);
        clock::now_ns() - begin_ns
    };
    let least_ns = (0..10).map(took).min().unwrap_or(1).max(1);
    (ns.max(0) as u64).saturating_mul(TRIED) / least_ns as u64
}

/// When a device interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The interrupt after the last that was read, ns.
    pub next_ns: i64,
    /// Whether that is the expiry that the kernel has for it, rather than the earliest arrival.
    pub is_exact: bool,
}

/// Reads a real-time clock that interrupts every `period_ns` until `until_ns`, and until there were
/// enough interrupts: the earliest arrival gives the grid, or the kernel's `record` of this thread
/// where that is kept.
///
/// # Errors
/// The `errno` of a read that failed; `ECANCELED` where `stop` was set.
pub fn find_grid(
    device: c_int,
    period_ns: i64,
    record: Option<&ThreadRecord>,
    until_ns: i64,
    stop: &Stop,
) -> Result<Grid, c_int> {
    let (mut number, mut arrivals) = (0_i64, 0_u32);
    let (mut earliest_ns, mut exact_ns) = (i64::MAX, None);
    loop {
        let mut data = 0_u64;
        // SAFETY: `data` is 8 writable bytes, which is what a clock hands over.
        let got = unsafe { libc::read(device, (&raw mut data).cast(), 8) };
        let now_ns = clock::now_ns();
        if stop.is_set() {
            return Err(libc::ECANCELED);
        }
        if got != 8 {
            match errno() {
                libc::EINTR => continue,
                errno => return Err(errno),
            }
        }
        number += (data >> 8) as i64;
        arrivals += 1;
        earliest_ns = earliest_ns.min(now_ns - number * period_ns);
        let expiry_ns = record.map_or(0, |own| own.expires_ns.load(Ordering::Relaxed) as i64);
        if (0..period_ns).contains(&(now_ns - expiry_ns)) {
            exact_ns = Some(expiry_ns - number * period_ns);
        }
        if now_ns >= until_ns && arrivals >= LEAST_ARRIVALS {
            let origin_ns = exact_ns.unwrap_or(earliest_ns);
            let next_ns = origin_ns + (number + 1) * period_ns;
            return Ok(Grid { next_ns, is_exact: exact_ns.is_some() });
        }
    }
}
