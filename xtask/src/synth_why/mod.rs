//! `synth-why DIR`: a traced run of one minute on 4 CPUs, made up, with more than 100 peaks of
//! every cause, for those who read such runs.
//!
//! Whole latencies, stages, sums and peaks agree with each other as those of a real run do. Tests
//! include this file, so that it needs nothing of its neighbours.

mod delay;
mod peak;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde_json::json;
use tardy::run::{
    Document, Facts, IntervalOf, ProbeRecord, Provenance, RunParameters, RunWriter, SCHEMA_VERSION,
    SeriesHead, SetupRecord, Status, TimerParameters, Validity, hlog, names,
    peaks::{Blame, CauseOf, LatencyBucket, Part, Peak, StagesOf},
    summary::summarize,
};
use tardy_hot::tally::Totals;

use delay::SynthDelay;

const CPUS: u32 = 4;
const PERIOD_NS: i64 = 1_000_000;
const WAKEUPS: i64 = 60_000;
const START_NS: i64 = 4_000_000_000_000;
const INTERVALS: i64 = 60;
/// Wake-ups that are later are blamed.
const THRESHOLD_NS: i64 = 30_000;
/// The threshold of whole peaks that a warm-up would have found, and how many are kept.
const PEAK_NS: i64 = 100_000;
const KEEP: usize = 100;
/// The stages, by time.
const STAGES: [&str; 4] = ["irq", "handler", "dispatch", "user"];

/// Writes the run into `directory`, which must be empty or not there.
///
/// # Errors
/// Something is there already, or the disk does not take it.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let heads = heads();
    let mut document = document(&heads)?;
    let mut maker = RunWriter::create(directory, &document, false)?;
    maker.begin(&document)?;
    let wakeups = wakeups();
    let mut totals: Vec<_> = heads.iter().map(|_| (hlog::empty(), Totals::NONE)).collect();
    let each = WAKEUPS / INTERVALS;
    for interval in 0..INTERVALS {
        let within = |wakeup: &&Wakeup| wakeup.turn / each == interval;
        let rows = intervals(&heads, wakeups.iter().filter(within), &mut totals, interval)?;
        maker.append_intervals(&rows)?;
    }
    document.series = heads
        .iter()
        .zip(&totals)
        .map(|(head, (counts, totals))| summarize(head, counts, totals))
        .collect();
    let mut lines = Vec::new();
    for peak in admitted(&wakeups) {
        serde_json::to_writer(&mut lines, &peak)?;
        lines.push(b'\n');
    }
    fs::write(directory.join(names::PEAKS), lines)?;
    fs::write(directory.join(names::BLAME), serde_json::to_vec_pretty(&sums(&wakeups))?)?;
    document.status = Status::Complete;
    document.ended_at = Some("2026-01-01T00:01:00Z".into());
    document.duration_ns = (WAKEUPS * PERIOD_NS).unsigned_abs();
    maker.finish(&document).context("cannot write the last record")
}

/// One wake-up of one CPU, and why it was as late as it was.
struct Wakeup {
    cpu: u32,
    /// Its period, from 0.
    turn: i64,
    at_ns: i64,
    stages: StagesOf,
    delay: Option<SynthDelay>,
}

impl Wakeup {
    fn latency_ns(&self) -> i64 {
        let StagesOf { irq, softirq, handler, dispatch, user } = self.stages;
        irq + softirq + handler + dispatch + user
    }
}

/// All wake-ups by time.
fn wakeups() -> Vec<Wakeup> {
    let mut random = Random(1);
    let mut wakeups = Vec::new();
    for (turn, cpu) in (0..WAKEUPS).flat_map(|turn| (0..CPUS).map(move |cpu| (turn, cpu))) {
        let mut stages = StagesOf {
            irq: 900 + random.below(1_200),
            softirq: 0,
            handler: 700 + random.below(600),
            dispatch: 1_500 + random.below(2_500),
            user: 400 + random.below(500),
        };
        let delay = delay::of(&mut random, turn, cpu);
        if let Some(delay) = &delay {
            delay.add_to(&mut stages);
        }
        let at_ns = START_NS + turn * PERIOD_NS;
        wakeups.push(Wakeup { cpu, turn, at_ns, stages, delay });
    }
    wakeups
}

/// What one wake-up is blamed on; the parts sum to its latency.
fn blame(wakeup: &Wakeup) -> Vec<Part> {
    let latency = wakeup.latency_ns().unsigned_abs();
    let delay = wakeup.delay.as_ref();
    let mut parts: Vec<Part> = delay.map(SynthDelay::part).into_iter().collect();
    let mut rest = latency.saturating_sub(parts.iter().map(|part| part.ns).sum());
    for (cause, name, share) in delay::BESIDE {
        let ns = rest * share / 100;
        rest -= ns;
        let (name, task, stack) = (name.into(), None, Vec::new());
        let (basis, evidence) = delay::basis(cause);
        parts.push(Part { cause, name, task, ns, basis, evidence, stack });
    }
    parts.retain(|part| part.ns > 0);
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    parts
}

/// The peaks that a maker would have kept, in the order in which it found them.
fn admitted(wakeups: &[Wakeup]) -> Vec<Peak> {
    let mut worst: Vec<i64> = Vec::new();
    let mut peaks = Vec::new();
    for wakeup in wakeups {
        let latency = wakeup.latency_ns();
        let least = if worst.len() < KEEP { PEAK_NS } else { worst.first().copied().unwrap_or(0) };
        if latency <= least {
            continue;
        }
        worst.insert(worst.partition_point(|other| *other < latency), latency);
        if worst.len() > KEEP {
            worst.remove(0);
        }
        peaks.push(peak::peak(wakeup));
    }
    peaks
}

/// What all late wake-ups were blamed on.
fn sums(wakeups: &[Wakeup]) -> Blame {
    let mut causes: Vec<CauseOf> = Vec::new();
    let mut buckets: BTreeMap<i64, LatencyBucket> = BTreeMap::new();
    for wakeup in wakeups.iter().filter(|wakeup| wakeup.latency_ns() > THRESHOLD_NS) {
        let latency = wakeup.latency_ns();
        let low_ns = bucket_of(latency);
        let empty = LatencyBucket { low_ns, wakeups: 0, ns: 0, parts: Vec::new() };
        let bucket = buckets.entry(low_ns).or_insert(empty);
        bucket.wakeups += 1;
        bucket.ns += latency.unsigned_abs();
        for part in blame(wakeup) {
            let series = format!("cpu{}", wakeup.cpu);
            let cause = CauseOf { series, cause: part.cause, name: part.name, basis: part.basis };
            let known = causes.iter().position(|known| *known == cause);
            let index = known.unwrap_or_else(|| {
                causes.push(cause);
                causes.len() - 1
            });
            add_part(bucket, index as u32, part.ns);
        }
    }
    Blame {
        until_ns: None,
        threshold_ns: THRESHOLD_NS,
        lowest_threshold_ns: THRESHOLD_NS,
        blamed: buckets.values().map(|bucket| bucket.wakeups).sum(),
        passed_over: 3,
        responses_passed_over: 0,
        unmatched: 2,
        lost_events: 0,
        peaks_left_out: 0,
        causes,
        buckets: buckets.into_values().collect(),
        responses: Vec::new(),
        stolen: None,
        without_host: Vec::new(),
    }
}

fn add_part(bucket: &mut LatencyBucket, cause: u32, ns: u64) {
    match bucket.parts.iter_mut().find(|(known, ..)| *known == cause) {
        Some((_, times, sum)) => (*times, *sum) = (*times + 1, *sum + ns),
        None => bucket.parts.push((cause, 1, ns)),
    }
}

/// The lower edge of the sixteenth of an octave in which a latency of at least 16 ns lies.
fn bucket_of(ns: i64) -> i64 {
    let step = 1_i64 << (ns.max(16).ilog2() - 4);
    ns / step * step
}

/// One series a CPU, and behind it those of its stages.
fn heads() -> Vec<SeriesHead> {
    let of = |cpu: u32| {
        let whole =
            SeriesHead { name: format!("cpu{cpu}"), cpu: Some(cpu), period_ns: Some(PERIOD_NS) };
        let stage = move |stage: &str| SeriesHead {
            name: format!("cpu{cpu}/{stage}"),
            cpu: Some(cpu),
            period_ns: None,
        };
        std::iter::once(whole).chain(STAGES.map(stage))
    };
    (0..CPUS).flat_map(of).collect()
}

/// One interval of every series.
fn intervals<'a>(
    heads: &[SeriesHead],
    wakeups: impl Iterator<Item = &'a Wakeup>,
    totals: &mut [(Histogram<u64>, Totals)],
    number: i64,
) -> Result<Vec<IntervalOf>> {
    let mut counts: Vec<_> = heads.iter().map(|_| hlog::empty()).collect();
    for wakeup in wakeups {
        let StagesOf { irq, handler, dispatch, user, .. } = wakeup.stages;
        let values = [wakeup.latency_ns(), irq, handler, dispatch, user];
        let first = wakeup.cpu as usize * values.len();
        for (at, ns) in values.into_iter().enumerate() {
            if let (Some(counts), Some((_, totals))) =
                (counts.get_mut(first + at), totals.get_mut(first + at))
            {
                counts.record(ns.unsigned_abs())?;
                add(totals, ns, if at == 0 { ns / PERIOD_NS } else { 0 });
            }
        }
    }
    let length_s = (WAKEUPS / INTERVALS * PERIOD_NS) as f64 / 1e9;
    let mut rows = Vec::new();
    for ((head, counts), (total, totals)) in heads.iter().zip(counts).zip(totals) {
        total.add(&counts)?;
        let start_s = number as f64 * length_s;
        let span = hlog::IntervalSpan { tag: head.name.clone(), start_s, length_s };
        rows.push(IntervalOf { span, counts, totals: *totals });
    }
    Ok(rows)
}

fn add(totals: &mut Totals, ns: i64, missed: i64) {
    totals.count += 1;
    totals.sum_ns += ns;
    totals.min_ns = totals.min_ns.min(ns);
    totals.max_ns = totals.max_ns.max(ns);
    totals.missed += missed.unsigned_abs();
}

fn document(heads: &[SeriesHead]) -> Result<Document> {
    let parameters = RunParameters {
        duration_ns: Some(WAKEUPS * PERIOD_NS),
        warmup_ns: 1_000_000_000,
        peaks: Some(100),
        ..RunParameters::default()
    };
    let trace = json!({
        "asked": "auto", "found": "peaks", "why_not": null, "missing": [], "unmatched": 2,
        "lost_events": 0, "blamed": 0, "passed_over": 3, "threshold_ns": THRESHOLD_NS,
        "cost": null,
    });
    Ok(Document {
        schema_version: SCHEMA_VERSION,
        id: "20260101-000000-0001".into(),
        name: "a minute that never was".into(),
        argv: ["tardy", "run", "timer", "--duration", "60s"].map(str::to_owned).into(),
        provenance: Provenance::synthesised("xtask", env!("CARGO_PKG_VERSION")),
        status: Status::Running,
        validity: Validity::Valid,
        caveats: Vec::new(),
        probe: ProbeRecord::Timer(TimerParameters {
            wake: "nanosleep".into(),
            interval_ns: PERIOD_NS,
            distance_ns: 0,
            cpus: "0-3".into(),
            interval_step_ns: None,
            threads_per_cpu: 1,
            total_threads: None,
            priority_step: 0,
            work_ns: None,
            loops_per_ms: None,
        }),
        log_interval_ns: WAKEUPS / INTERVALS * PERIOD_NS,
        parameters,
        loads: Vec::new(),
        setup: SetupRecord::default(),
        trace: serde_json::from_value(trace)?,
        facts: Facts { hostname: "nowhere".into(), cpus_online: "0-3".into(), ..Facts::default() },
        started_at: "2026-01-01T00:00:00Z".into(),
        ended_at: None,
        duration_ns: 0,
        start_monotonic_ns: START_NS,
        machine: None,
        conditions: None,
        messages: None,
        attached: None,
        series: heads.iter().map(|head| summarize(head, &hlog::empty(), &Totals::NONE)).collect(),
        figures: Vec::new(),
        without_host: None,
    })
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    /// From 0 to below `limit`.
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 1) % limit.unsigned_abs().max(1)) as i64
    }
}
