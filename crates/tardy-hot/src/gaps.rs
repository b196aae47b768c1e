//! The loop of the `noise` probe: read the clock all the time, and store each gap between two reads
//! in which the CPU must have done something else.
//!
//! # What lies between the clock reads
//!
//! One turn of the loop: a comparison, and the loads of the stop flag. Whatever is longer was taken
//! from this thread: by an interrupt, a softirq, another thread, the hypervisor, the firmware, or
//! the hardware. A gap is the whole time between the two reads, so that one turn, some 20 to 30 ns,
//! is in it. Recording a gap lies outside, as the clock is read again after it. But a thread that
//! just got its CPU back often loses it again before the gap is recorded: recording that took
//! longer than [`RECORDING_NS`] begins the next gap, so that at most this much of each is not seen.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use crate::{
    clock,
    ring::{Sample, Writer},
    stages::Late,
    stop::Stop,
    traced::TraceControl,
    wakeup::{Counted, Ended, Kept, Sink, Until},
};

/// A thread that spins: what it carries from one loop to the next, so that no time lies between.
#[derive(Debug)]
pub struct Spin {
    /// The clock read that the next gap begins at, ns.
    pub before_ns: i64,
    /// Clock reads so far.
    pub turns: u64,
    /// A longer time between two of them is a gap, ns.
    pub over_ns: i64,
}

impl Spin {
    /// Begins now.
    #[must_use]
    pub fn new(over_ns: i64) -> Self {
        Self { before_ns: clock::now_ns(), turns: 0, over_ns }
    }
}

/// A sink whose loop is compiled in this crate, so that it is as fast as it gets however its user
/// is compiled.
pub trait CompiledSink: Sink + Sized {
    /// [`run`].
    fn spin(&mut self, spin: &mut Spin, until: Until, stop: &Stop) -> (Ended, u64);
}

macro_rules! compiled {
    ($($sink:ty),*) => {$(
        impl CompiledSink for ByLength<$sink> {
            #[inline(never)]
            fn spin(&mut self, spin: &mut Spin, until: Until, stop: &Stop) -> (Ended, u64) {
                run(spin, self, until, stop)
            }
        }
    )*};
}

compiled!(Counted, Kept, TracedGaps<Counted>, TracedGaps<Kept>);

/// Recording a gap takes some 100 ns, with cold caches more, and never as long as this, ns.
pub const RECORDING_NS: i64 = 2_000;

/// The ends of the classes of [`ByLength`], ns; the last has what is longer.
pub const CLASSES_NS: [i64; 3] = [10_000, 100_000, 1_000_000];

/// Adds up gaps by how long they are, and hands every one to `inner`.
#[derive(Debug)]
pub struct ByLength<S> {
    /// Takes the gaps too.
    pub inner: S,
    /// Sum of the gaps up to each of [`CLASSES_NS`], and of longer ones, ns.
    pub sums_ns: [i64; CLASSES_NS.len() + 1],
    /// The class of the last of them.
    pub last: usize,
    /// When that one ended, ns.
    pub end_ns: i64,
}

impl<S> ByLength<S> {
    /// Without a gap so far.
    #[must_use]
    pub const fn new(inner: S) -> Self {
        Self { inner, sums_ns: [0; CLASSES_NS.len() + 1], last: 0, end_ns: 0 }
    }
}

/// The class of a gap, a place in [`ByLength::sums_ns`].
#[inline(always)]
#[must_use]
pub fn class_of(gap_ns: i64) -> usize {
    CLASSES_NS.iter().filter(|end_ns| gap_ns > **end_ns).count()
}

impl<S: Sink> Sink for ByLength<S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let gap_ns = sample.latency_ns;
        self.last = class_of(gap_ns);
        self.end_ns = sample.t_ns + gap_ns;
        if let Some(sum_ns) = self.sums_ns.get_mut(self.last) {
            *sum_ns += gap_ns;
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

/// Hands long gaps on for the analysis of their cause, and every one to `inner`.
#[derive(Debug)]
pub struct TracedGaps<S> {
    /// Keeps the gap.
    pub inner: S,
    /// The threshold that others set.
    pub control: Arc<TraceControl>,
    /// Long ones on their way.
    pub late: Writer<Late>,
}

impl<S: Sink> Sink for TracedGaps<S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        if sample.latency_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            let Sample { t_ns, latency_ns } = sample;
            self.late.push(Late { t_ns, latency_ns, ..Late::default() });
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

/// Reads the clock and hands gaps over, until `until` or `stop` ends it. A gap that reaches over
/// either end is counted. Why it ended, and how many gaps of `until.samples` are left.
///
/// Not inlined, so that the loop stands alone in a profile.
#[inline(never)]
pub fn run<S: Sink>(spin: &mut Spin, sink: &mut S, until: Until, stop: &Stop) -> (Ended, u64) {
    run_by(clock::now_ns, spin, sink, until, stop)
}

/// [`run`] by this clock, ns: that of a test, whose gaps are known.
#[inline(always)]
pub fn run_by<S: Sink>(
    mut read_ns: impl FnMut() -> i64,
    spin: &mut Spin,
    sink: &mut S,
    until: Until,
    stop: &Stop,
) -> (Ended, u64) {
    let Spin { mut before_ns, mut turns, over_ns } = *spin;
    let mut left = until.samples;
    let ended = loop {
        if before_ns >= until.end_ns || left == 0 {
            break Ended::Done;
        }
        // Before the clock is read: the gap in which the flag was set is counted too.
        let mut is_stopped = stop.is_set();
        let now_ns = read_ns();
        turns += 1;
        let gap_ns = now_ns - before_ns;
        let mut next_ns = now_ns;
        if gap_ns > over_ns {
            sink.take(Sample { t_ns: before_ns, latency_ns: gap_ns });
            left -= 1;
            if gap_ns > until.stop_over_ns {
                stop.set_over(gap_ns);
                is_stopped = true;
            }
            next_ns = read_ns();
            if next_ns - now_ns > RECORDING_NS {
                // Something else had the CPU meanwhile: the next turn finds that gap.
                next_ns = now_ns;
                is_stopped = false;
            }
        }
        before_ns = next_ns;
        if is_stopped {
            break Ended::Stopped;
        }
    };
    (spin.before_ns, spin.turns) = (before_ns, turns);
    (ended, left)
}
