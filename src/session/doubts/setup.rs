//! Caveats of what was to be arranged, and could not be or was left behind.

use super::super::evidence::SetupEvidence;
use crate::{
    run::{Caveat, Doubt, SetupDoubt, ThreadCaveat},
    setup::{
        journal::{Recovered, Undone},
        shield::ShieldGaps,
    },
};

pub fn caveats(setup: &SetupEvidence) -> Vec<Doubt> {
    let mut found = Vec::new();
    if let Some((policy, priority, error)) = setup.real_time_refused.clone() {
        found.push(ThreadCaveat::NoRealTime { policy, priority, error }.into());
    }
    found.extend(of_left(&setup.left).map(Doubt::from));
    let memory = setup.memory_refused.clone();
    found.extend(memory.map(|error| Doubt::MemoryNotLocked { error }));
    let dma_latency = setup.dma_latency_refused.clone();
    found.extend(dma_latency.map(|error| Doubt::DmaLatencyNotHeld { error }));
    if let Some(end) = setup.watchdog {
        let (silent_s, made_ordinary) = (end.silent_s, end.made_ordinary);
        found.push(SetupDoubt::WatchdogEnded { silent_s, made_ordinary }.into());
    }
    found.extend(setup.shield.iter().flat_map(of_shield).map(Doubt::from));
    if !setup.not_put_back.is_empty() {
        found.push(SetupDoubt::NotPutBack { failed: setup.not_put_back.clone() }.into());
    }
    found
}

/// The caveat of what a killed tardy left changed or a living one holds, if there is one.
#[must_use]
pub fn left_changed(left: &Recovered) -> Option<Caveat> {
    of_left(left).map(Doubt::from).map(Caveat::from)
}

/// The caveats of a shield.
#[must_use]
pub fn shield_gaps(gaps: &ShieldGaps) -> Vec<Caveat> {
    of_shield(gaps).into_iter().map(Doubt::from).map(Caveat::from).collect()
}

fn of_left(left: &Recovered) -> Option<SetupDoubt> {
    match left {
        Recovered::Nothing | Recovered::OtherBoot => None,
        Recovered::Alive(owner) => {
            Some(SetupDoubt::HeldByOther { pid: owner.pid, command: owner.command.clone() })
        }
        Recovered::Undone(Undone { failed, .. }) => {
            (!failed.is_empty()).then(|| SetupDoubt::LeftChanged { failed: failed.clone() })
        }
    }
}

fn of_shield(gaps: &ShieldGaps) -> Vec<SetupDoubt> {
    let ShieldGaps { cpus, interrupts, options, helpers_inside, irqbalance } = gaps.clone();
    let mut found = Vec::new();
    if !interrupts.is_empty() {
        found.push(SetupDoubt::InterruptsStay { interrupts, cpus: cpus.clone() });
    }
    if !options.is_empty() || helpers_inside {
        found.push(SetupDoubt::ShieldLimits { cpus, options, helpers_inside });
    }
    found.extend(irqbalance.then_some(SetupDoubt::Irqbalance));
    found
}
