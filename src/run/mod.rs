//! The waist: what a measurement *is*. Makers write it, readers read it; neither imports the other.

/// The series of the cycles of an audio server, and the way of each from its time to its callback.
pub const CYCLE: &str = "cycle";

pub mod ab_record;
pub mod alike;
mod appended;
mod attach;
pub mod author;
mod blame_files;
pub mod calibration;
mod campaign_record;
pub mod campaign_removal;
pub mod caveat;
pub mod compared;
pub mod conditions;
pub mod copy;
pub mod counts;
mod deadlines;
mod details;
mod details_table;
pub mod directory;
pub mod document;
pub mod caveat_kind;
pub mod entry;
pub mod entry_setup;
pub mod facts;
pub mod figures;
pub mod files;
#[cfg(test)]
pub(crate) mod fixture;
pub mod follow;
pub(crate) mod functions;
pub mod hlog;
pub mod interactive;
pub mod lab;
mod host_moves;
mod judged;
pub mod host_removal;
pub mod kept_peaks;
mod live_state;
mod latency_view;
pub mod lock;
pub mod writer;
pub mod messages;
pub mod measured_steal;
mod part_names;
pub(crate) mod parts;
mod peak_room;
pub mod peaks;
pub mod peaks_file;
pub mod plan_record;
mod probe_info;
pub mod profile;
pub mod probes;
pub mod provenance;
pub mod reader;
pub mod recording;
pub mod removal;
pub mod per_period;
mod record_file;
pub mod repair;
mod sample_name;
pub mod samples;
mod series_entry;
pub mod series_name;
pub mod settings_record;
pub mod setup;
pub mod spool;
pub mod summary;
pub mod stolen;
mod taken;
mod texts;
pub mod trace;
pub mod tracks;
mod version1;
pub mod viewer_name;
pub mod without_host;

pub use ab_record::{
    AB, AB_LOCK, AB_SCHEMA_VERSION, AbBlock, AbCaveat, AbCommand, AbLook, AbRecord, AbSideRecord,
    AbStatus, SideName,
};
pub use attach::{
    AttachRecord, AttachedBudget, AttachedCommand, AttachedFaults, AttachedLatency, AttachedOver,
    AttachedRow, AttachedTimes, AttachedWaitCall, AttachedWaits, CycleBegin, signal_name,
};
pub use author::{Author, Distrust};
pub use blame_files::BlameFiles;
pub use calibration::Calibration;
pub use campaign_record::CampaignRecordError;
pub use campaign_removal::RemovableCampaign;
pub use caveat::{Caveat, Effect, Validity};
pub use caveat_kind::{
    AttachCaveat, AudioCaveat, BootOption, COUNTED_TIME, CaveatKind, CpuCount, CpuShare, Deviation,
    EndBuffer, EndCount, FarEndReason, FileLoss, FrequencyChange, GovernorChange, HelperTime,
    ImportCaveat, Incident, LATE_PERIODICALLY, LEFT_CHANGED, LEVEL_CHANGED, LabCaveat, LevelChange,
    LostMessages, MessageCaveat, MissedPeriods, NOT_PUT_BACK, OsError, ReceiveCaveat, SERVER_LOST,
    SendRefusal, SeriesCount, SeriesPeriod, ServerLossReason, SetupCaveat, ShieldCaveat,
    SteadinessCaveat, ThreadCaveat, ThreadDeviation, ThreadError, ThreadFaults, ThreadTerms,
    TraceCaveat, UnreadSource,
};
pub use compared::{AbVerdict, BandDifference, CauseDifference, ComparedFigureRow, ComparedUnit};
pub use deadlines::{Deadlines, ThreadDeadline};
pub use details_table::{CauseSum, LateDetails, RunDetails, SeriesDetails};
pub use directory::{MakeError, RunDirectory, Unsynced};
pub use document::{
    Document, LoadProof, LoadRecord, RunParameters, SCHEMA_VERSION, Status, UNKNOWN_LOAD,
};
pub use entry::{RunEntry, RunHead};
pub use facts::{Facts, LabFacts};
pub use figures::{FigureGap, FigureHead, FigureRecord, FigureRow, FigureUnit, ImpossibleFigure};
pub use hlog::IntervalOf;
pub use interactive::{
    InteractiveParameters, InteractiveTask, WORK_FIGURE, WORK_REPEATS, work_before_and_after,
};
pub use judged::JudgedCycles;
pub use latency_view::LatencyView;
pub use live_state::{LiveLoad, LiveState};
pub use messages::{ClockRecord, EndRecord, FlowRecord, MessageRecord};
pub use peak_room::PeakRoom;
pub use plan_record::{
    CellStatus, PLAN, PLAN_LOCK, PLAN_SCHEMA_VERSION, PlanCell, PlanRecord, PlanStatus,
};
pub use probes::{
    AttachParameters, AudioParameters, BandwidthParameters, FakeParameters, InversionParameters,
    IrqParameters, NoiseParameters, OtherProbe, PingpongParameters, ProbeRecord, ReceiveParameters,
    StreamParameters, TimerParameters,
};
pub use provenance::{Origin, Provenance};
pub use reader::Run;
pub use record_file::OpenError;
pub use removal::{RemovableRun, RemoveError};
pub use series_entry::SeriesEntry;
pub(crate) use series_name::LATENESS;
pub use series_name::RESPONSE;
pub use settings_record::{
    SETTINGS, SETTINGS_SCHEMA_VERSION, SettingsRecord, TriedFigure, TriedSetting, UntriedSetting,
};
pub use setup::{
    AskedSetting, AskedSetup, FoundSetting, FoundSetup, FoundShield, FoundThread, LockedMemory,
    MemoryLock, SetupRecord,
};
pub use summary::{Percentiles, Scheduled, SeriesHead, SeriesSummary};
pub use taken::TakeError;
pub use trace::{
    KnownCost, LostEvents, MissingTracepoint, TraceBy, TraceCost, TraceMode, TraceRecord,
};
pub use writer::{RunWriter, names};
