//! POSIX message queues that only those know who hold their descriptors.

use std::{
    ffi::CString,
    io,
    os::fd::{FromRawFd, OwnedFd},
};

/// A queue, with its two ends.
#[derive(Debug)]
pub struct MessageQueue {
    /// Takes messages.
    pub writes: OwnedFd,
    /// Gives them.
    pub reads: OwnedFd,
}

impl MessageQueue {
    /// A queue for `messages` messages of at most `size` bytes. It has no name any more, and ends
    /// with its last descriptor.
    ///
    /// # Errors
    /// `EINVAL` beyond `/proc/sys/fs/mqueue/msg_max` and `msgsize_max`, `EMFILE` beyond
    /// `RLIMIT_MSGQUEUE`, `ENOSYS` where the kernel has no queues.
    pub fn unnamed(messages: usize, size: usize) -> io::Result<Self> {
        let number = |count: usize| count.try_into().map_err(|_| io::ErrorKind::InvalidInput);
        // SAFETY: the attributes are integers, of which zeros are values.
        let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
        attributes.mq_maxmsg = number(messages)?;
        attributes.mq_msgsize = number(size)?;
        let name = free_name()?;
        let create = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
        let access: libc::mode_t = 0o600;
        // SAFETY: the name ends in 0, and the attributes are live while the kernel reads them.
        let writes = unsafe { libc::mq_open(name.as_ptr(), create, access, &raw const attributes) };
        let writes = owned(writes)?;
        // SAFETY: the name ends in 0; nothing is created, so no attributes are needed.
        let reads = unsafe { libc::mq_open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        let failed = io::Error::last_os_error();
        // SAFETY: the name ends in 0.
        unsafe { libc::mq_unlink(name.as_ptr()) };
        if reads < 0 {
            return Err(failed);
        }
        Ok(Self { writes, reads: owned(reads)? })
    }
}

/// A unique name.
fn free_name() -> io::Result<CString> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(CString::new(format!("/tardy-{:016x}", u64::from_ne_bytes(random)))?)
}

/// On Linux a queue is a descriptor like all others.
fn owned(queue: libc::mqd_t) -> io::Result<OwnedFd> {
    if queue < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(queue) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_two_ends_and_too_long_messages_are_an_error() {
        assert!(MessageQueue::unnamed(8, 100).is_ok());
        assert!(MessageQueue::unnamed(8, 1 << 40).is_err());
    }
}
