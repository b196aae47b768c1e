//! What to run: a plan as a small TOML file, for this machine and for the guests of the lab.
//!
//! A plan holds axes (probes, loads, setups, policies, wait methods, and for the lab kernels) and
//! the long flags of `tardy run`, and of the `tardy echo` in a second box, so that nothing has a
//! second definition. The command line checks whether flags are valid, since it knows them. The
//! number of boxes is all that a plan contains about machines.
//!
//! - `syntax`: the tables and keys of the file; `reading`: values, and what is refused by its line
//! - `axes`, `rows`: from axes to rows; [`order`]: in which order cells are measured

pub use crate::limits::plan::LARGEST_PLAN;

mod axes;
pub mod order;
mod reading;
mod rows;
mod syntax;
#[cfg(test)]
mod tests;

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};

use order::CellOrder;
use reading::Reading;

/// A matrix, each place of it to be measured several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What it is called; part of a directory's name.
    pub name: String,
    /// The number of times that each row is measured, 1 or more; in the lab, the number of phase
    /// offsets.
    pub repeat: u32,
    /// In which order cells are measured.
    pub order: CellOrder,
    /// What a random order is drawn by; absent for a new number each time.
    pub seed: Option<u64>,
    /// How long nothing is done between two cells, ns.
    pub pause_ns: i64,
    /// How long all of it may take, ns; absent for as long as it takes.
    pub budget_ns: Option<i64>,
    /// A command that restores what the prepare commands changed.
    pub undo: Option<String>,
    /// Limits that its figures must keep.
    pub gates: Vec<PlanGate>,
    /// For the lab: kernels as `tardy lab run --kernels` takes them.
    pub kernels: Vec<String>,
    /// Every combination of the axes, in the order of the file.
    pub rows: Vec<PlanRow>,
}

/// A limit as `--gate` takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanGate {
    /// `p99.9<=80us`
    pub text: String,
    /// Its line in the file.
    pub line: usize,
}

impl PlanGate {
    /// What is wrong with it, in the file of this name.
    #[must_use]
    pub fn refusal(&self, file: &str, why: &str) -> String {
        format!("{file}, line {}: gates: {why}", self.line)
    }
}

/// One combination of a plan: what a cell is, but for its kernel and its number of repeats.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PlanRow {
    /// What people call it; no two of a plan have the same.
    pub name: String,
    /// The part of the plan that it belongs to; `None` if the plan has none.
    pub part: Option<String>,
    /// Its part, its probe and its load: the row of a matrix.
    pub row: String,
    /// Its setup, policy and wait method: the column of a matrix; empty where the plan has one.
    pub column: String,
    /// The line of the file where its load or its first other part begins, from 1.
    pub line: usize,
    /// The probe.
    pub probe: String,
    /// Flags of `tardy run`, but for loads, by name.
    pub flags: Vec<String>,
    /// What `--load` takes.
    pub loads: Vec<String>,
    /// Flags of the `tardy echo` in a second box; `None` if there is one box.
    pub far: Option<Vec<String>>,
    /// A command that prepares the machine for it.
    pub prepare: Option<String>,
}

impl PlanRow {
    /// The words of `tardy run` that measure it: probe, flags, loads.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let loads = self.loads.iter().map(|load| format!("--load={load}"));
        let words = std::iter::once(self.probe.clone()).chain(self.flags.iter().cloned());
        words.chain(loads).collect()
    }
}

impl Plan {
    /// Reads the plan in `path`.
    ///
    /// # Errors
    /// A file that cannot be read, or whatever [`Plan::parse`] finds.
    pub fn open(path: &Path) -> Result<Self> {
        Self::parse(&Self::text(path)?, &path.display().to_string())
    }

    /// The text of the plan in `path`.
    ///
    /// # Errors
    /// A file that cannot be read, is invalid or too large.
    pub fn text(path: &Path) -> Result<String> {
        let shown = path.display();
        let about = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        ensure!(about.is_file(), "{shown} is not a file; a plan is a TOML file");
        ensure!(
            about.len() <= LARGEST_PLAN,
            "{shown} is larger than 1 MiB; a plan is a page of text"
        );
        std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))
    }

    /// How long nothing is done between two cells.
    #[must_use]
    pub fn pause(&self) -> Duration {
        Duration::from_nanos(self.pause_ns.unsigned_abs())
    }

    /// How long all of it may take.
    #[must_use]
    pub fn budget(&self) -> Option<Duration> {
        self.budget_ns.map(|ns| Duration::from_nanos(ns.unsigned_abs()))
    }

    /// Reads a plan; `file` is what errors call it.
    ///
    /// # Errors
    /// Invalid TOML; an unknown or missing key; an invalid value: each with its line.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let reading = Reading { text, file };
        let parsed = toml::from_str(text)
            .map_err(|error| reading.refusal(error.span(), &syntax::reason(error.message())))?;
        rows::plan(&reading, &parsed)
    }
}
