//! Who is let in: the echo's side of the handshake, without sockets.

use std::{io, net::SocketAddr};

use tardy_hot::{echo::Bucket, packet};

use super::DoorSummary;
use crate::transports::hello::{
    Ask, Code, Message, Mode, Nonce, PROTOCOL, Reason, Secret, Unread, own_version, proof,
};

/// Answers per second at the door, to all together: enough for anybody who asks in earnest, too few
/// to be a burden or to guess tokens.
const ANSWERS_PER_S: u64 = 500;

/// What comes of something that was said.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing is said.
    Silence,
    /// This is said.
    Say(Message),
    /// Somebody who knows the token wants to be served.
    LetIn(Guest),
}

/// Who is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Its nonce, which is in the welcome.
    pub nonce: Nonce,
    /// What it wants.
    pub ask: Ask,
    /// The cookie that it showed.
    pub cookie: Code,
    /// Its session.
    pub session: u64,
}

/// The door.
#[derive(Debug)]
pub struct Door {
    secret: Secret,
    token: Vec<u8>,
    rate_max: u64,
    size_max: u32,
    bucket: Bucket,
    /// What was said so far.
    pub said: DoorSummary,
}

impl Door {
    /// A door that opens to those who know `token`.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn new(token: Vec<u8>, rate_max: u64, size_max: u32, now_ns: i64) -> io::Result<Self> {
        let (secret, said) = (Secret::random()?, DoorSummary::default());
        let bucket = Bucket::new(ANSWERS_PER_S, now_ns);
        Ok(Self { secret, token, rate_max, size_max, bucket, said })
    }

    /// What to do about `bytes` that came from `peer`.
    pub fn hear(&mut self, peer: SocketAddr, bytes: &[u8], now_ns: i64) -> Reply {
        let heard = Message::read(bytes);
        let nonce = match &heard {
            Ok(Message::Hello { nonce, .. } | Message::Proof { nonce, .. }) => *nonce,
            Err(Unread::Version { nonce, .. }) => *nonce,
            _ => {
                self.said.garbage += 1;
                return Reply::Silence;
            }
        };
        if !self.bucket.take(|| now_ns) {
            self.said.over_rate += 1;
            return Reply::Silence;
        }
        match heard {
            Ok(Message::Proof { ask, stamp_s, cookie, .. })
                if self.secret.knows(peer, &nonce, stamp_s, &cookie) =>
            {
                if !proof::is_fresh(stamp_s, seconds(now_ns)) {
                    return self.challenge(peer, nonce, now_ns);
                }
                let session = self.secret.session(&cookie);
                let guest = Guest { nonce, ask, cookie, session };
                heard.map_or(Reply::Silence, |message| self.judge(&message, guest))
            }
            Ok(Message::Hello { .. }) => {
                self.said.hellos += 1;
                self.challenge(peer, nonce, now_ns)
            }
            Err(Unread::Version { .. }) => {
                self.said.other_version += 1;
                Reply::Say(refusal(nonce, Reason::Protocol, 0))
            }
            // A cookie that was not made here, or not for that address.
            _ => {
                self.said.garbage += 1;
                Reply::Silence
            }
        }
    }

    /// A proof whose cookie is good.
    fn judge(&mut self, message: &Message, guest: Guest) -> Reply {
        let Guest { nonce, ask, .. } = guest;
        if !proof::is_proven(&self.token, message) {
            self.said.wrong_token += 1;
            return Reply::Say(refusal(nonce, Reason::Token, 0));
        }
        let size_min = match ask.mode {
            Mode::PingPong => 1,
            Mode::Stream => packet::LEN as u32,
        };
        if !(size_min..=self.size_max).contains(&ask.size) {
            return self.refuse(nonce, Reason::Size, self.size_max.into());
        }
        if ask.rate > self.rate_max {
            return self.refuse(nonce, Reason::Rate, self.rate_max);
        }
        Reply::LetIn(guest)
    }

    /// Refuses because of a limit, and counts it.
    pub fn refuse(&mut self, nonce: Nonce, reason: Reason, limit: u64) -> Reply {
        self.said.refused += 1;
        Reply::Say(refusal(nonce, reason, limit))
    }

    /// Welcomes a guest whose socket holds so many bytes unread and unsent.
    #[must_use]
    pub fn welcome(&self, guest: &Guest, buffers: (u32, u32)) -> Message {
        proof::welcome(&self.token, guest.nonce, guest.session, buffers)
    }

    fn challenge(&self, peer: SocketAddr, nonce: Nonce, now_ns: i64) -> Reply {
        let stamp_s = seconds(now_ns);
        let cookie = self.secret.cookie(peer, &nonce, stamp_s);
        Reply::Say(Message::Challenge { nonce, stamp_s, cookie })
    }
}

fn seconds(now_ns: i64) -> u64 {
    u64::try_from(now_ns / 1_000_000_000).unwrap_or(0)
}

fn refusal(nonce: Nonce, reason: Reason, limit: u64) -> Message {
    let version = own_version().to_owned();
    Message::Refused { nonce, protocol: PROTOCOL, reason, limit, version }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::hello::{ASK_LEN, NONCE_LEN};

    const SECOND: i64 = 1_000_000_000;
    const ASK: Ask = Ask { mode: Mode::PingPong, size: 8, rate: 0 };
    const NONCE: Nonce = [5; NONCE_LEN];

    fn door() -> Door {
        Door::new(b"the token".to_vec(), 1000, 64, 0).unwrap()
    }

    fn peer() -> SocketAddr {
        "192.0.2.7:4711".parse().unwrap()
    }

    fn proof_at(door: &mut Door, token: &[u8], ask: Ask, now_ns: i64) -> Message {
        let hello = Message::Hello { nonce: NONCE, ask };
        let reply = door.hear(peer(), &hello.write(), now_ns);
        let Reply::Say(Message::Challenge { stamp_s, cookie, .. }) = reply else {
            panic!("{reply:?}")
        };
        proof::proof(token, NONCE, ask, stamp_s, cookie)
    }

    fn tried(token: &[u8], ask: Ask) -> Reply {
        let mut door = door();
        let proof = proof_at(&mut door, token, ask, SECOND);
        door.hear(peer(), &proof.write(), SECOND)
    }

    fn reason(reply: &Reply) -> Option<(Reason, u64)> {
        match reply {
            Reply::Say(Message::Refused { reason, limit, .. }) => Some((*reason, *limit)),
            _ => None,
        }
    }

    #[test]
    fn who_knows_the_token_is_let_in_and_twice_into_the_same_session() {
        let mut door = door();
        let proof = proof_at(&mut door, b"the token", ASK, SECOND).write();
        let first = door.hear(peer(), &proof, SECOND);
        let Reply::LetIn(guest) = &first else { panic!("{first:?}") };
        assert_eq!((guest.ask, guest.nonce), (ASK, NONCE));
        assert_eq!(door.hear(peer(), &proof, 2 * SECOND), first);
        assert!(proof::is_proven(b"the token", &door.welcome(guest, (1, 1))));
    }

    #[test]
    fn another_token_is_refused() {
        let refused = (Reason::Token, 0);
        assert_eq!(reason(&tried(b"a token", ASK)), Some(refused));
        assert_eq!(reason(&tried(b"", ASK)), Some(refused));
    }

    #[test]
    fn sizes_and_rates_beyond_the_limits_are_refused_with_the_limit() {
        for (mode, size, is_good) in [
            (Mode::PingPong, 1, true),
            (Mode::PingPong, 0, false),
            (Mode::PingPong, 64, true),
            (Mode::PingPong, 65, false),
            (Mode::PingPong, u32::MAX, false),
            (Mode::Stream, 56, true),
            (Mode::Stream, 55, false),
        ] {
            let reply = tried(b"the token", Ask { mode, size, rate: 1000 });
            let expected = (!is_good).then_some((Reason::Size, 64));
            assert_eq!(reason(&reply), expected, "{mode:?} {size}");
        }
        let reply = tried(b"the token", Ask { rate: 1001, ..ASK });
        assert_eq!(reason(&reply), Some((Reason::Rate, 1000)));
    }

    #[test]
    fn a_cookie_of_another_address_is_met_with_silence_and_an_old_one_with_a_new_one() {
        let mut door = door();
        let proof = proof_at(&mut door, b"the token", ASK, SECOND).write();
        let elsewhere = "192.0.2.8:4711".parse().unwrap();
        assert_eq!(door.hear(elsewhere, &proof, SECOND), Reply::Silence);
        let late = door.hear(peer(), &proof, 60 * SECOND);
        assert!(matches!(late, Reply::Say(Message::Challenge { stamp_s: 60, .. })), "{late:?}");
    }

    #[test]
    fn garbage_is_met_with_silence_and_another_version_with_a_refusal() {
        let mut door = door();
        for garbage in [&[][..], &[0; ASK_LEN], b"tdyh", &[b't'; 2000]] {
            assert_eq!(door.hear(peer(), garbage, 0), Reply::Silence);
        }
        let mut hello = Message::Hello { nonce: NONCE, ask: ASK }.write();
        hello[5] = 1;
        let reply = door.hear(peer(), &hello, 0);
        assert_eq!(reason(&reply), Some((Reason::Protocol, 0)));
        // What only echoes say is no question: two echoes never talk to each other.
        let Reply::Say(refusal) = reply else { panic!("{reply:?}") };
        assert_eq!(door.hear(peer(), &refusal.write(), 0), Reply::Silence);
        assert_eq!((door.said.garbage, door.said.other_version), (5, 1));
    }

    #[test]
    fn at_the_door_no_more_is_answered_than_bounded() {
        let mut door = door();
        let hello = Message::Hello { nonce: NONCE, ask: ASK }.write();
        let answered = |door: &mut Door, now_ns| {
            (0..2000).filter(|_| door.hear(peer(), &hello, now_ns) != Reply::Silence).count()
        };
        assert_eq!(answered(&mut door, 0), ANSWERS_PER_S as usize);
        assert_eq!(answered(&mut door, SECOND), ANSWERS_PER_S as usize);
        assert_eq!(door.said.over_rate, 3000);
    }
}
