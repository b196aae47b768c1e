//! Two words in shared memory and `futex`: the sender stores and wakes, the receiver sleeps on its
//! word. A word holds the number.

use core::{ffi::c_int, ops::Deref, sync::atomic::AtomicU32};

use super::{
    errno,
    page::{SharedPage, Side},
};
use crate::exchange::Port;

/// One end. The words may be in the memory of another process, too.
#[derive(Debug)]
pub struct Futex<M: Deref<Target = SharedPage>> {
    memory: M,
    side: Side,
    sent: u32,
    seen: u32,
}

impl<M: Deref<Target = SharedPage>> Futex<M> {
    /// The end `side`.
    #[must_use]
    pub const fn new(memory: M, side: Side) -> Self {
        Self { memory, side, sent: 0, seen: 0 }
    }
}

impl<M: Deref<Target = SharedPage>> Port for Futex<M> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        let lane = self.memory.lane_to(self.side.other());
        lane.put(number, &mut self.sent);
        wake(&lane.word)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        let lane = self.memory.lane_to(self.side);
        loop {
            if let Some(taken) = lane.take(&mut self.seen) {
                return taken;
            }
            wait(&lane.word, self.seen)?;
        }
    }
}

impl<M: Deref<Target = SharedPage>> Drop for Futex<M> {
    fn drop(&mut self) {
        let lane = self.memory.lane_to(self.side.other());
        lane.end();
        // Without a waiter none need be woken.
        let _ = wake(&lane.word);
    }
}

#[inline(always)]
fn wake(word: &AtomicU32) -> Result<(), c_int> {
    // SAFETY: the word is borrowed; the kernel does not write to it.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
    if woken < 0 { Err(errno()) } else { Ok(()) }
}

/// Sleeps while the word is as it was `seen`; may also wake up without reason.
#[inline(always)]
fn wait(word: &AtomicU32, seen: u32) -> Result<(), c_int> {
    let forever = core::ptr::null::<libc::timespec>();
    // SAFETY: the word is borrowed, and a null time means no limit.
    let woken =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, forever) };
    if woken < 0 {
        let errno = errno();
        if errno != libc::EAGAIN {
            return Err(errno);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::page::alone, *};

    #[test]
    fn an_end_that_goes_wakes_the_other_one() {
        let page = alone();
        let (mut near, mut far) = (Futex::new(page, Side::Near), Futex::new(page, Side::Far));
        let answers = std::thread::spawn(move || {
            let first = far.receive();
            (first, far.receive())
        });
        near.send(200).unwrap();
        drop(near);
        let (first, second) = answers.join().unwrap();
        // The end may come before the message was read.
        assert!(first == Ok(200) || first == Err(libc::ECONNRESET), "{first:?}");
        assert_eq!(second, Err(libc::ECONNRESET));
    }
}
