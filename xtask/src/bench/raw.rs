//! `--raw`: bytes per sample on disk, and whether any sample is lost.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use tardy::{
    run::{Run, names},
    units::count,
};

use super::{
    Bench, process,
    sheet::{FigureRow, Section},
};

const LIMIT_BYTES: f64 = 3.0;

/// Bytes of real wake-ups, losses at a rate that no timer reaches.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Every single sample on disk (`--raw`)");
    let seconds = bench.either(12, 2);
    for interval in ["1ms", "200us"] {
        let run = run(bench, &["timer", "--trace", "off"], interval, seconds, None)?;
        let (rows, bytes) = (kept(&run)?, size(&run.path.join(names::SAMPLES))?);
        let each = bytes as f64 / rows as f64;
        let what = format!("bytes per sample, timer, {interval} interval");
        let measured = format!("{each:.2} ({} samples)", count(rows));
        section.rows.push(
            FigureRow::new(what, measured)
                .judged(format!("{LIMIT_BYTES} bytes"), each <= LIMIT_BYTES),
        );
    }
    let seconds = bench.either(20, 4);
    for (interval, series) in [("5us", 1), ("10us", 2)] {
        let run = run(bench, &["fake"], interval, seconds, Some(series))?;
        section.rows.push(loss(&run, seconds)?);
    }
    section.note(
        "Lost is the difference between what the histogram counted and the rows that can be read \
         back. The fake probe feeds known samples at the rate named; its process and the recorder \
         share the CPUs with whatever else runs.",
    );
    Ok(section)
}

fn loss(run: &Run, seconds: u32) -> Result<FigureRow> {
    let counted: u64 = run.document.wakeups().map(|series| series.count).sum();
    let lost = counted.saturating_sub(kept(run)?);
    let caveat = run.document.caveats.iter().any(|caveat| caveat.code == "samples_lost");
    ensure!(caveat == (lost > 0), "{lost} samples lost, but the run's caveats say otherwise");
    let (rate, series) = (counted / u64::from(seconds), run.document.series.len());
    let what = format!("samples lost at {} samples/s, {series} series", count(rate));
    let measured = format!("{} of {}", count(lost), count(counted));
    Ok(FigureRow::new(what, measured).judged("0", lost == 0))
}

fn run(
    bench: &Bench,
    words: &[&str],
    interval: &str,
    seconds: u32,
    series: Option<usize>,
) -> Result<Run> {
    let place = bench.path(&format!("raw-{}-{interval}", words.first().context("no probe")?));
    let cpus: Vec<String> =
        bench.cpus.iter().take(series.unwrap_or(usize::MAX)).map(|cpu| cpu.to_string()).collect();
    let mut command = Command::new(&bench.tardy);
    command
        .arg("run")
        .args(words)
        .args(["--raw", "--quiet", "--warmup", "0us", "--interval", interval])
        .args(["--cpus", &cpus.join(","), "--duration", &format!("{seconds}s"), "-o"])
        .arg(&place);
    process::run(&mut command)?;
    Ok(Run::open(&place)?)
}

/// Rows that can be read back.
fn kept(run: &Run) -> Result<u64> {
    let mut rows = 0;
    run.samples(|_, _| rows += 1).map_err(anyhow::Error::msg)?;
    ensure!(rows > 0, "no sample was kept");
    Ok(rows)
}

fn size(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
