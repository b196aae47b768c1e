//! The local endpoint of a ping-pong: it measures.

use std::{sync::Arc, time::Duration};

use tardy_hot::{
    clock::now_ns,
    exchange::{Port, ping},
    ring::{Sample, Writer},
    stop::Stop,
    wakeup::{Counted, Ended, Kept, Series, Until},
};

use super::stages::TripStages;
use crate::{
    probes::{Schedule, measured_thread::LoopEnd},
    transports::port::{OpenPort, PortUser},
};

/// Bytes held unread and unsent, where the kernel reports them.
pub(super) type Buffers = (Option<u64>, Option<u64>);

/// What the measuring thread owns, beside its port.
pub(super) struct PingpongThread {
    pub series: Arc<Series>,
    /// Takes the samples of the warm-up.
    pub scratch: Arc<Series>,
    pub writer: Option<Writer<Sample>>,
    pub stop: Arc<Stop>,
    /// The remote endpoint wants exactly as many messages as samples are asked for.
    pub counted: bool,
    /// Where its parts go, if they are recorded.
    pub stages: Option<TripStages>,
}

impl PingpongThread {
    /// The warm-up, then the measured loop.
    pub(super) fn both_loops(mut self, schedule: Schedule, port: &mut OpenPort) -> LoopEnd {
        // Also a warm-up of no length has no messages.
        let early_ns = u64::try_from(schedule.warmup_ns - now_ns()).unwrap_or(0);
        std::thread::sleep(Duration::from_nanos(early_ns));
        let Schedule { start_ns, samples, .. } = schedule;
        let most = if self.counted { warm_up_share(samples) } else { u64::MAX };
        let warm = Until { end_ns: start_ns, samples: most, stop_over_ns: i64::MAX };
        let scratch = Arc::clone(&self.scratch);
        let warmed = port.with(Ping::new(Sink::Counted(scratch), warm, &self.stop));
        LoopEnd::after_warm_up(warmed, || self.measured(schedule, port))
    }

    fn measured(&mut self, schedule: Schedule, port: &mut OpenPort) -> Ended {
        let Schedule { end_ns, samples, stop_over_ns, .. } = schedule;
        let samples = if self.counted { samples - sent(&self.scratch) } else { samples };
        let until = Until { end_ns, samples, stop_over_ns };
        let series = Arc::clone(&self.series);
        let sink = match self.writer.take() {
            Some(writer) => Sink::Kept(series, writer),
            None => Sink::Counted(series),
        };
        let stages = self.stages.take();
        port.with(Ping { stages, ..Ping::new(sink, until, &self.stop) })
    }
}

/// Upper limit of the messages that go into the warm-up, where each counts.
const fn warm_up_share(samples: u64) -> u64 {
    if samples == u64::MAX { samples } else { samples / 10 }
}

/// Messages that were answered or given up.
pub(super) fn sent(series: &Series) -> u64 {
    let totals = series.tally.totals();
    totals.count + totals.missed
}

enum Sink {
    Counted(Arc<Series>),
    Kept(Arc<Series>, Writer<Sample>),
}

struct Ping<'a> {
    sink: Sink,
    until: Until,
    stop: &'a Stop,
    stages: Option<TripStages>,
}

impl<'a> Ping<'a> {
    const fn new(sink: Sink, until: Until, stop: &'a Stop) -> Self {
        Self { sink, until, stop, stages: None }
    }

    fn into<P: Port, S: tardy_hot::wakeup::Sink>(
        port: &mut P,
        mut sink: S,
        (until, stop): (Until, &Stop),
        stages: Option<TripStages>,
    ) -> Ended {
        match stages {
            Some(stages) => stages.measured(port, sink, until, stop),
            None => ping(port, &mut sink, until, stop),
        }
    }
}

impl PortUser for Ping<'_> {
    type Out = Ended;

    fn with<P: Port>(self, port: &mut P) -> Ended {
        let when = (self.until, self.stop);
        match self.sink {
            Sink::Counted(series) => Self::into(port, Counted(series), when, self.stages),
            Sink::Kept(series, writer) => Self::into(port, Kept(series, writer), when, self.stages),
        }
    }
}
