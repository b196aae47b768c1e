//! `cargo xtask bench`: checks the numbers that tardy must reach, peers side by side.
//!
//! A table goes to stderr as it comes about; the same as Markdown, for
//! `docs/explanation/overhead.md`, to
//! stdout. Nothing here fails because of a time: a number that is not met is a row that says so.

pub(crate) mod bare;
mod counted;
mod counted_trace;
mod day;
mod memory;
pub(crate) mod messages;
mod pacing;
mod peers;
mod process;
mod raw;
pub(crate) mod record;
mod sheet;
mod store;
mod trace;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, builder::PossibleValuesParser};
use tardy::{lab::kernels::KernelSource, sys::cpus::Cpus};
use tempfile::TempDir;

use counted::CountedBench;
use sheet::Section;

use crate::vm;

/// What every part of the bench works with.
pub(crate) struct Bench {
    /// The optimised tardy.
    tardy: PathBuf,
    /// The optimised xtask, for loops in separate processes.
    own: PathBuf,
    /// For runs; goes with the bench.
    scratch: TempDir,
    cpus: Cpus,
    /// A smoke test: everything runs, nothing is worth quoting.
    quick: bool,
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// `full`, or `quick` in a smoke test.
    fn either<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

type Part = fn(&Bench) -> Result<Section>;

/// The parts by the name that selects one.
const PARTS: [(&str, Part); 11] = [
    ("record", record::part),
    ("version", day::version_part),
    ("day", day::part),
    ("store", store::part),
    ("memory", memory::part),
    ("raw", raw::part),
    ("peers", peers::part),
    ("messages", messages::part),
    ("trace", trace::part),
    ("counted-trace", counted_trace::part),
    ("pacing", pacing::part),
];

/// Of this machine, then of counted guests.
fn names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).chain(counted::names()).collect()
}

/// Hold tardy to its numbers; a table on stderr, Markdown on stdout
#[derive(Debug, Args)]
pub(crate) struct BenchFlags {
    /// Only see that everything runs; nothing that it prints is worth quoting
    #[arg(long)]
    quick: bool,
    /// Instead, peers in virtual machines whose time is their count of instructions: no noise
    #[arg(long)]
    counted: bool,
    /// The kernels of those, as `cargo xtask vm --kernel` takes them
    #[arg(long, value_name = "NAME,...", default_value = "standard,rt", requires = "counted")]
    kernels: String,
    /// There, the tests' tardy, of which only the measuring loops are optimised
    #[arg(long, requires = "counted")]
    unoptimised: bool,
    /// Only these
    #[arg(value_name = "ROW", value_parser = PossibleValuesParser::new(names()))]
    rows: Vec<String>,
}

/// Builds, measures, prints.
pub(crate) fn run(flags: &BenchFlags) -> Result<()> {
    if flags.counted {
        let page = run_counted(flags)?;
        return Ok(std::io::stdout().write_all(page.as_bytes())?);
    }
    if let Some(row) = flags.rows.iter().find(|row| PARTS.iter().all(|(name, _)| name != row)) {
        bail!("{row} is measured with --counted only");
    }
    let bench = prepare(flags.quick)?;
    let mut page = sheet::head(&bench);
    for (name, part) in PARTS {
        if !flags.rows.is_empty() && !flags.rows.iter().any(|row| row == name) {
            continue;
        }
        say(&format!("== {name}"));
        let section = part(&bench).unwrap_or_else(|error| Section::failed(name, &error));
        say(&section.table());
        page += &section.markdown();
    }
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}

fn run_counted(flags: &BenchFlags) -> Result<String> {
    let sources = KernelSource::parse_list(&flags.kernels)?;
    let tardy = if flags.unoptimised { vm::tests_tardy()? } else { prepare(flags.quick)?.tardy };
    CountedBench::new(tardy, flags.unoptimised, &sources, flags.quick)?.run(&flags.rows)
}

/// What a program says of its version, in its first line that has a number.
fn version_of(program: &str) -> String {
    let said = Command::new(program).arg("--version").output();
    let text = said.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let text = text.unwrap_or_default();
    let version = text.lines().next().and_then(|line| line.split_once("version "));
    version.map_or_else(|| "unknown".into(), |(_, version)| version.trim().to_owned())
}

/// Builds what is measured, as it is shipped.
fn prepare(quick: bool) -> Result<Bench> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "tardy", "--package", "xtask"])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(built.success(), "the release build failed");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let release = root.join(target).join("release");
    let (tardy, own) = (release.join("tardy"), release.join("xtask"));
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(&release)?;
    Ok(Bench { tardy, own, scratch, cpus: Cpus::allowed()?, quick })
}

/// Prints progress to standard error.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}
