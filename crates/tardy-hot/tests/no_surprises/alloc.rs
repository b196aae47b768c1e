//! An allocator that counts what the calling thread asks for while it is armed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    cell::Cell,
};

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static FOUND: Cell<u64> = const { Cell::new(0) };
    static SHOWN: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Begins to count what this thread allocates or frees; the first `shown` of them come with a
/// backtrace.
pub(crate) fn arm(shown: u64) {
    FOUND.set(0);
    SHOWN.set(shown);
    ARMED.set(true);
}

/// Ends counting, and returns the count.
pub(crate) fn disarm() -> u64 {
    ARMED.set(false);
    FOUND.get()
}

fn note(what: &str, bytes: usize) {
    // A thread that is going away has no cells left, and is not a loop either.
    if !ARMED.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    // A backtrace allocates; a panic may not leave an allocator.
    ARMED.set(false);
    FOUND.set(FOUND.get() + 1);
    if FOUND.get() <= SHOWN.get() {
        eprintln!("{what} of {bytes} bytes:\n{}", Backtrace::force_capture());
    }
    ARMED.set(true);
}

// SAFETY: hands everything on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note("allocation", layout.size());
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note("release", layout.size());
        // SAFETY: as above; `place` came from the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}
