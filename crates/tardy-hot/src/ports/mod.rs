//! One [`Port`](crate::exchange::Port) per transport: what it calls to send and to receive.
//!
//! A port holds descriptors as numbers; its creator keeps them open. Its buffers are allocated
//! and written to when it is made. A message is as long as was agreed: its number, then zeros; what
//! carries no bytes carries the number in another way, which each port documents.

pub mod counted;
pub mod datagram;
pub mod futex;
pub mod page;
pub mod pi_mutex;
pub mod queue;
pub mod signal;
pub mod spin;
pub mod stream;
pub mod zmq;

use core::ffi::c_int;

/// The buffer of messages: `bytes` bytes, at least one, each page written to.
fn buffer(bytes: usize) -> Box<[u8]> {
    // A value that the compiler does not know to be zero forces the pages in.
    let mut buffer = vec![std::hint::black_box(1); bytes.max(1)].into_boxed_slice();
    buffer.fill(std::hint::black_box(0));
    buffer
}

/// Why the last system call of this thread failed. That the other end is gone has many names.
#[cold]
fn errno() -> c_int {
    // SAFETY: has no preconditions; the address is this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno is always valid to read.
    match unsafe { *place } {
        libc::EPIPE | libc::ECONNREFUSED | libc::ENOTCONN | libc::EIDRM | libc::ESRCH => {
            libc::ECONNRESET
        }
        errno => errno,
    }
}
