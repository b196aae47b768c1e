//! The words of each caveat: code, effect, text and remedy. A table with one arm per code.

use super::{
    CaveatKind, MissedPeriods,
    values::{list, moment},
};
use crate::{
    run::{FigureGap, ImpossibleFigure, caveat::Effect},
    units::{Nanos, many},
};

impl CaveatKind {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::Threads(caveat) => caveat.words(),
            Self::Setup(kind) => kind.words(),
            Self::Shield(kind) => kind.words(),
            Self::Steadiness(kind) => kind.words(),
            Self::Lab(kind) => kind.words(),
            Self::Trace(kind) => kind.words(),
            Self::Message(kind) => kind.words(),
            Self::Receive(kind) => kind.words(),
            Self::Audio(kind) => kind.words(),
            Self::Imported(kind) => kind.words(),
            Self::Attach(kind) => kind.words(),
            Self::MemoryNotLocked { error } => (
                "memory_not_locked",
                Weakens,
                format!("Memory is not locked: the numbers may include page faults: {error}."),
                "Run as root, or give CAP_IPC_LOCK, or a line `@group - memlock unlimited` in \
                 /etc/security/limits.conf.",
            ),
            Self::DmaLatencyNotHeld { error } => (
                "dma_latency_not_held",
                Weakens,
                format!(
                    "/dev/cpu_dma_latency is not held: the numbers include the exit latency of \
                     deep idle states: {error}."
                ),
                "Run as root or make the device writable for your group; or use \
                 --no-dma-latency if you want to measure idle exits.",
            ),
            Self::HelpersNotRealTime { error } => (
                "helpers_not_real_time",
                Informs,
                format!("The threads that record run as ordinary tasks: {error}."),
                "Run as root or give CAP_SYS_NICE where a load starves them.",
            ),
            Self::LoadDied { load, how } => (
                "load_died",
                Invalidates,
                format!("The load {load} ended before the run did: {how}."),
                "Read load.log of the run, and repeat the run.",
            ),
            Self::LoadDidNothing { load } => (
                "load_did_nothing",
                Invalidates,
                format!("The load {load} completed no operation during the run."),
                "Give the load CPU time (a higher interval, fewer measured threads), or a longer \
                 run.",
            ),
            Self::LoadInPart { load, tasks_idle, tasks } => (
                "load_in_part",
                Weakens,
                format!(
                    "Of the load {load}, {tasks_idle} of {} completed no operation.",
                    many(*tasks, "task")
                ),
                "Give the run more time, or the load fewer tasks.",
            ),
            Self::SamplesLost { lost } => (
                "samples_lost",
                Weakens,
                format!(
                    "{} reached the histogram but not samples/: the recorder was late.",
                    many(*lost, "sample")
                ),
                "Measure fewer threads or a longer interval with --raw, or write to a faster disk.",
            ),
            Self::DrainLate { late_ns } => (
                "drain_late",
                Weakens,
                format!(
                    "The thread that records was late by {}: intervals are longer than planned.",
                    Nanos(*late_ns)
                ),
                "Leave it a CPU that is not measured, or give it real-time rights.",
            ),
            Self::RecordIncomplete { file, at_ns, error } => (
                "record_incomplete",
                Weakens,
                format!(
                    "Not everything could be written to disk: {file}{}: {error}.",
                    at_ns.map(|at_ns| format!(" at {}", moment(at_ns))).unwrap_or_default()
                ),
                "Free space, or choose another place with -o or --store.",
            ),
            Self::NoSamples => (
                "no_samples",
                Invalidates,
                "No sample was taken.".into(),
                "Make --duration longer than --interval.",
            ),
            Self::FiguresMissing { figures } => (
                "figures_missing",
                Weakens,
                format!("Not measured: {}.", list(figures, ", ", FigureGap::text)),
                "Give the run more --duration, remove what is in the way, or measure less.",
            ),
            Self::FiguresImpossible { figures } => (
                "figures_impossible",
                Invalidates,
                format!(
                    "Values that cannot be: {}. No time, rate, share or count is negative. The \
                     difference of two measured times, such as that of a context switch, becomes \
                     so if something else had the CPU during the second one.",
                    list(figures, ", ", ImpossibleFigure::text)
                ),
                "Measure again with less beside it (`tardy check --measure`, --shield), or with a \
                 longer --duration.",
            ),
            Self::PeriodsMissed { series } => (
                "periods_missed",
                Informs,
                format!(
                    "Many periods had no wake-up: {}.",
                    list(series, ", ", MissedPeriods::text)
                ),
                "Read the view per scheduled period; or choose a longer period (--interval) if the \
                 machine cannot keep up with this one.",
            ),
            Self::EarlyWakeups { early } => (
                "early_wakeups",
                Weakens,
                format!("{} occurred before the programmed time.", many(*early, "wake-up")),
                "Suspect the clock source or the hypervisor's timer; check `dmesg` for clock \
                 trouble.",
            ),
            Self::Interrupted { by } => (
                "interrupted",
                Informs,
                format!("The run was ended early by {by}; its data up to then is complete."),
                "Repeat it if you need its full length.",
            ),
            Self::Virtual { kind } => (
                "virtual_machine",
                Informs,
                format!("This is a virtual machine ({kind}): results include host delays."),
                "Measure on the bare machine for figures of the kernel alone.",
            ),
            Self::Happened(incident) => incident.words(),
            Self::Crashed => (
                "crashed",
                Weakens,
                "tardy was killed or the machine went down before the run ended; what had been \
                 written by then is shown."
                    .into(),
                "Repeat the run if you need its full length.",
            ),
            Self::SeriesDamaged { what } => (
                "series_damaged",
                Weakens,
                format!("series.hlog: {what}; the data after that is not shown."),
                "Copy the run directory again from where it was measured.",
            ),
            Self::SamplesDamaged { what } => (
                "samples_damaged",
                Weakens,
                format!("{what}; its samples are not shown."),
                "Copy the run directory again from where it was measured.",
            ),
            Self::TrackDamaged { what } => (
                "track_damaged",
                Informs,
                format!("{what}; that part is not shown."),
                "Copy the run directory again from where it was measured.",
            ),
        }
    }
}
