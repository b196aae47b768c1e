//! The local endpoint's handshake: finds an echo, proves that it knows the token, returns the
//! socket.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use thiserror::Error;

use super::{ANSWER_LEN, Ask, HelloMessage, PROTOCOL, Reason, Unread, own_version, proof};

/// How long an echo may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long until a datagram is sent once more, at first; then twice as long, and so on.
const AGAIN: Duration = Duration::from_millis(100);

/// More answers than anybody has questions for.
const MOST_DRAINED: u32 = 1000;

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarrierKind {
    /// Datagrams.
    Udp,
    /// A stream, sent without delay.
    Tcp,
}

/// An echo that serves.
#[derive(Debug)]
pub struct Connected {
    /// Connected, blocking, without a time limit; TCP without delay.
    pub socket: OwnedFd,
    /// The session, which the packets of a stream carry.
    pub session: u64,
    /// The echo's version of tardy.
    pub version: String,
    /// `192.0.2.7:7117`.
    pub address: String,
    /// Bytes that the echo's socket holds unread, and unsent.
    pub buffers: (u32, u32),
}

/// The reason why a session with an echo did not begin.
#[derive(Debug, Error)]
pub enum HelloError {
    /// The address is invalid.
    #[error("--to {to}: {why}; write HOST:PORT, as in 192.0.2.7:7117 or [2001:db8::7]:7117")]
    Address {
        /// As typed.
        to: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing listens there.
    #[error(
        "nobody listens at {to} ({why}): start `tardy echo --listen {to}` on that machine, and \
         look whether a firewall lets {kind} through"
    )]
    Absent {
        /// Where.
        to: String,
        /// What the kernel said, or how long nothing came.
        why: String,
        /// `tcp` or `udp`.
        kind: &'static str,
    },
    /// It speaks another version.
    #[error(
        "the echo at {to} is tardy {version} with protocol {theirs}, this is tardy {} with \
         protocol {PROTOCOL}: use the same version on both",
        own_version()
    )]
    Version {
        /// Where.
        to: String,
        /// Its version of tardy.
        version: String,
        /// Its version of the protocol.
        theirs: u16,
    },
    /// The tokens differ.
    #[error(
        "the echo at {to} has another token: give both ends a --token-file with the same content"
    )]
    Token {
        /// Where.
        to: String,
    },
    /// It is asked for more than it gives.
    #[error("the echo at {to} refuses: {why}")]
    Limits {
        /// Where.
        to: String,
        /// Which limit, and the remedy.
        why: String,
    },
    /// What answers is not an echo of tardy, or goes away meanwhile.
    #[error("the program at {to} is not a tardy echo: {why}; check what listens on that port")]
    Stranger {
        /// Where.
        to: String,
        /// What it did.
        why: String,
    },
    /// This machine's own trouble.
    #[error("cannot talk to the echo at {to}: {why}")]
    Io {
        /// Where.
        to: String,
        /// What the kernel said.
        why: io::Error,
    },
    /// The token cannot be used.
    #[error("--token-file {file}: {why}")]
    TokenFile {
        /// Which file.
        file: String,
        /// What is wrong with it, and the remedy.
        why: String,
    },
}

/// Connects to the echo at `to` (HOST:PORT) and agrees on what will be sent. An empty token is what
/// an echo on loopback has when it was given none.
///
/// # Errors
/// The reason why the session did not begin; each says what to do.
pub fn connect(
    kind: CarrierKind,
    to: &str,
    token: &[u8],
    ask: Ask,
) -> Result<Connected, HelloError> {
    let mut last = None;
    for address in addresses(to)? {
        let near = Near { to, address, token, ask };
        match near.connect(kind) {
            Ok(connected) => return Ok(connected),
            // Another address of the same name may be the one.
            Err(error @ (HelloError::Absent { .. } | HelloError::Io { .. })) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    let none = || HelloError::Address { to: to.into(), why: "the name has no address".into() };
    Err(last.unwrap_or_else(none))
}

pub(in crate::transports) fn addresses(to: &str) -> Result<Vec<SocketAddr>, HelloError> {
    let wrong = |why: String| HelloError::Address { to: to.into(), why };
    let port = to.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none_or(|port| port == 0) {
        return Err(wrong("it has no port from 1 to 65535".into()));
    }
    let found = to.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    Ok(found.collect())
}

/// One try with one address.
struct Near<'a> {
    to: &'a str,
    address: SocketAddr,
    token: &'a [u8],
    ask: Ask,
}

impl Near<'_> {
    fn connect(&self, kind: CarrierKind) -> Result<Connected, HelloError> {
        match kind {
            CarrierKind::Tcp => self.by_tcp(),
            CarrierKind::Udp => self.by_udp(),
        }
    }

    fn by_tcp(&self) -> Result<Connected, HelloError> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)
            .map_err(|error| self.failed(error, "tcp"))?;
        let limited = stream.set_nodelay(true).and_then(|()| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))
        });
        limited.map_err(|error| self.io(error))?;
        let welcome = self.talk(|message| {
            stream.write_all(&message.write()).map_err(|error| self.failed(error, "tcp"))?;
            let mut answer = [0; ANSWER_LEN];
            stream.read_exact(&mut answer).map_err(|error| self.failed(error, "tcp"))?;
            self.read(&answer)
        })?;
        let unlimited = stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None));
        unlimited.map_err(|error| self.io(error))?;
        Ok(self.connected(stream.into(), welcome))
    }

    fn by_udp(&self) -> Result<Connected, HelloError> {
        let any: SocketAddr = match self.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)
            .and_then(|socket| socket.connect(self.address).map(|()| socket))
            .map_err(|error| self.failed(error, "udp"))?;
        let mut repeated = false;
        let welcome = self.talk(|message| self.ask_by_udp(&socket, message, &mut repeated))?;
        drain(&socket, if repeated { AGAIN * 2 } else { Duration::ZERO })
            .and_then(|()| socket.set_read_timeout(None))
            .map_err(|error| self.io(error))?;
        Ok(self.connected(socket.into(), welcome))
    }

    /// Sends it, and once more where no answer comes: datagrams may be lost.
    fn ask_by_udp(
        &self,
        socket: &UdpSocket,
        message: &HelloMessage,
        repeated: &mut bool,
    ) -> Result<HelloMessage, HelloError> {
        let (bytes, start) = (message.write(), Instant::now());
        let mut wait = AGAIN;
        while start.elapsed() < PATIENCE {
            socket.send(&bytes).map_err(|error| self.failed(error, "udp"))?;
            let until = Instant::now() + wait;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                let left = left.max(Duration::from_millis(1));
                socket.set_read_timeout(Some(left)).map_err(|error| self.io(error))?;
                let mut answer = [0; ANSWER_LEN + 1];
                match socket.recv(&mut answer) {
                    Ok(length) => match self.read(&answer[..length]) {
                        Ok(answer) if answer.follows(message) => return Ok(answer),
                        // Late ones, and what others sent.
                        Ok(_) | Err(HelloError::Stranger { .. }) => {}
                        Err(error) => return Err(error),
                    },
                    Err(error) if is_late(&error) => break,
                    Err(error) => return Err(self.failed(error, "udp")),
                }
            }
            (*repeated, wait) = (true, wait * 2);
        }
        Err(self.failed(ErrorKind::TimedOut.into(), "udp"))
    }

    /// The whole handshake, over what sends a message and brings its answer.
    fn talk(
        &self,
        mut exchange: impl FnMut(&HelloMessage) -> Result<HelloMessage, HelloError>,
    ) -> Result<HelloMessage, HelloError> {
        let nonce = proof::nonce().map_err(|error| self.io(error))?;
        let mut answer = exchange(&HelloMessage::Hello { nonce, ask: self.ask })?;
        // A second challenge is for a cookie that has become too old meanwhile.
        for _ in 0..2 {
            let HelloMessage::Challenge { nonce: of, stamp_s, cookie } = answer else { break };
            if of != nonce {
                return Err(self.stranger("its answer belongs to another request"));
            }
            answer = exchange(&proof::proof(self.token, nonce, self.ask, stamp_s, cookie))?;
        }
        if *answer.nonce() != nonce {
            return Err(self.stranger("its answer belongs to another request"));
        }
        match answer {
            HelloMessage::Welcome { .. } if proof::is_proven(self.token, &answer) => Ok(answer),
            HelloMessage::Welcome { .. } => Err(HelloError::Token { to: self.to.into() }),
            HelloMessage::Refused { protocol, reason, limit, version, .. } => {
                Err(self.refused(protocol, reason, limit, version))
            }
            _ => Err(self.stranger("its answer does not match the request")),
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<HelloMessage, HelloError> {
        HelloMessage::read(bytes).map_err(|unread| match unread {
            Unread::Foreign => self.stranger("its answer is not in tardy's protocol"),
            Unread::Version { protocol, .. } => {
                self.refused(protocol, Reason::Protocol, 0, "(another version)".into())
            }
        })
    }

    fn refused(&self, theirs: u16, reason: Reason, limit: u64, version: String) -> HelloError {
        let to = self.to.to_owned();
        let Ask { size, rate, .. } = self.ask;
        let why = match reason {
            Reason::Protocol => return HelloError::Version { to, version, theirs },
            Reason::Token => return HelloError::Token { to },
            Reason::Full => {
                format!("it already serves {limit} peers, its limit; wait until one has ended")
            }
            Reason::Size => format!(
                "it takes messages of up to {limit} bytes, and those of a stream have 56 or more; \
                 this is --size {size}. Ask for another one, or start it with --max-size {size}"
            ),
            Reason::Rate => format!(
                "it answers {limit} messages per second, this asks for {rate}. Lower --rate, or \
                 start it with --max-rate {rate}pps"
            ),
            Reason::Trouble => "it could not create a socket or a thread; check its output".into(),
        };
        HelloError::Limits { to, why }
    }

    /// The error that a failed system call means here.
    fn failed(&self, error: io::Error, kind: &'static str) -> HelloError {
        let to = self.to.to_owned();
        match error.kind() {
            ErrorKind::ConnectionRefused => {
                HelloError::Absent { to, why: "the connection was refused".into(), kind }
            }
            _ if is_late(&error) => {
                let why = format!("no answer in {} s", PATIENCE.as_secs());
                HelloError::Absent { to, why, kind }
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                self.stranger("it closed the connection")
            }
            _ => self.io(error),
        }
    }

    fn stranger(&self, why: &str) -> HelloError {
        HelloError::Stranger { to: self.to.into(), why: why.into() }
    }

    fn io(&self, why: io::Error) -> HelloError {
        HelloError::Io { to: self.to.into(), why }
    }

    fn connected(&self, socket: OwnedFd, welcome: HelloMessage) -> Connected {
        let address = self.address.to_string();
        let (session, version, buffers) = match welcome {
            HelloMessage::Welcome { session, version, receive_buffer, send_buffer, .. } => {
                (session, version, (receive_buffer, send_buffer))
            }
            _ => (0, String::new(), (0, 0)),
        };
        Connected { socket, session, version, address, buffers }
    }
}

impl HelloMessage {
    /// Whether it may be the answer to `asked`, and not a late one to what was said before.
    fn follows(&self, asked: &Self) -> bool {
        let is_late = matches!((self, asked), (Self::Challenge { stamp_s, cookie, .. },
            Self::Proof { stamp_s: shown_s, cookie: shown, .. })
            if stamp_s == shown_s && cookie == shown);
        self.nonce() == asked.nonce() && !is_late
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Takes away the answers to what was said twice, so that none is met by the first messages.
fn drain(socket: &UdpSocket, longest: Duration) -> io::Result<()> {
    let until = Instant::now() + longest;
    for _ in 0..MOST_DRAINED {
        let left = until.saturating_duration_since(Instant::now());
        socket.set_read_timeout(Some(left.max(Duration::from_micros(1))))?;
        if socket.recv(&mut [0; 1]).is_err_and(|error| is_late(&error)) {
            break;
        }
    }
    Ok(())
}
