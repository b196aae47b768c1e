//! The timer probe beside cyclictest and beside a bare loop: same CPUs, interval, policy and
//! priority, in turns.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tardy::{
    analysis,
    run::{Run, hlog},
    units::Nanos,
};

use super::{
    Bench,
    process::{self, Used},
    say,
    sheet::{FigureRow, Section, interval},
};

/// Buckets of cyclictest's histogram in its ns mode: 1 ms, as many as it can have.
pub(super) const CYCLICTEST_NS_BUCKETS: u64 = 1_000_000;

/// Who measures, and what for: some cannot give everything in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Tardy,
    /// `-N`: latencies in ns.
    CyclictestNs,
    /// As people run it, with a histogram in us: for its CPU time.
    Cyclictest,
    /// Latencies into an array.
    BareKeeping,
    /// The maximum alone: for its CPU time.
    BareMax,
}

/// One round's results of one side.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    p50_ns: f64,
    p99_ns: f64,
    cpu_ns: f64,
}

/// What of an outcome is compared.
type Figure = fn(&Outcome) -> f64;

/// How long each side runs, and how often.
struct Frame<'a> {
    bench: &'a Bench,
    interval_ns: i64,
    length: Duration,
    rounds: usize,
}

/// All intervals.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Timer wake-ups beside cyclictest and a bare loop");
    let intervals: &[i64] = bench.either(&[200_000, 1_000_000], &[200_000]);
    let length = Duration::from_millis(bench.either(4_000, 800));
    let rounds = bench.either(7, 6);
    for interval_ns in intervals {
        Frame { bench, interval_ns: *interval_ns, length, rounds }.measure(&mut section);
    }
    let version = Command::new("cyclictest").arg("--help").output();
    let version = version.ok().and_then(|out| {
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        text.lines().find(|line| line.starts_with("cyclictest")).map(str::to_owned)
    });
    section.note(format!(
        "{rounds} rounds; in each, every side runs once for {:.1} s, one after the other, there \
         and back in turns: tardy (`--trace off --warmup 0us`), {}, bare loop; all SCHED_FIFO \
         90, one thread per CPU, memory locked, `/dev/cpu_dma_latency` held at 0.",
        length.as_secs_f64(),
        version.unwrap_or_else(|| "cyclictest".into()),
    ));
    section.note(
        "Latencies: cyclictest truncates to whole us unless it is run with `-N`, so percentiles \
         are taken from a run with `-N -h 1000000` (1 ns buckets), its CPU time from a run with \
         `-h 1000` (1 us buckets), which is how it is used. The bare loop stores latencies into \
         a touched array for the percentiles, and keeps nothing but a maximum for the CPU time. \
         All of them go through the same histogram (three digits) before percentiles are read, \
         all CPUs together.",
    );
    section.note(
        "CPU per wake-up: what the scheduler counted for the measuring threads alone \
         (`/proc/PID/task/TID/schedstat`, ns) read from outside twice, about 30 and 85% \
         into the run, divided by the voluntary context switches between them. One rule for all \
         sides, without anyone's start-up, helpers or sampled ticks.",
    );
    Ok(section)
}

impl Frame<'_> {
    fn measure(&self, section: &mut Section) {
        use Side::{BareKeeping, BareMax, Cyclictest, CyclictestNs, Tardy};
        let sides = [Tardy, CyclictestNs, Cyclictest, BareKeeping, BareMax];
        let mut rounds: Vec<[Option<Outcome>; 5]> = Vec::new();
        let mut trouble: [Option<String>; 5] = Default::default();
        for round in 0..self.rounds {
            let mut outcomes = [None; 5];
            let mut order: Vec<usize> = (0..sides.len()).collect();
            if round % 2 == 1 {
                // There and back, so that running before the other side gives no advantage.
                order.reverse();
            }
            for at in order {
                match self.run(sides[at], round) {
                    Ok(outcome) => outcomes[at] = Some(outcome),
                    Err(error) => trouble[at] = Some(format!("{error:#}")),
                }
            }
            rounds.push(outcomes);
            say(&format!("  {}: round {} of {}", Nanos(self.interval_ns), round + 1, self.rounds));
        }
        let (p50, p99, cpu): (Figure, Figure, Figure) =
            (|outcome| outcome.p50_ns, |outcome| outcome.p99_ns, |outcome| outcome.cpu_ns);
        for (peer, limit, latencies, lean) in [("cyclictest", 1.0, 1, 2), ("bare loop", 1.05, 3, 4)]
        {
            for (what, of, side) in [
                ("median", p50, latencies),
                ("p99", p99, latencies),
                ("CPU per wake-up", cpu, lean),
            ] {
                let what = format!("{what} against {peer}, {} interval", Nanos(self.interval_ns));
                let pairs: Vec<(f64, f64)> = rounds
                    .iter()
                    .filter_map(|round| Some((of(&round[0]?), of(&round[side]?))))
                    .collect();
                let why = trouble[0].as_ref().or(trouble[side].as_ref());
                section.rows.push(row(what, limit, &pairs, why.map(String::as_str)));
            }
        }
    }

    /// One side, once.
    fn run(&self, side: Side, round: usize) -> Result<Outcome> {
        let place = self.bench.path(&format!("peer-{side:?}-{}-{round}", self.interval_ns));
        let begun = Instant::now();
        let mut child = process::start(&mut self.command(side, &place))?;
        let look = |at: Duration| {
            sleep(at.saturating_sub(begun.elapsed()));
            Used::of(child.id(), |name, first| match side {
                Side::Tardy => name.starts_with("tardy/cpu"),
                _ => !first,
            })
        };
        let early = look(self.length.mul_f64(0.25) + Duration::from_millis(200));
        let late = look(self.length.mul_f64(0.85));
        let ended = child.wait()?;
        ensure!(ended.success(), "{side:?} ended with {ended}");
        let cpu_ns = late?.per_wakeup_since(early?)?;
        let counts = latencies(side, &place).with_context(|| format!("{side:?}: no latencies"))?;
        let at = |quantile| counts.value_at_quantile(quantile) as f64;
        Ok(Outcome { p50_ns: at(0.5), p99_ns: at(0.99), cpu_ns })
    }

    fn command(&self, side: Side, place: &Path) -> Command {
        let Self { bench, interval_ns, length, .. } = self;
        let (cpus, count) = (bench.cpus.to_string(), bench.cpus.len().to_string());
        let length_ns = length.as_nanos();
        let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut command = Command::new(match side {
            Side::Tardy => bench.tardy.clone(),
            Side::Cyclictest | Side::CyclictestNs => PathBuf::from("cyclictest"),
            Side::BareKeeping | Side::BareMax => bench.own.clone(),
        });
        let loops = length_ns / u128::from(interval_ns.unsigned_abs());
        let cyclictest =
            format!("-m -p90 -a {cpus} -t {count} -i {} -d 0 -q -l {loops}", interval_ns / 1_000);
        match side {
            Side::Tardy => command
                .args(words(format!(
                    "run timer --trace off --cpus {cpus} --interval {interval_ns}ns --warmup 0us \
                     --duration {length_ns}ns --policy fifo --priority 90 --quiet -o"
                )))
                .arg(place),
            Side::CyclictestNs => command
                .args(words(format!("{cyclictest} -N -h {CYCLICTEST_NS_BUCKETS}")))
                .arg(format!("--json={}", place.display())),
            Side::Cyclictest => command
                .args(words(format!("{cyclictest} -h 1000")))
                .arg(format!("--json={}", place.display())),
            Side::BareKeeping => command
                .args(words(format!("bare-loop {cpus} {interval_ns} {length_ns}")))
                .arg(place),
            Side::BareMax => {
                command.args(words(format!("bare-loop {cpus} {interval_ns} {length_ns}")))
            }
        };
        command
    }
}

fn row(what: String, limit: f64, pairs: &[(f64, f64)], why: Option<&str>) -> FigureRow {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let middle =
        |values: &[f64]| analysis::median(values, 0.95).map(|all| Nanos(all.median as i64));
    let limit_text = format!("{limit:.2}");
    match (analysis::paired(pairs, 0.95), middle(&ours), middle(&theirs)) {
        (Ok(ratio), Ok(ours), Ok(theirs)) => {
            let measured = format!("{}; {ours} against {theirs}", interval(&ratio, 3));
            FigureRow::new(what, measured).judged(limit_text, ratio.meets(limit))
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            FigureRow::not_measured(what, limit_text, why.unwrap_or(&error.to_string()))
        }
    }
}

/// Everything that one run measured, all CPUs together. Sides that run for their CPU time have
/// nothing to say here.
fn latencies(side: Side, place: &Path) -> Result<Histogram<u64>> {
    let mut all = hlog::empty();
    match side {
        Side::Tardy => {
            Run::open(place)?.intervals(|_, _, counts| {
                // Bounds are equal, so that nothing can be lost.
                let _ = all.add(&counts);
            })?;
        }
        Side::CyclictestNs => cyclictest(&fs::read(place)?, &mut all)?,
        Side::BareKeeping => {
            for latency in fs::read(place)?.chunks_exact(8) {
                let latency = i64::from_ne_bytes(latency.try_into()?);
                all.record(u64::try_from(latency).unwrap_or(0))?;
            }
        }
        Side::Cyclictest | Side::BareMax => all.record(1)?,
    }
    ensure!(!all.is_empty(), "not one sample");
    Ok(all)
}

/// Reads cyclictest's JSON; latencies beyond its histogram count as the first value beyond.
pub(super) fn cyclictest(json: &[u8], all: &mut Histogram<u64>) -> Result<()> {
    let json: serde_json::Value = serde_json::from_slice(json)?;
    let threads = json.get("thread").and_then(|threads| threads.as_object());
    for thread in threads.context("no thread in its JSON")?.values() {
        let mut counted = 0;
        let histogram = thread.get("histogram").and_then(|histogram| histogram.as_object());
        for (latency, count) in histogram.context("no histogram in its JSON")? {
            let count = count.as_u64().context("not a count")?;
            all.record_n(latency.parse()?, count)?;
            counted += count;
        }
        let cycles = thread.get("cycles").and_then(serde_json::Value::as_u64).unwrap_or(counted);
        all.record_n(CYCLICTEST_NS_BUCKETS, cycles.saturating_sub(counted))?;
    }
    Ok(())
}
