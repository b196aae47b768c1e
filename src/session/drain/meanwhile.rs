//! `live.json`: what stands in no other file yet, for those who look at the run while it goes on.

use std::sync::{Arc, atomic::AtomicBool};

use tardy_hot::clock::now_ns;

use super::{DrainInputs, Thread};
use crate::{
    loads::RunningLoad,
    run::{CaveatKind, Document, LiveLoad, LiveState, names},
    session::{
        caveats,
        evidence::{Evidence, MachineEvidence, Recording},
        plan::RunPlan,
    },
    sys::cpus::Cpus,
};

/// What is known of a run when it begins.
#[derive(Debug)]
pub(in crate::session) struct Begun {
    /// What its setup gives reason to doubt.
    caveats: Vec<CaveatKind>,
    /// The measured CPUs.
    measured: Cpus,
    /// What kind of virtual machine this is; absent for a bare one.
    virtualisation: Option<String>,
    /// The names of its loads.
    loads: Vec<String>,
}

impl Begun {
    /// Of a run that was armed.
    #[must_use]
    pub(in crate::session) fn of(plan: &RunPlan, document: &Document, evidence: &Evidence) -> Self {
        Self {
            caveats: caveats::begun(evidence),
            measured: plan.cpus.clone(),
            virtualisation: document.facts.virtualisation.clone(),
            loads: plan.loads.iter().map(|load| load.name.clone()).collect(),
        }
    }
}

impl Thread {
    /// Writes it, if anybody looks: one system call where nobody does.
    pub(super) fn write_state(&mut self, finished: &AtomicBool) {
        if !self.work.maker.is_watched() {
            return;
        }
        self.step_aside(finished);
        let state = self.state();
        let written = self.work.maker.replace_state(&state);
        self.note(written, names::STATE);
    }

    fn state(&self) -> LiveState {
        let DrainInputs { begun, loads, start_ns, .. } = &self.work;
        let loads: Vec<LiveLoad> = begun.loads.iter().zip(loads).map(load).collect();
        let mut found = begun.caveats.clone();
        found.extend(caveats::meanwhile(
            &self.machine_so_far(),
            &self.recording_so_far(),
            &self.work.monitor,
            &loads,
        ));
        let mut caveats: Vec<_> = found.into_iter().map(Into::into).collect();
        crate::run::caveat::sort(&mut caveats);
        LiveState { at_ns: now_ns() - start_ns, loads, caveats }
    }

    fn machine_so_far(&self) -> MachineEvidence {
        let DrainInputs { begun, monitor, .. } = &self.work;
        MachineEvidence {
            measured: begun.measured.clone(),
            virtualisation: begun.virtualisation.clone(),
            history: monitor.history().clone(),
            smis: monitor.smis(),
            ..MachineEvidence::default()
        }
    }

    fn recording_so_far(&self) -> Recording {
        let rings = self.work.series.iter().filter_map(|(_, ring)| ring.as_ref());
        Recording {
            lost: rings.map(tardy_hot::ring::Reader::dropped).sum(),
            late_ns: self.late_ns,
            refused: self.refused.clone(),
            ..Recording::default()
        }
    }
}

fn load((name, load): (&String, &Arc<RunningLoad>)) -> LiveLoad {
    LiveLoad {
        name: name.clone(),
        unit: load.unit().to_owned(),
        operations: load.latest().map(|now| now.operations),
        died: load.died(),
    }
}
