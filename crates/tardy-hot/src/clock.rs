//! The clock: `CLOCK_MONOTONIC`, the one that `bpf_ktime_get_ns` and hrtimers use. Beside it that
//! of packets, `CLOCK_REALTIME`.

/// Nanoseconds of `CLOCK_MONOTONIC`. Where the clock source allows it, the vDSO reads the clock
/// without a system call.
#[inline(always)]
#[must_use]
pub fn now_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid, writable timespec, and CLOCK_MONOTONIC exists on every Linux, so
    // the call can neither fail nor write elsewhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    from_timespec(now)
}

/// Nanoseconds of `CLOCK_REALTIME`, by which the kernel stamps packets; as [`now_ns`] otherwise.
/// It may be stepped.
#[inline(always)]
#[must_use]
pub fn realtime_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid, writable timespec, and CLOCK_REALTIME exists on every Linux, so
    // the call can neither fail nor write elsewhere.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    from_timespec(now)
}

/// A `timespec` as nanoseconds.
#[inline(always)]
#[must_use]
pub const fn from_timespec(t: libc::timespec) -> i64 {
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Nanoseconds as a `timespec`; `ns` must not be negative (a negative one reads as 0).
#[inline(always)]
#[must_use]
pub const fn to_timespec(ns: i64) -> libc::timespec {
    let ns = if ns < 0 { 0 } else { ns };
    libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}
