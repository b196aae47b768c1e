//! Memory mapped from a descriptor and shared with the kernel, as 8-byte words that may change at
//! any time.

use std::{
    ffi::CStr,
    io,
    os::fd::{BorrowedFd, OwnedFd},
    ptr::{self, NonNull},
    sync::atomic::AtomicU64,
};

use rustix::{
    fs::{
        FileType, MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
        memfd_create,
    },
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

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
    /// Maps `words` words of 8 bytes (at least one) for reading and writing: of a map of the
    /// kernel, whose size is fixed, or of [`sealed_memory`]. What is gone from a file is gone from
    /// its mapping too, and to touch it there is death by SIGBUS.
    ///
    /// # Errors
    /// What mmap says: `EPERM` where the descriptor does not allow it, `EINVAL` for more than there
    /// is. `InvalidInput` for a file that is too short or may shrink.
    pub fn new(descriptor: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let words = words.max(1);
        let bytes = words.checked_mul(8).ok_or(io::ErrorKind::OutOfMemory)?;
        refuse_shrinking(descriptor, bytes)?;
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
        // SAFETY: the mapping holds `words` words, page-aligned, of which every value is one of an
        // atomic; it lives until `self` is dropped and is never borrowed exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

/// Memory of `bytes` zero bytes that processes can share, and none of them can shrink.
///
/// # Errors
/// What the kernel says.
pub fn sealed_memory(name: &CStr, bytes: u64) -> io::Result<OwnedFd> {
    let memory = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes)?;
    fcntl_add_seals(&memory, SealFlags::SHRINK)?;
    Ok(memory)
}

fn refuse_shrinking(descriptor: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let about = fstat(descriptor)?;
    // Maps of the kernel are not files: they are as large as they were made.
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Ok(());
    }
    let is_sealed =
        fcntl_get_seals(descriptor).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    let is_long = u64::try_from(about.st_size).is_ok_and(|size| size >= bytes as u64);
    if is_sealed && is_long {
        return Ok(());
    }
    let what = if is_long { "the memory may shrink" } else { "the memory is too short" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
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
    use std::{os::fd::AsFd as _, sync::atomic::Ordering::Relaxed};

    use super::*;

    #[test]
    fn what_one_mapping_writes_another_one_reads() {
        let file = sealed_memory(c"tardy-test", 4096).unwrap();
        assert!(ftruncate(&file, 0).is_err(), "it cannot shrink");
        let error = MappedWords::new(file.as_fd(), 513).unwrap_err();
        assert_eq!(error.to_string(), "the memory is too short");
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
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let error = MappedWords::new(file.as_fd(), 1).unwrap_err();
        assert_eq!(error.to_string(), "the memory may shrink", "files have no seals");
    }
}
