//! The kernel's side against this kernel; needs root.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::*;
use crate::sys::cpus::Cpus;

/// Threads of this process alone may be followed, and one test at a time traces.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Absent, with a word on why, where this process may not trace.
fn tracer(settings: Settings) -> Option<Tracer> {
    if let Err(lack) = can_trace() {
        eprintln!("skipped: {lack}");
        return None;
    }
    Some(Tracer::load(&settings).unwrap())
}

const STAGES: Settings = Settings { mode: Mode::Stages, stacks: Stacks::Off, slots_per_cpu: 1024 };

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

fn sleep_until(ns: u64) {
    let until = rustix::time::Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap(),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap(),
    };
    rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &until).unwrap();
}

fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Sleeps `turns` times; counts those that the record explains, by their stages in order.
fn matching(records: &ThreadRecords, turns: u32) -> u32 {
    let mut matching = 0;
    for _ in 0..turns {
        let t = now_ns() + 1_000_000;
        sleep_until(t);
        let now = now_ns();
        let record = records.get(0).unwrap();
        let [expires, entry, callback, waking, switch] = [
            &record.expires_ns,
            &record.entry_ns,
            &record.callback_ns,
            &record.waking_ns,
            &record.switch_ns,
        ]
        .map(|field| field.load(Relaxed));
        let ordered = entry <= callback && callback <= waking && waking <= switch && switch <= now;
        let complete = record.pending.load(Relaxed) == 0;
        matching += u32::from(expires == t && waking >= t && ordered && complete);
    }
    matching
}

#[test]
fn the_record_of_a_sleeping_thread_tells_its_expiry_and_the_way_from_there() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(STAGES) else { return };
    assert!(tracer.missing().is_empty(), "{:?}", tracer.missing());
    let records = tracer.threads();
    tracer.follow(&[(tid(), 120)]).unwrap();
    assert_eq!(matching(&records, 20), 0, "no program runs yet");
    for _ in 0..2 {
        tracer.attach().unwrap();
        let matched = matching(&records, 200);
        assert!(matched >= 190, "{matched} of 200");
        tracer.detach();
        assert_eq!(matching(&records, 20), 0, "none runs any more");
    }
}

const PEAKS: Settings =
    Settings { mode: Mode::Peaks, stacks: Stacks::WhenLate, slots_per_cpu: 32_768 };

/// Sleeps once for a millisecond; the expiry, and when it woke up.
fn sleep_once() -> (u64, u64) {
    let t = now_ns() + 1_000_000;
    sleep_until(t);
    (t, now_ns())
}

/// The events of a CPU from a little before an expiry to the wake-up, in order.
fn around(recorder: &Recorder, cpu: u32, t: u64, woke_ns: u64) -> Vec<Event> {
    let mut events = Vec::new();
    assert!(recorder.events(cpu, t - 500_000, woke_ns, &mut events));
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    assert!(events.iter().all(|event| event.cpu == cpu && event.at_ns <= woke_ns));
    events
}

#[test]
fn the_events_around_a_wake_up_tell_its_way_in_order() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(PEAKS) else { return };
    let recorder = tracer.recorder();
    tracer.follow(&[(tid(), 120)]).unwrap();
    tracer.attach().unwrap();
    let me = tid().cast_unsigned();
    let records = tracer.threads();
    let mut whole = 0;
    for _ in 0..100 {
        let (t, woke_ns) = sleep_once();
        let record = records.get(0).unwrap();
        if record.expires_ns.load(Relaxed) != t {
            continue;
        }
        let mut events = around(&recorder, record.switch_cpu.load(Relaxed), t, woke_ns);
        if record.cpu.load(Relaxed) != record.switch_cpu.load(Relaxed) {
            events.extend(around(&recorder, record.cpu.load(Relaxed), t, woke_ns));
            events.sort_by_key(|event| event.at_ns);
        }
        let timer = |event: &Event| match event.kind {
            EventKind::Timer { expires_ns, .. } => expires_ns == t,
            _ => false,
        };
        let mine = |event: &Event| event.pid == me && event.prio == 120;
        let waking = |event: &Event| mine(event) && matches!(event.kind, EventKind::Waking { .. });
        let switch = |event: &Event| mine(event) && matches!(event.kind, EventKind::Switch { .. });
        let at = |found: &dyn Fn(&Event) -> bool| events.iter().rposition(found);
        let way = [at(&timer), at(&waking), at(&switch)];
        whole += u32::from(way.is_sorted() && !way.contains(&None));
    }
    assert!(whole >= 80, "{whole} of 100");
}

/// Ends the other thread also where this one fails.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Reads zeros without end: nearly all of its time is spent in the kernel.
fn stay_in_the_kernel(cpu: &Cpus, until: &AtomicBool) {
    cpu.pin_this_thread().unwrap();
    let mut zeros = std::fs::File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 16 << 20];
    while !until.load(Relaxed) {
        zeros.read_exact(&mut buffer).unwrap();
    }
}

/// The functions of the first stack that a wake-up left.
fn first_stack(tracer: &Tracer) -> Option<Vec<u64>> {
    let (recorder, records) = (tracer.recorder(), tracer.threads());
    (0..2000).find_map(|_| {
        let (t, woke_ns) = sleep_once();
        let cpu = records.get(0).unwrap().cpu.load(Relaxed);
        let stacks = around(&recorder, cpu, t, woke_ns).into_iter().filter_map(|event| {
            let walked_here = event.at_ns >= t;
            match event.kind {
                EventKind::Stack { number, .. } if walked_here => Some((event.pid, number)),
                _ => None,
            }
        });
        let (pid, number) = { stacks }.next_back()?;
        assert_ne!(pid, tid().cast_unsigned(), "whom the wake-up interrupted");
        recorder.stack(number)
    })
}

#[test]
fn a_wake_up_that_finds_the_kernel_at_work_leaves_its_stack() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(Settings { stacks: Stacks::Always, ..PEAKS }) else { return };
    tracer.follow(&[(tid(), 120)]).unwrap();
    tracer.attach().unwrap();
    let before = Cpus::allowed().unwrap();
    let cpu = Cpus::from_iter(before.iter().take(1));
    let enough = AtomicBool::new(false);
    let stack = std::thread::scope(|scope| {
        let _end = EndOf(&enough);
        scope.spawn(|| stay_in_the_kernel(&cpu, &enough));
        cpu.pin_this_thread().unwrap();
        let stack = first_stack(&tracer);
        before.pin_this_thread().unwrap();
        stack
    });
    let symbols = Symbols::read();
    let stack = stack.unwrap();
    let names: Vec<&str> = stack.iter().filter_map(|it| Some(symbols.name(*it)?.0)).collect();
    assert!(!stack.is_empty());
    let hidden = symbols.are_hidden();
    assert!(hidden || names.iter().any(|name| name.contains("read")), "{names:?}");
}
