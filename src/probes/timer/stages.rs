//! The stages of a traced timer thread: their series, and the loop that records them.

use std::sync::Arc;

use tardy_hot::{
    late_work::LateWork,
    ring::{Reader, Writer, ring},
    stages::{Late, Records},
    stop::Stop,
    traced::{HandedOver, StageSeries, TraceControl, Traced},
    wakeup::{self, Ended, Series, Sink, Until, Wake},
};

use crate::{
    probes::{Recorded, TracedSamples, TracedThread, Tracing},
    run::SeriesHead,
    setup::threads::Found,
};

/// Late wake-ups that wait to be blamed: half a second of the worst rate that a
/// threshold lets through, 4 times over.
const LATE_RING: usize = 2048;

/// Samples that wait for their stages where those are found later: all of them, for 80 ms at an
/// interval of 10 us.
const SAMPLE_RING: usize = 8192;

/// The stages by name, in the order of time.
const STAGES: [&str; 5] = ["irq", SOFTIRQ, "handler", "dispatch", "user"];
const SOFTIRQ: &str = "softirq";

/// The series of the stages of `total`.
pub(in crate::probes) fn heads(total: &SeriesHead, has_softirq: bool) -> Vec<SeriesHead> {
    let names = STAGES.into_iter().filter(|stage| has_softirq || *stage != SOFTIRQ);
    names.map(|stage| total.stage(stage)).collect()
}

/// What a traced thread owns beside its sink.
#[derive(Debug)]
pub(in crate::probes) struct ThreadTrace {
    records: Arc<dyn Records>,
    number: usize,
    within_ns: u64,
    series: StageSeries,
    softirq: Option<Arc<Series>>,
    control: Arc<TraceControl>,
    late: Writer<Late>,
}

/// What a traced thread that works owns beside its sinks.
#[derive(Debug)]
pub(super) struct WorkTrace {
    records: Arc<dyn Records>,
    number: usize,
    within_ns: u64,
    control: Arc<TraceControl>,
    late: Writer<Late>,
}

/// The same, for its readers.
#[derive(Debug)]
pub(super) struct SharedWork {
    control: Arc<TraceControl>,
    stages: StageSeries,
    deadline_ns: Option<i64>,
    late: Reader<Late>,
}

/// What [`ThreadTrace`] has, for its readers.
#[derive(Debug)]
pub(in crate::probes) struct SharedStages {
    recorded: Vec<Recorded>,
    series: StageSeries,
    control: Arc<TraceControl>,
    late: Reader<Late>,
    /// What finds the stages must know, where somebody else does later.
    later: Option<FoundLater>,
}

#[derive(Debug)]
struct FoundLater {
    softirq: Option<Arc<Series>>,
    within_ns: u64,
}

impl ThreadTrace {
    /// Makes the series of thread `number`, all memory touched.
    pub(in crate::probes) fn new(
        head: &SeriesHead,
        tracing: &Tracing,
        number: usize,
        has_softirq: bool,
        within_ns: u64,
    ) -> (Self, SharedStages) {
        let recorded: Vec<Recorded> = heads(head, has_softirq)
            .into_iter()
            .map(|head| Recorded { head, series: Arc::default(), samples: None })
            .collect();
        let of = |stage: &str| {
            let own = |one: &&Recorded| one.head.name.rsplit('/').next() == Some(stage);
            recorded.iter().find(own).map(|one| Arc::clone(&one.series))
        };
        let always = |stage| of(stage).unwrap_or_default();
        let series = StageSeries {
            irq: always("irq"),
            handler: always("handler"),
            dispatch: always("dispatch"),
            user: always("user"),
        };
        let control: Arc<TraceControl> = Arc::default();
        let is_later = tracing.records.are_found_later();
        let (writer, reader) = ring(if is_later { SAMPLE_RING } else { LATE_RING });
        let later = is_later.then(|| FoundLater { softirq: of(SOFTIRQ), within_ns });
        let own = Self {
            records: Arc::clone(&tracing.records),
            number,
            within_ns,
            series: series.clone(),
            softirq: of(SOFTIRQ),
            control: Arc::clone(&control),
            late: writer,
        };
        (own, SharedStages { recorded, series, control, late: reader, later })
    }

    /// The measured loop, its stages recorded; what samples are worth beside them goes to `inner`.
    pub(in crate::probes) fn measured<S: Sink>(
        self,
        mut inner: S,
        run: impl MeasuredLoop,
    ) -> Ended {
        let Self { records, number, within_ns, series: stages, softirq, control, late } = self;
        if records.are_found_later() {
            return run.record_into(&mut HandedOver { inner, samples: late });
        }
        let Some(record) = records.record(number) else {
            // The BPF side has fewer records than threads: they do not ask for so many.
            return run.record_into(&mut inner);
        };
        match softirq {
            Some(softirq) => {
                let mut sink = Traced { inner, record, within_ns, stages, softirq, control, late };
                run.record_into(&mut sink)
            }
            None => {
                let softirq = ();
                let mut sink = Traced { inner, record, within_ns, stages, softirq, control, late };
                run.record_into(&mut sink)
            }
        }
    }
}

impl WorkTrace {
    /// That of the thread whose stages `of` has; `None` if those are found later.
    pub(super) fn new(of: &ThreadTrace, deadline_ns: Option<i64>) -> Option<(Self, SharedWork)> {
        if of.records.are_found_later() {
            return None;
        }
        let control: Arc<TraceControl> = Arc::default();
        let (writer, late) = ring(LATE_RING);
        let shared = SharedWork {
            control: Arc::clone(&control),
            stages: of.series.clone(),
            deadline_ns,
            late,
        };
        let (records, number, within_ns) = (Arc::clone(&of.records), of.number, of.within_ns);
        Some((Self { records, number, within_ns, control, late: writer }, shared))
    }
}

impl SharedWork {
    /// Now that the thread is there, as `wake_ups`; its responses go to `response`, those of the
    /// warm-up to `warmup`.
    pub(super) fn known(
        self,
        wake_ups: &TracedThread,
        response: &Recorded,
        warmup: Arc<Series>,
    ) -> TracedThread {
        let Self { control, stages, deadline_ns, late } = self;
        TracedThread {
            name: response.head.name.clone(),
            cpu: wake_ups.cpu,
            tid: wake_ups.tid,
            priority: wake_ups.priority,
            warmup,
            total: Arc::clone(&response.series),
            control,
            samples: TracedSamples::Work { stages, deadline_ns, late },
        }
    }
}

/// A loop of turns with work, of which late ones are handed on.
pub(super) struct WorkLoop<R> {
    pub(super) run: R,
    pub(super) trace: WorkTrace,
}

impl<R: MeasuredLoop> MeasuredLoop for WorkLoop<R> {
    fn record_into<S: Sink>(self, inner: &mut S) -> Ended {
        let WorkTrace { records, number, within_ns, control, late } = self.trace;
        let Some(record) = records.record(number) else { return self.run.record_into(inner) };
        let began = Late::default();
        self.run.record_into(&mut LateWork { inner, record, within_ns, control, late, began })
    }
}

/// A loop of wake-ups, whatever takes their samples.
pub(in crate::probes) trait MeasuredLoop {
    /// Runs it.
    fn record_into<S: Sink>(self, sink: &mut S) -> Ended;
}

/// That of the timer probe.
pub(in crate::probes) struct TimerLoop<'a, W> {
    pub(in crate::probes) wake: &'a mut W,
    pub(in crate::probes) until: Until,
    pub(in crate::probes) stop: &'a Stop,
}

impl<W: Wake> MeasuredLoop for TimerLoop<'_, W> {
    fn record_into<S: Sink>(self, sink: &mut S) -> Ended {
        wakeup::run(self.wake, sink, self.until, self.stop)
    }
}

impl SharedStages {
    /// Now that the thread is there and known.
    pub(in crate::probes) fn known(
        self,
        name: String,
        cpu: u32,
        found: &Found,
        warmup: Arc<Series>,
        total: Arc<Series>,
    ) -> (Vec<Recorded>, TracedThread) {
        let kernel = found.scheduling.kernel_priority();
        let samples = match self.later {
            None => TracedSamples::WakeUps(self.series, self.late),
            Some(FoundLater { softirq, within_ns }) => {
                TracedSamples::ToMatch { stages: self.series, softirq, within_ns, all: self.late }
            }
        };
        let traced = TracedThread {
            name,
            cpu,
            tid: found.tid,
            priority: (kernel, kernel < 100),
            warmup,
            total,
            control: self.control,
            samples,
        };
        (self.recorded, traced)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tardy_hot::{clock::now_ns, stages::ThreadRecord};

    use super::*;
    use crate::{
        probes::{ArmOptions, Probe, Schedule, timer},
        sys::{cpus::Cpus, sched::Policy},
    };

    /// Records that match no expiry of ours.
    #[derive(Debug, Default)]
    struct NoRecords([ThreadRecord; 2]);

    impl Records for NoRecords {
        fn record(&self, n: usize) -> Option<&ThreadRecord> {
            self.0.get(n)
        }
    }

    fn probe(wake: timer::WakeKind) -> timer::Timer {
        timer::Timer {
            cpus: Cpus::allowed().unwrap().iter().take(1).collect(),
            threads: timer::ThreadCount::OnEach(2),
            interval_ns: 1_000_000,
            interval_step_ns: 0,
            distance_ns: 0,
            wake,
            policy: Policy::Other,
            priority: 0,
            priority_step: 0,
            slack_ns: 1,
            work: None,
        }
    }

    #[test]
    fn series_are_armed_in_the_order_in_which_they_were_planned() {
        let probe = probe(timer::WakeKind::Nanosleep);
        for is_rt in [false, true] {
            let tracing = Tracing { records: Arc::new(NoRecords::default()), is_rt };
            let heads = probe.heads(Some(&tracing));
            assert_eq!(heads.len(), if is_rt { 12 } else { 10 });
            assert!(heads.iter().all(|head| head.name.contains('/') == head.period_ns.is_none()));
            let stop = Arc::new(Stop::new());
            let wants = ArmOptions { ring_samples: None, tracing: Some(tracing) };
            let armed = probe.arm(&wants, &stop).unwrap();
            let recorded: Vec<_> = armed.recorded.iter().map(|one| one.head.clone()).collect();
            assert_eq!(recorded, heads);
            assert_eq!(armed.traced.iter().map(|one| one.tid).collect::<Vec<_>>(), armed.tids());
            assert_eq!(armed.finish().reports.len(), 2);
        }
        assert_eq!(probe.heads(None).len(), 2);
    }

    #[test]
    fn wakeups_that_match_no_record_are_counted_and_have_no_stages() {
        let tracing = Tracing { records: Arc::new(NoRecords::default()), is_rt: false };
        let stop = Arc::new(Stop::new());
        let wants = ArmOptions { ring_samples: None, tracing: Some(tracing) };
        let mut armed = probe(timer::WakeKind::Timerfd).arm(&wants, &stop).unwrap();
        let start_ns = now_ns() + 5_000_000;
        let (end_ns, samples, stop_over_ns) = (i64::MAX, 20, i64::MAX);
        let warmup_ns = start_ns;
        armed.start(Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns });
        while !armed.is_done() {
            std::thread::yield_now();
        }
        for one in &armed.traced {
            assert_eq!(one.total.tally.totals().count, 20);
            assert_eq!(one.control.unmatched.load(Ordering::Relaxed), 20);
        }
        let stages = armed.recorded.iter().filter(|one| one.head.period_ns.is_none());
        assert_eq!(stages.map(|one| one.series.tally.totals().count).sum::<u64>(), 0);
    }
}
