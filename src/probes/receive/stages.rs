//! The parts of a traced packet: their series, and the sink that records them.

use std::sync::Arc;

use tardy_hot::{
    ring::{Reader, Writer, ring},
    stages::Records,
    traced::TraceControl,
    trips::{LatePacket, TracedPackets, WaySeries},
    wakeup::{Ended, Series, Sink},
};

use crate::{
    probes::{Recorded, TracedSamples, TracedThread, Tracing},
    run::SeriesHead,
    setup::threads::Found,
};

/// The parts by name, in the order of time.
const PARTS: [&str; 3] = ["stack", "dispatch", "read"];

/// Late packets that wait to be blamed.
const LATE_RING: usize = 2048;

/// The reading thread is the only one that the BPF side follows.
const READER: usize = 0;

/// The series of the parts of `total`.
pub(super) fn heads(total: &SeriesHead) -> Vec<SeriesHead> {
    PARTS.into_iter().map(|part| total.stage(part)).collect()
}

/// What a traced reader owns beside its sink.
#[derive(Debug)]
pub(super) struct PacketStages {
    records: Arc<dyn Records>,
    series: [Arc<Series>; 3],
    control: Arc<TraceControl>,
    late: Writer<LatePacket>,
}

/// The same, for its readers.
#[derive(Debug)]
pub(super) struct SharedPacketStages {
    recorded: Vec<Recorded>,
    series: [Arc<Series>; 3],
    control: Arc<TraceControl>,
    late: Reader<LatePacket>,
}

/// A loop that records into whatever sink it is given.
pub(super) trait Receiving {
    /// Measures.
    fn into<S: Sink>(self, sink: &mut S) -> Ended;
}

impl PacketStages {
    /// Makes the series of the parts of `total`, all memory touched.
    pub(super) fn new(tracing: &Tracing, total: &SeriesHead) -> (Self, SharedPacketStages) {
        let series: [Arc<Series>; 3] = std::array::from_fn(|_| Arc::default());
        let one = |(head, series)| Recorded { head, series, samples: None };
        let recorded = heads(total).into_iter().zip(series.clone()).map(one).collect();
        let control: Arc<TraceControl> = Arc::default();
        let (late, reader) = ring(LATE_RING);
        let others = SharedPacketStages {
            recorded,
            series: series.clone(),
            control: Arc::clone(&control),
            late: reader,
        };
        (Self { records: Arc::clone(&tracing.records), series, control, late }, others)
    }

    /// The measured loop, its parts recorded.
    pub(super) fn measured<S: Sink>(self, mut inner: S, receiving: impl Receiving) -> Ended {
        let Self { records, series: [send, dispatch, receive], control, late } = self;
        let Some(record) = records.record(READER) else {
            // The BPF side has fewer records than threads: one does not ask for so many.
            return receiving.into(&mut inner);
        };
        let way = WaySeries { send, dispatch, receive };
        receiving.into(&mut TracedPackets { inner, record, way, control, late })
    }
}

impl SharedPacketStages {
    /// The thread, for the BPF side to follow. What it measures is `total`, and what its warm-up
    /// does `warmup`.
    pub(super) fn thread(
        self,
        found: &Found,
        head: &SeriesHead,
        total: &Arc<Series>,
        warmup: &Arc<Series>,
    ) -> (Vec<Recorded>, TracedThread) {
        let traced = TracedThread {
            warmup: Arc::clone(warmup),
            total: Arc::clone(total),
            control: self.control,
            samples: TracedSamples::Packets {
                parts: self.series,
                late: self.late,
                way: "packet",
                sender: None,
            },
            ..TracedThread::far(&head.name, head.cpu.unwrap_or_default(), found)
        };
        (self.recorded, traced)
    }
}
