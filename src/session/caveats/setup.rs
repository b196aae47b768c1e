//! Caveats of what was to be arranged, and could not be or was left behind.

use super::super::evidence::{NoHigherPriority, SetupEvidence};
use crate::{
    run::{Caveat, CaveatKind, SetupCaveat, ShieldCaveat, ThreadCaveat},
    setup::{
        journal::{Recovered, Undone},
        settings::SettingLoss,
        shield::{ShieldGaps, ShieldLoss},
    },
};

pub(super) fn caveats(setup: &SetupEvidence) -> Vec<CaveatKind> {
    let mut found = Vec::new();
    if let Some((policy, priority, error)) = setup.real_time_refused.clone() {
        found.push(ThreadCaveat::NoRealTime { policy, priority, error }.into());
    }
    found.extend(of_left(&setup.left).map(CaveatKind::from));
    let memory = setup.memory_refused.clone();
    found.extend(memory.map(|error| CaveatKind::MemoryNotLocked { error }));
    let dma_latency = setup.dma_latency_refused.clone();
    found.extend(dma_latency.map(|error| CaveatKind::DmaLatencyNotHeld { error }));
    if let Some(NoHigherPriority { unbounded }) = setup.nothing_above.clone() {
        found.push(SetupCaveat::NoHigherPriority { unbounded }.into());
    }
    if let Some(end) = setup.watchdog {
        let (silent_s, made_ordinary) = (end.silent_s, end.made_ordinary);
        found.push(SetupCaveat::WatchdogEnded { silent_s, made_ordinary }.into());
    }
    found.extend(setup.shield.iter().flat_map(of_shield).map(CaveatKind::from));
    found.extend(undone_shield(setup).map(CaveatKind::from));
    if let Some(SettingLoss { name, place, was, now }) = setup.setting_loss.clone() {
        found.push(SetupCaveat::SettingChanged { name, place, was, now }.into());
    }
    if !setup.not_put_back.is_empty() {
        found.push(SetupCaveat::NotPutBack { failed: setup.not_put_back.clone() }.into());
    }
    found
}

/// The caveat of what a killed tardy left changed or a living one holds, if there is one.
#[must_use]
pub(crate) fn left_changed(left: &Recovered) -> Option<Caveat> {
    of_left(left).map(CaveatKind::from).map(Caveat::from)
}

/// The caveats of a shield.
#[must_use]
pub(crate) fn shield_gaps(gaps: &ShieldGaps) -> Vec<Caveat> {
    of_shield(gaps).into_iter().map(CaveatKind::from).map(Caveat::from).collect()
}

fn of_left(left: &Recovered) -> Option<SetupCaveat> {
    match left {
        Recovered::Nothing | Recovered::OtherBoot => None,
        // `tardy shield 1 -- tardy run`: what that changed is meant for this run.
        Recovered::Alive(owner) if owner.is_ancestor() => None,
        Recovered::Alive(owner) => {
            Some(SetupCaveat::HeldByOther { pid: owner.pid, command: owner.command.clone() })
        }
        Recovered::Unknown(why) => Some(SetupCaveat::JournalUnread { why: why.clone() }),
        Recovered::Undone(Undone { failed, .. }) => {
            (!failed.is_empty()).then(|| SetupCaveat::LeftChanged { failed: failed.clone() })
        }
    }
}

fn of_shield(gaps: &ShieldGaps) -> Vec<ShieldCaveat> {
    let ShieldGaps { cpus, interrupts, options, helpers_inside, irqbalance } = gaps.clone();
    let mut found = Vec::new();
    if !interrupts.is_empty() {
        found.push(ShieldCaveat::InterruptsStay { interrupts, cpus: cpus.clone() });
    }
    if !options.is_empty() || helpers_inside {
        found.push(ShieldCaveat::Limits { cpus, options, helpers_inside });
    }
    found.extend(irqbalance.then_some(ShieldCaveat::Irqbalance));
    found
}

/// What was found changed of a shield, and when.
pub(super) fn of_loss((loss, at_ns): (ShieldLoss, Option<i64>)) -> ShieldCaveat {
    let ShieldLoss { cpus, path, was, now } = loss;
    ShieldCaveat::Lost { cpus, path, was, now, at_ns }
}

/// That a shield did not stay as it was.
fn undone_shield(setup: &SetupEvidence) -> impl Iterator<Item = ShieldCaveat> {
    let lost = setup.shield_loss.clone().map(of_loss);
    let interrupts = setup.interrupts_back.clone();
    let cpus = setup.shield.as_ref().filter(|_| !interrupts.is_empty());
    let cpus = cpus.map(|shield| shield.cpus.clone());
    lost.into_iter().chain(cpus.map(|cpus| ShieldCaveat::InterruptsBack { interrupts, cpus }))
}
