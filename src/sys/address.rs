//! Addresses as system calls want them.

use std::net::SocketAddrV4;

/// An address and a port of IPv4.
#[must_use]
pub fn of(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_the_order_of_the_network() {
        let address = of(SocketAddrV4::new([127, 0, 0, 1].into(), 0x1234));
        assert_eq!(address.sin_port.to_ne_bytes(), [0x12, 0x34]);
        assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), [127, 0, 0, 1]);
    }
}
