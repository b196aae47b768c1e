//! Sockets for a stream: both ends made together, with buffers that hold a second of its rate.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, socket_with,
    sockopt::{
        set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_reuseaddr,
        set_socket_send_buffer_size, set_socket_send_buffer_size_force, socket_recv_buffer_size,
        socket_send_buffer_size,
    },
};

/// Both ends on this machine. No packet has passed.
#[derive(Debug)]
pub struct SocketPair {
    /// The local endpoint's, with its address.
    pub near: (OwnedFd, SocketAddrV4),
    /// The remote endpoints', with the address that each receives at.
    pub far_end: Vec<(OwnedFd, SocketAddrV4)>,
}

/// A connected UDP socket, and one that receives from every sender.
///
/// # Errors
/// What the kernel says.
pub fn udp() -> io::Result<SocketPair> {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let far_end = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    near.connect(far_end.local_addr()?)?;
    let (near_address, far_address) = (v4(near.local_addr()?)?, v4(far_end.local_addr()?)?);
    Ok(SocketPair {
        near: (near.into(), near_address),
        far_end: vec![(far_end.into(), far_address)],
    })
}

/// A UDP socket that sends to `group`, and so many that are members of it, all on loopback.
///
/// # Errors
/// The kernel's error: `EINVAL` if `group` is not a multicast group.
pub fn multicast(group: Ipv4Addr, receivers: u32) -> io::Result<SocketPair> {
    // Bound to an interface's address a socket sends by that interface.
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    near.set_multicast_loop_v4(true)?;
    near.set_multicast_ttl_v4(0)?;
    let near_address = v4(near.local_addr()?)?;
    let mut far_end = vec![member(SocketAddrV4::new(group, 0))?];
    while far_end.len() < receivers as usize {
        let all = far_end.first().map_or(SocketAddrV4::new(group, 0), |(_, address)| *address);
        far_end.push(member(all)?);
    }
    near.connect(far_end.first().map_or(near_address, |(_, address)| *address))?;
    Ok(SocketPair { near: (near.into(), near_address), far_end })
}

fn member(at: SocketAddrV4) -> io::Result<(OwnedFd, SocketAddrV4)> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // All of them have one port.
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::V4(at))?;
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(at.ip(), &Ipv4Addr::LOCALHOST)?;
    let address = v4(socket.local_addr()?)?;
    Ok((socket.into(), address))
}

/// Both ends of a TCP connection that sends without delay. Their buffers are made before they are
/// connected: what a window can grow to is agreed on then.
///
/// # Errors
/// What the kernel says.
pub fn tcp(bytes: usize) -> io::Result<SocketPair> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    hold(&listener, bytes)?;
    let flags = SocketFlags::CLOEXEC;
    let near = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    hold(&near, bytes)?;
    rustix::net::connect(&near, &listener.local_addr()?)?;
    let near = TcpStream::from(near);
    let (far_end, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far_end.set_nodelay(true)?;
    let (near_address, far_address) = (v4(near.local_addr()?)?, v4(far_end.local_addr()?)?);
    Ok(SocketPair {
        near: (near.into(), near_address),
        far_end: vec![(far_end.into(), far_address)],
    })
}

fn v4(address: SocketAddr) -> io::Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// What the kernel counts for one unread datagram of `size` bytes: its buffer is a power of two
/// that has room for headers (the most of IP and of a link: 128) and `skb_shared_info` (320), and
/// `sk_buff` itself is 256.
#[must_use]
pub const fn kernel_bytes(size: usize) -> usize {
    (size + 128 + 320).next_power_of_two() + 256
}

/// Bytes that a buffer needs for a second of packets.
#[must_use]
pub fn second_of(size: usize, per_s: f64) -> usize {
    (per_s.ceil().max(1.0) as usize).saturating_mul(kernel_bytes(size))
}

/// Makes both buffers of a socket hold `bytes` bytes as the kernel counts them, by force if that is
/// allowed; it never makes them smaller. Read the result with [`held`].
///
/// # Errors
/// What the kernel says.
pub fn hold(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    // The kernel doubles what it is given, for what it adds to each packet. That is counted
    // already, so that there is twice the room.
    let bytes = bytes.min(i32::MAX as usize / 2);
    if socket_recv_buffer_size(&socket)? < bytes
        && set_socket_recv_buffer_size_force(&socket, bytes).is_err()
    {
        set_socket_recv_buffer_size(&socket, bytes)?;
    }
    if socket_send_buffer_size(&socket)? < bytes
        && set_socket_send_buffer_size_force(&socket, bytes).is_err()
    {
        set_socket_send_buffer_size(&socket, bytes)?;
    }
    Ok(())
}

/// Bytes that a socket holds unread and unsent, as the kernel counts them.
///
/// # Errors
/// What the kernel says.
pub fn held(socket: impl AsFd) -> io::Result<(usize, usize)> {
    Ok((socket_recv_buffer_size(&socket)?, socket_send_buffer_size(&socket)?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Until something that was sent is there; nothing waits that long when all is well.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Datagrams that arrive of `sent` that are not read meanwhile; `None` if the kernel does not
    /// grant the buffer.
    fn kept(size: usize, sent: usize) -> Option<usize> {
        let sockets = udp().unwrap();
        let (near, far_end) = (UdpSocket::from(sockets.near.0), sockets.far_end.into_iter().next());
        let far_end = UdpSocket::from(far_end.unwrap().0);
        let needed = second_of(size, sent as f64);
        hold(&far_end, needed).unwrap();
        if held(&far_end).unwrap().0 < needed {
            return None;
        }
        let packet = vec![7; size];
        for _ in 0..sent {
            near.send(&packet).unwrap();
        }
        far_end.set_read_timeout(Some(PATIENCE)).unwrap();
        Some((0..sent).take_while(|_| far_end.recv(&mut [0; 1]).is_ok()).count())
    }

    #[test]
    fn a_second_of_unread_packets_is_kept() {
        for (size, per_s) in [(56, 50_000), (64, 10_000), (600, 10_000), (1_472, 5_000)] {
            if let Some(kept) = kept(size, per_s) {
                assert_eq!(kept, per_s, "{size} bytes");
            }
        }
    }

    #[test]
    fn every_member_of_a_group_hears_what_is_sent_to_it() {
        let sockets = multicast(Ipv4Addr::new(239, 7, 7, 7), 3).unwrap();
        let near = UdpSocket::from(sockets.near.0);
        near.send(b"all").unwrap();
        for (far_end, _) in sockets.far_end {
            let far_end = UdpSocket::from(far_end);
            far_end.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut heard = [0; 8];
            assert_eq!(far_end.recv(&mut heard).unwrap(), 3);
        }
        assert!(multicast(Ipv4Addr::LOCALHOST, 1).is_err());
    }

    #[test]
    fn a_connection_holds_what_it_was_given() {
        let sockets = tcp(1 << 20).unwrap();
        let (near, far_end) =
            (held(&sockets.near.0).unwrap(), held(&sockets.far_end[0].0).unwrap());
        let limit = |name| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap();
            text.trim().parse::<usize>().unwrap()
        };
        // Without rights there is a limit.
        assert!(near.0.min(far_end.0) >= limit("rmem_max").min(1 << 20));
        assert!(near.1.min(far_end.1) >= limit("wmem_max").min(1 << 20));
    }
}
