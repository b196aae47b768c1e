//! The kernel's side against this kernel; needs root.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::Ordering::Relaxed;

use super::*;

/// Threads of this process alone may be followed, and one test at a time traces.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Absent, with a word on why, where this process may not trace.
fn tracer(settings: Settings) -> Option<Tracer> {
    if let Err(lack) = can_trace() {
        #[expect(clippy::print_stderr, reason = "a skip that is seen by nobody is none")]
        {
            eprintln!("skipped: {lack}");
        }
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
