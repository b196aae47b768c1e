//! Sink that passes on turns with a late response. It wraps a sink that records stages.
//!
//! Per turn it reads one [`ThreadRecord`] once more, before the work, and compares once with a
//! threshold after it. The record must be read then: a thread that was preempted within its work
//! is switched in anew.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use crate::{
    ring::{Sample, Writer},
    stages::{Late, Stages, ThreadRecord},
    traced::TraceControl,
    wakeup::Sink,
};

/// Hands late responses on, and every sample to `inner`, which does the work.
#[derive(Debug)]
pub struct LateWork<'a, S> {
    /// Does the work.
    pub inner: &'a mut S,
    /// The thread's own record.
    pub record: &'a ThreadRecord,
    /// How long after the programmed expiry that of the record may lie, ns.
    pub within_ns: u64,
    /// Its threshold, of responses.
    pub control: Arc<TraceControl>,
    /// Late responses on their way.
    pub late: Writer<Late>,
    /// The wake-up of this turn.
    pub began: Late,
}

impl<S> LateWork<'_, S> {
    /// Not inlined: one turn in a hundred comes here.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, response_ns: i64) {
        let began = self.began;
        let worked_ns = if began.matched { response_ns - began.latency_ns } else { 0 };
        self.late.push(Late {
            latency_ns: response_ns,
            stages: Stages { user_ns: began.stages.user_ns + worked_ns, ..began.stages },
            // It may have been stopped within its work.
            stopped_ns: self.record.stopped_ns(),
            ..began
        });
    }
}

impl<S: Sink> Sink for LateWork<'_, S> {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        let stages = self.record.stages(sample.t_ns, sample.latency_ns, self.within_ns);
        self.began = self.record.late(sample, stages);
        self.inner.take(sample);
    }

    #[inline(always)]
    fn end_turn(&mut self, sample: Sample) -> i64 {
        let response_ns = self.inner.end_turn(sample);
        if response_ns > self.control.late_over_ns.load(Ordering::Relaxed) {
            self.hand_over(response_ns);
        }
        response_ns
    }

    #[inline(always)]
    fn miss(&mut self, periods: u64) {
        self.inner.miss(periods);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::ring;

    /// Work that takes what it was told to.
    #[derive(Default)]
    struct Takes(i64, u64);

    impl Sink for Takes {
        fn take(&mut self, _: Sample) {
            self.1 += 1;
        }

        fn end_turn(&mut self, sample: Sample) -> i64 {
            sample.latency_ns + self.0
        }

        fn miss(&mut self, periods: u64) {
            self.1 += periods;
        }
    }

    fn turn(sink: &mut LateWork<'_, Takes>, sample: Sample) {
        sink.take(sample);
        // As if it were switched out and in within its work.
        sink.record.switch_ns.store(9_999, Ordering::Relaxed);
        sink.record.stopped_from_ns.store(7, Ordering::Relaxed);
        sink.end_turn(sample);
    }

    #[test]
    fn a_late_response_has_the_stages_of_its_wake_up_and_what_came_later() {
        let record = ThreadRecord::default();
        let fields = [
            (&record.expires_ns, 1_000),
            (&record.entry_ns, 1_010),
            (&record.waking_ns, 1_030),
            (&record.switch_ns, 1_060),
        ];
        for (field, value) in fields {
            field.store(value, Ordering::Relaxed);
        }
        let (late, mut reader) = ring(8);
        let control: Arc<TraceControl> = Arc::default();
        let mut inner = Takes(500, 0);
        let mut sink = LateWork {
            inner: &mut inner,
            record: &record,
            within_ns: 0,
            control: Arc::clone(&control),
            late,
            began: Late::default(),
        };
        let sample = Sample { t_ns: 1_000, latency_ns: 100 };
        turn(&mut sink, sample);
        control.late_over_ns.store(599, Ordering::Relaxed);
        record.switch_ns.store(1_060, Ordering::Relaxed);
        turn(&mut sink, sample);
        // Of another expiry: nothing is known of it.
        turn(&mut sink, Sample { t_ns: 2_000, ..sample });
        sink.miss(3);
        assert_eq!(inner.1, 6, "all continues");
        let mut found = Vec::new();
        reader.drain(|late| found.push(late));
        let [known, unknown] = found[..] else { panic!("{found:?}") };
        assert_eq!((known.t_ns, known.latency_ns, known.stopped_ns), (1_000, 600, (7, 0)));
        let Stages { irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns } = known.stages;
        assert_eq!((irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns), (10, 0, 20, 30, 540));
        assert_eq!((unknown.matched, unknown.latency_ns), (false, 600));
        assert_eq!(unknown.stages, Stages::default());
    }
}
