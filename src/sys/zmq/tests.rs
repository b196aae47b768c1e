//! The library itself: exchanges, what its threads run as, what it says to mistakes. All of them
//! skip if it is not installed.

use std::{
    net::{TcpListener, UdpSocket},
    os::{fd::OwnedFd, linux::net::SocketAddrExt, unix::net},
    thread,
    time::{Duration, Instant},
};

use tardy_hot::{
    exchange::{Port, ping, pong},
    stop::Stop,
    wakeup::{Counted, Ended, Series, Until},
};

use super::{socket::wait_readable, *};
use crate::sys::{
    cpus::Cpus,
    sched::{self, Policy, Scheduling},
};

/// Whether the library is installed; prints a line if not.
fn is_there() -> bool {
    let found = Library::get();
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}

fn context() -> std::sync::Arc<Context> {
    Context::like_this_thread(true).unwrap()
}

/// Asks `samples` times in messages of `size` bytes; how many answers came.
fn exchange(ask: ZmqSocket, answer: ZmqSocket, size: usize, samples: u64) -> u64 {
    let stop = std::sync::Arc::new(Stop::new());
    let answering = thread::spawn({
        let stop = std::sync::Arc::clone(&stop);
        answer.set(Number::ReceiveMs, 50).unwrap();
        move || {
            let mut answer = answer.into_port::<false>(size).unwrap();
            let mut answered = 0;
            // The time-out lets it see the flag.
            while !stop.is_set() {
                let ended = pong(answer.port(), &stop, &mut answered);
                assert!(matches!(ended, Ended::Failed(libc::EAGAIN) | Ended::Stopped), "{ended:?}");
            }
            answered
        }
    });
    let series = std::sync::Arc::new(Series::default());
    let until = Until { end_ns: i64::MAX, samples, stop_over_ns: i64::MAX };
    let mut ask = ask.into_port::<true>(size).unwrap();
    let mut sink = Counted(std::sync::Arc::clone(&series));
    assert_eq!(ping(ask.port(), &mut sink, until, &Stop::new()), Ended::Done);
    stop.set();
    assert_eq!(answering.join().unwrap(), samples);
    series.tally.totals().count
}

#[test]
fn requests_of_every_size_come_back_over_tcp() {
    if !is_there() {
        return;
    }
    for size in [1, 33, 34, 5_000, 300_000] {
        let (ask, answer) = (context(), context());
        let ask = ZmqSocket::new(&ask, ZmqSocketKind::Dealer).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        ask.bind_to(listener.into(), &endpoint).unwrap();
        assert_eq!(ask.endpoint().unwrap(), endpoint);
        let answer = ZmqSocket::new(&answer, ZmqSocketKind::Rep).unwrap();
        answer.connect(&endpoint).unwrap();
        assert_eq!(exchange(ask, answer, size, 300), 300);
    }
}

#[test]
fn who_connects_before_the_other_binds_is_answered_over_an_abstract_socket() {
    if !is_there() {
        return;
    }
    let name = format!("tardy-test-{}", std::process::id());
    let address = net::SocketAddr::from_abstract_name(&name).unwrap();
    let listener: OwnedFd = net::UnixListener::bind_addr(&address).unwrap().into();
    let endpoint = format!("ipc://@{name}");
    let answer = ZmqSocket::new(&context(), ZmqSocketKind::Rep).unwrap();
    answer.connect(&endpoint).unwrap();
    let ask = ZmqSocket::new(&context(), ZmqSocketKind::Dealer).unwrap();
    ask.bind_to(listener, &endpoint).unwrap();
    assert_eq!(exchange(ask, answer, 1, 100), 100);
}

#[test]
fn an_answer_that_comes_late_does_not_stand_for_another() {
    if !is_there() {
        return;
    }
    let context = Context::like_this_thread(false).unwrap();
    let answer = ZmqSocket::new(&context, ZmqSocketKind::Rep).unwrap();
    answer.bind("inproc://late").unwrap();
    let ask = ZmqSocket::new(&context, ZmqSocketKind::Dealer).unwrap();
    ask.set(Number::ReceiveMs, 10).unwrap();
    ask.connect("inproc://late").unwrap();
    let (mut ask, mut answer) =
        (ask.into_port::<true>(4).unwrap(), answer.into_port::<false>(4).unwrap());
    ask.port().send(1).unwrap();
    assert_eq!(ask.port().receive(), Err(libc::EAGAIN), "given up");
    ask.port().send(2).unwrap();
    for number in [1, 2] {
        assert_eq!(answer.port().receive(), Ok(number));
        answer.port().send(number).unwrap();
    }
    assert_eq!((ask.port().receive(), ask.port().receive()), (Ok(1), Ok(2)));
}

#[test]
fn messages_of_another_size_or_shape_are_refused_and_the_next_one_is_not() {
    if !is_there() {
        return;
    }
    let context = Context::like_this_thread(false).unwrap();
    let answer = ZmqSocket::new(&context, ZmqSocketKind::Pair).unwrap();
    answer.bind("inproc://odd").unwrap();
    let ask = ZmqSocket::new(&context, ZmqSocketKind::Pair).unwrap();
    ask.connect("inproc://odd").unwrap();
    let mut ask = ask.into_port::<true>(4).unwrap();
    for (parts, expected) in [
        (&[&b""[..], b"12345"][..], Err(libc::EMSGSIZE)),
        (&[b"", b"123"], Err(libc::EBADMSG)),
        (&[b"", b"1234", b"5"], Err(libc::EMSGSIZE)),
        (&[b"12", b"34"], Err(libc::EBADMSG)),
        (&[b"1234"], Err(libc::EBADMSG)),
        (&[b"", b"\x07234"], Ok(7)),
    ] {
        for (number, part) in parts.iter().enumerate() {
            answer.send_part(part, number + 1 < parts.len()).unwrap();
        }
        assert_eq!(ask.port().receive(), expected, "{parts:?}");
        ask.port().send(9).unwrap();
        let mut sent = [1; 8];
        assert_eq!(answer.receive(&mut sent, true).unwrap(), 0);
        assert!(answer.has_more().unwrap());
        assert_eq!(answer.receive(&mut sent, true).unwrap(), 4);
        assert_eq!((sent[0], answer.has_more().unwrap()), (9, false));
    }
}

/// What every thread of the library in this process runs as, by the beginning of its name.
fn library_threads(prefix: &str) -> Vec<(Scheduling, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    let named = |tid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
        name.is_ok_and(|name| name.starts_with(prefix))
    };
    let describe = |tid: i32| {
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"))?;
        let cpus = line.split_whitespace().nth(1)?.to_owned();
        Some((sched::of_thread(tid).ok()?, cpus))
    };
    numbers.filter(named).filter_map(describe).collect()
}

#[test]
fn the_librarys_threads_run_as_the_one_that_made_them() {
    if !is_there() {
        return;
    }
    let may = thread::spawn(|| sched::set_this_thread(Policy::Fifo, 7)).join().unwrap();
    if let Err(error) = may {
        eprintln!("skipped: no right to real-time policy: {error}");
        return;
    }
    let cpu = Cpus::allowed().unwrap().iter().last().unwrap();
    thread::spawn(move || {
        [cpu].into_iter().collect::<Cpus>().pin_this_thread().unwrap();
        sched::set_this_thread(Policy::Fifo, 7).unwrap();
        let context = context();
        context.set_thread_prefix(4711).unwrap();
        let _socket = ZmqSocket::new(&context, ZmqSocketKind::Rep).unwrap();
        let wanted = Scheduling { policy: "fifo".into(), priority: 7, nice: 0 };
        let wanted = vec![(wanted, cpu.to_string()); 2];
        let patience = Instant::now() + Duration::from_secs(120);
        // They take their terms themselves, after they were made.
        while library_threads("4711") != wanted {
            let found = library_threads("4711");
            assert!(Instant::now() < patience, "{found:?} instead of {wanted:?}");
            thread::sleep(Duration::from_millis(5));
        }
    })
    .join()
    .unwrap();
}

#[test]
fn what_is_published_reaches_who_waits_by_its_descriptor() {
    if !is_there() {
        return;
    }
    let publisher = ZmqSocket::new(&context(), ZmqSocketKind::XPub).unwrap();
    publisher.bind("tcp://127.0.0.1:*").unwrap();
    let subscriber = ZmqSocket::new(&context(), ZmqSocketKind::Sub).unwrap();
    subscriber.subscribe().unwrap();
    subscriber.connect(&publisher.endpoint().unwrap()).unwrap();
    let mut bytes = [0; 8];
    assert_eq!(publisher.receive(&mut bytes, true).unwrap(), 1, "that somebody subscribed");
    publisher.send(b"packet", false).unwrap();
    let got = loop {
        match subscriber.receive(&mut bytes, false) {
            Ok(got) => break got,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        let came = wait_readable(Some(subscriber.descriptor().unwrap()), Duration::from_secs(120));
        assert!(came.unwrap(), "the descriptor signals what came");
    };
    assert_eq!(&bytes[..got], b"packet");
}

#[test]
fn mistakes_name_what_was_wrong() {
    if !is_there() {
        return;
    }
    let socket = ZmqSocket::new(&context(), ZmqSocketKind::Rep).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", taken.local_addr().unwrap());
    let error = socket.bind(&endpoint).unwrap_err().to_string();
    assert!(error.contains(&endpoint) && error.contains("in use"), "{error}");
    let error = socket.connect("nonsense").unwrap_err().to_string();
    assert!(error.contains("nonsense") && error.contains("nvalid"), "{error}");
    assert!(socket.connect("a\0b").is_err());
    let error = socket.receive(&mut [0], false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    let error = socket.send(&[0], false).unwrap_err().to_string();
    assert!(error.contains("current state"), "the library's own errors have its words: {error}");
}

#[test]
fn an_empty_port_and_another_protocol_are_distinguished_from_a_peer() {
    if !is_there() {
        return;
    }
    let patience = Duration::from_millis(300);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [nobody, silent.local_addr().unwrap()] {
        let socket = ZmqSocket::new(&context(), ZmqSocketKind::Dealer).unwrap();
        let endpoint = format!("tcp://{address}");
        let error = socket.connect_surely(&endpoint, patience).unwrap_err().to_string();
        assert!(error.contains("nothing that speaks ZeroMQ at tcp://127"), "{error}");
    }
    let peer = ZmqSocket::new(&context(), ZmqSocketKind::Rep).unwrap();
    peer.bind("tcp://127.0.0.1:*").unwrap();
    let socket = ZmqSocket::new(&context(), ZmqSocketKind::Dealer).unwrap();
    socket.connect_surely(&peer.endpoint().unwrap(), Duration::from_secs(120)).unwrap();
}

#[test]
fn a_library_that_is_absent_is_named_with_its_package() {
    let error = ZmqError::Absent { why: "no such file".into() }.to_string();
    assert!(error.contains("libzmq.so.5") && error.contains("apt-get install libzmq5"), "{error}");
}

#[test]
fn a_peer_that_reads_all_gets_all_however_fast_it_asks() {
    if !is_there() {
        return;
    }
    let context = context();
    let router = ZmqSocket::new(&context, ZmqSocketKind::Router).unwrap();
    let dealer = ZmqSocket::new(&context, ZmqSocketKind::Dealer).unwrap();
    for socket in [&router, &dealer] {
        for (option, value) in [(Number::SendHigh, 8), (Number::ReceiveHigh, 8)] {
            socket.set(option, value).unwrap();
        }
        socket.set(Number::ReceiveMs, 0).unwrap();
    }
    router.set(Number::RouterMandatory, 1).unwrap();
    router.bind("inproc://fast").unwrap();
    dealer.connect("inproc://fast").unwrap();
    dealer.send(b"?", true).unwrap();
    let mut name = [0; 16];
    let length = router.receive(&mut name, true).unwrap();
    let peer = &name[..length];
    assert_eq!(router.receive(&mut [0; 1], true).unwrap(), 1);
    // Without a request in between, as if it never had to wait for one.
    for number in 0..200_u8 {
        assert!(router.begin_to(peer).unwrap(), "answer {number} is dropped");
        router.send_part(&[number], false).unwrap();
        let mut answer = [0; 1];
        assert_eq!(dealer.receive(&mut answer, true).unwrap(), 1);
        assert_eq!(answer, [number]);
    }
    // One that does not read is not waited for, and one that is gone is no error.
    let sent = (0..100).take_while(|_| {
        let begun = router.begin_to(peer).unwrap();
        begun && router.send_part(b"x", false).is_ok()
    });
    assert_eq!(sent.count(), 16);
    drop(dealer);
    assert!(!router.begin_to(b"nobody").unwrap());
}
