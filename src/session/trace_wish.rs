//! What is to be traced.

use crate::{
    kernel::Stacks,
    run::{TraceBy, TraceMode},
};

/// What the user wants to know about late wake-ups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceWish {
    /// How much.
    pub mode: TraceMode,
    /// By whom; absent for BPF, and the kernel's own tracer where that cannot be had.
    pub by: Option<TraceBy>,
    /// When the kernel's stack is walked.
    pub stacks: Stacks,
    /// The number of worst wake-ups that are kept complete.
    pub keep: usize,
    /// Instead all later than this, ns.
    pub peak_over_ns: Option<i64>,
    /// The bytes of the disk that peaks may take.
    pub peak_room: u64,
    /// The time at the end of the run of which all activity of the CPUs is kept, ns.
    pub record_ns: Option<i64>,
    /// What it costs is measured before the run.
    pub calibrate: bool,
}

impl TraceWish {
    /// What the user gave that asks for it.
    pub(super) fn asked(&self) -> String {
        match self.record_ns {
            Some(_) => "--record".into(),
            None => format!("--trace {}", self.mode.as_str()),
        }
    }
}
