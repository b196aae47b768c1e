//! `run.json`: the record of one run, field by field.
//!
//! The JSON Schema is `docs/run.schema.json`; `docs/reference/run-file.md` explains it.
//! Latencies are
//! integers in ns throughout.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    attach::{AttachRecord, AttachedRow},
    caveat::{Caveat, Validity},
    conditions::{ConditionsRecord, MachineRecord},
    facts::Facts,
    figures::FigureRecord,
    messages::MessageRecord,
    probes::ProbeRecord,
    provenance::Provenance,
    series_name::whole_of_response,
    setup::SetupRecord,
    summary::SeriesSummary,
    trace::TraceRecord,
    without_host::WithoutHost,
};

/// The version of `run.json` that this tardy writes. Raised by any change a reader would notice.
pub const SCHEMA_VERSION: u32 = 2;

/// What `run.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "RunRecord"))]
pub struct Document {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Unique: start time in ms and four random digits, `20261121-203055.042-1f0c`; of older
    /// runs in seconds.
    pub id: String,
    /// What the user calls it; the id where no name was given.
    pub name: String,
    /// The command line that made it.
    pub argv: Vec<String>,
    /// Where its samples come from.
    pub provenance: Provenance,
    /// How far it came.
    pub status: Status,
    /// The verdict, from the caveats.
    pub validity: Validity,
    /// Every caveat of this run, worst first.
    pub caveats: Vec<Caveat>,
    /// What measured.
    pub probe: ProbeRecord,
    /// How long, and what was kept.
    pub parameters: RunParameters,
    /// What disturbed the machine meanwhile.
    pub loads: Vec<LoadRecord>,
    /// What tardy arranged.
    pub setup: SetupRecord,
    /// Whether wake-ups were traced, as asked and as found.
    pub trace: TraceRecord,
    /// What the machine was.
    pub facts: Facts,
    /// RFC 3339, UTC: the first programmed expiry after the warm-up.
    pub started_at: String,
    /// RFC 3339, UTC; absent while running.
    pub ended_at: Option<String>,
    /// From the first programmed expiry to the end of the last loop, ns.
    pub duration_ns: u64,
    /// The planned length of an interval of `series.hlog`, ns. The last one of a run is shorter; in
    /// a run that lasts longer than was expected they grow to a thousandth of it.
    pub log_interval_ns: i64,
    /// `CLOCK_MONOTONIC` at `started_at`, ns: the zero of `t_s` in other files.
    pub start_monotonic_ns: i64,
    /// What the machine did meanwhile, on average; absent until the end.
    #[serde(default)]
    pub machine: Option<MachineRecord>,
    /// Under which conditions; absent until the end.
    #[serde(default)]
    pub conditions: Option<ConditionsRecord>,
    /// The result of messages; absent if none are exchanged, and until the end.
    #[serde(default)]
    pub messages: Option<MessageRecord>,
    /// The threads that were looked at; absent with other probes, and until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<AttachRecord>,
    /// One entry a series, in the order of CPUs; none where a probe measures no latencies.
    pub series: Vec<SeriesSummary>,
    /// Results other than latencies, in the order in which they are measured; none if a probe
    /// has only latencies.
    #[serde(default)]
    pub figures: Vec<FigureRecord>,
    /// Only where a reader was asked for the run without the time that its hypervisor took: what
    /// was removed from the figures above. Never in the file of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_host: Option<WithoutHost>,
}

impl Document {
    /// The series of whole latencies, each sample once: without those of their stages, and without
    /// those of single attached threads, whose samples are also in the series of their name.
    pub fn wakeups(&self) -> impl Iterator<Item = &SeriesSummary> {
        self.series.iter().filter(|series| !series.is_part())
    }

    /// The series of single attached threads.
    pub fn threads(&self) -> impl Iterator<Item = &SeriesSummary> {
        self.series.iter().filter(|series| !series.is_stage() && series.thread_of.is_some())
    }

    /// The series of the work of attached threads, of names and of single ones.
    pub fn responses(&self) -> impl Iterator<Item = &SeriesSummary> {
        self.series.iter().filter(|series| series.is_response())
    }

    /// The attached thread, or all of one name, whose latencies or whose work this is.
    #[must_use]
    pub fn attached_row(&self, series: &SeriesSummary) -> Option<&AttachedRow> {
        let own = match series.is_response() {
            true => whole_of_response(&series.name)?,
            false => &series.name,
        };
        self.attached.as_ref()?.rows.iter().find(|row| row.series == own)
    }

    /// Whether late samples of this series can be blamed: not those of a simulated task that never
    /// sleeps, which has no wake-ups.
    #[must_use]
    pub fn can_be_blamed(&self, series: &SeriesSummary) -> bool {
        let ProbeRecord::Interactive(parameters) = &self.probe else { return true };
        let mut tasks = parameters.tasks.iter();
        !tasks.any(|task| task.name == series.name && task.period_ns.is_none())
    }

    /// Whether it has a value: a sample of a series, or a repeat of a figure.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.wakeups().any(|series| series.count > 0)
            || self.figures.iter().any(|figure| !figure.values.is_empty())
    }

    /// The time that counts of interrupts belong to, s.
    #[must_use]
    pub fn counted_s(&self) -> f64 {
        let counted_ns = self.conditions.as_ref().and_then(|conditions| conditions.counted_ns);
        // Runs that do not say so counted from before the warm-up.
        let warmup_ns = || u64::try_from(self.parameters.warmup_ns).unwrap_or(0);
        let whole_ns = || self.duration_ns.saturating_add(warmup_ns());
        counted_ns.unwrap_or_else(whole_ns).max(1) as f64 / 1e9
    }
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its maker is alive.
    Running,
    /// It ended as asked.
    Complete,
    /// Ctrl-C or a signal ended it early; what there is, is whole.
    Interrupted,
    /// A latency passed `--stop-over`.
    StoppedOver,
    /// Its maker went away without a word. Never written; readers find it out.
    Crashed,
    /// Another program measured it, and its output was read.
    Imported,
}

impl Status {
    /// As in `run.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::StoppedOver => "stopped_over",
            Self::Crashed => "crashed",
            Self::Imported => "imported",
        }
    }
}

/// What a run was to be, whatever its probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunParameters {
    /// The length that was asked for, ns; absent if samples are counted instead, and if the
    /// run was to continue until it was ended (`--duration inf`): then `samples` is absent too.
    pub duration_ns: Option<i64>,
    /// The samples per series that were asked for; absent if a time was, or no end.
    pub samples: Option<u64>,
    /// Time before the start that is not recorded, ns.
    pub warmup_ns: i64,
    /// The latency above which the run ends, ns; absent for none.
    pub stop_over_ns: Option<i64>,
    /// What latencies were to keep, ns; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<i64>,
    /// Whether every single sample is kept.
    pub raw: bool,
    /// How many of the worst wake-ups are kept whole; absent if none are looked into.
    pub peaks: Option<u64>,
    /// All later than this are kept instead, ns; absent for none.
    pub peak_over_ns: Option<i64>,
    /// How often a second every CPU was sampled for `profile.json`; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_hz: Option<u32>,
}

impl RunParameters {
    /// The length of an interval of the log, ns: a thousandth of the run, but at least 100 ms; 1 s
    /// if the run was to continue until it was ended. If samples are counted, one is expected every
    /// `sample_ns`.
    #[must_use]
    pub fn log_interval_ns(&self, sample_ns: i64) -> i64 {
        let of_samples = |samples: u64| {
            i64::try_from(samples).unwrap_or(i64::MAX).saturating_mul(sample_ns) / 1000
        };
        let expected_ns = match (self.duration_ns, self.samples) {
            (Some(ns), _) => ns / 1000,
            (None, Some(samples)) => of_samples(samples),
            (None, None) => 1_000_000_000,
        };
        expected_ns.max(100_000_000)
    }
}

/// The name of the one load of an imported run whose file does not say what ran beside it.
pub const UNKNOWN_LOAD: &str = "unknown";

/// One load and the proof that it worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadRecord {
    /// `hackbench`, `idle`, ...
    pub name: String,
    /// Parameters by name.
    pub parameters: Map<String, Value>,
    /// What it did during the run; absent for a load that never started.
    pub proof: Option<LoadProof>,
    /// How it ended: `stopped`, `exit 1`, `signal 9`, `not started: ...`; absent while running.
    pub ended: Option<String>,
}

/// What a load did during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadProof {
    /// What one operation is: `messages`, ...
    pub unit: String,
    /// Operations in the measured time.
    pub operations: u64,
    /// Operations per second of measured time.
    pub operations_per_s: f64,
    /// Context switches of the load's tasks, per second of its life.
    pub context_switches_per_s: f64,
    /// CPU seconds of the load's tasks per second of its life; 2.0 is two CPUs busy.
    pub cpu_share: f64,
    /// Tasks it ran with.
    pub tasks: u64,
    /// Of those that count operations, how many completed none in its life.
    #[serde(default)]
    pub tasks_idle: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_the_log_follow_from_what_was_asked_for() {
        let asked = |duration_ns, samples| RunParameters {
            duration_ns,
            samples,
            ..RunParameters::default()
        };
        let interval_ns = |parameters: RunParameters| parameters.log_interval_ns(1_000_000);
        assert_eq!(interval_ns(asked(Some(60_000_000_000), None)), 100_000_000);
        assert_eq!(interval_ns(asked(Some(86_400_000_000_000), None)), 86_400_000_000);
        assert_eq!(interval_ns(asked(None, Some(1_000_000))), 1_000_000_000);
        assert_eq!(interval_ns(asked(None, Some(u64::MAX))), i64::MAX / 1000);
        assert_eq!(interval_ns(asked(None, None)), 1_000_000_000, "no end");
    }
}
