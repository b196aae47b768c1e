//! Loads without a probe: started, watched while they run, ended.

use std::{fs::File, time::Duration};

use anyhow::Result;
use tardy_hot::clock::now_ns;

use super::loads::{at_a_glance, start};
use super::{LoadProgress, record};
use crate::{
    loads::{LoadEnd, LoadFault, LoadSpec, RunningLoad},
    run::LoadRecord,
    setup::threads::become_helper,
    sys::cpus::Cpus,
};

/// Above every load, and below what anybody measures with.
const PRIORITY: u32 = 3;

/// In less than this a load need not have come to one operation, ns.
const TOO_SHORT_NS: i64 = 1_000_000_000;

/// Loads that continue.
#[derive(Debug)]
pub(crate) struct LoadOnlyRun {
    specs: Vec<LoadSpec>,
    loads: Vec<RunningLoad>,
    start_ns: i64,
}

/// Their result.
#[derive(Debug)]
pub(crate) struct AloneEnd {
    /// From the moment when the last of them was ready to the end, ns.
    pub duration_ns: i64,
    /// As in a run's record.
    pub loads: Vec<LoadRecord>,
    /// For each, why it did not do what it should have.
    pub faults: Vec<Option<String>>,
}

impl LoadOnlyRun {
    /// Starts the loads one after the other; they print into `log`.
    ///
    /// # Errors
    /// One of them is not available, or `quit` said so before they worked; all have been ended.
    pub(crate) fn start(
        specs: Vec<LoadSpec>,
        log: &File,
        quit: impl FnMut() -> bool,
    ) -> Result<Self> {
        let loads = start(&specs, log, quit)?;
        Ok(Self { specs, loads, start_ns: now_ns() })
    }

    /// Lets them continue until `length_ns` is over, one of them dies, or `quit` says so; `show` is
    /// called some ten times a second with the time so far, ns.
    #[must_use]
    pub(crate) fn run(
        self,
        length_ns: Option<i64>,
        mut quit: impl FnMut() -> bool,
        mut show: impl FnMut(i64, &[LoadProgress]),
    ) -> AloneEnd {
        // A load must not keep Ctrl-C waiting. Without the right to it, it may.
        let _ = become_helper(PRIORITY, &Cpus::default());
        let end_ns = self.start_ns.saturating_add(length_ns.unwrap_or(i64::MAX));
        let mut is_quit = quit();
        while now_ns() < end_ns && !is_quit && self.loads.iter().all(RunningLoad::alive) {
            let left_ns = end_ns.saturating_sub(now_ns());
            let pause = Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0));
            std::thread::sleep(pause.min(Duration::from_millis(50)));
            show(now_ns() - self.start_ns, &at_a_glance(&self.specs, &self.loads));
            is_quit = quit();
        }
        self.finish(is_quit)
    }

    fn finish(self, is_quit: bool) -> AloneEnd {
        let end_ns = now_ns();
        let stop = |load: RunningLoad| load.stop(self.start_ns, end_ns);
        let ends: Vec<LoadEnd> = self.loads.into_iter().map(stop).collect();
        let mut loads: Vec<LoadRecord> = self.specs.iter().map(record::planned_load).collect();
        record::ended_loads(&mut loads, &ends);
        // Ended that soon, they need not prove that they worked.
        let is_forgiven = |fault: &&LoadFault| {
            **fault == LoadFault::DidNothing && is_quit && end_ns - self.start_ns < TOO_SHORT_NS
        };
        let fault = |end: &LoadEnd| {
            end.fault.as_ref().filter(|fault| !is_forgiven(fault)).map(ToString::to_string)
        };
        let faults = ends.iter().map(fault).collect();
        AloneEnd { duration_ns: end_ns - self.start_ns, loads, faults }
    }
}
