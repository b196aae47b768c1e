//! `synth-day DIR`: a run of one day on 8 CPUs at 1 kHz, made up, for those who read such runs.
//!
//! Its shape is that of a real one: a body of some us, a tail, rare delays of ms; all files of a
//! run without `--raw`, written by the same code that writes real ones.

use std::path::Path;

use anyhow::{Context, Result};
use tardy::run::{
    Document, Facts, IntervalOf, LoadProof, LoadRecord, ProbeRecord, Provenance, RunParameters,
    RunWriter, SCHEMA_VERSION, SeriesHead, SetupRecord, Status, TimerParameters, TraceMode,
    TraceRecord, Validity, hlog, names,
    summary::summarize,
    tracks::{InterruptCount, LoadRow, MachineRow, to_csv},
};
use tardy_hot::tally::Totals;

const CPUS: u32 = 8;
const INTERVALS: u32 = 1_000;
const DAY_S: f64 = 86_400.0;
const PERIOD_NS: i64 = 1_000_000;

/// Samples of one CPU in one interval, and how many of them one random number stands for: drawing
/// each of 691 million would take longer than anything that is to be measured.
const SAMPLES: u64 = 86_400;
const EACH: u64 = 8;

/// Writes the run into `directory`, which must be empty or not there.
pub(crate) fn day(directory: &Path) -> Result<()> {
    let heads: Vec<SeriesHead> = (0..CPUS).map(head).collect();
    let mut document = document(&heads);
    let mut maker = RunWriter::create(directory, &document, false)?;
    maker.begin(&document)?;
    let mut series = vec![(hlog::empty(), Totals::NONE); heads.len()];
    let mut random = Random(1);
    let length_s = DAY_S / f64::from(INTERVALS);
    for interval in 0..INTERVALS {
        let mut intervals = Vec::new();
        for (head, (total, totals)) in heads.iter().zip(&mut series) {
            let counts = draw(&mut random, totals)?;
            total.add(&counts)?;
            let span = hlog::IntervalSpan {
                tag: head.name.clone(),
                start_s: f64::from(interval) * length_s,
                length_s,
            };
            intervals.push(IntervalOf { span, counts, totals: *totals });
        }
        maker.append_intervals(&intervals)?;
    }
    tracks(&mut maker, &mut random)?;
    document.series = heads
        .iter()
        .zip(&series)
        .map(|(head, (counts, totals))| summarize(head, counts, totals))
        .collect();
    document.status = Status::Complete;
    document.ended_at = Some("2026-01-02T00:00:00Z".into());
    document.duration_ns = (DAY_S * 1e9) as u64;
    maker.finish(&document).context("cannot write the last record")
}

fn head(cpu: u32) -> SeriesHead {
    SeriesHead { name: format!("cpu{cpu}"), cpu: Some(cpu), period_ns: Some(PERIOD_NS) }
}

fn document(heads: &[SeriesHead]) -> Document {
    let parameters = RunParameters {
        duration_ns: Some((DAY_S * 1e9) as i64),
        warmup_ns: 1_000_000_000,
        ..RunParameters::default()
    };
    Document {
        schema_version: SCHEMA_VERSION,
        id: "20260101-000000-0000".into(),
        name: "a day that never was".into(),
        argv: ["tardy", "run", "timer", "--duration", "24h"].map(str::to_owned).into(),
        provenance: Provenance::synthesised("xtask", env!("CARGO_PKG_VERSION")),
        status: Status::Running,
        validity: Validity::Valid,
        caveats: Vec::new(),
        probe: ProbeRecord::Timer(TimerParameters {
            wake: "nanosleep".into(),
            interval_ns: PERIOD_NS,
            distance_ns: 0,
            cpus: "0-7".into(),
            interval_step_ns: None,
            threads_per_cpu: 1,
            total_threads: None,
            priority_step: 0,
            work_ns: None,
            loops_per_ms: None,
        }),
        log_interval_ns: parameters.log_interval_ns(PERIOD_NS),
        parameters,
        loads: vec![load()],
        setup: SetupRecord::default(),
        trace: TraceRecord::off(TraceMode::Off),
        facts: Facts { hostname: "nowhere".into(), cpus_online: "0-7".into(), ..Facts::default() },
        started_at: "2026-01-01T00:00:00Z".into(),
        ended_at: None,
        duration_ns: 0,
        start_monotonic_ns: 0,
        machine: None,
        conditions: None,
        messages: None,
        attached: None,
        series: heads.iter().map(|head| summarize(head, &hlog::empty(), &Totals::NONE)).collect(),
        figures: Vec::new(),
        without_host: None,
    }
}

fn load() -> LoadRecord {
    let proof = LoadProof {
        unit: "messages".into(),
        operations: 86_400_000_000,
        operations_per_s: 1e6,
        context_switches_per_s: 2e5,
        cpu_share: 7.5,
        tasks: 160,
        tasks_idle: 0,
    };
    LoadRecord {
        name: "hackbench".into(),
        parameters: serde_json::Map::new(),
        proof: Some(proof),
        ended: Some("stopped".into()),
    }
}

/// One interval of one CPU.
fn draw(random: &mut Random, totals: &mut Totals) -> Result<hdrhistogram::Histogram<u64>> {
    let mut counts = hlog::empty();
    for _ in 0..SAMPLES / EACH {
        let latency = random.latency();
        counts.record_n(latency, EACH)?;
        let latency = i64::try_from(latency)?;
        totals.count += EACH;
        totals.sum_ns += latency * EACH as i64;
        totals.min_ns = totals.min_ns.min(latency);
        totals.max_ns = totals.max_ns.max(latency);
        totals.missed += latency.unsigned_abs() / PERIOD_NS.unsigned_abs() * EACH;
    }
    Ok(counts)
}

fn tracks(maker: &mut RunWriter, random: &mut Random) -> Result<()> {
    let (mut machine, mut loads) = (Vec::new(), Vec::new());
    for interval in 1..=INTERVALS {
        let t_s = f64::from(interval) * DAY_S / f64::from(INTERVALS);
        let mut row = |what: String, value: f64| machine.push(MachineRow { t_s, what, value });
        for what in ["interrupts", "softirqs", "context_switches", "forks"] {
            row(what.into(), (20_000 + random.below(5_000)) as f64);
        }
        for cpu in 0..CPUS {
            row(format!("cpu{cpu}"), (900 + random.below(100)) as f64 / 1e3);
        }
        let operations_per_s = (1_000_000 + random.below(50_000)) as f64;
        loads.push(LoadRow { t_s, load: 0, operations_per_s });
    }
    let mut interrupts = Vec::new();
    for (source, cpu) in (0..40).flat_map(|source| (0..CPUS).map(move |cpu| (source, cpu))) {
        let difference = random.below(100_000_000);
        interrupts.push(InterruptCount {
            kind: "irq".into(),
            source: source.to_string(),
            description: "made up".into(),
            cpu,
            before: 0,
            after: difference,
            difference,
        });
    }
    maker.append(names::MACHINE, &to_csv(&machine, true))?;
    maker.append(names::LOADS, &to_csv(&loads, true))?;
    Ok(maker.append(names::INTERRUPTS, &to_csv(&interrupts, true))?)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// 4 to 12 us; one in a hundred up to 50 us more, one in a hundred thousand up to 2 ms more.
    fn latency(&mut self) -> u64 {
        let bits = self.next();
        let body = 4_000 + (bits & 0x7ff) + (bits >> 11 & 0x7ff) + (bits >> 22 & 0xfff);
        let rest = bits >> 34;
        match rest % 100_000 {
            7 => body + rest % 2_000_000,
            _ if rest % 100 == 3 => body + rest % 50_000,
            _ => body,
        }
    }
}
