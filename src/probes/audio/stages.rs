//! The parts of a traced cycle, and what records them.

use std::sync::Arc;

use tardy_hot::{
    cycles::{CycleSink, TracedCycles},
    ring::{Writer, ring},
    stages::Records,
    stop::Stop,
    traced::TraceControl,
    trips::{LatePacket, WaySeries},
    wakeup::Series,
};

use super::{Audio, SERIES, client::Opened};
use crate::probes::{ArmError, TracedSamples, TracedThread, Tracing};

/// Late cycles that wait to be blamed.
const LATE_RING: usize = 2048;

/// What is put around a sink.
pub(super) trait Around {
    /// Opens a client whose samples go to `sink`.
    fn open<S: CycleSink + 'static>(
        self,
        sink: S,
        of: (&Audio, &Arc<Series>, &Arc<Stop>),
    ) -> Result<Opened, ArmError>;
}

/// Nothing is put around it.
pub(super) struct Same;

impl Around for Same {
    fn open<S: CycleSink + 'static>(
        self,
        sink: S,
        (audio, warmup, stop): (&Audio, &Arc<Series>, &Arc<Stop>),
    ) -> Result<Opened, ArmError> {
        Opened::new(audio.server.as_deref(), sink, warmup, stop)
    }
}

/// What records the parts.
pub(super) struct Parts {
    records: Arc<dyn Records>,
    way: WaySeries,
    control: Arc<TraceControl>,
    late: Writer<LatePacket>,
}

impl Parts {
    /// Of a thread that measures `total`, and `warmup` before.
    pub(super) fn new(
        tracing: &Tracing,
        total: &Arc<Series>,
        warmup: &Arc<Series>,
    ) -> (Self, ([Arc<Series>; 3], Followed)) {
        let series: [Arc<Series>; 3] = std::array::from_fn(|_| Arc::default());
        let [send, dispatch, receive] = series.clone();
        let control: Arc<TraceControl> = Arc::default();
        let (late, reader) = ring(LATE_RING);
        let own = Self {
            records: Arc::clone(&tracing.records),
            way: WaySeries { send, dispatch, receive },
            control: Arc::clone(&control),
            late,
        };
        let samples = TracedSamples::Packets {
            parts: series.clone(),
            late: reader,
            way: SERIES,
            sender: None,
        };
        let (total, warmup) = (Arc::clone(total), Arc::clone(warmup));
        (own, (series, Followed { warmup, total, control, samples }))
    }
}

impl Around for Parts {
    fn open<S: CycleSink + 'static>(
        self,
        inner: S,
        of: (&Audio, &Arc<Series>, &Arc<Stop>),
    ) -> Result<Opened, ArmError> {
        let Self { records, way, control, late } = self;
        Same.open(TracedCycles { inner, records, way, control, late }, of)
    }
}

/// The traced thread before its number is known.
pub(super) struct Followed {
    warmup: Arc<Series>,
    total: Arc<Series>,
    control: Arc<TraceControl>,
    samples: TracedSamples,
}

impl Followed {
    pub(super) fn following(self, thread: TracedThread) -> TracedThread {
        let Self { warmup, total, control, samples } = self;
        TracedThread { warmup, total, control, samples, ..thread }
    }
}
