//! The loop of the `noise` probe: counted, not timed, that it allocates nothing, takes no page
//! fault and makes no system call; and that gaps of known place and length come back.

use std::{
    os::unix::thread::JoinHandleExt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    alloc,
    faults::{page_faults, undisturbed},
    traced,
};
use tardy_hot::{
    clock::now_ns,
    gaps::{ByLength, CompiledSink, Spin, TracedGaps, run},
    ring::{Reader, Sample, ring},
    stages::Late,
    stop::Stop,
    traced::TraceControl,
    wakeup::{Counted, Ended, Kept, Series, Sink, Until},
};

/// Every turn is a gap that is recorded: that is the most a turn can do.
const EVERY_TURN_NS: i64 = -1;

const fn until_samples(samples: u64) -> Until {
    Until { end_ns: i64::MAX, samples, stop_over_ns: i64::MAX }
}

/// `turns` turns between `begin` and `end`, whose difference it returns, after some that warm up.
fn between<T>(
    sink: &mut impl Sink,
    turns_wanted: u64,
    begin: impl FnOnce() -> T,
    end: impl FnOnce(T) -> u64,
) -> u64 {
    let (stop, mut spin) = (Stop::new(), Spin::new(EVERY_TURN_NS));
    assert_eq!(run(&mut spin, sink, until_samples(3), &stop), (Ended::Done, 0));
    let before = begin();
    let ended = run(&mut spin, sink, until_samples(turns_wanted), &stop);
    let found = end(before);
    assert_eq!((ended, spin.turns), ((Ended::Done, 0), turns_wanted + 3));
    found
}

fn late_ring(turns: u64) -> (TracedGaps<Counted>, Reader<Late>) {
    let (late, reader) = ring(usize::try_from(turns).unwrap() + 3);
    let control = Arc::new(TraceControl::default());
    control.late_over_ns.store(i64::MIN, Relaxed);
    (TracedGaps { inner: Counted(Arc::default()), control, late }, reader)
}

/// The same by every kind of sink.
fn by_all_sinks<T>(
    turns: u64,
    begin: impl Fn() -> T,
    end: impl Fn(T) -> u64,
) -> [(&'static str, u64); 3] {
    let mut counted = ByLength::new(Counted(Arc::<Series>::default()));
    let (writer, mut reader) = ring(usize::try_from(turns).unwrap() + 3);
    let mut kept = ByLength::new(Kept(Arc::<Series>::default(), writer));
    let (traced, mut late) = late_ring(turns);
    let mut traced = ByLength::new(traced);
    let found = [
        ("counted", between(&mut counted, turns, &begin, &end)),
        ("kept", between(&mut kept, turns, &begin, &end)),
        ("traced", between(&mut traced, turns, &begin, &end)),
    ];
    assert_eq!(counted.inner.0.tally.totals().count, turns + 3);
    assert_eq!([reader.drain(|_| ()), late.drain(|_| ())], [turns as usize + 3; 2]);
    found
}

#[test]
fn no_turn_allocates() {
    for (sink, found) in by_all_sinks(10_000, || alloc::arm(3), |()| alloc::disarm()) {
        assert_eq!(found, 0, "{sink}: allocations (their backtraces stand above)");
    }
}

#[test]
fn no_turn_takes_a_page_fault() {
    page_faults();
    let count = || by_all_sinks(10_000, page_faults, |before| page_faults() - before);
    for (sink, found) in undisturbed(count, |found| found.iter().all(|(_, found)| *found == 0)) {
        assert_eq!(found, 0, "{sink}: page faults");
    }
}

#[test]
fn no_turn_makes_a_system_call() {
    let marked = |turns| {
        by_all_sinks(turns, traced::mark, |()| {
            traced::mark();
            0
        })
    };
    if traced::is_child() {
        return traced::child(|| {
            for turns in traced::TURNS {
                marked(turns);
            }
        });
    }
    match traced::count("gaps::no_turn_makes_a_system_call", 3 * traced::TURNS.len()) {
        Err(why) => println!("skipped: {why}"),
        Ok(found) => {
            for at in 0..3 * traced::TURNS.len() {
                assert_eq!(found.calls(at), traced::Calls::new(), "case {at}, call: count");
            }
        }
    }
}

/// When the handler of the signal had the thread.
static STALLS: [[AtomicI64; 2]; 8] = [const { [const { AtomicI64::new(0) }; 2] }; 8];
static STALLED: AtomicUsize = AtomicUsize::new(0);
const STALL_NS: i64 = 2_000_000;

/// Computes for [`STALL_NS`]: from when to when.
fn stand_still() -> (i64, i64) {
    let from_ns = now_ns();
    let mut to_ns = from_ns;
    while to_ns - from_ns < STALL_NS {
        to_ns = now_ns();
    }
    (from_ns, to_ns)
}

extern "C" fn stall(_: i32) {
    let (from_ns, to_ns) = stand_still();
    if let Some([from, to]) = STALLS.get(STALLED.fetch_add(1, Relaxed)) {
        from.store(from_ns, Relaxed);
        to.store(to_ns, Relaxed);
    }
}

#[test]
fn gaps_that_were_made_come_back_with_their_place_and_length() {
    let handler: extern "C" fn(i32) = stall;
    // SAFETY: the handler reads the clock and stores into statics, which a handler may.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let (stop, (writer, mut reader)) = (Arc::new(Stop::new()), ring::<Sample>(1 << 16));
    let (own, series) = (Arc::clone(&stop), Arc::<Series>::default());
    let mut sink = ByLength::new(Kept(Arc::clone(&series), writer));
    let spinning = std::thread::spawn(move || {
        let mut spin = Spin::new(EVERY_TURN_NS);
        // No time lies between two loops, so that from the first turn on no stall is missed.
        sink.spin(&mut spin, until_samples(1), &own);
        spin.over_ns = 1_000;
        (sink.spin(&mut spin, until_samples(u64::MAX), &own).0, sink.sums_ns)
    });
    while series.tally.totals().count == 0 {
        std::thread::yield_now();
    }
    for n in 0..STALLS.len() {
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(spinning.as_pthread_t(), libc::SIGUSR1) };
        while STALLED.load(Relaxed) == n {
            std::thread::yield_now();
        }
    }
    stop.set();
    let (ended, sums_ns) = spinning.join().unwrap();
    assert_eq!(ended, Ended::Stopped);
    let mut gaps = Vec::new();
    reader.drain(|sample| gaps.push(sample));
    assert_eq!(series.tally.totals().count, gaps.len() as u64);
    for [from, to] in &STALLS {
        let (from_ns, to_ns) = (from.load(Relaxed), to.load(Relaxed));
        let covers = |gap: &&Sample| gap.t_ns <= from_ns && gap.t_ns + gap.latency_ns >= to_ns;
        let found = gaps.iter().filter(covers).count();
        assert_eq!(found, 1, "one gap holds the stall from {from_ns} to {to_ns}: {gaps:?}");
    }
    let sum: i64 = gaps.iter().map(|gap| gap.latency_ns).sum();
    assert_eq!(series.tally.totals().sum_ns, sum, "what is lost is the sum of the gaps");
    let of = |over_ns: i64, to_ns: i64| {
        let within = |gap: &&Sample| gap.latency_ns > over_ns && gap.latency_ns <= to_ns;
        gaps.iter().filter(within).map(|gap| gap.latency_ns).sum::<i64>()
    };
    let longest = of(1_000_000, i64::MAX);
    assert_eq!(sums_ns, [of(-1, 10_000), of(10_000, 100_000), of(100_000, 1_000_000), longest]);
    assert!(longest >= STALLS.len() as i64 * STALL_NS);
}

/// Stands still at the first gap before it is kept, as a thread that is preempted there.
struct PreemptedOnce {
    gaps: Vec<Sample>,
}

impl Sink for PreemptedOnce {
    fn take(&mut self, sample: Sample) {
        if self.gaps.is_empty() {
            stand_still();
        }
        self.gaps.push(sample);
    }

    fn miss(&mut self, _: u64) {}
}

#[test]
fn a_thread_that_loses_its_cpu_while_a_gap_is_recorded_has_that_as_the_next_gap() {
    let (stop, mut spin) = (Stop::new(), Spin::new(EVERY_TURN_NS));
    let mut sink = PreemptedOnce { gaps: Vec::with_capacity(8) };
    assert_eq!(run(&mut spin, &mut sink, until_samples(2), &stop), (Ended::Done, 0));
    let [first, second] = sink.gaps.as_slice() else { panic!("{:?}", sink.gaps) };
    assert_eq!(second.t_ns, first.t_ns + first.latency_ns, "no time lies between");
    assert!(second.latency_ns >= STALL_NS, "{second:?}");
}

#[test]
fn the_end_the_number_of_gaps_a_long_one_and_the_flag_end_it() {
    let stop = Stop::new();
    let mut sink = ByLength::new(Counted(Arc::<Series>::default()));
    let mut spin = Spin::new(i64::MAX);
    let end_ns = now_ns() + 1_000_000;
    let ended = sink.spin(&mut spin, Until { end_ns, ..until_samples(7) }, &stop);
    assert_eq!((ended, sink.inner.0.tally.totals().count), ((Ended::Done, 7), 0));
    assert!(spin.before_ns >= end_ns);
    spin.over_ns = EVERY_TURN_NS;
    assert_eq!(sink.spin(&mut spin, until_samples(5), &stop), (Ended::Done, 0));
    let limit = Until { stop_over_ns: EVERY_TURN_NS, ..until_samples(5) };
    assert_eq!(sink.spin(&mut spin, limit, &stop), (Ended::Stopped, 4));
    assert!(stop.is_set());
    assert_eq!(sink.inner.0.tally.totals().count, 6);
}
