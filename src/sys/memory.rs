//! Locking memory, and what the process holds of it.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Locks what is mapped now, and with `future` also what is mapped later.
///
/// Without `CAP_IPC_LOCK`, locking the future makes later allocations fail once `RLIMIT_MEMLOCK` is
/// used up; so ask for that only with the right.
///
/// # Errors
/// `ENOMEM` over the limit, `EPERM` with a limit of 0.
pub fn lock_all(future: bool) -> io::Result<()> {
    let flags = if future {
        MlockAllFlags::CURRENT | MlockAllFlags::FUTURE
    } else {
        MlockAllFlags::CURRENT
    };
    Ok(mlockall(flags)?)
}

/// Takes every lock of memory back.
///
/// # Errors
/// None are known.
pub fn unlock_all() -> io::Result<()> {
    Ok(munlockall()?)
}

/// Keeps memory that was once had: without this, freeing in one thread unmaps pages, and that
/// interrupts every CPU on which a thread of this process runs.
pub fn keep_heap() {
    // SAFETY: sets a number of the allocator.
    unsafe { libc::mallopt(libc::M_MMAP_MAX, 0) };
    // SAFETY: sets a number of the allocator.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX) };
}

/// Bytes of this process that are locked, as the kernel counts them; `None` if unreadable.
#[must_use]
pub fn locked_bytes() -> Option<u64> {
    status_kib("VmLck:")
}

/// Most bytes of this process that have been in memory; `None` if unreadable.
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    status_kib("VmHWM:")
}

fn status_kib(field: &str) -> Option<u64> {
    kib_in(&std::fs::read_to_string("/proc/self/status").ok()?, field)
}

/// A field of a `status` file that is given in KiB, as bytes.
pub(super) fn kib_in(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Writes to `bytes` of the calling thread's stack below here, so that later use takes no fault.
#[inline(never)]
pub fn touch_stack() {
    let page = [0_u8; 64 * 1024];
    std::hint::black_box(&page);
}

/// Whether this process may lock memory without limit.
#[must_use]
pub fn may_lock_without_limit() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    limit.current.is_none() || has_capability(rustix::thread::CapabilitySet::IPC_LOCK)
}

fn has_capability(wanted: rustix::thread::CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}
