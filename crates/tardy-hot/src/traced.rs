//! Where samples go when their stages are recorded too: a sink around another.
//!
//! Per turn it reads one [`ThreadRecord`], which the BPF side wrote on this CPU before the
//! thread ran, records four or five more latencies, and compares once with a threshold. All of that
//! lies after the clock read of the turn.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;

use crate::{
    ring::{Sample, Writer},
    stages::{Late, Stages, ThreadRecord},
    wakeup::{Series, Sink},
};

/// The series of the stages that every wake-up has.
#[derive(Debug, Default, Clone)]
pub struct StageSeries {
    /// Programmed expiry to the entry of the timer interrupt.
    pub irq: Arc<Series>,
    /// To the moment the thread was made runnable.
    pub handler: Arc<Series>,
    /// Runnable to switched in.
    pub dispatch: Arc<Series>,
    /// Switched in to the clock read in user space.
    pub user: Arc<Series>,
}

/// What a traced thread shares with its readers.
#[derive(Debug)]
pub struct TraceControl {
    /// Latencies above this are handed over as late; ns. Set by others, at any time.
    pub late_over_ns: AtomicI64,
    /// Wake-ups that matched no record of the BPF side. Written by the thread.
    pub unmatched: AtomicU64,
}

impl Default for TraceControl {
    /// Nothing is late until a threshold is set.
    fn default() -> Self {
        Self { late_over_ns: AtomicI64::new(i64::MAX), unmatched: AtomicU64::new(0) }
    }
}

/// Whether the time in a softirq has its own series.
pub trait Softirq {
    /// Records the stage, and returns what of it belongs to the handler's.
    fn record(&self, softirq_ns: i64) -> i64;
}

/// It has.
impl Softirq for Arc<Series> {
    #[inline(always)]
    fn record(&self, softirq_ns: i64) -> i64 {
        Series::record(self, softirq_ns);
        0
    }
}

/// It has not: there, timers expire in the interrupt, and if one does not, the handler's stage has
/// that time.
impl Softirq for () {
    #[inline(always)]
    fn record(&self, softirq_ns: i64) -> i64 {
        softirq_ns
    }
}

/// Records stages, hands late wake-ups on, and every sample to `inner`.
#[derive(Debug)]
pub struct Traced<'a, S, Q> {
    /// Keeps the whole latency.
    pub inner: S,
    /// The thread's own record.
    pub record: &'a ThreadRecord,
    /// How long after the programmed expiry that of the record may lie, ns: 0 where both are the
    /// same number.
    pub within_ns: u64,
    /// Where stages go.
    pub stages: StageSeries,
    /// Where that of the softirq goes.
    pub softirq: Q,
    /// What others read.
    pub control: Arc<TraceControl>,
    /// Late wake-ups on their way.
    pub late: Writer<Late>,
}

impl<S, Q: Softirq> Traced<'_, S, Q> {
    #[inline(always)]
    fn record(&self, stages: Stages) {
        self.stages.irq.record(stages.irq_ns);
        let rest_ns = self.softirq.record(stages.softirq_ns);
        self.stages.handler.record(stages.handler_ns + rest_ns);
        self.stages.dispatch.record(stages.dispatch_ns);
        self.stages.user.record(stages.user_ns);
    }

    /// Not inlined: one wake-up in a hundred comes here.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, sample: Sample, stages: Option<Stages>) {
        self.late.push(self.record.late(sample, stages));
    }
}

impl<S: Sink, Q: Softirq> Sink for Traced<'_, S, Q> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let stages = self.record.stages(sample.t_ns, sample.latency_ns, self.within_ns);
        match stages {
            Some(stages) => self.record(stages),
            None => {
                let unmatched = &self.control.unmatched;
                // One writer: a load and a store suffice.
                unmatched.store(unmatched.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
        if sample.latency_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            self.hand_over(sample, stages);
        }
        self.inner.take(sample);
    }

    #[inline(always)]
    fn end_turn(&mut self, sample: Sample) -> i64 {
        self.inner.end_turn(sample)
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

/// Hands every sample to who finds its stages later, by the time of it, and to `inner`.
#[derive(Debug)]
pub struct HandedOver<S> {
    /// Keeps the whole latency.
    pub inner: S,
    /// Samples on their way; if the ring is full, a sample is counted as dropped.
    pub samples: Writer<Late>,
}

impl<S: Sink> Sink for HandedOver<S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let Sample { t_ns, latency_ns, .. } = sample;
        self.samples.push(Late { t_ns, latency_ns, ..Late::default() });
        self.inner.take(sample);
    }

    #[inline(always)]
    fn end_turn(&mut self, sample: Sample) -> i64 {
        self.inner.end_turn(sample)
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}
