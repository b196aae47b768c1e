//! Evidence: everything about a run that caveats are drawn from, collected while it is in progress.
//! Values only; what they mean is decided in `caveats`.

use super::conditions_monitor::ConditionsHistory;
use crate::{
    loads::LoadEnd,
    probes::{MessageEvidence, ThreadReport},
    run::{
        AttachRecord, CpuCount, FigureGap, HelperTime, ImpossibleFigure, MessageRecord, OsError,
        ProbeRecord, SeriesSummary, ThreadDeviation, TraceRecord, UnreadSource,
        conditions::{CpuUse, ForeignRecord},
        profile::ProfileCost,
    },
    setup::{
        journal::Recovered,
        settings::SettingLoss,
        shield::{ShieldGaps, ShieldLoss},
    },
    sys::cpus::Cpus,
};

/// What is known of a run at its end. The default is a run of which nothing is known, and nothing
/// was wrong but that it has no samples.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// What was to be arranged.
    pub setup: SetupEvidence,
    /// The measured threads.
    pub threads: ThreadEvidence,
    /// The machine around them.
    pub machine: MachineEvidence,
    /// Each load by its name, and how it ended.
    pub loads: Vec<(String, LoadEnd)>,
    /// How recording went.
    pub recording: Recording,
    /// The series of whole latencies.
    pub series: Vec<SeriesSummary>,
    /// Whether a figure that is not a latency has a value.
    pub has_figures: bool,
    /// Whether the times at which samples were due are estimated from earlier ones: then one may
    /// well come before them.
    pub has_estimated_grid: bool,
    /// How much work a CPU did in a millisecond before the run and after it; `None` if that was not
    /// measured.
    pub work: Option<(f64, f64)>,
    /// Figures without a value.
    pub figure_gaps: Vec<FigureGap>,
    /// Figures with a value that cannot be.
    pub impossible_figures: Vec<ImpossibleFigure>,
    /// The result of tracing.
    pub trace: TraceEvidence,
    /// The result of messages; `None` if the probe has none.
    pub messages: Option<MessageRecord>,
    /// What measured.
    pub asked: Option<ProbeRecord>,
    /// The result of looking at threads of others; absent with other probes.
    pub attached: Option<AttachRecord>,
    /// What the probe knows of them beside.
    pub probe: MessageEvidence,
    /// What ended the run early from outside, `SIGTERM`.
    pub ended_by: Option<String>,
}

impl Evidence {
    /// Whether the run ended before its time.
    pub(super) const fn is_interrupted(&self) -> bool {
        let has_lost = self.probe.far_loss.is_some() || self.probe.server_loss.is_some();
        self.ended_by.is_some() || self.setup.watchdog.is_some() || has_lost
    }
}

/// What was to be arranged, and what could not be.
#[derive(Debug, Default)]
pub(super) struct SetupEvidence {
    /// The wished policy and priority, and what the kernel said to them.
    pub real_time_refused: Option<(String, u32, OsError)>,
    /// What the kernel said when memory was to be locked.
    pub memory_refused: Option<OsError>,
    /// What the system said when `/dev/cpu_dma_latency` was to be held.
    pub dma_latency_refused: Option<OsError>,
    /// What became of what a killed tardy had left changed.
    pub left: Recovered,
    /// What the shield does not keep off; absent without one.
    pub shield: Option<ShieldGaps>,
    /// What of the shield was found changed, and when; ns from the start of the run, absent at its
    /// end.
    pub shield_loss: Option<(ShieldLoss, Option<i64>)>,
    /// What could reach the shielded CPUs again at the end.
    pub interrupts_back: Vec<String>,
    /// A setting that was another at the end than it had been set to.
    pub setting_loss: Option<SettingLoss>,
    /// What could not be restored, and why.
    pub not_put_back: Vec<String>,
    /// That the watchdog is not above the measured threads, if it is not.
    pub nothing_above: Option<NoHigherPriority>,
    /// Whether helper threads share the CPUs of measured threads that are ordinary tasks.
    pub helpers_beside: bool,
    /// That the watchdog ended the run, if it did.
    pub watchdog: Option<WatchdogEnd>,
}

/// Measured threads have the highest priority there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoHigherPriority {
    /// Why the kernel does not bound them either.
    pub unbounded: Option<OsError>,
}

/// How the watchdog ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WatchdogEnd {
    /// How long no other thread of tardy could run, s.
    pub silent_s: u32,
    /// Measured threads did not check the stop flag, and were made ordinary tasks.
    pub made_ordinary: bool,
}

/// What is known of the measured threads.
#[derive(Debug, Default)]
pub(super) struct ThreadEvidence {
    /// Whether they were to run under a real-time policy.
    pub is_real_time: bool,
    /// What they say of themselves; those of remote endpoints behind them.
    pub reports: Vec<ThreadReport>,
    /// In what they were found otherwise than when they were armed.
    pub deviations: Vec<ThreadDeviation>,
}

/// What is known of the machine.
#[derive(Debug, Default)]
pub(super) struct MachineEvidence {
    /// The measured CPUs.
    pub measured: Cpus,
    /// What kind of virtual machine it is; absent for a bare one.
    pub virtualisation: Option<String>,
    /// How its conditions changed.
    pub history: ConditionsHistory,
    /// What the CPUs' time went to.
    pub cpu_use: Vec<CpuUse>,
    /// What other programs used; `None` if unknown.
    pub foreign: Option<ForeignRecord>,
    /// Non-maskable interrupts by CPU.
    pub nmis: Vec<CpuCount>,
    /// System management interrupts; `None` if nothing counts them.
    pub smis: Option<u64>,
    /// What could not be looked at.
    pub unread: Vec<UnreadSource>,
}

/// How recording went.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Recording {
    /// How long the measured time was, ns; 0 while it is in progress.
    pub length_ns: i64,
    /// Samples that no ring had room for.
    pub lost: u64,
    /// The longest the drain was late, ns.
    pub late_ns: i64,
    /// What the disk refused, the first time.
    pub refused: Option<RefusedWrite>,
    /// What the helper threads took of the CPUs in the measured time.
    pub helpers: Vec<HelperTime>,
    /// The share of late samples' time that is blamed on them, 0 to 1; `None` if nothing was
    /// blamed.
    pub blamed_on_helpers: Option<f64>,
    /// What the kernel said when the drain was to run as a real-time thread.
    pub not_real_time: Option<OsError>,
}

/// A write that the disk refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedWrite {
    /// The file, by its name in the run directory.
    pub file: String,
    /// When, ns from the start of the run; absent for what is written at its end.
    pub at_ns: Option<i64>,
    /// What the system said.
    pub error: OsError,
}

/// The result of tracing.
#[derive(Debug, Default)]
pub(super) struct TraceEvidence {
    /// What the run's record says.
    pub record: TraceRecord,
    /// Why `--trace auto` could not trace what can be traced; `None` if it could.
    pub lack: Option<String>,
    /// The kernel hides the addresses of its functions.
    pub symbols_hidden: bool,
    /// What sampling took; absent without a profile.
    pub profiled: Option<ProfileEvidence>,
}

/// What a profile was, and took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProfileEvidence {
    /// Samples a second on each CPU.
    pub hz: u32,
    /// What they took.
    pub cost: ProfileCost,
    /// How many were lost.
    pub lost: u64,
}
