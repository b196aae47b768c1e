//! What a doubt says: code, effect, text and remedy. A table, one arm a code.

use super::{
    CaveatKind, MissedPeriods,
    values::{list, moment},
};
use crate::{run::caveat::Effect, units::Nanos};

impl CaveatKind {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::Threads(caveat) => caveat.words(),
            Self::Setup(kind) => kind.words(),
            Self::Lab(kind) => kind.words(),
            Self::Trace(kind) => kind.words(),
            Self::Message(kind) => kind.words(),
            Self::Receive(kind) => kind.words(),
            Self::MemoryNotLocked { error } => (
                "memory_not_locked",
                Weakens,
                format!(
                    "Memory is not locked, so that a page fault may be in the numbers: {error}."
                ),
                "Run as root, or give CAP_IPC_LOCK, or a line `@group - memlock unlimited` in \
                 /etc/security/limits.conf.",
            ),
            Self::DmaLatencyNotHeld { error } => (
                "dma_latency_not_held",
                Weakens,
                format!(
                    "/dev/cpu_dma_latency is not held, so that the exit of deep idle states is in \
                     the numbers: {error}."
                ),
                "Run as root or make the device writable for your group; or say \
                 --no-dma-latency if idle exits belong to what you measure.",
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
                "Look into load.log of the run, and repeat it.",
            ),
            Self::LoadDidNothing { load } => (
                "load_did_nothing",
                Invalidates,
                format!("The load {load} did not complete one operation while the run went on."),
                "Give the load CPU time (a higher interval, fewer measured threads), or a longer \
                 run.",
            ),
            Self::LoadInPart { load, tasks_idle, tasks } => (
                "load_in_part",
                Weakens,
                format!(
                    "Of the load {load}, {tasks_idle} of {tasks} tasks completed not one operation."
                ),
                "Give the run more time, or the load fewer tasks.",
            ),
            Self::SamplesLost { lost } => (
                "samples_lost",
                Weakens,
                format!(
                    "{lost} samples reached the histogram but not samples/: the recorder was late."
                ),
                "Measure fewer threads or a longer interval with --raw, or write to a faster disk.",
            ),
            Self::DrainLate { late_ns } => (
                "drain_late",
                Weakens,
                format!(
                    "The thread that records was late by {}: intervals are longer than said.",
                    Nanos(*late_ns)
                ),
                "Leave it a CPU that is not measured, or give it real-time rights.",
            ),
            Self::RecordIncomplete { file, at_ns, error } => (
                "record_incomplete",
                Weakens,
                format!(
                    "The disk did not take everything: {file}{}: {error}.",
                    at_ns.map(|at_ns| format!(" at {}", moment(at_ns))).unwrap_or_default()
                ),
                "Free space, or choose another place with -o or --store.",
            ),
            Self::NoSamples => (
                "no_samples",
                Invalidates,
                "Not one sample was taken.".into(),
                "Make --duration longer than --interval.",
            ),
            Self::PeriodsMissed { series } => (
                "periods_missed",
                Informs,
                format!(
                    "Many periods passed without a wake-up of their own: {}.",
                    list(series, ", ", MissedPeriods::text)
                ),
                "Read the view per scheduled period; or choose a longer --interval if the machine \
                 cannot keep up with this one.",
            ),
            Self::EarlyWakeups { early } => (
                "early_wakeups",
                Weakens,
                format!("{early} wake-ups came before their programmed time."),
                "Suspect the clock source or the hypervisor's timer; look at `dmesg` for clock \
                 trouble.",
            ),
            Self::Interrupted { by } => (
                "interrupted",
                Informs,
                format!("The run was ended early by {by}; what it has, is whole."),
                "Repeat it if you need its full length.",
            ),
            Self::Virtual { kind } => (
                "virtual_machine",
                Informs,
                format!(
                    "This is a virtual machine ({kind}): delays of its host are in the numbers."
                ),
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
                format!("series.hlog: {what}; what comes after is missing from what is shown."),
                "Copy the run directory again from where it was measured.",
            ),
            Self::SamplesDamaged { what } => (
                "samples_damaged",
                Weakens,
                format!("{what}; its samples are missing from what is shown."),
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
