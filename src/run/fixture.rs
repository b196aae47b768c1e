//! Made-up records of runs, for the tests of the code that reads them.

use std::path::Path;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{
    AttachParameters, Document, EndRecord, FlowRecord, IntervalOf, MessageRecord, ProbeRecord, Run,
    RunWriter, SCHEMA_VERSION, SeriesHead, SeriesSummary, TimerParameters,
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

/// 1,000 samples, nine in ten of 40 us, the worst of 2.4 ms.
pub(crate) fn summary(name: &str) -> SeriesSummary {
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
pub(crate) fn messages(series: &[&str]) -> MessageRecord {
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
pub(crate) fn written(path: &Path, series: &[(&str, Vec<Vec<u64>>)]) -> Run {
    written_with(path, series, |_| ())
}

/// The same with changes to its record.
pub(crate) fn written_with(
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
        interval_step_ns: None,
        threads_per_cpu: 1,
        total_threads: None,
        priority_step: 0,
        work_ns: None,
        loops_per_ms: None,
    });
    let mut intervals = Vec::new();
    for (cpu, (name, blocks)) in series.iter().enumerate() {
        let (mut total, mut so_far) = (hlog::empty(), SoFar::default());
        let cpu = u32::try_from(cpu).ok();
        let head = SeriesHead { name: (*name).into(), cpu, period_ns: Some(1_000_000) };
        for (number, block) in blocks.iter().enumerate() {
            let mut counts = hlog::empty();
            block.iter().for_each(|latency| counts.saturating_record(*latency));
            total.add(&counts).unwrap();
            so_far.add(block);
            let start_s = number as f64 * 0.1;
            let span = IntervalSpan { tag: (*name).into(), start_s, length_s: 0.1 };
            intervals.push((number, totals(span, counts, &so_far)));
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

/// Figures of all latencies up to an interval.
#[derive(Default)]
struct SoFar {
    count: usize,
    missed: u64,
    sum_ns: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl SoFar {
    fn add(&mut self, latencies: &[u64]) {
        self.count += latencies.len();
        self.missed += latencies.iter().map(|latency| latency / 1_000_000).sum::<u64>();
        self.sum_ns += latencies.iter().sum::<u64>();
        self.min_ns = latencies.iter().copied().chain(self.min_ns).min();
        self.max_ns = latencies.iter().copied().chain(self.max_ns).max();
    }
}

/// An interval with the totals up to it. Their type is that of the measuring loops, which reports
/// do not use: they come from the line of a log.
fn totals(span: IntervalSpan, counts: Histogram<u64>, so_far: &SoFar) -> IntervalOf {
    let SoFar { count, missed, sum_ns: sum, min_ns, max_ns } = so_far;
    let (min, max) = (min_ns.unwrap_or(0), max_ns.unwrap_or(0));
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

/// A run of `attach` with a deadline of 1 ms: `ctl` wakes up in time and works too long in 228 of
/// 2,976 cycles, `log` is woken by tasks.
pub(crate) fn judged() -> Document {
    let names = ["ctl", "ctl/response", "ctl/77", "ctl/77/response", "log"];
    let mut document = of("timer", &names);
    document.probe = ProbeRecord::Attach(AttachParameters {
        by: "comm".into(),
        target: "ctl".into(),
        only: None,
        deadlines: Vec::new(),
    });
    document.parameters.deadline_ns = Some(1_000_000);
    document.series.iter_mut().for_each(as_attached);
    document.attached = Some(
        serde_json::from_value(json!({
            "threads": 2, "pooled_only": 0, "no_room": 0, "ended_ns": null, "command": null,
            "rows": [row("ctl", None), row("ctl", Some(77)), row("log", None)],
        }))
        .unwrap(),
    );
    document
}

/// A row of [`judged`].
fn row(name: &str, tid: Option<u32>) -> Value {
    let times = |count: u64, ns: i64, max: i64| {
        let [mean, p50, p99] = [ns; 3];
        json!({"count": count, "mean": mean, "p50": p50, "p99": p99, "max": max})
    };
    let mut row = json!({
        "series": tid.map_or_else(|| name.to_owned(), |tid| format!("{name}/{tid}")),
        "tid": tid, "pid": tid.map(|_| 70), "threads": tid.is_none().then_some(1),
        "policy": "fifo 80", "latency": "dispatch", "wakeups": 300, "by_timer": 0,
        "by_interrupt": 0, "by_ipi": 0, "by_task": 300, "by_own_timer": 0, "in_slack": 0,
        "slack_ns": null, "period_ns": null, "preempted": 0, "unmatched": 0,
        "run": times(300, 9_000, 20_000), "ready": times(0, 0, 0),
        "blocked": times(300, 9_000_000, 10_000_000),
    });
    if name == "ctl" {
        let own = json!({
            "latency": "lateness", "wakeups": 2_976, "by_timer": 2_976, "by_task": 0,
            "by_own_timer": 2_976, "period_ns": 1_000_000, "missed": 24, "unsure_periods": 19,
            "unmatched": 19, "lateness": times(2_976, 40_000, 5_490_000),
            "response": times(2_976, 300_000, 271_000_000),
            "over": {
                "deadline_ns": 1_000_000, "cycles": 228, "late_ns": 9_000_000,
                "run_ns": 90_000_000, "ready_ns": 1_000_000, "wait_ns": 600_000_000,
                "unseen_ns": 0,
                "waits": {"futex_ns": 600_000_000, "pi_mutex_ns": 0, "io_ns": 0, "other_ns": 0},
            },
        });
        let (Some(row), Some(own)) = (row.as_object_mut(), own.as_object()) else { return row };
        row.extend(own.clone());
    }
    row
}

/// The series of [`judged`].
fn as_attached(series: &mut SeriesSummary) {
    let name = series.name.clone();
    let is_response = name.ends_with("/response");
    series.cpu = None;
    series.stage = is_response.then(|| "response".into());
    series.stage_of = is_response.then(|| name.trim_end_matches("/response").to_owned());
    series.thread_of = name.contains("77").then(|| "ctl".to_owned());
    (series.period_ns, series.missed, series.scheduled) = (None, None, None);
    if is_response {
        (series.count, series.min, series.max) = (2_976, Some(290_000), Some(271_000_000));
        series.percentiles = [("50", 300_000), ("90", 900_000), ("99", 3_000_000)]
            .map(|(name, ns)| (name.to_owned(), ns))
            .into_iter()
            .collect();
    } else if name.starts_with("ctl") {
        (series.count, series.max) = (2_976, Some(5_490_000));
        (series.period_ns, series.missed) = (Some(1_000_000), Some(24));
    }
}
