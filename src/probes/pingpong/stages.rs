//! The parts of a traced round trip: their series, where the remote endpoint notes when it had a
//! message, and the loop that records them.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tardy_hot::{
    clock,
    exchange::{Port, ping},
    ring::{Reader, Writer, ring},
    stages::Records,
    stop::Stop,
    traced::TraceControl,
    trips::{LateTrip, TracedTrips, WaySeries},
    wakeup::{Ended, Series, Sink, Until},
};

use crate::{
    probes::{Recorded, TracedSamples, TracedThread, Tracing},
    run::{SeriesHead, messages::ROUND_TRIP},
    setup::threads::Found,
    sys::mapped::{MappedArray, sealed_memory},
};

/// The parts by name, in the order of time.
const PARTS: [&str; 6] =
    ["there-send", "there-dispatch", "there-receive", "back-send", "back-dispatch", "back-receive"];

/// Late round trips that wait to be blamed: 5 ms of the most that a threshold lets through.
const LATE_RING: usize = 2048;

/// The threads of both ends among those that the BPF side follows.
const NEAR: usize = 0;
const FAR: usize = 1;

/// Memory that both ends share: when the remote one had a message.
#[derive(Debug)]
pub(super) struct Note(MappedArray<1>);

impl Note {
    /// A new one, and what another process must be given to have it too.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let memory = sealed_memory(c"tardy-note", 8)?;
        Ok((Self::map(&memory)?, memory))
    }

    /// One that was made elsewhere; its memory is touched, and that of the clock.
    pub(super) fn map(memory: &impl AsFd) -> io::Result<Self> {
        let note = Self(MappedArray::new(memory.as_fd())?);
        note.received_ns().store(clock::now_ns() as u64, Ordering::Relaxed);
        Ok(note)
    }

    /// `CLOCK_MONOTONIC`, ns.
    pub(super) fn received_ns(&self) -> &AtomicU64 {
        let [word] = self.0.words();
        word
    }
}

/// The series of the parts of `total`.
pub(super) fn heads(total: &SeriesHead) -> Vec<SeriesHead> {
    PARTS.into_iter().map(|part| total.stage(part)).collect()
}

/// What a traced local endpoint owns beside its sink.
#[derive(Debug)]
pub(super) struct TripStages {
    records: Arc<dyn Records>,
    note: Note,
    series: [Arc<Series>; 6],
    control: Arc<TraceControl>,
    late: Writer<LateTrip>,
}

/// The same, for its readers.
#[derive(Debug)]
pub(super) struct SharedTripStages {
    pub recorded: Vec<Recorded>,
    series: [Arc<Series>; 6],
    control: Arc<TraceControl>,
    late: Reader<LateTrip>,
}

impl SharedTripStages {
    /// Both threads, for the BPF side to follow: the local one first. What the local one
    /// measures is `total`, and what its warm-up does `warmup`; each is on the CPU beside it.
    pub(super) fn threads(
        self,
        near: (&Found, u32),
        far: (&Found, u32),
        total: &Arc<Series>,
        warmup: &Arc<Series>,
    ) -> (Vec<Recorded>, Vec<TracedThread>) {
        let near = TracedThread {
            warmup: Arc::clone(warmup),
            total: Arc::clone(total),
            control: self.control,
            samples: TracedSamples::RoundTrips(self.series, self.late),
            ..TracedThread::far(ROUND_TRIP, near.1, near.0)
        };
        (self.recorded, vec![near, TracedThread::far("far", far.1, far.0)])
    }
}

impl TripStages {
    /// Makes the series of the parts of `total`, all memory touched.
    pub(super) fn new(
        tracing: &Tracing,
        note: Note,
        total: &SeriesHead,
    ) -> (Self, SharedTripStages) {
        let series: [Arc<Series>; 6] = std::array::from_fn(|_| Arc::default());
        let one = |(head, series)| Recorded { head, series, samples: None };
        let recorded = heads(total).into_iter().zip(series.clone()).map(one).collect();
        let control: Arc<TraceControl> = Arc::default();
        let (late, reader) = ring(LATE_RING);
        let others = SharedTripStages {
            recorded,
            series: series.clone(),
            control: Arc::clone(&control),
            late: reader,
        };
        let records = Arc::clone(&tracing.records);
        (Self { records, note, series, control, late }, others)
    }

    /// The measured loop, its parts recorded.
    pub(super) fn measured<P: Port, S: Sink>(
        self,
        port: &mut P,
        mut inner: S,
        until: Until,
        stop: &Stop,
    ) -> Ended {
        let Self { records, note, series, control, late } = self;
        let (Some(near), Some(far)) = (records.record(NEAR), records.record(FAR)) else {
            // The BPF side has fewer records than threads: two do not ask for so many.
            return ping(port, &mut inner, until, stop);
        };
        let [a, b, c, d, e, f] = series;
        let there = WaySeries { send: a, dispatch: b, receive: c };
        let back = WaySeries { send: d, dispatch: e, receive: f };
        let far_received_ns = note.received_ns();
        let mut sink =
            TracedTrips { inner, near, far, far_received_ns, there, back, control, late };
        ping(port, &mut sink, until, stop)
    }
}
