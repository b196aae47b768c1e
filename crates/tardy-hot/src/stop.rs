//! The flag that ends a loop, and what pauses it.

use core::ffi::c_int;

use crate::{
    pause::Pause,
    sync::{AtomicBool, Ordering},
};

/// Set once, by any thread with a reason to stop; loops read it each turn.
#[derive(Debug)]
pub struct Stop {
    is_set: AtomicBool,
    alarm: Option<Alarm>,
    pause: Pause,
}

impl Stop {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self { is_set: AtomicBool::new(false), alarm: None, pause: Pause::default() }
    }

    /// A flag that is not set; a latency that sets it raises the alarm, too.
    #[must_use]
    pub fn with_alarm(alarm: Alarm) -> Self {
        Self { alarm: Some(alarm), ..Self::new() }
    }

    /// Asks every loop that checks this flag to end. What was stored before is visible to those
    /// who see it set.
    #[inline(always)]
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
    }

    /// The same for a latency over the limit, ns. The loop ends with it, so that the alarm may take
    /// two system calls.
    #[cold]
    pub fn set_over(&self, latency_ns: i64) {
        let was_set = self.is_set.swap(true, Ordering::AcqRel);
        if let Some(alarm) = self.alarm.filter(|_| !was_set) {
            alarm.raise(latency_ns);
        }
    }

    /// What pauses the loop that looks at it, if one does.
    #[inline(always)]
    #[must_use]
    pub const fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Whether the loops must end.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

/// A trace that somebody else runs: a mark in it says when a latency was over the limit, and it is
/// stopped before it overwrites what came before.
#[derive(Debug, Clone, Copy)]
pub struct Alarm {
    /// `trace_marker` of tracefs, open for writing for as long as loops run.
    pub marker: c_int,
    /// `tracing_on`, likewise.
    pub switch: c_int,
}

/// Digits of the largest number.
const DIGITS: usize = 20;

/// What the mark begins with.
const MARK: &[u8] = b"tardy: a latency over --stop-over: ";

/// What it ends with.
const UNIT: &[u8] = b" ns\n";

impl Alarm {
    /// What the kernel says to it is of no use to anyone here: the loop ends either way.
    fn raise(self, latency_ns: i64) {
        let mut digits = [0; DIGITS];
        let number = decimal(latency_ns.unsigned_abs(), &mut digits);
        // One buffer: of several in one call tracefs makes a mark each.
        let mut mark = [0; MARK.len() + DIGITS + UNIT.len()];
        let text = MARK.iter().chain(number).chain(UNIT);
        let length = mark.iter_mut().zip(text).map(|(to, from)| *to = *from).count();
        // SAFETY: a live buffer of at least that length; any number is a valid descriptor to ask
        // about.
        unsafe { libc::write(self.marker, mark.as_ptr().cast(), length) };
        // SAFETY: as before, of one byte.
        unsafe { libc::write(self.switch, b"0".as_ptr().cast(), 1) };
    }
}

/// A number as text, at the end of `digits`.
fn decimal(mut number: u64, digits: &mut [u8; DIGITS]) -> &[u8] {
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        used += 1;
        if number == 0 {
            break;
        }
    }
    digits.get(DIGITS - used..).unwrap_or_default()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 9, 10, 1_234_567, u64::MAX] {
            let mut digits = [0; DIGITS];
            assert_eq!(decimal(number, &mut digits), number.to_string().as_bytes());
        }
    }

    #[test]
    fn only_the_first_latency_over_the_limit_raises_the_alarm() {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let stop = Stop::with_alarm(Alarm { marker: ends[1], switch: ends[1] });
        stop.set_over(1_234_567);
        stop.set_over(2_000_000);
        assert!(stop.is_set());
        let mut text = [0; 100];
        // SAFETY: room for these bytes.
        let length = unsafe { libc::read(ends[0], text.as_mut_ptr().cast(), text.len()) };
        for end in ends {
            // SAFETY: nobody uses it any more.
            unsafe { libc::close(end) };
        }
        let text = core::str::from_utf8(&text[..length as usize]);
        assert_eq!(text, Ok("tardy: a latency over --stop-over: 1234567 ns\n0"));
    }
}
