//! `cargo xtask bench --counted`: peers side by side in guests whose time is the count of their
//! instructions, so that ratios have no noise: the same bench gives the same figures everywhere.

mod guest;
mod helpers;
mod pingpong;
mod ratio;
mod timer;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tardy::lab::{
    guest::qemu,
    kernels::{Kernel, KernelSource},
    program,
};
use tempfile::TempDir;

use self::guest::CountedGuest;
use super::{say, sheet::Section};
use crate::vm;

type Part = fn(&CountedBench) -> Result<Section>;

/// The parts by the name that selects one.
const PARTS: [(&str, Part); 2] = [("timer", timer::part), ("pingpong", pingpong::part)];

/// Their names.
pub(super) fn names() -> [&'static str; PARTS.len()] {
    PARTS.map(|(name, _)| name)
}

/// What every part works with.
pub(super) struct CountedBench {
    pub tardy: PathBuf,
    /// Whether that is the tests' tardy.
    pub unoptimised: bool,
    pub kernels: Vec<Kernel>,
    /// For guests; goes with the bench.
    pub scratch: TempDir,
    pub quick: bool,
}

impl CountedBench {
    /// Gets the kernels.
    pub(super) fn new(
        tardy: PathBuf,
        unoptimised: bool,
        sources: &[KernelSource],
        quick: bool,
    ) -> Result<Self> {
        program(qemu::PROGRAM).context("apt-get install qemu-system-x86")?;
        let kernels = sources.iter().map(vm::kernel).collect::<Result<_>>()?;
        let beside = tardy.parent().context("tardy lies nowhere")?;
        let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(beside)?;
        Ok(Self { tardy, unoptimised, kernels, scratch, quick })
    }

    /// `full`, or `quick` where only one of everything is wanted.
    fn either<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    fn guest<'a>(&'a self, kernel: &'a Kernel) -> CountedGuest<'a> {
        CountedGuest { kernel, tardy: &self.tardy, scratch: self.scratch.path() }
    }

    /// Runs the parts with these names, all of them without a name; Markdown.
    pub(super) fn run(&self, rows: &[String]) -> Result<String> {
        if let Some(row) = rows.iter().find(|row| !names().contains(&row.as_str())) {
            bail!("{row} has no counted form; with --counted there is {}", names().join(", "));
        }
        let mut page = self.head();
        for (name, part) in PARTS {
            if !rows.is_empty() && !rows.iter().any(|row| row == name) {
                continue;
            }
            say(&format!("== {name}"));
            let section = part(self).unwrap_or_else(|error| Section::failed(name, &error));
            say(&section.table());
            page += &section.markdown();
        }
        Ok(page)
    }

    fn head(&self) -> String {
        let kernels: Vec<String> = self
            .kernels
            .iter()
            .map(|kernel| format!("{} ({})", kernel.asked, kernel.name))
            .collect();
        let build = if self.unoptimised { ", only its measuring loops optimised" } else { "" };
        format!(
            "## Counted on {}\n\n| | |\n| --- | --- |\n| kernels | {} |\n| machine | QEMU {}, one \
             CPU, 2 ns an instruction |\n| tardy | {}{build} |\n\nA ratio is tardy's to its \
             peer's, all rounds together and the range of the rounds, so below 1 tardy is ahead. \
             Percentiles are read from one histogram with three digits; a limit is met up to one \
             bucket of that above it.\n\n",
            jiff::Zoned::now().date(),
            kernels.join(", "),
            super::version_of(qemu::PROGRAM),
            env!("CARGO_PKG_VERSION"),
        )
    }
}
