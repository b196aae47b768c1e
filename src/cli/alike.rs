//! Which runs belong to one row of a trend: the conditions of [`RunConditions`] in words, and the
//! machine, but not its kernel.

mod cyclictest;
mod unstated;

pub(super) use unstated::forgive_unstated;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    analysis::trend::{TrendKey, TrendRun},
    report::words,
    run::{
        LoadRecord, RunEntry, Status,
        alike::{INTERVAL, RunConditions, in_order},
    },
    store::{ListedRun, Where},
    units::{round, span},
};

/// A condition that no result of cyclictest states.
const CPU_MODEL: &str = "CPU model";

/// A condition that runs of older versions do not state. Two machines may have one name.
pub(super) const MACHINE_ID: &str = "machine id";

/// The series of runs, by what must be equal.
pub(super) fn rows<'a>(
    runs: impl Iterator<Item = &'a ListedRun>,
    question: &Where,
) -> BTreeMap<TrendKey, Vec<TrendRun>> {
    let mut groups: BTreeMap<TrendKey, Vec<TrendRun>> = BTreeMap::new();
    let mut imported = BTreeSet::new();
    for run in runs {
        let Some(started) = run.entry.start() else { continue };
        let common = key(&run.entry);
        for series in question.chosen(run).filter(|series| series.count > 0) {
            let details = run.details().and_then(|details| details.series(&series.name));
            let p99 = series.percentile("99").filter(|_| !series.is_uncertain("99"));
            let key = TrendKey { series: series.name.clone(), ..common.clone() };
            if run.entry.status == Status::Imported {
                imported.insert(key.clone());
            }
            groups.entry(key).or_default().push(TrendRun {
                started,
                kernel: run.entry.facts.kernel.clone(),
                program: run.entry.provenance.called(),
                p99_ns: p99.and_then(|ns| i64::try_from(ns).ok()),
                block_max_ns: details.and_then(|details| details.block_max_ns),
                max_ns: series.max,
                late: details.and_then(|details| details.late.clone()),
            });
        }
    }
    unstated::join(&mut groups, &imported);
    groups
}

/// What all series of a run have in common. A result of cyclictest has what the same run of tardy
/// has, as far as it states it.
pub(super) fn key(run: &RunEntry) -> TrendKey {
    key_as_stated(cyclictest::as_timer(run).as_ref().unwrap_or(run))
}

fn key_as_stated(run: &RunEntry) -> TrendKey {
    let asked = &run.parameters;
    let length = match (asked.duration_ns, asked.samples) {
        (Some(ns), _) => span(ns as f64 / 1e9),
        (None, Some(samples)) => format!("{samples} samples"),
        (None, None) => "no fixed length".into(),
    };
    let stated = RunConditions::of_entry(run);
    let loads: Vec<LoadRecord> = in_order(&run.loads).into_iter().cloned().collect();
    TrendKey {
        machine: run.facts.hostname.clone(),
        probe: words::probe(&run.probe, run.messages.as_ref()),
        loads: words::loads_key(&loads),
        policy: stated.policy_words(),
        length,
        conditions: conditions(run, stated),
        series: String::new(),
    }
}

/// All conditions by names for people, and the machine.
fn conditions(run: &RunEntry, stated: RunConditions) -> BTreeMap<String, String> {
    let mut all = stated.others;
    let own = [
        (INTERVAL, Some(stated.interval_ns).filter(|ns| *ns != 0).map(round)),
        (CPU_MODEL, run.facts.cpu_model.clone()),
        (MACHINE_ID, run.facts.machine_id.clone()),
    ];
    all.extend(own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(change: impl Fn(&mut Value)) -> RunEntry {
        let mut record = json!({
            "schema_version": 2, "id": "i", "name": "n", "status": "complete", "validity": "valid",
            "probe": {"name": "timer", "parameters": {"interval_ns": 1_000_000, "cpus": "0-9"}},
            "loads": [{"name": "hackbench", "parameters": {"groups": 10}, "proof": null,
                "ended": null}, {"name": "hackbench", "parameters": {"groups": 20}, "proof": null,
                "ended": null}],
            "parameters": {"duration_ns": 60_000_000_000_i64, "samples": null, "warmup_ns": 0,
                "stop_over_ns": null, "profile_hz": null, "raw": false, "peaks": null,
                "peak_over_ns": null},
            "setup": {"found": {"policy": "fifo 90", "cpus": "0-1", "dma_latency_us": null,
                "governor": null, "siblings_offline": null, "shield": null, "settings": []}},
            "trace": {"found": "peaks"},
            "facts": {"hostname": "vm", "machine_id": "a", "kernel": "6.12",
                "architecture": "x86_64", "cpu_model": "EPYC"},
            "started_at": "2026-01-01T00:00:00Z", "duration_ns": 60_000_000_000_i64,
            "series": [],
        });
        change(&mut record);
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn whatever_differs_is_another_row() {
        let whole = key(&run(|_| ()));
        assert_eq!(whole, key(&run(|record| record["facts"]["kernel"] = json!("6.13"))));
        for (place, value) in [
            ("/trace/found", json!("off")),
            ("/facts/cpu_model", json!("Xeon")),
            ("/facts/cpu_model", json!(null)),
            ("/facts/architecture", json!("aarch64")),
            ("/facts/hostname", json!("other")),
            ("/facts/machine_id", json!("b")),
            ("/setup/found/cpus", json!("0")),
            ("/setup/found/policy", json!("other")),
            ("/setup/found/dma_latency_us", json!(0)),
            ("/setup/found/governor", json!("performance")),
            ("/setup/found/siblings_offline", json!("1")),
            ("/setup/found/shield", json!({"cpus": "0"})),
            ("/setup/found/settings", json!([{"name": "thp", "found": "never"}])),
            ("/parameters/profile_hz", json!(99)),
            ("/probe/parameters/interval_ns", json!(2_000_000)),
            ("/loads/1/parameters/groups", json!(30)),
            ("/loads/1/name", json!("memory")),
            ("/parameters/stop_over_ns", json!(7)),
            // Both are 60 s in words.
            ("/parameters/duration_ns", json!(60_020_000_000_i64)),
        ] {
            let other = key(&run(|record| *record.pointer_mut(place).unwrap() = value.clone()));
            assert_ne!(whole, other, "{place}");
        }
    }

    #[test]
    fn imported_runs_of_one_measurement_are_one_row_whatever_their_files_are_called() {
        let night = |file: &str, command: &str| {
            key(&run(|record| {
                record["status"] = json!("imported");
                record["probe"] = json!({"name": "cyclictest", "parameters":
                    {"interval_ns": 1_000, "file": file, "command": command}});
            }))
        };
        let first = night("01.json", "cyclictest -p 90 --json=01.json -D 60");
        assert_eq!(first, night("02.json", "cyclictest -p 90 --json=02.json -D 60"));
        assert_eq!(first, night("3", "cyclictest -p 90 -D 60 --json /tmp/3 --histfile 3.hist"));
        assert_eq!(first, night("4", "cyclictest -p 90 -D 60 > 4.txt 2>4.err"));
        assert_ne!(first, night("01.json", "cyclictest -p 80 --json=01.json -D 60"));
    }
}
