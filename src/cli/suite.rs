//! `tardy suite`: a plan of every probe that comes along, and one page on this machine and kernel.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};

use super::{
    Exit, check, output,
    plan::{MeasuringFlags, PlanText},
    report,
};
use crate::{plain::plain_path, run::RunDirectory, store::Store};

/// The page, in the directory of the plan.
const INDEX: &str = "index.html";

/// Measure every probe under loads on this machine, with one index page
///
/// Measures timers, messages, bandwidth, interactive tasks, device interrupts, noise and priority
/// inversion, each three times in a random order. The suite is a built-in plan
/// (examples/suite-quick.toml, examples/suite-full.toml): --resume, --check and gates work as with
/// `tardy plan`. At the end its directory has index.html, with the findings of `tardy check` and a
/// page for each run. `tardy report A B` compares two suites.
///
/// A cell that cannot run on this machine (e.g. a video load without a player) fails and names a
/// fix; the rest is measured.
///
/// Exit codes: 0 done, 1 a gate failed, 2 an error, also of one cell, 3 a gate is inconclusive or a
/// cell for it was not measured, 4 a cell is invalid.
#[derive(Debug, Args)]
pub(super) struct SuiteFlags {
    /// Measure each probe briefly: about five minutes (the default)
    #[arg(long, conflicts_with_all = ["full", "resume"])]
    quick: bool,
    /// Measure all loads, and longer: about an hour
    #[arg(long, conflicts_with = "resume")]
    full: bool,
    /// Largest number of pages of single runs beside index.html [default: 100]
    ///
    /// A page takes about 100 kB. All of them share one viewer of 0.8 MB, in the same directory.
    /// `tardy report RUN` writes the page of one run as one file.
    #[arg(long, value_name = "COUNT", help_heading = "Output")]
    pages: Option<u32>,
    #[command(flatten)]
    measuring: MeasuringFlags,
}

/// The suites that come along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SuiteName {
    /// About five minutes on this machine
    Quick,
    /// About an hour on this machine
    Full,
}

impl SuiteName {
    /// Its plan, and what errors call it.
    pub(super) fn plan(self) -> PlanText {
        let (text, name) = match self {
            Self::Quick => (include_str!("../../examples/suite-quick.toml"), "the quick suite"),
            Self::Full => (include_str!("../../examples/suite-full.toml"), "the full suite"),
        };
        PlanText { text: text.into(), name: name.into() }
    }
}

/// Measures, writes the page, and prints the result.
pub(super) fn suite(flags: &SuiteFlags, store: &Store, argv: Vec<String>) -> Result<Exit> {
    let name = if flags.full { SuiteName::Full } else { SuiteName::Quick };
    let text = (!flags.measuring.is_resumed()).then(|| name.plan());
    if let Some(plan) = flags.measuring.resumed_plan(store)? {
        ensure!(
            plan.starts_with("suite-"),
            "--resume: it is the plan {plan:?}, not a suite; continue it by `tardy plan --resume`"
        );
    }
    // Before the loads: what they leave behind is not the machine's.
    let findings = (!flags.measuring.is_check()).then(check::findings);
    flags.measuring.measure(text, (store, "suite"), argv, |directory, place| {
        if let Some(findings) = &findings {
            check::keep(findings, directory)?;
        }
        index(directory, place, flags)
    })
}

fn index(directory: &RunDirectory, place: &Path, flags: &SuiteFlags) -> Result<()> {
    // Whatever has its path by now.
    let held = directory.path();
    report::plan_page(&held, &held.join(INDEX), flags.pages).with_context(|| {
        let shown = plain_path(place);
        format!("what was measured is kept in {shown}; its page could not be written")
    })?;
    if !flags.measuring.is_quiet() {
        output::notice(&format!("wrote {}", plain_path(&place.join(INDEX))));
    }
    Ok(())
}
