//! The words of the handshake, and the local endpoint against echoes of a few lines.

use std::{
    io,
    net::{TcpListener, UdpSocket},
    os::{fd::AsFd, unix::fs::PermissionsExt as _},
    thread,
};

use proptest::prelude::*;

use super::*;

const ASK: Ask = Ask { mode: EchoMode::Stream, size: 64, rate: 10_000 };

fn peer() -> SocketAddr {
    "192.0.2.7:4711".parse().unwrap()
}

fn messages() -> Vec<HelloMessage> {
    let nonce = [7; NONCE_LEN];
    vec![
        HelloMessage::Hello { nonce, ask: Ask { mode: EchoMode::PingPong, size: 1, rate: 0 } },
        HelloMessage::Challenge { nonce, stamp_s: 9, cookie: [1; CODE_LEN] },
        proof::proof(b"token", nonce, ASK, 9, [1; CODE_LEN]),
        proof::welcome(b"token", nonce, u64::MAX - 5, (212_992, 1)),
        HelloMessage::Refused {
            nonce,
            protocol: PROTOCOL,
            reason: Reason::Rate,
            limit: 1 << 40,
            version: "0.1.0".into(),
        },
    ]
}

#[test]
fn what_is_written_is_read_back() {
    for message in messages() {
        let bytes = message.write();
        assert_eq!(
            (HelloMessage::read(&bytes), bytes.len()),
            (Ok(message.clone()), message.length())
        );
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(HelloMessage::read(&longer), Err(Unread::Foreign), "{message:?}");
        assert_eq!(HelloMessage::read(&bytes[..bytes.len() - 1]), Err(Unread::Foreign));
    }
}

#[test]
fn no_answer_is_longer_than_any_question() {
    let (asks, answers): (Vec<_>, Vec<_>) = messages().into_iter().partition(|message| {
        matches!(message, HelloMessage::Hello { .. } | HelloMessage::Proof { .. })
    });
    let shortest = asks.iter().map(|message| message.write().len()).min();
    let longest = answers.iter().map(|message| message.write().len()).max();
    assert!(longest < shortest, "{longest:?} {shortest:?}");
}

#[test]
fn another_version_is_known_by_its_number_and_its_refusal_is_understood() {
    let mut bytes = messages()[0].write();
    bytes[4] = 2;
    let nonce = [7; NONCE_LEN];
    assert_eq!(HelloMessage::read(&bytes), Err(Unread::Version { protocol: 2, nonce }));
    let mut refusal = messages()[4].write();
    (refusal[4], refusal[24]) = (2, 99);
    let read = HelloMessage::read(&refusal).unwrap();
    assert!(matches!(
        read,
        HelloMessage::Refused { protocol: 2, reason: Reason::Protocol, ref version, .. }
            if version == "0.1.0"
    ));
    refusal[4] = 1;
    assert_eq!(
        HelloMessage::read(&refusal),
        Err(Unread::Foreign),
        "no such reason in this version"
    );
}

#[test]
fn a_code_is_of_one_token_and_of_one_message() {
    for message in [&messages()[2], &messages()[3]] {
        assert!(proof::is_proven(b"token", message));
        assert!(!proof::is_proven(b"tokem", message));
        assert!(!proof::is_proven(b"", message));
        for at in 8..message.length() {
            let mut bytes = message.write();
            bytes[at] ^= 1;
            if let Ok(changed) = HelloMessage::read(&bytes)
                && changed != *message
            {
                assert!(!proof::is_proven(b"token", &changed), "byte {at} of {message:?}");
            }
        }
    }
    let unproven = [0, 1, 4].map(|at| proof::is_proven(b"token", &messages()[at]));
    assert_eq!(unproven, [false; 3]);
}

#[test]
fn a_cookie_is_of_one_address_and_one_time() {
    let secret = Secret::random().unwrap();
    let nonce = proof::nonce().unwrap();
    let cookie = secret.cookie(peer(), &nonce, 100);
    assert!(secret.knows(peer(), &nonce, 100, &cookie));
    assert!(!secret.knows("192.0.2.7:4712".parse().unwrap(), &nonce, 100, &cookie));
    assert!(!secret.knows("192.0.2.8:4711".parse().unwrap(), &nonce, 100, &cookie));
    assert!(!secret.knows(peer(), &nonce, 101, &cookie));
    assert!(!secret.knows(peer(), &[0; NONCE_LEN], 100, &cookie));
    assert!(!Secret::random().unwrap().knows(peer(), &nonce, 100, &cookie));
    assert_eq!(secret.session(&cookie), secret.session(&cookie));
    assert!(proof::is_fresh(100, 110) && !proof::is_fresh(100, 111) && !proof::is_fresh(2, 1));
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_none_and_what_is_read_is_what_was_there(
        bytes in proptest::collection::vec(any::<u8>(), 0..300)
    ) {
        if let Ok(message) = HelloMessage::read(&bytes) {
            prop_assert_eq!(message.length(), bytes.len());
        }
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        which in 0_usize..5, at in 0_usize..128, by in 1_u8.., cut in 0_usize..129
    ) {
        let mut bytes = messages()[which].write();
        let at = at % bytes.len();
        bytes[at] ^= by;
        bytes.truncate(cut);
        if let Ok(message) = HelloMessage::read(&bytes) {
            let again = HelloMessage::read(&message.write());
            prop_assert_eq!(again, Ok(message));
        }
    }
}

/// What a peer of TCP gets that is answered by `answer`, once.
fn tcp(answer: impl FnOnce(&mut std::net::TcpStream) + Send + 'static) -> HelloError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let peer = thread::spawn(move || answer(&mut listener.accept().unwrap().0));
    let error = connect(CarrierKind::Tcp, &to, b"", ASK).unwrap_err();
    peer.join().unwrap();
    error
}

fn question(stream: &mut std::net::TcpStream) -> HelloMessage {
    let mut bytes = [0; ASK_LEN];
    io::Read::read_exact(stream, &mut bytes).unwrap();
    HelloMessage::read(&bytes).unwrap()
}

fn say(stream: &mut std::net::TcpStream, message: &HelloMessage) {
    io::Write::write_all(stream, &message.write()).unwrap();
}

#[test]
fn an_absent_echo_is_named_with_what_to_start() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for kind in [CarrierKind::Tcp, CarrierKind::Udp] {
        let error = connect(kind, &free, b"", ASK).unwrap_err();
        assert!(matches!(error, HelloError::Absent { .. }), "{error}");
        assert!(error.to_string().contains("tardy echo --listen"), "{error}");
    }
}

#[test]
fn one_that_never_answers_is_given_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap().to_string();
    let error = connect(CarrierKind::Udp, &to, b"", ASK).unwrap_err().to_string();
    assert!(error.contains("no answer in 2 s"), "{error}");
}

#[test]
fn one_of_another_version_is_named_with_both_versions() {
    let error = tcp(|stream| {
        let nonce = *question(stream).nonce();
        let (reason, limit, version) = (Reason::Protocol, 0, "0.2.0".to_owned());
        say(stream, &HelloMessage::Refused { nonce, protocol: 2, reason, limit, version });
    });
    let text = error.to_string();
    assert!(text.contains("tardy 0.2.0 with protocol 2"), "{text}");
    assert!(text.contains("protocol 1: use the same version on both"), "{text}");
}

#[test]
fn one_that_welcomes_without_the_token_is_not_believed() {
    let error = tcp(|stream| {
        let nonce = *question(stream).nonce();
        say(stream, &proof::welcome(b"another", nonce, 1, (1, 1)));
    });
    assert!(matches!(error, HelloError::Token { .. }), "{error}");
}

#[test]
fn limits_are_reported_with_the_flag_that_moves_them() {
    for (reason, flag) in [(Reason::Size, "--max-size"), (Reason::Rate, "--max-rate")] {
        let error = tcp(move |stream| {
            let nonce = *question(stream).nonce();
            let (protocol, version) = (PROTOCOL, "0.1.0".to_owned());
            say(stream, &HelloMessage::Refused { nonce, protocol, reason, limit: 5, version });
        });
        assert!(error.to_string().contains(flag), "{error}");
    }
}

#[test]
fn a_stranger_is_no_echo() {
    let closes = tcp(|stream| drop(question(stream)));
    assert!(closes.to_string().contains("not a tardy echo"), "{closes}");
    let babbles = tcp(|stream| {
        question(stream);
        io::Write::write_all(stream, &[b'H'; ANSWER_LEN]).unwrap();
    });
    assert!(babbles.to_string().contains("not in tardy's protocol"), "{babbles}");
}

#[test]
fn addresses_need_a_port() {
    for to in ["127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", ":x", ""] {
        let error = connect(CarrierKind::Udp, to, b"", ASK).unwrap_err().to_string();
        assert!(error.contains("HOST:PORT"), "{to}: {error}");
    }
}

/// An echo in a few lines, whose first answers are lost.
#[test]
fn lost_datagrams_are_sent_again_and_answers_that_come_twice_are_taken_away() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let echo = thread::spawn(move || {
        let (mut heard, mut bytes) = (0, [0; ASK_LEN]);
        while heard < 4 {
            let (length, from) = socket.recv_from(&mut bytes).unwrap();
            heard += 1;
            let answer = match HelloMessage::read(&bytes[..length]).unwrap() {
                HelloMessage::Hello { nonce, .. } => {
                    HelloMessage::Challenge { nonce, stamp_s: 1, cookie: [3; CODE_LEN] }
                }
                message => proof::welcome(b"", *message.nonce(), 42, (1, 2)),
            };
            // Of each two only the second is answered, and that twice.
            for _ in 0..(1 - heard % 2) * 2 {
                socket.send_to(&answer.write(), from).unwrap();
            }
        }
        socket
    });
    let connected = connect(CarrierKind::Udp, &to, b"", ASK).unwrap();
    let echo = echo.join().unwrap();
    assert_eq!((connected.session, connected.buffers), (42, (1, 2)));
    let near = UdpSocket::from(connected.socket.as_fd().try_clone_to_owned().unwrap());
    near.set_nonblocking(true).unwrap();
    assert_eq!(near.recv(&mut [0; 200]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(echo.local_addr().unwrap().to_string(), connected.address);
}

#[test]
fn a_token_is_what_the_file_holds_without_the_line_end() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let permit = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::write(&file, "a good token\n").unwrap();
    for mode in [0o640, 0o604, 0o620, 0o644] {
        permit(mode);
        let error = read_token(&file).unwrap_err().to_string();
        assert!(error.contains(&format!("mode {mode:03o}")), "{error}");
        assert!(error.contains("chmod 600"), "{error}");
    }
    permit(0o600);
    assert_eq!(read_token(&file).unwrap(), b"a good token");
    for bad in ["", "\n", "short\n", &"x".repeat(1025)] {
        std::fs::write(&file, bad).unwrap();
        let error = read_token(&file).unwrap_err().to_string();
        assert!(error.contains("--token-file") && error.contains("8 to 1024"), "{error}");
    }
    assert!(read_token(&directory.path().join("none")).is_err());
}

#[test]
fn a_fifo_in_place_of_a_token_file_is_refused_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, 0o600.into(), 0).unwrap();
    // In a separate thread: opening a FIFO without a writer would block forever.
    let refusal = || {
        let (say, said) = std::sync::mpsc::channel();
        let file = file.clone();
        std::thread::spawn(move || say.send(read_token(&file).unwrap_err().to_string()));
        said.recv_timeout(std::time::Duration::from_secs(120)).expect("it waits for a writer")
    };
    let empty = refusal();
    assert!(empty.contains("8 to 1024 bytes, not 0"), "{empty}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
    let shared = refusal();
    assert!(shared.contains("mode 622"), "{shared}");
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    let foreign = refusal();
    assert!(foreign.contains("belongs to user 65534"), "{foreign}");
}
