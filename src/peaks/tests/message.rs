//! Round trips: the local endpoint, [`ME`], is on CPU 0, the remote endpoint on CPU 1. Times are ns
//! after the message was sent, which is at [`T`].

use tardy_hot::trips::LateLeg;

use super::*;
use crate::{
    kernel::out,
    peaks::test_events::on,
    run::peaks::{MessageStages, WayOf},
};

/// The remote endpoint.
const FAR: u32 = 88;
/// The vector of an interrupt that asks to switch tasks.
const RESCHEDULE: u32 = 2;

/// A round trip to be judged.
#[derive(Clone)]
struct Trip {
    fake: Fake,
    ways: Vec<MessageWay>,
    followed: Vec<MeasuredThread>,
    wishes: BlameOptions,
    latency_ns: i64,
}

fn time(ns: i64) -> i64 {
    T.cast_signed() + ns
}

fn way(from_ns: i64, to_ns: i64, sender: usize, waking_ns: i64, switch_ns: i64) -> MessageWay {
    let (waking_ns, switch_ns) = (time(waking_ns), time(switch_ns));
    let cpus = if sender == 0 { (0, 1) } else { (1, 0) };
    MessageWay {
        name: if sender == 0 { "there" } else { "back" },
        begins: "sent",
        from_ns: time(from_ns),
        to_ns: time(to_ns),
        sender: Some(sender),
        receiver: 1 - sender,
        seen: LateLeg { waking_ns, switch_ns, cpus, stopped_ns: (0, 0) },
        ..MessageWay::default()
    }
}

fn swapper() -> Event {
    flagged(out::SLEEPING, switch(0, 120, "swapper"))
}

/// The remote endpoint is woken at `waking_at`, its CPU interrupted for that at `interrupt`, and it
/// is switched in at `switch_at`; it has the message 2 us later. The way back takes 12 us.
fn trip(waking_at: i64, interrupt: i64, switch_at: i64) -> Trip {
    let turned = switch_at + 2_000;
    let end = turned + 12_000;
    let thread = |series: &str, cpu, tid| MeasuredThread {
        series: series.into(),
        cpu,
        tid,
        prio: 9,
        real_time: true,
        spins: false,
        works: false,
    };
    let ways = vec![
        way(0, turned, 0, waking_at, switch_at),
        way(turned, end, 1, turned + 3_000, end - 2_000),
    ];
    let trip = Trip {
        fake: Fake::default(),
        ways,
        followed: vec![thread("rtt", 0, ME), thread("far", 1, FAR)],
        wishes: BlameOptions { keep: 1, ..BlameOptions::default() },
        latency_ns: end,
    };
    trip.with(vec![
        (-500_000, switch(ME, 9, "tardy/rtt")),
        (waking_at, waking(FAR, ME)),
        (waking_at + 2_000, swapper()),
        (interrupt, on(1, vector(RESCHEDULE, 0, 0))),
        (interrupt + 500, on(1, vector_end(RESCHEDULE))),
        (switch_at, on(1, switch(FAR, 9, "tardy/far"))),
        (turned + 3_000, on(1, waking(ME, FAR))),
        (turned + 5_000, vector(RESCHEDULE, 0, 0)),
        (turned + 5_500, vector_end(RESCHEDULE)),
        (end - 2_000, switch(ME, 9, "tardy/rtt")),
    ])
}

impl Trip {
    fn with(mut self, events: Vec<(i64, Event)>) -> Self {
        let timed = |(ns, event): (i64, Event)| at(time(ns).cast_unsigned(), event);
        self.fake.events.extend(events.into_iter().map(timed));
        self
    }

    fn without(mut self, is_it: impl Fn(&Event) -> bool) -> Self {
        self.fake.events.retain(|event| !is_it(event));
        self
    }

    fn stack(mut self, number: u64, functions: &[&'static str]) -> Self {
        self.fake.names.extend(functions);
        self.fake.stacks.insert(number, functions.to_vec());
        self
    }

    fn peak(&self) -> Peak {
        let mut trip = self.clone();
        trip.fake.events.sort_by_key(|event| event.at_ns);
        let mut blamer = Blamer::new(trip.followed, trip.wishes, Box::new(trip.fake));
        blamer.begin(0, 0, 0);
        let late = Late { t_ns: time(0), latency_ns: self.latency_ns, ..Late::default() };
        blamer.add_message(0, late, trip.ways);
        let peak = blamer.work(|| BlameScope::All).pop().unwrap();
        let total: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(total.cast_signed(), self.latency_ns, "the parts sum: {:?}", peak.blame);
        for WayOf { ns, stages, .. } in &peak.ways {
            let MessageStages { send, stack, wake_up, dispatch, receive } =
                stages.unwrap_or(MessageStages { send: *ns, ..MessageStages::default() });
            assert_eq!(send + stack + wake_up + dispatch + receive, *ns, "{:?}", peak.ways);
        }
        peak
    }

    fn main(&self) -> Part {
        self.peak().blame.remove(0)
    }

    fn named(&self) -> (Cause, String, u64) {
        let main = self.main();
        (main.cause, main.name, main.ns)
    }
}

#[test]
fn a_round_trip_that_nothing_delays_is_its_own_path_and_has_the_stages_of_both_ways() {
    let peak = trip(3_000, 5_000, 8_000).with(vec![(-500_000, on(1, swapper()))]).peak();
    let part = &peak.blame[0];
    assert_eq!((part.cause, part.name.as_str()), (Cause::Nonpreemptible, "message path"));
    assert_eq!(peak.blame.len(), 2, "and the interrupts: {:?}", peak.blame);
    let stages =
        MessageStages { send: 3_000, stack: 0, wake_up: 2_000, dispatch: 3_000, receive: 2_000 };
    let way = |way: &str, ns, stages| WayOf { way: way.into(), ns, stages: Some(stages) };
    let back = MessageStages { dispatch: 5_000, ..stages };
    assert_eq!(peak.ways, [way("there", 10_000, stages), way("back", 12_000, back)]);
    assert_eq!((peak.series.as_str(), peak.stages), ("rtt", None));
    let whats: Vec<&str> = peak.timeline.iter().map(|moment| moment.what.as_str()).collect();
    assert_eq!(whats.iter().filter(|what| **what == "sent").count(), 2, "{whats:?}");
    assert!(whats.contains(&"received") && !whats.contains(&"expiry"), "{whats:?}");
}

#[test]
fn a_thread_of_higher_priority_on_the_cpu_of_the_far_end() {
    let hog = on(1, switch(600, 4, "hog"));
    let named = trip(3_000, 5_000, 308_000).with(vec![(-500_000, hog)]).named();
    assert_eq!(named, is(Cause::Thread, "hog", 304_500));
}

#[test]
fn a_sender_that_is_preempted_in_its_call() {
    let hog = flagged(out::PREEMPTED, switch(600, 4, "hog"));
    let events = vec![
        (-500_000, on(1, swapper())),
        (1_000, hog),
        (201_000, flagged(out::SLEEPING, switch(ME, 9, "tardy/rtt"))),
    ];
    let named = trip(203_000, 205_000, 208_000).with(events).named();
    assert_eq!(named, is(Cause::Thread, "hog", 200_000));
}

#[test]
fn a_softirq_in_which_the_message_is_carried() {
    let events = vec![(-500_000, on(1, swapper())), (1_000, softirq(3)), (72_000, softirq_end(3))];
    let trip = trip(71_000, 73_000, 76_000).with(events);
    assert_eq!(trip.named(), is(Cause::Softirq, "NET_RX", 70_000));
    let stages = trip.peak().ways[0].stages.unwrap();
    assert_eq!((stages.send, stages.stack), (1_000, 70_000));
}

#[test]
fn a_message_that_neither_end_has_is_in_transit() {
    let events = vec![(-500_000, on(1, swapper())), (4_000, swapper())];
    let named = trip(300_000, 302_000, 305_000).with(events).named();
    assert_eq!(named, is(Cause::Unexplained, "in transit", 296_000));
}

#[test]
fn a_softirq_that_carries_the_message_after_the_sender_sleeps() {
    let events = vec![
        (-500_000, on(1, swapper())),
        (4_000, swapper()),
        (100_000, softirq(3)),
        (301_000, softirq_end(3)),
    ];
    let named = trip(300_000, 302_000, 305_000).with(events).named();
    assert_eq!(named, is(Cause::Softirq, "NET_RX", 200_000));
}

/// The sender's CPU, which carries the message too: it sleeps at 4 us; ksoftirqd, which it had
/// preempted, has the CPU again from 250 us on, and wakes the remote endpoint at 300 us.
fn carried_by_ksoftirqd(ready: bool) -> Trip {
    let how = if ready { out::PREEMPTED } else { out::SLEEPING };
    let drain = flagged(out::SLEEPING, switch(700, 97, "tardy/drain"));
    let ksoftirqd = || switch(14, 120, "ksoftirqd/0");
    let events = vec![
        (-500_000, on(1, swapper())),
        (-20_000, ksoftirqd()),
        (-1_000, flagged(how, switch(ME, 9, "tardy/rtt"))),
        (4_000, drain),
        (250_000, flagged(out::SLEEPING, ksoftirqd())),
        (260_000, softirq(3)),
        (301_000, softirq_end(3)),
    ];
    let mut trip = trip(300_000, 302_000, 305_000)
        .without(|event| matches!(event.kind, EventKind::Switch { .. }) && event.pid == 0)
        .with(events);
    trip.ways[0].seen.cpus = (0, 1);
    trip
}

#[test]
fn a_thread_that_goes_before_the_ksoftirqd_that_carries_the_message() {
    let main = carried_by_ksoftirqd(true).main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Thread, "tardy/drain"));
    assert_eq!((main.basis, main.ns), (Basis::Inferred, 246_000));
    assert_eq!(main.task.as_deref(), Some("tardy/drain/700"));
    assert!(main.evidence.as_deref().unwrap().starts_with("ksoftirqd"), "{main:?}");
}

#[test]
fn a_ksoftirqd_that_slept_was_kept_waiting_by_nobody_until_it_was_woken() {
    let named = carried_by_ksoftirqd(false).named();
    assert_eq!(named, is(Cause::Unexplained, "in transit", 256_000));
    let woken = vec![(100_000, waking(14, 0))];
    let named = carried_by_ksoftirqd(false).with(woken).named();
    assert_eq!(named, is(Cause::Thread, "tardy/drain", 150_000));
}

#[test]
fn a_far_end_that_was_stopped() {
    let events = vec![(-500_000, on(1, swapper())), (4_000, swapper())];
    let mut trip = trip(300_000, 302_000, 305_000).with(events);
    trip.ways[0].seen.stopped_ns = (T - 9_000, T + 300_000);
    assert_eq!(trip.named(), is(Cause::Stopped, "stopped", 296_000));
}

#[test]
fn a_lower_task_that_cannot_be_preempted_after_the_interrupt_that_asks_for_it() {
    let events = vec![(-500_000, on(1, hack())), (299_500, on(1, stack(500, 2, 9, 300)))];
    let main = trip(3_000, 5_000, 300_000)
        .with(events)
        .stack(9, &["__schedule", "preempt_schedule", "unmap_page_range", "exit_mmap"])
        .main();
    assert_eq!((main.cause, main.name.as_str()), (Cause::Nonpreemptible, "exit_mmap"));
    assert!((290_000..=295_000).contains(&main.ns), "{}", main.ns);
}

/// The interrupt comes at 300 us to a lower task, which is switched out 3 us later.
fn late_interrupt(functions: &[&'static str]) -> Trip {
    let seen = (303_000, on(1, stack(500, 2, 9, 300)));
    let events = vec![(-500_000, on(1, hack())), (3_500, ipi(ME, 1, 0)), seen];
    trip(3_000, 300_000, 303_000).with(events).stack(9, functions)
}

const INTERRUPTED: [&str; 3] = ["__schedule", "preempt_schedule_irq", "asm_sysvec_reschedule_ipi"];

#[test]
fn interrupts_that_were_off_on_the_cpu_of_the_far_end() {
    let of =
        |functions: &[&'static str]| late_interrupt(&[&INTERRUPTED[..], functions].concat()).main();
    let main = of(&["_raw_spin_unlock_irqrestore", "exit_mmap", "do_exit"]);
    assert_eq!((main.cause, main.name.as_str()), (Cause::IrqsOff, "exit_mmap"));
    assert_eq!((main.basis, main.ns), (Basis::Measured, 297_000));
    assert_eq!(main.task.as_deref(), Some("hackbench/500"));
    // Another interrupt came meanwhile: they were on then.
    let trip = late_interrupt(&[&INTERRUPTED[..], &["_raw_spin_unlock_irqrestore"]].concat());
    let other = vec![(200_000, on(1, irq(5))), (201_000, on(1, irq_end(5)))];
    let parts = trip.with(other).peak().blame;
    let off = parts.iter().find(|part| part.cause == Cause::IrqsOff).unwrap();
    assert!(off.ns < 101_000, "{parts:?}");
}

#[test]
fn an_interrupt_for_the_far_end_that_comes_late_is_nobodys() {
    let elsewhere = [&INTERRUPTED[..], &["unmap_page_range"]].concat();
    let named = late_interrupt(&elsewhere).named();
    assert_eq!(named, is(Cause::Unexplained, "interrupt late", 297_000));
    let no_stack = trip(3_000, 300_000, 303_000).with(vec![(-500_000, on(1, hack()))]);
    assert_eq!(no_stack.named(), is(Cause::Unexplained, "interrupt late", 297_000));
    let in_user = late_interrupt(&["__schedule", "schedule", "asm_sysvec_reschedule_ipi"]);
    assert_eq!(in_user.named(), is(Cause::Unexplained, "interrupt late in user mode", 297_000));
}

#[test]
fn a_receiver_that_had_not_gone_to_sleep_is_followed_all_the_way() {
    let hog = on(1, flagged(out::PREEMPTED, switch(600, 4, "hog")));
    let events = vec![(-500_000, on(1, switch(FAR, 9, "tardy/far"))), (-2_000, hog)];
    let mut trip = trip(3_000, 5_000, 308_000)
        .without(|event| matches!(event.kind, EventKind::Waking { .. }) && event.pid == FAR)
        .with(events);
    trip.ways[0].seen = LateLeg::default();
    let peak = trip.peak();
    assert_eq!((peak.blame[0].cause, peak.blame[0].name.as_str()), (Cause::Thread, "hog"));
    assert!(peak.ways[0].stages.is_none() && peak.ways[1].stages.is_some(), "{:?}", peak.ways);
}

#[test]
fn a_receiver_without_a_wake_up_in_the_record_names_nobody() {
    let hog = on(1, switch(600, 4, "hog"));
    let mut trip =
        trip(3_000, 5_000, 308_000).without(|event| event.pid == FAR).with(vec![(-500_000, hog)]);
    trip.ways[0].seen = LateLeg::default();
    assert_eq!(trip.named(), is(Cause::Unexplained, "wake-up not recorded", 309_500));
}

#[test]
fn a_packet_of_which_the_sender_is_not_followed() {
    let events = vec![
        (-500_000, swapper()),
        (-500_000, on(1, hack())),
        (1_000, on(1, softirq(3))),
        (63_000, on(1, softirq_end(3))),
        (60_000, on(1, waking(ME, 500))),
        (63_500, vector(RESCHEDULE, 0, 0)),
        (64_000, vector_end(RESCHEDULE)),
        (66_000, switch(ME, 9, "tardy/receive")),
    ];
    let mut packet = trip(3_000, 5_000, 8_000).without(|_| true).with(events);
    packet.ways = vec![MessageWay { sender: None, ..way(0, 70_000, 1, 60_000, 66_000) }];
    packet.latency_ns = 70_000;
    assert_eq!(packet.named(), is(Cause::Softirq, "NET_RX", 59_000));
    let peak = packet.peak();
    let in_transit = peak.blame.iter().find(|part| part.name == "in transit").unwrap();
    assert_eq!((in_transit.cause, in_transit.ns), (Cause::Unexplained, 1_000));
    let stages =
        MessageStages { send: 0, stack: 60_000, wake_up: 3_500, dispatch: 2_500, receive: 4_000 };
    assert_eq!(peak.ways[0].stages, Some(stages));
}

/// Both ends are on CPU 0, where the local one continues for `goes_on_ns` after it has sent.
fn on_one_cpu(goes_on_ns: i64) -> Trip {
    let mut trip = trip(3_000, 4_000, 3_000 + goes_on_ns);
    trip.followed[1].cpu = 0;
    trip.ways.iter_mut().for_each(|way| way.seen.cpus = (0, 0));
    trip.fake.events.retain(|event| {
        let is_sleep = matches!(event.kind, EventKind::Switch { .. }) && event.pid == 0;
        !is_sleep && !matches!(event.kind, EventKind::VectorEntry { .. })
    });
    trip.fake.events.iter_mut().for_each(|event| event.cpu = 0);
    trip
}

#[test]
fn a_sender_that_has_to_sleep_first() {
    let peak = on_one_cpu(8_000).peak();
    assert_eq!(peak.blame[0].name, "message path", "{:?}", peak.blame);
    let named = on_one_cpu(300_000).named();
    assert_eq!(named, is(Cause::Thread, "tardy/rtt", 300_000));
}

proptest! {
    /// `Trip::peak` asserts that the parts sum to the latency, and the stages to their ways.
    #[test]
    fn whatever_is_recorded_the_parts_of_a_message_sum_to_it(
        events in prop::collection::vec(any_event(), 0..60),
        steps in prop::array::uniform3(0_i64..100_000),
        matched in any::<(bool, bool)>(),
        stopped_ns in prop_oneof![Just((0, 0)), (T - 9_000..T + 90_000, T - 9_000..T + 90_000)],
    ) {
        let [waking_at, interrupt, dispatch] = steps;
        let mut trip = trip(waking_at, interrupt, waking_at + dispatch)
            .with(events)
            .stack(1, &["a", "_raw_spin_lock", "exit_mmap"]);
        trip.ways[0].seen.stopped_ns = stopped_ns;
        if !matched.0 {
            trip.ways[0].seen.waking_ns = 0;
        }
        if !matched.1 {
            trip.ways[1].seen.waking_ns = 0;
        }
        prop_assert!(trip.peak().blame.iter().all(|part| part.ns > 0));
    }
}
