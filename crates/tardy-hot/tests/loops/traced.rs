//! The sink that records stages, fed by hand: what the BPF programs would have written, and what
//! comes of it.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use tardy_hot::{
    ring::{Reader, Sample, ring},
    stages::{Late, Stages, ThreadRecord},
    tally::Totals,
    traced::{Softirq, StageSeries, TraceControl, Traced},
    wakeup::{Counted, Series, Sink},
};

/// Expiry, entry, callback, wake-up, switch.
fn record(times: [u64; 5]) -> ThreadRecord {
    let record = ThreadRecord::default();
    write(&record, times);
    record
}

fn write(record: &ThreadRecord, [expires, entry, callback, waking, switch]: [u64; 5]) {
    record.expires_ns.store(expires, Relaxed);
    record.entry_ns.store(entry, Relaxed);
    record.callback_ns.store(callback, Relaxed);
    record.waking_ns.store(waking, Relaxed);
    record.switch_ns.store(switch, Relaxed);
}

fn sum(stages: Stages) -> i64 {
    let Stages { irq_ns, softirq_ns, handler_ns, dispatch_ns, user_ns } = stages;
    irq_ns + softirq_ns + handler_ns + dispatch_ns + user_ns
}

#[test]
fn stages_sum_to_the_latency() {
    let stages = record([1_000, 1_700, 1_900, 2_100, 6_100]).stages(1_000, 7_000, 0).unwrap();
    let want =
        Stages { irq_ns: 700, softirq_ns: 0, handler_ns: 400, dispatch_ns: 4_000, user_ns: 1_900 };
    assert_eq!((stages, sum(stages)), (want, 7_000));
}

#[test]
fn an_interrupt_that_began_before_the_expiry_counts_from_the_expiry() {
    let stages = record([1_000, 600, 1_100, 1_300, 1_500]).stages(1_000, 2_000, 0).unwrap();
    assert_eq!((stages.irq_ns, stages.handler_ns, sum(stages)), (0, 300, 2_000));
}

#[test]
fn a_callback_in_a_softirq_is_a_stage_of_its_own() {
    let record = record([1_000, 1_500, 4_500, 4_700, 5_000]);
    record.in_softirq.store(1, Relaxed);
    let stages = record.stages(1_000, 5_000, 0).unwrap();
    assert_eq!((stages.irq_ns, stages.softirq_ns, stages.handler_ns), (500, 3_000, 200));
    assert_eq!(sum(stages), 5_000);
}

#[test]
fn a_thread_woken_before_it_slept_was_not_dispatched() {
    let record = record([1_000, 1_100, 1_150, 1_200, 300]);
    record.pending.store(1, Relaxed);
    let stages = record.stages(1_000, 1_500, 0).unwrap();
    assert_eq!((stages.dispatch_ns, stages.user_ns, sum(stages)), (0, 1_300, 1_500));
}

#[test]
fn an_early_wakeup_has_stages_that_sum_to_less_than_nothing() {
    let stages = record([1_000, 700, 750, 800, 900]).stages(1_000, -50, 0).unwrap();
    assert_eq!((stages.irq_ns, sum(stages)), (0, -50));
    assert!(stages.handler_ns < 0, "it was woken before the expiry: {stages:?}");
}

#[test]
fn a_record_of_another_expiry_does_not_match_and_one_within_the_window_does() {
    let record = record([1_400, 1_500, 1_600, 1_700, 1_800]);
    for (t_ns, within_ns, matches) in
        [(1_400, 0, true), (1_000, 0, false), (1_000, 400, true), (1_000, 399, false)]
    {
        let stages = record.stages(t_ns, 1_000, within_ns);
        assert_eq!(stages.is_some(), matches, "{t_ns} within {within_ns}");
        assert!(stages.is_none_or(|stages| sum(stages) == 1_000));
    }
    assert_eq!(record.stages(1_500, 1_000, 400), None, "an expiry before the programmed one");
}

/// A sink around counts, with what others see of it.
struct TracedThread {
    record: ThreadRecord,
    control: Arc<TraceControl>,
    total: Arc<Series>,
    stages: [Arc<Series>; 4],
}

impl TracedThread {
    fn new() -> Self {
        let stages = [(); 4].map(|()| Arc::default());
        let record = record([1_000, 1_500, 2_500, 2_600, 5_000]);
        Self { record, control: Arc::default(), total: Arc::default(), stages }
    }

    fn sink<Q: Softirq>(&self, softirq: Q) -> (Traced<'_, Counted, Q>, Reader<Late>) {
        let [irq, handler, dispatch, user] = self.stages.clone();
        let (late, reader) = ring(4);
        let sink = Traced {
            inner: Counted(Arc::clone(&self.total)),
            record: &self.record,
            within_ns: 0,
            stages: StageSeries { irq, handler, dispatch, user },
            softirq,
            control: Arc::clone(&self.control),
            late,
        };
        (sink, reader)
    }

    fn totals(&self) -> [Totals; 4] {
        self.stages.each_ref().map(|series| series.tally.totals())
    }
}

const SAMPLE: Sample = Sample { t_ns: 1_000, latency_ns: 6_000 };

#[test]
fn each_stage_is_recorded_once_and_an_unmatched_wakeup_only_whole() {
    let thread = TracedThread::new();
    let (mut sink, _late) = thread.sink(());
    sink.take(SAMPLE);
    sink.take(Sample { t_ns: 2_000, ..SAMPLE });
    sink.miss(3);
    let total = thread.total.tally.totals();
    assert_eq!((total.count, total.missed, thread.control.unmatched.load(Relaxed)), (2, 3, 1));
    assert!(thread.totals().iter().all(|stage| (stage.count, stage.missed) == (1, 0)));
    assert_eq!(thread.totals().map(|stage| stage.sum_ns), [500, 1_100, 2_400, 2_000]);
}

#[test]
fn time_in_a_softirq_without_a_series_belongs_to_the_handler() {
    let thread = TracedThread::new();
    thread.record.in_softirq.store(1, Relaxed);
    thread.sink(()).0.take(SAMPLE);
    let own: Arc<Series> = Arc::default();
    thread.sink(Arc::clone(&own)).0.take(SAMPLE);
    assert_eq!(own.tally.totals().sum_ns, 1_000);
    assert_eq!(thread.totals()[1].sum_ns, 1_100 + 100);
}

#[test]
fn what_is_over_the_threshold_is_handed_over_whole() {
    let thread = TracedThread::new();
    let (mut sink, mut reader) = thread.sink(());
    thread.record.cpu.store(1, Relaxed);
    thread.record.switch_cpu.store(2, Relaxed);
    thread.record.stopped_from_ns.store(7, Relaxed);
    sink.take(SAMPLE);
    assert_eq!(reader.drain(|_| {}), 0, "nobody has said what is late");
    thread.control.late_over_ns.store(5_999, Relaxed);
    sink.take(SAMPLE);
    sink.take(Sample { latency_ns: 5_999, ..SAMPLE });
    sink.take(Sample { t_ns: 9_000, ..SAMPLE });
    let mut late = Vec::new();
    reader.drain(|one| late.push(one));
    let [first, second] = late[..] else { panic!("{late:?}") };
    assert_eq!((first.matched, first.cpus, first.stopped_ns), (true, (1, 2), (7, 0)));
    assert_eq!(sum(first.stages), first.latency_ns);
    let unknown = Stages::default();
    assert_eq!((second.matched, second.stages, second.t_ns), (false, unknown, 9_000));
}
