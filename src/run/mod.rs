//! The waist: what a measurement *is*. Makers write it, readers read it; neither imports the other.

pub mod ab_record;
pub mod calibration;
mod campaign_record;
pub mod caveat;
pub mod compared;
pub mod conditions;
pub mod copy;
pub mod counts;
pub mod directory;
pub mod document;
pub mod caveat_kind;
pub mod entry;
pub mod facts;
pub mod figures;
pub mod files;
pub mod hlog;
pub mod interactive;
pub mod lab;
mod latency_view;
pub mod lock;
pub mod writer;
pub mod messages;
pub mod peaks;
pub mod peaks_file;
pub mod plan_record;
mod probe_info;
pub mod profile;
pub mod probes;
pub mod provenance;
pub mod reader;
pub mod removal;
mod record_file;
pub mod repair;
mod sample_name;
pub mod samples;
pub mod setup;
pub mod spool;
pub mod summary;
mod texts;
pub mod trace;
pub mod tracks;
mod version1;

pub use ab_record::{
    AB, AB_SCHEMA_VERSION, AbBlock, AbCaveat, AbCommand, AbLook, AbRecord, AbSideRecord, AbStatus,
    SideName,
};
pub use calibration::Calibration;
pub use campaign_record::CampaignRecordError;
pub use caveat::{Caveat, Effect, Validity};
pub use caveat_kind::{
    BootOption, COUNTED_TIME, CaveatKind, CpuCount, CpuShare, Deviation, EndBuffer, EndCount,
    FarEndReason, FrequencyChange, GovernorChange, HelperTime, Incident, LabCaveat, LevelChange,
    LostMessages, MessageCaveat, MissedPeriods, OsError, ReceiveCaveat, SendRefusal, SeriesCount,
    SeriesPeriod, SetupCaveat, ShieldCaveat, SteadinessCaveat, ThreadCaveat, ThreadDeviation,
    ThreadError, ThreadFaults, ThreadTerms, TraceCaveat, UnreadSource,
};
pub use compared::{AbVerdict, BandDifference, CauseDifference, ComparedFigureRow, ComparedUnit};
pub use directory::{MakeError, RunDirectory, Unsynced};
pub use document::{Document, LoadProof, LoadRecord, RunParameters, SCHEMA_VERSION, Status};
pub use entry::{RunEntry, RunHead};
pub use facts::{Facts, LabFacts};
pub use figures::{FigureGap, FigureHead, FigureRecord, FigureRow, FigureUnit};
pub use hlog::IntervalOf;
pub use interactive::{
    InteractiveParameters, InteractiveTask, WORK_FIGURE, WORK_REPEATS, work_before_and_after,
};
pub use latency_view::LatencyView;
pub use messages::{ClockRecord, EndRecord, FlowRecord, MessageRecord};
pub use plan_record::{CellStatus, PLAN, PLAN_SCHEMA_VERSION, PlanCell, PlanRecord, PlanStatus};
pub use probes::{
    BandwidthParameters, FakeParameters, InversionParameters, IrqParameters, NoiseParameters,
    OtherProbe, PingpongParameters, ProbeRecord, ReceiveParameters, StreamParameters,
    TimerParameters,
};
pub use provenance::{Origin, Provenance};
pub use reader::Run;
pub use record_file::OpenError;
pub use removal::{RemovableRun, RemoveError};
pub use setup::{
    AskedSetup, FoundSetup, FoundShield, FoundThread, LockedMemory, MemoryLock, SetupRecord,
};
pub use summary::{Percentiles, Scheduled, SeriesHead, SeriesSummary};
pub use trace::{KnownCost, MissingTracepoint, TraceCost, TraceMode, TraceRecord};
pub use writer::{BlameFiles, RunWriter, names};
