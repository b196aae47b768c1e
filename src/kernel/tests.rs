//! The kernel's side against this kernel; needs root.

use std::sync::atomic::Ordering::Relaxed;

use super::*;

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
        let mut events = Vec::new();
        let cpu = record.switch_cpu.load(Relaxed);
        assert!(recorder.events(cpu, t - 500_000, woke_ns, &mut events));
        assert!(events.is_sorted_by_key(|event| event.at_ns));
        assert!(events.iter().all(|event| event.cpu == cpu && event.at_ns <= woke_ns));
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
