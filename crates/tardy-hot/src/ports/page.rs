//! Memory that both ends share: a lane for messages to each of them, and mutexes.

use core::{
    ffi::c_int,
    sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering},
};

/// Words of 8 bytes in a [`SharedPage`].
pub const WORDS: usize = 6 * LINE_WORDS;

/// Two cache lines: processors fetch them in pairs.
const LINE_WORDS: usize = 16;

/// Bit of [`Inbox::word`]: the sender has gone.
const ENDED: u32 = 1 << 31;

/// Which end a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that measures.
    Near,
    /// The one that answers.
    Far,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// What one end is sent.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Inbox {
    /// The last message: its number in the lowest 8 bits, above it a count that makes it another
    /// one than the message before, [`ENDED`] on top.
    pub(super) word: AtomicU32,
    /// How often the end that receives here was asked to give up waiting.
    interrupts: AtomicU32,
    /// The process of the end that receives here, 0 if it is not there.
    pub(super) process: AtomicI32,
    /// Its thread.
    pub(super) thread: AtomicI32,
    apart: [AtomicU64; LINE_WORDS - 2],
}

/// A word on its own cache lines.
#[repr(C)]
#[derive(Debug)]
pub(super) struct CacheLine {
    pub(super) word: AtomicU32,
    apart: [AtomicU32; 2 * LINE_WORDS - 1],
}

/// What both ends share. All zeros at first.
#[repr(C)]
#[derive(Debug)]
pub struct SharedPage {
    /// To the local and to the remote endpoint.
    lanes: [Inbox; 2],
    pub(super) mutexes: [CacheLine; 4],
}

const _: () = assert!(size_of::<SharedPage>() == WORDS * 8 && align_of::<SharedPage>() == 8);

impl SharedPage {
    /// Shared words as a page.
    #[must_use]
    pub fn of(words: &[AtomicU64; WORDS]) -> &Self {
        // SAFETY: size and alignment are the same, as asserted above; both consist of atomics, of
        // which every value is one, and are reached by shared references only.
        unsafe { &*core::ptr::from_ref(words).cast() }
    }

    /// What `side` is sent.
    #[inline(always)]
    pub(super) fn lane_to(&self, side: Side) -> &Inbox {
        &self.lanes[side as usize]
    }

    /// Writes to all of it without a change, so that no later use takes a page fault.
    pub fn touch(&self) {
        for lane in &self.lanes {
            lane.word.fetch_or(0, Ordering::Relaxed);
        }
        for mutex in &self.mutexes {
            mutex.word.fetch_or(0, Ordering::Relaxed);
        }
    }

    /// Lets the end that waits without a system call give up: its port returns `EINTR`, now or at
    /// its next wait.
    pub fn interrupt(&self, side: Side) {
        self.lane_to(side).interrupts.fetch_add(1, Ordering::Relaxed);
    }
}

impl Inbox {
    #[inline(always)]
    pub(super) fn interrupts(&self) -> u32 {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// No more messages come here.
    pub(super) fn end(&self) {
        self.word.fetch_or(ENDED, Ordering::Release);
    }

    /// The message that is not the one `seen` before; `None` if none has come.
    #[inline(always)]
    pub(super) fn take(&self, seen: &mut u32) -> Option<Result<u8, c_int>> {
        let word = self.word.load(Ordering::Acquire);
        if word == *seen {
            return None;
        }
        if word & ENDED != 0 {
            return Some(Err(libc::ECONNRESET));
        }
        *seen = word;
        Some(Ok(word as u8))
    }

    /// Puts the message `number` here, after the word `sent` before.
    #[inline(always)]
    pub(super) fn put(&self, number: u8, sent: &mut u32) {
        *sent = (sent.wrapping_add(0x100) & !ENDED & !0xff) | u32::from(number);
        self.word.store(*sent, Ordering::Release);
    }
}

/// Memory of this process alone, for tests.
#[cfg(test)]
pub(super) fn alone() -> &'static SharedPage {
    let words: Box<[AtomicU64; WORDS]> = Box::new(core::array::from_fn(|_| AtomicU64::new(0)));
    SharedPage::of(Box::leak(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_another_one_even_with_the_same_number() {
        let lane = alone().lane_to(Side::Far);
        let (mut sent, mut seen) = (0, 0);
        for number in [0, 0, 255, 255] {
            lane.put(number, &mut sent);
            assert_eq!((lane.take(&mut seen), lane.take(&mut seen)), (Some(Ok(number)), None));
        }
        // The count above the number begins again, and does not reach the bit on top.
        sent = ENDED - 1;
        lane.put(255, &mut sent);
        assert_eq!((sent, lane.take(&mut seen)), (255, Some(Ok(255))));
        lane.end();
        assert_eq!(lane.take(&mut seen), Some(Err(libc::ECONNRESET)));
    }
}
