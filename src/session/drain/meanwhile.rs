//! `live.json`: what stands in no other file yet, for those who look at the run while it is in
//! progress.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};

use tardy_hot::clock::now_ns;

use super::{DrainInputs, Thread};
use crate::{
    loads::RunningLoad,
    run::{CaveatKind, Document, LiveLoad, LiveState, MissedPeriods, names},
    session::{
        caveats::{self, CountedSoFar},
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
    /// Its series of whole latencies, and whether they have a schedule.
    series: BTreeMap<String, bool>,
    /// Whether the times at which samples are due are estimated.
    has_estimated_grid: bool,
}

impl Begun {
    /// Of a run that was armed.
    #[must_use]
    pub(in crate::session) fn of(plan: &RunPlan, document: &Document, evidence: &Evidence) -> Self {
        let whole = document.series.iter().filter(|series| series.stage_of.is_none());
        Self {
            series: whole.map(|of| (of.name.clone(), of.period_ns.is_some())).collect(),
            has_estimated_grid: document.probe.has_estimated_grid(),
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
            self.counted_so_far(),
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
            not_real_time: self.not_real_time.clone(),
            ..Recording::default()
        }
    }

    fn counted_so_far(&self) -> CountedSoFar {
        let DrainInputs { begun, series, .. } = &self.work;
        let has_estimated_grid = begun.has_estimated_grid;
        let mut counted = CountedSoFar { has_estimated_grid, ..CountedSoFar::default() };
        for (reader, _) in series {
            let Some(has_schedule) = begun.series.get(reader.name()) else { continue };
            let totals = reader.totals();
            counted.early = counted.early.saturating_add(totals.early);
            if *has_schedule {
                let periods = totals.count.saturating_add(totals.missed);
                let series = reader.name().to_owned();
                counted.missed.push(MissedPeriods { series, missed: totals.missed, periods });
            }
        }
        counted
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
