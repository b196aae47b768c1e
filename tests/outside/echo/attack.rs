//! What an echo must survive: garbage, floods, half-open connections, peers that do not read.

use std::{
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    time::Duration,
};

use tardy::transports::hello::{ANSWER_LEN, ASK_LEN, CarrierKind, HelloMessage, connect};

use super::{
    super::support::{wait_until_read, whole},
    Listening, PING, Session, Store, end, listen, port,
};

/// Deterministic and even enough: xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap() % bound
    }

    /// Random bytes, or a hello with some of them changed.
    fn message(&mut self) -> Vec<u8> {
        let mut bytes = HelloMessage::Hello { nonce: [3; 16], ask: PING }.write();
        if self.below(2) == 0 {
            bytes = vec![0; self.below(300)];
            bytes.iter_mut().for_each(|byte| *byte = self.next().to_le_bytes()[0]);
        } else {
            for _ in 0..self.below(4) {
                let at = self.below(bytes.len());
                bytes[at] = self.next().to_le_bytes()[0];
            }
            bytes.truncate(bytes.len() - self.below(2) * self.below(ASK_LEN));
        }
        bytes
    }
}

/// It answers over both of its transports.
pub(super) fn still_answers(echo: &Listening) {
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        super::super::support::eventually("it answers after all that", || {
            connect(kind, &echo.address, b"", PING)
                .is_ok_and(|far| Session::of(kind, far).ping(&[7; 8]) == [7; 8])
        });
    }
}

#[test]
fn a_hundred_thousand_datagrams_of_garbage_leave_it_answering_and_get_less_back() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&echo.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut random = Random(20_261_122);
    let (mut sent, mut got, mut answer) = (0_u64, 0_u64, [0; 2048]);
    for _ in 0..100_000 {
        let message = random.message();
        if let Ok(length) = socket.send(&message) {
            sent += length as u64;
        }
        while let Ok(length) = socket.recv(&mut answer) {
            assert!(length <= ANSWER_LEN, "{length}");
            got += length as u64;
        }
    }
    // What was dropped meanwhile, nobody read: these are so few at a time that none is.
    for _ in 0..40 {
        for _ in 0..100 {
            sent += socket.send(&random.message()).unwrap_or(0) as u64;
        }
        wait_until_read(port(&echo));
    }
    still_answers(&echo);
    while let Ok(length) = socket.recv(&mut answer) {
        got += length as u64;
    }
    assert!(0 < got && got < sent, "{got} of {sent}");
    let admission = &end(echo)["admission"];
    assert!(
        whole(&admission["garbage"]) > 1000 && whole(&admission["hellos"]) > 100,
        "{admission}"
    );
}

#[test]
fn connections_that_talk_garbage_or_say_nothing_or_half_of_it_leave_it_answering() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let mut random = Random(7);
    let mut open = Vec::new();
    for number in 0..600 {
        let mut stream = TcpStream::connect(&echo.address).unwrap();
        let message = random.message();
        // Where it was closed already, what is written goes nowhere.
        let _ = stream.write_all(&message);
        match number % 3 {
            0 => drop(stream),
            1 => open.push(stream),
            _ => {
                stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                assert!(answer.len() <= message.len().max(1), "{}", answer.len());
            }
        }
    }
    still_answers(&echo);
    drop(open);
    end(echo);
}

#[test]
fn garbage_within_a_session_is_dropped_or_ends_it_and_nothing_else() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let mut random = Random(99);
    let far = connect(CarrierKind::Udp, &echo.address, b"", PING).unwrap();
    let socket = UdpSocket::from(far.socket);
    socket.set_nonblocking(true).unwrap();
    let (mut sent, mut got, mut answer) = (0, 0, [0; 2048]);
    for number in 0..20_000 {
        sent += socket.send(&random.message()).unwrap_or(0);
        // So few at a time that the echo's socket holds them all.
        if number % 100 == 0 {
            wait_until_read(port(&echo));
        }
        while let Ok(length) = socket.recv(&mut answer) {
            got += length;
        }
    }
    assert!(got <= sent, "{got} of {sent}");
    still_answers(&echo);
    let summary = end(echo);
    assert!(whole(&summary["foreign"]) > 1000, "{summary}");
}

#[test]
fn a_peer_that_does_not_read_or_vanishes_keeps_nobody_else_waiting() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let ask = tardy::transports::hello::Ask { size: 60_000, ..PING };
    let far = connect(CarrierKind::Tcp, &echo.address, b"", ask).unwrap();
    let mut stream = TcpStream::from(far.socket);
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    // Until both sockets are full, and the echo waits with its answer.
    while stream.write_all(&[1; 60_000]).is_ok() {}
    still_answers(&echo);
    // Half a message, and away.
    let far = connect(CarrierKind::Tcp, &echo.address, b"", ask).unwrap();
    TcpStream::from(far.socket).write_all(&[1; 10]).unwrap();
    still_answers(&echo);
    let summary = end(echo);
    assert!(whole(&summary["bytes"]) > 60_000, "{summary}");
    drop(stream);
}

#[test]
fn only_who_was_let_in_is_answered_and_only_from_its_address() {
    let store = Store::new();
    let echo = listen(&store, &["--transport", "udp"]);
    let far = connect(CarrierKind::Udp, &echo.address, b"", PING).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(&echo.address).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for _ in 0..10 {
        stranger.send(&[7; 8]).unwrap();
    }
    assert!(stranger.recv(&mut [0; 9]).is_err(), "a stranger was answered");
    assert_eq!(Session::of(CarrierKind::Udp, far).ping(&[7; 8]), [7; 8]);
    wait_until_read(port(&echo));
    let summary = end(echo);
    assert_eq!(whole(&summary["answered"]), 1, "{summary}");
    assert_eq!(whole(&summary["admission"]["garbage"]), 10, "{summary}");
}
