//! Admission of peers: the echo's side of the handshake, without sockets.

use std::{io, net::SocketAddr};

use tardy_hot::packet;

use super::{AdmissionSummary, PEERS, fair_bucket::FairBucket};
use crate::transports::hello::{
    Ask, Code, EchoMode, HelloMessage, Nonce, PROTOCOL, Reason, Secret, Unread, own_version, proof,
};

/// Hellos that are answered per second, from all together. An answer is one code, keeps nothing and
/// is shorter than the hello. This rate costs a tenth of a CPU, and a flood of a few thousand
/// leaves room for honest clients.
const HELLOS_PER_S: u64 = 20_000;

/// Proofs that are checked per second, from one part of all networks: enough for one host that
/// takes all places and tries again, and far too few to guess tokens. Reached only after the
/// address check, so that hellos do not count, and what others prove does not either: else two
/// addresses without the token could keep out a client that has it.
const PROOFS_PER_S: u64 = 4 * PEERS as u64;

/// Parts that networks fall into for that: a client with 400 addresses to prove wrongly from keeps
/// out one network in ten. A client with enough of them to use all parts sends more than is heard.
const PROOF_PARTS: usize = 4096;

/// The reply to a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HelloReply {
    /// None.
    Silence,
    /// This message.
    Say(HelloMessage),
    /// A client that knows the token requests service.
    LetIn(EchoClient),
}

/// A client that is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EchoClient {
    /// Its nonce, which is in the welcome.
    pub nonce: Nonce,
    /// What it wants.
    pub ask: Ask,
    /// The cookie that it showed.
    pub cookie: Code,
    /// Its session.
    pub session: u64,
}

/// The admission.
#[derive(Debug)]
pub(super) struct Admission {
    secret: Secret,
    token: Vec<u8>,
    rate_max: u64,
    size_max: u32,
    hellos: FairBucket,
    proofs: FairBucket,
    /// What was said so far.
    pub said: AdmissionSummary,
}

impl Admission {
    /// A admission that opens to those who know `token`.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(super) fn new(
        token: Vec<u8>,
        rate_max: u64,
        size_max: u32,
        now_ns: i64,
    ) -> io::Result<Self> {
        let (secret, said) = (Secret::random()?, AdmissionSummary::default());
        let hellos = FairBucket::shared(HELLOS_PER_S, now_ns);
        let proofs = FairBucket::apart(PROOF_PARTS, PROOFS_PER_S, now_ns);
        Ok(Self { secret, token, rate_max, size_max, hellos, proofs, said })
    }

    /// What to do about `bytes` that came from `peer`.
    pub(super) fn receive(&mut self, peer: SocketAddr, bytes: &[u8], now_ns: i64) -> HelloReply {
        let heard = HelloMessage::read(bytes);
        let nonce = match &heard {
            Ok(HelloMessage::Hello { nonce, .. } | HelloMessage::Proof { nonce, .. }) => *nonce,
            Err(Unread::Version { nonce, .. }) => *nonce,
            _ => {
                self.said.garbage += 1;
                return HelloReply::Silence;
            }
        };
        // Whose cookie is good receives at its address.
        let is_known = matches!(&heard, Ok(HelloMessage::Proof { stamp_s, cookie, .. })
            if self.secret.knows(peer, &nonce, *stamp_s, cookie));
        if !is_known && matches!(heard, Ok(HelloMessage::Proof { .. })) {
            // A cookie that was not made here, or not for that address. It is not answered, and
            // takes nothing from the bound of hellos, which honest clients need.
            self.said.garbage += 1;
            return HelloReply::Silence;
        }
        let bucket = if is_known { &mut self.proofs } else { &mut self.hellos };
        if !bucket.take(peer.ip(), now_ns) {
            self.said.over_rate += 1;
            return HelloReply::Silence;
        }
        match heard {
            Ok(HelloMessage::Proof { ask, stamp_s, cookie, .. }) if is_known => {
                if !proof::is_fresh(stamp_s, seconds(now_ns)) {
                    return self.challenge(peer, nonce, now_ns);
                }
                let session = self.secret.session(&cookie);
                let client = EchoClient { nonce, ask, cookie, session };
                heard.map_or(HelloReply::Silence, |message| self.judge(&message, client))
            }
            Ok(HelloMessage::Hello { .. }) => {
                self.said.hellos += 1;
                self.challenge(peer, nonce, now_ns)
            }
            Err(Unread::Version { .. }) => {
                self.said.other_version += 1;
                HelloReply::Say(refusal(nonce, Reason::Protocol, 0))
            }
            _ => HelloReply::Silence,
        }
    }

    /// A proof whose cookie is good.
    fn judge(&mut self, message: &HelloMessage, client: EchoClient) -> HelloReply {
        let EchoClient { nonce, ask, .. } = client;
        if !proof::is_proven(&self.token, message) {
            self.said.wrong_token += 1;
            return HelloReply::Say(refusal(nonce, Reason::Token, 0));
        }
        let size_min = match ask.mode {
            EchoMode::PingPong => 1,
            EchoMode::Stream => packet::LEN as u32,
        };
        if !(size_min..=self.size_max).contains(&ask.size) {
            return self.refuse(nonce, Reason::Size, self.size_max.into());
        }
        if ask.rate > self.rate_max {
            return self.refuse(nonce, Reason::Rate, self.rate_max);
        }
        HelloReply::LetIn(client)
    }

    /// Refuses because of a limit, and counts it.
    pub(super) fn refuse(&mut self, nonce: Nonce, reason: Reason, limit: u64) -> HelloReply {
        self.said.refused += 1;
        HelloReply::Say(refusal(nonce, reason, limit))
    }

    /// Welcomes a client whose socket holds this number of bytes unread and unsent.
    #[must_use]
    pub(super) fn welcome(&self, client: &EchoClient, buffers: (u32, u32)) -> HelloMessage {
        proof::welcome(&self.token, client.nonce, client.session, buffers)
    }

    fn challenge(&self, peer: SocketAddr, nonce: Nonce, now_ns: i64) -> HelloReply {
        let stamp_s = seconds(now_ns);
        let cookie = self.secret.cookie(peer, &nonce, stamp_s);
        HelloReply::Say(HelloMessage::Challenge { nonce, stamp_s, cookie })
    }
}

fn seconds(now_ns: i64) -> u64 {
    u64::try_from(now_ns / 1_000_000_000).unwrap_or(0)
}

fn refusal(nonce: Nonce, reason: Reason, limit: u64) -> HelloMessage {
    let version = own_version().to_owned();
    HelloMessage::Refused { nonce, protocol: PROTOCOL, reason, limit, version }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::hello::{ASK_LEN, CODE_LEN, NONCE_LEN};

    const SECOND: i64 = 1_000_000_000;
    const ASK: Ask = Ask { mode: EchoMode::PingPong, size: 8, rate: 0 };
    const NONCE: Nonce = [5; NONCE_LEN];

    fn admission() -> Admission {
        Admission::new(b"the token".to_vec(), 1000, 64, 0).unwrap()
    }

    fn peer() -> SocketAddr {
        "192.0.2.7:4711".parse().unwrap()
    }

    fn proof_at(admission: &mut Admission, token: &[u8], ask: Ask, now_ns: i64) -> HelloMessage {
        proof_of(peer(), admission, token, ask, now_ns)
    }

    fn proof_of(
        peer: SocketAddr,
        admission: &mut Admission,
        token: &[u8],
        ask: Ask,
        now_ns: i64,
    ) -> HelloMessage {
        let hello = HelloMessage::Hello { nonce: NONCE, ask };
        let reply = admission.receive(peer, &hello.write(), now_ns);
        let HelloReply::Say(HelloMessage::Challenge { stamp_s, cookie, .. }) = reply else {
            panic!("{reply:?}")
        };
        proof::proof(token, NONCE, ask, stamp_s, cookie)
    }

    fn tried(token: &[u8], ask: Ask) -> HelloReply {
        let mut admission = admission();
        let proof = proof_at(&mut admission, token, ask, SECOND);
        admission.receive(peer(), &proof.write(), SECOND)
    }

    fn reason(reply: &HelloReply) -> Option<(Reason, u64)> {
        match reply {
            HelloReply::Say(HelloMessage::Refused { reason, limit, .. }) => Some((*reason, *limit)),
            _ => None,
        }
    }

    #[test]
    fn who_knows_the_token_is_let_in_and_twice_into_the_same_session() {
        let mut admission = admission();
        let proof = proof_at(&mut admission, b"the token", ASK, SECOND).write();
        let first = admission.receive(peer(), &proof, SECOND);
        let HelloReply::LetIn(client) = &first else { panic!("{first:?}") };
        assert_eq!((client.ask, client.nonce), (ASK, NONCE));
        assert_eq!(admission.receive(peer(), &proof, 2 * SECOND), first);
        assert!(proof::is_proven(b"the token", &admission.welcome(client, (1, 1))));
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
            (EchoMode::PingPong, 1, true),
            (EchoMode::PingPong, 0, false),
            (EchoMode::PingPong, 64, true),
            (EchoMode::PingPong, 65, false),
            (EchoMode::PingPong, u32::MAX, false),
            (EchoMode::Stream, 56, true),
            (EchoMode::Stream, 55, false),
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
        let mut admission = admission();
        let proof = proof_at(&mut admission, b"the token", ASK, SECOND).write();
        let elsewhere = "192.0.2.8:4711".parse().unwrap();
        assert_eq!(admission.receive(elsewhere, &proof, SECOND), HelloReply::Silence);
        let late = admission.receive(peer(), &proof, 60 * SECOND);
        assert!(
            matches!(late, HelloReply::Say(HelloMessage::Challenge { stamp_s: 60, .. })),
            "{late:?}"
        );
    }

    #[test]
    fn garbage_is_met_with_silence_and_another_version_with_a_refusal() {
        let mut admission = admission();
        for garbage in [&[][..], &[0; ASK_LEN], b"tdyh", &[b't'; 2000]] {
            assert_eq!(admission.receive(peer(), garbage, 0), HelloReply::Silence);
        }
        let mut hello = HelloMessage::Hello { nonce: NONCE, ask: ASK }.write();
        hello[5] = 1;
        let reply = admission.receive(peer(), &hello, 0);
        assert_eq!(reason(&reply), Some((Reason::Protocol, 0)));
        // A message that only echoes say is not a question: two echoes never talk to each other.
        let HelloReply::Say(refusal) = reply else { panic!("{reply:?}") };
        assert_eq!(admission.receive(peer(), &refusal.write(), 0), HelloReply::Silence);
        assert_eq!((admission.said.garbage, admission.said.other_version), (5, 1));
    }

    #[test]
    fn at_the_door_no_more_is_answered_than_bounded() {
        let mut admission = admission();
        let hello = HelloMessage::Hello { nonce: NONCE, ask: ASK }.write();
        let answered = |admission: &mut Admission, now_ns| {
            (0..HELLOS_PER_S)
                .filter(|_| admission.receive(peer(), &hello, now_ns) != HelloReply::Silence)
                .count() as u64
        };
        assert_eq!(answered(&mut admission, 0), HELLOS_PER_S / 2, "half of it to one network");
        assert_eq!(answered(&mut admission, SECOND), HELLOS_PER_S / 2);
        assert_eq!(admission.said.over_rate, HELLOS_PER_S);
    }

    #[test]
    fn four_thousand_hellos_a_second_keep_nobody_out() {
        let mut admission = admission();
        let flood = HelloMessage::Hello { nonce: [9; NONCE_LEN], ask: ASK }.write();
        for second in 1..5 {
            for number in 0..4_000_u32 {
                // From the peer's own host too, and from everywhere.
                let port = (number % 60_000) as u16;
                let own = SocketAddr::new(peer().ip(), port);
                let other = SocketAddr::new(std::net::Ipv4Addr::from(number << 8).into(), port);
                let from = if number % 2 == 0 { own } else { other };
                admission.receive(from, &flood, second * SECOND);
            }
            let proof = proof_at(&mut admission, b"the token", ASK, second * SECOND);
            let reply = admission.receive(peer(), &proof.write(), second * SECOND);
            assert!(matches!(reply, HelloReply::LetIn(_)), "{reply:?}");
        }
        assert_eq!(admission.said.over_rate, 0);
    }

    #[test]
    fn tokens_are_not_guessed_faster_than_bounded_and_guessing_keeps_no_hello_out() {
        let mut admission = admission();
        let guess = proof_at(&mut admission, b"a guess", ASK, 0).write();
        let tried =
            (0..5_000).filter(|_| admission.receive(peer(), &guess, 0) != HelloReply::Silence);
        assert_eq!(tried.count() as u64, PROOFS_PER_S);
        let hello = HelloMessage::Hello { nonce: NONCE, ask: ASK }.write();
        assert_ne!(admission.receive(peer(), &hello, 0), HelloReply::Silence);
    }

    #[test]
    fn wrong_proofs_from_a_few_addresses_do_not_keep_out_who_knows_the_token() {
        let mut admission = admission();
        let at = |host: u8| SocketAddr::from(([198, 51, 100, host], 4711));
        for attacker in [1, 2].map(at) {
            let guess = proof_of(attacker, &mut admission, b"a guess", ASK, 0).write();
            (0..5_000).for_each(|_| drop(admission.receive(attacker, &guess, 0)));
        }
        let let_in = (100..140).filter(|host| {
            let proof = proof_of(at(*host), &mut admission, b"the token", ASK, 0);
            matches!(admission.receive(at(*host), &proof.write(), 0), HelloReply::LetIn(_))
        });
        // But those whose networks fall into the part of an attacker's.
        assert!(let_in.count() >= 35);
    }

    #[test]
    fn wrong_proofs_from_many_networks_keep_out_few() {
        let mut admission = admission();
        let at = |number: u32| SocketAddr::from((std::net::Ipv4Addr::from(number), 4711));
        let guesses: Vec<_> = (0..400)
            .map(|number| {
                let attacker = at(0x0a00_0000 + number);
                (attacker, proof_of(attacker, &mut admission, b"a guess", ASK, 0).write())
            })
            .collect();
        for (attacker, guess) in &guesses {
            (0..100).for_each(|_| drop(admission.receive(*attacker, guess, 0)));
        }
        let let_in = (0..200).filter(|number| {
            let honest = at(0xc633_6400 + number);
            let proof = proof_of(honest, &mut admission, b"the token", ASK, 0);
            matches!(admission.receive(honest, &proof.write(), 0), HelloReply::LetIn(_))
        });
        assert!(let_in.count() >= 150, "nine in ten are expected");
    }

    #[test]
    fn wrong_cookies_take_nothing_from_whoever_says_hello() {
        let mut admission = admission();
        let forged = proof::proof(b"a guess", NONCE, ASK, 0, [7; CODE_LEN]).write();
        for number in 0..25_000_u32 {
            let from = SocketAddr::new(std::net::Ipv4Addr::from(number << 8).into(), 4711);
            assert_eq!(admission.receive(from, &forged, 0), HelloReply::Silence);
        }
        assert_eq!((admission.said.garbage, admission.said.over_rate), (25_000, 0));
        let proof = proof_at(&mut admission, b"the token", ASK, 0);
        let reply = admission.receive(peer(), &proof.write(), 0);
        assert!(matches!(reply, HelloReply::LetIn(_)), "{reply:?}");
    }
}
