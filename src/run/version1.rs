//! Records of version 1, read as those of today. What version 1 left to its readers to derive is
//! derived here, as its writer did, and nowhere else.

use serde_json::{Map, Value, json};

use super::{
    document::{Document, RunParameters, SCHEMA_VERSION},
    probes::{OtherProbe, ProbeRecord},
    provenance::Provenance,
    series_name::stage_of,
};

/// What stood among the parameters of the probe and belongs to the run.
const OF_THE_RUN: [&str; 7] =
    ["duration_ns", "samples", "warmup_ns", "stop_over_ns", "raw", "peaks", "peak_over_ns"];

/// The time that a writer allowed for one message whose rate nobody chose, ns.
const MESSAGE_NS: i64 = 5_000;

impl Document {
    /// A record of this version or an earlier one, as JSON.
    ///
    /// # Errors
    /// What is missing, or of another type.
    pub fn from_json(record: Value) -> Result<Self, serde_json::Error> {
        match record.get("schema_version").and_then(Value::as_u64) {
            Some(1) => read(record),
            _ => serde_json::from_value(record),
        }
    }
}

/// A record of version 1.
///
/// # Errors
/// It is not one.
fn read(mut record: Value) -> Result<Document, serde_json::Error> {
    let probe = record.get_mut("probe").map(Value::take).unwrap_or_default();
    let mut probe: OtherProbe = serde_json::from_value(probe)?;
    let parameters = of_the_run(&mut probe.parameters)?;
    let interval_ns = probe.parameters.get("interval_ns").and_then(Value::as_i64);
    let version = record.pointer("/facts/tardy_version").and_then(Value::as_str).unwrap_or("");
    let version = Provenance::measured(version);
    if let Some(series) = record.get_mut("series").and_then(Value::as_array_mut) {
        series.iter_mut().filter_map(Value::as_object_mut).for_each(|one| {
            complete(one, interval_ns);
        });
    }
    if let Some(record) = record.as_object_mut() {
        record.insert("schema_version".into(), json!(SCHEMA_VERSION));
        record.insert("provenance".into(), json!(version));
        let log_interval_ns = parameters.log_interval_ns(sample_ns(&probe.parameters));
        record.insert("log_interval_ns".into(), json!(log_interval_ns));
        record.insert("parameters".into(), json!(parameters));
        // Typed below: some runs of this version lack parameters that came later.
        record.insert("probe".into(), json!({"name": "", "parameters": {}}));
    }
    let mut document: Document = serde_json::from_value(record)?;
    document.probe = ProbeRecord::typed_if_whole(probe);
    Ok(document)
}

/// Takes the parameters of the run out of those of its probe.
fn of_the_run(parameters: &mut Map<String, Value>) -> Result<RunParameters, serde_json::Error> {
    let taken = OF_THE_RUN.map(|name| (name.to_owned(), parameters.remove(name)));
    let mut taken: Map<String, Value> =
        taken.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    taken.entry("warmup_ns").or_insert(json!(0));
    taken.entry("raw").or_insert(json!(false));
    serde_json::from_value(Value::Object(taken))
}

/// The time that one sample was expected to take, ns.
fn sample_ns(parameters: &Map<String, Value>) -> i64 {
    let number = |name| parameters.get(name).and_then(Value::as_f64);
    let rate = parameters.get("rate").and_then(Value::as_str);
    let rate = rate.and_then(|rate| Some(rate.parse::<crate::units::PacketRate>().ok()?.per_s()));
    match (number("interval_ns"), number("rate_per_s").or(rate)) {
        (Some(ns), _) => ns as i64,
        (None, Some(per_s)) if per_s > 0.0 => (1e9 / per_s) as i64,
        (None, _) => MESSAGE_NS,
    }
}

/// Adds to a series what its name and its counts only imply.
fn complete(series: &mut Map<String, Value>, interval_ns: Option<i64>) {
    let has_schedule = series.get("missed").is_some_and(|missed| !missed.is_null());
    let name = series.get("name").and_then(Value::as_str).unwrap_or("");
    let (of, stage) = stage_of(name).map(|(of, stage)| (of.to_owned(), stage.to_owned())).unzip();
    series.insert("stage_of".into(), json!(of));
    series.insert("stage".into(), json!(stage));
    series.insert("period_ns".into(), json!(interval_ns.filter(|_| has_schedule)));
}
