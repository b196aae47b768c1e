//! The BPF side against this kernel; needs root.

mod real_time;
mod recorded;
mod replay;

use std::{
    io::{Read, Write},
    sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed},
};

use tardy_hot::stages::ThreadRecord;

use super::*;
use crate::sys::{cpus::Cpus, faults::ThreadUsage};

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

const STAGES: Settings = Settings {
    mode: TraceLevel::Stages,
    stacks: Stacks::Off,
    woken_by: WokenBy::Timers,
    futexes: false,
    slots_per_cpu: 1024,
};

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

/// Sleeps once for a millisecond; the expiry, and when it woke up. `None` if the thread did not
/// block: it was interrupted for so long that the expiry had passed before, and nothing woke it.
fn sleep_once() -> Option<(u64, u64)> {
    let before = ThreadUsage::of_this_thread().voluntary_switches;
    let t = now_ns() + 1_000_000;
    sleep_until(t);
    let woke_ns = now_ns();
    (ThreadUsage::of_this_thread().voluntary_switches > before).then_some((t, woke_ns))
}

/// Sleeps until it has blocked `times` times. On a busy machine that takes more turns.
fn sleeps(times: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..1000 * times).filter_map(|_| sleep_once()).take(times)
}

/// The time limit of what must happen at some time, ns. A slow machine may have a multiple of it:
/// `TARDY_TEST_PATIENCE`.
fn patience_ns() -> u64 {
    let times = std::env::var("TARDY_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    120_000_000_000 * times.unwrap_or(1)
}

/// Tries again until there is an answer; absent when the patience is over.
fn eventually<T>(mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline_ns = now_ns() + patience_ns();
    while now_ns() < deadline_ns {
        if let Some(found) = find() {
            return Some(found);
        }
    }
    None
}

/// Whether the time of this machine is its count of instructions, so that nothing disturbs it.
fn is_counted() -> bool {
    std::env::var_os("TARDY_TEST_COUNTED").is_some()
}

/// Of 100 wake-ups each has to be as it should where nothing disturbs this machine. Elsewhere one
/// has to be at some time: a busy machine may spoil any of them.
fn each_or_one(mut is_right: impl FnMut((u64, u64)) -> bool) -> bool {
    if is_counted() {
        return sleeps(100).all(is_right);
    }
    eventually(|| sleep_once().filter(|slept| is_right(*slept))).is_some()
}

/// Whether the record explains this wake-up, by its stages in order.
fn explains(record: &ThreadRecord, (t, woke_ns): (u64, u64)) -> bool {
    let [expires, entry, callback, waking, switch] = [
        &record.expires_ns,
        &record.entry_ns,
        &record.callback_ns,
        &record.waking_ns,
        &record.switch_ns,
    ]
    .map(|field| field.load(Relaxed));
    let ordered = entry <= callback && callback <= waking && waking <= switch && switch <= woke_ns;
    expires == t && waking >= t && ordered && record.pending.load(Relaxed) == 0
}

#[test]
fn the_record_of_a_sleeping_thread_has_its_expiry_and_each_step_after_it() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(STAGES) else { return };
    assert!(tracer.missing().is_empty(), "{:?}", tracer.missing());
    let records = tracer.threads();
    let record = records.get(0).unwrap();
    tracer.follow(&[(tid(), 120)]).unwrap();
    assert_eq!(sleeps(20).filter(|slept| explains(record, *slept)).count(), 0, "none runs yet");
    for _ in 0..2 {
        tracer.attach().unwrap();
        assert!(each_or_one(|slept| explains(record, slept)), "the record explains wake-ups");
        tracer.detach();
        // A child that another test forks holds the programs, too, until it executes its own.
        let has_ended = || (!sleeps(20).any(|slept| explains(record, slept))).then_some(());
        assert!(eventually(has_ended).is_some(), "none any more");
    }
}

/// A thread may block again between its timer's wake-up and user space, for a lock.
#[test]
fn a_second_wake_up_by_somebody_else_leaves_the_record_of_the_timers() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(STAGES) else { return };
    let records = tracer.threads();
    let record = records.get(0).unwrap();
    tracer.follow(&[(tid(), 120)]).unwrap();
    tracer.attach().unwrap();
    let before = Cpus::allowed().unwrap();
    // The timer and who wakes on the same CPU, so that both are of its last timer.
    Cpus::from_iter(before.iter().take(1)).pin_this_thread().unwrap();
    let (asked, ask) = std::io::pipe().unwrap();
    let (answered, answer) = std::io::pipe().unwrap();
    let other = std::thread::spawn(move || answer_each(asked, answer));
    let (mut ask, mut answered) = (ask, answered);
    let kept = eventually(|| {
        let slept = sleep_once()?;
        let blocked = ThreadUsage::of_this_thread().voluntary_switches;
        ask.write_all(&[1]).unwrap();
        answered.read_exact(&mut [0]).unwrap();
        // Another timer may have expired meanwhile.
        let has_blocked = ThreadUsage::of_this_thread().voluntary_switches > blocked;
        (has_blocked && explains(record, slept)).then_some(())
    });
    before.pin_this_thread().unwrap();
    drop(ask);
    other.join().unwrap();
    assert!(kept.is_some(), "each wake-up by the other thread took the place of the timer's");
}

/// Until nobody asks any more.
fn answer_each(mut asked: std::io::PipeReader, mut answer: std::io::PipeWriter) {
    while asked.read_exact(&mut [0]).is_ok() {
        answer.write_all(&[1]).unwrap();
    }
}

const PEAKS: Settings = Settings {
    mode: TraceLevel::Peaks,
    stacks: Stacks::WhenLate,
    woken_by: WokenBy::Timers,
    futexes: false,
    slots_per_cpu: 32_768,
};

#[test]
fn the_kernel_takes_each_program_for_which_it_has_a_tracepoint() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(PEAKS) else { return };
    let is_refused =
        |missing: &&Missing| !missing.why.starts_with("the kernel has no such tracepoint");
    let refused: Vec<&Missing> = tracer.missing().iter().filter(is_refused).collect();
    assert!(refused.is_empty(), "{refused:?}");
    tracer.attach().unwrap();
}

/// The events of a CPU from a little before an expiry to the wake-up, in order. `None` if they were
/// overwritten before this thread could read them.
fn around(recorder: &EventReader, cpu: u32, t: u64, woke_ns: u64) -> Option<Vec<Event>> {
    let mut events = Vec::new();
    let complete = recorder.events(cpu, t - 500_000, woke_ns, &mut events);
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    assert!(events.iter().all(|event| event.cpu == cpu && event.at_ns <= woke_ns));
    complete.then_some(events)
}

/// Those of both CPUs that had to do with a wake-up.
fn all_around(
    recorder: &EventReader,
    record: &ThreadRecord,
    t: u64,
    woke_ns: u64,
) -> Option<Vec<Event>> {
    let (cpu, switch_cpu) = (record.cpu.load(Relaxed), record.switch_cpu.load(Relaxed));
    let mut events = around(recorder, switch_cpu, t, woke_ns)?;
    if cpu != switch_cpu {
        events.extend(around(recorder, cpu, t, woke_ns)?);
        events.sort_by_key(|event| event.at_ns);
    }
    Some(events)
}

/// Whether timer, waking and switch are among the events, in that order.
fn have_all_steps(events: &[Event], t: u64) -> bool {
    let timer = |event: &Event| match event.kind {
        EventKind::Timer { expires_ns, .. } => expires_ns == t,
        _ => false,
    };
    let mine = |event: &Event| event.pid == tid().cast_unsigned() && event.prio == 120;
    let waking = |event: &Event| mine(event) && matches!(event.kind, EventKind::Waking { .. });
    let switch = |event: &Event| mine(event) && matches!(event.kind, EventKind::Switch { .. });
    let at = |found: &dyn Fn(&Event) -> bool| events.iter().rposition(found);
    let way = [at(&timer), at(&waking), at(&switch)];
    way.is_sorted() && !way.contains(&None)
}

#[test]
fn the_events_around_a_wake_up_are_its_steps_in_order() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(PEAKS) else { return };
    let recorder = tracer.recorder();
    tracer.follow(&[(tid(), 120)]).unwrap();
    tracer.attach().unwrap();
    let records = tracer.threads();
    let record = records.get(0).unwrap();
    let is_traced = |(t, woke_ns)| {
        explains(record, (t, woke_ns))
            && all_around(&recorder, record, t, woke_ns)
                .is_some_and(|events| have_all_steps(&events, t))
    };
    assert!(each_or_one(is_traced), "the events have the steps of a wake-up");
}

/// As after a move of this guest to another host. Vacuous where the kernel knows of no hypervisor.
#[test]
fn a_steal_counter_that_goes_back_is_no_stolen_time() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(PEAKS) else { return };
    let (recorder, cpus) = (tracer.recorder(), Cpus::allowed().unwrap());
    tracer.attach().unwrap();
    assert_eq!(sleeps(20).count(), 20);
    // Another try where events were overwritten before this thread could read them.
    let events = eventually(|| {
        let from_ns = now_ns();
        cpus.iter().for_each(|cpu| tracer.memory.set_steal(cpu, 1 << 60, from_ns));
        assert_eq!(sleeps(50).count(), 50);
        let mut events = Vec::new();
        cpus.iter()
            .all(|cpu| recorder.events(cpu, from_ns, now_ns(), &mut events))
            .then_some(events)
    });
    let events = events.unwrap();
    let stolen = events.iter().filter_map(|event| match event.kind {
        EventKind::Steal { ns, .. } => Some(ns),
        _ => None,
    });
    assert!(!events.is_empty() && stolen.max() < Some(1 << 40), "hours within moments");
}

/// Ends the other thread also where this one fails.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Reads zeros without end: nearly all of its time is spent in the kernel. Says which thread it is
/// once it does so.
fn stay_in_the_kernel(cpu: &Cpus, busy: &AtomicI32, until: &AtomicBool) {
    cpu.pin_this_thread().unwrap();
    let mut zeros = std::fs::File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 16 << 20];
    while !until.load(Relaxed) {
        zeros.read_exact(&mut buffer).unwrap();
        busy.store(tid(), Relaxed);
    }
}

/// The names of the functions of the first stack that a wake-up left which interrupted that thread
/// while it read. Others of this machine may be at work on the same CPU, and it may be on its way
/// into the call or out of it.
fn stack_of_read(tracer: &Tracer, busy: &AtomicI32) -> Option<Vec<String>> {
    let (recorder, records, symbols) = (tracer.recorder(), tracer.threads(), Symbols::read());
    eventually(|| {
        let (t, woke_ns) = sleep_once()?;
        let cpu = records.get(0).unwrap().cpu.load(Relaxed);
        let stacks = around(&recorder, cpu, t, woke_ns)?.into_iter().filter_map(|event| {
            let walked_here = event.at_ns >= t;
            match event.kind {
                EventKind::Stack { number, .. } if walked_here => Some((event.pid, number)),
                _ => None,
            }
        });
        let (pid, number) = { stacks }.next_back()?;
        assert_ne!(pid, tid().cast_unsigned(), "whom the wake-up interrupted");
        let is_busys = pid == busy.load(Relaxed).cast_unsigned();
        let stack = is_busys.then(|| recorder.stack(number))??;
        let names: Vec<String> =
            stack.iter().filter_map(|it| Some(symbols.name(*it)?.0.to_owned())).collect();
        let is_in_read = symbols.are_hidden() || names.iter().any(|name| name.contains("read"));
        (!stack.is_empty() && is_in_read).then_some(names)
    })
}

#[test]
fn a_wake_up_that_interrupts_the_kernel_has_its_stack() {
    let _turn = TURN.lock();
    let Some(mut tracer) = tracer(Settings { stacks: Stacks::Always, ..PEAKS }) else { return };
    tracer.follow(&[(tid(), 120)]).unwrap();
    tracer.attach().unwrap();
    let before = Cpus::allowed().unwrap();
    let cpu = Cpus::from_iter(before.iter().take(1));
    let (busy, enough) = (AtomicI32::new(0), AtomicBool::new(false));
    let stack = std::thread::scope(|scope| {
        let _end = EndOf(&enough);
        scope.spawn(|| stay_in_the_kernel(&cpu, &busy, &enough));
        cpu.pin_this_thread().unwrap();
        let stack = stack_of_read(&tracer, &busy);
        before.pin_this_thread().unwrap();
        stack
    });
    assert!(stack.is_some(), "no wake-up left the stack of the thread that reads");
}

/// What a run's start costs is decided by the paths that the verifier has to follow: twelve
/// branches in a row once made it 150 ms of CPU. Kernels before 5.16 do not state it.
#[test]
fn no_program_has_more_paths_than_the_verifier_follows_at_once() {
    let _turn = TURN.lock();
    let Some(tracer) = tracer(PEAKS) else { return };
    let of_programs = tracer.recorder().verified_instructions();
    assert!(of_programs.len() >= 10, "{of_programs:?}");
    let most = of_programs.iter().flatten().max();
    assert!(most < Some(&20_000), "{of_programs:?}");
    eprintln!("at most {most:?} instructions");
}
