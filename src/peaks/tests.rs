//! Each rule of `docs/explanation/blame.md` by a made-up wake-up; and what holds for all of them.
//!
//! Times are ns after the programmed expiry, which is at [`T`].

mod behind;
mod below_kernel;
mod cycle;
mod elsewhere;
mod fake;
mod gaps;
mod held;
mod interrupt;
mod message;
mod named_work;
mod running;
mod siblings;
mod stolen;
mod stream;
mod waiting;

use std::{collections::HashMap, ops::Range};

use fake::Fake;
use proptest::prelude::*;
use tardy_hot::stages::{Late, Stages};

use super::{
    BlameOptions, BlameScope, Blamer, Event, EventKind, EventSource, HoldEvidence, MeasuredThread,
    MessageWay, UsualStages, test_events::*,
};
use crate::{
    kernel::{RunsAhead, SetFrequency},
    run::peaks::{Basis, Cause, Part, Peak},
};

/// The programmed expiry.
const T: u64 = 10_000_000;
/// The measured thread.
const ME: u32 = 77;
/// The timer's vector.
const TIMER: u32 = 1;

/// A wake-up to be judged.
#[derive(Clone)]
struct Case {
    fake: Fake,
    late: Late,
    me: MeasuredThread,
    wishes: BlameOptions,
}

/// Real-time, woken and run on CPU 0; the stages in ns: irq, softirq, handler, dispatch, user.
fn case(stages: [i64; 5], events: Vec<(i64, Event)>) -> Case {
    let [irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns] = stages;
    let late = Late {
        t_ns: T.cast_signed(),
        latency_ns: stages.iter().sum(),
        expires_ns: T.cast_signed(),
        stages: Stages { irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns },
        matched: true,
        cpus: (0, 0),
        stopped_ns: (0, 0),
    };
    let me = MeasuredThread {
        series: "cpu0".into(),
        tid: ME,
        prio: 9,
        real_time: true,
        ..MeasuredThread::default()
    };
    let timed = |(at_ns, event): (i64, Event)| at(T.saturating_add_signed(at_ns), event);
    let events = events.into_iter().map(timed).collect();
    let fake = Fake { events, ..Fake::default() };
    Case { fake, late, me, wishes: BlameOptions { keep: 1, ..BlameOptions::default() } }
}

/// The events of a wake-up by a timer interrupt over `task`: entry, wake-up, exit, switch.
fn wake_up(
    task: Event,
    flags: u8,
    entry: i64,
    waking_at: i64,
    switch_at: i64,
) -> Vec<(i64, Event)> {
    vec![
        (-500_000, task),
        (entry, vector(TIMER, 0x1000, flags)),
        (waking_at, waking(ME, task.pid)),
        (waking_at + 500, vector_end(TIMER)),
        (switch_at, switch(ME, 9, "timer")),
    ]
}

impl Case {
    fn with(mut self, events: Vec<(i64, Event)>) -> Self {
        let timed = |(at_ns, event): (i64, Event)| at(T.saturating_add_signed(at_ns), event);
        self.fake.events.extend(events.into_iter().map(timed));
        self
    }

    fn stack(mut self, number: u64, functions: &[&'static str]) -> Self {
        self.fake.names.extend(functions);
        self.fake.stacks.insert(number, functions.to_vec());
        self
    }

    fn in_virtual_machine(mut self) -> Self {
        self.wishes.virtual_machine = true;
        self
    }

    fn unmatched(mut self) -> Self {
        self.late.matched = false;
        self.late.stages = Stages::default();
        self
    }

    fn peak(&self) -> Peak {
        let mut events = self.clone();
        events.fake.events.sort_by_key(|event| event.at_ns);
        let source = Box::new(events.fake);
        let mut blamer = Blamer::new(vec![self.me.clone()], self.wishes.clone(), source);
        blamer.begin(0, 0, 0);
        let peak = blame(&mut blamer, &self.late, BlameScope::All).unwrap();
        let total: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(total.cast_signed(), self.late.latency_ns, "the parts sum: {:?}", peak.blame);
        assert_eq!(blamer.record().blamed, u64::from(!self.me.works), "work has separate sums");
        peak
    }

    /// The largest part.
    fn main(&self) -> Part {
        self.peak().blame.remove(0)
    }

    fn named(&self) -> (Cause, String, u64) {
        let main = self.main();
        (main.cause, main.name, main.ns)
    }
}

/// What becomes of one late wake-up.
fn blame(blamer: &mut Blamer, late: &Late, effort: BlameScope) -> Option<Peak> {
    blamer.add(0, *late);
    blamer.work(|| effort).pop()
}

fn is(cause: Cause, name: &str, ns: u64) -> (Cause, String, u64) {
    (cause, name.to_owned(), ns)
}

fn hack() -> Event {
    switch(500, 120, "hackbench")
}

#[test]
fn a_timeline_tells_spans_and_points_by_time() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 60_000);
    events.extend([(4_000, softirq(3)), (58_000, softirq_end(3))]);
    let peak = case([2_000, 0, 1_000, 57_000, 2_000], events).peak();
    let what: Vec<&str> = peak.timeline.iter().map(|moment| moment.what.as_str()).collect();
    for wanted in ["expiry", "vector", "waking", "softirq", "task", "woke"] {
        assert!(what.contains(&wanted), "{wanted}: {what:?}");
    }
    assert!(peak.timeline.is_sorted_by_key(|moment| moment.at));
    let mine = peak.timeline.iter().find(|moment| moment.pid == Some(ME) && moment.ns.is_some());
    assert_eq!(mine.unwrap().priority.as_deref(), Some("fifo 90"));
    assert!(peak.timeline[0].at >= -15_500, "a quarter of the latency before: {peak:?}");
}

#[test]
fn a_crowded_timeline_keeps_the_threads_own_points_and_the_longest_spans() {
    let mut events = wake_up(hack(), 1, 2_000, 3_000, 4_000_000);
    events.extend((0..2_000_u32).map(|n| (10_000 + i64::from(n) * 1_000, waking(900 + n, 500))));
    let peak = case([2_000, 0, 1_000, 3_997_000, 2_000], events).peak();
    assert_eq!(peak.timeline.len(), 300);
    assert!(peak.left_out > 1_500);
    assert!(peak.timeline.iter().any(|moment| moment.what == "expiry"));
    assert!(peak.timeline.iter().any(|moment| moment.name == "hackbench"));
}

#[test]
fn the_threshold_follows_but_not_over_what_is_to_be_kept() {
    let wishes = BlameOptions { peak_over_ns: Some(500), ..BlameOptions::default() };
    let me = case([0; 5], Vec::new()).me;
    let mut blamer = Blamer::new(vec![me], wishes, Box::new(Fake::default()));
    blamer.begin(0, 100, 1_000);
    assert_eq!(blamer.threshold_ns(0), 100);
    blamer.follow_p99(0, 700);
    assert_eq!(blamer.threshold_ns(0), 500);
    let record = blamer.record();
    assert_eq!((record.threshold_ns, record.lowest_threshold_ns), (500, 100));
    assert_eq!(record.lost_events, 3);
    assert_eq!(blamer.threshold_ns(9), i64::MAX);
    // What ends the run is late, however low its limit is.
    let wishes = BlameOptions { stop_over_ns: Some(30_000), ..BlameOptions::default() };
    let me = case([0; 5], Vec::new()).me;
    let mut blamer = Blamer::new(vec![me], wishes, Box::new(Fake::default()));
    blamer.begin(0, 50_000, 50_000);
    assert_eq!((blamer.threshold_ns(0), blamer.progress[0].least_peak_ns), (30_000, 30_000));
}

#[test]
fn every_rule_of_the_documentation_names_a_test_that_is_there() {
    let rules =
        include_str!("../../docs/explanation/blame.md").split_once("## The rules").unwrap().1;
    let rows = rules.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let tests = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next());
    let names: Vec<&str> = tests.flat_map(|cell| cell.split(", ")).collect();
    assert!(names.len() > 30, "{names:?}");
    let tests = [
        include_str!("tests/below_kernel.rs"),
        include_str!("tests/cycle.rs"),
        include_str!("tests/elsewhere.rs"),
        include_str!("tests/gaps.rs"),
        include_str!("tests/held.rs"),
        include_str!("tests/interrupt.rs"),
        include_str!("tests/waiting.rs"),
        include_str!("tests/running.rs"),
        include_str!("tests/message.rs"),
        include_str!("tests/named_work.rs"),
        include_str!("tests/stream.rs"),
    ];
    for name in names {
        let function = format!("\nfn {}()", name.trim_matches('`'));
        assert!(tests.iter().any(|text| text.contains(&function)), "{name}");
    }
}

#[test]
fn every_rule_of_the_documentation_that_names_somebody_says_what_could_fool_it() {
    let rules =
        include_str!("../../docs/explanation/blame.md").split_once("## The rules").unwrap().1;
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<_> = rules.lines().filter(|line| line.ends_with("` |")).map(cells).collect();
    assert!(rows.iter().all(|row| row.len() == 9), "seven columns: {rows:?}");
    let names_somebody =
        |row: &&Vec<String>| row[5].starts_with("measured") || row[5].starts_with("inferred");
    let named: Vec<_> = rows.iter().filter(names_somebody).collect();
    assert!(named.len() > 30, "{named:?}");
    assert!(named.iter().all(|row| !row[6].is_empty()), "{named:?}");
}

#[test]
fn a_bad_warm_up_keeps_no_peaks_away_for_long() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 12_000);
    let late = case([1_500, 0, 1_000, 9_500, 2_000], events);
    let (me, fake) = (late.me.clone(), late.fake.clone());
    let mut blamer = Blamer::new(vec![me], late.wishes.clone(), Box::new(fake));
    blamer.begin(0, 10_000, 5_000_000);
    assert!(blame(&mut blamer, &late.late, BlameScope::All).is_none());
    (0..12).for_each(|_| blamer.follow_p99(0, 10_000));
    assert!(blame(&mut blamer, &late.late, BlameScope::All).is_some());
}

#[test]
fn without_time_for_more_only_peaks_are_blamed() {
    let events = wake_up(hack(), 1, 1_500, 2_500, 12_000);
    let late = case([1_500, 0, 1_000, 9_500, 2_000], events);
    let (me, fake) = (late.me.clone(), late.fake.clone());
    let mut blamer = Blamer::new(vec![me], late.wishes.clone(), Box::new(fake));
    blamer.begin(0, 10_000, 12_000);
    assert!(blame(&mut blamer, &late.late, BlameScope::Peaks).is_some());
    let ordinary = Late { latency_ns: 11_000, ..late.late };
    assert!(blame(&mut blamer, &ordinary, BlameScope::Peaks).is_none());
    assert_eq!((blamer.record().blamed, blamer.record().passed_over), (1, 0), "it waits");
    assert!(blame(&mut blamer, &ordinary, BlameScope::All).is_none());
    assert!(blame(&mut blamer, &ordinary, BlameScope::Nothing).is_none());
    assert!(!blamer.is_behind() && blamer.give_up().is_empty());
    let record = blamer.record();
    assert_eq!((record.blamed, record.passed_over), (3, 1));
}

fn any_event() -> impl Strategy<Value = (i64, Event)> {
    let times = -100_000_i64..400_000;
    let tasks = prop_oneof![Just(ME), Just(0), 500_u32..503];
    let kind = prop_oneof![
        prop_oneof![
            Just(None),
            Just(Some(RunsAhead::FairServer)),
            Just(Some(RunsAhead::RealTimeThrottled)),
        ]
        .prop_map(|ahead| EventKind::Switch { comm: *b"some\0\0\0\0\0\0\0\0\0\0\0\0", ahead }),
        Just(EventKind::Waking { by: 500, cpu: 1 }),
        Just(EventKind::Priority { by: 500 }),
        (0_u32..2, 0_u32..3).prop_map(|(from, to)| EventKind::Migrate { from, to }),
        (0_u32..3).prop_map(|line| EventKind::IrqEntry { line, action: [0; 16] }),
        (0_u32..3).prop_map(|line| EventKind::IrqExit { line }),
        (0_u32..12).prop_map(|vector| EventKind::SoftirqEntry { vector }),
        (0_u32..12).prop_map(|vector| EventKind::SoftirqExit { vector }),
        (0_u32..7, 0_u64..0x1004)
            .prop_map(|(vector, address)| EventKind::VectorEntry { vector, address }),
        (0_u32..7).prop_map(|vector| EventKind::VectorExit { vector }),
        Just(EventKind::Idle { state: 1 }),
        Just(EventKind::Idle { state: u32::MAX }),
        Just(EventKind::PageFault { address: 1, instruction: 2 }),
        any::<u64>().prop_map(|took_ns| EventKind::Nmi { took_ns, handler: 0 }),
        (0_u64..1_000_000, any::<u64>())
            .prop_map(|(ns, since_ns)| EventKind::Steal { ns, since_ns }),
        Just(EventKind::LockBegin { lock: 5, flags: 0 }),
        Just(EventKind::LockEnd { lock: 5 }),
        (0_u64..100_000, 0_u64..0x1004)
            .prop_map(|(took_ns, address)| EventKind::Function { took_ns, address }),
        (0_u32..100_000).prop_map(|took_ns| EventKind::Poll {
            took_ns,
            device: *b"eth0\0\0\0\0\0\0\0\0\0\0\0\0",
            packets: 1,
            budget: 64
        }),
        (0_u64..0x1004).prop_map(|callback| EventKind::Timer { expires_ns: 0, callback }),
        (0_u64..3, 0_u64..100_000)
            .prop_map(|(number, took_ns)| EventKind::Stack { number, took_ns }),
    ];
    (times, 0_u32..3, -1_i16..140, tasks, 0_u8..8, kind).prop_map(
        |(at_ns, cpu, prio, pid, flags, kind)| {
            (at_ns, Event { at_ns: 0, cpu, prio, pid, flags, kind })
        },
    )
}

/// What the table says of leaving the idle state.
const EXIT_NS: i64 = 20_000;

proptest! {
    /// `Case::peak` asserts that the parts sum to the latency.
    #[test]
    fn whatever_is_recorded_the_parts_sum_to_the_latency(
        events in prop::collection::vec(any_event(), 0..80),
        stages in prop::array::uniform5(-5_000_i64..100_000),
        matched in any::<bool>(),
        cpus in (0_u32..3, 0_u32..3),
        stopped_ns in prop_oneof![Just((0, 0)), (any::<u64>(), any::<u64>()),
            (T - 9_000..T + 90_000, T - 9_000..T + 90_000)],
        (real_time, guest, forgets, spins) in any::<(bool, bool, bool, bool)>(),
    ) {
        prop_assume!(stages.iter().sum::<i64>() > 0);
        let mut case = case(stages, events).stack(1, &["a", "_raw_spin_lock", "exit_mmap"]);
        case.late.matched = matched && !spins;
        case.me.spins = spins;
        (case.late.cpus, case.late.stopped_ns) = (cpus, stopped_ns);
        (case.me.real_time, case.wishes.virtual_machine) = (real_time, guest);
        case.fake.forgets = forgets;
        case.wishes.idle_exit_ns.extend((0..3).map(|cpu| ((cpu, 1), EXIT_NS)));
        let peak = case.peak();
        prop_assert!(peak.blame.iter().all(|part| part.ns > 0));
        // Once for each CPU on which the thread waited, at most.
        let idle = peak.blame.iter().filter(|part| part.cause == Cause::IdleExit);
        prop_assert!(idle.map(|part| part.ns).sum::<u64>() <= 3 * EXIT_NS.cast_unsigned());
        prop_assert!(peak.timeline.len() <= 300);
    }
}
