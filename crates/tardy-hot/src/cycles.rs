//! What the `audio` probe does in each cycle of a JACK server: one clock read at the entry of the
//! process callback, compared with the grid on which cycles are due.
//!
//! # What lies between the clock reads
//!
//! A due time is a number, not a clock read; the sample is one clock read as the first thing in the
//! callback, minus that number. In it are: how late the server began the cycle, how it woke the
//! thread of its client, the dispatch of that, the return to user space, and what libjack does
//! before it calls. A callback belongs to the cycle after that of the callback before, however many
//! the server has begun meanwhile: those are missed. So a thread that comes three cycles too late
//! is three periods late, and not in time for the fourth.
//!
//! [`CycleGrid`] says when cycles are due.

use core::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering},
};
use std::sync::Arc;

use crate::{
    clock,
    cycle_grid::{Cycle, CycleGrid},
    ring::{Sample, Writer},
    stages::Records,
    stop::Stop,
    traced::TraceControl,
    trips::{LateLeg, LatePacket, WaySeries},
    wakeup::{Counted, Kept, Series, Sink},
};

/// A callback that comes later than this after the wake-up is not among the earliest, ns.
const AT_ONCE_NS: i64 = 1_000_000;

/// What the callback shares with other threads.
#[derive(Debug)]
pub struct CycleShared {
    /// The kernel's number of the thread, from its first callback on; 0 before.
    pub tid: AtomicI32,
    /// Xruns so far; written by the xrun callback.
    pub xruns: AtomicU32,
    /// How often the grid was laid anew in the measured time.
    pub laid_anew: AtomicU32,
    /// Whether the schedule below is known.
    pub is_scheduled: AtomicBool,
    /// From this due time on the warm-up is counted, ns.
    pub warmup_ns: AtomicI64,
    /// From this one on it is measured, ns.
    pub start_ns: AtomicI64,
    /// No cycle due at or after this is recorded, ns.
    pub end_ns: AtomicI64,
    /// The most samples.
    pub samples: AtomicU64,
    /// The first latency above this ends it, ns.
    pub stop_over_ns: AtomicI64,
    /// Whether nothing more is recorded.
    pub is_done: AtomicBool,
    /// The last clock read that was recorded, ns.
    pub last_ns: AtomicI64,
    /// The last clock read of all, ns.
    pub heard_ns: AtomicI64,
}

impl Default for CycleShared {
    fn default() -> Self {
        Self {
            tid: AtomicI32::new(0),
            xruns: AtomicU32::new(0),
            laid_anew: AtomicU32::new(0),
            is_scheduled: AtomicBool::new(false),
            warmup_ns: AtomicI64::new(i64::MAX),
            start_ns: AtomicI64::new(i64::MAX),
            end_ns: AtomicI64::new(i64::MAX),
            samples: AtomicU64::new(u64::MAX),
            stop_over_ns: AtomicI64::new(i64::MAX),
            is_done: AtomicBool::new(false),
            last_ns: AtomicI64::new(0),
            heard_ns: AtomicI64::new(0),
        }
    }
}

/// Takes the samples of cycles.
pub trait CycleSink: Sink {
    /// When the thread was woken that is in its callback since `now_ns`, where that is known; else
    /// `now_ns`.
    fn woken_ns(&self, now_ns: i64) -> i64 {
        now_ns
    }
}

impl CycleSink for Counted {}
impl CycleSink for Kept {}

/// What a callback works with; it is the only one to do so.
#[derive(Debug)]
pub struct CycleCallback<S> {
    /// When cycles are due.
    pub grid: CycleGrid,
    /// Takes the samples of the warm-up.
    pub warmup: Arc<Series>,
    /// Takes the measured ones.
    pub sink: S,
    /// See there.
    pub shared: Arc<CycleShared>,
    /// Ends it.
    pub stop: Arc<Stop>,
    /// `jack_last_frame_time`.
    pub frame_time: unsafe extern "C" fn(*mut c_void) -> u32,
    /// The client that it wants.
    pub client: *mut c_void,
}

impl<S: CycleSink> CycleCallback<S> {
    /// The process callback of a client: never allocates, locks or waits. Its only system call is
    /// that of its first cycle, which asks for the number of the thread.
    ///
    /// # Safety
    /// `own` points to a `Self` which nothing else uses while the client is active, and whose
    /// client is valid.
    pub unsafe extern "C" fn process(_frames: u32, own: *mut c_void) -> c_int {
        let now_ns = clock::now_ns();
        // SAFETY: as the caller promises.
        let own = unsafe { &mut *own.cast::<Self>() };
        // SAFETY: the client is valid, and this is its process callback.
        let frame_time = unsafe { (own.frame_time)(own.client) };
        own.cycle(now_ns, frame_time);
        0
    }

    /// A callback at `now_ns`.
    #[inline(always)]
    pub fn cycle(&mut self, now_ns: i64, frame_time: u32) {
        let shared = &self.shared;
        shared.heard_ns.store(now_ns, Ordering::Relaxed);
        let xruns = shared.xruns.load(Ordering::Relaxed);
        let woken_ns = self.sink.woken_ns(now_ns);
        let cycle = self.grid.take_woken(now_ns, woken_ns, frame_time, xruns);
        if shared.tid.load(Ordering::Relaxed) == 0 {
            // SAFETY: has no preconditions.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) };
            shared.tid.store(tid as i32, Ordering::Release);
        }
        let Some(Cycle { sample, missed, is_laid_anew }) = cycle else { return };
        if shared.is_scheduled.load(Ordering::Acquire) && !shared.is_done.load(Ordering::Relaxed) {
            self.record(sample, missed);
            let is_measured = sample.t_ns >= self.shared.start_ns.load(Ordering::Relaxed);
            if is_laid_anew && is_measured {
                // One writer: a load and a store suffice.
                let anew = self.shared.laid_anew.load(Ordering::Relaxed);
                self.shared.laid_anew.store(anew.wrapping_add(1), Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn record(&mut self, sample: Sample, missed: u64) {
        let shared = &self.shared;
        let at = |time: &AtomicI64| time.load(Ordering::Relaxed);
        let left = shared.samples.load(Ordering::Relaxed);
        if self.stop.is_set() || left == 0 || sample.t_ns >= at(&shared.end_ns) {
            shared.is_done.store(true, Ordering::Release);
            return;
        }
        if sample.t_ns < at(&shared.start_ns) {
            if sample.t_ns >= at(&shared.warmup_ns) {
                self.warmup.record(sample.latency_ns);
            }
            return;
        }
        self.sink.take(sample);
        self.sink.miss(missed);
        shared.last_ns.store(sample.t_ns + sample.latency_ns, Ordering::Relaxed);
        shared.samples.store(left.saturating_sub(u64::from(left != u64::MAX)), Ordering::Relaxed);
        if sample.latency_ns > at(&shared.stop_over_ns) {
            self.stop.set_over(sample.latency_ns);
        }
    }
}

impl<S: Sink> CycleSink for TracedCycles<S> {
    #[inline(always)]
    fn woken_ns(&self, now_ns: i64) -> i64 {
        let record = self.records.record(0);
        let woken_ns = record.map_or(0, |own| own.waking_ns.load(Ordering::Relaxed) as i64);
        if (0..AT_ONCE_NS).contains(&(now_ns - woken_ns)) { woken_ns } else { now_ns }
    }
}

/// Records the parts of a cycle too, and hands over those that were late.
#[derive(Debug)]
pub struct TracedCycles<S> {
    /// Keeps the whole latency.
    pub inner: S,
    /// What the BPF side writes; the first record is this thread's.
    pub records: Arc<dyn Records>,
    /// From the due time to the wake-up by the server, to the switch, to the callback.
    pub way: WaySeries,
    /// Counts the cycles for which the thread had not gone to sleep, and says which are late.
    pub control: Arc<TraceControl>,
    /// Late ones on their way.
    pub late: Writer<LatePacket>,
}

impl<S: Sink> Sink for TracedCycles<S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let Sample { t_ns, latency_ns } = sample;
        let woken = self.records.record(0).map(LateLeg::read).unwrap_or_default();
        match woken.parts(t_ns, t_ns + latency_ns) {
            Some(parts) => self.way.record(parts),
            None => {
                let unmatched = &self.control.unmatched;
                unmatched.store(unmatched.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
        if latency_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            self.hand_over(sample, woken);
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

impl<S> TracedCycles<S> {
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, Sample { t_ns, latency_ns }: Sample, way: LateLeg) {
        self.late.push(LatePacket { t_ns, latency_ns, sent_ns: t_ns, way, ..Default::default() });
    }
}
