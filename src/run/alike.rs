//! What makes two runs alike: every condition that was asked for or arranged, and one hash of them.
//! Rows for SQL, metrics, merges, trends and baselines all use this definition. The machine, its
//! CPU model and its kernel are not conditions: they are what users compare, and stand beside them.

mod output_files;

pub(crate) use output_files::without_outputs;

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{
    Document, LoadRecord, MessageRecord, ProbeRecord, RunEntry, RunParameters, Status,
    TimerParameters, TraceMode,
    entry_setup::{EntryAsked, EntryFound},
    provenance::OF_ONE_FILE,
};
use crate::units::round;

/// The load of a run without a load: an own load of this name, which does nothing, is the same.
pub(crate) const IDLE: &str = "idle";

/// The condition of the measured interval, which is also [`RunConditions::interval_ns`].
pub(crate) const INTERVAL: &str = "interval";

/// Parameters of wult and ndl that each of their results has anew.
const OF_ONE_RESULT: [&str; 2] = ["date", "reportid"];

/// Timer slack if nothing else is asked for, ns.
const USUAL_SLACK_NS: u64 = 1;

/// Conditions under which a run was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunConditions {
    /// Name of the probe.
    pub probe: String,
    /// Scheduling policy of the measured threads; empty if unknown.
    pub policy: String,
    /// Real-time priority of the first thread; 0 without one.
    pub priority: u32,
    /// Time from one sample to the next, ns; 0 if the probe has none.
    pub interval_ns: i64,
    /// Names of the loads, sorted, `+` between them; [`IDLE`] without loads.
    pub load: String,
    /// All other conditions, by their names for people.
    pub others: BTreeMap<String, String>,
}

impl RunConditions {
    /// The conditions of a run in a list.
    #[must_use]
    pub fn of_entry(run: &RunEntry) -> Self {
        Self::of(&Stated {
            status: run.status,
            probe: &run.probe,
            parameters: &run.parameters,
            loads: &run.loads,
            asked: run.setup.asked.as_ref().map(Cow::Borrowed),
            found: Cow::Borrowed(&run.setup.found),
            trace: run.trace.found,
            messages: run.messages.as_ref(),
            architecture: &run.facts.architecture,
        })
    }

    /// The conditions of a whole record; the same as of its entry.
    #[must_use]
    pub fn of_document(run: &Document) -> Self {
        Self::of(&Stated {
            status: run.status,
            probe: &run.probe,
            parameters: &run.parameters,
            loads: &run.loads,
            asked: run.setup.asked.as_ref().map(|asked| Cow::Owned(asked.into())),
            found: Cow::Owned(run.setup.found.clone().into()),
            trace: run.trace.found,
            messages: run.messages.as_ref(),
            architecture: &run.facts.architecture,
        })
    }

    fn of(run: &Stated<'_>) -> Self {
        let (policy, priority) = policy(run.found.policy.as_deref().unwrap_or_default());
        let loads = in_order(run.loads);
        Self {
            probe: run.probe.name().to_owned(),
            policy,
            priority,
            interval_ns: run.probe.interval_ns().unwrap_or(0),
            load: match loads.as_slice() {
                [] => IDLE.to_owned(),
                loads => loads.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join("+"),
            },
            others: others(run, &loads),
        }
    }

    /// Policy and priority as `run.json` has them: `fifo 90`, `other`.
    #[must_use]
    pub fn policy_words(&self) -> String {
        match self.priority {
            0 => self.policy.clone(),
            priority => format!("{} {priority}", self.policy),
        }
    }

    /// All other conditions in one line, by name: `CPUs=0-3; tracing=not traced`.
    #[must_use]
    pub fn text(&self) -> String {
        let one = |(name, value): (&String, &String)| format!("{name}={value}");
        self.others.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// Hash of all conditions, 16 hexadecimal digits: the first 8 bytes of SHA-256 over probe,
    /// policy, priority, interval in ns, load, and name and value of each other condition by name,
    /// in UTF-8, a zero byte after each. It is the same on every machine.
    #[must_use]
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        let numbers = [self.priority.to_string(), self.interval_ns.to_string()];
        let [priority, interval] = &numbers;
        let first = [&self.probe, &self.policy, priority, interval, &self.load];
        let others = self.others.iter().flat_map(|(name, value)| [name, value]);
        for text in first.into_iter().chain(others) {
            hash.update(text);
            hash.update([0]);
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The loads that do something, in the order of their names and parameters: the order in which they
/// were asked for changes nothing.
#[must_use]
pub fn in_order(loads: &[LoadRecord]) -> Vec<&LoadRecord> {
    let mut loads: Vec<&LoadRecord> = loads.iter().filter(|load| load.name != IDLE).collect();
    loads.sort_by_cached_key(|load| (load.name.clone(), parameter_text(&load.parameters)));
    loads
}

fn parameter_text(parameters: &Map<String, Value>) -> Vec<String> {
    let mut all: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    all.sort();
    all
}

/// What conditions are made of, of a record or of its entry.
struct Stated<'a> {
    status: Status,
    probe: &'a ProbeRecord,
    parameters: &'a RunParameters,
    loads: &'a [LoadRecord],
    asked: Option<Cow<'a, EntryAsked>>,
    found: Cow<'a, EntryFound>,
    trace: TraceMode,
    messages: Option<&'a MessageRecord>,
    architecture: &'a str,
}

/// `fifo 90` in its parts.
fn policy(text: &str) -> (String, u32) {
    let parts = text.rsplit_once(' ').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    let (name, priority) = parts.unwrap_or((text, 0));
    (name.to_owned(), priority)
}

/// Conditions by name; those without a value are left out.
#[derive(Default)]
struct Named(BTreeMap<String, String>);

impl Named {
    fn put(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.insert(name.to_owned(), value);
        }
    }
}

fn others(run: &Stated<'_>, loads: &[&LoadRecord]) -> BTreeMap<String, String> {
    let mut all = Named::default();
    of_setup(run, &mut all);
    all.put("tracing", Some(tracing(run.trace).into()));
    all.put("profile", run.parameters.profile_hz.map(|hz| format!("{hz} Hz")));
    all.put("architecture", Some(run.architecture.to_owned()));
    all.put("planned length", run.parameters.duration_ns.map(round));
    all.put("planned samples", run.parameters.samples.map(|samples| samples.to_string()));
    all.put("stop over", run.parameters.stop_over_ns.map(round));
    all.put("transport", run.messages.map(|own| own.transport.clone()));
    all.put("message size", run.messages.map(|own| format!("{} B", own.size)));
    for (name, value) in &parameters(run) {
        let name = called(name);
        let is_known = match name.as_str() {
            INTERVAL => run.probe.interval_ns().is_some(),
            // What was found says more than what was asked for.
            "cpus" => run.found.cpus.is_some(),
            _ => false,
        };
        if !is_known {
            all.put(&name, Some(value.clone()));
        }
    }
    of_loads(loads, &mut all);
    all.0
}

fn of_setup(run: &Stated<'_>, all: &mut Named) {
    let found = &run.found;
    all.put("CPUs", found.cpus.clone());
    all.put("idle latency", found.dma_latency_us.map(|us| format!("{us} us")));
    all.put("governor", found.governor.clone());
    all.put("siblings offline", found.siblings_offline.clone());
    all.put("shield", found.shield.as_ref().map(|shield| shield.cpus.clone()));
    for setting in &found.settings {
        all.put(&setting.name, Some(setting.found.clone()));
    }
    if let Some(asked) = &run.asked {
        let slack_ns = Some(asked.timer_slack_ns).filter(|ns| *ns != USUAL_SLACK_NS);
        all.put("timer slack", slack_ns.and_then(|ns| i64::try_from(ns).ok()).map(round));
        all.put("housekeeping", asked.housekeeping.clone());
    }
}

const fn tracing(mode: TraceMode) -> &'static str {
    match mode {
        TraceMode::Off => "not traced",
        TraceMode::Stages => "stages traced",
        TraceMode::Auto | TraceMode::Peaks => "traced",
    }
}

/// Parameters of each load; of several loads of one name those of the second have its number.
fn of_loads(loads: &[&LoadRecord], all: &mut Named) {
    for (number, load) in loads.iter().enumerate() {
        let same = loads.iter().take(number).filter(|other| other.name == load.name).count();
        let load_name = match same {
            0 => load.name.clone(),
            same => format!("{} ({})", load.name, same + 1),
        };
        for (name, value) in &load.parameters {
            all.put(&format!("{load_name} {}", called(name)), Some(word(name, value)));
        }
    }
}

/// Parameters of the probe, as in its record, in words; of an imported run without the names of
/// files.
fn parameters(run: &Stated<'_>) -> BTreeMap<String, String> {
    let Ok(Value::Object(mut probe)) = serde_json::to_value(run.probe) else {
        return BTreeMap::new();
    };
    let Some(Value::Object(mut parameters)) = probe.remove("parameters") else {
        return BTreeMap::new();
    };
    if let ProbeRecord::Timer(timer) = run.probe
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
    parameters.into_iter().map(|(name, value)| (name.clone(), word(&name, &value))).collect()
}

/// The number of threads if each CPU has as many.
fn every_cpu(timer: &TimerParameters) -> Option<u32> {
    timer.threads_per_cpu.checked_mul(count_of(&timer.cpus)?)
}

/// How many CPUs a list has: 3 of `0-1,7`.
fn count_of(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
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
            number.as_i64().map_or_else(|| number.to_string(), round)
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
