//! Clocks beside the measuring one.

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, ns, from the tightest of a few brackets.
#[must_use]
pub fn realtime_offset_ns() -> i64 {
    offset_ns(|| bracket_ns(ClockId::Realtime))
}

/// The resolution that the kernel states of `CLOCK_MONOTONIC`, ns.
#[must_use]
pub fn resolution_ns() -> i64 {
    let stated = clock_getres(ClockId::Monotonic);
    stated.tv_sec * 1_000_000_000 + stated.tv_nsec
}

/// How long the machine has been suspended since it was booted, ns: `CLOCK_BOOTTIME` continues
/// then, `CLOCK_MONOTONIC` does not. From the tightest of a few brackets.
#[must_use]
pub fn suspended_ns() -> i64 {
    offset_ns(|| bracket_ns(ClockId::Boottime))
}

/// CPU time that the calling thread has had so far, ns, as the kernel accounts it.
#[must_use]
pub fn thread_cpu_ns() -> i64 {
    read_ns(ClockId::ThreadCPUTime)
}

/// A clock, read between two readings of `CLOCK_MONOTONIC`.
fn bracket_ns(clock: ClockId) -> [i64; 3] {
    [read_ns(ClockId::Monotonic), read_ns(clock), read_ns(ClockId::Monotonic)]
}

/// How far the clock in the middle is ahead, by the bracket that was interrupted least.
fn offset_ns(mut bracket: impl FnMut() -> [i64; 3]) -> i64 {
    let mut best = (i64::MAX, 0);
    for _ in 0..5 {
        let [before, other, after] = bracket();
        if after - before < best.0 {
            best = (after - before, other - (before + (after - before) / 2));
        }
    }
    best.1
}

fn read_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_between_two_reads_is_no_offset() {
        let ms = 1_000_000;
        // Interrupted after the clock in the middle was read, before it was, and not at all.
        let mut brackets = [[0, 10, 2 * ms], [0, 3 * ms, 3 * ms + 20], [100, 115, 130]].into_iter();
        let read = || brackets.next().unwrap_or([0, 4 * ms, 5 * ms]);
        assert_eq!(offset_ns(read), 0);
    }
}
