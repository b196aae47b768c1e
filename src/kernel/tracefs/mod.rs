//! The kernel's own trace (tracefs), for kernels where BPF programs are refused or impossible: the
//! wake-ups of the measured threads, and what every CPU does, out of binary pages that are decoded
//! by the kernel's own description of them.
//!
//! # What is recorded
//!
//! A separate instance of the tracer, `instances/tardy-PID`, with the clock `mono`, which is
//! that of the measurement, and a buffer of 2 MiB for each CPU: what others trace is neither seen
//! nor touched. For stages: `sched_waking` and `sched_switch` of the measured threads,
//! `hrtimer_start` by them, every `hrtimer_expire_entry` and `local_timer_entry`, and with
//! `PREEMPT_RT` the softirq of timers. For causes also all switches and timers, wake-ups and moves
//! of real-time tasks, interrupts, softirqs, idle states, interrupts sent to other CPUs, and NMIs.
//!
//! # What is not seen
//!
//! All that the BPF programs do not see either; and stacks, the interrupted instruction, time that
//! a hypervisor took, page faults, locks, and functions that took long. Of an interrupt sent to
//! several CPUs, those from the 64th on.
//!
//! The numbers of threads are those of the first PID namespace, as with BPF.

mod decoder;
mod format;
mod hwlat;
mod instance;
mod known;
mod page;
mod store;
mod tracer;
mod wakeups;

use std::{io, path::Path};

use thiserror::Error;

pub use decoder::{Decoder, PageEnd, Timed, TraceEvent};
pub use hwlat::{HwlatLine, HwlatRecord, HwlatTracer};
pub use store::EventStore;
pub use tracer::{LostOfCpu, TracefsTracer};
pub use wakeups::TimerWakeup;

/// Why the kernel's trace cannot be had; each text names the remedy.
#[derive(Debug, Error)]
pub enum TracefsUnavailable {
    /// It is missing.
    #[error(
        "the kernel's trace is not there ({path}): mount it, \
         `mount -t tracefs nodev /sys/kernel/tracing`; its kernel needs CONFIG_FTRACE and \
         CONFIG_ENABLE_DEFAULT_TRACERS or a tracer, as those of distributions have"
    )]
    NotThere {
        /// What is missing.
        path: String,
    },
    /// This process may not.
    #[error("no right to use the kernel's trace ({path}: {why}): run as root")]
    NoRights {
        /// What was refused.
        path: String,
        /// What the kernel said.
        why: String,
    },
    /// An instance of the same name is there.
    #[error(
        "{path} is there already, left by a process of the same number: remove it (`rmdir {path}`)"
    )]
    Left {
        /// The instance.
        path: String,
    },
    /// The description of pages and events is of another kind.
    #[error(
        "this kernel describes its trace in a way that tardy does not understand \
         (/sys/kernel/tracing/events/header_page, header_event): please report this with the \
         version of the kernel"
    )]
    Unknown,
    /// An event without which nothing can be traced.
    #[error("the kernel's trace has no event {event}, without which wake-ups have no stages")]
    NoEvent {
        /// Its directory.
        event: String,
    },
    /// The tracer of hardware latency.
    #[error(
        "this kernel has no hwlat tracer, which reads the clock with interrupts off \
         (CONFIG_HWLAT_TRACER)"
    )]
    NoHwlat,
    /// The trace has other numbers of threads than this process.
    #[error(
        "threads have separate numbers in this container (PID namespace), which the kernel's \
         trace does not have: start the container with `--pid host`"
    )]
    PidNamespace,
    /// The trace has another time than this process.
    #[error(
        "clocks are shifted in this container (time namespace), which the kernel's trace does \
         not see: start the container without a time namespace"
    )]
    TimeNamespace,
    /// Anything else.
    #[error("{path}: {why}")]
    System {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
}

impl TracefsUnavailable {
    fn of(path: &Path, error: &io::Error) -> Self {
        let (path, why) = (path.display().to_string(), error.to_string());
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotThere { path },
            io::ErrorKind::PermissionDenied => Self::NoRights { path, why },
            io::ErrorKind::AlreadyExists => Self::Left { path },
            _ => Self::System { path, why },
        }
    }
}
