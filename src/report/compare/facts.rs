//! What is not the same in all runs: where a difference may come from.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::LoggedRun;
use crate::{
    report::{comparison_page::FactDifference, words},
    run::{
        AttachRecord, AttachedRow, Document, LoadRecord, Status, probes::SAME_AS,
        provenance::OF_ONE_FILE,
    },
    units::{Nanos, rate, round, span},
};

/// Loads whose rates differ by more than this share did not do the same.
const SAME_WORK: f64 = 0.1;

/// The facts that differ, those that change figures most first.
pub(super) fn differences(a: &[&LoggedRun], b: &[&LoggedRun]) -> Vec<FactDifference> {
    let of = |side: &[&LoggedRun]| -> Vec<Vec<(String, String)>> {
        side.iter().map(|run| facts(run.document())).collect()
    };
    let mut found = differing(&of(a), &of(b));
    found.extend(work(a, b));
    found
}

/// Facts by name, one list a run: those that are not the same everywhere.
fn differing(a: &[Vec<(String, String)>], b: &[Vec<(String, String)>]) -> Vec<FactDifference> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in a.iter().chain(b).flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = |side: &[Vec<(String, String)>], name: &String| -> Vec<String> {
        let of = |run: &Vec<(String, String)>| {
            let own = run.iter().find(|(own, _)| own == name);
            own.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
        };
        let mut values: Vec<String> = Vec::new();
        for value in side.iter().map(of) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let difference = |name: &String| {
        let (a, b) = (values(a, name), values(b, name));
        let all: BTreeSet<&String> = a.iter().chain(&b).collect();
        let differs = all.len() > 1;
        let (a, b) = if name == "command line" { only_different(&a, &b) } else { (a, b) };
        differs.then(|| FactDifference { fact: name.clone(), a, b })
    };
    names.into_iter().filter_map(difference).collect()
}

/// Of command lines of a kernel the words that are not in all of them.
fn only_different(a: &[String], b: &[String]) -> (Vec<String>, Vec<String>) {
    let all: Vec<Vec<&str>> =
        a.iter().chain(b).map(|line| line.split_whitespace().collect()).collect();
    let is_common = |word: &str| all.iter().all(|line| line.contains(&word));
    let short = |line: &String| {
        let words = line.split_whitespace().filter(|word| !is_common(word));
        let words = words.collect::<Vec<_>>().join(" ");
        if words.is_empty() { "without these".to_owned() } else { words }
    };
    (a.iter().map(short).collect(), b.iter().map(short).collect())
}

/// Everything that may change figures, by name.
fn facts(document: &Document) -> Vec<(String, String)> {
    let mut facts = of_machine(document);
    facts.extend(of_setup(document));
    facts.extend(of_probe(document));
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    add("loads", document.loads.iter().map(load).collect::<Vec<_>>().join(" + "));
    add("tracing", text(&document.trace.found));
    add("length", span(document.duration_ns as f64 / 1e9));
    let made = &document.provenance;
    add("made by", format!("{} {}", made.program, made.version).trim_end().to_owned());
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn of_machine(document: &Document) -> Vec<(String, String)> {
    let facts = &document.facts;
    let some = |value: &Option<String>| value.clone().unwrap_or_default();
    let states = facts.idle_states.iter();
    let states = states.map(|state| format!("{} {} us", state.name, state.exit_latency_us));
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let throttling = |percent: f64| format!("real-time tasks up to {percent}%");
    [
        ("machine", facts.hostname.clone()),
        ("kernel", facts.kernel.clone()),
        ("kernel's build", facts.kernel_version.clone()),
        ("preemption", facts.preemption.model.clone()),
        ("command line", some(&facts.kernel_cmdline)),
        ("CPU model", some(&facts.cpu_model)),
        ("microcode", some(&facts.microcode)),
        ("CPUs online", facts.cpus_online.clone()),
        ("governor", facts.governors.join(", ")),
        ("idle states", states.collect::<Vec<_>>().join(", ")),
        ("clock source", some(&facts.clock_source)),
        ("virtualisation", some(&facts.virtualisation)),
        ("throttling", facts.rt_throttling_percent.map(throttling).unwrap_or_default()),
        ("memory", facts.memory_bytes.map(gib).unwrap_or_default()),
        ("distribution", some(&facts.distribution)),
        ("architecture", facts.architecture.clone()),
        ("boot", some(&facts.boot_id)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn of_setup(document: &Document) -> Vec<(String, String)> {
    let found = &document.setup.found;
    if document.status == Status::Imported {
        // Nothing else is known of it: that nothing was arranged would be a claim.
        return found.policy.iter().map(|policy| ("policy".to_owned(), policy.clone())).collect();
    }
    let some = |value: &Option<String>| value.clone().unwrap_or_default();
    let slack = document.setup.asked.as_ref().map(|asked| asked.timer_slack_ns);
    let slack = slack.map(|ns| Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).to_string());
    let shield = found.shield.as_ref().map(|shield| shield.cpus.clone());
    let latency = found.dma_latency_us.map(|us| format!("{us} us"));
    let locked = found.memory_lock.as_ref().map(|lock| text(&lock.locked));
    let policies = match &document.attached {
        None => vec![("policy".to_owned(), some(&found.policy))],
        Some(record) => of_names(record),
    };
    let others = [
        ("shield", shield.unwrap_or_else(|| "none".into())),
        ("governor asked for", some(&found.governor)),
        ("cpu_dma_latency", latency.unwrap_or_else(|| "not held".into())),
        ("siblings offline", some(&found.siblings_offline)),
        ("memory lock", locked.unwrap_or_default()),
        ("timer slack", slack.unwrap_or_default()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    policies.into_iter().chain(others).collect()
}

/// How attached threads are scheduled, and when they are due, by names.
fn of_names(record: &AttachRecord) -> Vec<(String, String)> {
    let names = record.rows.iter().filter(|row| row.tid.is_none());
    let one = |row: &AttachedRow| {
        let policy = row.policy.clone();
        let policy = policy.map(|policy| (format!("policy of {}", row.series), policy));
        let periods = periods(record, row);
        let period = (!periods.is_empty()).then(|| (format!("period of {}", row.series), periods));
        [policy, period].into_iter().flatten()
    };
    names.flat_map(one).collect()
}

/// The period of all threads of a name, or where they have none together those that they have.
fn periods(record: &AttachRecord, all: &AttachedRow) -> String {
    let is_own = |row: &&AttachedRow| row.series.split('/').next() == Some(&*all.series);
    let threads = || record.rows.iter().filter(|row| row.tid.is_some()).filter(is_own);
    let periods: BTreeSet<i64> = match all.period_ns {
        Some(ns) => [ns].into(),
        None => threads().filter_map(|row| row.period_ns).collect(),
    };
    periods.into_iter().map(round).collect::<Vec<_>>().join(", ")
}

/// Every parameter of the probe under its own name, and where messages were exchanged the ends.
fn of_probe(document: &Document) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Ok(Value::Object(probe)) = serde_json::to_value(&document.probe)
        && let Some(Value::Object(parameters)) = probe.get("parameters")
    {
        let one = |(name, value): (&String, &Value)| {
            let shown = match (name.strip_suffix("_ns"), value) {
                (Some(_), Value::Number(ns)) => ns.as_i64().map(round),
                (_, Value::String(text)) => Some(text.clone()),
                (_, Value::Null) => None,
                (_, other) => Some(other.to_string()),
            };
            let name = name.strip_suffix("_ns").unwrap_or(name).replace('_', " ");
            (format!("probe's {name}"), shown.unwrap_or_default())
        };
        let is_fact = |name: &str| name != SAME_AS && !OF_ONE_FILE.contains(&name);
        let known = parameters.iter().filter(|(name, _)| is_fact(name));
        found.extend(known.map(one));
    }
    let ends = document.messages.as_ref().map(crate::report::messages::ends);
    found.extend(ends.map(|ends| ("ends".to_owned(), ends)));
    found
}

/// A load with its parameters.
fn load(load: &LoadRecord) -> String {
    let parameters = load.parameters.iter().filter(|(name, _)| *name != "command");
    let parameters: Vec<String> =
        parameters.map(|(name, value)| format!("{name}={}", text(value))).collect();
    let name = words::load(load);
    if parameters.is_empty() { name } else { format!("{name}:{}", parameters.join(",")) }
}

/// A value as its record has it, without quotes.
fn text(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// Loads of the same name that did more on one side: their proof, per second, on average.
fn work(a: &[&LoggedRun], b: &[&LoggedRun]) -> Vec<FactDifference> {
    let mean = |side: &[&LoggedRun], name: &str| -> Option<(f64, String)> {
        let proofs = side.iter().map(|run| {
            let loads = &run.document().loads;
            loads.iter().find(|load| words::load(load) == name)?.proof.as_ref()
        });
        let proofs = proofs.collect::<Option<Vec<_>>>()?;
        let sum: f64 = proofs.iter().map(|proof| proof.operations_per_s).sum();
        Some((sum / proofs.len() as f64, proofs.first()?.unit.clone()))
    };
    let mut names: Vec<String> = Vec::new();
    for load in a.iter().chain(b).flat_map(|run| &run.document().loads) {
        let name = words::load(load);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let one = |name: String| {
        let ((of_a, unit), (of_b, _)) = (mean(a, &name)?, mean(b, &name)?);
        let differs = (of_a - of_b).abs() > SAME_WORK * of_a.max(of_b);
        let shown = |per_s: f64| vec![format!("{} {unit}/s", rate(per_s))];
        let fact = format!("work of {name}");
        differs.then(|| FactDifference { fact, a: shown(of_a), b: shown(of_b) })
    };
    names.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::fixture, run::AttachedTimes};

    #[test]
    fn the_periods_of_attached_threads_are_facts() {
        let row = |series: &str, tid: Option<u32>, period_ns: Option<i64>| -> AttachedRow {
            let times = AttachedTimes::default();
            let mut row: AttachedRow = serde_json::from_value(serde_json::json!({
                "series": series, "wakeups": 9, "by_timer": 9, "by_interrupt": 0, "by_ipi": 0,
                "by_task": 0, "by_own_timer": 9, "in_slack": 0, "preempted": 0, "unmatched": 0,
                "run": times, "ready": times, "blocked": times,
            }))
            .unwrap();
            (row.tid, row.period_ns) = (tid, period_ns);
            row.policy = Some("fifo 50".into());
            row
        };
        let of = |rows: Vec<AttachedRow>| {
            let record = AttachRecord { rows, ..AttachRecord::default() };
            facts(&Document { attached: Some(record), ..fixture::of("attach", &["ctl"]) })
        };
        let fast = of(vec![row("ctl", None, Some(5_000_000)), row("main", None, None)]);
        let slow = of(vec![row("ctl", None, Some(8_000_000)), row("main", None, None)]);
        let found = differing(&[fast], &[slow]);
        assert_eq!(found.len(), 1, "{found:?}");
        let said = (found[0].fact.as_str(), found[0].a[0].as_str(), found[0].b[0].as_str());
        assert_eq!(said, ("period of ctl", "5 ms", "8 ms"));
        let several = of(vec![
            row("ctl", None, None),
            row("ctl/7", Some(7), Some(8_000_000)),
            row("ctl/8", Some(8), Some(5_000_000)),
            row("other/9", Some(9), Some(1_000_000)),
        ]);
        assert!(several.contains(&("period of ctl".into(), "5 ms, 8 ms".into())), "{several:?}");
    }
}
