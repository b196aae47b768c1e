//! Over real sockets of loopback, whose stamps the kernel makes.

use std::{net::UdpSocket, os::fd::AsRawFd, sync::Arc};

use super::*;
use crate::{
    packet::{LEN, Packet},
    wakeup::{Counted, Series},
};

/// A socket whose packets are stamped: the kernel begins with that a moment after it was asked.
fn receiver() -> UdpSocket {
    let receiver = asking_for_stamps();
    let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut unread = 0;
    loop {
        mouth.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        let mut all = AcceptAll { start_ns: i64::MIN, end_ns: i64::MAX };
        let (_, seen, series) = received(SpinReceive, &receiver, &mut all, 0, 1);
        unread += 1 - seen.packets;
        if series.tally.totals().count > 0 {
            break;
        }
    }
    for _ in 0..unread {
        receiver.recv(&mut [0; 8]).unwrap();
    }
    receiver
}

/// How long to receive what must come, ns.
const PATIENCE: i64 = 120_000_000_000;

fn asking_for_stamps() -> UdpSocket {
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
    receiver
}

fn packet(session: u64, number: u64, scheduled_ns: i64) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    Packet { session, number, scheduled_ns, ..Packet::default() }.write(&mut bytes);
    bytes
}

fn received<W: Await, F: Filter>(
    wait: W,
    receiver: &UdpSocket,
    filter: &mut F,
    for_ns: i64,
    samples: u64,
) -> (Ended, Seen, Arc<Series>) {
    let series = Arc::new(Series::default());
    let mut seen = Seen::default();
    let out = Outlets {
        sink: &mut Counted(Arc::clone(&series)),
        filter,
        nic: &mut NoNic,
        seen: &mut seen,
    };
    let end_ns = clock::now_ns() + for_ns;
    let until = ReceiveUntil { end_ns, samples, stop_over_ns: i64::MAX };
    let mut inlet = Inlet::new(wait, receiver.as_raw_fd(), 2048);
    let ended = run(&mut inlet, out, until, &Stop::new());
    (ended, seen, series)
}

#[test]
fn a_packet_is_late_by_the_time_it_lay_in_the_socket() {
    let receiver = receiver();
    let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
    mouth.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(30));
    let mut all = AcceptAll { start_ns: i64::MIN, end_ns: i64::MAX };
    let (ended, seen, series) = received(Block, &receiver, &mut all, PATIENCE, 1);
    assert_eq!((ended, seen.packets, seen.unstamped), (Ended::Done, 1, 0));
    assert!(series.tally.totals().min_ns >= 30_000_000, "{:?}", series.tally.totals());
}

#[test]
fn only_own_packets_of_the_measured_time_count_and_each_once() {
    let receiver = receiver();
    let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = [packet(7, 0, 99), packet(7, 1, 100), packet(8, 2, 100), packet(7, 1, 100)];
    for bytes in sent.into_iter().chain([packet(7, 3, 102), packet(7, 2, 101)]) {
        mouth.send_to(&bytes, receiver.local_addr().unwrap()).unwrap();
    }
    for bytes in [&b"who is this"[..], &packet(7, 4, 103)] {
        mouth.send_to(bytes, receiver.local_addr().unwrap()).unwrap();
    }
    let mut own = Own { session: 7, start_ns: 100, ..Own::default() };
    let (ended, seen, series) = received(SpinReceive, &receiver, &mut own, PATIENCE, 4);
    assert_eq!((ended, seen.packets, own.foreign), (Ended::Done, 4, 2));
    assert_eq!(series.tally.totals().count, 4);
    let SequenceTracker { received, reordered, duplicated, span, .. } = own.order;
    assert_eq!((received, reordered, duplicated, span), (4, 1, 1, Some((1, 5))));
}

#[test]
fn a_packet_from_after_the_end_ends_it() {
    let receiver = receiver();
    let mouth = UdpSocket::bind("127.0.0.1:0").unwrap();
    mouth.send_to(b"x", receiver.local_addr().unwrap()).unwrap();
    let mut none = AcceptAll { start_ns: 0, end_ns: 1 };
    let (ended, seen, _) = received(Ppoll, &receiver, &mut none, PATIENCE, 1);
    assert_eq!((ended, seen.packets), (Ended::Done, 0));
}

#[test]
fn a_stamp_is_trusted_until_the_clock_is_stepped_and_again_afterwards() {
    let mut seen = Seen::default();
    let mut offset = Offset { known_ns: 1_000_000, trusted_from_ns: i64::MIN };
    assert!(offset.trusts(1_000_050, 5, 40, &mut seen));
    // Stepped to where it is now: what was stamped before this moment is of either clock.
    let now_ns = clock::now_ns();
    assert!(!offset.trusts(0, now_ns, 40, &mut seen));
    assert_eq!(seen.step_ns, offset.known_ns - 1_000_000);
    assert!(!offset.trusts(offset.known_ns, now_ns, 40, &mut seen), "it lay in the socket");
    assert!(offset.trusts(offset.known_ns, clock::now_ns(), 40, &mut seen));
    assert!(!offset.trusts(offset.known_ns, clock::now_ns(), -1, &mut seen), "of the future");
}

#[test]
fn an_interruption_between_two_clock_reads_is_no_step() {
    let mut seen = Seen::default();
    let mut offset = Offset::new();
    let interrupted_ns = offset.known_ns - 3_000_000;
    assert!(offset.trusts(interrupted_ns, clock::now_ns(), 40, &mut seen));
    assert_eq!(seen, Seen::default());
}
