//! `tardy echo` as its peers, strangers and attackers meet it.

mod attack;
mod ends;
mod real_time;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpStream, UdpSocket},
    process::Child,
};

use serde_json::Value;
use tardy::transports::hello::{Ask, CarrierKind, Connected, EchoMode, HelloError, connect};

use super::support::{
    Said, Store, finish, is_root, list, patience, signal, skip, wait_until_read, whole,
    write_secret,
};

/// What an echo says beside its result; without what it says where root may not raise its limits
/// (a container without `CAP_SYS_RESOURCE`).
fn complaints(err: &str) -> String {
    err.lines().filter(|line| !line.starts_with("The echo keeps CAP_")).collect()
}

/// An echo that listens, and where.
pub(crate) struct Listening {
    pub child: Child,
    pub address: String,
}

pub(crate) const PING: Ask = Ask { mode: EchoMode::PingPong, size: 8, rate: 0 };

/// Starts an echo on a free port of loopback.
pub(crate) fn listen(store: &Store, more: &[&str]) -> Listening {
    let words = ["echo", "--listen", "127.0.0.1:0", "--policy", "other", "--json"];
    listening(store.start(&[&words, more].concat()))
}

/// Waits until it says where it listens; the rest of what it says is for [`finish`].
pub(crate) fn listening(mut child: Child) -> Listening {
    let mut line = Vec::new();
    // A byte at a time: nothing that belongs to the summary may be taken.
    let out = child.stdout.as_mut().unwrap();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        if out.read(&mut byte).unwrap() == 0 {
            panic!("it ended: {:?}", finish(child));
        }
        line.push(byte[0]);
    }
    let said: Value = serde_json::from_slice(&line).unwrap();
    Listening { child, address: said["listening"].as_str().unwrap().to_owned() }
}

/// Ends it as a user would; its summary.
pub(crate) fn end(echo: Listening) -> Value {
    signal(&echo.child, "INT");
    let said = finish(echo.child);
    assert_eq!((said.code, complaints(&said.err)), (Some(0), String::new()), "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

/// A session by UDP or TCP, as something to read and write.
pub(crate) enum Session {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Session {
    pub(crate) fn of(kind: CarrierKind, connected: Connected) -> Self {
        let patience = Some(patience());
        match kind {
            CarrierKind::Udp => {
                let socket = UdpSocket::from(connected.socket);
                socket.set_read_timeout(patience).unwrap();
                Self::Udp(socket)
            }
            CarrierKind::Tcp => {
                let stream = TcpStream::from(connected.socket);
                stream.set_read_timeout(patience).unwrap();
                Self::Tcp(stream)
            }
        }
    }

    /// Sends a message and returns what comes back.
    pub(crate) fn ping(&mut self, message: &[u8]) -> Vec<u8> {
        let mut back = vec![0; message.len() + 1];
        match self {
            Self::Udp(socket) => {
                socket.send(message).unwrap();
                let length = socket.recv(&mut back).unwrap();
                back.truncate(length);
            }
            Self::Tcp(stream) => {
                stream.write_all(message).unwrap();
                back.pop();
                stream.read_exact(&mut back).unwrap();
            }
        }
        back
    }
}

/// Where it listens.
pub(crate) fn port(echo: &Listening) -> u16 {
    echo.address.rsplit(':').next().unwrap().parse().unwrap()
}

fn refused(echo: &Listening, kind: CarrierKind, token: &[u8], ask: Ask) -> HelloError {
    connect(kind, &echo.address, token, ask).unwrap_err()
}

#[test]
fn it_sends_back_what_its_peers_send_and_says_so_at_the_end() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        let connected = connect(kind, &echo.address, b"", PING).unwrap();
        assert_eq!(connected.version, env!("CARGO_PKG_VERSION"));
        assert!(connected.buffers.0 > 0 && connected.buffers.1 > 0, "{connected:?}");
        let mut session = Session::of(kind, connected);
        for number in 0..100 {
            let message = [number; 8];
            assert_eq!(session.ping(&message), message, "{kind:?}");
        }
    }
    let summary = end(echo);
    assert_eq!((whole(&summary["peers"]), whole(&summary["answered"])), (2, 200), "{summary}");
    assert_eq!((whole(&summary["bytes"]), whole(&summary["foreign"])), (1600, 0));
    let modes = list(&summary["last_peers"]).iter().all(|peer| peer["mode"] == "pingpong");
    assert!(modes && whole(&summary["admission"]["hellos"]) == 2, "{summary}");
}

#[test]
fn packets_of_a_stream_come_back_with_the_times_of_the_echo() {
    use tardy_hot::packet::Packet;
    let store = Store::new();
    let echo = listen(&store, &[]);
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        let ask = Ask { mode: EchoMode::Stream, size: 64, rate: 1000 };
        let connected = connect(kind, &echo.address, b"", ask).unwrap();
        let session = connected.session;
        let mut far = Session::of(kind, connected);
        for number in 0..50 {
            let mut bytes = [0; 64];
            let packet = Packet { session, number, sent_ns: 7, ..Packet::default() };
            packet.write(&mut bytes);
            let back = Packet::read(&far.ping(&bytes)).unwrap();
            assert_eq!((back.number, back.sent_ns, back.session), (number, 7, session));
            assert!(0 < back.far_received_ns && back.far_received_ns <= back.far_sent_ns);
        }
        if let Session::Udp(socket) = &far {
            let mut stranger = [0; 64];
            Packet { session: session ^ 1, ..Packet::default() }.write(&mut stranger);
            socket.send(&stranger).unwrap();
            socket.send(&[0; 64]).unwrap();
        }
    }
    let summary = end(echo);
    assert_eq!((whole(&summary["answered"]), whole(&summary["foreign"])), (100, 2), "{summary}");
}

#[test]
fn who_has_not_the_token_is_turned_away() {
    let store = Store::new();
    let token = store.path().join("token");
    write_secret(&token, "a token of this test\n");
    let echo = listen(&store, &["--token-file", token.to_str().unwrap()]);
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        for wrong in [&b""[..], b"a token of this tesT"] {
            let error = refused(&echo, kind, wrong, PING);
            assert!(matches!(error, HelloError::Token { .. }), "{kind:?}: {error}");
        }
        let right = connect(kind, &echo.address, b"a token of this test", PING).unwrap();
        assert_eq!(Session::of(kind, right).ping(&[3; 8]), [3; 8]);
    }
    let summary = end(echo);
    assert_eq!(whole(&summary["admission"]["wrong_token"]), 4, "{summary}");
}

#[test]
fn its_limits_are_reported_to_who_asks_for_more() {
    let store = Store::new();
    let echo = listen(&store, &["--max-rate", "2kpps", "--max-size", "100"]);
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        let size = refused(&echo, kind, b"", Ask { size: 101, ..PING }).to_string();
        assert!(size.contains("up to 100 bytes") && size.contains("--max-size 101"), "{size}");
        let rate = refused(&echo, kind, b"", Ask { rate: 2001, ..PING }).to_string();
        assert!(rate.contains("answers 2000") && rate.contains("--max-rate 2001pps"), "{rate}");
    }
    assert_eq!(whole(&end(echo)["admission"]["refused"]), 4);
}

#[test]
fn over_the_rate_messages_are_dropped_and_counted() {
    let store = Store::new();
    // The least that is let in, so that also a slow machine sends more than that.
    let echo = listen(&store, &["--max-rate", "1pps", "--transport", "udp"]);
    let connected = connect(CarrierKind::Udp, &echo.address, b"", PING).unwrap();
    let socket = UdpSocket::from(connected.socket);
    // So few that the socket of the echo holds them all.
    for number in 0..200_u64 {
        socket.send(&number.to_le_bytes()).unwrap();
    }
    wait_until_read(port(&echo));
    let summary = end(echo);
    socket.set_nonblocking(true).unwrap();
    let back = std::iter::from_fn(|| socket.recv(&mut [0; 9]).ok()).count();
    let (answered, over) = (whole(&summary["answered"]), whole(&summary["over_rate"]));
    assert_eq!((answered + over, usize::try_from(answered).unwrap()), (200, back), "{summary}");
    assert!(answered >= 1 && over > 0, "{summary}");
}

#[test]
fn it_serves_sixteen_and_tells_the_next_and_a_place_that_is_free_is_given_again() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let mut all: Vec<Connected> =
        (0..16).map(|_| connect(CarrierKind::Tcp, &echo.address, b"", PING).unwrap()).collect();
    for kind in [CarrierKind::Udp, CarrierKind::Tcp] {
        let error = refused(&echo, kind, b"", PING).to_string();
        assert!(error.contains("serves 16 peers"), "{error}");
    }
    all.pop();
    super::support::eventually("a free place", || {
        connect(CarrierKind::Udp, &echo.address, b"", PING).is_ok()
    });
    end(echo);
}

#[test]
fn as_root_it_keeps_none_of_its_rights_but_those_that_its_threads_need() {
    if !is_root() {
        skip("needs root: no privileges to give up");
        return;
    }
    let store = Store::new();
    let words = ["echo", "--listen", "127.0.0.1:0", "--json"];
    let echo = listening(store.start(&words));
    let connected = connect(CarrierKind::Udp, &echo.address, b"", PING).unwrap();
    assert_eq!(Session::of(CarrierKind::Udp, connected).ping(&[1; 8]), [1; 8]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", echo.child.id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert!(!field("Uid:").split_whitespace().any(|id| id == "0"), "{status}");
    assert_eq!(field("Groups:"), "");
    // SYS_NICE and IPC_LOCK, where limits could not be raised instead.
    let needed = 1_u64 << 23 | 1 << 14;
    for set in ["CapPrm:", "CapEff:", "CapInh:"] {
        let had = u64::from_str_radix(&field(set), 16).unwrap();
        assert_eq!(had & !needed, 0, "{set} {had:x}");
    }
    let summary = end(echo);
    let ran = summary["last_peers"][0]["ran"].as_str().unwrap();
    assert!(ran.starts_with("fifo 90 on CPU "), "{ran}");
}

#[test]
fn an_address_in_use_or_of_another_machine_is_named() {
    let store = Store::new();
    let echo = listen(&store, &[]);
    let second = store.run(&["echo", "--listen", &echo.address, "--policy", "other"]);
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.err.contains("in use") && second.err.contains("--listen"), "{second:?}");
    let token = store.path().join("token");
    write_secret(&token, "a token of this test\n");
    let token = token.to_str().unwrap();
    let words = ["echo", "--listen", "192.0.2.1:7117", "--token-file", token];
    let elsewhere = store.run(&words);
    assert!(elsewhere.err.contains("an address of this machine"), "{elsewhere:?}");
    let open = store.run(&["echo", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(2), "{open:?}");
    assert!(open.err.contains("--token-file"), "{open:?}");
    end(echo);
}

#[test]
fn for_people_it_prints_a_table() {
    let store = Store::new();
    let words = ["echo", "--listen", "127.0.0.1:0", "--policy", "other", "--transport", "tcp"];
    let mut child = store.start(&words);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    let address = first.trim().strip_prefix("listening on ").unwrap();
    let address = address.strip_suffix(" (tcp)").unwrap();
    let connected = connect(CarrierKind::Tcp, address, b"", PING).unwrap();
    assert_eq!(Session::of(CarrierKind::Tcp, connected).ping(&[9; 8]), [9; 8]);
    signal(&child, "TERM");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let Said { code, err, .. } = finish(child);
    assert_eq!((code, complaints(&err)), (Some(0), String::new()));
    assert!(rest.contains("the peer closed") || rest.contains("the echo ended"), "{rest}");
    assert!(rest.contains("peers 1; messages answered 1 (8 bytes)"), "{rest}");
}

#[test]
fn foreign_peers_get_back_whatever_they_send_where_that_was_asked_for() {
    let store = Store::new();
    for (name, kind) in [("udp", CarrierKind::Udp), ("tcp", CarrierKind::Tcp)] {
        let echo = listen(&store, &["--foreign", "--transport", name]);
        let mut session = match kind {
            CarrierKind::Udp => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(&echo.address).unwrap();
                socket.set_read_timeout(Some(patience())).unwrap();
                Session::Udp(socket)
            }
            CarrierKind::Tcp => Session::Tcp(TcpStream::connect(&echo.address).unwrap()),
        };
        for length in [1, 17, 1400] {
            let message = vec![5; length];
            assert_eq!(session.ping(&message), message, "{name}");
        }
        let summary = end(echo);
        let peer = &summary["last_peers"][0];
        assert_eq!((peer["mode"].as_str(), whole(&summary["bytes"])), (Some("foreign"), 1418));
    }
}

#[test]
fn without_foreign_zeromq_is_refused_with_the_remedy() {
    let store = Store::new();
    let said = store.run(&["echo", "--transport", "zmq-tcp", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--foreign"), "{said:?}");
}

#[test]
fn requests_of_zeromq_are_answered_where_that_was_asked_for() {
    let store = Store::new();
    let echo = listen(&store, &["--foreign", "--transport", "zmq-tcp"]);
    let mut port = tardy::transports::zmq::ask_foreign(&echo.address, 30, patience()).unwrap();
    struct Ping;
    impl tardy::transports::port::PortUser for Ping {
        type Out = u8;
        fn with<P: tardy_hot::exchange::Port>(self, port: &mut P) -> u8 {
            port.send(42).unwrap();
            port.receive().unwrap()
        }
    }
    assert_eq!(port.with(Ping), 42);
    let summary = end(echo);
    let figures = ["answered", "bytes", "foreign"].map(|name| whole(&summary[name]));
    assert_eq!(figures, [1, 30, 0], "{summary}");
}

#[test]
fn without_rights_it_says_how_it_answers_and_answers() {
    let store = Store::unprivileged();
    let echo = listening(store.start(&["echo", "--listen", "127.0.0.1:0", "--json"]));
    let connected = connect(CarrierKind::Tcp, &echo.address, b"", PING).unwrap();
    assert_eq!(Session::of(CarrierKind::Tcp, connected).ping(&[1; 8]), [1; 8]);
    signal(&echo.child, "INT");
    let said = finish(echo.child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    let ran = summary["last_peers"][0]["ran"].as_str().unwrap();
    // Where limits.conf gives anybody a priority, there is nothing to say.
    assert_eq!(ran.starts_with("other"), said.err.contains("was refused"), "{said:?}");
}

#[test]
fn an_echo_of_another_version_is_named_with_both_versions() {
    use tardy::transports::hello::{ASK_LEN, HelloMessage, Reason};
    let store = Store::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = [0; ASK_LEN];
        stream.read_exact(&mut said).unwrap();
        let nonce = *HelloMessage::read(&said).unwrap().nonce();
        let (reason, limit, version) = (Reason::Protocol, 0, "9.8.7".to_owned());
        let refused = HelloMessage::Refused { nonce, protocol: 2, reason, limit, version };
        stream.write_all(&refused.write()).unwrap();
    });
    let said = store.run(&["run", "pingpong", "--transport", "tcp", "--to", &to, "--samples", "5"]);
    other.join().unwrap();
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("tardy 9.8.7 with protocol 2"), "{said:?}");
    assert!(said.err.contains("use the same version on both"), "{said:?}");
}
