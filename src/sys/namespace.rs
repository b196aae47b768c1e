//! A network of the calling process's own.

use std::io;

/// Moves the calling process, which must have one thread, into a new network namespace: it holds a
/// loopback device that is down, and ends with its last process.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` where the kernel has no such namespaces.
pub fn leave_network() -> io::Result<()> {
    // SAFETY: takes an integer; descriptors that are open stay as they are.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
