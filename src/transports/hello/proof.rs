//! Authentication codes: HMAC-SHA256 with the shared token, or with a secret of the echo.

use std::{io, net::SocketAddr};

use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::Sha256;

use super::{
    Ask, CODE_LEN, Code, HelloMessage, Nonce, PROOF_AT, WELCOME_AT, address_bytes, own_version,
};

/// What keeps a code for one purpose from being taken for another.
const PROOF: &[u8] = b"tardy proof";
const WELCOME: &[u8] = b"tardy welcome";
const COOKIE: &[u8] = b"tardy cookie";
const SESSION: &[u8] = b"tardy session";

/// How old a cookie may be, seconds.
const COOKIE_AGE_S: u64 = 10;

/// An echo's own secret: it makes cookies, so that nothing need be kept of a peer that has proven
/// nothing.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A random one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn random() -> io::Result<Self> {
        random().map(Self)
    }

    /// The cookie of a peer.
    #[must_use]
    pub fn cookie(&self, peer: SocketAddr, nonce: &Nonce, stamp_s: u64) -> Code {
        let parts = [COOKIE, &address_bytes(peer), nonce, &stamp_s.to_le_bytes()];
        mac(&self.0, &parts).finalize().into_bytes().into()
    }

    /// Whether `cookie` was made by this secret, for that peer, a short while ago.
    #[must_use]
    pub fn knows(&self, peer: SocketAddr, nonce: &Nonce, stamp_s: u64, cookie: &Code) -> bool {
        let parts = [COOKIE, &address_bytes(peer), nonce, &stamp_s.to_le_bytes()];
        mac(&self.0, &parts).verify_slice(cookie).is_ok()
    }

    /// The number of the session that this cookie leads to: the same each time it is shown.
    #[must_use]
    pub fn session(&self, cookie: &Code) -> u64 {
        let code: Code = mac(&self.0, &[SESSION, cookie]).finalize().into_bytes().into();
        u64::from_le_bytes(code.first_chunk().copied().unwrap_or_default())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Whether a cookie of `stamp_s` may still be shown at `now_s`.
#[must_use]
pub const fn is_fresh(stamp_s: u64, now_s: u64) -> bool {
    stamp_s <= now_s && now_s - stamp_s <= COOKIE_AGE_S
}

/// A nonce that cannot be guessed.
///
/// # Errors
/// What the kernel says.
pub fn nonce() -> io::Result<Nonce> {
    random()
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// A `Proof` with the code that `token` makes of it.
#[must_use]
pub fn proof(token: &[u8], nonce: Nonce, ask: Ask, stamp_s: u64, cookie: Code) -> HelloMessage {
    let unsigned = HelloMessage::Proof { nonce, ask, stamp_s, cookie, code: [0; CODE_LEN] }.write();
    let code = mac(token, &[PROOF, &unsigned[..PROOF_AT]]).finalize().into_bytes().into();
    HelloMessage::Proof { nonce, ask, stamp_s, cookie, code }
}

/// A `Welcome` with the code that `token` makes of it.
#[must_use]
pub fn welcome(token: &[u8], nonce: Nonce, session: u64, buffers: (u32, u32)) -> HelloMessage {
    let with = |code| HelloMessage::Welcome {
        nonce,
        session,
        receive_buffer: buffers.0,
        send_buffer: buffers.1,
        version: own_version().to_owned(),
        code,
    };
    let unsigned = with([0; CODE_LEN]).write();
    with(mac(token, &[WELCOME, &unsigned[..WELCOME_AT]]).finalize().into_bytes().into())
}

/// Whether a `Proof` or `Welcome` was made with this token; nothing else is.
#[must_use]
pub fn is_proven(token: &[u8], message: &HelloMessage) -> bool {
    let (purpose, end, code) = match message {
        HelloMessage::Proof { code, .. } => (PROOF, PROOF_AT, code),
        HelloMessage::Welcome { code, .. } => (WELCOME, WELCOME_AT, code),
        _ => return false,
    };
    mac(token, &[purpose, &message.write()[..end]]).verify_slice(code).is_ok()
}

/// Each part is preceded by its length, so that no two lists of parts are the same bytes.
fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // A key may have any length; only other kinds of code refuse some.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}
