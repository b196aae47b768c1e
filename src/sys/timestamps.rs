//! Stamps of received packets, and the other options that a socket must have to be measured.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Has the kernel stamp each received packet, and the NIC too where `by_nic` says that it does.
/// The first packets after that may have none: the kernel begins with it a moment later.
///
/// # Errors
/// What the kernel says.
pub fn stamp(socket: impl AsFd, by_nic: bool) -> io::Result<()> {
    let mut wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    if by_nic {
        wanted |= libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    }
    set(socket, libc::SO_TIMESTAMPING, wanted.cast_signed())
}

/// Has the kernel say with each packet how many it dropped before, for lack of room.
///
/// # Errors
/// What the kernel says.
pub fn count_drops(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::SO_RXQ_OVFL, 1)
}

/// Has reads of the socket ask its device for packets for `us` before they sleep. If the kernel
/// knows how, interrupts of the device are put off meanwhile.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`.
pub fn busy_poll(socket: impl AsFd, us: u32) -> io::Result<()> {
    set(&socket, libc::SO_BUSY_POLL, us.cast_signed())?;
    match set(&socket, libc::SO_PREFER_BUSY_POLL, 1) {
        // Before 5.11.
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        other => other,
    }
}

/// Whether the last packet came from a device that can be asked for more: busy polling does
/// nothing elsewhere.
///
/// # Errors
/// What the kernel says.
pub fn can_busy_poll(socket: impl AsFd) -> io::Result<bool> {
    Ok(get(socket, libc::SO_INCOMING_NAPI_ID)? != 0)
}

fn set(socket: impl AsFd, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: these options take an integer, which lives as long as the call.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get(socket: impl AsFd, option: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: these options give an integer, for which there is room.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if failed == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn options_are_set_and_read_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        stamp(&socket, false).unwrap();
        let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        assert_eq!(get(&socket, libc::SO_TIMESTAMPING).unwrap(), wanted.cast_signed());
        count_drops(&socket).unwrap();
        assert_eq!(get(&socket, libc::SO_RXQ_OVFL).unwrap(), 1);
        assert!(!can_busy_poll(&socket).unwrap(), "nothing has come yet");
    }
}
