//! Two POSIX message queues. One `mq_send`, one `mq_receive`, all of the same priority.

use core::ffi::c_int;

use super::{buffer, errno};
use crate::exchange::Port;

/// One end.
#[derive(Debug)]
pub struct QueuePort {
    sends: c_int,
    receives: c_int,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
}

impl QueuePort {
    /// An end for messages of `size` bytes (at least one), which must be the longest that the
    /// queues take. The descriptors stay the caller's.
    #[must_use]
    pub fn new(sends: c_int, receives: c_int, size: usize) -> Self {
        Self { sends, receives, outgoing: buffer(size), incoming: buffer(size) }
    }
}

impl Port for QueuePort {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        if let Some(first) = self.outgoing.first_mut() {
            *first = number;
        }
        let (start, len) = (self.outgoing.as_ptr(), self.outgoing.len());
        // SAFETY: the kernel reads the bytes of a buffer that lives as long as this port.
        match unsafe { libc::mq_send(self.sends, start.cast(), len, 0) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        let (start, len) = (self.incoming.as_mut_ptr(), self.incoming.len());
        let no_priority = core::ptr::null_mut();
        // SAFETY: the kernel writes at most as much as this port's own buffer holds, and no
        // priority is asked for.
        let got = unsafe { libc::mq_receive(self.receives, start.cast(), len, no_priority) };
        if got == len.cast_signed() {
            return Ok(self.incoming.first().copied().unwrap_or_default());
        }
        // A longer one does not fit into the queue.
        Err(if got < 0 { errno() } else { libc::EBADMSG })
    }
}
