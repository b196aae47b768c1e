//! Caveats about a run in a virtual machine of the lab, and their texts.

use serde::Serialize;

use crate::run::caveat::Effect;

/// What figures in counted time mean, after "times are ...". Part of every output of the lab.
pub const COUNTED_TIME: &str = "executed instructions times 2 ns on one emulated CPU: lengths of \
     the kernel's paths, without caches, TLB misses, devices, frequency changes or other CPUs; a \
     maximum is the largest seen, not a bound";

/// A caveat about a run of the lab. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum LabCaveat {
    /// Time was the count of instructions.
    CountedTime,
    /// The emulator gave several CPUs turns.
    CpusInTurns {
        /// How many.
        cpus: u8,
    },
    /// The guest was emulated in the host's time.
    Emulated,
    /// The guest's kernel complained.
    KernelWarned {
        /// How often.
        count: u32,
        /// The first line of the first warning.
        first: String,
    },
    /// Something that the lab looks for is not in the kernel.
    KernelLacks {
        /// What, and what is missing therefore.
        lack: String,
    },
}

impl LabCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::CountedTime => (
                "counted_time",
                Informs,
                format!("Times are {COUNTED_TIME}."),
                "Compare kernels by it; measure on the machine itself for times of the machine.",
            ),
            Self::CpusInTurns { cpus } => (
                "cpus_in_turns",
                Weakens,
                format!(
                    "The emulator ran {cpus} CPUs in turns of about 0.7 ms: where more than one \
                     was busy, these turns are in the numbers."
                ),
                "Use one CPU for latencies; use several only for functional tests.",
            ),
            Self::Emulated => (
                "emulated",
                Weakens,
                "The kernel was emulated in the host's time: the numbers include the host's \
                 noise and support no verdict."
                    .into(),
                "Use --mode deterministic; or a machine where KVM works.",
            ),
            Self::KernelWarned { count, first } => (
                "kernel_warned",
                Informs,
                match count {
                    1 => format!("The kernel warned on its console: {first}."),
                    _ => format!("The kernel warned on its console: {count} times, first {first}."),
                },
                "Look for the cause in this kernel: what it warns of may be in the numbers.",
            ),
            Self::KernelLacks { lack } => (
                "kernel_lacks",
                Informs,
                format!("The kernel of the guest lacks something: {lack}."),
                "Build it into the kernel, or give modules=DIR, where a load needs it.",
            ),
        }
    }
}
