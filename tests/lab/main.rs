//! The lab with real guests: what comes out of them, and what is left when they end badly.
//!
//! A guest costs some ten seconds of a CPU, so there are few here, and each is checked from
//! several sides. Kernels come from the cache that `cargo xtask vm` fills, and are fetched where it
//! is empty. Where that is impossible the tests that need a guest skip; as root none may skip.
//! Tests that overlap with another one here run in `make test-long` only.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use tardy::{
    lab::{
        cell::{Cell, ClockMode, guest_runner::GuestRunner, phase::StartPhase},
        kernels::{self, Kernel, KernelSource},
    },
    run::{Document, Run, RunDirectory},
};
use tempfile::TempDir;

mod nodes;
mod faults;
mod repeat;
mod support;
mod traced;

const TARDY: &str = env!("CARGO_BIN_EXE_tardy");

/// Longer than any guest here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// A cache of the test's own, a kernel from the one that all tests share, and a place for runs.
struct Place {
    directory: TempDir,
    kernel: Kernel,
    runner: GuestRunner,
}

impl Place {
    /// Nothing where guests are impossible here.
    fn new() -> Option<Self> {
        Self::with("standard")
    }

    fn with(kernel: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("vm/kernels");
        let source = KernelSource::parse(kernel).unwrap();
        let quiet = |_: &str| {};
        let made = kernels::get(&source, &shared, &quiet).and_then(|kernel| {
            let runner =
                GuestRunner::with(Path::new(TARDY), &directory.path().join("cache"), &quiet)?;
            Ok((kernel, runner))
        });
        match made {
            Ok((kernel, runner)) => Some(Self { directory, kernel, runner }),
            Err(error) => {
                assert!(!rustix::process::geteuid().is_root(), "{error:#}");
                // Past the harness, which hides what passing tests print.
                let _ = writeln!(std::io::stderr().lock(), "skipped: {error:#}");
                None
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cell(&self, arguments: &[&str]) -> Cell {
        Cell {
            kernel: self.kernel.clone(),
            mode: ClockMode::Deterministic,
            seed: 0,
            start: StartPhase::default(),
            is_control: false,
            load: "a load".into(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            far: Vec::new(),
            cpus: 1,
            limit: LIMIT,
        }
    }

    fn run(&self, cell: &Cell, name: &str) -> anyhow::Result<Document> {
        let place = RunDirectory::make(&self.path(name))?;
        self.runner.run(cell, &place, &|| false).inspect_err(|_| assert_empty(&self.path(name)))
    }

    /// Whatever happened: no guest is left, and no file of one.
    fn assert_nothing_left(&self) {
        let guests = fs::read_dir(self.path("cache/guests")).unwrap();
        assert_eq!(guests.count(), 0);
        assert_eq!(processes_with(&self.path("cache").display().to_string()), 0);
    }
}

/// A guest that fails leaves nothing of a run.
fn assert_empty(run: &Path) {
    assert_eq!(fs::read_dir(run).unwrap().count(), 0, "{}", run.display());
}

/// Runs all of these at once, each in its own guest.
fn run_all(cells: &[(&Place, Cell, &str)]) -> Vec<Document> {
    thread::scope(|scope| {
        let run = |(place, cell, name): &(&Place, Cell, &str)| place.run(cell, name).unwrap();
        let running: Vec<_> = cells.iter().map(|cell| scope.spawn(move || run(cell))).collect();
        running.into_iter().map(|running| running.join().unwrap()).collect()
    })
}

/// Processes that have this on their command line.
fn processes_with(text: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

fn tardy(arguments: &[&str]) -> Output {
    Command::new(TARDY).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file of a run with its content, by name.
fn files(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![run.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(run).unwrap().display().to_string();
                found.push((name, fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn open(path: &Path) -> Run {
    Run::open(path).unwrap()
}
