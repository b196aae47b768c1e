//! Memory that is shared with the kernel by a descriptor, seen as words that anybody may change.

use std::{
    io,
    os::fd::BorrowedFd,
    ptr::{self, NonNull},
    sync::atomic::AtomicU64,
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping; unmapped when it is dropped.
#[derive(Debug)]
pub struct MappedWords {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is reached through shared references to atomics only, and lives as long as
// the value that owns the mapping.
unsafe impl Send for MappedWords {}
// SAFETY: as above; no method hands out an exclusive reference.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Maps so many words of 8 bytes (at least one) for reading and writing.
    ///
    /// # Errors
    /// What mmap says: `EPERM` where the descriptor does not allow it, `EINVAL` for more than there
    /// is.
    pub fn new(descriptor: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let words = words.max(1);
        let bytes = words.checked_mul(8).ok_or(io::ErrorKind::OutOfMemory)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address the kernel chooses a place where nothing is mapped yet.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, descriptor, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }

    /// The memory.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds so many words, page-aligned, of which every value is one of an
        // atomic; it lives until `self` is dropped and is never borrowed exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

/// A shared mapping of as many words as its users know.
#[derive(Debug)]
pub struct MappedArray<const N: usize>(MappedWords);

impl<const N: usize> MappedArray<N> {
    /// Maps the words (at least one) for reading and writing.
    ///
    /// # Errors
    /// As [`MappedWords::new`].
    pub fn new(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        MappedWords::new(descriptor, N).map(Self)
    }

    /// The memory.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[AtomicU64; N] {
        // SAFETY: the mapping holds N words, as made above; for the rest see `MappedWords::words`.
        unsafe { self.0.start.cast().as_ref() }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no reference into it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd, sync::atomic::Ordering::Relaxed};

    use super::*;

    #[test]
    fn what_one_mapping_writes_another_one_reads() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let one = MappedWords::new(file.as_fd(), 512).unwrap();
        let other = MappedWords::new(file.as_fd(), 512).unwrap();
        one.words()[511].store(7, Relaxed);
        assert_eq!((other.words().len(), other.words()[511].load(Relaxed)), (512, 7));
        assert_eq!(MappedArray::<512>::new(file.as_fd()).unwrap().words()[511].load(Relaxed), 7);
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let pipe = rustix::pipe::pipe().unwrap();
        assert!(MappedWords::new(pipe.0.as_fd(), 1).is_err());
        assert!(MappedWords::new(pipe.0.as_fd(), usize::MAX).is_err());
    }
}
