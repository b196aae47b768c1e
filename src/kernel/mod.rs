//! The kernel's side: programs that run inside the kernel at its tracepoints (eBPF) and write down
//! what becomes of the measured threads' wake-ups, into memory that this process maps.
//!
//! Needs `CAP_BPF` and `CAP_PERFMON` (or root) and a kernel that describes its own types (BTF);
//! whoever lacks that is told so by [`Lack`]. The programs belong to this process: the kernel
//! removes them when it ends, however it ends.

mod bootstrap;
mod event;
mod log;
mod memory;
mod percpu;
mod programs;
mod recorder;
mod symbols;
mod tracer;
#[cfg(test)]
mod tests;
mod window;

use thiserror::Error;

pub use bootstrap::can_trace;
pub use event::{Event, EventKind, entry, out, vector, why};
pub use memory::ThreadRecords;
pub use recorder::Recorder;
pub use symbols::Symbols;
pub use tracer::Tracer;

/// How much is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The stages of each wake-up, with the fewest programs.
    Stages,
    /// Also what happens on each CPU, so that late wake-ups can be explained.
    Peaks,
}

/// When the kernel's stack is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stacks {
    /// Never.
    Off,
    /// When a wake-up is late already, or is about to be.
    WhenLate,
    /// Also at each wake-up that found the CPU in the kernel. Dear.
    Always,
}

/// What a [`Tracer`] is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How much is watched.
    pub mode: Mode,
    /// When stacks are walked; only where events are recorded.
    pub stacks: Stacks,
    /// Events that are kept for each CPU, rounded up to a power of two; 32 bytes each.
    pub slots_per_cpu: u32,
}

impl Settings {
    /// Enough for 50 ms of a CPU that does nothing but switch tasks and take interrupts.
    pub const SLOTS_PER_CPU: u32 = 32_768;
    /// More are not given.
    pub const MOST_SLOTS: u32 = 1 << 20;
}

/// Why the kernel's side cannot watch; each text names the remedy.
#[derive(Debug, Error)]
pub enum Lack {
    /// This process may not.
    #[error(
        "no right to trace the kernel ({why}): run as root, or give the program \
         `setcap cap_bpf,cap_perfmon+ep`; in a container, start it with \
         `--cap-add BPF --cap-add PERFMON`"
    )]
    NoRights {
        /// What was refused.
        why: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "the kernel does not describe its types ({path}: {why}): boot a kernel that was built \
         with CONFIG_DEBUG_INFO_BTF=y, as those of distributions are"
    )]
    NoBtf {
        /// Where the description ought to lie.
        path: String,
        /// What reading it said.
        why: String,
    },
    /// The kernel's programs see other numbers of threads than this process does.
    #[error(
        "threads have numbers of their own in this container (PID namespace), which the kernel's \
         side does not see: start the container with `--pid host`"
    )]
    PidNamespace,
    /// The kernel lacks a tracepoint without which nothing can be said.
    #[error(
        "the kernel has no tracepoint {tracepoint}: stages need an x86-64 kernel whose timer \
         interrupts come from the CPU's own timer"
    )]
    NoTracepoint {
        /// Its name.
        tracepoint: String,
    },
    /// The kernel refuses a program without which nothing can be said.
    #[error(
        "the kernel refuses the program `{program}`: {why}; please report this with the version \
         of the kernel; `--trace off` measures without"
    )]
    Refused {
        /// The program's name.
        program: String,
        /// The end of what the kernel said.
        why: String,
    },
    /// More threads than can be told apart.
    #[error("{threads} threads are too many to trace: measure fewer, or with `--trace off`")]
    TooManyThreads {
        /// How many were asked for.
        threads: usize,
    },
    /// Anything else.
    #[error("{what}: {why}; `--trace off` measures without")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        why: String,
    },
}

/// A tracepoint that this kernel lacks, or whose program it refuses; the rest works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The tracepoint.
    pub what: String,
    /// What cannot be told without it.
    pub switches_off: String,
    /// Why it is not there.
    pub why: String,
}
