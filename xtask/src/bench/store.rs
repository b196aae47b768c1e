//! Finding a run among 10,000, and listing all of them.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result};

use super::{
    Bench,
    day::{seconds, timed},
    process,
    sheet::{FigureRow, Section},
};

/// Copies of a run measured here, in their own store.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let runs = bench.either(10_000, 1_000);
    let mut section = Section::new(&format!("A store of {runs} runs"));
    let store = bench.path("store");
    let bytes = fill(bench, &store, runs)?;
    let stat_s = pass(&store, |path| fs::metadata(path).map(drop))?;
    let read_s = pass(&store, read)?;
    for (what, words) in [
        ("`tardy show last`", &["show", "last"][..]),
        ("`tardy show` by the beginning of an id", &["show", "20260101-000042"]),
        ("`tardy list`", &["list"]),
    ] {
        let took = seconds(bench, |command| command.arg("--store").arg(&store).args(words))?;
        let ratios = (took.median / stat_s, took.median / read_s);
        section.rows.push(timed(what, &took, 1.0));
        section.rows.push(FigureRow::new(
            "the same against a look at each file, and against reading each",
            format!("{:.1} times, {:.1} times", ratios.0, ratios.1),
        ));
    }
    section.note(format!(
        "Each `run.json` has {bytes} bytes, as a run of one second left it on this machine; all \
         are in the page cache. Looking at each takes {:.0} ms, reading each {:.0} ms.",
        stat_s * 1e3,
        read_s * 1e3
    ));
    Ok(section)
}

/// Measures once, and writes its record this many times, a second apart; returns the bytes
/// of one.
fn fill(bench: &Bench, store: &Path, runs: u32) -> Result<usize> {
    let first = bench.path("first");
    let mut command = std::process::Command::new(&bench.tardy);
    command.args(["run", "timer", "--duration", "1s", "--quiet", "-o"]).arg(&first);
    process::run(&mut command)?;
    let text = fs::read_to_string(first.join("run.json")).context("the run left no record")?;
    let record: serde_json::Value = serde_json::from_str(&text)?;
    let field = |name: &str| record[name].as_str().map(str::to_owned).context("a field is missing");
    let (id, started_at) = (field("id")?, field("started_at")?);
    for run in 0..runs {
        let (h, m, s) = (run / 3600, run / 60 % 60, run % 60);
        let own = format!("20260101-{h:02}{m:02}{s:02}.000-0000");
        let directory = store.join(&own);
        fs::create_dir_all(&directory)?;
        let text = text
            .replace(&id, &own)
            .replace(&started_at, &format!("2026-01-01T{h:02}:{m:02}:{s:02}.000000Z"));
        fs::write(directory.join("run.json"), text)?;
    }
    Ok(text.len())
}

fn read(path: &Path) -> std::io::Result<()> {
    fs::read(path).map(|bytes| drop(std::hint::black_box(bytes)))
}

/// Seconds for doing something to every record.
fn pass(store: &Path, act: impl Fn(&Path) -> std::io::Result<()>) -> Result<f64> {
    let began = Instant::now();
    for entry in fs::read_dir(store)? {
        act(&entry?.path().join("run.json"))?;
    }
    Ok(began.elapsed().as_secs_f64())
}
