//! The handshake of a `tardy echo` and its peers before messages flow: the bytes, and the
//! proof that the other end knows the token. Pure; sockets are in `connect` and in `echo`.
//!
//! | sender | message | effect |
//! | --- | --- | --- |
//! | near | [`HelloMessage::Hello`]: a nonce, and what it asks for | |
//! | echo | [`HelloMessage::Challenge`]: a cookie made of the address | it has stored nothing yet |
//! | near | [`HelloMessage::Proof`]: the cookie, and a code by the token | it is at that address |
//! | echo | [`HelloMessage::Welcome`]: a session, and a code by the token | it knows it too |
//! | echo | or [`HelloMessage::Refused`]: why | |
//!
//! The local endpoint's messages have [`ASK_LEN`] bytes and the echo's [`ANSWER_LEN`], fewer: an
//! echo never sends more than it was sent. The first 24 bytes, and the whole of `Refused`, are the
//! same in every version of the protocol, so that an old and a new end understand why they do not
//! understand each other. After `Welcome`, messages are as the transport sends them and are no
//! longer authenticated.

pub mod connect;
pub mod proof;
pub mod token;

use std::net::SocketAddr;

pub use connect::{CarrierKind, Connected, HelloError, connect};
pub use proof::Secret;
pub use token::read_token;

/// The version of what is said here. Another one is refused.
pub const PROTOCOL: u16 = 1;

/// Bytes of each message of the local endpoint.
pub const ASK_LEN: usize = 128;

/// Bytes of each message of an echo.
pub const ANSWER_LEN: usize = 96;

/// How every message begins. No packet of a stream and no message of a ping-pong does.
pub const MAGIC: [u8; 4] = *b"tdyh";

/// Bytes of a nonce.
pub const NONCE_LEN: usize = 16;

/// Bytes of a cookie and of a code.
pub const CODE_LEN: usize = 32;

/// The longest version string.
const VERSION_LEN: usize = 24;

/// Where in a `Proof` its code begins; it covers everything before.
const PROOF_AT: usize = 80;

/// Where in a `Welcome` its code begins.
const WELCOME_AT: usize = 64;

/// A number that is used once.
pub type Nonce = [u8; NONCE_LEN];

/// A cookie, or a code by a token (HMAC-SHA256).
pub type Code = [u8; CODE_LEN];

/// What is sent to an echo after the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    /// Messages of one size, each sent back as it is.
    PingPong,
    /// Packets of `tardy_hot::packet`, each sent back with the echo's times in it.
    Stream,
}

/// What the local endpoint asks an echo for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// What will be sent.
    pub mode: EchoMode,
    /// Bytes of one message.
    pub size: u32,
    /// Messages per second; 0 where each waits for the one before.
    pub rate: u64,
}

/// Why an echo does not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It speaks another version of the protocol.
    Protocol,
    /// The code was made with another token.
    Token,
    /// It serves as many peers as it can; the limit is their number.
    Full,
    /// Messages are larger than it takes, or too small; the limit is the largest, in bytes.
    Size,
    /// More messages per second than it answers; the limit is how many it does.
    Rate,
    /// It cannot for its own reason machine.
    Trouble,
}

impl Reason {
    const ALL: [Self; 6] =
        [Self::Protocol, Self::Token, Self::Full, Self::Size, Self::Rate, Self::Trouble];

    const fn number(self) -> u8 {
        match self {
            Self::Protocol => 1,
            Self::Token => 2,
            Self::Full => 3,
            Self::Size => 4,
            Self::Rate => 5,
            Self::Trouble => 6,
        }
    }
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelloMessage {
    /// The local endpoint's first word.
    Hello {
        /// Random; all that follows carries it.
        nonce: Nonce,
        /// What it wants.
        ask: Ask,
    },
    /// The echo's answer to anybody.
    Challenge {
        /// The local endpoint's.
        nonce: Nonce,
        /// When the cookie was made, seconds of the echo's clock.
        stamp_s: u64,
        /// To be sent back as it is.
        cookie: Code,
    },
    /// The local endpoint shows that it has the answer, and the token.
    Proof {
        /// As in `Hello`.
        nonce: Nonce,
        /// As in `Hello`.
        ask: Ask,
        /// As in `Challenge`.
        stamp_s: u64,
        /// As in `Challenge`.
        cookie: Code,
        /// Over everything before it, by the token.
        code: Code,
    },
    /// The echo serves from now on.
    Welcome {
        /// The local endpoint's.
        nonce: Nonce,
        /// To be written into the packets of a stream.
        session: u64,
        /// Bytes that the echo's socket holds unread, as its kernel says.
        receive_buffer: u32,
        /// Bytes that it holds unsent.
        send_buffer: u32,
        /// The echo's version of tardy.
        version: String,
        /// Over everything before it, by the token.
        code: Code,
    },
    /// The echo does not serve.
    Refused {
        /// The local endpoint's.
        nonce: Nonce,
        /// The version of the protocol that the echo speaks.
        protocol: u16,
        /// Why.
        reason: Reason,
        /// What it would take; its meaning depends on the reason.
        limit: u64,
        /// The echo's version of tardy.
        version: String,
    },
}

/// What is not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Not of this protocol, or damaged.
    Foreign,
    /// Of another version of it.
    Version {
        /// Which.
        protocol: u16,
        /// The sender's nonce.
        nonce: Nonce,
    },
}

impl HelloMessage {
    /// Reads what the local endpoint or an echo sent: the whole of one datagram, or as many bytes
    /// of a stream as its message has.
    ///
    /// # Errors
    /// What it is instead.
    pub fn read(bytes: &[u8]) -> Result<Self, Unread> {
        let head = bytes.first_chunk::<ANSWER_LEN>().ok_or(Unread::Foreign)?;
        if head[..4] != MAGIC || head[7] != 0 {
            return Err(Unread::Foreign);
        }
        let (protocol, kind) = (u16::from_le_bytes([head[4], head[5]]), head[6]);
        let nonce: Nonce = array(head, 8);
        // A refusal is the same in all versions: it is how others say which one they are.
        if protocol != PROTOCOL && kind != REFUSED {
            return Err(Unread::Version { protocol, nonce });
        }
        let read = match kind {
            HELLO => read_ask(&bytes[24..]).map(|ask| Self::Hello { nonce, ask }),
            CHALLENGE => {
                let (stamp_s, cookie) = (word(head, 24), array(head, 32));
                Some(Self::Challenge { nonce, stamp_s, cookie })
            }
            PROOF => bytes.first_chunk().and_then(|bytes| read_proof(nonce, bytes)),
            WELCOME => read_welcome(nonce, head),
            REFUSED => read_refused(nonce, protocol, head),
            _ => None,
        };
        let read = read.ok_or(Unread::Foreign)?;
        if bytes.len() == read.length() { Ok(read) } else { Err(Unread::Foreign) }
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::Hello { .. } | Self::Proof { .. } => ASK_LEN,
            Self::Challenge { .. } | Self::Welcome { .. } | Self::Refused { .. } => ANSWER_LEN,
        }
    }

    /// The bytes to send.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.protocol().to_le_bytes());
        bytes[6] = self.kind();
        bytes[8..24].copy_from_slice(self.nonce());
        match self {
            Self::Hello { ask, .. } => write_ask(&mut bytes[24..], *ask),
            Self::Challenge { stamp_s, cookie, .. } => {
                bytes[24..32].copy_from_slice(&stamp_s.to_le_bytes());
                bytes[32..64].copy_from_slice(cookie);
            }
            Self::Proof { ask, stamp_s, cookie, code, .. } => {
                write_ask(&mut bytes[24..], *ask);
                bytes[40..48].copy_from_slice(&stamp_s.to_le_bytes());
                bytes[48..PROOF_AT].copy_from_slice(cookie);
                bytes[PROOF_AT..PROOF_AT + CODE_LEN].copy_from_slice(code);
            }
            Self::Welcome { session, receive_buffer, send_buffer, version, code, .. } => {
                bytes[24..32].copy_from_slice(&session.to_le_bytes());
                bytes[32..36].copy_from_slice(&receive_buffer.to_le_bytes());
                bytes[36..40].copy_from_slice(&send_buffer.to_le_bytes());
                write_version(&mut bytes[40..WELCOME_AT], version);
                bytes[WELCOME_AT..WELCOME_AT + CODE_LEN].copy_from_slice(code);
            }
            Self::Refused { reason, limit, version, .. } => {
                bytes[24] = reason.number();
                bytes[32..40].copy_from_slice(&limit.to_le_bytes());
                write_version(&mut bytes[40..64], version);
            }
        }
        bytes
    }

    /// The local endpoint's nonce, which every message carries.
    #[must_use]
    pub const fn nonce(&self) -> &Nonce {
        match self {
            Self::Hello { nonce, .. }
            | Self::Challenge { nonce, .. }
            | Self::Proof { nonce, .. }
            | Self::Welcome { nonce, .. }
            | Self::Refused { nonce, .. } => nonce,
        }
    }

    const fn protocol(&self) -> u16 {
        match self {
            Self::Refused { protocol, .. } => *protocol,
            _ => PROTOCOL,
        }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Challenge { .. } => CHALLENGE,
            Self::Proof { .. } => PROOF,
            Self::Welcome { .. } => WELCOME,
            Self::Refused { .. } => REFUSED,
        }
    }
}

const HELLO: u8 = 1;
const CHALLENGE: u8 = 2;
const PROOF: u8 = 3;
const WELCOME: u8 = 4;
const REFUSED: u8 = 5;

fn array<const N: usize>(head: &[u8; ANSWER_LEN], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&head[at..at + N]);
    array
}

fn word(head: &[u8; ANSWER_LEN], at: usize) -> u64 {
    u64::from_le_bytes(array(head, at))
}

/// A mode, three zeros, a size, a rate.
fn read_ask(bytes: &[u8]) -> Option<Ask> {
    let [mode, 0, 0, 0, rest @ ..] = bytes.first_chunk::<16>()? else { return None };
    let mode = match mode {
        1 => EchoMode::PingPong,
        2 => EchoMode::Stream,
        _ => return None,
    };
    let size = u32::from_le_bytes(*rest.first_chunk()?);
    let rate = u64::from_le_bytes(*rest.last_chunk()?);
    Some(Ask { mode, size, rate })
}

fn write_ask(bytes: &mut [u8], ask: Ask) {
    bytes[0] = match ask.mode {
        EchoMode::PingPong => 1,
        EchoMode::Stream => 2,
    };
    bytes[4..8].copy_from_slice(&ask.size.to_le_bytes());
    bytes[8..16].copy_from_slice(&ask.rate.to_le_bytes());
}

fn read_proof(nonce: Nonce, bytes: &[u8; ASK_LEN]) -> Option<HelloMessage> {
    let ask = read_ask(&bytes[24..])?;
    let head = bytes.first_chunk()?;
    let mut code = [0; CODE_LEN];
    code.copy_from_slice(&bytes[PROOF_AT..PROOF_AT + CODE_LEN]);
    let (stamp_s, cookie) = (word(head, 40), array(head, 48));
    Some(HelloMessage::Proof { nonce, ask, stamp_s, cookie, code })
}

fn read_welcome(nonce: Nonce, head: &[u8; ANSWER_LEN]) -> Option<HelloMessage> {
    Some(HelloMessage::Welcome {
        nonce,
        session: word(head, 24),
        receive_buffer: u32::from_le_bytes(array(head, 32)),
        send_buffer: u32::from_le_bytes(array(head, 36)),
        version: read_version(&head[40..WELCOME_AT])?,
        code: array(head, WELCOME_AT),
    })
}

fn read_refused(nonce: Nonce, protocol: u16, head: &[u8; ANSWER_LEN]) -> Option<HelloMessage> {
    let known = |reason: &Reason| reason.number() == head[24];
    // A later version may have more reasons; which one it is says enough then.
    let other = (protocol != PROTOCOL).then_some(Reason::Protocol);
    let reason = Reason::ALL.into_iter().find(known).or(other)?;
    let (limit, version) = (word(head, 32), read_version(&head[40..64])?);
    Some(HelloMessage::Refused { nonce, protocol, reason, limit, version })
}

/// Printable ASCII, then zeros: it is printed on a terminal.
fn read_version(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(end);
    let is_good = text.iter().all(u8::is_ascii_graphic) && rest.iter().all(|byte| *byte == 0);
    is_good.then(|| String::from_utf8_lossy(text).into_owned())
}

fn write_version(bytes: &mut [u8], version: &str) {
    let text = version.bytes().filter(u8::is_ascii_graphic).take(VERSION_LEN);
    for (place, byte) in bytes.iter_mut().zip(text) {
        *place = byte;
    }
}

/// The version of this tardy.
#[must_use]
pub const fn own_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The bytes of an address that a cookie is made for: the IP as IPv6, then the port.
fn address_bytes(peer: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    let ip = match peer.ip() {
        std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        std::net::IpAddr::V6(ip) => ip,
    };
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&peer.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests;
