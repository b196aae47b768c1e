//! What the machine and the loads do while it is measured.

use std::sync::atomic::{AtomicBool, Ordering};

use tardy_hot::clock::now_ns;

use super::{Thread, pauses};
use crate::run::{
    names,
    tracks::{LoadRow, MachineRow, to_csv},
};

impl Thread {
    /// When the loops ended; far off as long as that is not known.
    pub(super) fn measured_until(&self) -> i64 {
        self.ended_ns.load(Ordering::Relaxed)
    }

    /// Looks at the machine and the loads, in steps; for the last time where the loops have ended.
    pub(super) fn look(&mut self, finished: &AtomicBool) {
        self.has_looked_last = self.measured_until() != i64::MAX;
        let rows = self.machine.poll(
            now_ns(),
            self.work.start_ns,
            &mut pauses(self.work.cadence, &mut self.used, finished),
        );
        self.step_aside(finished);
        self.write_tracks(&rows);
        self.step_aside(finished);
    }

    fn write_tracks(&mut self, rows: &[MachineRow]) {
        let written = self.append(names::MACHINE, |header| to_csv(rows, header));
        self.note(written, names::MACHINE);
        let rows = self.load_rows();
        if !rows.is_empty() {
            let written = self.append(names::LOADS, |header| to_csv(&rows, header));
            self.note(written, names::LOADS);
        }
    }

    pub(super) fn load_rows(&mut self) -> Vec<LoadRow> {
        let mut rows = Vec::new();
        let start_ns = self.work.start_ns;
        for (load, (running, before)) in
            self.work.loads.iter().zip(&mut self.load_before).enumerate()
        {
            let Some(now) = running.latest().filter(|now| now.monotonic_ns > before.0) else {
                continue;
            };
            // The first look is the base: what the load did before the run is not the run's.
            if before.1 > 0 {
                let took_s = (now.monotonic_ns - before.0) as f64 / 1e9;
                let done = now.operations.saturating_sub(before.1) as f64;
                let t_s = (now.monotonic_ns - start_ns) as f64 / 1e9;
                rows.push(LoadRow {
                    t_s: (t_s * 1e3).round() / 1e3,
                    load,
                    operations_per_s: (done / took_s).round(),
                });
            }
            *before = (now.monotonic_ns, now.operations);
        }
        rows
    }
}
