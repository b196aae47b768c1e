//! The system calls that ports of packets share.

use core::ffi::{c_int, c_short};

use crate::clock;
pub(super) use crate::wakeup::errno;

/// Bytes that are there now, and how many the datagram or the stream had for `into`.
#[inline(always)]
pub(super) fn receive(socket: c_int, into: &mut [u8]) -> Result<usize, c_int> {
    let room = into.len();
    // SAFETY: the buffer has as many writable bytes as is said.
    let got = unsafe { libc::recv(socket, into.as_mut_ptr().cast(), room, libc::MSG_DONTWAIT) };
    usize::try_from(got).map_err(|_| errno())
}

/// Sleeps until `socket` is ready for `events`, or until `until_ns` of the clock.
#[inline(always)]
pub(super) fn wait(socket: c_int, events: c_short, until_ns: i64) -> Result<(), c_int> {
    let mut wanted = libc::pollfd { fd: socket, events, revents: 0 };
    let left = clock::to_timespec(until_ns.saturating_sub(clock::now_ns()));
    // SAFETY: one valid description and a valid time; no signal mask is given.
    let ready = unsafe { libc::ppoll(&raw mut wanted, 1, &raw const left, core::ptr::null()) };
    if ready < 0 { Err(errno()) } else { Ok(()) }
}
