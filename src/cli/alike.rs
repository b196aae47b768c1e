//! Which runs belong to one row: what must be equal, in words.

mod cyclictest;

pub(super) use self::cyclictest::forgive_unstated;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    analysis::trend::{TrendKey, TrendRun},
    report::words,
    run::{
        RunEntry, Status, TimerParameters, TraceMode, probes::ProbeRecord, provenance::OF_ONE_FILE,
    },
    store::{ListedRun, Where},
    sys::cpus::Cpus,
    units::span,
};

/// Parameters of wult and ndl that each of their results has anew.
const OF_ONE_RESULT: [&str; 2] = ["date", "reportid"];

/// Options of other programs that name a file that they write, which has another name each night.
const OUTPUT_OPTIONS: [&str; 7] =
    ["--json", "--histfile", "--fifo", "--full-log", "--output", "--log", "--trace-output"];

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
    cyclictest::join(&mut groups, &imported);
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
    TrendKey {
        machine: run.facts.hostname.clone(),
        probe: words::probe(&run.probe, run.messages.as_ref()),
        loads: words::loads_key(&run.loads),
        policy: run.setup.found.policy.clone().unwrap_or_default(),
        length,
        conditions: conditions(run),
        series: String::new(),
    }
}

/// Everything else in which runs that are compared must be alike, by names for people.
fn conditions(run: &RunEntry) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            all.insert(name.to_owned(), value);
        }
    };
    let found = &run.setup.found;
    put("CPUs", found.cpus.clone());
    put("tracing", Some(tracing(run.trace.found).into()));
    put("profile", run.parameters.profile_hz.map(|hz| format!("{hz} Hz")));
    put("idle latency", found.dma_latency_us.map(|us| format!("{us} us")));
    put("governor", found.governor.clone());
    put("siblings offline", found.siblings_offline.clone());
    put("shield", found.shield.as_ref().map(|shield| shield.cpus.clone()));
    for setting in &found.settings {
        put(&setting.name, Some(setting.found.clone()));
    }
    put("architecture", Some(run.facts.architecture.clone()));
    put("CPU model", run.facts.cpu_model.clone());
    // Exact, where the length in words is not.
    put("planned length", run.parameters.duration_ns.map(words::round));
    put("stop over", run.parameters.stop_over_ns.map(words::round));
    put("transport", run.messages.as_ref().map(|own| own.transport.clone()));
    put("message size", run.messages.as_ref().map(|own| format!("{} B", own.size)));
    for (name, value) in &parameters(run) {
        // What was found says more than what was asked for.
        if name != "cpus" || found.cpus.is_none() {
            put(&called(name), Some(word(name, value)));
        }
    }
    for (number, load) in run.loads.iter().enumerate() {
        let same = run.loads.iter().take(number).filter(|other| other.name == load.name).count();
        let load_name = match same {
            0 => load.name.clone(),
            same => format!("{} ({})", load.name, same + 1),
        };
        for (name, value) in &load.parameters {
            put(&format!("{load_name} {}", called(name)), Some(word(name, value)));
        }
    }
    all
}

const fn tracing(mode: TraceMode) -> &'static str {
    match mode {
        TraceMode::Off => "not traced",
        TraceMode::Stages => "stages traced",
        TraceMode::Auto | TraceMode::Peaks => "traced",
    }
}

/// Those of the probe, as in its record; of an imported run without the names of files.
fn parameters(run: &RunEntry) -> Map<String, Value> {
    let Ok(Value::Object(mut probe)) = serde_json::to_value(&run.probe) else {
        return Map::new();
    };
    let Some(Value::Object(mut parameters)) = probe.remove("parameters") else {
        return Map::new();
    };
    if let ProbeRecord::Timer(timer) = &run.probe
        && timer.total_threads == every_cpu(timer)
    {
        parameters.remove("total_threads");
    }
    if run.status == Status::Imported {
        let is_of_one = |name: &str| OF_ONE_FILE.contains(&name) || OF_ONE_RESULT.contains(&name);
        parameters.retain(|name, _| !is_of_one(name));
        if let Some(Value::String(command)) = parameters.get_mut("command") {
            *command = without_outputs(command);
        }
    }
    parameters
}

/// The number of threads if each CPU has as many.
fn every_cpu(timer: &TimerParameters) -> Option<u32> {
    let cpus: Cpus = timer.cpus.parse().ok()?;
    timer.threads_per_cpu.checked_mul(u32::try_from(cpus.iter().count()).ok()?)
}

/// A command line without the files that it writes: `--json=FILE`, `--json FILE` and `> FILE`.
fn without_outputs(command: &str) -> String {
    let mut words = command.split_whitespace().peekable();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        let (name, value) =
            word.split_once('=').map_or((word, None), |(name, own)| (name, Some(own)));
        let redirected = word.trim_start_matches(['1', '2', '&']).strip_prefix('>');
        let has_value = match redirected {
            Some(file) => !file.trim_start_matches('>').is_empty(),
            None if OUTPUT_OPTIONS.contains(&name) => value.is_some(),
            None => {
                kept.push(word);
                continue;
            }
        };
        // The word behind it is the file, unless it is an option.
        if !has_value && words.peek().is_some_and(|next| !next.starts_with('-')) {
            words.next();
        }
    }
    kept.join(" ")
}

/// `interval_ns` is the interval.
fn called(name: &str) -> String {
    name.strip_suffix("_ns").unwrap_or(name).replace('_', " ")
}

fn word(name: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if name.ends_with("_ns") => {
            number.as_i64().map_or_else(|| number.to_string(), words::round)
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            "facts": {"hostname": "vm", "kernel": "6.12", "architecture": "x86_64",
                "cpu_model": "EPYC"},
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
        assert_eq!(without_outputs("oslat --json -c 1"), "oslat -c 1");
    }

    #[test]
    fn conditions_are_named_and_have_units() {
        let all = conditions(&run(|_| ()));
        let expected = [
            ("CPU model", "EPYC"),
            ("CPUs", "0-1"),
            ("architecture", "x86_64"),
            ("hackbench (2) groups", "20"),
            ("hackbench groups", "10"),
            ("interval", "1 ms"),
            ("planned length", "60 s"),
            ("tracing", "traced"),
        ];
        for (name, value) in expected {
            assert_eq!(all.get(name).map(String::as_str), Some(value), "{all:?}");
        }
    }
}
