//! Network interfaces, and sockets that see all that comes in there.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number of it.
    pub index: i32,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it is a loopback device.
    pub is_loopback: bool,
}

impl Interface {
    /// Looks it up in this network namespace.
    ///
    /// # Errors
    /// `ENODEV` without such an interface; `EINVAL` for a name longer than 15 bytes or with a 0 in
    /// it.
    pub fn find(name: &str) -> io::Result<Self> {
        let socket = open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let mut request = request(name)?;
        ask(&socket, libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has just written this member.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        ask(&socket, libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the kernel has just written this member.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        let has = |flag: libc::c_int| flags & flag != 0;
        let (is_up, is_loopback) = (has(libc::IFF_UP), has(libc::IFF_LOOPBACK));
        Ok(Self { name: name.into(), index, is_up, is_loopback })
    }

    /// A socket that reads each packet that comes in there, from its IP header on; not those that
    /// go out.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`; what the kernel says.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        // No protocol: nothing comes before it is bound to this interface.
        let socket = open(libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        let ignore = 1_i32;
        // SAFETY: the option takes an integer, which lives as long as the call.
        let failed = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const ignore).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the address consists of integers only, for which all bits zero is a value.
        let mut place: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        place.sll_family = libc::AF_PACKET as libc::c_ushort;
        place.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        place.sll_ifindex = self.index;
        // SAFETY: the address lives as long as the call and is as long as said.
        let failed = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const place).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if failed == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
    }
}

/// A socket that programs started later do not inherit.
pub(super) fn open(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes integers.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the socket was opened above and is not shared.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

pub(super) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: the request consists of integers and pointers, for which all bits zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, letter) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = letter.cast_signed();
    }
    Ok(request)
}

pub(super) fn ask(
    socket: &OwnedFd,
    what: libc::Ioctl,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: the request is live and writable as long as the call, and its name ends in 0.
    match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut *request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_others_are_not() {
        let loopback = Interface::find("lo").unwrap();
        assert!(loopback.is_loopback && loopback.index > 0, "{loopback:?}");
        let missing = Interface::find("no-such-one").unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
        for name in ["a-name-that-is-too-long", "l\0"] {
            assert_eq!(Interface::find(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn all_that_comes_in_needs_a_right() {
        match Interface::find("lo").unwrap().listen() {
            Ok(_) => {}
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
    }
}
