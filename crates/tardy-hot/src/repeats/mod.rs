//! The loops of the `bandwidth` probe: work that is done again and again between two clock reads.
//!
//! Here an allocation may come before a batch of iterations, and none within. What lies between the
//! clock reads is a batch of at least half a millisecond, so that they are nothing beside it.

pub mod calls;
pub mod memory;
pub mod processes;
pub mod transfers;

use crate::{clock::now_ns, stop::Stop};

/// Turns between two clock reads take at least so long, ns.
const BATCH_NS: i64 = 500_000;

/// Work that can be repeated.
pub trait Repeated {
    /// Does it `iterations` times.
    ///
    /// # Errors
    /// The number of the system's error.
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32>;
}

/// What came of a batch of iterations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batch {
    /// Bytes that were really moved.
    pub bytes: u64,
    /// The time that counts, if that is not all, ns.
    pub own_ns: Option<i64>,
}

impl Batch {
    /// All of its time counts.
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        Self { bytes, own_ns: None }
    }
}

/// What was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Turns.
    pub iterations: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// The time that they took, ns.
    pub ns: i64,
}

impl Repeats {
    /// Time of one iteration, us.
    #[must_use]
    pub fn us_per_turn(&self) -> f64 {
        self.ns as f64 / 1e3 / self.iterations as f64
    }

    /// Millions of bytes a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 * 1e3 / self.ns as f64
    }

    fn add(&mut self, iterations: u64, bytes: u64, ns: i64) {
        self.iterations += iterations;
        self.bytes += bytes;
        self.ns += ns;
    }
}

/// Repeats `work` until `until_ns` or until `stop` is set, at least once. Turns before the batches
/// are long enough are a warm-up, and do not count.
///
/// # Errors
/// The number of the system's error.
pub fn measure(
    work: &mut (impl Repeated + ?Sized),
    until_ns: i64,
    stop: &Stop,
) -> Result<Repeats, i32> {
    let mut iterations = 1;
    let mut batch = |iterations: u64| -> Result<(Batch, i64, i64), i32> {
        let begun_ns = now_ns();
        let done = work.iterate(iterations)?;
        let ended_ns = now_ns();
        Ok((done, done.own_ns.unwrap_or(ended_ns - begun_ns), ended_ns))
    };
    let mut total = Repeats::default();
    loop {
        let (done, ns, ended_ns) = batch(iterations)?;
        let is_last = ended_ns + 4 * ns.max(BATCH_NS) >= until_ns || stop.is_set();
        if ns >= BATCH_NS || is_last {
            // The first iteration of long work is the warm-up, where there is time for another.
            if iterations > 1 || is_last {
                total.add(iterations, done.bytes, ns);
            }
            break;
        }
        iterations *= if ns < BATCH_NS / 16 { 8 } else { 2 };
    }
    while (now_ns() < until_ns || total.iterations == 0) && !(stop.is_set() && total.iterations > 0)
    {
        let (done, ns, _) = batch(iterations)?;
        total.add(iterations, done.bytes, ns);
    }
    Ok(total)
}

/// The number of the last error of this thread.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// What a system call returned, or the number of its error.
fn checked(returned: isize) -> Result<usize, i32> {
    usize::try_from(returned).map_err(|_| errno())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the flag at some iteration, and fails at another.
    struct Counted<'a> {
        iterations: u64,
        stop: &'a Stop,
        stops_at: u64,
        fails_at: u64,
    }

    impl<'a> Counted<'a> {
        const fn new(stop: &'a Stop) -> Self {
            Self { iterations: 0, stop, stops_at: u64::MAX, fails_at: u64::MAX }
        }
    }

    impl Repeated for Counted<'_> {
        fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
            self.iterations += iterations;
            if self.iterations >= self.fails_at {
                return Err(libc::EIO);
            }
            if self.iterations >= self.stops_at {
                self.stop.set();
            }
            Ok(Batch { bytes: 3 * iterations, own_ns: Some(2_000 * iterations as i64) })
        }
    }

    #[test]
    fn what_counts_is_what_was_done_in_the_time_that_it_took() {
        let stop = Stop::new();
        let mut work = Counted { stops_at: 1_000, ..Counted::new(&stop) };
        let done = measure(&mut work, i64::MAX, &stop).unwrap();
        // Batches of 256 turns are long enough.
        assert_eq!((done.iterations, work.iterations), (4 * 256, 4 * 256 + 1 + 8 + 64 + 128));
        assert_eq!((done.bytes, done.ns), (3 * done.iterations, 2_000 * done.iterations as i64));
        assert!((done.us_per_turn() - 2.0).abs() < 1e-9);
        assert!((done.mb_per_s() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn it_is_done_once_whatever_the_time_and_ends_at_an_error() {
        let (stop, not_set) = (Stop::new(), Stop::new());
        stop.set();
        assert_eq!(measure(&mut Counted::new(&stop), 0, &stop).unwrap().iterations, 1);
        let mut work = Counted { fails_at: 50, ..Counted::new(&stop) };
        assert_eq!(measure(&mut work, i64::MAX, &stop).unwrap().iterations, 1);
        assert_eq!(measure(&mut work, i64::MAX, &not_set), Err(libc::EIO));
    }
}
