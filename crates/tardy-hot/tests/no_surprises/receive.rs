//! Counted, not timed: a reader and a sender of packets allocate nothing and take no page fault
//! between their first and last packet, by every kind of wait.

use std::{
    net::UdpSocket,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::Arc,
};

use super::{
    alloc,
    faults::{page_faults, undisturbed},
};
use tardy_hot::{
    clock::now_ns,
    packet::LEN,
    receive::{
        AcceptAll, Await, Block, Epoll, Inlet, NicStamp, NoNic, Outlets, Own, Ppoll, ReceiveUntil,
        ScheduledSender, Seen, Sent, SpinReceive, Times, run,
    },
    ring::ring,
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series},
};

/// Packets that a socket surely holds.
const PACKETS: u64 = 100;

/// What a loop did that it must not: allocations and page faults.
fn counted(turns: impl FnOnce()) -> (u64, u64) {
    let before = page_faults();
    alloc::arm(3);
    turns();
    (alloc::disarm(), page_faults() - before)
}

fn sockets() -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option takes an integer, which lives as long as the call.
    let failed = unsafe {
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const wanted).cast(),
            size_of_val(&wanted) as libc::socklen_t,
        )
    };
    assert_eq!(failed, 0);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    (receiver, sender)
}

/// Sends packets that are all late, and so at once; what that did that it must not.
fn sent(sender: &mut ScheduledSender) -> (u64, u64) {
    // So long that the schedule's last half is not over before all are sent.
    const PERIOD_NS: i64 = 3_600_000_000_000;
    let now_ns = now_ns();
    let first_ns = now_ns - (PACKETS.cast_signed() - 1) * PERIOD_NS;
    let end_ns = now_ns + PERIOD_NS / 2;
    let times = Times { first_ns, period_ns: PERIOD_NS, start_ns: first_ns, end_ns };
    let (mut sent, mut ended) = (Sent::default(), Ended::Stopped);
    let stop = Stop::new();
    let found = counted(|| ended = sender.send_all(times, &mut sent, &stop));
    assert_eq!((ended, sent.sent), (Ended::Done, PACKETS));
    found
}

/// The kernel begins to stamp a moment after it is asked: sends until it does.
fn wait_for_stamps(receiver: &UdpSocket, out: &UdpSocket) {
    let series = Arc::new(Series::default());
    while series.tally.totals().count == 0 {
        out.send(b"x").unwrap();
        let mut inlet = Inlet::new(Block, receiver.as_raw_fd(), 2048);
        let out = Outlets {
            sink: &mut Counted(Arc::clone(&series)),
            filter: &mut AcceptAll { start_ns: i64::MIN, end_ns: i64::MAX },
            nic: &mut NoNic,
            seen: &mut Seen::default(),
        };
        // If it is not stamped, the next look finds nothing, and that is the end.
        let until = ReceiveUntil { end_ns: 0, samples: 1, stop_over_ns: i64::MAX };
        receiver.set_nonblocking(true).unwrap();
        assert_eq!(run(&mut inlet, out, until, &Stop::new()), Ended::Done);
        receiver.set_nonblocking(false).unwrap();
    }
}

fn read<W: Await>(
    wait: W,
    receiver: &UdpSocket,
    sender: &mut ScheduledSender,
    session: u64,
) -> [(u64, u64); 2] {
    let mut inlet = Inlet::new(wait, receiver.as_raw_fd(), 2048);
    let series = Arc::new(Series::default());
    let room = usize::try_from(PACKETS).unwrap();
    let ((writer, _samples), (mut nic, _stamps)) = (ring(room), ring::<NicStamp>(room));
    let mut sink = Kept(Arc::clone(&series), writer);
    let mut own = Own { session, start_ns: i64::MIN, ..Own::default() };
    let mut seen = Seen::default();
    let stop = Stop::new();
    let mut round = |count: u64| {
        let sending = sent(sender);
        own.order = Default::default();
        let out = Outlets { sink: &mut sink, filter: &mut own, nic: &mut nic, seen: &mut seen };
        let until = ReceiveUntil { end_ns: i64::MAX, samples: count, stop_over_ns: i64::MAX };
        let mut ended = Ended::Stopped;
        let found = counted(|| ended = run(&mut inlet, out, until, &stop));
        assert_eq!(ended, Ended::Done);
        (sending, found)
    };
    // The first touches the loops' private memory, and pages of the program that nothing has
    // touched before: a run locks those in memory.
    round(PACKETS / 2);
    let (sending, found) = round(PACKETS / 2);
    assert_eq!(series.tally.totals().count, PACKETS);
    [sending, found]
}

#[test]
fn neither_reader_nor_sender_allocates_or_takes_a_page_fault() {
    let (receiver, out) = sockets();
    wait_for_stamps(&receiver, &out);
    let mut sender = ScheduledSender::new(out.as_raw_fd(), 7, LEN);
    sent(&mut sender);
    // SAFETY: takes an integer.
    let watcher = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    assert!(watcher >= 0);
    // SAFETY: the descriptor was opened above and nobody else knows it.
    let watcher = unsafe { OwnedFd::from_raw_fd(watcher) };
    let mut wanted = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
    let (number, control) = (watcher.as_raw_fd(), receiver.as_raw_fd());
    // SAFETY: both descriptors are open, and the event lives as long as the call.
    let failed = unsafe { libc::epoll_ctl(number, libc::EPOLL_CTL_ADD, control, &raw mut wanted) };
    assert_eq!(failed, 0);
    assert_none("block", || read(Block, &receiver, &mut sender, 7));
    assert_none("ppoll", || read(Ppoll, &receiver, &mut sender, 7));
    assert_none("epoll", || read(Epoll(number), &receiver, &mut sender, 7));
    assert_none("spin", || read(SpinReceive, &receiver, &mut sender, 7));
}

/// Neither sending nor reading did what it must not.
fn assert_none(wait: &str, read: impl FnMut() -> [(u64, u64); 2]) {
    let none = [(0, 0); 2];
    assert_eq!(undisturbed(read, |found| *found == none), none, "{wait}");
}
