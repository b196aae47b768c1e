//! Reading a run of one day; and starting at all.

use std::{path::Path, process::Command};

use anyhow::Result;
use tardy::analysis::{self, Estimate};

use super::{
    Bench, process,
    sheet::{FigureRow, Section, interval},
};
use crate::synth;

/// `show` and `report` of a day, 8 CPUs at 1 kHz.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("A run of one day: 8 CPUs at 1 kHz, 691 million samples");
    let (day, page) = (bench.path("day"), bench.path("day.html"));
    synth::day(&day)?;
    let show = seconds(bench, |command| command.arg("show").arg(&day))?;
    let report = seconds(bench, |command| command.arg("report").arg(&day).arg("-o").arg(&page))?;
    section.rows.push(timed("`tardy show`", &show, 1.0));
    section.rows.push(timed("`tardy report`", &report, 3.0));
    let mb = page_mb(&page)?;
    section
        .rows
        .push(FigureRow::new("size of the page", format!("{mb:.2} MB")).judged("3 MB", mb <= 3.0));
    section.note(
        "Made by `cargo xtask synth-day`: 1,000 intervals per CPU, one row of each track per \
                  interval, no single samples.",
    );
    Ok(section)
}

/// `tardy --version`.
pub(super) fn version_part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Starting");
    let took = seconds(bench, |command| command.arg("--version"))?;
    section.rows.push(timed("`tardy --version`", &took, 0.01));
    Ok(section)
}

pub(super) fn timed(what: &str, took: &Estimate, limit_s: f64) -> FigureRow {
    let Estimate { median, low, high, .. } = *took;
    let ms = Estimate { median: median * 1e3, low: low * 1e3, high: high * 1e3, ..*took };
    FigureRow::new(what, format!("{} ms", interval(&ms, 1)))
        .judged(format!("{:.0} ms", limit_s * 1e3), took.meets(limit_s))
}

pub(super) fn seconds(
    bench: &Bench,
    words: impl Fn(&mut Command) -> &mut Command,
) -> Result<Estimate> {
    let mut took = Vec::new();
    for _ in 0..bench.either(11, 6) {
        let mut command = Command::new(&bench.tardy);
        words(&mut command);
        took.push(process::run(&mut command)?.took.as_secs_f64());
    }
    Ok(analysis::median(&took, 0.95)?)
}

fn page_mb(page: &Path) -> Result<f64> {
    Ok(std::fs::metadata(page)?.len() as f64 / 1e6)
}
