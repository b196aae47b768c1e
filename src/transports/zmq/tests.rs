//! What strangers do to an answering socket, and what it holds. All skip without the library.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread::{self, JoinHandle},
};

use tardy_hot::{
    clock::now_ns,
    exchange::{Port, ping},
    wakeup::{Counted, Ended, Series, Until},
};

use super::*;
use crate::transports::port::PortUser;

/// Longer than anything takes here when all is well.
const PATIENCE: Duration = Duration::from_secs(120);

fn is_there() -> bool {
    let found = Library::get();
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}

/// An answering socket in a thread.
struct Answering {
    to: String,
    stop: Arc<tardy_hot::stop::Stop>,
    thread: JoinHandle<Result<Answered, ZmqError>>,
}

impl Answering {
    fn start(limits: ReplyLimits) -> Self {
        let stop = Arc::new(tardy_hot::stop::Stop::new());
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let answerer = Answerer::bind("127.0.0.1:0", limits).unwrap();
                sender.send(answerer.endpoint().to_owned()).unwrap();
                answerer.serve(&stop)
            }
        });
        let to = receiver.recv().unwrap().trim_start_matches("tcp://").to_owned();
        Self { to, stop, thread }
    }

    fn end(self) -> Answered {
        self.stop.set();
        self.thread.join().unwrap().unwrap()
    }
}

struct Pings(Arc<Series>, u64);

impl PortUser for Pings {
    type Out = Ended;

    fn with<P: Port>(self, port: &mut P) -> Ended {
        let until = Until { end_ns: i64::MAX, samples: self.1, stop_over_ns: i64::MAX };
        ping(port, &mut Counted(self.0), until, &tardy_hot::stop::Stop::new())
    }
}

/// Asks `samples` times; all requests must be answered.
fn assert_answers(to: &str, size: usize, samples: u64) {
    let series = Arc::new(Series::default());
    let mut port = ask_foreign(to, size, PATIENCE).unwrap();
    assert_eq!(port.with(Pings(Arc::clone(&series), samples)), Ended::Done);
    assert_eq!(series.tally.totals().count, samples);
}

#[test]
fn each_request_is_answered_once_and_counted() {
    if !is_there() {
        return;
    }
    let answering = Answering::start(ReplyLimits::default());
    assert_answers(&answering.to, 1, 100);
    assert_answers(&answering.to, 5_000, 50);
    let expected = Answered { requests: 150, bytes: 250_100, ..Answered::default() };
    assert_eq!(answering.end(), expected);
}

#[test]
fn garbage_and_half_a_handshake_are_survived() {
    if !is_there() {
        return;
    }
    let answering = Answering::start(ReplyLimits::default());
    let connect = || TcpStream::connect(&answering.to).unwrap();
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u8
    };
    // A greeting of ZMTP 3.0 up to its filler, and what may come after it.
    let mut greeting = [0_u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    let mut held = Vec::new();
    for round in 0..200 {
        let mut stranger = connect();
        let known = round % 65;
        let mut bytes = greeting[..known].to_vec();
        bytes.extend((0..round * 7).map(|_| random()));
        // It may be cut off in the middle.
        let _ = stranger.write_all(&bytes);
        if round % 2 == 0 {
            held.push(stranger);
        }
    }
    assert_answers(&answering.to, 1, 20);
    drop(held);
    assert_answers(&answering.to, 1, 20);
    assert_eq!(answering.end().requests, 40);
}

#[test]
fn a_message_longer_than_allowed_costs_its_sender_the_connection_and_no_other() {
    if !is_there() {
        return;
    }
    let answering =
        Answering::start(ReplyLimits { longest_bytes: 1_000, ..ReplyLimits::default() });
    let mut port = ask_foreign(&answering.to, 1_001, PATIENCE).unwrap();
    struct OneWay;
    impl PortUser for OneWay {
        type Out = ();
        fn with<P: Port>(self, port: &mut P) {
            port.send(1).unwrap();
        }
    }
    port.with(OneWay);
    assert_answers(&answering.to, 1_000, 10);
    assert_eq!(answering.end().requests, 10);
}

#[test]
fn requests_over_the_rate_wait() {
    if !is_there() {
        return;
    }
    // Further apart than a burst may be long, so that the first one waits already, however slow
    // this machine is to ask.
    let answering = Answering::start(ReplyLimits { per_s: Some(20), ..ReplyLimits::default() });
    let began_ns = now_ns();
    assert_answers(&answering.to, 1, 6);
    let took_ns = now_ns() - began_ns;
    assert!(took_ns >= 280_000_000, "{took_ns} ns");
    assert!(answering.end().slowed > 0);
}

/// A client that speaks ZMTP well enough to send parts without end.
fn handshake(to: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    let mut greeting = [0_u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER";
    stream.write_all(&[&[4, ready.len() as u8], &ready[..]].concat()).unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; usize::from(head[1])]).unwrap();
    stream
}

#[test]
fn a_message_of_parts_is_not_answered_and_one_without_end_closes_all() {
    if !is_there() {
        return;
    }
    let limits = ReplyLimits { memory_bytes: 32 << 20, ..ReplyLimits::default() };
    let answering = Answering::start(limits);
    let mut stranger = handshake(&answering.to);
    // An empty part, and two that belong together; then a request as it should be.
    stranger.write_all(b"\x01\0\x01\x02ab\0\x01c\x01\0\0\x01d").unwrap();
    let mut answer = [9; 5];
    stranger.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"\x01\0\0\x01d");
    // Parts that are followed by others, until it is ended.
    let part = [&[1_u8, 250][..], &[0; 250]].concat().repeat(256);
    let began_ns = now_ns();
    while stranger.write_all(&part).is_ok() {
        let took = Duration::from_nanos((now_ns() - began_ns).unsigned_abs());
        assert!(took < PATIENCE, "nobody ends it");
    }
    assert_answers(&answering.to, 1, 10);
    let answered = answering.end();
    assert_eq!((answered.requests, answered.refused), (11, 1));
    assert!(answered.closed > 0, "{answered:?}");
}

#[test]
fn what_is_no_request_waits_as_one_does() {
    if !is_there() {
        return;
    }
    // As far apart as in `requests_over_the_rate_wait`.
    let answering = Answering::start(ReplyLimits { per_s: Some(20), ..ReplyLimits::default() });
    let mut stranger = handshake(&answering.to);
    let began_ns = now_ns();
    stranger.write_all(&b"\0\x01a".repeat(5)).unwrap();
    stranger.write_all(b"\x01\0\0\x01d").unwrap();
    stranger.read_exact(&mut [0; 5]).unwrap();
    let took_ns = now_ns() - began_ns;
    assert!(took_ns >= 280_000_000, "{took_ns} ns");
    let answered = answering.end();
    assert_eq!((answered.requests, answered.refused), (1, 5));
    assert!(answered.slowed > 0, "{answered:?}");
}

#[test]
fn an_address_in_use_and_one_that_is_none_are_named() {
    if !is_there() {
        return;
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = Answerer::bind(&address, ReplyLimits::default()).err().unwrap().to_string();
    assert!(error.contains(&address) && error.contains("in use"), "{error}");
    let error = Answerer::bind("nowhere", ReplyLimits::default()).err().unwrap().to_string();
    assert!(error.contains("nowhere is not HOST:PORT"), "{error}");
}
