//! Made-up records of runs, for the tests of the code that reads them.

use serde_json::{Value, json};

use crate::run::{Document, EndRecord, FlowRecord, MessageRecord, SeriesSummary};

/// A run of `probe` with these series, all alike; of messages, where the probe exchanges some.
pub(super) fn of(probe: &str, names: &[&str]) -> Document {
    let mut document = Document::from_json(json!({
        "schema_version": 1, "id": "i", "name": "n", "argv": [], "status": "complete",
        "validity": "valid", "caveats": [], "probe": {"name": probe, "parameters": {}},
        "loads": [], "setup": {"asked": null, "found": {"policy": "fifo 90"}},
        "trace": {"asked": "off", "found": "off"}, "facts": crate::run::Facts::default(),
        "started_at": "", "ended_at": null, "duration_ns": 20_000_000_000_u64,
        "start_monotonic_ns": 0, "series": [],
    }))
    .unwrap();
    document.series = names.iter().map(|name| summary(name)).collect();
    let whole: Vec<&str> = names.iter().copied().filter(|name| !name.contains('/')).collect();
    document.messages = (probe != "timer").then(|| messages(&whole));
    document
}

/// 1 000 samples, nine in ten of 40 us, the worst of 2.4 ms.
pub(super) fn summary(name: &str) -> SeriesSummary {
    let (of, stage) = name.split_once('/').unzip();
    let summary: Value = json!({
        "name": name, "cpu": 0, "period_ns": null, "stage_of": of, "stage": stage, "unit": "ns",
        "count": 1_000, "missed": null, "early": 0,
        "above": 0, "min": 30_000, "mean": 41_000, "stddev": 0, "max": 2_400_000,
        "percentiles": {"50": 38_000, "90": 40_000, "99": 60_000, "99.9": 70_000},
        "uncertain": ["99.9"], "scheduled": null,
    });
    serde_json::from_value(summary).unwrap()
}

/// A flow a series between CPU 0 and CPU 1, nothing lost.
pub(super) fn messages(series: &[&str]) -> MessageRecord {
    let end = |name: &str, place: &str, cpu, policy: &str| EndRecord {
        name: name.into(),
        place: place.into(),
        cpu: Some(cpu),
        policy: Some(policy.into()),
        ..EndRecord::default()
    };
    let flow = |series: &&str| FlowRecord {
        series: (*series).to_owned(),
        sent: 1_000,
        received: 1_000,
        achieved_per_s: Some(50.0),
        ..FlowRecord::default()
    };
    MessageRecord {
        transport: "tcp".into(),
        size: 1,
        ends: vec![end("near", "thread", 0, "fifo 90"), end("far", "process", 1, "fifo 80")],
        flows: series.iter().map(flow).collect(),
        clock: None,
    }
}
