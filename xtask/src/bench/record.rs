//! What recording one sample costs, in instructions and in ns.

use std::{hint::black_box, process::Command, sync::Arc, time::Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use tardy::{analysis, probes::fake};
use tardy_hot::{
    ring::{Sample, ring},
    wakeup::{Counted, Kept, Series, Sink},
};

use super::{
    Bench, process,
    sheet::{FigureRow, Section, interval},
};

/// What a loop does with its samples.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Recording {
    None,
    Counted,
    Kept,
}

/// Samples of one timed batch; the ring holds them all, so that no reader is needed meanwhile.
const BATCH: usize = 1 << 16;

/// Latencies that are gone through again and again: making them up must cost nothing.
const TABLE: usize = 1 << 12;

/// Takes nothing: what the loop around a recording costs.
struct Nothing;

impl Sink for Nothing {
    #[inline(always)]
    fn take(&mut self, sample: Sample) {
        black_box(sample);
    }

    #[inline(always)]
    fn miss(&mut self, _periods: u64) {}
}

fn table() -> Vec<i64> {
    (0..TABLE as u64).map(|n| fake::latency_of(7, n)).collect()
}

#[inline(never)]
fn feed<S: Sink>(sink: &mut S, latencies: &[i64], samples: usize) {
    for n in 0..samples {
        let latency_ns = latencies.get(n & (TABLE - 1)).copied().unwrap_or(0);
        sink.take(Sample { t_ns: n as i64, latency_ns });
    }
}

/// One loop of recordings
#[derive(Debug, Args)]
pub(crate) struct LoopFlags {
    recording: Recording,
    samples: usize,
}

/// For a simulator that counts instructions.
pub(crate) fn run_loop(flags: &LoopFlags) -> Result<()> {
    let (latencies, samples) = (table(), flags.samples);
    let series = Arc::new(Series::default());
    let (writer, _reader) = ring(samples);
    match flags.recording {
        Recording::None => feed(&mut Nothing, &latencies, samples),
        Recording::Counted => feed(&mut Counted(series), &latencies, samples),
        Recording::Kept => feed(&mut Kept(series, writer), &latencies, samples),
    }
    Ok(())
}

/// All recordings in turns
#[derive(Debug, Args)]
pub(crate) struct TimeFlags {
    batches: usize,
}

/// ns per sample, a line per batch with one number for each [`Recording`].
pub(crate) fn run_time(flags: &TimeFlags) -> Result<()> {
    let latencies = table();
    let mut counted = Counted(Arc::new(Series::default()));
    let (writer, mut reader) = ring(BATCH);
    let mut kept = Kept(Arc::new(Series::default()), writer);
    let per_sample = |begun: Instant| begun.elapsed().as_nanos() as f64 / BATCH as f64;
    let mut lines = String::new();
    // One batch first, so that everything is where it will be.
    for batch in 0..flags.batches + 1 {
        let begun = Instant::now();
        feed(&mut Nothing, &latencies, BATCH);
        let none = per_sample(begun);
        let begun = Instant::now();
        feed(&mut counted, &latencies, BATCH);
        let counting = per_sample(begun);
        let begun = Instant::now();
        feed(&mut kept, &latencies, BATCH);
        let keeping = per_sample(begun);
        ensure!(reader.drain(|_| {}) == BATCH, "the ring was too small");
        if batch > 0 {
            lines += &format!("{none} {counting} {keeping}\n");
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), lines.as_bytes())?;
    Ok(())
}

/// Instructions and time.
pub(crate) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Recording one sample");
    let times = times(bench)?;
    for (place, what) in [(1, "histogram, maximum, count"), (2, "the same, and the sample kept")] {
        let own: Vec<f64> = times.iter().filter_map(|line| line.get(place).copied()).collect();
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        let middle = analysis::median(&own, 0.95)?;
        let measured = format!("{} ns; least {least:.2} ns", interval(&middle, 2));
        let row = FigureRow::new(what, measured);
        let judged = place == 1;
        section.rows.push(if judged { row.judged("10 ns", middle.meets(10.0)) } else { row });
    }
    match instructions(bench) {
        Ok(rows) => section.rows.extend(rows),
        Err(error) => section.note(format!("Instructions were not counted: {error:#}.")),
    }
    section.note(format!(
        "{} batches of {BATCH} samples of each kind in turns, the loop around the recording \
         included. Instructions: callgrind, the difference between N and 2 N samples by N, the \
         same of an empty loop subtracted.",
        times.len()
    ));
    section.note(
        "That recording takes no allocation, page fault or system call is counted in \
         `crates/tardy-hot/tests/no_surprises/main.rs`.",
    );
    Ok(section)
}

fn times(bench: &Bench) -> Result<Vec<Vec<f64>>> {
    let batches = bench.either("301", "51");
    let out = Command::new(&bench.own).args(["record-time", batches]).output()?;
    ensure!(out.status.success(), "record-time failed");
    let text = String::from_utf8(out.stdout)?;
    let line = |line: &str| line.split(' ').map(|number| Ok(number.parse()?)).collect();
    text.lines().map(line).collect()
}

fn instructions(bench: &Bench) -> Result<Vec<FigureRow>> {
    let [none, counted, kept] = ["none", "counted", "kept"].map(|name| per_sample(bench, name));
    let none = none?;
    let row = |what: &str, instructions: f64| {
        FigureRow::new(format!("instructions: {what}"), format!("{:.1}", instructions - none))
    };
    Ok(vec![
        row("histogram, maximum, count", counted?),
        row("the same, and the sample kept", kept?),
    ])
}

fn per_sample(bench: &Bench, recording: &str) -> Result<f64> {
    const N: u64 = 100_000;
    let once = callgrind(bench, recording, N)?;
    let twice = callgrind(bench, recording, 2 * N)?;
    Ok(twice.saturating_sub(once) as f64 / N as f64)
}

/// Instructions in the loop itself: what touching a larger ring costs lies outside.
fn callgrind(bench: &Bench, recording: &str, samples: u64) -> Result<u64> {
    let file = bench.path(&format!("callgrind-{recording}-{samples}"));
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--toggle-collect=*bench::record::feed*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(&bench.own)
        .args(["record-loop", recording, &samples.to_string()]);
    process::run(&mut command)?;
    let text = std::fs::read_to_string(&file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.context("callgrind gave no total")?.trim().parse()?)
}
