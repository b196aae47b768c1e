//! Mutexes with priority inheritance, handed back and forth: a message is an unlock, and waiting
//! for one is a lock that the other end holds.
//!
//! There are four. At first the local endpoint holds 0 and 1, the remote endpoint 2 and 3. In turn
//! r the local endpoint unlocks r and then waits for r + 2; the remote endpoint gets r, unlocks r +
//! 2 and waits for r + 1 (all modulo 4). Each always holds the two that the other one waits for
//! next, so no order of events lets an end through too early. As with a mutex of the C library, the
//! kernel is called only where an end waits.
//!
//! The kernel restarts a lock after a signal: nothing ends this wait but the other end, alive or
//! dead.

use core::{
    ffi::c_int,
    ops::Deref,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    errno,
    page::{SharedPage, Side},
};
use crate::exchange::Port;

/// One end. Belongs to the thread that made it, for that one holds the mutexes.
#[derive(Debug)]
pub struct PiMutex<M: Deref<Target = SharedPage>> {
    memory: M,
    side: Side,
    thread: u32,
    /// The mutex that is unlocked next, modulo 4.
    unlocks: usize,
    /// The mutex that is waited for next, modulo 4.
    locks: usize,
    sent: u32,
    seen: u32,
}

impl<M: Deref<Target = SharedPage>> PiMutex<M> {
    /// The end `side`, with its two mutexes locked by the calling thread. Both ends must have been
    /// made before either is used.
    ///
    /// # Errors
    /// The `errno` of a lock that the kernel refuses, `ENOSYS` where it knows no such mutexes.
    pub fn new(memory: M, side: Side) -> Result<Self, c_int> {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::gettid() }.unsigned_abs();
        let (unlocks, locks) = if side == Side::Near { (0, 2) } else { (2, 0) };
        for mutex in memory.mutexes.iter().skip(unlocks).take(2) {
            lock(&mutex.word, thread)?;
        }
        Ok(Self { memory, side, thread, unlocks, locks, sent: 0, seen: 0 })
    }
}

impl<M: Deref<Target = SharedPage>> Port for PiMutex<M> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        self.memory.lane_to(self.side.other()).put(number, &mut self.sent);
        unlock(&self.memory.mutexes[self.unlocks & 3].word, self.thread)?;
        self.unlocks += 1;
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        lock(&self.memory.mutexes[self.locks & 3].word, self.thread)?;
        self.locks += 1;
        // An end that unlocks without a message has gone.
        self.memory.lane_to(self.side).take(&mut self.seen).unwrap_or(Err(libc::ECONNRESET))
    }
}

impl<M: Deref<Target = SharedPage>> Drop for PiMutex<M> {
    fn drop(&mut self) {
        self.memory.lane_to(self.side.other()).end();
        for mutex in &self.memory.mutexes {
            if mutex.word.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK == self.thread {
                // The kernel gives a mutex whose owner has died to the waiter.
                let _ = unlock(&mutex.word, self.thread);
            }
        }
    }
}

#[inline(always)]
fn lock(mutex: &AtomicU32, thread: u32) -> Result<(), c_int> {
    while mutex.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_err() {
        match ask(mutex, libc::FUTEX_LOCK_PI) {
            Ok(()) if mutex.load(Ordering::Acquire) & libc::FUTEX_OWNER_DIED != 0 => {
                return Err(libc::ECONNRESET);
            }
            Ok(()) => return Ok(()),
            // The owner is on its way out, and the kernel is not done with it yet.
            Err(libc::EAGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[inline(always)]
fn unlock(mutex: &AtomicU32, thread: u32) -> Result<(), c_int> {
    match mutex.compare_exchange(thread, 0, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => ask(mutex, libc::FUTEX_UNLOCK_PI),
    }
}

#[inline(always)]
fn ask(mutex: &AtomicU32, what: c_int) -> Result<(), c_int> {
    let forever = core::ptr::null::<libc::timespec>();
    // SAFETY: the word is borrowed, and the kernel changes it as an atomic; a null time means no
    // limit.
    let done = unsafe { libc::syscall(libc::SYS_futex, mutex.as_ptr(), what, 0, forever) };
    if done < 0 { Err(errno()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, atomic::AtomicU64};

    use super::{super::page::alone, *};

    #[test]
    fn nobody_gets_through_before_the_other_has_sent() {
        let (page, both) = (alone(), Arc::new(Barrier::new(2)));
        let (turns, begin) = (AtomicU64::new(0), Arc::clone(&both));
        let turns: &'static AtomicU64 = Box::leak(turns.into());
        let answers = std::thread::spawn(move || {
            let mut far = PiMutex::new(page, Side::Far).unwrap();
            begin.wait();
            for turn in 0..2000 {
                assert_eq!(far.receive(), Ok(turn as u8));
                assert_eq!(turns.fetch_add(1, Ordering::Relaxed), 2 * turn + 1);
                far.send(turn as u8).unwrap();
            }
            far.receive()
        });
        let mut near = PiMutex::new(page, Side::Near).unwrap();
        both.wait();
        for turn in 0..2000 {
            assert_eq!(turns.fetch_add(1, Ordering::Relaxed), 2 * turn);
            near.send(turn as u8).unwrap();
            assert_eq!(near.receive(), Ok(turn as u8));
        }
        drop(near);
        assert_eq!(answers.join().unwrap(), Err(libc::ECONNRESET));
    }

    #[test]
    fn an_end_that_died_before_or_while_the_other_waits_is_reported() {
        for dies_first in [true, false] {
            let (page, both) = (alone(), Arc::new(Barrier::new(2)));
            let begin = Arc::clone(&both);
            let other = std::thread::spawn(move || {
                core::mem::forget(PiMutex::new(page, Side::Far).unwrap());
                begin.wait();
                // The kernel marks the mutex of this thread that the local endpoint waits for.
                let is_waited_for = || page.mutexes[2].word.load(Ordering::Relaxed) >> 31 != 0;
                while !dies_first && !is_waited_for() {
                    std::thread::yield_now();
                }
            });
            let mut near = PiMutex::new(page, Side::Near).unwrap();
            both.wait();
            while dies_first && !other.is_finished() {
                std::thread::yield_now();
            }
            near.send(1).unwrap();
            assert_eq!(near.receive(), Err(libc::ECONNRESET), "{dies_first}");
            other.join().unwrap();
        }
    }
}
