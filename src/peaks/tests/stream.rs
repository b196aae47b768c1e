//! Packets of a stream: the sender, [`NEAR`], is on CPU 0, the receiver, [`FAR`], on CPU 1. Times
//! are ns after the packet was due, which is at [`T`].

use tardy_hot::trips::{Backlog, LateLeg};

use super::*;
use crate::{
    kernel::out,
    peaks::{TypicalLeg, WayKind, test_events::on},
    run::peaks::{MessageStages, PACING},
};

const NEAR: u32 = ME;
const FAR: u32 = 88;
/// The vector of an interrupt that asks to switch tasks.
const RESCHEDULE: u32 = 2;

/// A packet to be judged.
#[derive(Clone)]
struct Paced {
    fake: Fake,
    sent_at: i64,
    latency_ns: i64,
    /// When its receiver was last woken and ran; `None` if that is not known.
    woken: Option<(i64, i64)>,
    /// Since when the sender was behind.
    since: i64,
    sent_before: u64,
    received_before: Backlog,
    stopped: [(u64, u64); 2],
}

fn time(ns: i64) -> i64 {
    T.cast_signed() + ns
}

fn swapper() -> Event {
    flagged(out::SLEEPING, switch(0, 120, "swapper"))
}

fn near() -> Event {
    switch(NEAR, 9, "tardy/there")
}

fn far() -> Event {
    switch(FAR, 9, "tardy/far")
}

/// Sent and received then, by a receiver that was `woken` and ran then; no event is recorded yet.
fn packet(sent_at: i64, latency_ns: i64, woken: Option<(i64, i64)>) -> Paced {
    let none = Backlog::default();
    let (fake, stopped) = (Fake::default(), [(0, 0); 2]);
    let (since, sent_before, received_before) = (0, 0, none);
    Paced { fake, sent_at, latency_ns, woken, since, sent_before, received_before, stopped }
}

/// The sender's timer interrupt at `entry`, the switch to it 2 us later; it sleeps at `asleep`.
fn wakes_up(entry: i64, asleep: i64) -> Vec<(i64, Event)> {
    vec![
        (-500_000, swapper()),
        (entry, vector(TIMER, 0x1000, 0)),
        (entry + 200, timer(T)),
        (entry + 500, waking(NEAR, 0)),
        (entry + 1_000, vector_end(TIMER)),
        (entry + 2_000, near()),
        (asleep, swapper()),
    ]
}

/// The receiver is woken at `waking_at` by the sender, and switched in 3 us later.
fn is_woken(waking_at: i64) -> Vec<(i64, Event)> {
    vec![
        (-500_000, on(1, swapper())),
        (waking_at, waking(FAR, NEAR)),
        (waking_at + 1_000, on(1, vector(RESCHEDULE, 0, 0))),
        (waking_at + 1_500, on(1, vector_end(RESCHEDULE))),
        (waking_at + 3_000, on(1, far())),
    ]
}

impl Paced {
    fn with(mut self, events: Vec<(i64, Event)>) -> Self {
        let timed = |(ns, event): (i64, Event)| at(time(ns).cast_unsigned(), event);
        self.fake.events.extend(events.into_iter().map(timed));
        self
    }

    fn stack(mut self, number: u64, functions: &[&'static str]) -> Self {
        self.fake.names.extend(functions);
        self.fake.stacks.insert(number, functions.to_vec());
        self
    }

    fn ways(&self) -> Vec<MessageWay> {
        let woken = self.woken.map_or(LateLeg::default(), |(waking_at, switch_at)| LateLeg {
            waking_ns: time(waking_at),
            switch_ns: time(switch_at),
            cpus: (0, 1),
            ..LateLeg::default()
        });
        let [sender, receiver] = self.stopped;
        let sent_ns = time(self.sent_at);
        let pacing = MessageWay {
            name: PACING,
            kind: WayKind::Pacing,
            from_ns: time(0),
            to_ns: sent_ns,
            sender: Some(0),
            since_ns: time(self.since),
            seen: LateLeg { stopped_ns: sender, ..LateLeg::default() },
            backlog: Backlog { packets: self.sent_before, until_ns: sent_ns },
            ..MessageWay::default()
        };
        let there = MessageWay {
            name: "there",
            from_ns: sent_ns,
            to_ns: time(self.latency_ns),
            sender: Some(0),
            receiver: 1,
            seen: LateLeg { stopped_ns: receiver, ..woken },
            backlog: self.received_before,
            ..MessageWay::default()
        };
        vec![pacing, there]
    }

    fn peak(&self) -> Peak {
        let mut own = self.clone();
        own.fake.events.sort_by_key(|event| event.at_ns);
        let thread = |series: &str, cpu, tid| MeasuredThread {
            series: series.into(),
            cpu,
            tid,
            prio: 9,
            real_time: true,
            spins: false,
            works: false,
        };
        let followed = vec![thread("near", 0, NEAR), thread("there", 1, FAR)];
        let wishes = BlameOptions { keep: 1, ..BlameOptions::default() };
        let mut blamer = Blamer::new(followed, wishes, Box::new(own.fake));
        blamer.begin(1, 0, 0);
        let usual = TypicalLeg { send_ns: 3_000, dispatch_ns: 3_000, receive_ns: 2_000 };
        blamer.set_usual_ways(1, vec![usual; 2]);
        let late = Late { t_ns: time(0), latency_ns: self.latency_ns, ..Late::default() };
        blamer.add_message(1, late, self.ways());
        let peak = blamer.work(|| BlameScope::All).pop().unwrap();
        let total: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(total.cast_signed(), self.latency_ns, "the parts sum: {:?}", peak.blame);
        let ways: i64 = peak.ways.iter().map(|way| way.ns).sum();
        assert_eq!((ways, peak.series.as_str()), (self.latency_ns, "there"), "{:?}", peak.ways);
        peak
    }

    fn named(&self, name: &str) -> (Cause, u64) {
        let blame = self.peak().blame;
        let found = blame.iter().find(|part| part.name == name);
        found.map(|part| (part.cause, part.ns)).unwrap_or_else(|| panic!("{name}: {blame:?}"))
    }
}

#[test]
fn a_packet_that_nothing_delays_is_the_way_of_its_sender_and_its_own() {
    let on_time = packet(5_000, 15_000, Some((9_000, 12_000)));
    let peak = on_time.with(wakes_up(2_000, 11_000)).with(is_woken(9_000)).peak();
    let names: Vec<&str> = peak.blame.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names[..2], ["message path", "wake-up path"], "{:?}", peak.blame);
    assert!(peak.blame.iter().all(|part| part.basis == Basis::Measured), "{:?}", peak.blame);
    let stages =
        MessageStages { send: 4_000, stack: 0, wake_up: 1_000, dispatch: 2_000, receive: 3_000 };
    assert_eq!((peak.ways[0].way.as_str(), peak.ways[0].stages), (PACING, None));
    assert_eq!((peak.ways[1].way.as_str(), peak.ways[1].stages), ("there", Some(stages)));
    assert!(peak.timeline.iter().any(|moment| moment.what == "expiry"), "{:?}", peak.timeline);
}

#[test]
fn a_sender_that_a_task_kept_from_its_cpu() {
    let hog = vec![(3_500, switch(600, 4, "hog")), (303_500, near())];
    let events = vec![
        (-500_000, swapper()),
        (2_000, vector(TIMER, 0x1000, 0)),
        (2_200, timer(T)),
        (2_500, waking(NEAR, 0)),
        (3_000, vector_end(TIMER)),
        (311_000, swapper()),
    ];
    let late = packet(305_000, 315_000, Some((309_000, 312_000)));
    let late = late.with(events).with(hog).with(is_woken(309_000));
    assert_eq!(late.named("hog"), (Cause::Thread, 300_000));
}

#[test]
fn a_sender_behind_its_schedule_sent_others_first_and_was_kept_by_the_same_task() {
    // A task had the CPU until 200 us; from then on the sender sent what was due before.
    let hog = flagged(out::PREEMPTED, switch(600, 4, "hog"));
    let events = vec![(-500_000, near()), (-300_000, hog), (200_000, near()), (290_000, swapper())];
    let mut late = packet(220_000, 232_000, Some((226_000, 229_000)));
    // Two that were due before, the first of them 250 us.
    (late.since, late.sent_before) = (-250_000, 2);
    let late = late.with(events).with(is_woken(226_000));
    assert_eq!(late.named("hog"), (Cause::Thread, 200_000));
    // Each of two may have taken 9 us: twice the usual time of a call and 3 us.
    assert_eq!(late.named("earlier packets"), (Cause::Nonpreemptible, 18_000));
}

#[test]
fn a_packet_behind_a_late_one_is_blamed_on_what_kept_their_receiver() {
    // The receiver was woken for an earlier packet long before; the hog has its CPU until 400 us.
    let hog = on(1, switch(600, 4, "hog"));
    let receiver = vec![(-500_000, hog), (400_000, on(1, far()))];
    let mut late = packet(5_000, 430_000, None);
    late.received_before = Backlog { packets: 3, until_ns: time(428_000) };
    let late = late.with(wakes_up(2_000, 11_000)).with(receiver);
    assert_eq!(late.named("hog"), (Cause::Thread, 395_000));
    // Three that it received first, each of which takes 7 us at the most.
    assert_eq!(late.named("earlier packets"), (Cause::Nonpreemptible, 21_000));
    assert_eq!(late.peak().ways[1].stages, None, "nothing shows when the packet came");
}

/// A lower task that cannot be preempted has the CPU; its stack is walked when it is switched out.
fn unmap(cpu: u32, walked_at: i64) -> Vec<(i64, Event)> {
    vec![(-9_000_000, on(cpu, hack())), (walked_at, on(cpu, stack(500, 2, 9, 300)))]
}

#[test]
fn a_sender_behind_a_lower_task_is_followed_from_where_it_slept() {
    // The first of those that are late was due 3 ms before; nothing shows the sender since.
    let events = vec![
        (-2_999_000, vector(TIMER, 0x1000, 0)),
        (-2_998_800, timer(T - 3_000_000)),
        (-2_998_500, waking(NEAR, 500)),
        (-2_998_000, vector_end(TIMER)),
        (1_000_000, near()),
        (1_090_000, swapper()),
    ];
    let mut late = packet(1_020_000, 1_032_000, Some((1_026_000, 1_029_000)));
    late.since = -3_000_000;
    late.sent_before = 3;
    let late = late.with(events).with(unmap(0, 999_500)).with(is_woken(1_026_000));
    let late = late.stack(9, &["__schedule", "preempt_schedule", "unmap_page_range", "exit_mmap"]);
    let (cause, ns) = late.named("exit_mmap");
    assert_eq!(cause, Cause::Nonpreemptible);
    assert!((990_000..1_000_000).contains(&ns), "{ns}");
    assert!(late.peak().blame.iter().all(|part| part.cause != Cause::Throttled));
}

#[test]
fn a_packet_behind_a_late_one_is_followed_from_where_its_receiver_was_woken() {
    // Its receiver was woken 3 ms before for another packet, and could not run for 1 ms more.
    let receiver = vec![
        (-3_000_000, waking(FAR, NEAR)),
        (-2_999_000, on(1, vector(RESCHEDULE, 0, 0))),
        (-2_998_500, on(1, vector_end(RESCHEDULE))),
        (1_000_000, on(1, far())),
    ];
    let late = packet(5_000, 1_007_000, Some((-3_000_000, 1_000_000)));
    let late = late.with(wakes_up(2_000, 11_000)).with(receiver).with(unmap(1, 999_500));
    let late = late.stack(9, &["__schedule", "preempt_schedule", "unmap_page_range", "exit_mmap"]);
    let (cause, ns) = late.named("exit_mmap");
    assert_eq!(cause, Cause::Nonpreemptible);
    assert!((980_000..995_000).contains(&ns), "{ns}");
    assert!(late.peak().blame.iter().all(|part| part.cause != Cause::Throttled));
    assert_eq!(late.peak().ways[1].stages, None, "nothing shows when the packet came");
}

#[test]
fn earlier_packets_explain_no_more_than_they_usually_take() {
    let receiver = vec![(-500_000, on(1, far()))];
    let mut late = packet(5_000, 305_000, None);
    late.received_before = Backlog { packets: 2, until_ns: time(303_000) };
    let late = late.with(wakes_up(2_000, 11_000)).with(receiver);
    assert_eq!(late.named("earlier packets").1, 14_000);
    // Its own reading is 5 us by what is usual for sending and receiving, twice, and 3 us.
    let (cause, ns) = late.named("on the CPU, nothing recorded");
    assert_eq!((cause, ns), (Cause::Unexplained, 300_000 - 14_000 - 13_000));
    let alone = Paced { received_before: Backlog::default(), ..late };
    assert!(alone.peak().blame.iter().all(|part| part.name != "earlier packets"));
}

#[test]
fn a_receiver_that_was_stopped_is_what_its_packets_waited_for() {
    let stopped = (T - 90_000, T + 300_000);
    // The sender continues with its schedule meanwhile.
    let next =
        vec![(100_000, near()), (104_000, swapper()), (200_000, near()), (204_000, swapper())];
    let mut late = packet(5_000, 306_000, Some((300_000, 303_000)));
    late.stopped[1] = stopped;
    let late = late.with(wakes_up(2_000, 11_000)).with(is_woken(300_000)).with(next);
    assert_eq!(late.named("stopped"), (Cause::Stopped, 289_000));
    assert_eq!(late.peak().ways[1].stages.unwrap().stack, 289_000);
    // One behind it, for which nobody woke the receiver.
    let mut behind = packet(5_000, 306_000, None);
    behind.stopped[1] = stopped;
    let receiver = vec![(-500_000, on(1, swapper())), (303_000, on(1, far()))];
    let behind = behind.with(wakes_up(2_000, 11_000)).with(receiver);
    assert_eq!(behind.named("stopped"), (Cause::Stopped, 295_000));
}

#[test]
fn a_sender_that_was_stopped_while_its_packet_was_due() {
    let mut late = packet(305_000, 315_000, Some((309_000, 312_000)));
    late.stopped[0] = (T - 90_000, T + 300_000);
    let events = vec![
        (-500_000, swapper()),
        (300_000, waking(NEAR, 500)),
        (303_000, near()),
        (311_000, swapper()),
    ];
    let late = late.with(events).with(is_woken(309_000));
    assert_eq!(late.named("stopped"), (Cause::Stopped, 300_000));
}

#[test]
fn what_the_sender_does_for_other_packets_is_not_in_the_way_of_this_one() {
    // Nothing shows where it was until its receiver was woken; the sender was preempted meanwhile.
    let hog = flagged(out::PREEMPTED, switch(600, 4, "hog"));
    let events = vec![(100_000, near()), (101_000, hog), (201_000, near()), (205_000, swapper())];
    let late = packet(5_000, 306_000, Some((300_000, 303_000)));
    let late = late.with(wakes_up(2_000, 11_000)).with(is_woken(300_000)).with(events);
    assert_eq!(late.named("in transit"), (Cause::Unexplained, 289_000));
    assert!(late.peak().blame.iter().all(|part| part.name != "hog"));
}

proptest! {
    /// `Paced::peak` asserts that the parts sum to the latency, and the ways.
    #[test]
    fn whatever_is_recorded_the_parts_of_a_packet_sum_to_it(
        events in prop::collection::vec(any_event(), 0..60),
        steps in prop::array::uniform4(0_i64..100_000),
        is_split in any::<(bool, bool)>(),
        before in any::<(u8, u8)>(),
        since in -90_000_i64..1,
        until in -9_000_i64..400_000,
        stopped_ns in prop_oneof![Just((0, 0)), (T - 9_000..T + 90_000, T - 9_000..T + 90_000)],
    ) {
        let [pacing, send, dispatch, receive] = steps;
        let waking_at = pacing + send;
        let woken_at = if is_split.1 { waking_at } else { pacing - 50_000 };
        let woken = is_split.0.then_some((woken_at, woken_at + dispatch));
        let mut late = packet(pacing, waking_at + dispatch + receive + 1, woken);
        (late.since, late.sent_before) = (since, before.0.into());
        late.received_before = Backlog { packets: before.1.into(), until_ns: time(until) };
        late.stopped = [stopped_ns; 2];
        let late = late.with(wakes_up(2_000, 11_000)).with(is_woken(waking_at)).with(events);
        prop_assert!(late.peak().blame.iter().all(|part| part.ns > 0));
    }
}
