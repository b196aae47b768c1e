//! What tracing was found to cost by runs that measured it (`--calibrate`), for other runs on the
//! same machine.

use std::path::Path;

use serde::{Deserialize, de::IgnoredAny};

use super::{
    facts::Facts,
    record_file::{Record, read_record, rows},
    trace::{KnownCost, TraceBy, TraceMode, TraceRecord},
};

/// A run that measured what tracing costs.
#[derive(Debug, Clone)]
pub struct Calibration {
    facts: Facts,
    /// How much was traced, and by whom.
    found: (TraceMode, TraceBy),
    probe: String,
    known: KnownCost,
}

/// What is read of a record.
#[derive(Debug, Deserialize)]
struct CalibrationParts {
    schema_version: u32,
    id: String,
    name: String,
    probe: Named,
    loads: Vec<Named>,
    trace: TraceRecord,
    facts: Facts,
    series: Vec<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

impl Record for CalibrationParts {
    fn schema_version(&self) -> u32 {
        self.schema_version
    }

    fn rows(&self) -> Vec<(usize, &'static str)> {
        rows(self.series.len(), None)
    }
}

impl Calibration {
    /// The calibration of the run in `path`; nothing where it has none, or cannot be read.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let run = read_record::<CalibrationParts>(path).ok()?.record;
        let CalibrationParts { id, name, probe, loads, trace, facts, .. } = run;
        let loads = loads.into_iter().map(|load| load.name).collect();
        let known = KnownCost { run: id, name, loads, cost: trace.cost? };
        let found = (trace.found, trace.by());
        Some(Self { facts, found, probe: probe.name, known })
    }

    /// What it says of a run of this probe on the machine with these facts, if as much is
    /// traced by the same tracer: nothing where any of these is another, the kernel included.
    #[must_use]
    pub fn known_to(
        &self,
        facts: &Facts,
        found: (TraceMode, TraceBy),
        probe: &str,
    ) -> Option<&KnownCost> {
        let is_same = self.found == found && self.probe == probe;
        (is_same && are_same(&self.facts, facts)).then_some(&self.known)
    }
}

/// The same machine, with the same kernel.
fn are_same(a: &Facts, b: &Facts) -> bool {
    a.is_same_machine(b)
        && (&a.architecture, &a.cpu_model) == (&b.architecture, &b.cpu_model)
        && (&a.kernel, &a.kernel_version) == (&b.kernel, &b.kernel_version)
        && (&a.virtualisation, &a.lab) == (&b.virtualisation, &b.lab)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_calibration_is_known_to_runs_of_its_machine_kernel_tracing_and_probe_alone() {
        let directory = tempfile::tempdir().unwrap();
        let facts = Facts { hostname: "h".into(), kernel: "6.1".into(), ..Facts::default() };
        let cost = json!({
            "pairs": 4, "slice_ns": 1, "median_without_ns": 1, "median_with_ns": 2,
            "added_median_ns": 1_200, "added_range_ns": [900, 1_600],
            "cpu_per_wakeup_ns": [1, 2], "added_cpu_percent": 0.1,
        });
        let mut record = json!({
            "schema_version": 2, "id": "i", "name": "n", "probe": {"name": "timer"},
            "loads": [{"name": "hackbench"}], "facts": facts, "series": [],
            "trace": {"asked": "peaks", "found": "peaks", "cost": cost},
        });
        let write = |record: &serde_json::Value| {
            fs::write(directory.path().join("run.json"), record.to_string()).unwrap();
            Calibration::read(directory.path())
        };
        let found = write(&record).unwrap();
        let known = found.known_to(&facts, (TraceMode::Peaks, TraceBy::Bpf), "timer").unwrap();
        assert_eq!((known.run.as_str(), known.loads.concat()), ("i", "hackbench".to_owned()));
        assert_eq!(known.cost.added_median_ns, 1_200);
        let other = Facts { kernel: "6.2".into(), ..facts.clone() };
        assert_eq!(found.known_to(&other, (TraceMode::Peaks, TraceBy::Bpf), "timer"), None);
        assert_eq!(found.known_to(&facts, (TraceMode::Stages, TraceBy::Bpf), "timer"), None);
        assert_eq!(found.known_to(&facts, (TraceMode::Peaks, TraceBy::Tracefs), "timer"), None);
        assert_eq!(found.known_to(&facts, (TraceMode::Peaks, TraceBy::Bpf), "pingpong"), None);
        record["trace"]["cost"] = serde_json::Value::Null;
        assert!(write(&record).is_none() && Calibration::read("/nonexistent".as_ref()).is_none());
    }
}
