//! Where the kernel keeps what it knows about a CPU: variables of which each CPU has its own.
//!
//! Their addresses are known to few kernels' symbol tables, but the description of its types tells
//! how far they lie apart, and the programs meet one of them with every timer that expires.

use std::path::Path;

use libbpf_rs::btf::{Btf, types::DataSec};

/// How far a variable lies from the clock bases of the timers (`hrtimer_bases`) of the same CPU,
/// in bytes; [`Distance::UNKNOWN`] where this kernel has no such variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance(pub i32);

impl Distance {
    /// No variable lies so far away.
    pub const UNKNOWN: Self = Self(i32::MIN);
}

/// The variables that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    /// Registers of what was interrupted.
    pub irq_regs: Distance,
    /// How deep preemption is disabled, where that is a variable of its own.
    pub preempt_count: Distance,
    /// What holds that count from 6.2 to 6.14.
    pub pcpu_hot: Distance,
    /// What the hypervisor took.
    pub steal_time: Distance,
}

impl Variables {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        irq_regs: Distance::UNKNOWN,
        preempt_count: Distance::UNKNOWN,
        pcpu_hot: Distance::UNKNOWN,
        steal_time: Distance::UNKNOWN,
    };

    /// Of the kernel that is described in this file; nothing is known where it cannot be read.
    pub fn read(btf: &Path) -> Self {
        let offsets = offsets(btf).unwrap_or_default();
        Self::from(&|name| offsets.iter().find(|(known, _)| known == name).map(|it| it.1))
    }

    fn from(offset: &dyn Fn(&str) -> Option<u32>) -> Self {
        let distance = |name| {
            let between = i64::from(offset(name)?) - i64::from(offset("hrtimer_bases")?);
            i32::try_from(between).ok().map(Distance)
        };
        let distance = |name| distance(name).unwrap_or(Distance::UNKNOWN);
        Self {
            irq_regs: distance("__irq_regs"),
            preempt_count: distance("__preempt_count"),
            pcpu_hot: distance("pcpu_hot"),
            steal_time: distance("steal_time"),
        }
    }
}

/// Names of the variables that each CPU has its own of, and where they lie among each other.
fn offsets(btf: &Path) -> Option<Vec<(String, u32)>> {
    let btf = Btf::from_path(btf).ok()?;
    let section: DataSec<'_> = btf.type_by_name(".data..percpu")?;
    let variables = section.iter().filter_map(|variable| {
        let of: libbpf_rs::btf::BtfType<'_> = btf.type_by_id(variable.ty)?;
        Some((of.name()?.to_str()?.to_owned(), variable.offset))
    });
    Some(variables.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bootstrap::BTF;

    #[test]
    fn distances_are_from_the_clock_bases_in_either_direction() {
        let offset = |name: &str| match name {
            "hrtimer_bases" => Some(1000),
            "__irq_regs" => Some(1800),
            "steal_time" => Some(64),
            _ => None,
        };
        let found = Variables::from(&offset);
        assert_eq!((found.irq_regs, found.steal_time), (Distance(800), Distance(-936)));
        assert_eq!((found.preempt_count, found.pcpu_hot), (Distance::UNKNOWN, Distance::UNKNOWN));
    }

    #[test]
    fn where_nothing_is_described_nothing_is_known() {
        assert_eq!(Variables::read(Path::new("/nonexistent")), Variables::UNKNOWN);
        if Path::new(BTF).exists() {
            let found = Variables::read(Path::new(BTF));
            assert_ne!(found.irq_regs, Distance::UNKNOWN);
            let counts = [found.preempt_count, found.pcpu_hot];
            assert!(counts.iter().any(|count| *count != Distance::UNKNOWN), "{counts:?}");
        }
    }
}
