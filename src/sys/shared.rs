//! Memory that a process shares with its later forks: counters, each on its own cache line. Knows
//! nothing about what is counted. Changes nothing but the caller's own address space.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// One cell of shared memory. Two cache lines wide, because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slot {
    /// A count.
    pub count: AtomicU64,
    /// A word to sleep on (futex); must be waited for and woken without the private flag.
    pub barrier: AtomicU32,
}

const _: () = assert!(size_of::<Slot>() == 128);

/// A fixed number of [`Slot`]s, all zero at first, shared with every process forked afterwards.
#[derive(Debug)]
pub struct SharedSlots {
    start: NonNull<Slot>,
    count: usize,
}

// SAFETY: the memory is reached through shared references to atomics only, and lives as long as
// the value that owns the mapping.
unsafe impl Send for SharedSlots {}
// SAFETY: as above; no method hands out an exclusive reference.
unsafe impl Sync for SharedSlots {}

impl SharedSlots {
    /// Maps `count` slots (at least one), and touches none of them.
    ///
    /// # Errors
    /// `OutOfMemory` and what else mmap says.
    pub fn new(count: usize) -> io::Result<Self> {
        let count = count.max(1);
        let bytes = count.checked_mul(size_of::<Slot>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address the kernel chooses a place where nothing is mapped yet.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::SHARED)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, count })
    }

    /// The slots.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        // SAFETY: the mapping holds `count` slots, page-aligned and zeroed, which is a value of
        // every atomic; it lives until `self` is dropped and is never borrowed exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedSlots {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no reference into it outlives `self`.
        let unmapped =
            unsafe { munmap(self.start.as_ptr().cast(), self.count * size_of::<Slot>()) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn slots_begin_at_zero_and_are_apart() {
        let shared = SharedSlots::new(100).unwrap();
        assert_eq!(shared.slots().len(), 100);
        assert!(shared.slots().iter().all(|slot| slot.count.load(Relaxed) == 0));
        shared.slots()[99].count.store(7, Relaxed);
        assert_eq!(shared.slots().iter().map(|slot| slot.count.load(Relaxed)).sum::<u64>(), 7);
    }

    #[test]
    fn more_than_any_memory_is_an_error() {
        assert!(SharedSlots::new(usize::MAX).is_err());
    }
}
