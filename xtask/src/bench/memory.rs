//! Memory, and time, for very many samples.

use std::process::Command;

use anyhow::{Result, ensure};
use tardy::run::Run;

use super::{
    Bench, process,
    sheet::{FigureRow, Section},
};

const LIMIT_MIB: f64 = 64.0;

/// 300 million samples into each of two series, as fast as they can be fed.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Memory");
    let samples: u64 = bench.either(300_000_000, 10_000_000);
    let cpus: Vec<u32> = bench.cpus.iter().take(2).collect();
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let place = bench.path("memory");
    let mut command = Command::new(&bench.tardy);
    command
        .args(["run", "fake", "--unpaced", "--quiet", "--warmup", "0us", "--cpus", &list])
        .args(["--samples", &samples.to_string(), "-o"])
        .arg(&place);
    let fared = process::run(&mut command)?;
    let run = Run::open(&place)?;
    ensure!(
        run.document.wakeups().all(|series| series.count == samples),
        "not every sample was recorded"
    );
    let mib = fared.peak_bytes as f64 / f64::from(1 << 20);
    let count = samples * cpus.len() as u64 / 1_000_000;
    section.rows.push(
        FigureRow::new(
            format!("peak resident memory, {count} million samples, {} series", cpus.len()),
            format!("{mib:.1} MiB"),
        )
        .judged(format!("{LIMIT_MIB} MiB"), mib <= LIMIT_MIB),
    );
    section
        .rows
        .push(FigureRow::new("time that took", format!("{:.1} s", fared.took.as_secs_f64())));
    section
        .note("`ru_maxrss` of a whole `tardy run fake --unpaced`; counts were checked afterwards.");
    Ok(section)
}
