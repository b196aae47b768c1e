//! What a doubt says: code, effect, text and remedy. A table, one arm a code.

use super::Doubt;
use crate::run::caveat::Effect;

impl Doubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::Setup(doubt) => doubt.words(),
            Self::Lab(doubt) => doubt.words(),
            Self::Trace(doubt) => doubt.words(),
            Self::Message(doubt) => doubt.words(),
            Self::Receive(doubt) => doubt.words(),
            Self::NoRealTime { wanted, why } => (
                "no_real_time",
                Weakens,
                format!("The measured threads ran as ordinary tasks, not {wanted}: {why}."),
                "Run as root, or give CAP_SYS_NICE, or a line `@group - rtprio 95` in \
                 /etc/security/limits.conf; or say --policy other if that is what you mean.",
            ),
            Self::ThreadNotAsAsked { what } => (
                "thread_not_as_asked",
                Invalidates,
                format!("Read back from the kernel: {what}."),
                "Look for whoever changes threads behind tardy's back (a cgroup, a daemon that \
                 adjusts priorities), and repeat the run.",
            ),
            Self::MemoryNotLocked { why } => (
                "memory_not_locked",
                Weakens,
                format!("Memory is not locked, so that a page fault may be in the numbers: {why}."),
                "Run as root, or give CAP_IPC_LOCK, or a line `@group - memlock unlimited` in \
                 /etc/security/limits.conf.",
            ),
            Self::DmaLatencyNotHeld { why } => (
                "dma_latency_not_held",
                Weakens,
                format!(
                    "/dev/cpu_dma_latency is not held, so that the exit of deep idle states is in \
                     the numbers: {why}."
                ),
                "Run as root or make the device writable for your group; or say \
                 --no-dma-latency if idle exits belong to what you measure.",
            ),
            Self::HelpersNotRealTime { why } => (
                "helpers_not_real_time",
                Informs,
                format!("The threads that record run as ordinary tasks: {why}."),
                "Run as root or give CAP_SYS_NICE where a load starves them.",
            ),
            Self::PageFaults { what } => (
                "page_faults",
                Weakens,
                format!("Measured threads took page faults: {what}."),
                "Lock memory (see memory_not_locked), and leave more of it free.",
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
            Self::LoadInPart { load, what } => (
                "load_in_part",
                Weakens,
                format!("Of the load {load}, {what} completed not one operation."),
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
            Self::DrainLate { by } => (
                "drain_late",
                Weakens,
                format!(
                    "The thread that records was late by {by}: intervals are longer than said."
                ),
                "Leave it a CPU that is not measured, or give it real-time rights.",
            ),
            Self::RecordIncomplete { what } => (
                "record_incomplete",
                Weakens,
                format!("The disk did not take everything: {what}."),
                "Free space, or choose another place with -o or --store.",
            ),
            Self::WaitFailed { what } => (
                "wait_failed",
                Invalidates,
                format!("A measuring loop ended with an error: {what}."),
                "Try another --wake, and report it with the kernel's version.",
            ),
            Self::NoSamples => (
                "no_samples",
                Invalidates,
                "Not one sample was taken.".into(),
                "Make --duration longer than --interval.",
            ),
            Self::PeriodsMissed { what } => (
                "periods_missed",
                Informs,
                format!("Many periods passed without a wake-up of their own: {what}."),
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
            Self::Interrupted { how } => (
                "interrupted",
                Informs,
                format!("The run was ended early by {how}; what it has, is whole."),
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
