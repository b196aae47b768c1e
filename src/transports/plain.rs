//! Connections to programs other than tardy, which have no handshake.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    os::fd::OwnedFd,
    time::Duration,
};

use thiserror::Error;

use super::hello::{CarrierKind, HelloError, connect::addresses};

/// The reason why a connection failed.
#[derive(Debug, Error)]
pub enum PlainError {
    /// The address is invalid.
    #[error(transparent)]
    Address(#[from] HelloError),
    /// Nothing listens there.
    #[error(
        "nobody can be reached at {to}: {why}; start the program that answers there first, and \
         look whether a firewall is in between"
    )]
    Absent {
        /// Where.
        to: String,
        /// What the kernel said.
        why: String,
    },
}

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that is connected to `to` (HOST:PORT), blocking, TCP without delay; and the address.
/// Whether anybody answers datagrams there is not known yet.
///
/// # Errors
/// It is not an address, or nothing listens there.
pub fn connect(kind: CarrierKind, to: &str) -> Result<(OwnedFd, String), PlainError> {
    let mut last = String::from("the name has no address");
    for address in addresses(to)? {
        let socket = match kind {
            CarrierKind::Tcp => by_tcp(address),
            CarrierKind::Udp => by_udp(address),
        };
        match socket {
            Ok(socket) => return Ok((socket, address.to_string())),
            Err(error) => last = error.to_string(),
        }
    }
    Err(PlainError::Absent { to: to.into(), why: last })
}

fn by_tcp(address: SocketAddr) -> std::io::Result<OwnedFd> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    Ok(stream.into())
}

fn by_udp(address: SocketAddr) -> std::io::Result<OwnedFd> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_is_reached_and_who_does_not_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap().to_string();
        let (_socket, address) = connect(CarrierKind::Tcp, &to).unwrap();
        assert_eq!(address, to);
        drop(listener);
        let error = connect(CarrierKind::Tcp, &to).unwrap_err().to_string();
        assert!(error.contains(&to) && error.contains("refused"), "{error}");
        connect(CarrierKind::Udp, &to).unwrap();
        assert!(
            connect(CarrierKind::Udp, "127.0.0.1").unwrap_err().to_string().contains("HOST:PORT")
        );
    }
}
