//! Memory that is mapped and unmapped by the caller's own will, past the allocator.

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A mapping of the calling process alone, zero at first; unmapped when it is dropped. Begins on a
/// page, as direct access to a disk wants it.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the region owns its memory, like a vector; sharing it gives out shared slices only.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes` bytes (at least one) and touches none of them. With `small_pages` the kernel is
    /// asked not to put huge pages there.
    ///
    /// # Errors
    /// `OutOfMemory` and what else mmap says.
    pub fn map(bytes: usize, small_pages: bool) -> io::Result<Self> {
        let bytes = bytes.max(1);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: with a null address the kernel chooses a place where nothing is mapped yet.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let region = Self { start, bytes };
        if small_pages {
            // SAFETY: exactly the mapping of above; the advice changes nothing in its contents.
            let advised = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
            // A kernel without huge pages does not know the advice, and does not need it.
            let _ = advised;
        }
        Ok(region)
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping holds `bytes` readable, writable bytes, zeroed at first; it lives
        // until `self` is dropped and is borrowed exclusively with it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Writes to every page, so that each is really there.
    pub fn touch(&mut self) {
        for page in self.bytes().chunks_mut(4096) {
            if let Some(byte) = page.first_mut() {
                *byte = std::hint::black_box(byte.wrapping_add(1));
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made; no reference into it outlives `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zero_on_a_page_and_all_of_it_can_be_touched() {
        for small in [false, true] {
            let mut region = Region::map(10_000, small).unwrap();
            assert_eq!((region.bytes().len(), region.bytes().as_ptr().addr() % 4096), (10_000, 0));
            assert!(region.bytes().iter().all(|&byte| byte == 0));
            region.touch();
            assert_eq!(region.bytes().iter().map(|&byte| u32::from(byte)).sum::<u32>(), 3);
        }
    }

    #[test]
    fn more_than_any_memory_is_an_error() {
        assert!(Region::map(usize::MAX, false).is_err());
    }
}
