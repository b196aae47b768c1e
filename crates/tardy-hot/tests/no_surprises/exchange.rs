//! The loops of the ping-pong with every port: both ends in one thread, so that the number of calls
//! does not depend on which end is faster.

use core::ffi::{c_int, c_long};
use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd,
        unix::net::{UnixDatagram, UnixStream},
    },
    sync::{Arc, Barrier, atomic::AtomicU64},
    thread,
};

use tardy_hot::{
    exchange::{Port, ping, pong},
    ports::{
        counted::{Eventfd, Semaphore},
        datagram::Datagram,
        futex::Futex,
        page::{SharedPage, Side, WORDS},
        pi_mutex::PiMutex,
        queue::QueuePort,
        signal::Signal,
        spin::SpinPort,
        stream::{Pipe, StreamPort, StreamSocket},
    },
    ring::ring,
    stop::Stop,
    wakeup::{Ended, Kept, Series, Until},
};

use super::{
    WARMUP, alloc, alone,
    faults::{page_faults, undisturbed},
    traced,
};

/// Longer than one page, so that buffers have a part that nothing but filling would touch.
const SIZE: usize = 6000;

/// A port, and the calls that it makes per round trip, both ends together.
type Case = (&'static str, &'static [(c_long, u64)]);

const CASES: [Case; 11] = [
    ("tcp", &[(libc::SYS_sendto, 2), (libc::SYS_recvfrom, 2)]),
    ("udp", &[(libc::SYS_sendto, 2), (libc::SYS_recvfrom, 2)]),
    ("unix-stream", &[(libc::SYS_sendto, 2), (libc::SYS_recvfrom, 2)]),
    ("unix-dgram", &[(libc::SYS_sendto, 2), (libc::SYS_recvfrom, 2)]),
    ("pipe", &[(libc::SYS_write, 2), (libc::SYS_read, 2)]),
    ("eventfd", &[(libc::SYS_write, 2), (libc::SYS_read, 2)]),
    ("futex", &[(libc::SYS_futex, 2)]),
    ("posix-mq", &[(libc::SYS_mq_timedsend, 2), (libc::SYS_mq_timedreceive, 2)]),
    ("sysv-sem", &[(libc::SYS_semtimedop, 4)]),
    ("signal", &[(libc::SYS_rt_tgsigqueueinfo, 2), (libc::SYS_rt_sigtimedwait, 2)]),
    ("shm-spin", &[]),
];

/// Both ends; the remote one answers when the local one waits.
struct Both<P>(P, P);

impl<P: Port> Port for Both<P> {
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        self.0.send(number)
    }

    fn receive(&mut self) -> Result<u8, c_int> {
        let number = self.1.receive()?;
        self.1.send(number)?;
        self.0.receive()
    }
}

/// What a port is tried with.
trait Trial {
    fn with(self, port: &mut impl Port);
}

fn page() -> &'static SharedPage {
    let words: Box<[AtomicU64; WORDS]> = Box::new(core::array::from_fn(|_| AtomicU64::new(0)));
    SharedPage::of(Box::leak(words))
}

/// Makes both ends of a case and tries them.
fn with(name: &str, trial: impl Trial) {
    let sockets = |near: &dyn AsRawFd, far: &dyn AsRawFd| (near.as_raw_fd(), far.as_raw_fd());
    let stream = |(near, far)| {
        Both(
            StreamPort::<StreamSocket>::new(near, near, SIZE),
            StreamPort::<StreamSocket>::new(far, far, SIZE),
        )
    };
    let datagram = |(near, far)| Both(Datagram::new(near, SIZE), Datagram::new(far, SIZE));
    match name {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let far = listener.accept().unwrap().0;
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            trial.with(&mut stream(sockets(&near, &far)));
        }
        "udp" => {
            let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            near.connect(far.local_addr().unwrap()).unwrap();
            far.connect(near.local_addr().unwrap()).unwrap();
            trial.with(&mut datagram(sockets(&near, &far)));
        }
        "unix-stream" => {
            let (near, far) = UnixStream::pair().unwrap();
            trial.with(&mut stream(sockets(&near, &far)));
        }
        "unix-dgram" => {
            let (near, far) = UnixDatagram::pair().unwrap();
            trial.with(&mut datagram(sockets(&near, &far)));
        }
        "pipe" => {
            let [there, back] = [(); 2].map(|()| std::io::pipe().unwrap());
            let end = |to: &dyn AsRawFd, from: &dyn AsRawFd| {
                StreamPort::<Pipe>::new(to.as_raw_fd(), from.as_raw_fd(), SIZE)
            };
            trial.with(&mut Both(end(&there.1, &back.0), end(&back.1, &there.0)));
        }
        _ => with_no_size(name, trial),
    }
}

fn with_no_size(name: &str, trial: impl Trial) {
    let page = page();
    match name {
        "eventfd" => {
            // SAFETY: takes two numbers.
            let [there, back] = [(); 2].map(|()| unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE) });
            trial.with(&mut Both(Eventfd::new(there, back), Eventfd::new(back, there)));
        }
        "futex" => {
            trial.with(&mut Both(Futex::new(page, Side::Near), Futex::new(page, Side::Far)));
        }
        "posix-mq" => {
            let (there, back) = (queue(), queue());
            trial.with(&mut Both(
                QueuePort::new(there, back, SIZE),
                QueuePort::new(back, there, SIZE),
            ));
        }
        "sysv-sem" => {
            let set = Set::new();
            trial.with(&mut Both(Semaphore::new(set.0, 0, 1), Semaphore::new(set.0, 1, 0)));
        }
        "signal" => {
            let end = |side| Signal::new(page, side).unwrap();
            trial.with(&mut Both(end(Side::Near), end(Side::Far)));
        }
        "shm-spin" => {
            trial.with(&mut Both(SpinPort::new(page, Side::Near), SpinPort::new(page, Side::Far)));
        }
        other => panic!("no case {other}"),
    }
}

/// A message queue without a name, both ways in one descriptor.
fn queue() -> c_int {
    let name = std::ffi::CString::new(format!("/tardy-hot-test-{}", std::process::id())).unwrap();
    // SAFETY: the attributes are integers, of which zeros are values.
    let mut attributes: libc::mq_attr = unsafe { core::mem::zeroed() };
    attributes.mq_maxmsg = 2;
    attributes.mq_msgsize = c_long::try_from(SIZE).unwrap();
    let (flags, access): (_, libc::mode_t) = (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600);
    // SAFETY: the name ends in 0, and the attributes are live.
    let queue = unsafe { libc::mq_open(name.as_ptr(), flags, access, &raw const attributes) };
    assert!(queue >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the name ends in 0.
    unsafe { libc::mq_unlink(name.as_ptr()) };
    queue
}

/// Two semaphores that are removed when this goes.
struct Set(c_int);

impl Set {
    fn new() -> Self {
        // SAFETY: takes integers.
        let set = unsafe { libc::semget(libc::IPC_PRIVATE, 2, 0o600) };
        assert!(set >= 0, "{}", std::io::Error::last_os_error());
        Self(set)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        // SAFETY: the set is this one's own; the command has no argument.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// Warms up, then pings `turns` times between `begin` and `end`, keeping every sample.
struct Between<B, E>(u64, B, E);

impl<T, B: FnOnce() -> T, E: FnOnce(T)> Trial for Between<B, E> {
    fn with(self, port: &mut impl Port) {
        let Self(turns, begin, end) = self;
        let room = usize::try_from(turns + WARMUP).unwrap();
        let (series, (writer, mut reader)) = (Arc::<Series>::default(), ring(room));
        let mut sink = Kept(Arc::clone(&series), writer);
        let stop = Stop::new();
        let until = |samples| Until { end_ns: i64::MAX, samples, stop_over_ns: i64::MAX };
        assert_eq!(ping(port, &mut sink, until(WARMUP), &stop), Ended::Done);
        let before = begin();
        let ended = ping(port, &mut sink, until(turns), &stop);
        end(before);
        assert_eq!((ended, reader.drain(|_| {})), (Ended::Done, room));
    }
}

#[test]
fn no_exchange_allocates_or_takes_a_page_fault() {
    let _alone = alone();
    for (name, _) in CASES {
        let no_allocation = |()| {
            let found = alloc::disarm();
            assert_eq!(found, 0, "{name}: allocations (their backtraces stand above)");
        };
        with(name, Between(1_000, || alloc::arm(3), no_allocation));
        page_faults();
        let count = || {
            let mut found = 0;
            with(name, Between(1_000, page_faults, |before| found = page_faults() - before));
            found
        };
        assert_eq!(undisturbed(count, |found| *found == 0), 0, "{name}: page faults");
    }
}

#[test]
fn no_exchange_makes_other_calls_than_to_send_and_to_receive() {
    let order = || CASES.into_iter().flat_map(|case| traced::TURNS.map(|turns| (case, turns)));
    if traced::is_child() {
        return traced::child(|| {
            for ((name, _), turns) in order() {
                with(name, Between(turns, traced::mark, |()| traced::mark()));
            }
        });
    }
    let name = "exchange::no_exchange_makes_other_calls_than_to_send_and_to_receive";
    let found = match traced::count(name, order().count()) {
        Ok(found) => found,
        Err(why) => return println!("skipped: {why}"),
    };
    super::say_where_clock_reads_are_calls(&found);
    for (at, ((name, calls), turns)) in order().enumerate() {
        let known = calls.iter().map(|(call, times)| (*call, times * turns)).collect();
        assert_eq!(found.calls(at), known, "{name}, {turns} turns, call: count");
    }
}

/// Mutexes belong to a thread, so these ends have one each. The faster end needs no call at all, so
/// only a maximum is known.
#[test]
fn mutexes_make_at_most_one_call_to_unlock_and_one_to_lock() {
    const TURNS: u64 = 500;
    let exchange = |begin: &dyn Fn(), end: &dyn Fn()| {
        let (page, both) = (page(), Arc::new(Barrier::new(2)));
        let ready = Arc::clone(&both);
        let far = thread::spawn(move || {
            let mut far = PiMutex::new(page, Side::Far).unwrap();
            ready.wait();
            let mut answered = 0;
            (pong(&mut far, &Stop::new(), &mut answered), answered)
        });
        let mut near = PiMutex::new(page, Side::Near).unwrap();
        both.wait();
        Between(TURNS, begin, |()| end()).with(&mut near);
        drop(near);
        let known = (Ended::Failed(libc::ECONNRESET), TURNS + WARMUP);
        assert_eq!(far.join().unwrap(), known);
    };
    if traced::is_child() {
        return traced::child(|| exchange(&traced::mark, &traced::mark));
    }
    exchange(&|| alloc::arm(3), &|| assert_eq!(alloc::disarm(), 0, "allocations"));
    let name = "exchange::mutexes_make_at_most_one_call_to_unlock_and_one_to_lock";
    match traced::count(name, 1) {
        Ok(found) => {
            let mut calls = found.calls(0);
            let futex = calls.remove(&libc::SYS_futex).unwrap_or(0);
            assert!(calls.is_empty() && futex <= 2 * TURNS, "{futex} and {calls:?}");
        }
        Err(why) => println!("skipped: {why}"),
    }
}
