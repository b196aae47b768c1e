//! Made-up records of runs, for the tests of the code that reads them.

use std::path::Path;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::run::{
    Document, EndRecord, FlowRecord, IntervalOf, MessageRecord, ProbeRecord, Run, RunWriter,
    SCHEMA_VERSION, SeriesHead, SeriesSummary, TimerParameters,
    hlog::{self, IntervalSpan, LogLine},
    summary::summarize,
};

/// A run of `probe` with these series, all alike; of messages, where the probe exchanges some.
pub(crate) fn of(probe: &str, names: &[&str]) -> Document {
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

/// A run of the timer probe in `path`: of each series the latencies of its intervals of 0.1 s.
pub(super) fn written(path: &Path, series: &[(&str, Vec<Vec<u64>>)]) -> Run {
    written_with(path, series, |_| ())
}

/// The same with changes to its record.
pub(super) fn written_with(
    path: &Path,
    series: &[(&str, Vec<Vec<u64>>)],
    change: impl FnOnce(&mut Document),
) -> Run {
    let mut document = of("timer", &[]);
    document.schema_version = SCHEMA_VERSION;
    document.probe = ProbeRecord::Timer(TimerParameters {
        wake: "nanosleep".into(),
        interval_ns: 1_000_000,
        distance_ns: 0,
        cpus: "0".into(),
        threads_per_cpu: 1,
        priority_step: 0,
        work_ns: None,
        loops_per_ms: None,
    });
    let mut intervals = Vec::new();
    for (cpu, (name, blocks)) in series.iter().enumerate() {
        let (mut total, mut all) = (hlog::empty(), Vec::new());
        let cpu = u32::try_from(cpu).ok();
        let head = SeriesHead { name: (*name).into(), cpu, period_ns: Some(1_000_000) };
        for (number, block) in blocks.iter().enumerate() {
            let mut counts = hlog::empty();
            block.iter().for_each(|latency| counts.saturating_record(*latency));
            total.add(&counts).unwrap();
            all.extend(block);
            let start_s = number as f64 * 0.1;
            let span = IntervalSpan { tag: (*name).into(), start_s, length_s: 0.1 };
            intervals.push((number, totals(span, counts, &all)));
        }
        let last = intervals.last().map(|(_, last)| last.totals).unwrap();
        document.series.push(summarize(&head, &total, &last));
    }
    change(&mut document);
    let mut maker = RunWriter::create(path, &document, false).unwrap();
    maker.begin(&document).unwrap();
    // As a drain does it: all series of an interval, then the next.
    intervals.sort_by_key(|(number, _)| *number);
    let intervals: Vec<IntervalOf> = intervals.into_iter().map(|(_, of)| of).collect();
    maker.append_intervals(&intervals).unwrap();
    maker.finish(&document).unwrap();
    Run::open(path).unwrap()
}

/// An interval with the totals up to it. Their type is that of the measuring loops, which reports
/// do not use: they come from the line of a log.
fn totals(span: IntervalSpan, counts: Histogram<u64>, all: &[u64]) -> IntervalOf {
    let (sum, count): (u64, usize) = (all.iter().sum(), all.len());
    let missed: u64 = all.iter().map(|latency| latency / 1_000_000).sum();
    let (min, max) = (all.iter().min().unwrap_or(&0), all.iter().max().unwrap_or(&0));
    let text = format!(
        "#[Totals: tag=x count={count} missed={missed} sum_ns={sum} min_ns={min} max_ns={max}]\n"
    );
    let mut totals = None;
    let take = |line| match line {
        LogLine::Totals(_, found) => totals = Some(found),
        LogLine::Interval(..) => {}
    };
    hlog::read(text.as_bytes(), take).unwrap();
    IntervalOf { span, counts, totals: totals.unwrap() }
}
