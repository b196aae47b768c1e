//! The client as the session knows it: what JACK says of itself meanwhile, and the server's end.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI64, Ordering},
    mpsc::Sender,
};

use tardy_hot::{clock::now_ns, cycles::CycleShared, stop::Stop, wakeup::Ended};

use super::{SERIES, SILENT_NS, client::Opened};
use crate::{
    probes::{
        FigureValue, MessageEvidence, ProbeSupervisor, Schedule, ServerLoss, SupervisorRecord,
        ThreadReport, armed::SeriesSource,
    },
    run::ServerLossReason,
    sys::{
        faults::ThreadUsage,
        jack::{JackClient, ServerEvent},
    },
};

/// The number of slices of the measured time, each of which has its load.
const SLICES: i64 = 20;

/// The places of the figures that are not loads.
const XRUNS: usize = 3;
const XRUN_DELAY: usize = 4;

/// What JACK said of its load in a slice.
#[derive(Debug, Clone, Copy, Default)]
struct Slice {
    number: i64,
    loads: u32,
    sum: f64,
    least: f64,
    most: f64,
}

impl Slice {
    fn add(&mut self, load: f64) {
        self.least = if self.loads == 0 { load } else { self.least.min(load) };
        self.most = self.most.max(load);
        self.sum += load;
        self.loads += 1;
    }

    /// Its values, where it has some, in the order of the figures.
    fn values(&self) -> Option<[f64; 3]> {
        let mean = self.sum / f64::from(self.loads);
        (self.loads > 0).then_some([mean, self.least, self.most])
    }
}

/// The client, as the session knows it.
#[derive(Debug)]
pub(super) struct AudioSource {
    client: Option<JackClient>,
    shared: Arc<CycleShared>,
    tid: i32,
    before: ThreadUsage,
    schedule: Option<Schedule>,
    slice: Slice,
    /// Xruns before the measured time, once that has begun.
    xruns_before: Option<u32>,
    longest_us: f64,
    loss: Arc<OnceLock<(ServerLossReason, i64)>>,
    figures: Sender<FigureValue>,
    stop: Arc<Stop>,
}

impl SeriesSource for AudioSource {
    fn start(&mut self, schedule: Schedule) {
        let shared = &self.shared;
        let set = |to: &AtomicI64, ns| to.store(ns, Ordering::Relaxed);
        set(&shared.warmup_ns, schedule.warmup_ns);
        set(&shared.start_ns, schedule.start_ns);
        set(&shared.end_ns, schedule.end_ns);
        set(&shared.stop_over_ns, schedule.stop_over_ns);
        set(&shared.last_ns, schedule.warmup_ns);
        shared.samples.store(schedule.samples, Ordering::Relaxed);
        shared.is_scheduled.store(true, Ordering::Release);
        self.schedule = Some(schedule);
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self) {
        let (Some(schedule), Some(client)) = (self.schedule, &self.client) else { return };
        let now = now_ns();
        if let Some((event, at_ns)) = client.event() {
            self.lose(reason(event), at_ns);
        } else if now - self.shared.heard_ns.load(Ordering::Relaxed) > SILENT_NS {
            self.lose(ServerLossReason::Silent, now);
        }
        if now >= schedule.start_ns && !is_set(&self.shared.is_done) {
            self.look(&schedule, now);
        }
    }

    fn is_done(&mut self) -> bool {
        is_set(&self.shared.is_done)
    }

    fn stop(&mut self) {
        self.shared.is_done.store(true, Ordering::Release);
    }

    fn finish(&mut self) -> Vec<ThreadReport> {
        self.shared.is_done.store(true, Ordering::Release);
        let now = now_ns();
        let after = ThreadUsage::of_thread(self.tid);
        self.send(now);
        if let Some(before) = self.xruns_before {
            let xruns = self.shared.xruns.load(Ordering::Relaxed).wrapping_sub(before);
            self.longest();
            self.put(XRUNS, now, f64::from(xruns));
            self.put(XRUN_DELAY, now, self.longest_us);
        }
        // No callback is called after this.
        self.client = None;
        let ended = if self.stop.is_set() { Ended::Stopped } else { Ended::Done };
        let usage = after.map(|after| after.since(self.before)).unwrap_or_default();
        let last_ns = self.shared.last_ns.load(Ordering::Relaxed);
        let ended_ns = if ended == Ended::Done { last_ns } else { now };
        vec![ThreadReport { usage, ended_ns, ..ThreadReport::of(SERIES, ended) }]
    }
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Acquire)
}

const fn reason(event: ServerEvent) -> ServerLossReason {
    match event {
        ServerEvent::Ended => ServerLossReason::Ended,
        ServerEvent::Period => ServerLossReason::PeriodChanged,
        ServerEvent::Rate => ServerLossReason::RateChanged,
        ServerEvent::Freewheel => ServerLossReason::Freewheels,
    }
}

impl AudioSource {
    /// Of a client that is called, and what looks after its server.
    pub(super) fn new(
        opened: Opened,
        figures: Sender<FigureValue>,
        stop: &Arc<Stop>,
    ) -> (Self, ServerWatch) {
        let Opened { client, shared, tid, .. } = opened;
        let watch = ServerWatch { shared: Arc::clone(&shared), loss: Arc::default() };
        let source = Self {
            client: Some(client),
            shared,
            tid,
            before: ThreadUsage::default(),
            schedule: None,
            slice: Slice::default(),
            xruns_before: None,
            longest_us: 0.0,
            loss: Arc::clone(&watch.loss),
            figures,
            stop: Arc::clone(stop),
        };
        (source, watch)
    }

    fn lose(&mut self, reason: ServerLossReason, at_ns: i64) {
        if !is_set(&self.shared.is_done) {
            let _ = self.loss.set((reason, at_ns));
            self.shared.is_done.store(true, Ordering::Release);
            self.stop.set();
        }
    }

    /// What JACK says of itself now.
    fn look(&mut self, schedule: &Schedule, now: i64) {
        if self.xruns_before.is_none() {
            self.xruns_before = Some(self.shared.xruns.load(Ordering::Relaxed));
            self.before = ThreadUsage::of_thread(self.tid).unwrap_or_default();
            self.longest();
            self.longest_us = 0.0;
        }
        self.longest();
        let slice_ns = match schedule.end_ns {
            i64::MAX => i64::MAX,
            end_ns => ((end_ns - schedule.start_ns) / SLICES).max(1),
        };
        let number = (now - schedule.start_ns) / slice_ns;
        if number != self.slice.number {
            self.send(now);
            self.slice = Slice { number, ..Slice::default() };
        }
        if let Some(client) = &self.client {
            self.slice.add(client.load_percent());
        }
    }

    fn longest(&mut self) {
        let us = self.client.as_ref().map_or(0.0, JackClient::take_delay_us);
        self.longest_us = self.longest_us.max(us);
    }

    fn send(&self, end_ns: i64) {
        for (figure, value) in self.slice.values().into_iter().flatten().enumerate() {
            self.put(figure, end_ns, value);
        }
    }

    fn put(&self, figure: usize, end_ns: i64, value: f64) {
        // A receiver that is gone does not need the value.
        let _ = self.figures.send(FigureValue { figure, end_ns, value });
    }
}

/// Knows at the end how the server went away, if it did.
#[derive(Debug)]
pub(super) struct ServerWatch {
    shared: Arc<CycleShared>,
    loss: Arc<OnceLock<(ServerLossReason, i64)>>,
}

impl ProbeSupervisor for ServerWatch {
    fn start(&mut self, _: Schedule) {}

    fn poll(&mut self, _: &Stop) {}

    fn finish(self: Box<Self>, _: &mut Vec<ThreadReport>) -> SupervisorRecord {
        let start_ns = self.shared.start_ns.load(Ordering::Relaxed);
        let loss = self
            .loss
            .get()
            .map(|(reason, at_ns)| ServerLoss { reason: *reason, at_ns: at_ns - start_ns });
        let grids_anew = self.shared.laid_anew.load(Ordering::Relaxed).into();
        let evidence = MessageEvidence { server_loss: loss, grids_anew, ..Default::default() };
        SupervisorRecord { messages: None, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_the_mean_and_the_extremes_of_its_loads_and_without_one_nothing() {
        assert_eq!(Slice::default().values(), None);
        let mut slice = Slice::default();
        [3.0, 1.0, 5.0].into_iter().for_each(|load| slice.add(load));
        assert_eq!(slice.values(), Some([3.0, 1.0, 5.0]));
    }
}
