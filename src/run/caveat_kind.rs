//! Every doubt that tardy can have about a run, one variant a code, with its values. Their words
//! are in `words`, where alone text is made of values.

mod incident;
mod lab;
mod messages;
mod receive;
mod setup;
mod threads;
mod trace;
mod values;
mod words;

use serde::Serialize;
use serde_json::{Map, Value};

use super::caveat::Caveat;
pub use incident::{CpuShare, FrequencyChange, GovernorChange, Incident};
pub use lab::{COUNTED_TIME, LabCaveat};
pub use messages::{EndBuffer, FarEndReason, LostMessages, MessageCaveat, SendRefusal};
pub use receive::ReceiveCaveat;
pub use setup::{BootOption, SetupCaveat};
pub use threads::{
    Deviation, ThreadCaveat, ThreadDeviation, ThreadError, ThreadFaults, ThreadTerms,
};
pub use trace::TraceCaveat;
pub use values::{CpuCount, EndCount, OsError, SeriesCount};

/// Every doubt that tardy can have about a run. One variant per code; `docs/measuring.md` explains
/// each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CaveatKind {
    /// Memory could not be locked.
    MemoryNotLocked {
        /// What the kernel said.
        error: OsError,
    },
    /// Idle states may add their exit latency.
    DmaLatencyNotHeld {
        /// What the kernel said.
        error: OsError,
    },
    /// The drain and its like had to run as ordinary threads.
    HelpersNotRealTime {
        /// What the kernel said.
        error: OsError,
    },
    /// A load ended before it should.
    LoadDied {
        /// Its name.
        load: String,
        /// How it ended.
        how: String,
    },
    /// A load did nothing while the run went on.
    LoadDidNothing {
        /// Its name.
        load: String,
    },
    /// Some tasks of a load did nothing.
    LoadInPart {
        /// Its name.
        load: String,
        /// How many did nothing.
        tasks_idle: u64,
        /// How many it has.
        tasks: u64,
    },
    /// The reader was too late for some samples.
    SamplesLost {
        /// How many.
        lost: u64,
    },
    /// The drain was late.
    DrainLate {
        /// By how much at the most, ns.
        late_ns: i64,
    },
    /// The disk did not take everything.
    RecordIncomplete {
        /// The file that was refused first.
        file: String,
        /// When, ns from the start of the run; absent at its end.
        at_ns: Option<i64>,
        /// What the system said.
        error: OsError,
    },
    /// Not one sample.
    NoSamples,
    /// More than one period in a hundred was missed.
    PeriodsMissed {
        /// Those of which so many were missed.
        series: Vec<MissedPeriods>,
    },
    /// Wake-ups before their time.
    EarlyWakeups {
        /// How many.
        early: u64,
    },
    /// Somebody ended the run early.
    Interrupted {
        /// By what, `SIGTERM`.
        by: String,
    },
    /// The machine is not the whole machine.
    Virtual {
        /// What kind.
        kind: String,
    },
    /// What measured threads ran as, and what disturbed them.
    Threads(ThreadCaveat),
    /// Something happened to the machine while the run went on.
    Happened(Incident),
    /// The maker went away.
    Crashed,
    /// `series.hlog` cannot be read to its end.
    SeriesDamaged {
        /// Where and how.
        what: String,
    },
    /// A file of samples cannot be read.
    SamplesDamaged {
        /// Which and how.
        what: String,
    },
    /// Another file of the run cannot be read.
    TrackDamaged {
        /// Which and how.
        what: String,
    },
    /// What came of arranging the machine.
    Setup(SetupCaveat),
    /// What the lab's virtual machine makes of the figures.
    Lab(LabCaveat),
    /// What came of tracing.
    Trace(TraceCaveat),
    /// What came of messages.
    Message(MessageCaveat),
    /// What came of received packets.
    Receive(ReceiveCaveat),
}

impl From<CaveatKind> for Caveat {
    fn from(kind: CaveatKind) -> Self {
        let (code, effect, text, remedy) = kind.words();
        Self { code: code.into(), effect, text, remedy: remedy.into(), values: kind.values() }
    }
}

impl CaveatKind {
    /// Its fields as they stand in `run.json`; empty where the code says all.
    fn values(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            // A variant without fields.
            _ => Map::new(),
        }
    }
}

/// Periods of a series that passed without a wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissedPeriods {
    /// The series.
    pub series: String,
    /// How many were missed.
    pub missed: u64,
    /// Of how many.
    pub periods: u64,
}

impl MissedPeriods {
    /// The share that was missed, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.missed as f64 * 100.0 / self.periods.max(1) as f64
    }

    /// "1.2 % on cpu0"
    fn text(&self) -> String {
        format!("{:.1} % on {}", self.percent(), self.series)
    }
}

impl From<ThreadCaveat> for CaveatKind {
    fn from(caveat: ThreadCaveat) -> Self {
        Self::Threads(caveat)
    }
}

impl From<Incident> for CaveatKind {
    fn from(incident: Incident) -> Self {
        Self::Happened(incident)
    }
}

impl From<LabCaveat> for CaveatKind {
    fn from(kind: LabCaveat) -> Self {
        Self::Lab(kind)
    }
}

impl From<MessageCaveat> for CaveatKind {
    fn from(kind: MessageCaveat) -> Self {
        Self::Message(kind)
    }
}

impl From<ReceiveCaveat> for CaveatKind {
    fn from(kind: ReceiveCaveat) -> Self {
        Self::Receive(kind)
    }
}

impl From<SetupCaveat> for CaveatKind {
    fn from(kind: SetupCaveat) -> Self {
        Self::Setup(kind)
    }
}

impl From<TraceCaveat> for CaveatKind {
    fn from(kind: TraceCaveat) -> Self {
        Self::Trace(kind)
    }
}
