//! The BPF side: programs that run in the kernel at its tracepoints (eBPF) and record the measured
//! threads' wake-ups, in memory that this process maps.
//!
//! Needs `CAP_BPF` and `CAP_PERFMON` (or root) and a kernel that describes its own types (BTF);
//! [`TracingUnavailable`] says what is missing. The programs belong to this process:
//! the kernel removes them when it ends, however it ends.
//!
//! # What is recorded
//!
//! In mode [`TraceLevel::Stages`], for each measured thread, the last wake-up: expiry of the timer,
//! entry of its interrupt, callback, the moment the thread was made runnable, and switched in. In
//! mode [`TraceLevel::Peaks`] also, for each CPU, the last events of these kinds: switches of
//! tasks; wake-ups and moves of measured and of real-time tasks; interrupts, softirqs, timers, idle
//! states; interrupts sent to other CPUs; NMIs; page faults and contended locks of measured
//! threads; functions of timers, tasklets, kworkers and calls from other CPUs, and polls of network
//! devices, at their end where they took 5 us or more; frequencies that the kernel set; time that
//! KVM took from a guest. Stacks are
//! walked where [`Stacks`] says so: when the timer's interrupt came late into kernel code, when a
//! task kept the CPU after the wake-up, and, rarely, when the wake-up found a task that had been in
//! the kernel for more than 100 us. That last walk delays a wake-up that is not late yet; so it is
//! made once a millisecond and CPU at the most, and half as often each time that the wake-up then
//! was not late.
//!
//! # What it costs
//!
//! By the kernel's own count (`kernel.bpf_stats_enabled`) on a busy virtual machine with 2 CPUs and
//! kernel 6.18, ns a run: timer interrupt 450, expiry 90, wake-up 110 (of all tasks, most of which
//! are not measured), switch 70: about 0.8 us a wake-up with stages alone. With events:
//! 465, 115, 125 to 450, 150 to 250, and 220 at the end of the interrupt: about 1.4 us. The first
//! program after user mode pays for cold caches. A walked stack took 10 to 45 us there, a first one
//! 450. Memory: 1 MiB, and 1 MiB a CPU for events.
//!
//! # What is not seen
//!
//! Where interrupts were disabled, except by the stack and the address that a late interrupt came
//! back to; that they had only just been enabled is guessed from the bytes before that address
//! ([`entry::JUST_ENABLED`]). The way from the switch to user mode. What a hypervisor other than
//! KVM takes. System management interrupts. Timer interrupts that are not of the CPU's own timer
//! (HPET, Hyper-V) have no entry, so that their first stage counts as 0. On `PREEMPT_RT` a softirq
//! that is itself preempted cannot be distinguished from one that continues.

mod attach;
mod attach_config;
mod attach_load;
mod attach_ring;
mod attach_unavailable;
mod attach_waits;
mod attached_counts;
mod attached_thread;
mod bootstrap;
mod event;
mod event_flags;
mod frequencies;
mod header {
    //! The numbers of `recorder.h`, by their names there.
    #![expect(dead_code, reason = "not all of them are needed on this side")]
    include!(concat!(env!("OUT_DIR"), "/header.rs"));
}
mod kernel_names;
#[cfg(test)]
mod layout;
mod log;
mod memory;
mod percpu;
mod profiler;
mod programs;
mod recorder;
#[cfg(test)]
pub(crate) mod replay;
mod symbols;
pub mod tracefs;
mod tracepoint_arguments;
mod tracer;
#[cfg(test)]
mod tests;
mod types;
mod user_symbols;
mod window;

#[cfg(test)]
pub(crate) use window::Window;

use thiserror::Error;

pub use attach::{AttachPrograms, SlotError};
pub use attach_config::{AttachedCycles, AttachedTo};
pub use attach_unavailable::AttachUnavailable;
pub use attach_waits::WatchedWait;
pub use attached_counts::{AttachedCounts, OverCounts};
pub use attached_thread::{AttachedLate, AttachedThread, AttachedTime, FoundPeriod, bucket_bounds};
pub use bootstrap::can_trace;
pub use event::{Event, EventKind};
pub use event_flags::{Hold, RunsAhead, entry, function, futex, out, vector, why, woken};
pub use frequencies::SetFrequency;
pub use kernel_names::KernelNames;
pub use memory::ThreadRecords;
pub use profiler::{ProfileUnavailable, Profiler, ProgramCost, SampledContext, TaskSample};
pub use recorder::EventReader;
pub use symbols::Symbols;
pub use tracer::Tracer;
pub use user_symbols::{CodeMaps, CodePlace, FunctionNames, MappedFile};

/// How much is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceLevel {
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
    /// Also at each wake-up that interrupted the kernel. Expensive.
    Always,
}

/// What wakes the measured threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WokenBy {
    /// Their own timers.
    Timers,
    /// Messages: nothing of timers is recorded with a wake-up, and when one is late is not known.
    Messages,
    /// Either: a thread may send by a timer and receive what wakes it.
    Both,
}

/// What a [`Tracer`] is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How much is traced.
    pub mode: TraceLevel,
    /// When stacks are walked; only where events are recorded.
    pub stacks: Stacks,
    /// What wakes the threads.
    pub woken_by: WokenBy,
    /// Whether it is looked up which tasks sleep for a futex: 30 ns of each such switch.
    pub futexes: bool,
    /// Events that are kept for each CPU, rounded up to a power of two; 32 bytes each.
    pub slots_per_cpu: u32,
}

impl Settings {
    /// Enough for 50 ms of a CPU that does nothing but switch tasks and take interrupts.
    pub const SLOTS_PER_CPU: u32 = 32_768;
    /// Enough for seconds of a busy CPU: 8 MiB each.
    pub const SLOTS_TO_RECORD: u32 = 1 << 18;
    /// More are not given.
    pub const MOST_SLOTS: u32 = 1 << 20;
}

/// Why nothing can be traced; each text names the remedy.
#[derive(Debug, Error)]
pub enum TracingUnavailable {
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
        /// Where the description should be.
        path: String,
        /// What reading it said.
        why: String,
    },
    /// The BPF programs see other numbers of threads than this process does.
    #[error(
        "threads have separate numbers in this container (PID namespace), which the BPF \
         programs do not see: start the container with `--pid host`"
    )]
    PidNamespace,
    /// The BPF programs see another time than this process does.
    #[error(
        "clocks are shifted in this container (time namespace), which the BPF programs do not \
         see: start the container without a time namespace"
    )]
    TimeNamespace,
    /// The kernel's BPF cannot do what the programs need.
    #[error(
        "the BPF programs need Linux 5.12 or later (arm64: 5.18), and this is {release}: boot a \
         newer kernel"
    )]
    TooOld {
        /// The kernel's release.
        release: String,
    },
    /// The kernel lacks a tracepoint without which nothing can be traced.
    #[error(
        "the kernel has no tracepoint {tracepoint}, or one with other arguments: use a \
         kernel of 5.12 or later (arm64: 5.18), as distributions build them"
    )]
    NoTracepoint {
        /// Its name.
        tracepoint: String,
    },
    /// The kernel refuses a program without which nothing can be traced.
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
    /// More threads than there is room for.
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
    /// What cannot be measured without it.
    pub switches_off: String,
    /// Why it is missing.
    pub why: String,
}
