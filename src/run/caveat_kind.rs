//! Every caveat that a run can have, one variant per code, with its values. Only `words` makes
//! text of the values.

mod attach;
mod audio;
mod file_loss;
mod imported;
mod incident;
mod lab;
mod messages;
mod receive;
mod setup;
mod shield;
mod steadiness;
mod threads;
mod trace;
mod values;
mod words;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    SeriesSummary,
    caveat::Caveat,
    figures::{FigureGap, ImpossibleFigure},
};
pub use attach::AttachCaveat;
pub use audio::{AudioCaveat, SERVER_LOST, ServerLossReason};
pub use file_loss::FileLoss;
pub use imported::ImportCaveat;
pub use incident::{CpuShare, FrequencyChange, GovernorChange, Incident, UnreadSource};
pub use lab::{COUNTED_TIME, LabCaveat};
pub use messages::{EndBuffer, FarEndReason, LostMessages, MessageCaveat, SendRefusal};
pub use receive::ReceiveCaveat;
pub use setup::{HelperTime, LEFT_CHANGED, NOT_PUT_BACK, SetupCaveat};
pub use shield::{BootOption, ShieldCaveat};
pub use steadiness::{
    LATE_PERIODICALLY, LEVEL_CHANGED, LevelChange, SeriesPeriod, SteadinessCaveat,
};
pub use threads::{
    Deviation, ThreadCaveat, ThreadDeviation, ThreadError, ThreadFaults, ThreadTerms,
};
pub use trace::TraceCaveat;
pub use values::{CpuCount, EndCount, OsError, SeriesCount};

/// Every caveat that a run can have. One variant per code; `docs/reference/caveats.md` explains
/// each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CaveatKind {
    /// Memory could not be locked.
    MemoryNotLocked {
        /// The error of the kernel.
        error: OsError,
    },
    /// Idle states may add their exit latency.
    DmaLatencyNotHeld {
        /// The error of the kernel.
        error: OsError,
    },
    /// The drain and the other helper threads had to run as ordinary threads.
    HelpersNotRealTime {
        /// The error of the kernel.
        error: OsError,
    },
    /// A load ended before it should.
    LoadDied {
        /// Its name.
        load: String,
        /// How it ended.
        how: String,
    },
    /// A load did nothing during the run.
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
        /// The largest delay, ns.
        late_ns: i64,
    },
    /// Not everything could be written to disk.
    RecordIncomplete {
        /// The file that was refused first.
        file: String,
        /// When, ns from the start of the run; absent at its end.
        at_ns: Option<i64>,
        /// The error of the system.
        error: OsError,
    },
    /// No sample was taken.
    NoSamples,
    /// Figures without a value.
    FiguresMissing {
        /// Which, and why.
        figures: Vec<FigureGap>,
    },
    /// Figures with a value that cannot be.
    FiguresImpossible {
        /// Which, with that value.
        figures: Vec<ImpossibleFigure>,
    },
    /// More than one period in a thousand was missed.
    PeriodsMissed {
        /// The series concerned.
        series: Vec<MissedPeriods>,
    },
    /// Wake-ups before their time.
    EarlyWakeups {
        /// How many.
        early: u64,
    },
    /// The run was ended early.
    Interrupted {
        /// By what, `SIGTERM`.
        by: String,
    },
    /// The machine is a virtual machine.
    Virtual {
        /// What kind.
        kind: String,
    },
    /// What measured threads ran as, and what disturbed them.
    Threads(ThreadCaveat),
    /// Something happened to the machine during the run.
    Happened(Incident),
    /// tardy was killed, or the machine went down, before the run ended.
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
    /// The result of setting up the machine.
    Setup(SetupCaveat),
    /// What the shield cannot do, or that it did not stay.
    Shield(ShieldCaveat),
    /// How the run changed while it was measured.
    Steadiness(SteadinessCaveat),
    /// What the lab's virtual machine makes of the figures.
    Lab(LabCaveat),
    /// The result of tracing.
    Trace(TraceCaveat),
    /// The result of messages.
    Message(MessageCaveat),
    /// The result of received packets.
    Receive(ReceiveCaveat),
    /// About cycles of an audio server.
    Audio(AudioCaveat),
    /// What the file of an imported run leaves open.
    Imported(ImportCaveat),
    /// The result of looking at threads of others.
    Attach(AttachCaveat),
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
    /// Those of one series.
    #[must_use]
    pub fn of(series: &SeriesSummary) -> Self {
        let missed = series.missed.unwrap_or(0);
        let periods = series.count.saturating_add(missed);
        Self { series: series.name.clone(), missed, periods }
    }

    /// Whether these are so many that what the wake-ups that came say of themselves flatters: more
    /// than one period in a thousand.
    #[must_use]
    pub const fn are_material(missed: u64, periods: u64) -> bool {
        missed.saturating_mul(1_000) > periods
    }

    /// The share that was missed, in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.missed as f64 * 100.0 / self.periods.max(1) as f64
    }

    /// "1.2% on cpu0"
    fn text(&self) -> String {
        format!("{:.1}% on {}", self.percent(), self.series)
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

impl From<AudioCaveat> for CaveatKind {
    fn from(kind: AudioCaveat) -> Self {
        Self::Audio(kind)
    }
}

impl From<AttachCaveat> for CaveatKind {
    fn from(kind: AttachCaveat) -> Self {
        Self::Attach(kind)
    }
}

impl From<ReceiveCaveat> for CaveatKind {
    fn from(kind: ReceiveCaveat) -> Self {
        Self::Receive(kind)
    }
}

impl From<ImportCaveat> for CaveatKind {
    fn from(kind: ImportCaveat) -> Self {
        Self::Imported(kind)
    }
}

impl From<SetupCaveat> for CaveatKind {
    fn from(kind: SetupCaveat) -> Self {
        Self::Setup(kind)
    }
}

impl From<ShieldCaveat> for CaveatKind {
    fn from(kind: ShieldCaveat) -> Self {
        Self::Shield(kind)
    }
}

impl From<SteadinessCaveat> for CaveatKind {
    fn from(kind: SteadinessCaveat) -> Self {
        Self::Steadiness(kind)
    }
}

impl From<TraceCaveat> for CaveatKind {
    fn from(kind: TraceCaveat) -> Self {
        Self::Trace(kind)
    }
}
