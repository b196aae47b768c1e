//! Counted, not timed: between its first and its last packet the loop of a stream allocates nothing
//! and takes no page fault. Every way to wait is tried with every way for packets.

use std::{
    net::{TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
    sync::atomic::Ordering::Relaxed,
};

use super::{
    alloc,
    faults::{page_faults, undisturbed},
};
use tardy_hot::{
    clock::now_ns,
    packet::Packet,
    ring::ring,
    stages::ThreadRecord,
    stop::Stop,
    stream::{
        Arrivals, Counts, Hybrid, Pacing, PacketPeriod, PacketSchedule, Packets, Passage,
        RecvOutcome, Sleep, SpinPacing, StreamEnd, StreamLimits, Tcp, TracedArrivals,
        TracedPassage, Udp, both,
    },
    wakeup::Ended,
};

const PACKETS: u64 = 500;
const SIZE: usize = 64;

/// One end sends to itself, by `out`, and receives by `into`. The way is gone when all has come, so
/// that a loop ends by that, and not at a time that a busy machine may be too slow for.
struct Circle<P> {
    out: P,
    into: P,
    missing: u64,
}

impl<P: Packets> Packets for Circle<P> {
    fn send(&mut self, packet: &Packet) -> Result<(), i32> {
        self.out.send(packet)
    }

    fn receive(&mut self) -> Result<RecvOutcome, i32> {
        if self.missing == 0 {
            return Err(libc::ECONNRESET);
        }
        let got = self.into.receive()?;
        self.missing -= u64::from(matches!(got, RecvOutcome::Packet(_)));
        Ok(got)
    }

    fn wait(&mut self, until_ns: i64) -> Result<(), i32> {
        self.into.wait(until_ns)
    }
}

/// Sends and receives `PACKETS` after a warm-up; what `count` grew by meanwhile.
fn between<P: Packets, W: Pacing>(
    port: &mut Circle<P>,
    pace: W,
    begin: impl FnOnce() -> u64,
    end: impl FnOnce(u64) -> u64,
) -> u64 {
    let (mut writer, mut reader) = ring::<Passage>(2 * PACKETS as usize);
    let found = into(&mut writer, port, pace, begin, end);
    assert_eq!(reader.drain(|_| ()) as u64, PACKETS + 3);
    found
}

/// The same with the wake-ups of the thread noted.
fn watched<P: Packets, W: Pacing>(
    port: &mut Circle<P>,
    pace: W,
    begin: impl FnOnce() -> u64,
    end: impl FnOnce(u64) -> u64,
) -> u64 {
    let (mut writer, mut reader) = ring::<TracedPassage>(2 * PACKETS as usize);
    let record = &ThreadRecord::default();
    let mut arrivals = TracedArrivals { record, passages: &mut writer };
    let found = into(&mut arrivals, port, pace, begin, end);
    assert_eq!(reader.drain(|_| ()) as u64, PACKETS + 3);
    found
}

fn into<P: Packets, W: Pacing, A: Arrivals>(
    passages: &mut A,
    port: &mut Circle<P>,
    pace: W,
    begin: impl FnOnce() -> u64,
    end: impl FnOnce(u64) -> u64,
) -> u64 {
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let mut circle = StreamEnd { port, pace, session: 5, passages, counts: &counts };
    let mut go = |packets| {
        let period = PacketPeriod::of_rate(10_000_000);
        let first_ns = now_ns();
        let schedule = PacketSchedule { first_ns, period, packets, recorded_from: 0, flow: 0 };
        let limits = StreamLimits { until_ns: i64::MAX, stop: &stop, enough: &enough };
        circle.port.missing = packets;
        assert_eq!(both(&mut circle, &schedule, limits), Ended::Failed(libc::ECONNRESET));
    };
    go(3);
    let before = begin();
    go(PACKETS);
    let found = end(before);
    assert_eq!(counts.unsent.load(Relaxed), 0);
    found
}

/// All ways, with what is counted on each.
fn everywhere(begin: impl Fn() -> u64, end: impl Fn(u64) -> u64) -> Vec<(&'static str, u64)> {
    let (near, far) = (bound(), bound());
    near.connect(far.local_addr().unwrap()).unwrap();
    let datagram = |socket: &UdpSocket| Udp::new(socket.as_raw_fd(), SIZE, None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    out.set_nodelay(true).unwrap();
    let into = listener.accept().unwrap().0;
    let piece = |socket: &TcpStream| Tcp::new(socket.as_raw_fd(), SIZE);
    let mut found = Vec::new();
    let mut udp = Circle { out: datagram(&near), into: datagram(&far), missing: 0 };
    found.push(("udp, sleep", between(&mut udp, Sleep, &begin, &end)));
    found.push(("udp, spin", between(&mut udp, SpinPacing, &begin, &end)));
    found.push(("udp, hybrid", between(&mut udp, Hybrid(50_000), &begin, &end)));
    found.push(("udp, watched", watched(&mut udp, Sleep, &begin, &end)));
    let mut tcp = Circle { out: piece(&out), into: piece(&into), missing: 0 };
    found.push(("tcp, sleep", between(&mut tcp, Sleep, &begin, &end)));
    found.push(("tcp, spin", between(&mut tcp, SpinPacing, &begin, &end)));
    found
}

fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[test]
fn no_stream_allocates() {
    let begin = || {
        alloc::arm(3);
        0
    };
    for (way, found) in everywhere(begin, |_| alloc::disarm()) {
        assert_eq!(found, 0, "{way}: allocations (their backtraces stand above)");
    }
}

#[test]
fn no_stream_takes_a_page_fault() {
    page_faults();
    let count = || everywhere(page_faults, |before| page_faults() - before);
    for (way, found) in undisturbed(count, |found| found.iter().all(|(_, found)| *found == 0)) {
        assert_eq!(found, 0, "{way}: page faults");
    }
}
