//! Sets of System V semaphores. Such a set outlives every process, so each is made where it ends
//! with its users: in its own namespace.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    thread,
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where a set is that was made by [`private`].
#[derive(Debug)]
pub struct Private {
    /// The namespace, which ends with this and the threads inside, and the set with it.
    pub namespace: OwnedFd,
    /// The set.
    pub set: i32,
}

/// Makes a set of `count` semaphores, all 0, in its own namespace. The calling thread stays where
/// it is.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; what the kernel says to the set.
pub fn private(count: i32) -> io::Result<Private> {
    // A namespace is made by moving into it, so by a thread that has nothing else to do.
    let inside = move || {
        // SAFETY: takes an integer, and moves this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWIPC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let namespace = File::open("/proc/thread-self/ns/ipc")?.into();
        Ok(Private { namespace, set: make(count)? })
    };
    let made = thread::Builder::new().name("semaphores".into()).spawn(inside)?.join();
    made.unwrap_or_else(|_| Err(io::Error::other("the thread that makes semaphores ended")))
}

/// Moves the calling thread alone into a namespace of [`private`].
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` if it is not such a namespace.
pub fn enter(namespace: &OwnedFd) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::InterProcessCommunication);
    Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
}

fn make(count: i32) -> io::Result<i32> {
    // SAFETY: takes integers.
    let set = unsafe { libc::semget(libc::IPC_PRIVATE, count, 0o600) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(set) }
}
