//! A network of the calling process's own, and its loopback device.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

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

/// Brings the loopback device of this network up; the kernel gives it its address.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`; what opening a socket says.
pub fn raise_loopback() -> io::Result<()> {
    // SAFETY: takes integers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket was opened above and is not shared.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the request consists of integers only, for which all bits zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = letter.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a live local, as long as the kernel reads it, and its name ends in 0.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
