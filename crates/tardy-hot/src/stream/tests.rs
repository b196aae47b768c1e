//! The loop by a script of what its way says, and both ways by real sockets.

use std::{
    collections::VecDeque, net::UdpSocket, os::fd::AsRawFd, os::unix::net::UnixStream,
    sync::atomic::Ordering::Relaxed,
};

use proptest::prelude::*;

use super::*;
use crate::{
    ring::{Reader, ring},
    stages::ThreadRecord,
    trips::LateLeg,
};

/// Takes or refuses packets by a script, and has others to be received.
#[derive(Default)]
struct Scripted {
    sent: Vec<Packet>,
    /// What the n-th send says; room without end after these.
    answers: VecDeque<Result<(), c_int>>,
    /// What is there; nothing after these.
    there: VecDeque<RecvOutcome>,
    /// The way is gone where nothing is there any more.
    goes: bool,
}

impl Packets for Scripted {
    fn send(&mut self, packet: &Packet) -> Result<(), c_int> {
        self.answers.pop_front().unwrap_or(Ok(()))?;
        self.sent.push(*packet);
        Ok(())
    }

    fn receive(&mut self) -> Result<RecvOutcome, c_int> {
        let none = if self.goes { Err(libc::ECONNRESET) } else { Ok(RecvOutcome::Nothing) };
        self.there.pop_front().map_or(none, Ok)
    }

    fn wait(&mut self, until_ns: i64) -> Result<(), c_int> {
        sleep(libc::TIMER_ABSTIME, until_ns);
        Ok(())
    }
}

const SESSION: u64 = 77;

/// Longer than any loop here takes; each ends by what its port says.
const PATIENCE_NS: i64 = 120_000_000_000;

fn packet_schedule(first_ns: i64, packets: u64) -> PacketSchedule {
    let period = PacketPeriod { ns: 1_000, fraction: 0 };
    PacketSchedule { first_ns, period, packets, recorded_from: 1, flow: 0 }
}

fn of_number(number: u64) -> RecvOutcome {
    RecvOutcome::Packet(Packet { session: SESSION, number, ..Packet::default() })
}

/// Runs one end with a port to its end.
fn with<P: Packets>(
    port: &mut P,
    run: impl FnOnce(&mut StreamEnd<'_, P, SpinPacing>, StreamLimits<'_>) -> Ended,
) -> (Ended, Counts, Vec<Passage>) {
    let (mut writer, mut reader): (_, Reader<Passage>) = ring(1_024);
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let until_ns = clock::now_ns() + PATIENCE_NS;
    let limits = StreamLimits { until_ns, stop: &stop, enough: &enough };
    let passages = &mut writer;
    let mut end = StreamEnd { port, pace: SpinPacing, session: SESSION, passages, counts: &counts };
    let ended = run(&mut end, limits);
    let mut passed = Vec::new();
    reader.drain(|passage| passed.push(passage));
    (ended, counts, passed)
}

#[test]
fn an_end_behind_its_schedule_leaves_no_packet_out_and_each_keeps_its_own_time() {
    let mut port = Scripted::default();
    let first_ns = clock::now_ns() - 5_000_000;
    let (ended, counts, _) =
        with(&mut port, |end, limits| send(end, &packet_schedule(first_ns, 3_000), limits));
    assert_eq!((ended, counts.due.load(Relaxed), port.sent.len()), (Ended::Done, 3_000, 3_000));
    for (number, packet) in port.sent.iter().enumerate() {
        assert_eq!(packet.number, number as u64);
        assert_eq!(packet.scheduled_ns, first_ns + 1_000 * number as i64);
        assert!(packet.sent_ns >= packet.scheduled_ns, "{packet:?}");
    }
}

#[test]
fn an_end_goes_on_sending_when_all_has_come_and_gives_up_at_the_end() {
    let mut port = Scripted::default();
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let (mut passages, _reader) = ring(2);
    enough.set();
    for (until_ns, sent) in [(i64::MAX, 7), (0, 7)] {
        let limits = StreamLimits { until_ns, stop: &stop, enough: &enough };
        let passages = &mut passages;
        let mut end =
            StreamEnd { port: &mut port, pace: SpinPacing, session: 0, passages, counts: &counts };
        assert_eq!(send(&mut end, &packet_schedule(clock::now_ns(), 7), limits), Ended::Done);
        assert_eq!(port.sent.len(), sent, "none more where the time is over");
    }
}

#[test]
fn a_packet_that_is_not_taken_is_counted_and_the_schedule_goes_on() {
    let refused = [Err(libc::EAGAIN), Err(libc::ENOBUFS), Ok(()), Err(libc::ENETUNREACH)];
    let mut port = Scripted { answers: refused.into(), ..Scripted::default() };
    let (ended, counts, _) =
        with(&mut port, |end, limits| send(end, &packet_schedule(0, 5), limits));
    let numbers: Vec<u64> = port.sent.iter().map(|packet| packet.number).collect();
    assert_eq!((ended, numbers), (Ended::Done, vec![2, 4]));
    // The first belongs to the warm-up.
    let counted = (counts.unsent.load(Relaxed), counts.failed.load(Relaxed));
    assert_eq!((counted, counts.errno.load(Relaxed)), ((2, 1), libc::ENETUNREACH));
}

#[test]
fn a_way_that_is_gone_ends_the_loop_with_its_error() {
    let mut port = Scripted { answers: [Err(libc::EPIPE)].into(), ..Scripted::default() };
    let (ended, ..) = with(&mut port, |end, limits| send(end, &packet_schedule(0, 5), limits));
    assert_eq!(ended, Ended::Failed(libc::EPIPE));
}

#[test]
fn strangers_are_counted_and_never_recorded() {
    let other = RecvOutcome::Packet(Packet { session: SESSION + 1, ..Packet::default() });
    let there = [of_number(0), RecvOutcome::Foreign, other, of_number(1)];
    let mut port = Scripted { there: there.into(), goes: true, ..Scripted::default() };
    let (ended, counts, passed) = with(&mut port, receive);
    let gone = Ended::Failed(libc::ECONNRESET);
    assert_eq!((ended, counts.foreign.load(Relaxed)), (gone, 2));
    let numbers: Vec<u64> = passed.iter().map(|passage| passage.packet.number).collect();
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn an_end_that_is_always_behind_still_receives() {
    let there: VecDeque<RecvOutcome> = (0..10).map(of_number).collect();
    let mut port = Scripted { there, ..Scripted::default() };
    // Every packet is long due, so that there is never time between two.
    let (_, _, passed) = with(&mut port, |end, limits| {
        go::<true, true, _, _, _>(end, &packet_schedule(0, 10), limits)
    });
    assert_eq!((passed.len(), port.sent.len()), (10, 10));
}

#[test]
fn either_flag_ends_the_loop() {
    let mut port = Scripted::default();
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let (mut passages, _reader) = ring(2);
    let limits = StreamLimits { until_ns: i64::MAX, stop: &stop, enough: &enough };
    let passages = &mut passages;
    let mut end =
        StreamEnd { port: &mut port, pace: SpinPacing, session: 0, passages, counts: &counts };
    enough.set();
    assert_eq!(receive(&mut end, limits), Ended::Done);
    stop.set();
    assert_eq!(receive(&mut end, limits), Ended::Stopped);
    assert_eq!(send(&mut end, &packet_schedule(i64::MAX / 2, 1), limits), Ended::Stopped);
}

#[test]
fn datagrams_pass_and_what_has_another_size_is_foreign() {
    let (near, far) = (bound(), bound());
    near.connect(far.local_addr().unwrap()).unwrap();
    let (mut sender, mut receiver) =
        (Udp::new(near.as_raw_fd(), 64, None), Udp::new(far.as_raw_fd(), 64, None));
    assert_eq!(receiver.receive(), Ok(RecvOutcome::Nothing));
    let packet = Packet { session: SESSION, number: 3, ..Packet::default() };
    sender.send(&packet).unwrap();
    near.send(&[0; 64]).unwrap();
    near.send(&[0; 65]).unwrap();
    near.send(b"").unwrap();
    let got: Vec<_> = (0..5).map(|_| receiver.receive().unwrap()).collect();
    let foreign = RecvOutcome::Foreign;
    assert_eq!(got, [RecvOutcome::Packet(packet), foreign, foreign, foreign, RecvOutcome::Nothing]);
}

fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[test]
fn a_stream_that_is_full_refuses_whole_packets_and_loses_the_place_of_none() {
    let (near, far) = UnixStream::pair().unwrap();
    // Not a divisor of any buffer, so that some packet is taken in part.
    let size = 999;
    let mut sender = Tcp::new(near.as_raw_fd(), size);
    let mut receiver = Tcp::new(far.as_raw_fd(), size);
    let mut taken = Vec::new();
    let mut got = Vec::new();
    for number in 0..5_000 {
        let packet = Packet { number, ..Packet::default() };
        if sender.send(&packet).is_ok() {
            taken.push(number);
        }
        // Read now and then, so that it is full in between.
        let mut vain = if number % 1_000 == 999 { 0 } else { 3 };
        while vain < 3 {
            // Sends what is left of a packet.
            sender.wait(0).unwrap();
            match receiver.receive().unwrap() {
                RecvOutcome::Packet(packet) => {
                    got.push(packet.number);
                    vain = 0;
                }
                RecvOutcome::Foreign => panic!("out of step after {}", got.len()),
                RecvOutcome::Nothing => vain += 1,
            }
        }
    }
    assert!(taken.len() < 5_000, "it was never full");
    assert_eq!(got, taken);
    // Not by closing it: a child of another test may hold a copy for a moment.
    near.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(receiver.receive(), Err(libc::ECONNRESET));
}

#[test]
fn a_passage_goes_through_bytes() {
    let packet = Packet { number: 9, flow: 1, ..Packet::default() };
    let passage = Passage { packet, received_ns: -4 };
    assert_eq!(Passage::from_bytes(&passage.to_bytes()), Some(passage));
    assert_eq!(Passage::from_bytes(&[0; Passage::BYTES]), None);
}

proptest! {
    #[test]
    fn as_many_packets_are_due_before_a_time_as_the_loop_finds(
        rate in 1_u64..2_000_000_000, first_ns in 0_i64..1 << 40, after in 0_i64..10_000_000,
    ) {
        let period = PacketPeriod::of_rate(rate);
        let n = period.packets_before(first_ns, first_ns + after);
        let due = |n: u64| first_ns + ((u128::from(n) * period.parts()) >> 32) as i64;
        prop_assert!(due(n) >= first_ns + after);
        prop_assert!(n == 0 || due(n - 1) < first_ns + after);
    }

    #[test]
    fn a_rate_is_kept_over_a_day(rate in 1_000_u64..100_000_000) {
        let n = PacketPeriod::of_rate(rate).packets_before(0, 86_400_000_000_000);
        let wanted = rate * 86_400 / 1_000;
        prop_assert!(n.abs_diff(wanted) <= 1 + wanted / 1_000_000_000, "{n} {wanted}");
    }
}

#[test]
fn what_arrives_comes_with_the_last_wake_up_of_its_thread() {
    let record = ThreadRecord::default();
    for (field, ns) in
        [(&record.waking_ns, 7), (&record.switch_ns, 9), (&record.stopped_from_ns, 3)]
    {
        field.store(ns, Relaxed);
    }
    record.cpu.store(1, Relaxed);
    record.switch_cpu.store(2, Relaxed);
    let (mut writer, mut reader) = ring::<TracedPassage>(2);
    let passage = Passage { received_ns: 11, ..Passage::default() };
    TracedArrivals { record: &record, passages: &mut writer }.take(passage);
    let mut found = Vec::new();
    reader.drain(|traced| found.push(traced));
    let woken = LateLeg { waking_ns: 7, switch_ns: 9, cpus: (1, 2), stopped_ns: (3, 0) };
    assert_eq!(found, [TracedPassage { passage, woken }]);
    assert_eq!(woken.parts(5, 11).map(|parts| parts.send_ns), Some(2));
    assert_eq!(woken.parts(8, 11), None, "it was awake when that was sent");
    let [first] = found[..] else { panic!("{found:?}") };
    assert_eq!(TracedPassage::from_bytes(&first.to_bytes()), Some(first));
    assert_eq!(TracedPassage::from_bytes(&[0; TracedPassage::BYTES]), None);
}
