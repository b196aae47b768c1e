//! Memory barriers on other CPUs: the system call that interrupts each CPU on which a thread of
//! the calling process runs.

use std::io;

const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
const PRIVATE_EXPEDITED: i32 = 1 << 3;

/// Announces that this process will call [`barrier`]. May be called again.
///
/// # Errors
/// `ENOSYS` or `EINVAL` where the kernel is built without it.
pub fn register() -> io::Result<()> {
    call(REGISTER_PRIVATE_EXPEDITED)
}

/// Returns when every other CPU that runs a thread of this process has gone through a barrier.
///
/// # Errors
/// `EPERM` without [`register`].
pub fn barrier() -> io::Result<()> {
    call(PRIVATE_EXPEDITED)
}

fn call(command: i32) -> io::Result<()> {
    // SAFETY: takes three integers, and no address.
    match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
