//! The loop against ways by a script, and against sockets.

use std::{collections::VecDeque, vec::Vec};

use super::*;

/// Receives by a script and keeps what is sent.
#[derive(Default)]
struct Scripted {
    incoming: VecDeque<Result<Vec<u8>, c_int>>,
    sent: Vec<Vec<u8>>,
    refuses: VecDeque<c_int>,
}

impl EchoIo for Scripted {
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, c_int> {
        let bytes = self.incoming.pop_front().unwrap_or(Err(libc::ECONNRESET))?;
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        Ok(bytes.len())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), c_int> {
        if let Some(errno) = self.refuses.pop_front() {
            return Err(errno);
        }
        self.sent.push(bytes.to_vec());
        Ok(())
    }

    fn is_over(errno: c_int) -> bool {
        !passes(errno)
    }
}

fn served<A: Answer>(way: &mut Scripted, answer: &A, per_s: u64) -> (ServeEnd, Done) {
    let (counts, mut buffer) = (EchoCounts::default(), [0; 200]);
    // Whatever the clock says, a bucket of the far future does not fill.
    let mut bucket = TokenBucket::new(per_s, i64::MAX);
    let talk = (&mut buffer[..], b"tdyh", 128);
    let ending = serve(way, answer, talk, &mut bucket, &counts, &Stop::new());
    (ending, counts.read())
}

#[test]
fn messages_of_the_size_go_back_and_others_are_counted() {
    let incoming = [Ok(vec![1, 2]), Ok(vec![]), Ok(vec![3]), Ok(vec![4; 201]), Ok(vec![5, 6])];
    let mut way = Scripted { incoming: incoming.into(), ..Scripted::default() };
    let (ending, done) = served(&mut way, &Plain { size: 2 }, 100);
    assert_eq!(
        (ending, way.sent),
        (ServeEnd::Over(libc::ECONNRESET), vec![vec![1, 2], vec![5, 6]])
    );
    assert_eq!(done, Done { answered: 2, bytes: 4, foreign: 3, ..Done::default() });
}

#[test]
fn what_is_over_the_rate_is_dropped_and_counted() {
    let incoming = (0..5).map(|number| Ok(vec![number])).collect();
    let mut way = Scripted { incoming, ..Scripted::default() };
    let (_, done) = served(&mut way, &RawEcho, 3);
    assert_eq!((way.sent, done.over_rate), (vec![vec![0], vec![1], vec![2]], 2));
}

#[test]
fn troubles_that_pass_are_counted_and_others_end() {
    let incoming = [Err(libc::ENETDOWN), Ok(vec![1]), Ok(vec![2]), Err(libc::EBADF)];
    let refuses = [libc::EHOSTUNREACH].into();
    let mut way = Scripted { incoming: incoming.into(), refuses, ..Scripted::default() };
    let (ending, done) = served(&mut way, &RawEcho, 100);
    assert_eq!((ending, way.sent), (ServeEnd::Over(libc::EBADF), vec![vec![2]]));
    assert_eq!((done.failed, done.answered), (2, 1));
}

#[test]
fn a_hello_in_the_middle_is_handed_over_and_not_echoed() {
    let mut hello = vec![7; 128];
    hello[..4].copy_from_slice(b"tdyh");
    let short = hello[..127].to_vec();
    let mut way = Scripted { incoming: [Ok(short), Ok(hello)].into(), ..Scripted::default() };
    let (ending, done) = served(&mut way, &RawEcho, 100);
    assert_eq!((ending, done.answered), (ServeEnd::Spoken(128), 1));
}

#[test]
fn packets_come_back_with_both_times_and_only_those_of_the_session() {
    let packet = |session| {
        let mut bytes = vec![0; 64];
        Packet { session, number: 5, sent_ns: 3, ..Packet::default() }.write(&mut bytes);
        Ok(bytes)
    };
    let short = packet(9).map(|bytes: Vec<u8>| bytes[..60].to_vec());
    let incoming = [packet(9), packet(8), Ok(vec![0; 64]), short];
    let mut way = Scripted { incoming: incoming.into(), ..Scripted::default() };
    let (_, done) = served(&mut way, &Stamped { size: 64, session: 9 }, 100);
    assert_eq!((done.answered, done.foreign, way.sent[0].len()), (1, 3, 64));
    let back = Packet::read(&way.sent[0]).unwrap();
    assert_eq!((back.number, back.sent_ns), (5, 3));
    assert!(0 < back.far_received_ns && back.far_received_ns <= back.far_sent_ns, "{back:?}");
}

#[test]
fn a_stopped_loop_answers_nothing_more() {
    let stop = Stop::new();
    stop.set();
    let mut way = Scripted { incoming: [Ok(vec![1])].into(), ..Scripted::default() };
    let (mut buffer, mut bucket) = ([0; 8], TokenBucket::new(1, 0));
    let counts = EchoCounts::default();
    let talk = (&mut buffer[..], b"tdyh", 0);
    let ending = serve(&mut way, &RawEcho, talk, &mut bucket, &counts, &stop);
    assert_eq!((ending, way.sent.len()), (ServeEnd::Stopped, 0));
}

#[test]
fn a_sender_at_exactly_the_agreed_rate_loses_nothing() {
    for per_s in [1_000, 3, 7_777] {
        let mut bucket = TokenBucket::new(per_s, 0);
        let refused = (0..2_000_000_u64).find(|number| {
            let at_ns = number * 1_000_000_000 / per_s;
            // As late as a clock is read, and back on the schedule.
            !bucket.take(|| at_ns.cast_signed() + 300 * (number % 3).cast_signed())
        });
        assert_eq!(refused, None, "{per_s} a second");
    }
}

#[test]
fn a_bucket_fills_at_its_rate_and_holds_one_second_of_it() {
    let mut bucket = TokenBucket::new(1000, 0);
    let mut taken = |count: u32, now_ns| (0..count).filter(|_| bucket.take(|| now_ns)).count();
    assert_eq!(taken(2000, 0), 1000);
    assert_eq!(taken(10, 999_999), 0);
    assert_eq!(taken(10, 2_000_000), 2);
    assert_eq!(taken(5000, 1_000_000_000_000), 1000);
    // A clock that goes backwards fills nothing.
    assert_eq!(taken(10, 0), 0);
    assert!(TokenBucket::new(0, 0).take(|| 0), "no rate is 0");
}

#[test]
fn whole_messages_of_a_stream_and_datagrams_go_round() {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::{fd::AsRawFd, unix::net::UnixDatagram},
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let serving = std::thread::spawn(move || {
        let (counts, mut buffer) = (EchoCounts::default(), [0; 3]);
        let mut way = Messages { descriptor: far.as_raw_fd() };
        let talk = (&mut buffer[..], b"tdyh", 0);
        let mut bucket = TokenBucket::new(100, 0);
        serve(&mut way, &Plain { size: 3 }, talk, &mut bucket, &counts, &Stop::new());
        counts.read()
    });
    near.write_all(b"ab").unwrap();
    near.write_all(b"cdefgh").unwrap();
    let mut back = [0; 6];
    near.read_exact(&mut back).unwrap();
    drop(near);
    assert_eq!((&back, serving.join().unwrap().answered), (b"abcdef", 2));

    let (near, far) = UnixDatagram::pair().unwrap();
    let mut way = Datagrams { descriptor: far.as_raw_fd() };
    near.send(&[5; 20]).unwrap();
    assert_eq!(way.receive(&mut [0; 8]), Ok(20), "the length that it had");
    way.send(&[1, 2]).unwrap();
    assert_eq!(near.recv(&mut [0; 8]).unwrap(), 2);
}
