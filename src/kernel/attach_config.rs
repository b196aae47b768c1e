//! What the programs that follow threads of others are told: whose, and whether their work counts.

use std::fs;

use super::{header, percpu, tracepoint_arguments::TracepointArguments, types::KernelTypes};

/// Whether the work of threads is measured, from one expiry of their timers to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttachedCycles {
    /// No.
    #[default]
    Unmeasured,
    /// It is; what takes longer than this is over the deadline, ns.
    Measured(Option<u64>),
}

/// Which threads are attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachedTo {
    /// All threads of this process.
    Process(u32),
    /// This thread.
    Thread(u32),
    /// All threads of this name, of which the kernel knows the first 15 bytes.
    Name(Vec<u8>),
    /// Those that are given a place by [`super::attach::AttachPrograms::add`], and whatever they
    /// start.
    Children,
}

/// `struct tardy_attach_config`.
pub(super) fn config(
    to: &AttachedTo,
    cycles: AttachedCycles,
    types: &KernelTypes,
    arguments: &TracepointArguments,
    soft_timers: bool,
) -> Vec<u8> {
    let (mode, target) = match to {
        AttachedTo::Process(pid) => (header::TARDY_ATTACH_PROCESS, *pid),
        AttachedTo::Thread(tid) => (header::TARDY_ATTACH_THREAD, *tid),
        AttachedTo::Name(_) => (header::TARDY_ATTACH_NAME, 0),
        AttachedTo::Children => (header::TARDY_ATTACH_CHILDREN, 0),
    };
    let [preempt_count, pcpu_hot] = percpu::counts_from_runqueues(types);
    let has_state = u32::from(percpu::switch_has_state(types));
    let offsets = [preempt_count.0.cast_unsigned(), pcpu_hot.0.cast_unsigned()];
    let (response, deadline_ns) = match cycles {
        AttachedCycles::Unmeasured => (0, 0),
        AttachedCycles::Measured(deadline_ns) => (1, deadline_ns.unwrap_or(0)),
    };
    let has_time = u32::from(arguments.expire_has_time());
    let words = [mode, target, has_state].into_iter().chain(offsets);
    let words = words.chain([response, has_time, soft_timers.into()]);
    words.flat_map(u32::to_ne_bytes).chain(deadline_ns.to_ne_bytes()).collect()
}

/// Numbers of threads are below this.
pub(super) fn greatest_number() -> usize {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(4 << 20)
}
