//! A pause between two turns of a loop whose threads keep a CPU for themselves: a helper that
//! shares it asks for one, and works while the loop sleeps instead of in the middle of a sample.

use core::{
    ffi::c_int,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::clock::now_ns;

/// The loop runs.
const RUNS: u32 = 0;

/// A helper waits for the end of the loop's turn.
const ASKED: u32 = 1;

/// The loop sleeps.
const SLEEPS: u32 = 2;

/// Of one loop and its helpers, of which one at a time has it. It does nothing where the loop does
/// not look.
#[derive(Debug, Default)]
pub struct Pause(AtomicU32);

impl Pause {
    /// The helper asks for a pause and sleeps until the loop does, for `patience_ns` at the most.
    /// Whether it does; [`Pause::end`] must follow.
    pub fn begin(&self, patience_ns: i64) -> bool {
        let until_ns = now_ns().saturating_add(patience_ns);
        while let Err(others) = self.change(RUNS, ASKED) {
            self.sleep_while(others, until_ns);
            if now_ns() >= until_ns {
                return false;
            }
        }
        self.sleep_while(ASKED, until_ns);
        self.change(ASKED, RUNS) == Err(SLEEPS)
    }

    /// The helper has done its work.
    pub fn end(&self) {
        self.0.store(RUNS, Ordering::Release);
        self.wake();
    }

    /// Whether the loop is asked to pause, which it is between two turns.
    #[inline(always)]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASKED
    }

    /// The loop sleeps until the helper has done its work, for `most_ns` at the most.
    #[cold]
    pub fn sleep(&self, most_ns: i64) {
        if self.change(ASKED, SLEEPS).is_ok() {
            self.wake();
            self.sleep_while(SLEEPS, now_ns().saturating_add(most_ns));
            // A helper that takes longer continues beside the loop.
            let _ = self.change(SLEEPS, RUNS);
        }
    }

    fn change(&self, from: u32, to: u32) -> Result<u32, u32> {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// A signal does not end it: the pause is short.
    fn sleep_while(&self, state: u32, until_ns: i64) {
        while self.0.load(Ordering::Acquire) == state {
            let left_ns = until_ns - now_ns();
            if left_ns <= 0 {
                return;
            }
            let time = libc::timespec {
                tv_sec: left_ns / 1_000_000_000,
                tv_nsec: left_ns % 1_000_000_000,
            };
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            self.futex(operation, state, &raw const time);
        }
    }

    fn wake(&self) {
        let all = c_int::MAX.unsigned_abs();
        self.futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, all, core::ptr::null());
    }

    /// What the kernel says to it is of no use: the word tells.
    fn futex(&self, operation: c_int, value: u32, time: *const libc::timespec) {
        // SAFETY: the word is borrowed, and the time is null or borrowed by the caller.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, value, time) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    };

    use super::*;

    /// Longer than a test may take.
    const LONG_NS: i64 = 120_000_000_000;

    #[test]
    fn the_loop_makes_no_turn_until_the_helper_has_done_its_work() {
        let (pause, turns, ends) =
            (Arc::<Pause>::default(), Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let own = (Arc::clone(&pause), Arc::clone(&turns), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            while !own.2.load(Ordering::Acquire) {
                own.1.fetch_add(1, Ordering::AcqRel);
                if own.0.is_asked() {
                    own.0.sleep(LONG_NS);
                }
            }
        });
        for _ in 0..100 {
            assert!(pause.begin(LONG_NS));
            let before = turns.load(Ordering::Acquire);
            std::thread::yield_now();
            assert_eq!(turns.load(Ordering::Acquire), before);
            pause.end();
        }
        ends.store(true, Ordering::Release);
        thread.join().unwrap();
    }

    #[test]
    fn neither_waits_for_the_other_for_ever() {
        let pause = Pause::default();
        assert!(!pause.begin(1), "no loop is there");
        assert!(!pause.is_asked());
        pause.sleep(LONG_NS);
        pause.0.store(ASKED, Ordering::Release);
        pause.sleep(1);
        assert_eq!(pause.0.load(Ordering::Acquire), RUNS, "the helper took too long");
        pause.end();
    }
}
