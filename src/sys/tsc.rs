//! The processor's time stamp counter.

/// How long it is watched, ns: an error of a microsecond at either end is one in 20,000.
#[cfg(target_arch = "x86_64")]
const WATCHED_NS: i64 = 20_000_000;
/// The number of readings of counter and clock, of which the fastest counts.
#[cfg(target_arch = "x86_64")]
const READINGS: usize = 16;

/// Its frequency, kHz, by `CLOCK_MONOTONIC`; takes 20 ms. Absent on a processor that has none.
#[must_use]
pub fn khz() -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    {
        let (began, began_ns) = reading()?;
        std::thread::sleep(std::time::Duration::from_nanos(WATCHED_NS.unsigned_abs()));
        let (ended, ended_ns) = reading()?;
        let ticks = u128::from(ended.checked_sub(began)?);
        let passed_ns = u128::try_from(ended_ns - began_ns).ok().filter(|ns| *ns > 0)?;
        u32::try_from(ticks * 1_000_000 / passed_ns).ok().filter(|khz| *khz > 0)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The counter, and the time at which it was read, ns.
#[cfg(target_arch = "x86_64")]
fn reading() -> Option<(u64, i64)> {
    let read = || {
        let before_ns = tardy_hot::clock::now_ns();
        // SAFETY: every x86-64 processor has the instruction, and Linux allows it in user mode.
        let counter = unsafe { core::arch::x86_64::_rdtsc() };
        let after_ns = tardy_hot::clock::now_ns();
        (after_ns - before_ns, counter, before_ns)
    };
    let best = (0..READINGS).map(|_| read()).min_by_key(|(took_ns, ..)| *took_ns)?;
    Some((best.1, best.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_watches_find_the_same_frequency() {
        if let (Some(one), Some(other)) = (khz(), khz()) {
            assert!(one.abs_diff(other) < one / 500, "{one} and {other} kHz");
        }
    }
}
