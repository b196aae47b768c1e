//! What differs from kernel to kernel: where per-CPU variables are, arguments of tracepoints.
//!
//! Few kernels have their addresses in the symbol table, but BTF has their offsets in the section
//! `.data..percpu`, and the programs get the address of one of them from every timer that expires.

use super::types::KernelTypes;
use crate::sys::hypervisor;

/// Arguments of `sched_switch` where the state of the task that is left is the last one.
const WITH_STATE: usize = 4;

/// Offset of a variable from `hrtimer_bases` of the same CPU, in bytes; [`PercpuOffset::NONE`]
/// where this kernel has no such variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PercpuOffset(pub i32);

impl PercpuOffset {
    /// `TARDY_NO_OFFSET`.
    pub(super) const NONE: Self = Self(i32::MIN);
}

/// The variables that the programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PercpuOffsets {
    /// Registers of the interrupted code.
    pub irq_regs: PercpuOffset,
    /// The preempt count, where it is its own variable.
    pub preempt_count: PercpuOffset,
    /// What holds that count from 6.2 to 6.14.
    pub pcpu_hot: PercpuOffset,
    /// Time that KVM took, as it reports it; only where it does.
    pub steal_time: PercpuOffset,
}

impl PercpuOffsets {
    /// None is known.
    pub(super) const NONE: Self = Self {
        irq_regs: PercpuOffset::NONE,
        preempt_count: PercpuOffset::NONE,
        pcpu_hot: PercpuOffset::NONE,
        steal_time: PercpuOffset::NONE,
    };

    /// Of the kernel with these types.
    pub(super) fn of_kernel(types: &KernelTypes) -> Self {
        let names = ["hrtimer_bases", "__irq_regs", "__preempt_count", "pcpu_hot", "steal_time"];
        let offsets = types.per_cpu(names);
        let found = Self::from(&|name| {
            names.iter().zip(offsets).find(|(known, _)| **known == name).and_then(|it| it.1)
        });
        // Guests' kernels have the variable on any machine; reading what never changes costs as
        // much.
        match hypervisor::kvm_counts_steal() {
            true => found,
            false => Self { steal_time: PercpuOffset::NONE, ..found },
        }
    }

    fn from(offset: &dyn Fn(&str) -> Option<u32>) -> Self {
        let relative = |name| {
            let offset_from_bases = i64::from(offset(name)?) - i64::from(offset("hrtimer_bases")?);
            i32::try_from(offset_from_bases).ok().map(PercpuOffset)
        };
        let relative = |name| relative(name).unwrap_or(PercpuOffset::NONE);
        Self {
            irq_regs: relative("__irq_regs"),
            preempt_count: relative("__preempt_count"),
            pcpu_hot: relative("pcpu_hot"),
            steal_time: relative("steal_time"),
        }
    }
}

/// Offsets from `runqueues` of the preempt count and of `pcpu_hot`, for programs that know no
/// timer.
pub(super) fn counts_from_runqueues(types: &KernelTypes) -> [PercpuOffset; 2] {
    let [base, counts @ ..] = types.per_cpu(["runqueues", "__preempt_count", "pcpu_hot"]);
    counts.map(|offset| {
        let offset = offset.zip(base).map(|(of, base)| i64::from(of) - i64::from(base));
        let offset = offset.and_then(|offset| i32::try_from(offset).ok());
        offset.map_or(PercpuOffset::NONE, PercpuOffset)
    })
}

/// Whether `sched_switch` passes the state in which a task is left: since 5.18 it is appended
/// (kernel commit 9c2136be0878).
pub(super) fn switch_has_state(types: &KernelTypes) -> bool {
    types.arguments("sched_switch").is_some_and(|arguments| arguments.len() == WITH_STATE)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::kernel::bootstrap::BTF;

    #[test]
    fn offsets_are_relative_to_the_clock_bases_in_either_direction() {
        let offset = |name: &str| match name {
            "hrtimer_bases" => Some(1000),
            "__irq_regs" => Some(1800),
            "steal_time" => Some(64),
            _ => None,
        };
        let found = PercpuOffsets::from(&offset);
        assert_eq!((found.irq_regs, found.steal_time), (PercpuOffset(800), PercpuOffset(-936)));
        assert_eq!((found.preempt_count, found.pcpu_hot), (PercpuOffset::NONE, PercpuOffset::NONE));
    }

    #[test]
    fn the_running_kernel_has_its_variables_and_arguments() {
        if Path::new(BTF).exists() {
            let types = KernelTypes::read(Path::new(BTF)).unwrap();
            let found = PercpuOffsets::of_kernel(&types);
            assert_ne!(found.irq_regs, PercpuOffset::NONE);
            let counts = [found.preempt_count, found.pcpu_hot];
            assert!(counts.iter().any(|count| *count != PercpuOffset::NONE), "{counts:?}");
            let from_queues = counts_from_runqueues(&types);
            let is_known = from_queues.map(|count| count != PercpuOffset::NONE);
            assert_eq!(is_known, counts.map(|count| count != PercpuOffset::NONE));
            let arguments = |name| types.arguments(name).map(|arguments| arguments.len());
            assert_eq!(arguments("hrtimer_expire_entry"), Some(2));
            assert!([Some(3), Some(WITH_STATE)].contains(&arguments("sched_switch")));
            assert_eq!(arguments("no_such_tracepoint"), None);
        }
    }
}
