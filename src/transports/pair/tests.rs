//! Every transport between two threads: numbers go there and back, and the end of one is reported.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle, yield_now},
};

use tardy_hot::{
    exchange::{Port, ping, pong},
    stop::Stop,
    wakeup::{Counted, Ended, Series, Until},
};

use super::{super::port::PortUser, *};
use crate::{
    sys::{signals, zmq::Library},
    transports::page::Interrupter,
};

#[test]
fn an_interface_that_is_down_is_named() {
    let source = io::Error::from_raw_os_error(libc::ENETUNREACH);
    let error = TransportError::Make { transport: Transport::Tcp, source }.to_string();
    assert!(error.ends_with("the loopback interface is down (`ip link set lo up`)"), "{error}");
}

/// All transports that can be made here: ZeroMQ if its library is installed. Without privileges the
/// namespace for semaphores is left out; its error has its own test.
fn own() -> impl Iterator<Item = Transport> {
    let is_root = rustix::process::geteuid().is_root();
    let has_zmq = Library::get().is_ok();
    let can_be_made = move |transport: &Transport| match transport {
        Transport::SysvSem => is_root,
        _ => has_zmq || !transport.is_zmq(),
    };
    Transport::ALL.into_iter().filter(can_be_made)
}

/// Whether the remote endpoint sees the local one go, by itself.
const fn sees_the_other_go(transport: Transport) -> bool {
    matches!(
        transport,
        Transport::Tcp
            | Transport::UnixStream
            | Transport::Pipe
            | Transport::Futex
            | Transport::PiMutex
            | Transport::ShmSpin
    )
}

struct Pings(Arc<Series>, u64);

impl PortUser for Pings {
    type Out = Ended;

    fn with<P: Port>(self, port: &mut P) -> Ended {
        let until = Until { end_ns: i64::MAX, samples: self.1, stop_over_ns: i64::MAX };
        ping(port, &mut Counted(self.0), until, &Stop::new())
    }
}

struct Pongs(Arc<Stop>);

impl PortUser for Pongs {
    type Out = (Ended, u64);

    fn with<P: Port>(self, port: &mut P) -> (Ended, u64) {
        let mut answered = 0;
        (pong(port, &self.0, &mut answered), answered)
    }
}

/// A thread that waits in a port, and how to end its wait.
struct Waiter<T> {
    thread: JoinHandle<T>,
    tid: i32,
    interrupter: Option<Interrupter>,
}

impl<T: Send + 'static> Waiter<T> {
    /// Opens `end` as another process would get it, waits for `go`, and uses it.
    fn start(
        end: TransportEnd,
        go: Receiver<()>,
        user: impl PortUser<Out = T> + Send + 'static,
    ) -> Self {
        let order = serde_json::to_string(&end.order()).unwrap();
        let end = TransportEnd::from_order(serde_json::from_str(&order).unwrap(), end.descriptors);
        let (opened, is_open) = channel();
        let thread = thread::spawn(move || {
            let mut port = end.open().unwrap();
            opened.send((rustix::thread::gettid(), port.interrupter())).unwrap();
            go.recv().unwrap();
            port.with(user)
        });
        let (tid, interrupter) = is_open.recv().unwrap();
        Self { thread, tid: tid.as_raw_nonzero().get(), interrupter }
    }

    /// Lets it give up waiting until `done`, or until it has ended.
    fn interrupt_until(&self, mut done: impl FnMut() -> bool) {
        while !done() && !self.thread.is_finished() {
            signals::nudge(self.tid);
            if let Some(interrupter) = &self.interrupter {
                interrupter.interrupt();
            }
            yield_now();
        }
    }
}

#[test]
fn every_round_trip_is_a_sample_over_every_transport_and_the_far_end_can_be_ended() {
    signals::accept_nudges().unwrap();
    for transport in own() {
        for size in if transport.has_size() { &[1, 2, 4000][..] } else { &[1] } {
            let Pair { near, far_end } = pair(transport, *size).unwrap();
            let (stop, (go, start)) = (Arc::new(Stop::new()), channel());
            let far_end = Waiter::start(far_end, start, Pongs(Arc::clone(&stop)));
            let mut near = near.open().unwrap();
            go.send(()).unwrap();
            let series = Arc::new(Series::default());
            // Numbers begin again with each loop, whatever the one before came to.
            for samples in [700, 1, 257] {
                let pings = Pings(Arc::clone(&series), samples);
                assert_eq!(near.with(pings), Ended::Done, "{transport} {size}");
            }
            let totals = series.tally.totals();
            assert_eq!((totals.count, totals.missed), (958, 0), "{transport} {size}");
            drop(near);
            let known = if sees_the_other_go(transport) {
                Ended::Failed(libc::ECONNRESET)
            } else {
                stop.set();
                far_end.interrupt_until(|| false);
                Ended::Stopped
            };
            assert_eq!(far_end.thread.join().unwrap(), (known, 958), "{transport} {size}");
        }
    }
}

#[test]
fn a_wait_can_be_given_up_and_the_exchange_goes_on() {
    signals::accept_nudges().unwrap();
    // What waits for a mutex waits until it has it.
    for transport in own().filter(|transport| *transport != Transport::PiMutex) {
        let Pair { near, far_end } = pair(transport, 1).unwrap();
        let (stop, (go, start)) = (Arc::new(Stop::new()), channel());
        let far_end = Waiter::start(far_end, start, Pongs(Arc::clone(&stop)));
        let series = Arc::new(Series::default());
        let (begin, begun) = channel();
        begin.send(()).unwrap();
        let near = Waiter::start(near, begun, Pings(Arc::clone(&series), 300));
        near.interrupt_until(|| series.tally.totals().missed > 0);
        go.send(()).unwrap();
        assert_eq!(near.thread.join().unwrap(), Ended::Done, "{transport}");
        let totals = series.tally.totals();
        assert_eq!(totals.count + totals.missed, 300, "{transport}: {totals:?}");
        assert!(totals.count > 0 && totals.missed > 0, "{transport}: {totals:?}");
        stop.set();
        far_end.interrupt_until(|| false);
        far_end.thread.join().unwrap();
    }
}

#[test]
fn messages_that_do_not_fit_are_refused_with_what_would() {
    for (transport, size) in [
        (Transport::Udp, 65_508),
        (Transport::UnixDgram, 15 << 20),
        (Transport::PosixMq, 15 << 20),
        (Transport::Tcp, usize::MAX),
    ] {
        let error = pair(transport, size).unwrap_err().to_string();
        let most = most(transport);
        assert!(error.contains(&format!("at most {most} bytes")), "{error}");
        assert!(most >= 4096 && pair(transport, most.min(65_536)).is_ok(), "{transport}: {most}");
    }
    assert!(pair(Transport::Udp, 65_507).is_ok());
}

#[test]
fn what_has_buffers_tells_how_large_they_are() {
    for transport in own() {
        let near = pair(transport, 1).unwrap().near.open().unwrap();
        let has = matches!(
            transport,
            Transport::Tcp
                | Transport::Udp
                | Transport::UnixStream
                | Transport::UnixDgram
                | Transport::Pipe
        );
        let (receive, send) = near.buffers();
        assert_eq!((receive > Some(1000), send > Some(1000)), (has, has), "{transport}");
    }
}

#[test]
fn an_order_without_its_descriptors_is_an_error() {
    // An end of zmq-inproc has a name only, and of the others of ZeroMQ only the local one listens.
    for transport in own().filter(|transport| *transport != Transport::ZmqInproc) {
        let Pair { near, far_end } = pair(transport, 1).unwrap();
        let end = if transport.is_zmq() { near } else { far_end };
        let error = TransportEnd::from_order(end.order(), Vec::new()).open().unwrap_err();
        assert!(matches!(error, TransportError::Incomplete { .. }), "{error}");
    }
}
