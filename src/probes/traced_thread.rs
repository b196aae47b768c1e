//! Threads whose late samples are explained, as those see them who explain them.

use std::sync::{Arc, atomic::AtomicI64};

use tardy_hot::{
    ring::Reader,
    stages::Late,
    traced::{StageSeries, TraceControl},
    trips::{LatePacket, LateTrip},
    wakeup::Series,
};

use crate::setup::threads::Found;

/// A measuring thread whose stages are recorded, as others see it.
#[derive(Debug)]
pub struct TracedThread {
    /// Its series of whole latencies.
    pub name: String,
    /// The CPU it is measured on.
    pub cpu: u32,
    /// The kernel's number of it.
    pub tid: i32,
    /// Its priority as the kernel counts, and whether that is a real-time one.
    pub priority: (i16, bool),
    /// What the warm-up measures.
    pub warmup: Arc<Series>,
    /// What it measures.
    pub total: Arc<Series>,
    /// Its threshold, and its unmatched samples.
    pub control: Arc<TraceControl>,
    /// Its samples.
    pub samples: TracedSamples,
}

impl TracedThread {
    /// A thread without samples: it is the remote endpoint of another one.
    pub(super) fn far(name: &str, cpu: u32, found: &Found) -> Self {
        let kernel = found.scheduling.kernel_priority();
        Self {
            name: name.into(),
            cpu,
            tid: found.tid,
            priority: (kernel, kernel < 100),
            warmup: Arc::default(),
            total: Arc::default(),
            control: Arc::default(),
            samples: TracedSamples::None,
        }
    }
}

/// What the samples of a traced thread are: their parts, and the late ones.
#[derive(Debug)]
pub enum TracedSamples {
    /// By a timer.
    WakeUps(StageSeries, Reader<Late>),
    /// From such an expiry to the end of the work that the thread does then.
    Work {
        /// The stages of its wake-ups.
        stages: StageSeries,
        /// The deadline, ns, where there is one.
        deadline_ns: Option<i64>,
        /// Those that took longer, or longer than most.
        late: Reader<Late>,
    },
    /// By a timer, and their stages are found by who reads the kernel's trace.
    ToMatch {
        /// Where stages go.
        stages: StageSeries,
        /// Where that of the softirq goes; `None` if it is part of the handler's.
        softirq: Option<Arc<Series>>,
        /// How long after the expiry of a sample that of its timer may lie, ns.
        within_ns: u64,
        /// Every sample.
        all: Reader<Late>,
    },
    /// A message to the next of the traced threads and its answer: sending, dispatch and receiving,
    /// there and back.
    RoundTrips([Arc<Series>; 6], Reader<LateTrip>),
    /// Packets to this thread.
    Packets {
        /// Of each the call that sends or the network stack, dispatch and receiving.
        parts: [Arc<Series>; 3],
        /// Late ones.
        late: Reader<LatePacket>,
        /// What their way is called: `there`.
        way: &'static str,
        /// Who sends them on a schedule, as a number among the traced threads; `None` if that is
        /// not followed.
        sender: Option<usize>,
    },
    /// Gaps in which a thread that never sleeps did not have its CPU.
    Gaps {
        /// A shorter one does not count, ns.
        over_ns: i64,
        /// Long ones.
        late: Reader<Late>,
    },
    /// Wake-ups of a thread of another program.
    Attached {
        /// What is known of it by now.
        usual: Arc<AttachedUsual>,
        /// Late ones.
        late: Reader<Late>,
    },
    /// Cycles of such a thread, from an expiry of its timer to the end of its work.
    Cycles {
        /// What is known of it by now; in the place of the percentile its deadline.
        usual: Arc<AttachedUsual>,
        /// Those that took longer than the deadline.
        late: Reader<Late>,
    },
    /// It has none: it is the remote endpoint of another one.
    None,
}

/// What is known of a thread of another program, for who judges its late wake-ups: set while it is
/// read. Times in ns.
#[derive(Debug)]
pub struct AttachedUsual {
    /// The 99th percentile of its latency; `i64::MAX` until it is known.
    pub p99_ns: AtomicI64,
    /// Its median from the expiry to the wake-up.
    pub irq_ns: AtomicI64,
    /// Its median from the wake-up to the CPU.
    pub dispatch_ns: AtomicI64,
    /// The kernel's priority of it.
    pub prio: AtomicI64,
}

impl Default for AttachedUsual {
    fn default() -> Self {
        let (irq_ns, dispatch_ns) = Default::default();
        Self { p99_ns: AtomicI64::new(i64::MAX), irq_ns, dispatch_ns, prio: AtomicI64::new(120) }
    }
}

impl TracedSamples {
    /// Late ones for which there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        match self {
            Self::WakeUps(_, late)
            | Self::Gaps { late, .. }
            | Self::Work { late, .. }
            | Self::Attached { late, .. }
            | Self::Cycles { late, .. } => late.dropped(),
            Self::RoundTrips(_, late) => late.dropped(),
            Self::Packets { late, .. } => late.dropped(),
            // Those have no stages, and are counted as such.
            Self::ToMatch { .. } | Self::None => 0,
        }
    }
}

/// A cycle of an attached thread that missed its deadline, `CLOCK_MONOTONIC` in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateCycle {
    /// The thread.
    pub tid: u32,
    /// When it was due, or woken.
    pub begin_ns: u64,
    /// When its work was done.
    pub end_ns: u64,
}
